"""What a source is, and how it reports what it meets.

A source has topics, and a topic has log partitions. A log partition is small and can be pickled. Its reader, which may
run in this process, in another one or in a Spark task, passes it a `Context` and gets its raw rows. Commands and tables
take any source; `given.source_of` makes one of what a caller names.
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
    """Somewhere to read from.

    Tables over one topic only call `partitions`, so a user-defined source for them needs no other method. Optional
    abilities of sources are in `abilities`, `known_topics.TellsTopics` and `missing_rights.TellsMissingRights`.

    Engines ask in this order: log starts, then `partitions` (which says up to where records are read), then
    `known_topics`, then log ends. Logs move meanwhile, and a committed offset is then never below a start or beyond an
    end that was asked for at another moment.
    """

    @property
    def name(self) -> str:
        """Its name in messages: paths or addresses."""

    def topics(self) -> Sequence[str]:
        """The names of the topics that it holds, sorted. Raises LogSourceError if it cannot be read or holds none."""

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """The log partitions of `topic`, sorted. Raises LogSourceError if there is none. Nothing is read yet."""


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The start and the ends of the log of one partition, and what belongs to it. What a source cannot tell is None."""

    topic: str
    partition: int
    topic_id: str | None = None
    """As Kafka writes it, 22 characters."""
    log_start_offset: int | None = None
    """Records below it are deleted, or were never there."""
    log_end_offset: int | None = None
    """Behind the last record."""
    high_watermark: int | None = None
    """The offset after the last record that consumers may read."""
    high_watermark_timestamp_ms: int | None = None
    """When the high watermark had this value, in milliseconds since 1970."""
    last_stable_offset: int | None = None
    """Where the first transaction begins that is still open, or else the high watermark."""
    place: str | None = None
    """A folder, or the address of the broker that leads the partition."""
    is_cut: bool | None = None
    """Whether the last file goes on after the last record with bytes that are no whole batch: the log ends there, or
    later."""


@dataclass(frozen=True, slots=True)
class LogStarts:
    """Where logs started at one moment, which is before records are read that name offsets of these logs."""

    offsets: Mapping[tuple[str, int], tuple[str | None, int]]
    """By topic and partition: the id of the topic, None if the source does not tell it, and the log start."""
    trouble: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Why an existing partition is not among them."""
    asked_ms: int | None = None
    """When brokers were asked, in milliseconds since 1970; None for files."""

    def of(self, ends: LogEnds) -> int | None:
        """The log start of the log whose ends are known by now; None if the log did not exist then: the partition is
        new, or the topic was recreated."""
        topic_id, offset = self.offsets.get((ends.topic, ends.partition), (None, None))
        is_other = None not in (topic_id, ends.topic_id) and topic_id != ends.topic_id
        return None if is_other else offset


class LogPartition(Protocol):
    """One partition of a log: all records of a group, of a transactional id, of a share partition are in one.

    Picklable. `size` is in bytes, as far as it is known before reading; bigger partitions are read first, and progress
    is measured by it. `in_memory` says that pickling copies the rows, so that a second process saves no time.

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
        """The rows, in the order of the log, each offset once, as `pyarrow.RecordBatch`es.

        Only rows with `start` <= offset < `end` are returned, and as little else as possible is read. Without `start`
        they begin at the log start; with one, records below the log start are returned too if the source still has
        them, as files do. So the rows of adjoining ranges are those of the whole. Findings are about what had to be
        read, and about gaps that concern the range; damage between two ranges belongs to both. If `end` leaves
        something out, the context gets a hole at `end - 1`, as a marker may follow. `start` and `cleaned_up_to` are
        those of the log, for any range.

        They have at least the `columns` that were asked for, of `log.reading.raw_rows.RAW_SCHEMA` and of
        `PLACE_COLUMNS`, except columns of the latter that this source does not have. Control rows are among them.

        `transaction` is `none` for a record outside of transactions, and null if the source does not tell. Every other
        word means that the record is part of a transaction. The next control row of its producer has the outcome.
        Without such a row `committed` and `aborted` are believed, since some sources leave control rows out. `unknown`
        means that the outcome is unknown.
        """


PLACE_COLUMNS: Final = ("file", "position", "base_offset")
"""Columns that a source may have beside those of raw rows: the place of the batch of a record, so that a finding about
the record names the byte. `file` is a dictionary of texts, `position` and `base_offset` int64 (the latter is one of raw
rows too)."""


@dataclass(slots=True)
class Counts:
    """How much was read, and which irregularities were accepted."""

    partitions: int = 0
    files: int = 0
    bytes: int = 0
    records: int = 0
    markers: int = 0
    """Control records that end a transaction."""
    below_log_start: int = 0
    """Records below the log start, which files still hold; they are left out."""
    outside: int = 0
    """Records and markers that were read and are not in the range of offsets that was asked for."""
    bytes_left: int = 0
    """Bytes after keys and values, which Kafka ignores, in the `with_bytes_left` decoded records that have some."""
    with_bytes_left: int = 0
    leniencies: Counter[str] = field(default_factory=Counter)
    """By name, what else was accepted in these records because Kafka accepts it."""
    first_timestamp_ms: int | None = None
    """When the first record of a log was written, in milliseconds since 1970: the earliest of all logs that were read.
    None if no table asked for the times of records, or no record has one."""
    last_timestamp_ms: int | None = None
    """The latest time of a record that was read, likewise."""
    moments: dict[str, tuple[int, int]] = field(default_factory=dict)
    """When brokers were asked, the first time and the last, in milliseconds since 1970: for `log_starts`; for the ends
    of the logs whose `records` are read; for the `answers` of coordinators; for `topics`, their ids and numbers of
    partitions; for `log_ends`. Empty for what is stored."""

    def add(self, other: Counts) -> None:
        """Add the counts of another task."""
        for name in _SUMS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.leniencies.update(other.leniencies)
        self.note_times(other.first_timestamp_ms, other.last_timestamp_ms)
        self.note_moments(other.moments)

    def widen(self, other: Counts) -> None:
        """Take each number of `other` that is larger: both were counted where the same was read."""
        for name in _SUMS:
            setattr(self, name, max(getattr(self, name), getattr(other, name)))
        self.leniencies |= other.leniencies
        self.note_times(other.first_timestamp_ms, other.last_timestamp_ms)
        self.note_moments(other.moments)

    def note_moments(self, moments: Mapping[str, tuple[int, int]]) -> None:
        """Take in when brokers were asked for more."""
        for name, (first, last) in moments.items():
            known_first, known_last = self.moments.get(name, (first, last))
            self.moments[name] = min(first, known_first), max(last, known_last)

    def note_moment(self, name: str, at_ms: int | None) -> None:
        """The same for one moment, if it is known."""
        if at_ms is not None:
            self.note_moments({name: (at_ms, at_ms)})

    def note_times(self, first: int | None, last: int | None) -> None:
        """Take the time of another first record if it is earlier, and that of a last one if it is later."""
        if first is not None:
            self.first_timestamp_ms = min(first, first if self.first_timestamp_ms is None else self.first_timestamp_ms)
        if last is not None:
            self.last_timestamp_ms = max(last, last if self.last_timestamp_ms is None else self.last_timestamp_ms)


_SUMS: Final = tuple(each.name for each in fields(Counts) if each.type == "int")
"""The numbers of Counts that add up."""


def _no_progress(done: int) -> None:
    """For readers whose progress is not shown."""


@dataclass(frozen=True, slots=True)
class Context:
    """The reading of one log partition: the question, what is known of the log, and what was found.

    It holds values and has none of its own: what is asked (`question`), what is known of the log (`log`), what was
    found (`findings`, `counts`). The question never changes; facts, findings and counts are objects that all who read
    together share, so a copy with other findings (`apart`) misses nothing that the original learns. One object per log
    partition; it never crosses a process.
    """

    topic: str = ""
    partition: int = 0
    question: Question = field(default_factory=Question)
    log: LogFacts = field(default_factory=LogFacts)
    findings: Findings = field(default_factory=Findings)
    counts: Counts = field(default_factory=Counts)
    history: bool = True
    """Whether all records are wanted that ever were in the log. Otherwise those are left out that it had lost by the
    moment that is asked about, which only a snapshot has."""
    progress: Callable[[int], None] = _no_progress
    """Called with the bytes of the partition that were read so far."""
    shared: dict[Any, Any] | None = None
    """For tables that share the reading of the log: the intermediate results that they have in common."""

    def report(self, finding: Finding) -> None:
        """Add a finding, or count it only where there are many like it."""
        self.findings.report(finding)

    def sum_up(self) -> None:
        """Report how many more findings of each kind there were, once there are no more rows."""
        self.findings.sum_up(self.topic, self.partition)

    def apart(self) -> Context:
        """The same reading, with findings and counts of its own."""
        return replace(self, findings=Findings(), counts=Counts())
