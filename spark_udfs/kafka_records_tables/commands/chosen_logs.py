"""Finds the log partitions of the coordinators' topics in a source, and reads their raw rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_runtime.errors import plural
from kafka_records_tables.commands.catalog import TOPICS_TEXT, Catalog
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.console.standard_error import say

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding, OnFinding
    from kafka_records_engine.log.files.discovery import LogSourceError
    from kafka_records_engine.sources import Context, LogPartition, Source

_MOST_NAMED: Final = 20


def chosen_logs(
    source: Source, topic: str | None, catalog: Catalog, tell: OnFinding, quietly: bool = False
) -> list[LogPartition]:
    """The log partitions whose records have schemas in `catalog`, sorted by topic and partition.

    Other topics in the source are left out, with a line on standard error unless `quietly` is set. Topics that are left
    out because a right is missing, or that a cluster does not have yet, are reported to `tell`. Raises a CommandError
    if nothing is left or a source does not exist.
    """
    from kafka_records_engine.log.files.discovery import LogSourceError
    from kafka_records_engine.sources.missing_rights import lacking_coordinator_topics, logs_of_topics

    try:
        if topic is not None:
            return logs_of_topics(source, [catalog.checked(topic)], (), tell)
        topics = source.topics()
        chosen = [name for name in topics if catalog.folder_of(name) is not None]
        lacking = lacking_coordinator_topics(source, topics) if catalog.is_kafka else []
        if not chosen and not lacking:
            names = ", ".join(topics[:_MOST_NAMED])
            more = f" and {len(topics) - _MOST_NAMED} more" if len(topics) > _MOST_NAMED else ""
            raise CommandError(f"{source.name}: contains only {names}{more}, but none of {catalog.text}")
        logs = logs_of_topics(source, chosen, lacking, tell)
    except LogSourceError as error:
        raise CommandError(with_hint(error)) from None
    if len(chosen) < len(topics) and not quietly:
        read = TOPICS_TEXT if catalog.is_kafka else catalog.text
        say(f"note: {plural(len(topics) - len(chosen), 'other topic')} left out: read are {read}")
    return logs


def with_hint(error: LogSourceError) -> str:
    """The text of an error, followed by the option that solves the problem."""
    return f"{error} (--topic NAME)" if error.detail.endswith("say which topic it holds") else str(error)


class ToldFindings(Findings):
    """Reports each finding as soon as it occurs. Findings are not kept, so there may be any number of them."""

    def __init__(self, tell: OnFinding) -> None:
        super().__init__()
        self._tell = tell

    def add(self, finding: Finding) -> None:
        """Report the finding."""
        self._tell(finding)

    def has_room(self, severity: object, reason: str, records: int = 0, size: int = 0) -> bool:
        """Always true, because findings are not kept here."""
        return True


def raw_rows(
    log: LogPartition,
    context: Context,
    columns: Collection[str],
    start: int | None = None,
    end: int | None = None,
) -> Iterator[Any]:
    """The raw rows of a log partition. Raises a CommandError if a right or the topic is missing."""
    from kafka_records_engine.log.files.discovery import LogSourceError

    try:
        yield from log.batches(context, columns, start, end)
    except LogSourceError as error:
        raise CommandError(str(error)) from None
