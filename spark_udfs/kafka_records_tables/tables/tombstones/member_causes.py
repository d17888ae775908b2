"""Why a member was taken from its group: what a write shows, and what its time tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_records_tables.tables.replay.group_replay import CURRENT, MEMBER, REGEX, ROLES, TARGET_OF_MEMBER, TOPICS
from kafka_records_tables.tables.words import causes
from kafka_records_tables.tables.words.causes import Shown

if TYPE_CHECKING:
    from kafka_records_tables.tables.decoded.fold import Event
    from kafka_records_tables.tables.tombstones.groups_known import GroupsKnown, KnownMember
    from kafka_records_tables.tables.tombstones.tombstone_writes import Write

_SHARE: Final = "ShareGroup"
_OF_MEMBERS: Final = (MEMBER, CURRENT, TARGET_OF_MEMBER)

_UNUSED: Final = {
    REGEX: ((causes.REGEX_UNUSED,), causes.HIGH),
    TOPICS: ((causes.RECORD_UNUSED,), causes.MEDIUM),
}

_LATE_MS: Final = 250
"""How much later than it is due a timer of one member may run on a broker."""


class Said(NamedTuple):
    """What is said of a tombstone: the words, in the order of CAUSES."""

    cause: tuple[str, ...]
    possible: tuple[str, ...]
    confidence: str
    evidence: tuple[Shown, ...]


def said(
    cause: tuple[str, ...], confidence: str, evidence: tuple[Shown, ...] = (), possible: tuple[str, ...] = ()
) -> Said:
    """The cause, and with it what else is possible."""
    return Said(causes.in_order(cause), causes.in_order({*cause, *possible}), confidence, evidence)


def of_member(event: Event, write: Write, groups: GroupsKnown, session_ms: int) -> Said | None:
    """Why a record went that is about a member, or a regular expression, of a group that stays; None for other
    records. `session_ms` is the session timeout of members that do not tell their own."""
    role = ROLES[event.record]
    if role in _UNUSED and write.is_whole:
        return said(*_UNUSED[role])
    if role in _UNUSED:
        return said((*_UNUSED[role][0], *causes.OF_GROUP_ENDS), causes.LOW)
    if role not in _OF_MEMBERS:
        return None
    member = groups.member(event.key[0], event.key[1])
    replaced_by = _replaced_by(event, write, member)
    if replaced_by is not None:
        shown = (Shown("same_instance", replaced_by.offset),)
        if write.is_whole:
            return said((causes.MEMBER_REPLACED,), causes.HIGH, shown)
        return said((causes.MEMBER_REPLACED,), causes.LOW, shown, (causes.CONVERSION,))
    if not write.is_whole:
        every = (causes.MEMBER_LEFT, causes.SESSION_TIMEOUT, causes.REBALANCE_TIMEOUT)
        return said(every, causes.LOW, possible=(causes.MEMBER_REPLACED, causes.CONVERSION))
    if event.record.startswith(_SHARE):
        return _by_time(write, member, session_ms, (causes.MEMBER_LEFT, causes.SESSION_TIMEOUT))
    return _by_time(write, member, session_ms, (causes.MEMBER_LEFT, causes.SESSION_TIMEOUT, causes.REBALANCE_TIMEOUT))


def _replaced_by(event: Event, write: Write, member: KnownMember | None) -> Event | None:
    """The record of the member that took the place of this one, in the same write and under the same instance id."""
    instance_id = None if member is None else member.instance_id
    for other in write.records:
        if (
            other.offset > event.offset
            and other.value
            and ROLES.get(other.record) == MEMBER
            and other.key[0] == event.key[0]
            and other.key[1] != event.key[1]
            and other.value[0] is not None
            and instance_id in (None, other.value[0])
        ):
            return other
    return None


def _by_time(write: Write, member: KnownMember | None, session_ms: int, possible: tuple[str, ...]) -> Said:
    """What the time says, given the session timeout."""
    now = write.timestamp_ms
    if member is None or now is None or member.seen_ms is None:
        return said(possible, causes.HIGH)
    if causes.REBALANCE_TIMEOUT in possible and member.giving_up_ms is not None:
        late = now - member.giving_up_ms - member.rebalance_ms
        if 0 <= late <= _LATE_MS:
            shown = Shown("rebalance_timeout_over", member.giving_up_at)
            return said((causes.REBALANCE_TIMEOUT,), causes.MEDIUM, (shown,), possible)
    session = session_ms if member.session_ms is None else member.session_ms
    late = now - member.seen_ms - session
    if late < 0:
        cause: tuple[str, ...] = (causes.MEMBER_LEFT,)
        if member.session_ms is not None:
            # Those of the classic protocol have a time to join and to sync, too, and no record tells when it began.
            cause = (causes.MEMBER_LEFT, causes.REBALANCE_TIMEOUT)
        return said(cause, causes.MEDIUM, (Shown("seen_before", member.seen_at),), possible)
    if late <= _LATE_MS:
        shown = Shown("session_timeout_over", member.seen_at)
        return said((causes.SESSION_TIMEOUT,), causes.MEDIUM, (shown,), possible)
    return said((causes.MEMBER_LEFT, causes.SESSION_TIMEOUT), causes.MEDIUM, (), possible)
