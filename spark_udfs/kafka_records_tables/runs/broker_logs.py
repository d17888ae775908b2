"""Logs on brokers for commands that read files as well: which there are, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_records_tables.runs.catalog import Catalog
from kafka_records_tables.runs.endings import CommandError, UsageError

if TYPE_CHECKING:
    from kafka_records_engine.findings import OnFinding
    from kafka_records_engine.sources.live import BrokerPartition, LiveBrokers


@dataclass(frozen=True)
class Brokers:
    """Where running brokers are, as somebody wrote it."""

    bootstrap: str
    config: Path | None = None
    """A properties file."""

    def live(self) -> LiveBrokers:
        """The source. Raises UsageError for an address that is none, CommandError for a file that cannot be used."""
        from kafka_records_engine.log.discovery import LogSourceError
        from kafka_records_engine.sources.live import LiveBrokers

        try:
            return LiveBrokers(self.bootstrap, self.config)
        except LogSourceError as error:
            raise CommandError(str(error)) from None
        except ValueError as error:
            raise UsageError(f"argument --bootstrap: {error}") from None


def broker_logs(
    live: LiveBrokers, topic: str | None, catalog: Catalog, offsets: tuple[int, int] | None = None
) -> list[BrokerPartition]:
    """The log partitions whose records `catalog` knows, sorted by topic and partition; of each only the `offsets` from
    the first to the last, both included. Raises a CommandError when there are none."""
    from kafka_records_engine.log.discovery import LogSourceError

    try:
        if topic is None:
            topics = [name for name in live.topics() if catalog.folder_of(name) is not None]
            if not topics:
                raise CommandError(f"{live.name}: there is none of {catalog.text} that may be described")
        else:
            topics = [catalog.checked(topic)]
        logs = [log for name in topics for log in live.partitions(name)]
    except LogSourceError as error:
        raise CommandError(str(error)) from None
    if offsets is None:
        return logs
    first, last = offsets
    return [replace(log, start=max(log.start, first), end=min(log.end, last + 1)) for log in logs]


def broker_rows(
    log: BrokerPartition, columns: Sequence[str], on_finding: OnFinding, on_progress: Any = None
) -> Iterator[Any]:
    """The raw rows of a log partition. Raises a CommandError where a right or the topic is missing."""
    from kafka_records_engine.log.discovery import LogSourceError
    from kafka_records_engine.sources.protocol import Context

    context = Context(log.topic, log.partition)
    if on_progress is not None:
        context.progress = on_progress
    told = 0
    try:
        for rows in log.batches(context, columns):
            for finding in context.findings[told:]:
                on_finding(finding)
            told = len(context.findings)
            yield rows
    except LogSourceError as error:
        raise CommandError(str(error)) from None
    context.sum_up()
    for finding in context.findings[told:]:
        on_finding(finding)
