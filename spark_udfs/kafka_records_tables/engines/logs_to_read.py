"""What engines read for a table: the log partitions of its topic, or one thing that stands for all logs of a source."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine import arguments
from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.known_topics import KnownTopics, known_topics
from kafka_records_tables.tables import tables_read

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context, LogPartition, Source
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables import Table

_ROWS: Final = 4096


def logs_to_read(table: Table, given: Any, topic: str | None = None) -> Sequence[LogPartition]:
    """The log partitions that a table over the source `given` is made of.

    `topic` is the topic of files or rows that do not name one; a table of every topic is about this one then. Raises
    LogSourceError where there is none.
    """
    if topic is not None:
        arguments.text("topic", topic)
    if table.topic:
        return source_of(given, topic or table.topic).partitions(table.topic)
    source = source_of(given, topic)
    return [AllLogs(source, tuple(source.topics()) if topic is None else (topic,))]


def asked_of_logs(
    request: TableRequest, given: Any, topic: str | None = None
) -> tuple[TableRequest, Sequence[LogPartition]]:
    """What to ask, with what the source `given` knows of topics where the table uses it, and the log partitions to
    ask. Raises as `logs_to_read` does."""
    table = request.table
    source = source_of(given, topic or table.topic) if table.topic else given
    return with_known_topics(request, source), logs_to_read(table, source, topic)


def with_known_topics(request: TableRequest, source: Source) -> TableRequest:
    """The request, with what the source knows of topics where a table that is read uses it."""
    if not uses_topics(request):
        return request
    known = topics_known_to(source)
    return replace(request, topic_names=known.names, partition_counts=known.partition_counts)


def uses_topics(request: TableRequest) -> bool:
    """Whether a table that is read for it uses what a source knows of topics."""
    return any(each.uses_topics for each in tables_read(request.table))


def topics_known_to(source: Source) -> KnownTopics:
    """What the source knows of topics. That is an extra: what is wrong with a source is told to who reads its
    records."""
    try:
        return known_topics(source)
    except LogSourceError:
        return KnownTopics()


@dataclass(frozen=True)
class AllLogs:
    """All logs of some topics. Its rows say where they begin and end (`sources.ends_of_logs.LOG_ENDS_SCHEMA`)."""

    source: Source
    topics: tuple[str, ...]
    partition: int = -1
    size: int = 0
    in_memory: bool = True
    """It is asked a little, and nothing is read that a second process could help with."""

    @property
    def topic(self) -> str:
        """What it is called where a log partition has its topic."""
        return self.source.name

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """A row per log partition. Findings go to the context."""
        from kafka_records_engine.sources.ends_of_logs import as_rows, log_ends

        found = log_ends(self.source, self.topics, context)
        while rows := list(islice(found, _ROWS)):
            yield as_rows(rows)
