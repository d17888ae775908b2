"""Explains the tombstones of `__consumer_offsets`: the cause of each, and the evidence in the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.findings import OTHER_RETENTION, Finding
from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.coordinator.groups.group_log import READS as READS_OF_GROUPS
from kafka_records_tables.coordinator.groups.group_log import GroupLog
from kafka_records_tables.coordinator.groups.group_model import GROUP, MEMBER, ROLES
from kafka_records_tables.coordinator.groups.groups_before import GroupsBefore
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.live_offsets import FARTHEST_MS, LiveOffsets
from kafka_records_tables.coordinator.records.decoded_records import (
    DecodedRecords,
    are_of_types,
    filter_record_types,
    numbers_of,
)
from kafka_records_tables.coordinator.records.named_records import Event
from kafka_records_tables.tables.tombstones.bulk_deletions import BulkDeletion, BulkDeletions
from kafka_records_tables.tables.tombstones.member_causes import MORE, Verdict, of_member, said
from kafka_records_tables.tables.tombstones.tombstone_writes import Boundaries, Write, writes
from kafka_records_tables.tables.words import causes
from kafka_records_tables.tables.words.causes import Evidence, Explained

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.coordinator.groups.group_states import Transition

READS: Final = tuple(dict.fromkeys((*READS_OF_GROUPS, "leader_epoch", "producer_id", "transaction")))
"""The columns of raw rows that are needed. Without `timestamp_ms` and `base_offset`, fewer causes can be determined."""

_ROWS: Final = 524_288
"""The number of rows to process together."""

_UNCOMMITTED: Final = "the offset that it commits is unknown"
_NAMELESS: Final = "left out: its key is unknown"
_UNREAD: Final = "nothing is known about its group"

_ALONE: Final = said(causes.OF_GROUP_ENDS, causes.LOW, possible=(causes.RECORD_UNUSED,))
"""The verdict on a record of a group that is not about a member and was removed without the group."""

_LAST_OLD_TYPE: Final = 2
_LAST_OLD_COMMIT: Final = 3
"""The last record type, and the last version of commits, that brokers before Kafka 4.0 wrote."""

_SWEEP_MS: Final = 60_000
"""A coordinator before Kafka 4.0 writes one batch per group. So offsets that disappear within this time of each other
may have been removed together."""

_MINUTE_MS: Final = 60_000
"""Brokers count their retention in minutes."""

_STEP_MS: Final = 20_000
"""The maximum time that one record may add, because a clock jump shows nothing about what a coordinator did in
between."""


_ENDS: Final = frozenset(name for name, role in ROLES.items() if role == GROUP)
"""The records whose tombstones end a group."""

_NO_GROUPS: Final[frozenset[str]] = frozenset()


@dataclass(slots=True)
class _Case:
    """A write that waits until it is known what remains."""

    write: Write
    passed_ms: int
    """How much time had passed in the log."""
    is_last: bool
    """Whether the log ends with it, so that rows may show only part of its batch."""
    told: dict[int, Verdict] = field(default_factory=dict)
    """The verdicts on tombstones, by offset. Other verdicts are in `BulkDeletions`."""

    def explained(self, others: BulkDeletion) -> list[Explained]:
        """The verdicts."""
        begin, told = self.write.offset, self.told
        every = []
        for event in self.write.tombstones:
            at, written, record, key = event.offset, event.timestamp_ms, event.record, event.key
            found = told.get(at) if told else None
            if found is None:
                found = others.said(event)
            if self.is_last:
                found = _if_more_follows(found, event)
            cause, possible, confidence, evidence = found
            every.append(Explained(at, written, record, key, begin, cause, possible, confidence, evidence))
        return every


class TombstoneExplainer:
    """Explains the tombstones of one log partition as its rows arrive. Memory grows with the existing offsets, groups
    and members."""

    def __init__(
        self,
        schemas: Mapping[int, RecordSchema],
        context: Context,
        *,
        retention_ms: int,
        session_ms: int,
        is_told_of_groups: bool = False,
    ) -> None:
        """`retention_ms` is `offsets.retention.minutes`; `session_ms` is the session timeout of members whose records
        do not contain one. If the confidence is high, the cause does not depend on them. Undecodable records are
        reported. With `is_told_of_groups`, the events of groups are not computed here but passed to `tell`."""
        self._schemas = schemas
        self._context = context
        self._retention_ms = retention_ms
        self._session_ms = session_ms
        self._types = numbers_of(schemas, COMMITS)
        self._live = LiveOffsets()
        self._bulk = BulkDeletions(retention_ms)
        self._log = None if is_told_of_groups else GroupLog(schemas, more=[MORE])
        self._groups = GroupsBefore()
        self._told_up_to = 0
        self._boundaries = Boundaries()
        self._came: list[pa.RecordBatch] = []
        self._count = 0
        self._whole_up_to = 0
        self._is_whole = True
        self._new_from: int | None = None
        """The offset of the first record that only Kafka 4.0 and later write; None if there was none so far."""
        self._clock_ms: int | None = None
        """The latest time of all records."""
        self._passed_ms = 0
        self._longest_ms = retention_ms
        """The longest retention with which all offsets that have certainly expired were due at that time."""
        self._cases: deque[_Case] = deque()
        self._begun = 0
        """The number of cases so far."""

    def take(self, batch: pa.RecordBatch) -> Iterator[Explained]:
        """Add the raw rows that follow, with READS. Returns the tombstones explained by now. Each waits for the records
        of the next minute."""
        rows = filter_record_types(batch, list(self._schemas), self._context, _NAMELESS)
        if rows.num_rows:
            self._came.append(rows.select([name for name in (*READS, "file", "position") if name in rows.schema.names]))
            self._count += rows.num_rows
        if self._count > _ROWS:
            yield from self.taken()

    def tell(self, transitions: Iterable[Transition], up_to: int) -> None:
        """Pass the next events of groups: those of all records below the offset `up_to`. Their values have MORE. Rows
        from `up_to` are not used yet."""
        self._groups.add(transitions)
        self._told_up_to = up_to

    def taken(self) -> Iterator[Explained]:
        """Process the rows added so far. Returns the tombstones explained by now."""
        yield from self._go_on(is_end=False)

    def rest(self) -> Iterator[Explained]:
        """The remaining tombstones at the end of the log. The log may continue, so existing offsets may still be
        deleted in the same write, and more of the last write may follow."""
        yield from self._go_on(is_end=True)
        yield from self._explained(len(self._cases), None)
        self._compare_retention()

    def _go_on(self, *, is_end: bool) -> Iterator[Explained]:
        complete = self._boundaries.complete(self._known(), is_end=is_end)
        if complete is None:
            return
        rows, starts, is_whole = complete
        self._note_gaps(rows)
        self._note_broker(rows)
        commits = CommitLot(_commits(rows, self._types), self._schemas)
        if self._log is not None:
            lot = self._log.add(rows, commits)
            lot.report(self._context, _UNREAD)
            self._groups.add(lot.transitions)
        found = DecodedRecords(commits.rows, self._schemas, self._context.shared)
        found.report(self._context, lambda row: _UNCOMMITTED, ~found.is_tombstone)
        self._live.take(rows, found, commits, self._context)
        offsets, passed = rows.column("offset").to_numpy(), self._passed(rows)
        every = writes(rows, starts, is_whole, self._schemas, self._context, _NAMELESS)
        begins = np.array([write.offset for write in every], np.int64)
        moments = _Moments(begins, passed[np.searchsorted(offsets, begins)], int(offsets[-1]) + 1, self._passed_ms)
        last = int(offsets[starts[-1]])
        for write, passed_ms in zip(every, moments.passed_ms.tolist(), strict=True):
            self._groups.up_to(write.offset)
            self._live.up_to(write.offset)
            self._open(write, passed_ms, is_last=is_end and write.offset >= last)
            if self._bulk.is_full:
                yield from self._finished(moments)
        self._groups.up_to(moments.end)
        self._live.up_to(moments.end)
        yield from self._finished(moments)
        self._bulk.note_gone(self._live)
        self._live.forget()

    def _known(self) -> list[pa.RecordBatch]:
        """The rows so far for which everything about their groups is known."""
        came, self._came, self._count = self._came, [], 0
        if self._log is not None:
            return came
        known = []
        for batch in came:
            count = int(np.searchsorted(batch.column("offset").to_numpy(), self._told_up_to))
            if count:
                known.append(batch.slice(0, count))
            if count < batch.num_rows:
                self._came.append(batch.slice(count))
                self._count += batch.num_rows - count
        return known

    def _note_gaps(self, rows: pa.RecordBatch) -> None:
        """Note up to where nothing is missing."""
        if not self._is_whole:
            return
        offsets = rows.column("offset").to_numpy()
        gaps = np.flatnonzero(np.diff(offsets, prepend=self._whole_up_to - 1) != 1)
        self._is_whole = not len(gaps)
        whole = len(offsets) if self._is_whole else int(gaps[0])
        self._whole_up_to = int(offsets[whole - 1]) + 1 if whole else self._whole_up_to

    def _note_broker(self, rows: pa.RecordBatch) -> None:
        if self._new_from is not None:
            return
        is_record = rows.column("control").is_null().to_numpy(zero_copy_only=False)
        numbers, _ = prefix_column(rows.column("key"))
        versions, has_version = prefix_column(rows.column("value"))
        is_commit = are_of_types(numbers, self._types) & has_version
        new = np.flatnonzero(is_record & ((numbers > _LAST_OLD_TYPE) | (is_commit & (versions > _LAST_OLD_COMMIT))))
        self._new_from = rows.column("offset")[int(new[0])].as_py() if len(new) else None

    def _passed(self, rows: pa.RecordBatch) -> INT64:
        """How much time has passed in the log up to each row. A single row adds at most _STEP_MS."""
        if "timestamp_ms" not in rows.schema.names:
            return np.zeros(rows.num_rows, np.int64)
        told = rows.column("timestamp_ms").fill_null(0).to_numpy()
        clock = np.maximum.accumulate(np.clip(told, 0, FARTHEST_MS))
        if self._clock_ms is not None:
            clock = np.maximum(clock, self._clock_ms)
        steps = np.diff(clock, prepend=clock[0] if self._clock_ms is None else self._clock_ms)
        passed: INT64 = self._passed_ms + np.cumsum(np.minimum(steps, _STEP_MS))
        self._clock_ms, self._passed_ms = int(clock[-1]), int(passed[-1])
        return passed

    def _finished(self, moments: _Moments) -> Iterator[Explained]:
        """The cases whose waiting time is over."""
        self._bulk.look(self._live)
        over = moments.over(np.array([case.passed_ms for case in self._cases], np.int64) + _SWEEP_MS)
        yield from self._explained(len(over), over)

    def _explained(self, count: int, over: INT64 | None) -> Iterator[Explained]:
        """Explain the first cases: either after the time in which others may be removed with them, up to the positions
        `over`, or before that."""
        cases = [self._cases.popleft() for _ in range(count)]
        first = self._begun - count - len(self._cases)
        found, longest = self._bulk.said(first, [case.write.is_whole for case in cases], self._live, over)
        for case, others, longest_ms in zip(cases, found, longest.tolist(), strict=True):
            if not case.is_last:
                self._longest_ms = min(self._longest_ms, longest_ms)
            yield from case.explained(others)

    def _compare_retention(self) -> None:
        """Report if the log shows a shorter retention than the given one."""
        if self._longest_ms < self._retention_ms:
            context, minutes = self._context, self._longest_ms / _MINUTE_MS
            assumed = self._retention_ms / _MINUTE_MS
            what = (
                f"an offset expired {minutes:.1f} minutes after its retention began, not after the {assumed:g} minutes "
                "of --retention (retention in Python and Spark)"
            )
            mend = f"results that depend on it are wrong: pass the brokers' value (at most {int(minutes)}m)"
            context.report(Finding("note", OTHER_RETENTION, what, mend, context.topic, context.partition))

    def _open(self, write: Write, passed_ms: int, *, is_last: bool) -> None:
        case = _Case(write, passed_ms, is_last)
        swept: Sequence[Event] = write.tombstones
        goes = _NO_GROUPS
        if not all(event.record in COMMITS for event in swept):
            swept, goes = self._explain_at_once(case)
        if swept:
            begin = write.offset
            self._bulk.add(
                self._begun,
                write,
                swept,
                goes,
                self._groups,
                self._live,
                is_log_whole=begin < self._whole_up_to,
                is_new_broker=self._new_from is not None and self._new_from <= begin,
                deletions=self._context.log.topics.deletions,
            )
        self._cases.append(case)
        self._begun += 1

    def _explain_at_once(self, case: _Case) -> tuple[Sequence[Event], frozenset[str]]:
        """Explain the tombstones that do not wait for anything. Returns the others, and the groups that end without
        being replaced."""
        write = case.write
        ended = _ended(write)
        of_groups: dict[str, list[Event]] = {group_id: [] for group_id in ended}
        for event in write.records if ended else ():
            if event.group_id in ended:
                of_groups[event.group_id].append(event)
        replaced = {
            group_id: _how_replaced(of_groups[group_id], last, is_whole=write.is_whole)
            for group_id, last in ended.items()
        }
        swept = []
        for event in write.tombstones:
            found = None
            if event.record not in COMMITS:
                found = replaced.get(event.group_id)
                if event.group_id not in ended:
                    found = of_member(event, write, self._groups, self._session_ms) or _ALONE
            if found is None:
                swept.append(event)
            else:
                case.told[event.offset] = found
        return swept, frozenset(group_id for group_id, found in replaced.items() if found is None)


class _Moments(NamedTuple):
    """When the writes among some rows began."""

    begins: INT64
    passed_ms: INT64
    """How much time had passed in the log."""
    end: int
    """The offset after the rows."""
    end_ms: int
    """How much time had passed at the end of the rows."""

    def over(self, until_ms: INT64) -> INT64:
        """For each of the ascending times that the rows cover, the start of the first write after it, or the end of the
        rows."""
        at = np.searchsorted(self.passed_ms, until_ms, side="right")
        found: INT64 = np.append(self.begins, self.end)[at]
        return found[(at < len(self.begins)) | (until_ms < self.end_ms)]


def _if_more_follows(found: Verdict, event: Event) -> Verdict:
    """The verdict on a tombstone if its write may have more records than those read so far."""
    role = ROLES.get(event.record)
    if event.record in COMMITS:
        more: tuple[str, ...] = (causes.GROUP_DELETED, causes.OFFSET_DELETED, causes.TOPIC_DELETED)
    elif role == GROUP:
        more = (causes.GROUP_DELETED, causes.CONVERSION, causes.REPLACED_EMPTY_GROUP)
    else:
        more = (causes.MEMBER_REPLACED, *causes.OF_GROUP_ENDS)
    confidence = causes.MEDIUM if found.confidence == causes.HIGH else found.confidence
    return said(found.cause, confidence, found.evidence, (*found.possible, *more))


def _ended(write: Write) -> dict[str, Event]:
    """By group, the last tombstone that ends it."""
    return {event.group_id: event for event in write.tombstones if event.record in _ENDS}


def _how_replaced(records: list[Event], last: Event, *, is_whole: bool) -> Verdict | None:
    """How a group was replaced by one of another kind in the write that ends it; None if it was not. `records` are the
    write's records about the group."""
    made = [event for event in records if event.value is not None]
    if not any(event.offset > last.offset for event in made):
        return None
    members = {event.member_id for event in made if event.record == "ConsumerGroupMemberMetadata"}
    left = [event for event in records if event.is_tombstone and ROLES.get(event.record) == MEMBER]
    shown = (Evidence("other_kind", next(event.offset for event in made if event.offset > last.offset)),)
    if not is_whole:
        return said((causes.CONVERSION, causes.REPLACED_EMPTY_GROUP), causes.LOW, shown)
    has_members = len(members) > 1 or bool(left)
    return said((causes.CONVERSION if has_members else causes.REPLACED_EMPTY_GROUP,), causes.HIGH, shown)


def _commits(rows: pa.RecordBatch, types: tuple[int, ...]) -> pa.RecordBatch:
    """The commits and tombstones of offsets among raw rows."""
    numbers, _ = prefix_column(rows.column("key"))
    is_commit = are_of_types(numbers, types)
    is_commit &= rows.column("control").is_null().to_numpy(zero_copy_only=False)
    names = ("offset", "timestamp_ms", "base_offset", "key", "value", "control", "file", "position")
    return rows.select([name for name in names if name in rows.schema.names]).filter(pa.array(is_commit))
