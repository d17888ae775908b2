"""Determines what engines read for a table: the log partitions of its topic, or one object that represents all logs of
a source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine import arguments
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.abilities import TellsCluster, has
from kafka_records_engine.sources.ends_of_logs import log_starts
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.known_topics import known_topics
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.missing_rights import MissingRight, lacking_coordinator_topics
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_tables.engines.asked_coordinators import asked_coordinators, check_coordinators
from kafka_records_tables.tables import tables_read
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import Context, LogPartition, Source
    from kafka_records_engine.sources.protocol import LogStarts
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables import Table

_ROWS: Final = 4096


def logs_to_read(
    table: Table, given: Any, topic: str | None = None, starts: LogStarts | None = None, *, is_input: bool = False
) -> Sequence[LogPartition]:
    """The log partitions of the source `given` from which a table is computed.

    `topic` is the topic of files or rows that do not name one. A table that covers all topics is then limited to it.
    `starts` are log starts that were read earlier. `is_input` is true if only a view needs the table. Raises
    LogSourceError if there are no log partitions.
    """
    if topic is not None:
        arguments.text("topic", topic)
    if table.topic:
        return logs_of_table(table, source_of(given, topic or table.topic))
    source = source_of(given, topic)
    return [AllLogs(source, None if topic is None else (topic,), starts, is_input)]


def logs_of_table(table: Table, source: Source) -> Sequence[LogPartition]:
    """The log partitions of a table's topic. Brokers do not let clients read the metadata log, but report its content.
    Raises LogSourceError."""
    if table.topic == METADATA and has(source, TellsCluster):
        return [source.cluster_answers(table.records)]
    asked = asked_coordinators(source)
    return source.partitions(table.topic) if asked is None else asked.logs(table)


def logs_key(table: Table, source: Source) -> str:
    """A key that is equal for tables computed from the same log partitions."""
    return table.name if table.topic == METADATA and has(source, TellsCluster) else table.topic


def starts_before(tables: Iterable[Table], source: Source, topic: str | None = None) -> LogStarts | None:
    """The starts of all logs, or of a topic's logs, requested before anything else. None if no table needs them, or if
    the source's log starts cannot move."""
    needed = any(read.helper == "ends" for table in tables for read in tables_read(table))
    return log_starts(source, None if topic is None else (topic,)) if needed else None


def asked_of_logs(
    request: TableRequest,
    given: Any,
    report: Callable[[Finding], object] | None = None,
) -> tuple[TableRequest, Sequence[LogPartition]]:
    """The request, with the source's facts about topics if the table uses them, and the log partitions to read.
    `report` receives a finding if brokers no longer answer requests about topics. Raises the errors of
    `logs_to_read`."""
    table, topic = request.table, request.question.topic
    source = source_of(given, topic or table.topic) if table.topic else given
    check_coordinators(request, source)
    # Find the logs before requesting topics. Reading ends where the logs end now, so every topic that a record refers
    # to already exists by then.
    logs = logs_to_read(table, source, topic)
    return with_known_topics(request, source, report), logs


def with_known_topics(
    request: TableRequest, source: Source, report: Callable[[Finding], object] | None = None
) -> TableRequest:
    """The request, with the source's facts about topics if a table read for the request uses them."""
    if not uses_topics(request):
        return request
    return with_topics(request, topics_known_to(source, report))


def with_topics(request: TableRequest, known: KnownTopics) -> TableRequest:
    """The request with these facts about topics."""
    return replace(request, topics=known)


def uses_topics(request: TableRequest) -> bool:
    """Whether a table read for the request uses a source's facts about topics."""
    return any(each.reader.uses_topics for each in tables_read(request.table))


def topics_known_to(source: Source, report: Callable[[Finding], object] | None = None) -> KnownTopics:
    """The source's facts about topics; empty if there is a problem, because problems of a source are reported when its
    records are read. `report` receives the finding about brokers that no longer answer or a damaged metadata log.
    """
    try:
        known = known_topics(source)
        if known.asked_ms is None:  # no broker has reported it
            # Imported here because a kept answer does not need the modules that decode records.
            from kafka_records_tables.tables.cluster.known_from_metadata import with_metadata

            known = with_metadata(known, source, report)
        return known
    except LogSourceError as error:
        if report is not None and isinstance(error, UnreachableBrokers):
            report(error.finding())
        return KnownTopics()


@dataclass(frozen=True)
class AllLogs:
    """The logs of the given topics as one object. Its rows contain the starts and ends of these logs: `LOG_ENDS_SCHEMA`
    in `kafka_records_engine.sources.ends_of_logs`."""

    source: Source
    topics: tuple[str, ...] | None
    """The topics; None means all that exist when ends are requested."""
    starts: LogStarts | None = None
    """The log starts before records were read."""
    is_input: bool = False
    """Whether only a view needs the rows. Views know which topics they need."""
    partition: int = -1
    size: int = 0
    in_memory: bool = True
    """Always True, because a second process would not speed up a few requests."""

    @property
    def topic(self) -> str:
        """The name of the source, for messages that otherwise name a log partition."""
        return self.source.name

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """A row per log partition, with columns of `log_details` if `columns` names any. Findings go to the context."""
        from kafka_records_engine.sources.ends_of_logs import as_rows, log_ends
        from kafka_records_engine.sources.log_details import asked_details, log_details, with_details

        try:
            topics = tuple(self.source.topics()) if self.topics is None else self.topics
        except UnreachableBrokers as error:
            if not self.is_input and not getattr(self.source, "is_over", False):
                raise
            context.report(error.finding())  # what was read so far is still useful
            return
        if self.topics is None and not self.is_input:
            for lacking in lacking_coordinator_topics(self.source, topics):
                if isinstance(lacking, MissingRight):
                    context.report(lacking.finding())
        found = log_ends(self.source, topics, context, self.starts)
        asked = asked_details(columns)
        try:
            details = log_details(self.source, topics, asked, context)
            while rows := list(islice(found, _ROWS)):
                places = [(each.topic, each.partition) for each in rows]
                yield with_details(as_rows(rows), places, asked, details)
        except (UnreachableBrokers, MissingRight) as error:
            if not self.is_input:
                raise
            context.report(error.finding())  # the rows of the other inputs are still useful
