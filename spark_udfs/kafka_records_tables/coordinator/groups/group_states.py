"""The state of a group after a record, and lookups of the states of many groups at many positions in the log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.groups.group_model import MEMBER, ROLES, STREAMS
from kafka_records_tables.coordinator.groups.subscriptions import PICKED as SUBSCRIPTIONS
from kafka_records_tables.coordinator.groups.subscriptions import topics_of

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.groups.group_model import Group, Member
    from kafka_records_tables.coordinator.records.named_records import Event


class GroupState(NamedTuple):
    """The state that a coordinator reports for a group after loading the log up to some record."""

    kind: str
    """classic, simple, consumer, share or streams."""
    state: str | None
    """The state as the coordinator spells it; None if a record cannot be decoded."""
    epoch: int | None
    """The epoch, or the generation of a classic group; None if no record has one."""
    member_count: int | None
    """The number of members; None if the record of a classic group cannot be decoded."""
    topics: frozenset[str] | None
    """The topics that the group subscribes to; None if a coordinator cannot determine them (see
    `subscriptions.HeldGroup.topics`)."""
    is_settled: bool
    """See `Group.is_settled`."""

    @property
    def is_empty(self) -> bool:
        """Whether the group certainly has no member."""
        return self.state == "Empty"


class Transition(NamedTuple):
    """A record about a group, with the group's state before and after it."""

    event: Event
    """The record. For a commit, the key has the group, the topic and the partition, and the value is empty."""
    batch_offset: int
    """Offset of the first record in the same batch of the log, or the record's own offset if the source does not report
    batches. A lingering coordinator (`group.coordinator.append.linger.ms`) puts several writes into one batch."""
    before: GroupState | None
    """The group's state before the record; None if it did not exist."""
    after: GroupState | None
    """The group's state after the record; None if it no longer exists."""
    member_before: Member | None
    member_after: Member | None
    """The member, after the record, that a record of a consumer, share or streams group is about; None if it is not
    about a single member."""
    replaced: Group | None
    """The group that this record ended or replaced."""

    @property
    def group_id(self) -> str:
        return self.event.group_id


def state_of(group: Group | None, before: GroupState | None, event: Event) -> GroupState | None:
    """The state of a group after an event; the object `before` itself if nothing has changed."""
    if group is None:
        return None
    state, kind = group.state, group.shown_kind
    is_told_again = before is None or before.kind != kind or event.record in SUBSCRIPTIONS
    # A streams group without members has no subscriptions.
    if before is None or is_told_again or (kind == STREAMS and "Empty" in (state, before.state)):
        topics = topics_of(group)
    else:
        topics = before.topics
    after = GroupState(kind, state, group.epoch, group.member_count, topics, group.is_settled(state))
    return before if before is not None and after == before else after


class GroupStates:
    """Stores how the states of groups change, and looks up the state at any position in the log. Memory grows with the
    number of groups and the changes since the last call of `forget`."""

    def __init__(self, events: Iterable[Transition] = ()) -> None:
        self._last: dict[str, _Change] = {}
        self._changes: list[_Change] = []
        self._lot: _Lot | None = None
        self.count = 0
        """The changes that were added since the last call of `forget`."""
        for event in events:
            self.add(event)

    def add(self, event: Transition) -> None:
        """Add the events of `GroupLog`, in their order."""
        told, was, now = event.event, event.before, event.after
        group_id, record = told.group_id, told.record
        # The tombstone of a classic group ends the group. Tombstones of members do not end it; if the member does not
        # exist, they change nothing.
        is_changed = now is not was
        is_told = (record in _MEMBERS and (is_changed or not told.is_tombstone)) or (
            record == "GroupMetadata" and now is not None
        )
        if not is_changed and not is_told:
            return
        told_at = _NOWHERE
        if now is not None:
            before = self._last.get(group_id)
            told_at = told.offset if is_told else _NOWHERE if before is None else before.told_at
        change = _Change(group_id, told.offset, now, told_at)
        self._changes.append(change)
        self.count += 1
        self._lot = None
        if now is None:
            self._last.pop(group_id, None)
        else:
            self._last[group_id] = change

    def known(self) -> Iterator[tuple[str, GroupState | None]]:
        """The groups and states that `before` and `after` may return."""
        return ((change.group_id, change.state) for change in self._changes)

    @property
    def remembered(self) -> int:
        """The number of changes that are kept in memory."""
        return len(self._changes)

    def forget(self, offset: int) -> None:
        """Forget the changes needed only for lookups before `offset`."""
        last: dict[str, _Change] = {}
        later: list[_Change] = []
        for change in self._changes:
            if change.offset >= offset:
                later.append(change)
            elif change.state is None:
                last.pop(change.group_id, None)
            else:
                last[change.group_id] = change
        self._changes = sorted(last.values(), key=attrgetter("offset")) + later
        self.count = 0
        self._lot = None

    def before(self, groups: pa.Array, offsets: INT64) -> StatesAt:
        """The states of given groups, each right before the record at the given offset. The two arrays have one element
        per lookup; the result for a null group is null."""
        return self._at(groups, offsets, "left")

    def after(self, groups: pa.Array, offsets: INT64) -> StatesAt:
        """The states of given groups, each right after the record at the given offset. Takes the same arrays as
        `before`."""
        return self._at(groups, offsets, "right")

    def _at(self, groups: pa.Array, offsets: INT64, side: Any) -> StatesAt:
        if self._lot is None:
            self._lot = _Lot(self._changes)
        return self._lot.at(groups, offsets, side)


_NOWHERE: Final = -1

_MEMBERS: Final = frozenset(name for name, role in ROLES.items() if role == MEMBER)


class _Change(NamedTuple):
    group_id: str
    offset: int
    state: GroupState | None
    told_at: int
    """The offset of the last record so far that adds or removes a member; _NOWHERE if there is none."""


class _Lot:
    """Changes in log order, in columns."""

    def __init__(self, changes: list[_Change]) -> None:
        self._groups: dict[str, int] = {}
        self._numbers: dict[GroupState | None, int] = {None: 0}
        groups = [self._groups.setdefault(each.group_id, len(self._groups)) for each in changes]
        numbers = [self._numbers.setdefault(each.state, len(self._numbers)) for each in changes]
        self._offsets = np.array([each.offset for each in changes], np.int64)
        # Groups that never existed get the position after the last change.
        self._number = np.array([*numbers, 0], np.int64)
        self._told_at = np.array([*(each.told_at for each in changes), _NOWHERE], np.int64)
        # Use the position of a change in the list, not its offset. Group and position then fit into one number, so that
        # one binary search finds the last change of a group before a position.
        self._width = len(changes) + 1
        self._sorted = np.sort(np.array(groups, np.int64) * self._width + np.arange(len(changes)))
        self._states = list(self._numbers)

    def at(self, groups: pa.Array, offsets: INT64, side: Any) -> StatesAt:
        encoded = groups if pa.types.is_dictionary(groups.type) else groups.dictionary_encode()
        of_name = np.array([self._groups.get(name, -1) for name in [*encoded.dictionary.to_pylist(), None]], np.int64)
        group = of_name[encoded.indices.fill_null(-1).to_numpy()]
        wanted = group * self._width + np.searchsorted(self._offsets, offsets, side)
        last = np.append(self._sorted, -1)[np.searchsorted(self._sorted, wanted) - 1]
        is_known = (group >= 0) & (last // self._width == group)
        change = np.where(is_known, last % self._width, len(self._offsets))
        return StatesAt(self._number[change], self._states, self._told_at[change])


class StatesAt:
    """The results of a lookup, with one element per lookup: null or False if the group did not exist."""

    def __init__(self, numbers: INT64, states: list[GroupState | None], told_at: INT64) -> None:
        """`numbers` are indexes into `states`, whose first element is None; `told_at` are offsets, or -1."""
        self.numbers = numbers
        self.states = states
        self._told_at = told_at

    @property
    def exists(self) -> FLAGS:
        """Whether there was a group with this id."""
        found: FLAGS = self.numbers > 0
        return found

    @cached_property
    def is_empty(self) -> FLAGS:
        """Whether there was a group that certainly had no member."""
        empty: FLAGS = np.array([state is not None and state.is_empty for state in self.states], np.bool_)[self.numbers]
        return empty

    @cached_property
    def kind(self) -> pa.Array:
        """`GroupState.kind`, as strings."""
        return self._told(pa.string(), lambda state: state.kind)

    @cached_property
    def state(self) -> pa.Array:
        """`GroupState.state`, as strings."""
        return self._told(pa.string(), lambda state: state.state)

    @cached_property
    def epoch(self) -> pa.Array:
        """`GroupState.epoch`, as int32."""
        return self._told(pa.int32(), lambda state: state.epoch)

    @cached_property
    def member_count(self) -> pa.Array:
        """`GroupState.member_count`, as int32."""
        return self._told(pa.int32(), lambda state: state.member_count)

    @property
    def told_at(self) -> pa.Array:
        """Offset of the last record that added or removed a member of the group, as int64; null if there was no such
        record or no such group."""
        return pa.array(self._told_at, mask=self._told_at == _NOWHERE)

    def _told(self, kind: pa.DataType, told: Callable[[GroupState], Any]) -> pa.Array:
        values = [None if state is None else told(state) for state in self.states]
        return pa.array(values, kind).take(pa.array(self.numbers))
