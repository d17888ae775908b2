"""Topics that a group began to read shortly before its backlog began to grow, and what it handles with and without
them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.cleaned_loops import is_cut
from kafka_records_tables.report.facts.group_facts import (
    LogEnds,
    Offset,
    Place,
    Span,
    committed_at,
    gains_of,
    member_lives,
)
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.rule_context import MINUTE_MS

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

_EARLIER_MS: Final = MINUTE_MS
"""How long before the backlog began to grow a group may have got the topic that is the cause."""
_LATER_MS: Final = MINUTE_MS // 3
"""How long after that, because the beginning is one of sixty moments."""
_AS_MUCH: Final = 0.8
"""A group handles as much as before if it handles this share of what it handled then."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that a group began to read while it already read others."""

    topic: str
    given_ms: int
    """When the group got it."""
    given_at: tuple[int, int]
    """Partition and offset of the record that shows it."""
    made: Mapping[str, Any] | None
    """The row of `topic_changes` with its creation, if it was created after the group had begun to read others."""
    regex: str | None
    """The regular expression of a member's subscription that matches it; None if no record has one."""
    is_of_old_members: bool
    """Whether members that already were in the group got it, so that nobody restarted them with other settings."""
    places: list[Place]
    others: list[Place]
    """The partitions of the other topics of the group."""
    handled_before: float
    """Records per second of all topics that the group handled before it got the topic."""
    handled: float
    """Records per second of all topics that the group has handled since the backlog began to grow."""
    written: float
    """Records per second that have been written to the topic since."""
    written_to_others: float
    """Records per second that have been written to the other topics since."""
    handled_of_it: float
    """Records per second of the topic itself that the group has handled since."""
    waiting: int
    """Records of the topic that wait."""
    waiting_in_others: int
    """Records that wait in the other topics."""
    handled_in_all: int
    """All records of the topic that the group has handled."""

    @property
    def is_proved(self) -> bool:
        """Whether the group handles as much as before, which is enough for its other topics, but not for this one,
        which may also have had old records."""
        is_as_much = self.handled >= _AS_MUCH * self.handled_before
        is_too_much = self.handled < self.written + self.written_to_others or self.waiting > self.waiting_in_others
        return is_as_much and self.written_to_others <= self.handled and is_too_much

    @property
    def other_topics(self) -> list[str]:
        """The names of the other topics."""
        return sorted({topic for topic, _ in self.others})


def new_topic(
    context: RuleContext,
    group: str,
    spans: Mapping[Offset, Sequence[Span]],
    ends: LogEnds,
    times: tuple[int, int],
    topic: str,
) -> NewTopic | None:
    """The topic that a group got when its backlog in `topic` began to grow; it may be `topic` itself, or another one to
    which it gives most of its time. `times` are those between which the backlog grew. None if there is no such topic,
    or if the log shows too little."""
    since_ms, until_ms = times
    own = {key[1:]: list(of_place) for key, of_place in spans.items() if key[0] == group and of_place}
    firsts = {place: of_place[0].from_ms or 0 for place, of_place in own.items()}
    began = min(firsts.values(), default=0)
    given = _given(context, group, own)
    near_ms = max(_EARLIER_MS, (until_ms - since_ms) // 10)
    found = [
        (name, *when)
        for name, when in given.items()
        if -_LATER_MS <= since_ms - when[0] <= near_ms and when[0] - began >= context.limit("too_slow.lasts")
    ]
    if len(found) != 1 or is_cut(context, group, found[0][1]):
        return None
    name, given_ms, given_at = found[0]
    places = [place for place in own if place[0] == name]
    others = [place for place in own if place[0] != name and firsts[place] < given_ms]
    if not others or len(places) + len(others) < len(own):
        return None
    handled_before = _handled(own, others, began, given_ms)
    handled_of_it = _handled(own, places, since_ms, until_ms)
    handled = handled_of_it + _handled(own, others, since_ms, until_ms)
    written, of_others = (_written(ends, each, since_ms, until_ms) for each in (places, others))
    if written is None or of_others is None or (name != topic and 2 * handled_of_it < handled):
        return None
    made = next((each for each in reversed(changes_of(context, name)) if each["event"] == "created"), None)
    made = made if made is not None and began < (made["at_timestamp_ms"] or 0) <= given_ms else None
    then_ms = given_ms - _LATER_MS if made is None else made["at_timestamp_ms"]
    lives = member_lives(context, [group]).get(group, [])
    got = [each for each in lives if name in each.topics and each.was_there(given_ms)]
    return NewTopic(
        name,
        given_ms,
        given_at,
        made,
        _regex(context, group, name),
        bool(got) and all(each.joined_ms is not None and each.joined_ms < then_ms for each in got),
        sorted(places),
        sorted(others),
        handled_before,
        handled,
        written,
        of_others,
        handled_of_it,
        _waiting(context, group, {name}),
        _waiting(context, group, {topic for topic, _ in others}),
        sum(max(own[place][-1].offset - (ends.start(place) or 0), 0) for place in places),
    )


def _given(
    context: RuleContext, group: str, own: Mapping[Place, Sequence[Span]]
) -> dict[str, tuple[int, tuple[int, int]]]:
    """For each topic with committed offsets, when it was first assigned or committed, and the record that shows it."""
    found: dict[str, tuple[int, tuple[int, int]]] = {}
    for (topic, _), of_place in own.items():
        first = of_place[0]
        when = first.from_ms or 0, (first.log_partition, first.log_offset)
        found[topic] = min(found.get(topic, when), when)
    rows = context.rows_of_group("timeline", group)
    rows = kept(rows, equal(rows, "event", "assignment_changed"), pc.is_valid(rows["at_timestamp_ms"]))
    for row in rows.to_pylist():
        for topic, _ in gains_of(context, row):
            if topic in found:
                at = row["at_timestamp_ms"], (row["log_partition"], row["log_offset"])
                found[topic] = min(found[topic], at)
    return found


def _handled(own: Mapping[Place, Sequence[Span]], places: Iterable[Place], from_ms: int, to_ms: int) -> float:
    """Records per second that a group handled in some partitions, from their first commits on."""
    total = 0
    for place in places:
        last = committed_at(own[place], to_ms)
        if last is not None:
            first = committed_at(own[place], from_ms)
            total += max(last - (own[place][0].offset if first is None else first), 0)
    return total * 1000 / max(to_ms - from_ms, 1)


def _written(ends: LogEnds, places: Iterable[Place], from_ms: int, to_ms: int) -> float | None:
    """Records per second that were written to some partitions; None if that is unknown for one of them."""
    total = 0
    for place in places:
        first, last = ends.end_at(place, from_ms), ends.end_at(place, to_ms)
        if first is None or last is None:
            return None
        total += max(last - first, 0)
    return total * 1000 / max(to_ms - from_ms, 1)


def _regex(context: RuleContext, group: str, topic: str) -> str | None:
    """The regular expression of a member's subscription that the coordinator has found to match a topic."""
    for each in context.rows_of_group("members", group).to_pylist():
        if each["subscribed_regex"] and topic in (each["regex_topics"] or ()):
            return str(each["subscribed_regex"])
    return None


def _waiting(context: RuleContext, group: str, topics: set[str]) -> int:
    rows = context.rows_of_group("lag", group)
    return sum(each["lag"] or 0 for each in rows.to_pylist() if each["topic"] in topics)
