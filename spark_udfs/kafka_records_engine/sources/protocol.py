"""The interface of a source, and how it reports problems.

A source has topics, and a topic has log partitions. A log partition is small and can be pickled. Its reader, which may
run in this process, another process or a Spark task, passes it a `Context` and gets its raw rows. Commands and tables
accept any source; `given.source_of` creates one from what a caller passes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Protocol

from kafka_records_engine.findings import Finding
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.sources.log_facts import LogFacts
from kafka_records_engine.sources.question import Question


class Source(Protocol):
    """A source of records.

    Tables over one topic only call `partitions`, so a user-defined source for them needs no other method. Optional
    abilities of sources are in `abilities`, `known_topics.TellsTopics` and `missing_rights.TellsMissingRights`.

    Engines ask in this order: log starts, then `partitions` (which determines how far records are read), then
    `known_topics`, then log ends. Logs grow in the meantime. With this order, a committed offset is never below a log
    start or beyond a log end just because the two were requested at different times.
    """

    @property
    def name(self) -> str:
        """The name of the source in messages: paths or addresses."""

    def topics(self) -> Sequence[str]:
        """The names of the source's topics, sorted. Raises LogSourceError if the source cannot be read or has no
        topics."""

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """The log partitions of `topic`, sorted. Raises LogSourceError if there are none. Does not read records."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The start and the end of the log of one partition, and other facts about it. Unknown values are None."""

    topic: str
    partition: int
    topic_id: str | None = None
    """The topic id in Kafka's text form, 22 characters."""
    log_start_offset: int | None = None
    """The first offset of the log. Records below it were deleted or never existed."""
    log_end_offset: int | None = None
    """The offset after the last record."""
    high_watermark: int | None = None
    """The offset after the last record that consumers may read."""
    high_watermark_timestamp_ms: int | None = None
    """The time at which the high watermark had this value, in milliseconds since 1970."""
    last_stable_offset: int | None = None
    """The start of the first open transaction, or else the high watermark."""
    place: str | None = None
    """The folder of the log, or the address of the broker that leads the partition."""
    is_cut: bool | None = None
    """Whether, in the last file, bytes that are not a complete batch follow the last record. If so, the log ends there
    or later."""


@dataclass(frozen=True, slots=True)
class LogStarts:
    """Where logs started at a time before records that mention offsets in these logs are read."""

    offsets: Mapping[tuple[str, int], tuple[str | None, int]]
    """By topic and partition: the topic id (None if unknown) and the log start."""
    trouble: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The reason for each existing partition that is missing in `offsets`."""
    asked_ms: int | None = None
    """When brokers were asked, in milliseconds since 1970; None for files."""

    def of(self, ends: LogEnds) -> int | None:
        """The log start of a log whose ends were read later; None if the log did not exist then, because the partition
        is new or the topic was recreated."""
        topic_id, offset = self.offsets.get((ends.topic, ends.partition), (None, None))
        is_other = None not in (topic_id, ends.topic_id) and topic_id != ends.topic_id
        return None if is_other else offset


class LogPartition(Protocol):
    """One partition of a log. All records of a group, of a transactional id or of a share partition are in the same log
    partition.

    It can be pickled. `size` is in bytes, as far as known before reading. Larger partitions are read first, and
    progress is measured by size. `in_memory` means that pickling copies the rows, so a second process saves no time.

    Optional abilities of log partitions are in `abilities`.
    """

    @property
    def topic(self) -> str: ...

    @property
    def partition(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def in_memory(self) -> bool: ...

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """The rows as `pyarrow.RecordBatch`es, in log order, each offset once.

        Only rows with `start` <= offset < `end` are returned, and as little else as possible is read. Without `start`,
        they begin at the log start. With it, records below the log start are returned too if the source still has them,
        as files do. So adjacent ranges together have the same rows as the whole log. Findings are about the bytes that
        had to be read and about gaps in the range. Damage between two ranges belongs to both. If rows after `end` are
        left out, the context gets a hole at `end - 1`, because a marker may follow. `start` and `cleaned_up_to` are
        those of the log, for any range.

        The rows have at least the requested `columns` of `log.reading.raw_rows.RAW_SCHEMA` and of `PLACE_COLUMNS`,
        except columns of the latter that this source does not have. They include control rows.

        `transaction` is `none` for a record outside of transactions, and null if the source does not report it. Any
        other value means that the record is part of a transaction, whose outcome is in the next control row of its
        producer. Without such a row, `committed` and `aborted` are trusted, because some sources omit control rows.
        `unknown` means that the outcome is unknown.
        """


PLACE_COLUMNS: Final = ("file", "position", "base_offset")
"""Optional columns of a source in addition to raw rows: the place of a record's batch, so that a finding about the
record can name the byte. `file` is a dictionary of strings; `position` and `base_offset` are int64 (the latter is also
a raw-row column)."""


@dataclass(slots=True)
class Counts:
    """Counts of what was read, and of irregularities that were accepted."""

    partitions: int = 0
    files: int = 0
    bytes: int = 0
    records: int = 0
    markers: int = 0
    """The number of control records that end a transaction."""
    below_log_start: int = 0
    """The number of records below the log start that files still contain. They are left out."""
    outside: int = 0
    """The number of records and markers that were read although they are outside the requested range of offsets."""
    bytes_left: int = 0
    """The number of bytes after keys and values, which Kafka ignores. `with_bytes_left` is the number of decoded
    records with such bytes."""
    with_bytes_left: int = 0
    leniencies: Counter[str] = field(default_factory=Counter)
    """By name, the number of other irregularities in decoded records that are accepted only because Kafka accepts
    them."""
    first_timestamp_ms: int | None = None
    """When the first record of a log was written, in milliseconds since 1970: the earliest such time of all logs. None
    if no table requested the times of records, or no record has one."""
    last_timestamp_ms: int | None = None
    """The latest time of a record that was read, in milliseconds since 1970; None in the same cases."""
    moments: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The first and the last time at which brokers were asked, in milliseconds since 1970; empty for stored data.

    Keys are `log_starts`; `records` for the ends of the logs whose records are read; `answers` for coordinators;
    `topics` for topic ids and partition counts; and `log_ends`."""

    def add(self, other: Counts) -> None:
        """Add the counts of another task."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.leniencies.update(other.leniencies)
        self.note_times(other.first_timestamp_ms, other.last_timestamp_ms)
        self.note_moments(other.moments)

    def widen(self, other: Counts) -> None:
        """Replace each number with the one in `other` if that is larger. For counts of the same rows."""
        for name in _SUMS:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.leniencies |= other.leniencies
        self.note_times(other.first_timestamp_ms, other.last_timestamp_ms)
        self.note_moments(other.moments)

    def note_moments(self, moments: Mapping[str, tuple[int, int]]) -> None:
        """Add times at which brokers were asked."""
        for name, (first, last) in moments.items():
            known_first, known_last = self.moments.get(name, (first, last))
            self.moments[name] = min(first, known_first), max(last, known_last)

    def note_moment(self, name: str, at_ms: int | None) -> None:
        """Add a time at which brokers were asked, if it is known."""
        if at_ms is not None:
            self.note_moments({name: (at_ms, at_ms)})

    def note_times(self, first: int | None, last: int | None) -> None:
        """Use the given first time if it is earlier, and the given last time if it is later."""
        if first is not None:
            self.first_timestamp_ms = min(first, first if self.first_timestamp_ms is None else self.first_timestamp_ms)
        if last is not None:
            self.last_timestamp_ms = max(last, last if self.last_timestamp_ms is None else self.last_timestamp_ms)


_SUMS: Final = tuple(each.name for each in fields(Counts) if each.type == "int")
"""The numbers in Counts that add up."""


def _no_progress(done: int) -> None:
    """Do nothing, for readers whose progress is not shown."""


@dataclass(frozen=True, slots=True)
class Context:
    """The context for reading one log partition.

    It combines four objects: the question (`question`), facts about the log (`log`), and the results of reading
    (`findings`, `counts`). The question never changes. All readers of the log share the other objects, so a copy with
    its own findings (`apart`) shares all facts with the original. There is one context per log partition, and it never
    leaves its process.
    """

    topic: str = ""
    partition: int = 0
    question: Question = field(default_factory=Question)
    log: LogFacts = field(default_factory=LogFacts)
    findings: Findings = field(default_factory=Findings)
    counts: Counts = field(default_factory=Counts)
    history: bool = True
    """Whether to return all records that were ever in the log. If not, records that the log had lost by the requested
    time are left out; only snapshots have such records."""
    progress: Callable[[int], None] = _no_progress
    """Called with the number of bytes of the partition read so far."""
    shared: dict[Any, Any] | None = None
    """Intermediate results shared by tables that share one reading of the log; None for a single table."""

    def report(self, finding: Finding) -> None:
        """Add a finding, or just count it if there are many like it."""
        self.findings.report(finding)

    def sum_up(self) -> None:
        """Report how many more findings of each kind there were. Call this after the last row."""
        self.findings.sum_up(self.topic, self.partition)

    def apart(self) -> Context:
        """A context for the same reading, with separate findings and counts."""
        return replace(self, findings=Findings(), counts=Counts())
