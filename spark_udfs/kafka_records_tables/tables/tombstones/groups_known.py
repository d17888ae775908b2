"""What the log has told of groups and their members up to a place: enough to say why one of their records went."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.tables.committed.commits import COMMITS
from kafka_records_tables.tables.decoded.fold import Picked
from kafka_records_tables.tables.replay.group_events import GroupEvent, GroupLog
from kafka_records_tables.tables.replay.group_replay import CONSUMER, CURRENT, GROUP, MEMBER, ROLES, STREAMS

if TYPE_CHECKING:
    from kafka_records_tables.tables.committed.commit_lots import CommitLot
    from kafka_records_tables.tables.replay.group_states import GroupState

_SESSION: Final = "classic_member_metadata.session_timeout_ms"
MORE: Final[Picked] = {
    "ConsumerGroupMemberMetadata": ("instance_id", "rebalance_timeout_ms", _SESSION),
    "StreamsGroupMemberMetadata": ("instance_id", "rebalance_timeout_ms"),
}
"""What is wanted of values beside what the replay wants."""

_GIVING_UP: Final = {"ConsumerGroupCurrentMemberAssignment": 1, "StreamsGroupCurrentMemberAssignment": 2}
"""By record, the state in which a member has its rebalance timeout to give up what it is to lose
(`MemberState.UNREVOKED_PARTITIONS`, `streams.MemberState.UNREVOKED_TASKS`)."""

_NO_TIME: Final = -1


@dataclass(slots=True)
class KnownGroup:
    """A group as far as records tell of it."""

    state: GroupState
    is_by_commit: bool
    """Whether a commit alone shows it: it is a simple group, unless records of it are missing."""
    protocol_type: str
    since_ms: int | None
    """Since when a classic group is in its state; None where its record does not tell."""
    told_ms: int | None
    told_at: int
    """When and where the last record of the group was written."""


@dataclass(slots=True)
class KnownMember:
    """A member as far as records tell of it."""

    instance_id: str | None = None
    rebalance_ms: int = -1
    session_ms: int | None = None
    """Its own session timeout, which only members of the classic protocol have."""
    seen_ms: int | None = None
    seen_at: int = -1
    """When and where the last record was written that a heartbeat of the member makes."""
    giving_up_ms: int | None = None
    giving_up_at: int = -1
    """Since when and by which record it is to give something up; None where it is not."""


class GroupsKnown:
    """Follows the records of groups. Memory follows the groups that there are."""

    def __init__(self, log: GroupLog) -> None:
        """`log` makes the events, with MORE."""
        self._log = log
        self._events: deque[GroupEvent] = deque()
        self._groups: dict[str, KnownGroup] = {}
        self._members: dict[tuple[str, str], KnownMember] = {}

    def read(self, rows: pa.RecordBatch, commits: CommitLot) -> None:
        """Add raw rows behind those before; `commits` are the commits among them, without tombstones."""
        self.add(self._log.take_lot(rows, commits))

    def add(self, events: Iterable[GroupEvent]) -> None:
        """Add what the log has told of such rows."""
        self._events += events

    def up_to(self, offset: int) -> None:
        """Take the records below an offset."""
        while self._events and self._events[0].event.offset < offset:
            self._take(self._events.popleft())

    def group(self, group_id: str) -> KnownGroup | None:
        """The group, or None where there is none."""
        return self._groups.get(group_id)

    def member(self, group_id: str, member_id: str) -> KnownMember | None:
        """The member of a consumer, share or streams group, or None where nothing was told of it."""
        return self._members.get((group_id, member_id))

    def _take(self, told: GroupEvent) -> None:
        event, after = told.event, told.after
        if after is None:
            self._groups.pop(told.group_id, None)
        else:
            self._note_group(told, after)
        role = ROLES.get(event.record)
        if role in (MEMBER, CURRENT) and not event.is_broken:
            self._note_member(told, role)

    def _note_group(self, told: GroupEvent, after: GroupState) -> None:
        event = told.event
        known = self._groups.get(told.group_id)
        if known is None or known.state.kind != after.kind:
            known = self._groups[told.group_id] = KnownGroup(
                after, event.record in COMMITS, "", None, None, event.offset
            )
        known.state, known.told_ms, known.told_at = after, event.timestamp_ms, event.offset
        if ROLES.get(event.record) == GROUP:
            known.is_by_commit = False
        if event.record == "GroupMetadata" and event.value is not None:
            since = self._value(told, "current_state_timestamp")
            known.since_ms = None if since == _NO_TIME else since
            known.protocol_type = self._value(told, "protocol_type") or ""
        elif after.kind in (CONSUMER, STREAMS):
            known.is_by_commit = False

    def _note_member(self, told: GroupEvent, role: str) -> None:
        event, place = told.event, (told.group_id, told.event.key[1])
        if event.value is None:
            if role == MEMBER:
                self._members.pop(place, None)
            return
        member = self._members.setdefault(place, KnownMember())
        member.seen_ms, member.seen_at = event.timestamp_ms, event.offset
        if event.record in _GIVING_UP:
            is_giving_up = self._value(told, "state") == _GIVING_UP[event.record]
            member.giving_up_ms = event.timestamp_ms if is_giving_up else None
            member.giving_up_at = event.offset
        elif event.record in MORE:
            member.instance_id = self._value(told, "instance_id")
            member.rebalance_ms = self._value(told, "rebalance_timeout_ms")
            if _SESSION in MORE[event.record]:
                # A record without that tag reads as one with zero.
                member.session_ms = self._value(told, _SESSION) or None

    def _value(self, told: GroupEvent, name: str) -> Any:
        event = told.event
        assert event.value is not None
        return event.value[self._log.picked[event.record].index(name)]
