"""What a source is, and how it tells what it meets.

A source is a sequence of log partitions. A log partition is small and can be pickled; whoever reads it, in this
process, in another one or in a Spark task, hands it a `Context` and gets its raw rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Protocol

from kafka_records_engine.findings import Finding, Severity


class Source(Protocol):
    """Somewhere to read from."""

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """What there is to read of `topic`. Raises LogSourceError when nothing of it is there."""


class LogPartition(Protocol):
    """One partition of a log: all records of a group, of a transactional id, of a share partition are in one.

    Picklable. `size` is in bytes, as far as it is known before reading; it decides what is read first and measures
    progress. `in_memory` says that to pickle it is to copy the rows, so that another process is no help.
    """

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def in_memory(self) -> bool: ...

    def batches(self, context: Context, columns: Collection[str]) -> Iterator[Any]:
        """The rows, in the order of the log, each offset once, as `pyarrow.RecordBatch`es.

        They have at least the `columns` that were asked for, of `kafka_records_engine.log.raw_rows.RAW_SCHEMA` and of
        `PLACE_COLUMNS`; those of the latter that this source does not have are absent. Control rows are among them.

        `transaction` says `none` for a record outside of transactions and null where the source does not tell; every
        other word means that the record is part of one. How it ended is told by the control row behind it. `committed`
        and `aborted` are believed where there is no such row, since some sources leave control rows out; `unknown`
        means that nobody can tell.
        """


PLACE_COLUMNS: Final = ("file", "position", "base_offset")
"""Columns a source may have beside those of raw rows: where the batch of a record stands, so that whatever is found
about it names the byte. `file` is a dictionary of texts, `position` and `base_offset` int64 (the latter is one of raw
rows too)."""


@dataclass(slots=True)
class Counts:
    """How much was read, and what was let pass."""

    partitions: int = 0
    files: int = 0
    bytes: int = 0
    records: int = 0
    markers: int = 0
    """Control records that end a transaction."""
    below_log_start: int = 0
    """Records that the log has deleted although files still hold them; they are left out."""
    bytes_left: int = 0
    """Bytes behind keys and values, which Kafka leaves alone, in `with_bytes_left` of the records that were decoded."""
    with_bytes_left: int = 0
    leniencies: Counter[str] = field(default_factory=Counter)
    """What else was accepted in them because Kafka accepts it, by name."""

    def add(self, other: Counts) -> None:
        """Add what another task counted."""
        for each in fields(self):
            if each.name != "leniencies":
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.leniencies.update(other.leniencies)


MOST_OF_A_KIND: Final = 1000
"""Findings of one severity and reason that are kept for one log partition."""


@dataclass(slots=True)
class FindingCount:
    """How many findings there are of one kind, and what was not read because of those that are not kept."""

    count: int = 0
    records: int = 0
    bytes: int = 0


def _no_progress(done: int) -> None:
    """For readers that nobody watches."""


@dataclass(slots=True)
class Context:
    """What the reader of one log partition is told, and where it puts what it finds.

    One object per log partition; it never crosses a process while it is in use.
    """

    topic: str = ""
    partition: int = 0
    as_of_ms: int | None = None
    """Answer as at this moment (milliseconds since 1970): the log up to the first record with a later timestamp."""
    untold: str | None = None
    """What a record counts as whose source does not tell of transactions: `committed`, or None: that is refused."""
    groups: tuple[str, ...] | None = None
    """Only what is about these groups (or transactional ids); None for all."""
    package: str = "kafka_records"
    """The generated package whose schemas say what the records hold."""
    progress: Callable[[int], None] = _no_progress
    """Called with the bytes of the partition that were read so far."""
    findings: list[Finding] = field(default_factory=list)
    finding_counts: dict[tuple[Severity, str], FindingCount] = field(default_factory=dict)
    """How many findings there are of each kind: what is one too many (MOST_OF_A_KIND) is counted only."""
    counts: Counts = field(default_factory=Counts)
    holes: list[int] = field(default_factory=list)
    """Offsets behind which something could not be read, ascending: a marker may have stood there."""
    log_start: int | None = None
    """The offset at which the log starts; None when the source does not know."""
    whole_from: int | None = None
    """The offset behind the last gap in the offsets that were read so far; None where there is none."""
    cleaned_up_to: int | None = None
    """The offset below which a cleaner may have removed records; None when the source does not know."""

    def report(self, finding: Finding) -> None:
        """Add a finding, or count it only where there are many like it."""
        if self.has_room(finding.severity, finding.reason, finding.records, finding.bytes):
            self.add_finding(finding)

    def add_finding(self, finding: Finding) -> None:
        """Add a finding for which there is room (`has_room`)."""
        self.findings.append(finding)

    def has_room(self, severity: Severity, reason: str, records: int = 0, size: int = 0) -> bool:
        """Whether there is room for one more finding of this severity and reason. Where there is none, it is counted
        with the `records` and bytes that are not read because of it, and need not be made: hostile bytes hold
        millions."""
        same = self.finding_counts.setdefault((severity, reason), FindingCount())
        same.count += 1
        if same.count <= MOST_OF_A_KIND:
            return True
        same.records += records
        same.bytes += size
        return False

    def sum_up(self) -> None:
        """Report how many more findings of each kind there were, once there are no more rows."""
        for (severity, reason), same in self.finding_counts.items():
            more = same.count - MOST_OF_A_KIND
            if more > 0:
                what = f"{more} more of the kind {reason}"
                consequence = "counted and not listed one by one"
                summary = Finding(severity, reason, what, consequence, self.topic, self.partition)
                self.findings.append(replace(summary, records=same.records, bytes=same.bytes))

    def add_hole(self, after: int) -> None:
        """Say that something unreadable lies behind the record at offset `after`, before the rows behind it come."""
        self.holes.append(after)
