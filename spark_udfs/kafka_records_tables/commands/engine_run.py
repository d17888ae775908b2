"""What all runs that read tables share: the Spark session, and the messages for errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.missing_rights import COORDINATOR_TOPICS, MissingRight
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.commands.source_options import REQUESTS
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.coordinator.transactions import UnknownTransactions
from kafka_records_tables.engines.local import WorkerEnded
from kafka_records_tables.query import QueryError
from kafka_records_tables.tables.requested.what_requests_tell import why_not

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_records_tables.commands.given_source import GivenSource
    from kafka_records_tables.console.progress_bar import ByteProgress
    from kafka_records_tables.tables import Table


@dataclass(frozen=True)
class SparkSettings:
    """The settings of Spark, if Spark reads instead of processes on this machine."""

    master: str | None = None
    properties: Mapping[str, str] | None = None


def check_java_for(asked: SparkSettings | None) -> None:
    """Raise a CommandError if Spark is requested and its Java is missing."""
    if asked is None:
        return
    from kafka_records_tables.engines.java import JavaMissing, check_java

    try:
        check_java()
    except JavaMissing as error:
        raise CommandError(str(error)) from None


@contextmanager
def session_of(asked: SparkSettings | None, progress: ByteProgress) -> Iterator[SparkSession | None]:
    """The session of --engine spark."""
    if asked is None:
        yield None
        return
    from kafka_records_tables.engines.spark_session import local_session

    progress.waiting("starting Spark")
    settings = dict(asked.properties or {})
    if asked.master is not None:
        settings["spark.master"] = asked.master
    with local_session(settings) as session:
        yield session


def other_way(error: Exception, tables: Iterable[Table], given: GivenSource) -> str:
    """The hint to use requests instead; empty unless a coordinators' topic may not be read and requests can fill these
    tables."""
    is_topic = isinstance(error, MissingRight) and error.resource_name in COORDINATOR_TOPICS
    if not is_topic or given.by_requests or any(map(why_not, tables)):
        return ""
    return f", or ask the coordinators with --source {REQUESTS}"


@contextmanager
def told_in_words(no_log: Callable[[LogSourceError], str]) -> Iterator[None]:
    """Converts errors that end a reading into a CommandError. `no_log` returns the message if there is nothing to
    read."""
    try:
        yield
    except LogSourceError as error:
        raise CommandError(no_log(error)) from None
    except UnknownTransactions as error:
        raise CommandError(
            f"{error.topic}-{error.partition}: it is unknown whether the record at offset {error.offset} was "
            "written in a transaction, or whether that transaction was committed. To count such records as committed, "
            "although some may belong to aborted or open transactions, use --assume committed"
        ) from None
    except WorkerEnded as error:
        raise CommandError(
            f"{error.what_happened}: use --processes 1 to read with one process, or --group NAME to read less"
        ) from None
    except (KafkaRecordsError, QueryError) as error:
        raise CommandError(str(error)) from error
