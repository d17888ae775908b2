"""Derives the events in the life of a group from the effects of each batch of records."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_tables.coordinator.groups.group_model import (
    CLASSIC,
    CURRENT,
    GROUP,
    ROLES,
    SIMPLE,
    STABLE,
    STREAMS,
    TARGET,
    TARGET_OF_MEMBER,
)
from kafka_records_tables.tables.group_rows.member_rows import classic_rebalance_timeout
from kafka_records_tables.tables.group_rows.member_shares import Given, changed, given
from kafka_records_tables.tables.words import timeline_words as words

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.groups.group_model import Member
    from kafka_records_tables.coordinator.groups.group_states import GroupState, Transition
    from kafka_records_tables.coordinator.records.named_records import Event, Picked

MORE: Final[Picked] = {
    "GroupMetadata": (
        "members.member_id",
        "members.group_instance_id",
        "members.client_id",
        "members.client_host",
        "members.rebalance_timeout",
        "members.session_timeout",
        "members.assignment",
    ),
    "ConsumerGroupMemberMetadata": ("instance_id", "client_id", "client_host", "rebalance_timeout_ms"),
    "ShareGroupMemberMetadata": ("client_id", "client_host"),
    "StreamsGroupMemberMetadata": ("instance_id", "client_id", "client_host", "rebalance_timeout_ms"),
    "ConsumerGroupTargetAssignmentMember": ("topic_partitions",),
    "ShareGroupTargetAssignmentMember": ("topic_partitions",),
    "StreamsGroupTargetAssignmentMember": ("active_tasks", "standby_tasks", "warmup_tasks"),
}
"""The fields of values that are needed in addition to those of the replay."""

_AWAY: Final = -2
"""The epoch of a static member that left and may come back (KIP-848)."""

_NO_TIMESTAMP: Final = -1

_encode: Final = json.JSONEncoder(ensure_ascii=False).encode


class Moment(NamedTuple):
    """One row of the table `timeline`. The fields are the columns of the same names."""

    group_id: str
    group_kind: str | None
    event: str
    member_id: str | None
    epoch: int | None
    member_count: int | None
    duration_ms: int | None
    detail: str | None
    at_timestamp_ms: int | None
    log_offset: int


_LOG_OFFSET: Final = attrgetter("log_offset")


_NOTHING: Final[Mapping[str, Any]] = {}


class _Seen(NamedTuple):
    """The facts about a member that events need."""

    offset: int
    """The offset of the record that creates the member."""
    instance_id: str | None = None
    client: Mapping[str, str | None] = _NOTHING
    """`client_id` and `client_host`."""
    timeouts: Mapping[str, int | None] = _NOTHING
    """`rebalance_timeout_ms` and, of a classic member, `session_timeout_ms`."""
    epoch: int = 0
    epoch_at: int = -1
    """The offset of the record with the epoch that it has reached."""
    given: Given = None
    given_at: int = -1
    """The offset of the record with its assignment."""


@dataclass(slots=True)
class _GroupBetweenBatches:
    """A group between two batches, and the effects on its members of the records of the next batch so far."""

    before: dict[str, _Seen | None] = field(default_factory=dict)
    """The members before the batch, by member id, if the batch is about them."""
    after: dict[str, _Seen | None] = field(default_factory=dict)
    """The same members after the records so far, without those that are gone."""
    gone: dict[str, int] = field(default_factory=dict)
    """The offset of the tombstone of each deleted member."""
    classic: dict[str, _Seen] = field(default_factory=dict)
    """The members of a classic group, which are all in one record."""
    is_unreadable: bool = False
    """Whether the record that names the members could not be decoded."""
    rebalance_since: int | None = None
    is_rebalancing: bool = False

    def note(self, member_id: str, before: _Seen | None, after: _Seen | None, offset: int) -> None:
        """Record that a record has changed a member."""
        self.before.setdefault(member_id, before)
        self.after[member_id] = after
        if before is not None and after is None:
            self.gone[member_id] = offset

    def note_classic(self, members: dict[str, _Seen], offset: int) -> None:
        """Record all members of a classic group."""
        for member_id, member in self.classic.items():
            if member_id not in members:
                self.note(member_id, member, None, offset)
        for member_id, member in members.items():
            self.note(member_id, self.classic.get(member_id), member, offset)
        self.classic = members

    def forget_batch(self) -> None:
        """Forget the events of the batch, which have been reported."""
        if self.before:
            self.before, self.after, self.gone = {}, {}, {}


class GroupHistory:
    """Derives events from the transitions of `GroupLog`, in order. Memory grows with the existing groups and the
    members of classic ones."""

    def __init__(self, topic_names: Mapping[str, str], *, of_epochs_alone: bool = False) -> None:
        """`topic_names` are topic names by id. With `of_epochs_alone`, only events of epochs and rebalances are
        returned, and MORE is not needed."""
        self._names = topic_names
        self._of_epochs_alone = of_epochs_alone
        self._lives: dict[str, _GroupBetweenBatches] = {}
        self._batch: dict[str, list[Transition]] = {}
        self._batch_offset = -1

    def moments(self, events: Iterable[Transition]) -> list[Moment]:
        """The events that are complete after these transitions: those of all batches except the last."""
        found: list[Moment] = []
        for event in events:
            if event.batch_offset != self._batch_offset:
                found += self.rest()
                self._batch_offset = event.batch_offset
            self._batch.setdefault(event.group_id, []).append(event)
        return found

    def rest(self) -> list[Moment]:
        """The events of the last batch, at the end of the log."""
        batch, self._batch = self._batch, {}
        moments: list[Moment] = []
        for of_group in batch.values():
            for unit in _lives_apart(of_group) if len(of_group) > 1 else (of_group,):
                found = self._unit(unit)
                if len(found) > 1:
                    found.sort(key=_LOG_OFFSET)
                moments += found
        return moments

    # -- one batch of a group ------------------------------------------------------------------------------------------

    def _unit(self, unit: list[Transition]) -> list[Moment]:
        group_id, before, after = unit[0].group_id, unit[0].before, unit[-1].after
        life = self._lives.get(group_id)
        if life is None:
            life = self._lives[group_id] = _GroupBetweenBatches()
        for each in unit:
            self._note(life, each)
        told = _Telling(group_id, unit)
        if not self._of_epochs_alone:
            self._beginning(told)
            if not life.is_unreadable:
                self._of_members(life, told)
            life.forget_batch()
        if after is not None:
            _of_epochs(life, told)
            return told.found
        del self._lives[group_id]
        if self._of_epochs_alone:
            return told.found
        # If only a tombstone shows the group, a cleaner has removed its other records.
        if before is not None or any(_is_end(each.event) for each in unit):
            ended = next((each for each in unit if each.before is not None and each.after is None), unit[-1])
            told.tell(words.DELETED, ended.event.offset)
        return told.found

    def _beginning(self, told: _Telling) -> None:
        before, after = told.before, told.after
        if before is None:
            # A batch may contain several writes, and so all records of a group.
            made = next((each for each in told.unit if each.after is not None), None)
            if made is not None:
                told.tell(words.CREATED, made.event.offset, detail={"record": made.event.record})
        elif after is None:
            return
        elif before.kind != after.kind and not _is_first_generation(before, after):
            made = next(each for each in told.unit if each.after is not None and each.after.kind == after.kind)
            told.tell(words.CONVERTED, made.event.offset, detail={"from": before.kind, "to": after.kind})

    def _of_members(self, life: _GroupBetweenBatches, told: _Telling) -> None:
        if life.before:
            self._of_those_who_move(life, told)
        if told.before is not None and told.before.member_count and told.after and told.after.member_count == 0:
            told.tell(words.EMPTIED, told.last)
        self._of_those_who_stay(life, told)

    def _of_those_who_move(self, life: _GroupBetweenBatches, told: _Telling) -> None:
        joined: dict[str, _Seen] = {}
        left: dict[str, _Seen] = {}
        for name, was in life.before.items():
            now = life.after[name]
            if was is None and now is not None:
                joined[name] = now
            elif was is not None and now is None:
                left[name] = was
        by_instance = {was.instance_id: name for name, was in left.items() if was.instance_id is not None}
        for name, member in joined.items():
            former = None if member.instance_id is None else by_instance.get(member.instance_id)
            if former is None:
                detail = {"instance_id": member.instance_id, **member.client, **member.timeouts}
                told.tell(words.MEMBER_JOINED, member.offset, name, detail=detail)
            else:
                del left[former]
                detail = {"instance_id": member.instance_id, "former_member_id": former, **member.timeouts}
                told.tell(words.MEMBER_REPLACED, member.offset, name, detail=detail)
        for name, was in left.items():
            detail = {"instance_id": was.instance_id}
            told.tell(words.MEMBER_LEFT, life.gone.get(name, told.last), name, detail=detail)

    def _of_those_who_stay(self, life: _GroupBetweenBatches, told: _Telling) -> None:
        for name, was in life.before.items():
            now = life.after[name]
            if now is None:
                continue
            if was is not None and (was.epoch == _AWAY) != (now.epoch == _AWAY):
                word = words.MEMBER_AWAY if now.epoch == _AWAY else words.MEMBER_RETURNED
                told.tell(word, now.epoch_at, name, detail={"instance_id": now.instance_id})
            moved = changed(None if was is None else was.given, now.given, self._names)
            if moved is not None:
                told.tell(words.ASSIGNMENT_CHANGED, now.given_at, name, detail=moved)

    def _note(self, life: _GroupBetweenBatches, each: Transition) -> None:
        event = each.event
        is_other = each.after is None or (each.before is not None and each.before.kind != each.after.kind)
        if each.before is not None and is_other:
            life.is_rebalancing = False
        if self._of_epochs_alone:
            return
        if each.before is not None and is_other:
            life.note_classic({}, event.offset)
            for member_id, member in each.replaced.members.items() if each.replaced is not None else ():
                life.note(member_id, _seen(member), None, event.offset)
        if each.after is None:
            return
        if event.record == "GroupMetadata":
            self._classic(life, event)
        elif each.member_before is not each.member_after:
            life.note(event.member_id, _seen(each.member_before), _seen(each.member_after), event.offset)

    def _classic(self, life: _GroupBetweenBatches, event: Event) -> None:
        life.is_unreadable, was_unreadable = event.value is None, life.is_unreadable
        if event.value is None:
            return
        value, found = event.value, {}
        for member_id, instance_id, client_id, client_host, rebalance_ms, session_ms, data in zip(
            value.members_member_id,
            value.members_group_instance_id,
            value.members_client_id,
            value.members_client_host,
            value.members_rebalance_timeout,
            value.members_session_timeout,
            value.members_assignment,
            strict=True,
        ):
            given = (value.protocol_type, data)
            client = {"client_id": client_id, "client_host": client_host}
            timeouts = {
                "rebalance_timeout_ms": classic_rebalance_timeout(rebalance_ms, session_ms),
                "session_timeout_ms": session_ms,
            }
            found[member_id] = _Seen(event.offset, instance_id, client, timeouts, given=given, given_at=event.offset)
        life.note_classic(found, event.offset)
        if was_unreadable:
            # No record shows which members joined or left since the last readable record.
            life.forget_batch()


def _seen(member: Member | None) -> _Seen | None:
    if member is None or not member.is_known:
        return None
    epoch, epoch_at = 0, -1
    if member.current is not None:
        epoch, epoch_at = member.current.value.member_epoch, member.current.offset
    instance_id, client, timeouts = None, _NOTHING, _NOTHING
    if member.metadata is not None:
        value = member.metadata.value
        # Share group members have no instance ids and no rebalance timeout.
        instance_id = getattr(value, "instance_id", None)
        client = {"client_id": value.client_id, "client_host": value.client_host}
        timeouts = {"rebalance_timeout_ms": getattr(value, "rebalance_timeout_ms", None)}
    target = member.target
    told = (None, -1) if target is None else (None if target.value is None else given(target), target.offset)
    return _Seen(member.made_at, instance_id, client, timeouts, epoch, epoch_at, *told)


class _Telling:
    """The content of one batch about one group, from which events are derived."""

    def __init__(self, group_id: str, unit: list[Transition]) -> None:
        self.group_id = group_id
        self.unit = unit
        self.found: list[Moment] = []
        self.before: GroupState | None = unit[0].before
        self.after: GroupState | None = unit[-1].after
        self.last = unit[-1].event.offset
        self.at_ms = unit[-1].event.timestamp_ms
        known = self.after
        if known is None:
            known = next((each.before for each in reversed(unit) if each.before is not None), None)
        self._kind = None if known is None else known.kind

    def own_record(self) -> Event | None:
        """The last value of the group's own record in the batch."""
        events = (each.event for each in reversed(self.unit))
        return next((each for each in events if each.value is not None and ROLES.get(each.record) == GROUP), None)

    def tell(
        self,
        word: str,
        offset: int,
        member_id: str | None = None,
        *,
        duration_ms: int | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add an event at a record of the batch. None entries of `detail` are left out."""
        state = self.after
        text = _in_json(detail) if detail else None
        epoch, count = (None, None) if state is None else (state.epoch, state.member_count)
        self.found.append(
            Moment(self.group_id, self._kind, word, member_id, epoch, count, duration_ms, text, self.at_ms, offset)
        )


def _in_json(detail: Mapping[str, Any]) -> str | None:
    """The non-None entries as JSON; None if there are none. Names need no escaping."""
    parts = [f'"{name}": {_encoded(value)}' for name, value in detail.items() if value is not None]
    return f"{{{', '.join(parts)}}}" if parts else None


def _encoded(value: Any) -> str:
    # Creating an encoder takes several times as long as this.
    return encode_basestring(value) if type(value) is str else str(value) if type(value) is int else _encode(value)


def _of_epochs(life: _GroupBetweenBatches, told: _Telling) -> None:
    """Add the events of epochs and rebalances. `told.after` must exist."""
    before, after = told.before, told.after
    assert after is not None
    epoch_before = None if before is None else before.epoch
    is_new = after.epoch is not None and after.epoch != epoch_before
    own = told.own_record()
    offset = told.last if own is None else own.offset
    if is_new:
        target = words.UNCHANGED if _keeps_target(told, after) else None
        told.tell(words.EPOCH, offset, detail={"from": epoch_before, "to": after.epoch, "target": target})
    if after.kind == CLASSIC:
        if is_new and after.member_count and (before is None or before.kind in (CLASSIC, SIMPLE)):
            told.tell(words.REBALANCE_COMPLETED, offset, duration_ms=_since_joined(own))
        return
    if not life.is_rebalancing and after.member_count and (is_new or _has_to_follow(told, after)):
        life.is_rebalancing, life.rebalance_since = True, told.at_ms
        told.tell(words.REBALANCE_STARTED, offset)
    if after.is_empty:
        life.is_rebalancing = False
    elif life.is_rebalancing and after.is_settled:
        life.is_rebalancing = False
        duration = None
        if told.at_ms is not None and life.rebalance_since is not None:
            duration = told.at_ms - life.rebalance_since
        told.tell(words.REBALANCE_COMPLETED, told.last, duration_ms=duration)


def _has_to_follow(told: _Telling, state: GroupState) -> bool:
    """Whether members have to follow although the epoch number is the same: it changed while the group had no members,
    a member gives up a topic that it no longer subscribes to, or a converted group kept its generation as its epoch."""
    if state.state in ("Assigning", "NotReady"):
        return True
    is_converted = told.before is not None and told.before.kind != state.kind
    current = (each.event.value for each in told.unit if ROLES.get(each.event.record) == CURRENT)
    is_behind = is_converted or any(value.state != STABLE.get(state.kind) for value in current if value)
    return state.state == "Reconciling" and is_behind


def _keeps_target(told: _Telling, state: GroupState) -> bool:
    """Whether a streams group has a new epoch but no member has a new target. This happens when a warm-up task is ready
    and members take the next step towards their existing target (KAFKA-20665, Kafka 4.5)."""
    roles = {ROLES.get(each.event.record) for each in told.unit}
    return state.kind == STREAMS and told.before is not None and TARGET in roles and TARGET_OF_MEMBER not in roles


def _is_first_generation(before: GroupState, after: GroupState) -> bool:
    """Whether this is not a conversion. The first join of a classic group writes a record without a protocol type."""
    return before.kind == SIMPLE and before.epoch is not None and after.kind == CLASSIC


def _since_joined(event: Event | None) -> int | None:
    """How long the members waited for their assignments. The record contains the start of the wait (`ClassicGroup`,
    since Kafka 2.1)."""
    since = None if event is None else event.value.current_state_timestamp
    if event is None or since in (None, _NO_TIMESTAMP) or event.timestamp_ms is None:
        return None
    return int(event.timestamp_ms - since)


def _is_end(event: Event) -> bool:
    return ROLES.get(event.record) == GROUP and event.is_tombstone


def _lives_apart(events: list[Transition]) -> Iterator[list[Transition]]:
    """The events of one batch, split where a group ends and one of the same kind is created, which two writes in one
    batch may do. A new group of another kind is the same group, converted. The events are also split before a second
    conversion, which has the tombstones of the members until then."""
    unit: list[Transition] = []
    ended: GroupState | None = None
    is_converted = False
    for each in events:
        if each.before is None and each.after is not None and ended is not None:
            if ended.kind == each.after.kind:
                yield unit
                unit, is_converted = [], False
            elif is_converted:
                begin = len(unit) - 1
                while begin and unit[begin - 1].event.is_tombstone:
                    begin -= 1
                yield unit[:begin]
                unit = unit[begin:]
            else:
                is_converted = True
        if each.before is not None and each.after is None:
            ended = each.before
        unit.append(each)
    yield unit
