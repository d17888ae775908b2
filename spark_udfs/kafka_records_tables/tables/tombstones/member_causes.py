"""Determines why a member was removed from its group, based on the content and time of the write."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records.enums import MemberState, StreamsMemberState
from kafka_records_tables.coordinator.groups.group_model import GROUP, MEMBER, OF_MEMBERS, REGEX, ROLES, TOPICS
from kafka_records_tables.coordinator.records.named_records import attribute
from kafka_records_tables.tables.words import causes
from kafka_records_tables.tables.words.causes import Evidence

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.groups.group_model import Member
    from kafka_records_tables.coordinator.groups.groups_before import GroupsBefore
    from kafka_records_tables.coordinator.records.named_records import Event, Picked
    from kafka_records_tables.tables.tombstones.tombstone_writes import Write

_SESSION: Final = "classic_member_metadata.session_timeout_ms"
MORE: Final[Picked] = {
    "GroupMetadata": ("current_state_timestamp",),
    "ConsumerGroupMemberMetadata": ("instance_id", "rebalance_timeout_ms", _SESSION),
    "StreamsGroupMemberMetadata": ("instance_id", "rebalance_timeout_ms"),
}
"""The fields of values that are needed in addition to those of the replay."""

_GIVING_UP: Final = {
    "ConsumerGroupCurrentMemberAssignment": MemberState.UNREVOKED_PARTITIONS,
    "StreamsGroupCurrentMemberAssignment": StreamsMemberState.UNREVOKED_TASKS,
}
"""For each record, the state in which a member may use its rebalance timeout to give up what it should lose."""

_SHARE: Final = "ShareGroup"

_UNUSED: Final = {
    REGEX: ((causes.REGEX_UNUSED,), causes.HIGH),
    TOPICS: ((causes.RECORD_UNUSED,), causes.MEDIUM),
}

_LATE_MS: Final = 250
"""How late a member's timer may run on a broker."""


class Verdict(NamedTuple):
    """The possible causes of a tombstone, as words in the order of CAUSES."""

    cause: tuple[str, ...]
    possible: tuple[str, ...]
    confidence: str
    evidence: tuple[Evidence, ...]


def said(
    cause: tuple[str, ...], confidence: str, evidence: tuple[Evidence, ...] = (), possible: tuple[str, ...] = ()
) -> Verdict:
    """A verdict with this cause, and with the other possible causes."""
    return Verdict(causes.in_order(cause), causes.in_order({*cause, *possible}), confidence, evidence)


def of_member(event: Event, write: Write, groups: GroupsBefore, session_ms: int) -> Verdict | None:
    """Why a record about a member or a regular expression of an existing group was deleted; None for other records.
    `session_ms` is the session timeout of members whose records do not contain one."""
    role = ROLES[event.record]
    if role in _UNUSED and write.is_whole:
        return said(*_UNUSED[role])
    if role in _UNUSED:
        return said((*_UNUSED[role][0], *causes.OF_GROUP_ENDS), causes.LOW)
    if role not in OF_MEMBERS:
        return None
    group = groups.get(event.group_id)
    member = None if group is None else group.members.get(event.member_id)
    replaced_by = _replaced_by(event, write, member)
    if replaced_by is not None:
        shown = (Evidence("same_instance", replaced_by.offset),)
        if write.is_whole:
            return said((causes.MEMBER_REPLACED,), causes.HIGH, shown)
        return said((causes.MEMBER_REPLACED,), causes.LOW, shown, (causes.CONVERSION,))
    if not write.is_whole:
        every = (causes.MEMBER_LEFT, causes.SESSION_TIMEOUT, causes.REBALANCE_TIMEOUT)
        return said(every, causes.LOW, possible=(causes.MEMBER_REPLACED, causes.CONVERSION))
    if _may_go_on(event, write, member):
        removed = (causes.MEMBER_LEFT, causes.SESSION_TIMEOUT, causes.REBALANCE_TIMEOUT)
        return said((*removed, causes.MEMBER_REPLACED), causes.LOW)
    if event.record.startswith(_SHARE):
        return _by_time(write, member, session_ms, (causes.MEMBER_LEFT, causes.SESSION_TIMEOUT))
    return _by_time(write, member, session_ms, (causes.MEMBER_LEFT, causes.SESSION_TIMEOUT, causes.REBALANCE_TIMEOUT))


def _replaced_by(event: Event, write: Write, member: Member | None) -> Event | None:
    """The record of the member that replaced this one in the same write, under the same instance id.

    GroupMetadataManager.replaceMember writes no record of the group between the two. If one member left and another
    joined within a millisecond in the same batch, the new epoch of the group is between them.
    """
    metadata = None if member is None else member.metadata
    instance_id = None if metadata is None else _told(metadata, "instance_id")
    if metadata is not None and instance_id is None:
        return None
    for other in write.records:
        if other.offset <= event.offset or other.value is None or other.group_id != event.group_id:
            continue
        role = ROLES.get(other.record)
        if role == GROUP:
            return None
        if (
            role == MEMBER
            and other.value
            and other.member_id != event.member_id
            and other.value.instance_id is not None
            and instance_id in (None, other.value.instance_id)
        ):
            return other
    return None


def _may_go_on(event: Event, write: Write, member: Member | None) -> bool:
    """Whether the request that removed a static member may have continued in another write, as requests with chained
    steps may. A member that leaves or is removed raises its group's epoch in the same write."""
    metadata = None if member is None else member.metadata
    if metadata is None or _told(metadata, "instance_id") is None:
        return False
    return not any(
        other.offset > event.offset
        and other.group_id == event.group_id
        and ROLES.get(other.record) == GROUP
        and other.value is not None
        for other in write.records
    )


def _by_time(write: Write, member: Member | None, session_ms: int, possible: tuple[str, ...]) -> Verdict:
    """The causes that are possible given the times and the session timeout."""
    now = write.timestamp_ms
    seen = None if member is None else _last_heartbeat(member)
    if member is None or now is None or seen is None or seen.timestamp_ms is None:
        return said(possible, causes.HIGH)
    metadata, current = member.metadata, member.current
    is_giving_up = current is not None and current.value.state == _GIVING_UP.get(current.record)
    if causes.REBALANCE_TIMEOUT in possible and current is not None and is_giving_up:
        rebalance_ms = -1 if metadata is None else _told(metadata, "rebalance_timeout_ms")
        late = None if current.timestamp_ms is None else now - current.timestamp_ms - rebalance_ms
        if late is not None and 0 <= late <= _LATE_MS:
            shown = Evidence("rebalance_timeout_over", current.offset)
            return said((causes.REBALANCE_TIMEOUT,), causes.MEDIUM, (shown,), possible)
    # Only records of members with the classic protocol have this tag; in other records, it is read as zero.
    own_session_ms = metadata and _told(metadata, attribute(_SESSION))
    late = now - seen.timestamp_ms - (own_session_ms or session_ms)
    if late < 0:
        cause: tuple[str, ...] = (causes.MEMBER_LEFT,)
        if own_session_ms:
            # Members with the classic protocol also have time limits for joining and syncing, and no record shows when
            # these started.
            cause = (causes.MEMBER_LEFT, causes.REBALANCE_TIMEOUT)
        return said(cause, causes.MEDIUM, (Evidence("seen_before", seen.offset),), possible)
    if late <= _LATE_MS:
        shown = Evidence("session_timeout_over", seen.offset)
        return said((causes.SESSION_TIMEOUT,), causes.MEDIUM, (shown,), possible)
    return said((causes.MEMBER_LEFT, causes.SESSION_TIMEOUT), causes.MEDIUM, (), possible)


def _last_heartbeat(member: Member) -> Event | None:
    """The last record caused by a heartbeat of the member."""
    records = (record for record in (member.metadata, member.current) if record is not None)
    return max(records, key=attrgetter("offset"), default=None)


def _told(metadata: Event, name: str) -> Any:
    """A field of the member's metadata; None if its kind of group does not have it."""
    return getattr(metadata.value, name, None)
