"""In which state a group was: after a record, and looked up for many places of the log at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.group_replay import STREAMS
from kafka_records_tables.tables.subscriptions import PICKED as SUBSCRIPTIONS
from kafka_records_tables.tables.subscriptions import topics_of

if TYPE_CHECKING:
    from kafka_records_tables.tables.fold import Event
    from kafka_records_tables.tables.group_events import GroupEvent
    from kafka_records_tables.tables.group_replay import Group


class GroupState(NamedTuple):
    """What a coordinator that had loaded the log up to a record would say of a group."""

    kind: str
    """classic, simple, consumer, share or streams."""
    state: str | None
    """As the coordinator spells it; None where a record cannot be decoded."""
    epoch: int | None
    """Epoch, or generation of a classic group; None where no record tells one."""
    member_count: int | None
    """None where the record of a classic group cannot be decoded."""
    topics: frozenset[str] | None
    """What it subscribes to; None where a coordinator cannot tell (`subscriptions.HeldGroup.topics`)."""

    @property
    def is_empty(self) -> bool:
        """Whether it is known to have no member."""
        return self.state == "Empty"


def state_of(group: Group | None, before: GroupState | None, event: Event) -> GroupState | None:
    """The state of a group behind an event; `before` itself where nothing has changed."""
    if group is None:
        return None
    state, kind = group.state, group.shown_kind
    is_told_anew = before is None or before.kind != kind or event.record in SUBSCRIPTIONS
    # A streams group without members subscribes to nothing.
    if before is None or is_told_anew or (kind == STREAMS and "Empty" in (state, before.state)):
        topics = topics_of(group)
    else:
        topics = before.topics
    after = GroupState(kind, state, group.epoch, group.member_count, topics)
    return before if after == before else after


class GroupStates:
    """Every change of state of every group, to ask for the state at places of the log. Memory follows the changes."""

    def __init__(self, events: Iterable[GroupEvent] = ()) -> None:
        self._groups: dict[str, int] = {}
        self._numbers: dict[GroupState | None, int] = {None: 0}
        self._changes: list[tuple[int, int, int]] = []
        for event in events:
            self.add(event)

    def add(self, event: GroupEvent) -> None:
        """Add what `GroupLog` gives, in its order."""
        if event.after is not event.before:
            group = self._groups.setdefault(event.group_id, len(self._groups))
            number = self._numbers.setdefault(event.after, len(self._numbers))
            self._changes.append((group, event.event.offset, number))

    def before(self, groups: pa.Array, offsets: INT64) -> StatesAt:
        """The states of some groups, each right before the record at an offset. Elements go together; a null is no
        group."""
        return self._at(groups, offsets, "left")

    def after(self, groups: pa.Array, offsets: INT64) -> StatesAt:
        """The same, each right behind the record at an offset."""
        return self._at(groups, offsets, "right")

    def _at(self, groups: pa.Array, offsets: INT64, side: Any) -> StatesAt:
        changes = np.array(self._changes, np.int64).reshape(-1, 3)
        encoded = groups if pa.types.is_dictionary(groups.type) else groups.dictionary_encode()
        of_name = np.array([self._groups.get(name, -1) for name in [*encoded.dictionary.to_pylist(), None]], np.int64)
        group = of_name[encoded.indices.fill_null(-1).to_numpy()]
        # Changes are in the order of the log, so the place of one among them stands for its offset. Group and place are
        # one number then, and one sorted search finds the last change of a group before a place.
        width = len(changes) + 1
        there = np.sort(changes[:, 0] * width + np.arange(len(changes)))
        wanted = group * width + np.searchsorted(changes[:, 1], offsets, side)
        last = np.append(there, -1)[np.searchsorted(there, wanted) - 1]
        is_known = (group >= 0) & (last // width == group)
        numbers = np.where(is_known, np.append(changes[:, 2], 0)[np.where(is_known, last % width, 0)], 0)
        return StatesAt(numbers, list(self._numbers))


class StatesAt:
    """States, an element for each that was asked about; null and False where there was no group."""

    def __init__(self, numbers: INT64, states: list[GroupState | None]) -> None:
        """`numbers` are places in `states`, the first of which is None."""
        self.numbers = numbers
        self.states = states

    @property
    def exists(self) -> FLAGS:
        """Whether there was a group of that name."""
        found: FLAGS = self.numbers > 0
        return found

    @cached_property
    def is_empty(self) -> FLAGS:
        """Whether there was a group known to have no member."""
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

    def subscribes_to(self, topics: pa.Array) -> pa.Array:
        """Whether each group subscribed to a topic; null where there was no group, or a coordinator could not tell."""
        encoded = topics if pa.types.is_dictionary(topics.type) else topics.dictionary_encode()
        names = encoded.dictionary.to_pylist()
        width = len(names) + 1
        pairs = self.numbers * width + encoded.indices.fill_null(len(names)).to_numpy()
        asked, inverse = np.unique(pairs, return_inverse=True)
        answers = [
            self._subscribes(number, topic, names) for number, topic in (divmod(pair, width) for pair in asked.tolist())
        ]
        return pa.array(answers, pa.bool_()).take(pa.array(inverse))

    def _subscribes(self, number: int, topic: int, names: list[str]) -> bool | None:
        state = self.states[number]
        if state is None or state.topics is None or topic == len(names):
            return None
        return names[topic] in state.topics

    def _told(self, kind: pa.DataType, told: Callable[[GroupState], Any]) -> pa.Array:
        values = [None if state is None else told(state) for state in self.states]
        return pa.array(values, kind).take(pa.array(self.numbers))
