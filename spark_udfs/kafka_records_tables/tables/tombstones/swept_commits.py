"""What commits show about bulk deletions: which offsets were removed, whether they were due to expire, and which others
remain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.live_offsets import (
    COMMIT_MS,
    EXPIRE_MS,
    IS_KNOWN,
    IS_LEGACY,
    LOG_OFFSET,
    NO_TIME,
    TOPIC_ID,
)
from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.tombstones.swept_columns import (
    NO_AGE,
    STAYS,
    STAYS_IF_DUE,
    STAYS_IN_TOPIC,
    Swept,
    Watched,
    first,
    shown,
    taken,
)
from kafka_records_tables.tables.tombstones.swept_states import NOTHING, SHOWN

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.offsets.live_offsets import LiveOffsets

_CHECKS_MS: Final = 600_000
"""The default of `offsets.retention.check.interval.ms`, which is rarely changed."""

_LATE_CLEAN_UP_MS: Final = 1_000
"""How late a clean-up may write: it checks the groups of a partition one after another. A member's timer is less late
(`member_causes`)."""

_MOST_STAYING: Final = 5
"""The maximum number of offsets to watch to see whether they remain. One that remains is enough."""

_ID_BITS: Final = 33
"""Topic id numbers are below 2 to this power."""

Kept = tuple[Collection[str], Mapping[Any, int]]
"""The offsets of a group that no clean-up removes: those for some topics, and for some topics and partitions."""


def found_in_commits(
    swept: Swept,
    group_ids: list[str],
    tombstones: INT64,
    kept: Mapping[int, Kept],
    live: LiveOffsets,
    retention_ms: int,
) -> tuple[Swept, Watched]:
    """The groups with all facts, and the offsets to watch. `tombstones` has the group index and the log offset of each
    tombstone of an offset. `kept` is by group index."""
    return _Commits(swept, group_ids, tombstones, kept, live, retention_ms).found()


class _Offsets(NamedTuple):
    """Offsets of groups, in arrays with one element per offset."""

    row: INT64
    """The index in `Swept`."""
    number: INT64
    commits: INT64
    """The columns of their commits."""

    def chosen(self, which: FLAGS | INT64) -> _Offsets:
        return _Offsets(*(each[which] for each in self))


class _Commits:
    """Compares commits, using the fact that a coordinator checks all offsets of a group at once."""

    def __init__(
        self,
        swept: Swept,
        group_ids: list[str],
        tombstones: INT64,
        kept: Mapping[int, Kept],
        live: LiveOffsets,
        retention_ms: int,
    ) -> None:
        self._lot, self._keys = live.lot, live.keys
        self._kept, self._retention_ms = kept, retention_ms
        row, log_offset = tombstones
        self._row, self._number = row, self._lot.numbers(log_offset)
        """The removed offsets, whether or not they existed."""
        is_there, commits = self._lot.commits(self._number, swept.begin[row])
        self._gone = _Offsets(row[is_there], self._number[is_there], commits)
        self._of_case = np.sort(swept.case[self._gone.row] * len(self._keys) + self._gone.number)
        self._group = np.array([self._lot.groups.get(each, -1) for each in group_ids], np.int64)
        self._has_kept = np.zeros(len(group_ids), np.bool_)
        self._has_kept[list(kept)] = True
        self._swept = swept
        self._swept = self._with_remaining(swept)
        # In an incomplete log, a cleaner may have left removed offsets.
        is_whole = swept.is_log_whole[self._gone.row] | (commits[:, IS_LEGACY] == 0)
        # One reason against a clean-up is enough.
        self._is_compared = (self._swept.never_word == NOTHING) & (swept.now_ms != NO_TIME)
        is_used = (commits[:, IS_KNOWN] * is_whole * self._is_compared[self._gone.row]) != 0
        self._removed = self._gone.chosen(is_used)

    def found(self) -> tuple[Swept, Watched]:
        """The groups, and the offsets to watch."""
        swept = self._compared()
        parts = [*self._staying(swept), self._staying_in_topics(swept)]
        kinds = [np.full(len(row), kind) for kind, (row, _) in zip(_KINDS, parts, strict=True)]
        row, number = (np.concatenate(each) for each in zip(*parts, strict=True))
        _, commits = self._lot.commits(number, swept.begin[row])
        is_gone = np.zeros(len(row), np.int64)
        return swept, Watched(row, np.concatenate(kinds), number, commits[:, LOG_OFFSET], is_gone)

    def _with_remaining(self, swept: Swept) -> Swept:
        """The groups, with what follows from whether they have other offsets."""
        may_end = swept.may_end_unseen != 0
        is_last = may_end & ~self._have_any(swept, may_end, self._are_not_gone)
        has_end, has_offsets = swept.end != NOTHING, swept.has_offsets != 0
        are_there = has_offsets | self._have_any(swept, has_end & ~has_offsets, _any)
        is_open = has_end & are_there & (swept.waits_at != NOTHING)
        # A waiting offset of the write is better evidence.
        is_open &= swept.never_word != SHOWN.index("open_transaction")
        pending = shown("open_transaction", np.where(is_open, swept.waits_at, NOTHING)).otherwise(swept.never)
        is_idle = (swept.is_empty != 0) & ~are_there
        return swept._replace(
            may_end_unseen=is_last, is_empty=is_idle, never_word=pending.word, never_at=pending.log_offset
        )

    def _have_any(self, swept: Swept, which: FLAGS, allows: Callable[[INT64, INT64], FLAGS]) -> FLAGS:
        """Flags groups that have offsets right before the write."""
        rows = np.flatnonzero(which)
        found, _ = self._lot.first_ones(
            self._lot.group,
            self._group[rows],
            swept.begin[rows],
            lambda row, number: allows(rows[row], number),
            1,
        )
        flags = np.zeros(len(which), np.bool_)
        flags[rows[found]] = True
        return flags

    def _compared(self) -> Swept:
        """The groups, with what the times show."""
        swept, row = self._swept, self._removed.row
        count, now = len(swept.case), swept.now_ms
        is_explicit, base, end = self._retentions(self._removed)
        age = now[row] - base
        last_end = np.full(count, np.iinfo(np.int64).min)
        np.maximum.at(last_end, row, end)
        late = first(row, is_explicit & (end > now[row]), count)
        young = first(row, ~is_explicit & (age < (RETENTION.least_ms or 0)), count)
        not_due = first(row, ~is_explicit & (age < self._retention_ms), count)
        last = first(row, end == last_end[row], count)
        longest = np.full(count, NO_AGE)
        np.minimum.at(longest, row[~is_explicit], age[~is_explicit])
        has_base = swept.has_base != 0
        certain = np.where((late == NOTHING) & has_base, young, late)
        log_offset = self._removed.commits[:, LOG_OFFSET]
        never = swept.never.otherwise(shown("not_due", taken(log_offset, certain)))
        not_yet = swept.not_yet.otherwise(shown("not_due", taken(log_offset, not_due)))
        has_offset, has_end = last != NOTHING, swept.end != NOTHING
        is_compared = self._is_compared & (swept.is_known != 0)
        over_ms = now - np.maximum(np.where(has_offset, last_end, swept.told_ms), swept.told_ms)
        is_due = np.where(has_offset, last_end <= now, has_end & (swept.is_empty != 0)) & is_compared
        return swept._replace(
            never_word=never.word,
            never_at=never.log_offset,
            not_yet_word=not_yet.word,
            not_yet_at=not_yet.log_offset,
            due_at=np.where(is_due, taken(log_offset, last), NOTHING),
            is_due=is_due & (over_ms <= _CHECKS_MS + _LATE_CLEAN_UP_MS),
            longest_ms=np.where(has_base, longest, NO_AGE),
        )

    def _staying(self, swept: Swept) -> list[tuple[INT64, INT64]]:
        """The first offsets of each group that a clean-up would have removed with these, and those that it would have
        removed if the retention is right."""
        rows = np.flatnonzero(
            (swept.is_ended == 0)
            & (swept.is_log_whole != 0)
            & (swept.is_known != 0)
            & (swept.are_topics_known != 0)
            & (swept.now_ms != NO_TIME)
            & (swept.never_word == NOTHING)
        )
        is_explicit, base, _ = self._retentions(self._removed)
        latest = np.full(len(swept.case), np.iinfo(np.int64).min)
        np.maximum.at(latest, self._removed.row[~is_explicit], base[~is_explicit])

        def are_due(others: _Offsets) -> FLAGS:
            is_explicit, base, end = self._retentions(others)
            is_due: FLAGS = np.where(is_explicit, end <= swept.now_ms[others.row], base <= latest[others.row])
            is_due &= swept.may_expire[others.row] != 0
            return is_due

        def are_due_if(others: _Offsets) -> FLAGS:
            _, _, end = self._retentions(others)
            is_due: FLAGS = end <= swept.now_ms[others.row]
            return is_due

        return [self._first_of_groups(swept, rows, are_due), self._first_of_groups(swept, rows, are_due_if)]

    def _first_of_groups(self, swept: Swept, rows: INT64, are_due: Callable[[_Offsets], FLAGS]) -> tuple[INT64, INT64]:
        def allows(at: INT64, number: INT64) -> FLAGS:
            row = rows[at]
            _, commits = self._lot.commits(number, swept.begin[row])
            is_allowed = are_due(_Offsets(row, number, commits))
            is_allowed &= commits[:, IS_KNOWN] != 0
            is_allowed &= self._are_not_gone(row, number) & ~self._are_kept(row, number)
            return is_allowed

        wanted, begin = self._group[rows], swept.begin[rows]
        at, number = self._lot.first_ones(self._lot.group, wanted, begin, allows, _MOST_STAYING)
        return rows[at], number

    def _staying_in_topics(self, swept: Swept) -> tuple[INT64, INT64]:
        """For each topic of the removed offsets, the first offsets of any group that would be deleted with the topic.
        The deletion does not affect offsets with the id of an earlier topic of the same name, whose deletion a
        coordinator missed (`OffsetMetadataManager.onTopicsDeleted`)."""
        topic, width = self._lot.topic, len(self._keys)
        _, at = np.unique(self._row * width + topic[self._number], return_index=True)
        # Sort them as in the write.
        at = np.sort(at[swept.is_ended[self._row[at]] == 0])
        rows, topics = self._row[at], topic[self._number[at]]
        # The ids in the commits of the removed offsets, by write and topic.
        gone = self._gone
        places, index = np.unique(swept.case[gone.row] * width + topic[gone.number], return_inverse=True)
        ids = np.sort((index.astype(np.int64) << _ID_BITS) + gone.commits[:, TOPIC_ID])
        place = swept.case[rows] * width + topics
        wanted = np.where(_is_in(places, place), np.searchsorted(places, place), -1)

        def allows(at: INT64, number: INT64) -> FLAGS:
            row = rows[at]
            _, commits = self._lot.commits(number, swept.begin[row])
            topic_id = commits[:, TOPIC_ID]
            is_same = (topic_id == 0) | _is_in(ids, (wanted[at] << _ID_BITS) + topic_id)
            is_certain: FLAGS = (swept.is_log_whole[row] != 0) | (commits[:, IS_LEGACY] == 0)
            is_certain &= is_same & self._are_not_gone(row, number)
            return is_certain

        at, number = self._lot.first_ones(topic, topics, swept.begin[rows], allows, _MOST_STAYING)
        return rows[at], number

    def _are_not_gone(self, row: INT64, number: INT64) -> FLAGS:
        """Flags offsets that the write does not remove."""
        return ~_is_in(self._of_case, self._swept.case[row] * len(self._keys) + number)

    def _are_kept(self, row: INT64, number: INT64) -> FLAGS:
        """Flags offsets that a clean-up does not remove because of their topic or an open transaction."""
        are_kept = self._has_kept[row]
        for at in np.flatnonzero(are_kept).tolist():
            topics, pending = self._kept[int(row[at])]
            _, topic, partition = self._keys[int(number[at])]
            are_kept[at] = topic in topics or (topic, partition) in pending
        return are_kept

    def _retentions(self, offsets: _Offsets) -> tuple[FLAGS, INT64, INT64]:
        """For each offset: whether the commit itself says when it expires; otherwise, from when its retention counts;
        and when it expires."""
        swept, expire = self._swept, offsets.commits[:, EXPIRE_MS]
        is_explicit = expire != NO_TIME
        base = np.where(swept.has_since[offsets.row] != 0, swept.since_ms[offsets.row], offsets.commits[:, COMMIT_MS])
        return is_explicit, base, np.where(is_explicit, expire, base + self._retention_ms)


_KINDS: Final = (STAYS, STAYS_IF_DUE, STAYS_IN_TOPIC)


def _any(row: INT64, number: INT64) -> FLAGS:
    return np.ones(len(row), np.bool_)


def _is_in(known: INT64, wanted: INT64) -> FLAGS:
    """Flags numbers that are among the known ones, which are sorted."""
    found: FLAGS = np.append(known, -1)[np.searchsorted(known, wanted)] == wanted
    return found
