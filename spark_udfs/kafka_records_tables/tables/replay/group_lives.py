"""From the records of groups to the moments of their lives: what the records of one batch did to one group."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_tables.tables.replay.group_replay import (
    CLASSIC,
    CURRENT,
    GROUP,
    MEMBER,
    ROLES,
    SHARE,
    SIMPLE,
    STABLE,
    TARGET_OF_MEMBER,
)
from kafka_records_tables.tables.replay.member_shares import Given, changed, given
from kafka_records_tables.tables.words import timeline_words as words

if TYPE_CHECKING:
    from kafka_records_tables.tables.decoded.fold import Event, Picked
    from kafka_records_tables.tables.replay.group_events import GroupEvent
    from kafka_records_tables.tables.replay.group_states import GroupState

MORE: Final[Picked] = {
    "GroupMetadata": (
        "members.member_id",
        "members.group_instance_id",
        "members.client_id",
        "members.client_host",
        "members.assignment",
    ),
    "ConsumerGroupMemberMetadata": ("instance_id", "client_id", "client_host"),
    "ShareGroupMemberMetadata": ("client_id", "client_host"),
    "StreamsGroupMemberMetadata": ("instance_id", "client_id", "client_host"),
    "ConsumerGroupTargetAssignmentMember": ("topic_partitions",),
    "ShareGroupTargetAssignmentMember": ("topic_partitions",),
    "StreamsGroupTargetAssignmentMember": ("active_tasks", "standby_tasks", "warmup_tasks"),
}
"""What is wanted of values beside what the replay wants."""

_AWAY: Final = -2
"""The epoch of a static member that left and may come back (KIP-848)."""

_NO_TIMESTAMP: Final = -1

_in_json: Final = json.JSONEncoder(ensure_ascii=False).encode


class Moment(NamedTuple):
    """One row of the table `timeline`; the columns of the same names."""

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


class _Member(NamedTuple):
    """A member as far as moments need it."""

    offset: int
    """Of the record that makes the member."""
    instance_id: str | None = None
    client: tuple[str | None, str | None] = (None, None)
    """Id and host."""
    epoch: int = 0
    epoch_at: int = -1
    """Offset of the record that says what epoch it has reached."""
    given: Given = None
    given_at: int = -1
    """Offset of the record that says what it is given."""


@dataclass(slots=True)
class _Life:
    """A group between two batches, and what the records of the next one have done to it so far."""

    members: dict[str, _Member] = field(default_factory=dict)
    epochs: Counter[int] = field(default_factory=Counter)
    """How many members have reached an epoch."""
    touched: dict[str, _Member | None] = field(default_factory=dict)
    """By member id what was there before the batch."""
    gone: dict[str, int] = field(default_factory=dict)
    """Where the tombstone of a member stands."""
    is_unreadable: bool = False
    """Whether the record that names the members could not be decoded."""
    rebalance_since: int | None = None
    is_rebalancing: bool = False

    def set(self, member_id: str, member: _Member) -> None:
        before = self.members.get(member_id)
        self.touched.setdefault(member_id, before)
        if before is not None:
            self.epochs[before.epoch] -= 1
        self.members[member_id] = member
        self.epochs[member.epoch] += 1

    def drop(self, member_id: str, offset: int) -> None:
        before = self.members.pop(member_id, None)
        if before is not None:
            self.touched.setdefault(member_id, before)
            self.epochs[before.epoch] -= 1
            self.gone[member_id] = offset

    def clear(self, offset: int) -> None:
        for member_id in list(self.members):
            self.drop(member_id, offset)


class GroupLives:
    """Makes moments of what `GroupLog` gives, in its order. Memory follows the groups that there are and their
    members."""

    def __init__(self, picked: Picked, topic_names: Mapping[str, str], *, of_epochs_alone: bool = False) -> None:
        """`picked` are the names of the values of events, MORE among them; `topic_names` those of topics by ids.
        `of_epochs_alone`: only the moments of epochs and rebalances are asked for, and MORE is not needed."""
        self._picked = picked
        self._names = topic_names
        self._of_epochs_alone = of_epochs_alone
        self._lives: dict[str, _Life] = {}
        self._batch: dict[str, list[GroupEvent]] = {}
        self._batch_offset = -1

    def moments(self, events: Iterable[GroupEvent]) -> Iterator[Moment]:
        """What is complete behind these events: batches before the last."""
        for event in events:
            if event.batch_offset != self._batch_offset:
                yield from self.rest()
                self._batch_offset = event.batch_offset
            self._batch.setdefault(event.event.key[0], []).append(event)

    def rest(self) -> Iterator[Moment]:
        """The last batch, at the end of the log."""
        batch, self._batch = self._batch, {}
        for of_group in batch.values():
            for unit in _lives_apart(of_group) if len(of_group) > 1 else (of_group,):
                found = self._unit(unit)
                if len(found) > 1:
                    found.sort(key=_LOG_OFFSET)
                yield from found

    # -- one batch of a group ------------------------------------------------------------------------------------------

    def _unit(self, unit: list[GroupEvent]) -> list[Moment]:
        group_id, before, after = unit[0].group_id, unit[0].before, unit[-1].after
        life = self._lives.get(group_id)
        if life is None:
            life = self._lives[group_id] = _Life()
        for each in unit:
            self._replay(life, each)
        told = _Telling(group_id, unit)
        if not self._of_epochs_alone:
            self._beginning(told)
            if not life.is_unreadable:
                self._of_members(life, told)
        if life.touched or life.gone:
            life.touched, life.gone = {}, {}
        if after is not None:
            _of_epochs(life, told)
            return told.found
        del self._lives[group_id]
        if self._of_epochs_alone:
            return told.found
        # A tombstone of a group that nobody has seen is all that a cleaner has left of it.
        if before is not None or any(_is_end(each.event) for each in unit):
            ended = next((each for each in unit if each.before is not None and each.after is None), unit[-1])
            told.tell(words.DELETED, ended.event.offset)
        return told.found

    def _beginning(self, told: _Telling) -> None:
        before, after = told.before, told.after
        if after is None:
            return
        if before is None:
            made = next(each for each in told.unit if each.after is not None)
            told.tell(words.CREATED, made.event.offset, detail={"record": made.event.record})
        elif before.kind != after.kind and not _is_first_generation(before, after):
            made = next(each for each in told.unit if each.after is not None and each.after.kind == after.kind)
            told.tell(words.CONVERTED, made.event.offset, detail={"from": before.kind, "to": after.kind})

    def _of_members(self, life: _Life, told: _Telling) -> None:
        if life.touched:
            self._of_those_who_move(life, told)
        if told.before is not None and told.before.member_count and told.after and told.after.member_count == 0:
            told.tell(words.EMPTIED, told.last)
        if life.touched:
            self._of_those_who_stay(life, told)

    def _of_those_who_move(self, life: _Life, told: _Telling) -> None:
        joined = [name for name, was in life.touched.items() if was is None and name in life.members]
        left = {name: was for name, was in life.touched.items() if was is not None and name not in life.members}
        by_instance = {was.instance_id: name for name, was in left.items() if was.instance_id is not None}
        for name in joined:
            member = life.members[name]
            former = None if member.instance_id is None else by_instance.get(member.instance_id)
            if former is None:
                client_id, client_host = member.client
                detail = {"instance_id": member.instance_id, "client_id": client_id, "client_host": client_host}
                told.tell(words.MEMBER_JOINED, member.offset, name, detail=detail)
            else:
                del left[former]
                detail = {"instance_id": member.instance_id, "former_member_id": former}
                told.tell(words.MEMBER_REPLACED, member.offset, name, detail=detail)
        for name, was in left.items():
            detail = {"instance_id": was.instance_id}
            told.tell(words.MEMBER_LEFT, life.gone.get(name, told.last), name, detail=detail)

    def _of_those_who_stay(self, life: _Life, told: _Telling) -> None:
        for name, was in life.touched.items():
            now = life.members.get(name)
            if now is None:
                continue
            if was is not None and (was.epoch == _AWAY) != (now.epoch == _AWAY):
                word = words.MEMBER_AWAY if now.epoch == _AWAY else words.MEMBER_RETURNED
                told.tell(word, now.epoch_at, name, detail={"instance_id": now.instance_id})
            moved = changed(None if was is None else was.given, now.given, self._names)
            if moved is not None:
                told.tell(words.ASSIGNMENT_CHANGED, now.given_at, name, detail=moved)

    def _replay(self, life: _Life, each: GroupEvent) -> None:
        event, role = each.event, ROLES.get(each.event.record)
        is_other = each.after is None or (each.before is not None and each.before.kind != each.after.kind)
        if each.before is not None and is_other:
            life.clear(event.offset)
            life.is_rebalancing = False
        if each.after is None or role not in (GROUP, MEMBER, CURRENT, TARGET_OF_MEMBER):
            return
        if event.record == "GroupMetadata":
            if not self._of_epochs_alone:
                self._classic(life, each)
        elif role != GROUP and event.key[0] == each.group_id and not event.is_broken:
            self._member(life, event, str(role))

    def _member(self, life: _Life, event: Event, role: str) -> None:
        member_id = event.key[1]
        known = life.members.get(member_id)
        if event.value is None:
            if role == MEMBER:
                life.drop(member_id, event.offset)
            elif known is not None and role == TARGET_OF_MEMBER:
                life.set(member_id, known._replace(given=None, given_at=event.offset))
            return
        if role == TARGET_OF_MEMBER and (known is None or self._of_epochs_alone):
            return
        told = dict(zip(self._picked[event.record], event.value, strict=True))
        member = known or _Member(event.offset)
        if role == MEMBER and not self._of_epochs_alone:
            client = told["client_id"], told["client_host"]
            member = member._replace(instance_id=told.get("instance_id"), client=client)
        elif role == CURRENT:
            member = member._replace(epoch=told["member_epoch"], epoch_at=event.offset)
        elif role == TARGET_OF_MEMBER:
            member = member._replace(given=given(event.record, told), given_at=event.offset)
        life.set(member_id, member)

    def _classic(self, life: _Life, each: GroupEvent) -> None:
        event = each.event
        life.is_unreadable, was_unreadable = event.value is None, life.is_unreadable
        if event.value is None:
            return
        told = dict(zip(self._picked[event.record], event.value, strict=True))
        names = [name.partition(".")[2] for name in MORE["GroupMetadata"]]
        columns = (told[f"members.{name}"] for name in names)
        found = {}
        for member_id, instance_id, client_id, client_host, data in zip(*columns, strict=True):
            share = (told["protocol_type"], data)
            client = client_id, client_host
            found[member_id] = _Member(event.offset, instance_id, client, given=share, given_at=event.offset)
        for member_id in life.members.keys() - found.keys():
            life.drop(member_id, event.offset)
        for member_id, member in found.items():
            life.set(member_id, member)
        if was_unreadable:
            # Who joined and left since the last record that can be read is told by no record.
            life.touched, life.gone = {}, {}


class _Telling:
    """What one batch says of one group, for moments of it."""

    def __init__(self, group_id: str, unit: list[GroupEvent]) -> None:
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

    def tell(
        self,
        word: str,
        offset: int,
        member_id: str | None = None,
        *,
        duration_ms: int | None = None,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a moment at a record of the batch. Members of `detail` that are None are left out."""
        state = self.after
        text = None
        if detail:
            said = {name: value for name, value in detail.items() if value is not None}
            text = _in_json(said) if said else None
        epoch, count = (None, None) if state is None else (state.epoch, state.member_count)
        self.found.append(
            Moment(self.group_id, self._kind, word, member_id, epoch, count, duration_ms, text, self.at_ms, offset)
        )


def _of_epochs(life: _Life, told: _Telling) -> None:
    """Epochs and rebalances. `told.after` is there."""
    before, after = told.before, told.after
    assert after is not None
    epoch_before = None if before is None else before.epoch
    own = [each.event for each in told.unit if ROLES.get(each.event.record) == GROUP and each.event.value is not None]
    offset = own[-1].offset if own else told.last
    is_new = after.epoch is not None and after.epoch != epoch_before
    if is_new:
        told.tell(words.EPOCH, offset, detail={"from": epoch_before, "to": after.epoch})
    if after.kind == CLASSIC:
        if is_new and after.member_count and (before is None or before.kind in (CLASSIC, SIMPLE)):
            told.tell(words.REBALANCE_COMPLETED, offset, duration_ms=_since_joined(own[-1]))
        return
    if not life.is_rebalancing and after.member_count and (is_new or _has_to_follow(told, after)):
        life.is_rebalancing, life.rebalance_since = True, told.at_ms
        told.tell(words.REBALANCE_STARTED, offset)
    if after.is_empty:
        life.is_rebalancing = False
    elif life.is_rebalancing and _is_settled(life, after):
        life.is_rebalancing = False
        duration = None
        if told.at_ms is not None and life.rebalance_since is not None:
            duration = told.at_ms - life.rebalance_since
        told.tell(words.REBALANCE_COMPLETED, told.last, duration_ms=duration)


def _is_settled(life: _Life, state: GroupState) -> bool:
    """Whether every member has what it is to have. The state of a share group does not tell."""
    if state.kind != SHARE:
        return state.state == "Stable"
    return state.epoch is not None and life.epochs[state.epoch] == len(life.members)


def _has_to_follow(told: _Telling, state: GroupState) -> bool:
    """Whether members have to follow though the epoch has the same number: it changed while nobody was there, a member
    that no longer subscribes to a topic gives it up, or a converted group has as its epoch the generation it had."""
    if state.state in ("Assigning", "NotReady"):
        return True
    is_converted = told.before is not None and told.before.kind != state.kind
    current = (each.event.value for each in told.unit if ROLES.get(each.event.record) == CURRENT)
    is_behind = is_converted or any(value[1] != STABLE.get(state.kind) for value in current if value)
    return state.state == "Reconciling" and is_behind


def _is_first_generation(before: GroupState, after: GroupState) -> bool:
    """Whether this is no conversion: the first join of a classic group writes a record without a protocol type."""
    return before.kind == SIMPLE and before.epoch is not None and after.kind == CLASSIC


def _since_joined(event: Event) -> int | None:
    """How long the members waited for their assignments: the record tells since when (`ClassicGroup`, since Kafka
    2.1)."""
    since = event.value[4] if event.value is not None else None
    if since in (None, _NO_TIMESTAMP) or event.timestamp_ms is None:
        return None
    return int(event.timestamp_ms - since)


def _is_end(event: Event) -> bool:
    return ROLES.get(event.record) == GROUP and event.value is None and not event.is_broken


def _lives_apart(events: list[GroupEvent]) -> Iterator[list[GroupEvent]]:
    """The events of one batch, cut where a group ends and one of the same kind is made again, which two writes in one
    batch may do. One of another kind is the same group, converted."""
    unit: list[GroupEvent] = []
    ended: GroupState | None = None
    for each in events:
        if each.before is None and each.after is not None and ended is not None and ended.kind == each.after.kind:
            yield unit
            unit = []
        if each.before is not None and each.after is None:
            ended = each.before
        unit.append(each)
    yield unit
