"""Compares the table `assignments` with the descriptions by coordinators and brokers."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafka_records.consumer_protocol.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_records_runtime.errors import KafkaRecordsError
from tools.judge.answers import Difference, Loaded, asked, differing, is_described

Row = dict[str, Any]


class Part(NamedTuple):
    """A partition or task in an answer: of a member's target assignment (`target`), or else of its current one
    (`current`)."""

    role: str
    topic: str | None
    subtopology: str | None
    task_type: str | None
    partition: int


def assignments(loaded: Loaded) -> Iterator[Difference]:
    """Compare the assignments in the answers to the requests that describe a group."""
    topics = loaded.topics
    groups = rows_by_group(loaded.read("assignments").to_pylist())
    for question in loaded.questions:
        if question["question"] == "describe" and not is_described(loaded, question):
            groups.pop(question["group"], None)
        elif question["question"] == "describe":
            kind, rows = question["group_type"], groups.pop(question["group"], [])
            for row in rows:
                _count(loaded, kind, row, topics)
                if row["topic_id"] in topics and row["topic"] not in (None, topics[row["topic_id"]]):
                    yield Difference("assignments", f"name of {row['topic_id']}", topics[row["topic_id"]], row["topic"])
            expected = described_assignments(kind, question["answer"])
            if kind == "consumer" and loaded.history.is_before("4.3.0"):
                rows = [row for row in rows if row["role"] != "pending_revocation" or _pass_over(loaded)]
            yield from differing("assignments", asked(question), expected, shown_assignments(kind, rows, topics))
    if groups:
        yield Difference("assignments", "groups that were not described", {}, groups)


def _pass_over(loaded: Loaded) -> bool:
    return bool(loaded.untold("what is to be given up, before 4.3", False))


def _count(loaded: Loaded, kind: str, row: Row, topics: Mapping[str, str]) -> None:
    if kind in ("consumer", "share") and row["topic_id"] not in topics:
        loaded.untold("partitions of deleted topics", None)
    elif kind in ("consumer", "share") and row["topic"] is None:
        loaded.untold("the name of a topic", None)
    if kind == "share" and row["role"] == "target":
        loaded.untold("the target of a share group", None)
    if row["role"] == "pending_revocation":
        loaded.untold("what is to be given up", None)


def rows_by_group(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each group."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["group_id"], []).append(row)
    return groups


def described_assignments(kind: str, answer: Mapping[str, Any]) -> dict[str, list[Part]]:
    """The sorted assignments by member in an answer about a group of this kind (`classic`, `consumer`, …). Members
    without partitions are left out. The answer is in Kafka's JSON form of DescribeGroups v6, ConsumerGroupDescribe v1,
    ShareGroupDescribe v1 or StreamsGroupDescribe v0."""
    found = {}
    for member in answer["members"]:
        if kind == "classic":
            parts = _of_bytes(member["memberAssignment"]) if answer["protocolType"] == "consumer" else []
        else:
            target = member.get("targetAssignment", {})
            parts = [*_parts("current", member["assignment"]), *_parts("target", target)]
        if parts:
            found[member["memberId"]] = sorted(parts, key=_sortable)
    return found


def shown_assignments(kind: str, rows: Collection[Row], topics: Mapping[str, str]) -> dict[str, list[Part]]:
    """The same from the rows of the group, with the names that the topics have in the cluster.

    A broker lists partitions that a consumer must give up among those that it has. It does not show them for a streams
    group, nor the target of a share group, nor topics that the cluster does not have.
    """
    found: dict[str, list[Part]] = {}
    for row in rows:
        role = "current" if kind == "consumer" and row["role"] == "pending_revocation" else row["role"]
        if role == "pending_revocation" or (kind == "share" and role == "target"):
            continue
        if row["topic_id"] is not None and row["topic_id"] not in topics:
            continue
        topic = row["topic"] if row["topic_id"] is None else topics[row["topic_id"]]
        part = Part(role, topic, row["subtopology_id"], row["task_type"], row["partition"])
        found.setdefault(row["member_id"], []).append(part)
    return {member: sorted(parts, key=_sortable) for member, parts in found.items()}


def _sortable(part: Part) -> tuple[Any, ...]:
    return tuple(each if each is not None else "" for each in part)


_TASKS: Final = {"activeTasks": "active", "standbyTasks": "standby", "warmupTasks": "warmup"}


def _parts(role: str, answer: Mapping[str, Any]) -> Iterator[Part]:
    for topic in answer.get("topicPartitions", ()):
        for number in topic["partitions"]:
            yield Part(role, topic["topicName"], None, None, number)
    for name, task_type in _TASKS.items():
        for tasks in answer.get(name, ()):
            for number in tasks["partitions"]:
                yield Part(role, None, tasks["subtopologyId"], task_type, number)


def _of_bytes(text: str) -> list[Part]:
    """The assignment that a consumer reads, after the version before it."""
    data = b64decode(text)
    try:
        message, _ = ConsumerProtocolAssignment.decode_prefix(data[2:], 0)
    except KafkaRecordsError:
        return []
    pairs = {(topic.topic, number) for topic in message.assigned_partitions for number in topic.partitions}
    return [Part("current", topic, None, None, number) for topic, number in pairs]
