"""Finds partitions that are missing in a group's target assignment, although its assignor should assign everything.

Partition counts are known from running brokers, from groups of brokers before 4.1, from a share group's lists of
initialized partitions, and from a streams group's topology as far as it determines them. Since 4.1 a group keeps only a
hash of its topics (`metadataHash`). The partition record that streams groups once had (type 18) was never released.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafka_records_tables.coordinator.groups.group_model import (
    CONSUMER,
    CURRENT,
    MEMBER,
    REGEX,
    SHARE,
    SHARE_STATE,
    SHARE_TARGET,
    STREAMS,
    TOPICS,
    TOPOLOGY,
    Group,
)
from kafka_records_tables.tables.words.check_words import BROKEN, TRANSIENT

PICKED: Final = {
    "ConsumerGroupMemberMetadata": (
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "classic_member_metadata.session_timeout_ms",
    ),
    "ConsumerGroupRegularExpression": ("topics",),
    "ShareGroupMemberMetadata": ("subscribed_topic_names",),
    "ShareGroupTargetAssignmentMetadata": ("assignment_epoch",),
    "StreamsGroupTopology": (
        "subtopologies.subtopology_id",
        "subtopologies.source_topics",
        "subtopologies.repartition_source_topics.name",
        "subtopologies.repartition_source_topics.partitions",
    ),
}
"""The fields of each record that are needed in addition to those of the replay and `named_topics.PICKED`."""

UNDER_WAY: Final = ("Assigning", "NotReady")
"""States in which a new target assignment is about to be computed."""

_WITH_MEMBERS: Final = "while the group has members"
_TOPIC_HAS_IT: Final = "and the topic has it now: the next heartbeat of a member starts an assignment with it"
_BROUGHT_ALONG: Final = "of a group with classic members: its target may be what they had assigned among themselves"
_NOT_READY: Final = "of a group in which nobody has a task: topics may have been missing when the target was computed"
_BEING_MADE: Final = "while the target assignment is being computed"
_STATE_SINCE: Final = "and their share state came later: the next heartbeat of a member starts an assignment with them"
_NO_STATE: Final = "because they have no share state yet: the next heartbeat of a member requests it"

Ranges = list[tuple[int, int]]
"""Ranges of partition numbers, first and last."""


class Topics(NamedTuple):
    """Facts about topics."""

    names: Mapping[str, str]
    """Topic names by id, including deleted topics."""
    now: Mapping[str, str]
    """The names of existing topics, by id."""
    counts: Mapping[str, int]
    """The present partition counts, by name."""


class LeftOut(NamedTuple):
    """Partitions of a topic, or tasks of a subtopology, that are in no member's target assignment."""

    of: str
    """The id of the topic, or the subtopology."""
    ranges: Ranges
    level: str
    why: str
    """The reason, as the end of a sentence about these partitions or tasks."""


def left_out(group: Group, assigned: Mapping[str, set[int]], topics: Topics) -> Iterator[LeftOut]:
    """The gaps of a group with members whose records could all be decoded. `assigned` has all numbers in its target
    assignments, by topic or subtopology."""
    if group.kind == SHARE:
        return _of_share_group(group, assigned, topics)
    expected = _of_topics(group, assigned, topics) if group.kind == CONSUMER else _of_subtopologies(group, topics)
    return _of_numbers(group, assigned, expected)


def subtopologies(group: Group) -> Collection[str] | None:
    """The subtopologies of a streams group; None if no record contains its topology."""
    told = _topology(group)
    return None if told is None else [subtopology_id for subtopology_id, *_ in told]


# -- consumer and streams groups: a topic has all numbers from zero on -------------------------------------------------

_Expected = Mapping[str, tuple[int, int]]
"""By topic or subtopology, how many partitions or tasks there were when the target assignment was made, and how many
there are now; 0 if unknown."""


def _of_numbers(group: Group, assigned: Mapping[str, set[int]], expected: _Expected) -> Iterator[LeftOut]:
    level, why = _level_of_gaps(group, assigned)
    for of in dict.fromkeys((*assigned, *expected)):
        numbers, (least, count) = assigned.get(of, set()), expected.get(of, (0, 0))
        end = max(least, max(numbers, default=-1) + 1)
        missing = list(_gaps(numbers, end))
        if missing:
            yield LeftOut(of, missing, level, why)
        if count > end:
            yield LeftOut(of, [(end, count - 1)], TRANSIENT, _TOPIC_HAS_IT)


def _level_of_gaps(group: Group, assigned: Mapping[str, set[int]]) -> tuple[str, str]:
    """The level of a gap in a target assignment, and the end of a sentence about it."""
    if group.state in UNDER_WAY:
        return TRANSIENT, f"while the group is {group.state}"
    if _may_be_brought_along(group):
        return TRANSIENT, _BROUGHT_ALONG
    if group.kind == STREAMS and not any(assigned.values()):
        # As long as a source or internal topic is missing, the target assignment is empty (`TargetAssignmentBuilder` of
        # streams groups). Records do not show whether one is missing.
        return TRANSIENT, _NOT_READY
    return BROKEN, _WITH_MEMBERS


def _may_be_brought_along(group: Group) -> bool:
    """Whether the target assignment may come from the group's classic members, which made it themselves.

    A classic group that is converted to the consumer protocol keeps that assignment as its target, and its generation
    as its epoch, until the next assignment (`ConsumerGroup.fromClassicGroup`). A member that replaces a static one, or
    that subscribes by regular expression, does not necessarily cause one. The members also keep that epoch as their
    previous epoch; for a member that joins later, it is 0. So if a member reached the target from an earlier epoch, a
    broker-side assignor made it. If no member has reached it yet, the log does not distinguish the two as long as the
    group has a classic member.
    """
    if group.kind != CONSUMER:
        return False
    for event in group.of_role(CURRENT).values():
        value = event.value
        if value and 0 < value.previous_member_epoch < value.member_epoch == group.target_epoch:
            return False
    members = (event.value for event in group.of_role(MEMBER).values() if event.value)
    return any(value.classic_member_metadata_session_timeout_ms for value in members)


def _gaps(numbers: Collection[int], end: int) -> Iterator[tuple[int, int]]:
    """The ranges of missing numbers below `end`. Numbers may be invalid and far apart."""
    expected = 0
    for number in (*sorted(number for number in numbers if 0 <= number < end), end):
        if number > expected:
            yield expected, number - 1
        expected = number + 1


def _of_topics(group: Group, assigned: Mapping[str, set[int]], topics: Topics) -> _Expected:
    remembered, subscribed = _remembered(group), _subscribed(group)
    counted = {of: topics.counts[name] for of, name in topics.now.items() if name in topics.counts}
    wanted = [of for of in sorted(remembered.keys() | counted) if topics.names.get(of) in subscribed]
    # The next assignment drops a topic without subscribers, regardless of its present partition count.
    is_over = {of for of in assigned if topics.names.get(of) not in (None, *subscribed)}
    return {of: (0, 0) if of in is_over else (remembered.get(of, 0), counted.get(of, 0)) for of in (*assigned, *wanted)}


def _remembered(group: Group) -> dict[str, int]:
    """By topic id, the partition counts that a group of a broker before 4.1 stores."""
    found: dict[str, int] = {}
    event = group.record(TOPICS)
    if event is not None and event.value:
        found |= {topic["topic_id"]: topic["num_partitions"] for topic in event.value.topics}
    return found


def _subscribed(group: Group) -> set[str]:
    """The topics that members subscribe to by name or by a resolved regular expression."""
    found: set[str] = set()
    resolved = {regex: event.value.topics for regex, event in group.of_role(REGEX).items() if event.value}
    for event in group.of_role(MEMBER).values():
        if event.value:
            found.update(event.value.subscribed_topic_names)
            if group.kind == CONSUMER:
                found.update(resolved.get(event.value.subscribed_topic_regex, ()))
    return found


def _of_subtopologies(group: Group, topics: Topics) -> _Expected:
    """The number of tasks by subtopology: the partition count of its largest input topic, and at least one
    (`InternalTopicManager.computeNumberOfTasks`)."""
    found: dict[str, tuple[int, int]] = {}
    for subtopology_id, sources, repartitions, partitions in _topology(group) or ():
        count = max((topics.counts.get(topic, 0) for topic in (*sources, *repartitions)), default=0)
        found[subtopology_id] = max(1, *partitions), count
    return found


def _topology(group: Group) -> list[tuple[Any, ...]] | None:
    """For each subtopology, its id, the topics it reads, and its repartition topics with the partition counts that the
    topology requires, or 0 if these depend on other topics."""
    event = group.record(TOPOLOGY)
    if event is None or not event.value:
        return None
    value = event.value
    partitions = ([0, *each] for each in value.subtopologies_repartition_source_topics_partitions)
    sources, repartitions = value.subtopologies_source_topics, value.subtopologies_repartition_source_topics_name
    return list(zip(value.subtopologies_subtopology_id, sources, repartitions, partitions, strict=True))


# -- share groups: what is initialized is given out --------------------------------------------------------------------


def _of_share_group(group: Group, assigned: Mapping[str, set[int]], topics: Topics) -> Iterator[LeftOut]:
    """Checks the partitions with state, because the assignor gives each of these to one or more members
    (`SimpleAssignor`)."""
    state, target = group.record(SHARE_STATE), group.record(SHARE_TARGET)
    if state is None or not state.value:
        return
    lists, subscribed = state.value, _subscribed(group)
    listed: dict[str, set[int]] = {topic["topic_id"]: set(topic["partitions"]) for topic in lists.initializing_topics}
    for topic in lists.initialized_topics:
        of, numbers = topic["topic_id"], set(topic["partitions"])
        listed[of] = listed.get(of, set()) | numbers
        missing = numbers - assigned.get(of, set())
        is_gone = bool(topics.now) and of not in topics.now
        if not missing or is_gone or topic["topic_name"] not in subscribed:
            continue
        if target is None or not target.value or target.value.assignment_epoch != group.epoch:
            yield LeftOut(of, _ranges(missing), TRANSIENT, _BEING_MADE)
        elif state.offset > target.offset:
            yield LeftOut(of, _ranges(missing), TRANSIENT, _STATE_SINCE)
        else:
            unless = "" if assigned.get(of) else ", unless the topic was deleted"
            yield LeftOut(of, _ranges(missing), BROKEN, f"{_WITH_MEMBERS}{unless}")
    gone = {topic["topic_id"] for topic in lists.deleting_topics}
    for of, name in sorted(topics.now.items()):
        if name in subscribed and of not in gone:
            stateless = list(_gaps(listed.get(of, set()) | assigned.get(of, set()), topics.counts.get(name, 0)))
            if stateless:
                yield LeftOut(of, stateless, TRANSIENT, _NO_STATE)


def _ranges(numbers: Collection[int]) -> Ranges:
    found: Ranges = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found
