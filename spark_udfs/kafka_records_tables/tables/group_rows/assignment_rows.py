"""The assignments of members of replayed groups, as rows of the table `assignments`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from kafka_records_tables.coordinator.groups.embedded import assignment
from kafka_records_tables.coordinator.groups.group_model import (
    CLASSIC,
    CONSUMER,
    CURRENT,
    GROUP,
    MEMBER,
    SHARE,
    SHARE_TARGET,
    STREAMS,
    TARGET,
    TARGET_OF_MEMBER,
    TOPOLOGY,
    Group,
    picked_with,
)
from kafka_records_tables.coordinator.groups.subscriptions import topics_of_members
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.group_rows import named_topics

if TYPE_CHECKING:
    from kafka_records_tables.coordinator.records.named_records import Event, Picked

HAS: Final = "current"
GIVES_UP: Final = "pending_revocation"
IS_TO_HAVE: Final = "target"

_TASKS: Final = ("active", "standby", "warmup")
_OF_TASKS: Final = tuple(f"{kind}_tasks" for kind in _TASKS)

_LISTS: Final[Picked] = {
    "ConsumerGroupTargetAssignmentMember": ("topic_partitions",),
    "ShareGroupTargetAssignmentMember": ("topic_partitions",),
    "StreamsGroupTargetAssignmentMember": _OF_TASKS,
    "ConsumerGroupCurrentMemberAssignment": ("assigned_partitions", "partitions_pending_revocation"),
    "ShareGroupCurrentMemberAssignment": ("assigned_partitions",),
    "StreamsGroupCurrentMemberAssignment": (*_OF_TASKS, *(f"{tasks}_pending_revocation" for tasks in _OF_TASKS)),
}
"""The fields with assignments, by record."""

PICKED: Final[Picked] = picked_with(
    named_topics.PICKED,
    _LISTS,
    {
        "GroupMetadata": ("members",),
        "ShareGroupTargetAssignmentMetadata": ("assignment_epoch",),
        "StreamsGroupTopology": ("subtopologies",),
    },
)
"""The fields of each record that the replay and the rows of assignments need."""

_CLIENT: Final = ("client_id", "client_host")

CONSUMED_PICKED: Final[Picked] = picked_with(
    PICKED,
    {
        "ConsumerGroupMemberMetadata": (*_CLIENT, "subscribed_topic_names"),
        "ConsumerGroupRegularExpression": ("topics",),
        "StreamsGroupMemberMetadata": _CLIENT,
    },
)
"""The fields of each record that `consumed_partitions` needs."""

_ROWS: Final = 65_536


class _Share(NamedTuple):
    """A partition or task of a member. The fields are the columns of the same names."""

    member_id: str
    role: str
    topic: str | None
    topic_id: str | None
    subtopology_id: str | None
    task_type: str | None
    source_topics: list[str] | None
    partition: int
    assignment_epoch: int | None
    log_timestamp_ms: int | None
    log_offset: int


_Row = tuple[str, str, _Share]


def assignment_rows(
    groups: Mapping[str, Group], names: Mapping[str, str], partition: int, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """The assignments in the given groups of a log partition. `names` are topic names by id."""
    rows: list[_Row] = []
    for group_id, group in groups.items():
        for share in _shares(group, names):
            rows.append((group_id, group.shown_kind, share))
            if len(rows) >= _ROWS:
                yield _batch(rows, partition, schema)
                rows = []
    if rows:
        yield _batch(rows, partition, schema)


class Consumed(NamedTuple):
    """A partition that a member of a group has, or a topic that a group has left."""

    group_id: str
    topic: str
    partition: int | None
    member_id: str | None
    client_id: str | None
    client_host: str | None
    has_left: bool = False


def consumed_partitions(groups: Mapping[str, Group], names: Mapping[str, str]) -> Iterator[Consumed]:
    """The partitions that members have now, in groups that commit offsets, each once. (Share groups do not commit
    offsets, and standby tasks of streams groups do not consume.) An active task reads its partition of each topic of
    its subtopology; the log shows which of these topics have that partition.

    If a member has partitions of an unnamed topic id, every subscribed topic without a known id is returned with
    partition None, because one of them may be that topic if the user may not describe it.
    """
    with_ids = {*names.values()}
    for group_id, group in groups.items():
        if group.kind == SHARE:
            continue
        found: dict[tuple[str, int | None], str] = {}
        for share in _shares(group, names):
            if share.role == IS_TO_HAVE or share.task_type not in (None, _TASKS[0]):
                continue
            topics = [share.topic] if share.topic is not None else share.source_topics or ()
            for topic in topics:
                found.setdefault((topic, share.partition), share.member_id)
            if share.topic is None and share.topic_id is not None:
                for topic in group.named:
                    if topic not in with_ids:
                        found.setdefault((topic, None), share.member_id)
        clients = _clients(group) if found else {}
        for (topic, partition), member_id in found.items():
            yield Consumed(group_id, topic, partition, member_id, *clients.get(member_id, (None, None)))


def left_topics(groups: Mapping[str, Group], commits: Iterable[tuple[str, str]]) -> Iterator[Consumed]:
    """The (group, topic) pairs where the group has committed offsets for the topic but does not subscribe to it. Simple
    groups, whose consumers assign partitions to themselves, and groups with a protocol type other than `consumer` have
    no such pairs."""
    subscribed: dict[str, frozenset[str] | None] = {}
    for group_id, topic in commits:
        if group_id not in subscribed:
            group = groups.get(group_id)
            subscribed[group_id] = None if group is None else _all_subscribed(group)
        topics = subscribed[group_id]
        if topics is not None and topic not in topics:
            yield Consumed(group_id, topic, None, None, None, None, has_left=True)


def _all_subscribed(group: Group) -> frozenset[str] | None:
    """The topics that a group subscribes to; None if unknown."""
    if group.kind == CONSUMER:
        return frozenset(group.named)
    if group.kind == STREAMS:
        sources = {} if group.state == "Empty" else _source_topics(group)
        return frozenset(topic for topics in sources.values() for topic in topics)
    event = group.record(GROUP)
    if group.kind != CLASSIC or group.protocol_type != CONSUMER or event is None or event.value is None:
        return None
    return topics_of_members([member["subscription"] for member in event.value.members])


def _clients(group: Group) -> dict[str, tuple[str | None, str | None]]:
    """The client id and host of each member."""
    if group.kind == CLASSIC:
        event = group.record(GROUP)
        members = () if event is None or event.value is None else event.value.members
        return {member["member_id"]: (member["client_id"], member["client_host"]) for member in members}
    values = {member_id: event.value for member_id, event in group.of_role(MEMBER).items()}
    return {each: (value.client_id, value.client_host) for each, value in values.items() if value is not None}


def _batch(rows: list[_Row], partition: int, schema: pa.Schema) -> pa.RecordBatch:
    group_ids, kinds, shares = zip(*rows, strict=True)
    found = dict(zip(_Share._fields, zip(*shares, strict=True), strict=True))
    found |= {"group_id": group_ids, "group_kind": kinds}
    columns: dict[str, Any] = {name: pa.array(values, schema.field(name).type) for name, values in found.items()}
    columns["log_timestamp"] = instants(columns["log_timestamp_ms"])
    columns["log_partition"] = partition
    return record_batch(schema, columns, len(rows))


def _shares(group: Group, names: Mapping[str, str]) -> Iterator[_Share]:
    if group.kind == CLASSIC:
        yield from _of_classic_group(group)
        return
    sources = _source_topics(group)
    for (role, member_id), event in group.records.items():
        if event.value is None or role not in (CURRENT, TARGET_OF_MEMBER):
            continue
        lists = [getattr(event.value, name) for name in _LISTS[event.record]]
        if group.kind == STREAMS:
            yield from _tasks(member_id, role, lists, _epoch(group, role, event), event, sources)
        else:
            yield from _partitions(member_id, role, lists, _epoch(group, role, event), event, names)


def _of_classic_group(group: Group) -> Iterator[_Share]:
    event = group.record(GROUP)
    if event is None or event.value is None or group.protocol_type != CONSUMER:
        return
    members = {member["member_id"]: member["assignment"] for member in event.value.members}
    place = (group.epoch, event.timestamp_ms, event.offset)
    for member_id, data in members.items():
        opened = assignment(CONSUMER, data)
        given = opened.value["assigned_partitions"] if opened is not None else ()
        parts = dict.fromkeys((each["topic"], number) for each in given for number in each["partitions"])
        for topic, partition in parts:
            yield _Share(member_id, HAS, topic, None, None, None, None, partition, *place)


def _epoch(group: Group, role: str, event: Event) -> int | None:
    """The epoch of an assignment: the epoch in the member's record, or of the group's target assignment."""
    if role == CURRENT:
        return max(event.value.member_epoch, 0) if event.value is not None else None
    target = group.record(SHARE_TARGET if group.kind == SHARE else TARGET)
    return None if target is None or target.value is None else target.value.assignment_epoch


def _partitions(
    member_id: str, role: str, lists: Iterable[Any], epoch: int | None, event: Event, names: Mapping[str, str]
) -> Iterator[_Share]:
    for shown, topics in zip(_ROLES[role], lists, strict=False):
        # If a topic is listed twice, coordinators keep the last entry.
        for topic_id, topic in {topic["topic_id"]: topic for topic in topics}.items():
            for partition, since in _with_epochs(topic, epoch).items():
                place = (partition, since, event.timestamp_ms, event.offset)
                yield _Share(member_id, shown, names.get(topic_id), topic_id, None, None, None, *place)


def _tasks(
    member_id: str,
    role: str,
    lists: Iterable[Any],
    epoch: int | None,
    event: Event,
    sources: Mapping[str, list[str]],
) -> Iterator[_Share]:
    for number, subtopologies in enumerate(lists):
        shown, task_type = _ROLES[role][number // len(_TASKS)], _TASKS[number % len(_TASKS)]
        has_epochs = role != CURRENT or task_type == "active"
        for subtopology_id, tasks in {each["subtopology_id"]: each for each in subtopologies}.items():
            known = _with_epochs(tasks, epoch) if has_epochs else dict.fromkeys(tasks["partitions"])
            for partition, since in known.items():
                place = (partition, since, event.timestamp_ms, event.offset)
                topics = sources.get(subtopology_id)
                yield _Share(member_id, shown, None, None, subtopology_id, task_type, topics, *place)


_ROLES: Final = {CURRENT: (HAS, GIVES_UP), TARGET_OF_MEMBER: (IS_TO_HAVE,)}


def _with_epochs(part: Mapping[str, Any], epoch: int | None) -> dict[int, int | None]:
    """The epoch of each partition: `epoch` if the record has none, or not one for each partition."""
    partitions, epochs = part["partitions"], part.get("assignment_epochs")
    if not epochs or len(epochs) != len(partitions):
        return dict.fromkeys(partitions, epoch)
    return dict(zip(partitions, epochs, strict=True))


def _source_topics(group: Group) -> dict[str, list[str]]:
    """By subtopology, the topics that tasks read: source topics and repartition topics."""
    event = group.record(TOPOLOGY)
    if event is None or event.value is None:
        return {}
    return {
        each["subtopology_id"]: [
            *each["source_topics"],
            *(topic["name"] for topic in each["repartition_source_topics"]),
        ]
        for each in event.value.subtopologies
    }
