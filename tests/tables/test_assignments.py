"""What the log shows about assignments, on synthetic topics."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from typing import Any, Final

import pytest

from kafka_records.consumer_protocol.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from tests.tables.topic import Topic, struct

Row = dict[str, Any]

ORDERS: Final = Uuid(b"the id of orders")
OTHER: Final = Uuid(b"of another topic")


def _rows(topic: Topic) -> list[Row]:
    result = read_table("assignments", topic.table())
    assert result.findings == ()
    return list(result.table.to_pylist())


def _shown(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in rows]


def _topic(record: str, topic_id: Uuid, *partitions: int, **fields: Any) -> Any:
    name = "TopicPartition" if record == TARGET else "TopicPartitions"
    return struct(record, name, topic_id=topic_id, partitions=partitions, **fields)


CURRENT: Final = "consumer_group_current_member_assignment"
TARGET: Final = "consumer_group_target_assignment_member"


def _consumer(topic: Topic, group: str = "g", member: str = "m", **current: Any) -> int:
    value = {"member_epoch": 5, "previous_member_epoch": 4, "state": 0} | current
    return topic.add("ConsumerGroupCurrentMemberAssignment", {"group_id": group, "member_id": member}, value)


def test_what_a_consumer_has_gives_up_and_is_to_have() -> None:
    topic = Topic()
    has = (_topic(CURRENT, ORDERS, 0, 1, assignment_epochs=(2, 3)), _topic(CURRENT, OTHER, 7))
    place = _consumer(topic, assigned_partitions=has, partitions_pending_revocation=(_topic(CURRENT, ORDERS, 2),))
    key = {"group_id": "g", "member_id": "m"}
    target = topic.add(
        "ConsumerGroupTargetAssignmentMember", key, {"topic_partitions": (_topic(TARGET, ORDERS, 0, 9),)}
    )
    topic.add("ConsumerGroupTargetAssignmentMetadata", {"group_id": "g"}, {"assignment_epoch": 6})

    columns = ("role", "topic_id", "partition", "assignment_epoch", "log_offset")
    assert sorted(_shown(_rows(topic), *columns)) == [
        ("current", str(OTHER), 7, 5, place),
        ("current", str(ORDERS), 0, 2, place),
        ("current", str(ORDERS), 1, 3, place),
        ("pending_revocation", str(ORDERS), 2, 5, place),
        ("target", str(ORDERS), 0, 6, target),
        ("target", str(ORDERS), 9, 6, target),
    ]


@pytest.mark.parametrize(("epochs", "expected"), [((), 5), ((1,), 5), ((1, 2, 3), 5), (None, 5)])
def test_epochs_that_do_not_fit_are_left_alone(epochs: tuple[int, ...] | None, expected: int) -> None:
    """`Utils.assignmentFromTopicPartitions`."""
    topic = Topic()
    _consumer(topic, assigned_partitions=(_topic(CURRENT, ORDERS, 0, 1, assignment_epochs=epochs),))
    assert {row["assignment_epoch"] for row in _rows(topic)} == {expected}


def test_a_member_that_is_away_has_a_default_epoch_of_0() -> None:
    topic = Topic()
    _consumer(topic, member_epoch=-2, assigned_partitions=(_topic(CURRENT, ORDERS, 0),))
    assert _shown(_rows(topic), "partition", "assignment_epoch") == [(0, 0)]


def test_tombstones_take_assignments_away() -> None:
    topic = Topic()
    for group in ("current", "target", "both", "neither"):
        key = {"group_id": group, "member_id": "m"}
        _consumer(topic, group, assigned_partitions=(_topic(CURRENT, ORDERS, 0),))
        value = {"topic_partitions": (_topic(TARGET, ORDERS, 0),)}
        topic.add("ConsumerGroupTargetAssignmentMember", key, value)
        if group == "current":
            topic.add("ConsumerGroupCurrentMemberAssignment", key, None)
        elif group == "target":
            topic.add("ConsumerGroupTargetAssignmentMember", key, None)
        elif group == "both":
            topic.add("ConsumerGroupMetadata", {"group_id": group}, None)

    assert _shown(_rows(topic), "group_id", "role") == [
        ("current", "target"),
        ("neither", "current"),
        ("neither", "target"),
        ("target", "current"),
    ]


def test_of_a_topic_that_is_named_twice_the_last_counts() -> None:
    topic = Topic()
    _consumer(topic, assigned_partitions=(_topic(CURRENT, ORDERS, 0, 1), _topic(CURRENT, ORDERS, 1, 1, 2)))
    assert _shown(_rows(topic), "partition") == [(1,), (2,)]


def test_tasks_of_streams() -> None:
    topic = Topic()
    record = "streams_group_current_member_assignment"

    def tasks(subtopology: str, *numbers: int, **fields: Any) -> tuple[Any]:
        return (struct(record, "TaskIds", subtopology_id=subtopology, partitions=numbers, **fields),)

    value = {
        "member_epoch": 5,
        "previous_member_epoch": 4,
        "state": 1,
        "active_tasks": tasks("0", 0, 1, assignment_epochs=(3, 4)),
        "standby_tasks": tasks("0", 2, assignment_epochs=(3,)),
        "warmup_tasks": tasks("1", 3),
        "active_tasks_pending_revocation": tasks("1", 4),
        "warmup_tasks_pending_revocation": tasks("1", 5),
    }
    topic.add("StreamsGroupCurrentMemberAssignment", {"group_id": "g", "member_id": "m"}, value)
    repartition = struct("streams_group_topology", "TopicInfo", name="again")
    first = struct(
        "streams_group_topology",
        "Subtopology",
        subtopology_id="0",
        source_topics=("orders",),
        repartition_source_topics=(repartition,),
    )
    topic.add("StreamsGroupTopology", {"group_id": "g"}, {"epoch": 0, "subtopologies": (first,)})

    columns = ("role", "task_type", "subtopology_id", "partition", "assignment_epoch", "source_topics")
    assert _shown(_rows(topic), *columns) == [
        ("current", "active", "0", 0, 3, ["orders", "again"]),
        ("current", "active", "0", 1, 4, ["orders", "again"]),
        ("current", "standby", "0", 2, None, ["orders", "again"]),
        ("current", "warmup", "1", 3, None, None),
        ("pending_revocation", "active", "1", 4, 5, None),
        ("pending_revocation", "warmup", "1", 5, None, None),
    ]


def _classic(topic: Topic, group: str, data: bytes, protocol_type: str = "consumer") -> None:
    member = struct("group_metadata", "MemberMetadata", member_id="m", assignment=data)
    value = {"protocol_type": protocol_type, "generation": 4, "protocol": "range", "leader": "m", "members": (member,)}
    topic.add("GroupMetadata", {"group": group}, value, version=3)


def test_a_classic_group_has_what_its_leader_assigned() -> None:
    message = ConsumerProtocolAssignment(assigned_partitions=(TopicPartition(topic="orders", partitions=(0, 2)),))
    topic = Topic()
    _classic(topic, "read", pack(">h", 1) + message.encode(1))
    _classic(topic, "newer", pack(">h", 9) + message.encode(1) + b"more")
    _classic(topic, "empty", b"")
    _classic(topic, "other bytes", b"\x00\x00\x7f")
    _classic(topic, "connect", pack(">h", 1) + message.encode(1), "connect")

    columns = ("group_id", "group_kind", "role", "topic", "topic_id", "partition", "assignment_epoch")
    assert _shown(_rows(topic), *columns) == [
        ("newer", "classic", "current", "orders", None, 0, 4),
        ("newer", "classic", "current", "orders", None, 2, 4),
        ("read", "classic", "current", "orders", None, 0, 4),
        ("read", "classic", "current", "orders", None, 2, 4),
    ]


# -- names -------------------------------------------------------------------------------------------------------------


def test_records_tell_names() -> None:
    topic = Topic()
    _consumer(topic, assigned_partitions=(_topic(CURRENT, ORDERS, 0), _topic(CURRENT, OTHER, 1)))
    assert _shown(_rows(topic), "topic") == [(None,), (None,)]

    value = {"offset": 1, "metadata": "", "commit_timestamp": 1, "topic_id": ORDERS}
    topic.add("OffsetCommit", {"group": "another", "topic": "'; --\n", "partition": 0}, value, version=4)
    named = struct("share_group_state_partition_metadata", "TopicInfo", topic_id=OTHER, topic_name="other")
    topic.add("ShareGroupStatePartitionMetadata", {"group_id": "share"}, {"deleting_topics": (named,)})

    assert dict(_shown(_rows(topic), "topic_id", "topic")) == {str(ORDERS): "'; --\n", str(OTHER): "other"}


def test_a_source_tells_names(topics_dir: Path) -> None:
    rows = read_table("assignments", topics_dir / "kafka-4.3" / "segments", group="promo-analytics").table.to_pylist()
    assert {row["topic"] for row in rows} == {"promo-autumn", "promo-spring"}


def test_names_are_asked_for_where_a_table_wants_them(topics_dir: Path) -> None:
    class Named:
        asked = 0

        def __init__(self, source: Any) -> None:
            self.partitions = source.partitions
            self.name = source.name
            self.topics = source.topics

        def known_topics(self) -> KnownTopics:
            self.asked += 1
            return KnownTopics({str(ORDERS): "by the source"})

    topic = Topic()
    _consumer(topic, assigned_partitions=(_topic(CURRENT, ORDERS, 0),))
    source = Named(ArrowRows(topic.table(), "__consumer_offsets"))
    read_table("members", source)
    assert source.asked == 0
    assert _shown(list(read_table("assignments", source).table.to_pylist()), "topic") == [("by the source",)]
    assert source.asked == 1


# -- what cannot be read -----------------------------------------------------------------------------------------------


def test_what_cannot_be_decoded_has_no_rows_and_is_found() -> None:
    topic = Topic()
    place = _consumer(topic, assigned_partitions=(_topic(CURRENT, ORDERS, 0),))
    topic.rows[place] = (*topic.rows[place][:6], b"\x00\x00\x07", *topic.rows[place][7:])
    topic.add_bytes(b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00", b"\x00\x04")

    result = read_table("assignments", topic.table())

    assert result.table.num_rows == 0
    assert [(each.record_type, each.severity, each.consequence) for each in result.findings] == [
        (8, "damage", "its assignments have no rows"),
        (1, "damage", "not used: a topic may be without its name"),
    ]
