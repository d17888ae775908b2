"""Checks that the assignments of a group are consistent: every partition once, to an existing member (KIP-848).

A broker-side assignor assigns every partition of every subscribed topic exactly once (`UniformAssignor`,
`RangeAssignor`; `SimpleAssignor` of share groups; `StickyTaskAssignor` of tasks). In classic groups, a member computes
the assignments; in a share group, several members may have the same partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_tables.coordinator.groups import task_processes
from kafka_records_tables.coordinator.groups.group_model import (
    CONSUMER,
    CURRENT,
    MEMBER,
    ROLES,
    SHARE,
    STREAMS,
    TARGET_OF_MEMBER,
    Group,
    picked_with,
)
from kafka_records_tables.tables.checking import assignment_gaps
from kafka_records_tables.tables.checking.assignment_gaps import UNDER_WAY, LeftOut, Topics, left_out, subtopologies
from kafka_records_tables.tables.checking.check_rows import CheckRow
from kafka_records_tables.tables.group_rows import named_topics
from kafka_records_tables.tables.words.check_words import (
    ASSIGNED_TWICE,
    BROKEN,
    TRANSIENT,
    UNASSIGNED,
    UNKNOWN_MEMBER,
    UNKNOWN_TASK,
)

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.records.named_records import Event, Picked

_LISTS: Final[Picked] = {
    "ConsumerGroupCurrentMemberAssignment": ("assigned_partitions", "partitions_pending_revocation"),
    "ConsumerGroupTargetAssignmentMember": ("topic_partitions",),
    "ShareGroupCurrentMemberAssignment": ("assigned_partitions",),
    "ShareGroupTargetAssignmentMember": ("topic_partitions",),
    "StreamsGroupCurrentMemberAssignment": ("active_tasks", "active_tasks_pending_revocation"),
    "StreamsGroupTargetAssignmentMember": ("active_tasks",),
}
"""The fields with assignments, by record."""

PICKED: Final[Picked] = picked_with(
    named_topics.PICKED,
    assignment_gaps.PICKED,
    {"GroupMetadata": ("members.group_instance_id", "members.member_id", "members.subscription")},
    task_processes.PICKED,
    {name: ("previous_member_epoch",) for name in _LISTS if ROLES[name] == CURRENT},
    _LISTS,
)
"""The fields of each record that the replays and the checks need."""

_MOST_SHOWN: Final = 10

_SAYS: Final = {CURRENT: "current", TARGET_OF_MEMBER: "target"}


class _Part(NamedTuple):
    """A partition, with its topic id, or a task, with its subtopology."""

    of: str
    number: int


def assignment_problems(group_id: str, group: Group, topics: Topics) -> Iterator[CheckRow]:
    """The problems of a group whose records could all be decoded."""
    if group.kind not in (CONSUMER, SHARE, STREAMS):
        return
    for role in (TARGET_OF_MEMBER, CURRENT):
        events = group.of_role(role)
        for member_id, event in events.items():
            if (MEMBER, member_id) not in group.records:
                yield _unknown_member(group_id, group, member_id, role, event)
        shares = {member: _parts(event) for member, event in events.items()}
        if group.kind != SHARE:
            yield from _twice(group_id, group, role, shares, events, topics)
        if role == TARGET_OF_MEMBER and group.members:
            yield from _unknown_tasks(group_id, group, shares, events, topics)
            yield from _unassigned(group_id, group, shares, events, topics)


def _parts(event: Event) -> set[_Part]:
    found: set[_Part] = set()
    for topics in _lists(event):
        last = {topic.get("topic_id", topic.get("subtopology_id")): topic["partitions"] for topic in topics}
        found.update(_Part(of, number) for of, numbers in last.items() for number in numbers)
    return found


def _unknown_member(group_id: str, group: Group, member_id: str, role: str, event: Event) -> CheckRow:
    count = sum(len(topic["partitions"]) for topics in _lists(event) for topic in topics)
    what = "tasks" if group.kind == STREAMS else "partitions"
    detail = (
        f"the {_SAYS[role]} assignment of {member_id!r} has {count} {what}, but according to the records it is not a "
        f"member: nobody reads them, and the group cannot be deleted"
    )
    return CheckRow(UNKNOWN_MEMBER, BROKEN, detail, event.offset, event.timestamp_ms, group_id, member_id=member_id)


def _lists(event: Event) -> Iterable[Any]:
    return (getattr(event.value, name) for name in _LISTS[event.record]) if event.value else ()


def _twice(
    group_id: str,
    group: Group,
    role: str,
    shares: Mapping[str, set[_Part]],
    events: Mapping[str, Event],
    topics: Topics,
) -> Iterator[CheckRow]:
    """Yields rows in log order, so that they show the record that assigns a partition for the second time."""
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


def _unknown_tasks(
    group_id: str, group: Group, shares: Mapping[str, set[_Part]], events: Mapping[str, Event], topics: Topics
) -> Iterator[CheckRow]:
    there = subtopologies(group) if group.kind == STREAMS else None
    if there is None:
        return
    level, under_way = (TRANSIENT, f" while the group is {group.state}") if group.state in UNDER_WAY else (BROKEN, "")
    for member_id, share in shares.items():
        for of in sorted({part.of for part in share}.difference(there)):
            first = min(part for part in share if part.of == of)
            detail = (
                f"the target assignment of {member_id!r} has tasks of subtopology {of!r}, which the topology of the "
                f"group does not have{under_way}"
            )
            yield _about(UNKNOWN_TASK, level, detail, group_id, group, first, topics, events[member_id], member_id)


def _unassigned(
    group_id: str, group: Group, shares: Mapping[str, set[_Part]], events: Mapping[str, Event], topics: Topics
) -> Iterator[CheckRow]:
    assigned: dict[str, set[int]] = {}
    for share in shares.values():
        for of, number in sorted(share):
            assigned.setdefault(of, set()).add(number)
    newest = max(events.values(), key=lambda event: event.offset, default=None)
    for each in left_out(group, assigned, topics):
        part = _Part(each.of, each.ranges[0][0])
        detail = _told_left_out(group, each, topics)
        yield _about(UNASSIGNED, each.level, detail, group_id, group, part, topics, newest)


def _told_left_out(group: Group, each: LeftOut, topics: Topics) -> str:
    ranges = each.ranges
    count = sum(last - first + 1 for first, last in ranges)
    shown = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in ranges[:_MOST_SHOWN])
    more = f" and {len(ranges) - _MOST_SHOWN} more ranges" if len(ranges) > _MOST_SHOWN else ""
    what = "task" if group.kind == STREAMS else "partition"
    place = (
        f"of subtopology {each.of!r}" if group.kind == STREAMS else f"of topic {topics.names.get(each.of, each.of)!r}"
    )
    are = "are" if count > 1 else "is"
    return f"{count} {what}{'s' * (count > 1)} {place} {are} in no target assignment {each.why}: {shown}{more}"


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
