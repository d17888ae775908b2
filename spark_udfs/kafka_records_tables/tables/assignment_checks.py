"""Whether the assignments of a group fit together: every partition once, to a member that is there (KIP-848).

What an assignor of the broker gives out covers every partition of every topic that a member subscribes to
(`UniformAssignor`, `RangeAssignor`; for tasks `StickyTaskAssignor`), each once. Classic groups assign among themselves,
and several members of a share group may have the same partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_tables.tables import named_topics
from kafka_records_tables.tables.check_rows import CheckRow
from kafka_records_tables.tables.check_words import ASSIGNED_TWICE, BROKEN, TRANSIENT, UNASSIGNED, UNKNOWN_MEMBER
from kafka_records_tables.tables.group_replay import (
    CONSUMER,
    CURRENT,
    MEMBER,
    REGEX,
    SHARE,
    STREAMS,
    TARGET_OF_MEMBER,
    TOPICS,
    TOPOLOGY,
    Group,
    picked_with,
)

if TYPE_CHECKING:
    from kafka_records_tables.tables.fold import Event, Picked

PICKED: Final[Picked] = picked_with(
    {
        **named_topics.PICKED,
        "GroupMetadata": ("members.group_instance_id",),
        "ConsumerGroupMemberMetadata": ("subscribed_topic_names", "subscribed_topic_regex"),
        "ConsumerGroupCurrentMemberAssignment": ("assigned_partitions", "partitions_pending_revocation"),
        "ConsumerGroupTargetAssignmentMember": ("topic_partitions",),
        "ConsumerGroupRegularExpression": ("topics",),
        "ShareGroupCurrentMemberAssignment": ("assigned_partitions",),
        "ShareGroupTargetAssignmentMetadata": ("assignment_epoch",),
        "ShareGroupTargetAssignmentMember": ("topic_partitions",),
        "StreamsGroupCurrentMemberAssignment": ("active_tasks", "active_tasks_pending_revocation"),
        "StreamsGroupTargetAssignmentMember": ("active_tasks",),
    }
)
"""What the replays and the checks want of each record."""

KEPT: Final = (*named_topics.KEPT, MEMBER, CURRENT, TARGET_OF_MEMBER, REGEX, TOPOLOGY)
"""The roles of the records that the checks look at."""

_BEFORE: Final = 2
"""Members of a current assignment that the replay itself wants: epoch and state."""

_UNDER_WAY: Final = ("Assigning", "NotReady")
"""States in which the target assignment is about to be made anew."""

_MOST_SHOWN: Final = 10

_SAYS: Final = {CURRENT: "current", TARGET_OF_MEMBER: "target"}


class _Part(NamedTuple):
    """A partition by the id of its topic, or a task by its subtopology."""

    of: str
    number: int


class Topics(NamedTuple):
    """What is known of topics."""

    names: Mapping[str, str]
    """By their ids."""
    counts: Mapping[str, int]
    """How many partitions they have now, by their names."""


def assignment_problems(group_id: str, group: Group, topics: Topics) -> Iterator[CheckRow]:
    """The problems of one group all of whose records could be decoded."""
    if group.kind not in (CONSUMER, SHARE, STREAMS):
        return
    for role in (TARGET_OF_MEMBER, CURRENT):
        events = {member: event for (of, member), event in group.last.items() if of == role}
        for member_id, event in events.items():
            if (MEMBER, member_id) not in group.last:
                yield _unknown_member(group_id, group, member_id, role, event)
        if group.kind == SHARE:
            continue
        shares = {member: _parts(role, event) for member, event in events.items()}
        yield from _twice(group_id, group, role, shares, events, topics)
        if role == TARGET_OF_MEMBER and group.members:
            yield from _unassigned(group_id, group, shares, events, topics)


def _parts(role: str, event: Event) -> set[_Part]:
    found: set[_Part] = set()
    for topics in _lists(role, event):
        last = {topic.get("topic_id", topic.get("subtopology_id")): topic["partitions"] for topic in topics}
        found.update(_Part(of, number) for of, numbers in last.items() for number in numbers)
    return found


def _unknown_member(group_id: str, group: Group, member_id: str, role: str, event: Event) -> CheckRow:
    count = sum(len(topic["partitions"]) for topics in _lists(role, event) for topic in topics)
    what = "tasks" if group.kind == STREAMS else "partitions"
    detail = (
        f"the {_SAYS[role]} assignment of {member_id!r} has {count} {what}, and no record makes it a member: nobody "
        "reads them, and the group cannot be deleted"
    )
    return CheckRow(UNKNOWN_MEMBER, BROKEN, detail, event.offset, event.timestamp_ms, group_id, member_id=member_id)


def _lists(role: str, event: Event) -> Iterable[Any]:
    return (event.value or ())[_BEFORE if role == CURRENT else 0 :]


def _twice(
    group_id: str,
    group: Group,
    role: str,
    shares: Mapping[str, set[_Part]],
    events: Mapping[str, Event],
    topics: Topics,
) -> Iterator[CheckRow]:
    """In the order of the log, so that the record which gives a partition for the second time is the one shown."""
    owners: dict[_Part, str] = {}
    for member_id in sorted(shares, key=lambda member: events[member].offset):
        for part in sorted(shares[member_id]):
            first = owners.setdefault(part, member_id)
            if first == member_id:
                continue
            detail = (
                f"{_called(group, part, topics)} is in the {_SAYS[role]} assignments of {first!r} and {member_id!r}"
            )
            yield _about(ASSIGNED_TWICE, BROKEN, detail, group_id, group, part, topics, events[member_id], member_id)


def _unassigned(
    group_id: str, group: Group, shares: Mapping[str, set[_Part]], events: Mapping[str, Event], topics: Topics
) -> Iterator[CheckRow]:
    assigned: dict[str, set[int]] = {}
    for share in shares.values():
        for of, number in share:
            assigned.setdefault(of, set()).add(number)
    level = TRANSIENT if group.state in _UNDER_WAY else BROKEN
    newest = max(events.values(), key=lambda event: event.offset, default=None)
    remembered = _remembered(group)
    if group.kind == CONSUMER and (remembered or topics.counts):
        subscribed = _subscribed(group)
        counted = {of for of, name in topics.names.items() if name in topics.counts}
        for of in sorted(remembered.keys() | counted):
            if topics.names.get(of) in subscribed:
                assigned.setdefault(of, set())
    for of, numbers in assigned.items():
        end = max(remembered.get(of, 0), max(numbers, default=-1) + 1)
        missing = list(_gaps(numbers, end))
        if missing:
            yield _left_out(group_id, group, of, missing, level, newest, topics)
        count = topics.counts.get(topics.names.get(of, ""), 0) if group.kind == CONSUMER else 0
        if count > end:
            yield _left_out(group_id, group, of, [(end, count - 1)], TRANSIENT, newest, topics)


def _gaps(numbers: set[int], end: int) -> Iterator[tuple[int, int]]:
    """The ranges of numbers below `end` that are not there; numbers may be hostile and far apart."""
    expected = 0
    for number in (*sorted(number for number in numbers if 0 <= number < end), end):
        if number > expected:
            yield expected, number - 1
        expected = number + 1


def _left_out(
    group_id: str,
    group: Group,
    of: str,
    ranges: list[tuple[int, int]],
    level: str,
    event: Event | None,
    topics: Topics,
) -> CheckRow:
    count = sum(last - first + 1 for first, last in ranges)
    shown = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in ranges[:_MOST_SHOWN])
    more = f" and {len(ranges) - _MOST_SHOWN} more ranges" if len(ranges) > _MOST_SHOWN else ""
    what = "task" if group.kind == STREAMS else "partition"
    place = f"of subtopology {of!r}" if group.kind == STREAMS else f"of topic {topics.names.get(of, of)!r}"
    why = f"while the group is {group.state}" if group.state in _UNDER_WAY else "while the group has members"
    if level == TRANSIENT and group.state not in _UNDER_WAY:
        why = "and the topic has it now: the next heartbeat of a member starts an assignment with it"
    detail = f"{count} {what}{'s' * (count > 1)} {place} in no target assignment {why}: {shown}{more}"
    part = _Part(of, ranges[0][0])
    return _about(UNASSIGNED, level, detail, group_id, group, part, topics, event)


def _remembered(group: Group) -> dict[str, int]:
    """How many partitions topics have, by their ids, as a group of a broker before 4.1 remembers them."""
    found: dict[str, int] = {}
    for (role, _), event in group.last.items():
        if role == TOPICS and event.value:
            found |= {topic["topic_id"]: topic["num_partitions"] for topic in event.value[-1]}
    return found


def _subscribed(group: Group) -> set[str]:
    """The topics that members subscribe to by name, or by an expression that has been resolved."""
    found: set[str] = set()
    resolved = {key: event.value[0] for (role, key), event in group.last.items() if role == REGEX and event.value}
    for (role, _), event in group.last.items():
        if role == MEMBER and event.value:
            names, regex = event.value[:2]
            found.update(names, resolved.get(regex, ()))
    return found


def _called(group: Group, part: _Part, topics: Topics) -> str:
    if group.kind == STREAMS:
        return f"active task {part.of}_{part.number}"
    return f"partition {part.number} of topic {topics.names.get(part.of, part.of)!r}"


def _about(
    check: str,
    level: str,
    detail: str,
    group_id: str,
    group: Group,
    part: _Part,
    topics: Topics,
    event: Event | None,
    member_id: str | None = None,
) -> CheckRow:
    is_task = group.kind == STREAMS
    return CheckRow(
        check,
        level,
        detail,
        None if event is None else event.offset,
        None if event is None else event.timestamp_ms,
        group_id,
        member_id=member_id,
        topic=None if is_task else topics.names.get(part.of),
        topic_id=None if is_task else part.of,
        partition=part.number,
    )
