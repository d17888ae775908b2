"""Collects the groups that writes removed or whose offsets they removed.

Evidence from a group's state is determined when the replay reaches the write. Evidence from commits is determined
afterwards, for many writes together (`swept_commits`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np

from kafka_records_tables.coordinator.groups.group_model import SIMPLE
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.live_offsets import FARTHEST_MS, NEVER, NO_TIME
from kafka_records_tables.tables.tombstones.deleted_topics import of_topics
from kafka_records_tables.tables.tombstones.swept_columns import FOUND_LATER, Swept, Watched
from kafka_records_tables.tables.tombstones.swept_commits import Kept, found_in_commits
from kafka_records_tables.tables.tombstones.swept_states import (
    MEMBERS,
    NO_TOPICS,
    NOT_HELD,
    NOTHING,
    UNKNOWN,
    facts_of,
    flags_of,
    held,
    known_group,
    waiting,
)

if TYPE_CHECKING:
    from kafka_records_engine.sources.log_facts import TopicDeletions
    from kafka_records_tables.coordinator.groups.groups_before import GroupsBefore
    from kafka_records_tables.coordinator.offsets.live_offsets import LiveOffsets
    from kafka_records_tables.coordinator.records.named_records import Event
    from kafka_records_tables.tables.tombstones.tombstone_writes import Write

_MOST_ROWS: Final = 8192
"""The number of groups for which facts are determined together."""


class SweptGroups:
    """Collects the facts about the groups of writes."""

    def __init__(self, retention_ms: int) -> None:
        self._retention_ms = min(retention_ms, FARTHEST_MS)
        self.group_ids: list[str] = []
        """The ids of the groups in `swept`, and of those added since."""
        self.swept = Swept(*(np.zeros(0, np.int64) for _ in Swept._fields))
        self.watched = Watched(*(np.zeros(0, np.int64) for _ in Watched._fields))
        self._rows: list[tuple[int, ...]] = []
        self._removed: list[tuple[int, int]] = []
        """The tombstones of offsets: the index in `_rows`, and the log offset."""
        self._kept: dict[int, Kept] = {}
        """By index in `_rows`, the offsets that no clean-up removes, if any."""

    @property
    def is_full(self) -> bool:
        """Whether it is time to `look`."""
        return len(self._rows) >= _MOST_ROWS

    def add(
        self,
        case: int,
        write: Write,
        tombstones: Iterable[Event],
        ended: frozenset[str],
        groups: GroupsBefore,
        live: LiveOffsets,
        *,
        is_log_whole: bool,
        is_new_broker: bool,
        deletions: TopicDeletions,
    ) -> None:
        """Add tombstones of a write. `groups` and `live` are in the state right before it. The write has the last
        tombstones of the groups `ended`. `is_log_whole` means that nothing is missing in the log, so offsets without a
        record do not exist. `is_new_broker` means that every deleted group has a tombstone; before Kafka 4.0, groups
        without a generation had none (`GroupMetadataManager.cleanupGroupMetadata`). `deletions` are deletions of
        topics."""
        of_groups: dict[str, tuple[list[Event], list[Event]]] = {}
        for event in tombstones:
            group_id = event.key[0]
            if group_id not in of_groups:
                of_groups[group_id] = [], []
            of_groups[group_id][event.record not in COMMITS].append(event)
        now_ms = NO_TIME if write.timestamp_ms is None else min(write.timestamp_ms, FARTHEST_MS)
        of_write = case, write.offset, now_ms, is_log_whole
        for group_id, (offsets, ends) in of_groups.items():
            row = len(self._rows)
            self._removed += [(row, event.offset) for event in offsets]
            known = known_group(groups, group_id, is_log_whole=is_log_whole)
            pending = live.pending(group_id, is_log_whole=is_log_whole)
            of_state = NOT_HELD if known is None else held(known, offsets)
            never, waits_at = of_state.never, NOTHING
            if pending and never[0] != MEMBERS:
                never = waiting(pending, offsets) or never
                waits_at = next(iter(pending.values()))
            if known is not None and (known.state.topics or pending):
                self._kept[row] = known.state.topics or (), pending
            may_end_unseen = not is_new_broker and (known is None or known.state.kind == SIMPLE)
            of_end = group_id in ended, ends[-1].offset if ends else NOTHING, may_end_unseen, bool(offsets), waits_at
            of_deletions = NO_TOPICS
            if deletions.times and offsets:
                of_deletions = flags_of(of_topics({event.key[1] for event in offsets}, write.timestamp_ms, deletions))
            reasons = *never, *of_state.not_yet, *of_state.refused
            of_known = UNKNOWN if known is None else facts_of(known)
            self._rows.append((*of_write, *of_known, *of_end, *reasons, *of_deletions, *FOUND_LATER))
            self.group_ids.append(group_id)

    def look(self, live: LiveOffsets) -> None:
        """Determine the facts that depend on commits, for all groups added since the last call."""
        if not self._rows:
            return
        shift = len(self.swept.case)
        swept, watched = found_in_commits(
            Swept(*np.array(self._rows, np.int64).T.copy()),
            self.group_ids[shift:],
            np.array(self._removed, np.int64).reshape(-1, 2).T.copy(),
            self._kept,
            live,
            self._retention_ms,
        )
        watched = watched._replace(row=watched.row + shift)
        self.watched = Watched(*map(np.concatenate, zip(self.watched, watched, strict=True)))
        self.swept = Swept(*map(np.concatenate, zip(self.swept, swept, strict=True)))
        self._rows, self._removed, self._kept = [], [], {}

    def note_gone(self, live: LiveOffsets) -> None:
        """Note which of the watched offsets were deleted, before the rows are forgotten."""
        watched = self.watched
        since = self.swept.begin[watched.row]
        is_gone = live.lot.are_deleted(watched.number, since, np.full(len(since), NEVER))
        self.watched = watched._replace(is_gone=watched.is_gone | is_gone)

    def drop(self, count: int) -> None:
        """Forget the first groups."""
        is_left = self.watched.row >= count
        left = Watched(*(each[is_left] for each in self.watched))
        self.watched = left._replace(row=left.row - count)
        self.swept = Swept(*(each[count:] for each in self.swept))
        del self.group_ids[:count]
