"""What the log tells about groups, on made-up topics: one group per case, one query for all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_records.consumer_offsets import encode_record
from kafka_records.registry import message_class
from kafka_records_tables.groups import groups, undecodable
from tests.tables.topic import Topic, struct

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark


class _Groups(Topic):
    """A topic with shorthands for the records of groups."""

    def classic(self, group: str, members: int | None, *, protocol_type: str = "consumer", generation: int = 1) -> None:
        value: dict[str, Any] | None = None
        if members is not None:
            value = {
                "protocol_type": protocol_type,
                "generation": generation,
                "protocol": "range" if members else None,
                "leader": "m0" if members else None,
                "members": tuple(_classic_member(f"m{number}") for number in range(members)),
            }
        self.add("GroupMetadata", {"group": group}, value, version=3)

    def epoch(self, kind: str, group: str, epoch: int | None, **fields: Any) -> None:
        value = None if epoch is None else {"epoch": epoch, **fields}
        self.add(f"{kind}GroupMetadata", {"group_id": group}, value)

    def target(self, kind: str, group: str, epoch: int | None) -> None:
        value = None if epoch is None else {"assignment_epoch": epoch}
        self.add(f"{kind}GroupTargetAssignmentMetadata", {"group_id": group}, value)

    def member(self, kind: str, group: str, member: str, epoch: int | None, state: int = 0) -> None:
        """A member and what it has; both are deleted with `epoch` None, as a broker does it."""
        key = {"group_id": group, "member_id": member}
        current = None if epoch is None else {"member_epoch": epoch, "previous_member_epoch": epoch, "state": state}
        if current is None:
            self.add(f"{kind}GroupCurrentMemberAssignment", key, None)
            self.add(f"{kind}GroupMemberMetadata", key, None)
        else:
            self.add(f"{kind}GroupMemberMetadata", key, {})
            self.add(f"{kind}GroupCurrentMemberAssignment", key, current)

    def topology(self, group: str, epoch: int | None) -> None:
        self.add("StreamsGroupTopology", {"group_id": group}, None if epoch is None else {"epoch": epoch})


def _classic_member(member_id: str) -> Any:
    return struct("group_metadata", "MemberMetadata", member_id=member_id)


def _case_topic() -> _Groups:
    topic = _Groups()
    _classic_cases(topic)
    _offset_cases(topic)
    _consumer_cases(topic)
    _share_cases(topic)
    _streams_cases(topic)
    _broken_cases(topic)
    return topic


def _classic_cases(topic: _Groups) -> None:
    topic.classic("classic with members", 1, generation=1)
    topic.classic("classic with members", 2, generation=7)
    topic.classic("classic and empty", 1)
    topic.classic("classic and empty", 0, generation=2)
    topic.classic("classic without type", 0, protocol_type="", generation=0)
    topic.classic("classic and gone", 1)
    topic.classic("classic and gone", None)
    topic.classic("classic of another protocol", 1, protocol_type="connect")


def _offset_cases(topic: _Groups) -> None:
    topic.commit("offsets only", 1)
    topic.commit("legacy offsets only", 1, record="LegacyOffsetCommit")
    topic.commit("pending only", 1, transaction="open")
    topic.commit("aborted only", 1, transaction="aborted")
    topic.commit("offsets deleted", 1)
    topic.commit("offsets deleted", None)
    topic.commit("deleted by the other type", 1)
    topic.commit("deleted by the other type", None, record="LegacyOffsetCommit")
    topic.commit("pending, then deleted", 1, transaction="open")
    topic.commit("pending, then deleted", None)
    topic.commit("pending over deleted", 1)
    topic.commit("pending over deleted", None)
    topic.commit("pending over deleted", 2, transaction="open")
    topic.commit("undecided only", 1, transaction="unknown")
    topic.commit("undecided over deleted", 1)
    topic.commit("undecided over deleted", None)
    topic.commit("undecided over deleted", 2, transaction="unknown")
    topic.commit("undecided, then deleted", 1, transaction="unknown")
    topic.commit("undecided, then deleted", None)
    topic.commit("undecided over committed", 1)
    topic.commit("undecided over committed", 2, transaction="unknown")
    topic.classic("undecided and classic", 1)
    topic.commit("undecided and classic", 1, transaction="unknown")
    topic.commit("nothing told", 1, transaction="unknown", producer=None)
    topic.commit("simple and gone", 1)
    topic.commit("simple and gone", None)
    topic.classic("simple and gone", None)
    topic.commit("of another topic", 1, topic="__share_group_state")


def _consumer_cases(topic: _Groups) -> None:
    def group(name: str, epoch: int, target: int) -> None:
        topic.epoch("Consumer", name, epoch)
        topic.target("Consumer", name, target)

    group("consumer, empty", 6, 2)
    topic.member("Consumer", "consumer, empty", "m", 2)
    topic.member("Consumer", "consumer, empty", "m", None)
    group("consumer, assigning", 3, 2)
    topic.member("Consumer", "consumer, assigning", "m", 2)
    topic.epoch("Consumer", "consumer, no target yet", 2)
    topic.member("Consumer", "consumer, no target yet", "m", 0)
    group("consumer, stable", 3, 3)
    topic.member("Consumer", "consumer, stable", "m1", 3)
    topic.member("Consumer", "consumer, stable", "m2", 3)
    group("consumer, old member epoch", 3, 3)
    topic.member("Consumer", "consumer, old member epoch", "m1", 3)
    topic.member("Consumer", "consumer, old member epoch", "m2", 2)
    group("consumer, unrevoked", 3, 3)
    topic.member("Consumer", "consumer, unrevoked", "m", 3, state=1)
    group("consumer, static member away", 3, 3)
    topic.member("Consumer", "consumer, static member away", "m", -2)
    group("consumer, member without assignment", 3, 3)
    key = {"group_id": "consumer, member without assignment", "member_id": "m"}
    topic.add("ConsumerGroupMemberMetadata", key, {})

    topic.classic("classic to consumer", 1)
    topic.classic("classic to consumer", None)
    group("classic to consumer", 2, 2)
    topic.member("Consumer", "classic to consumer", "m", 2)
    group("consumer to classic", 2, 2)
    topic.member("Consumer", "consumer to classic", "m", 2)
    topic.member("Consumer", "consumer to classic", "m", None)
    topic.target("Consumer", "consumer to classic", None)
    topic.epoch("Consumer", "consumer to classic", None)
    topic.classic("consumer to classic", 1, generation=3)
    # A cleaner takes tombstones away after a while, the value they were for before that.
    topic.classic("two kinds, consumer newer", 1)
    group("two kinds, consumer newer", 2, 2)
    group("two kinds, classic newer", 2, 2)
    topic.classic("two kinds, classic newer", 1)
    group("consumer with offsets", 2, 2)
    topic.commit("consumer with offsets", 1)


def _share_cases(topic: _Groups) -> None:
    topic.epoch("Share", "share, empty", 4)
    topic.epoch("Share", "share, stable", 5)
    topic.add("ShareGroupMemberMetadata", {"group_id": "share, stable", "member_id": "m"}, {})
    topic.add("ShareGroupStatePartitionMetadata", {"group_id": "share, offsets set only"}, {})
    topic.epoch("Share", "share, gone", 4)
    topic.add("ShareGroupStatePartitionMetadata", {"group_id": "share, gone"}, {})
    topic.add("ShareGroupStatePartitionMetadata", {"group_id": "share, gone"}, None)
    topic.epoch("Share", "share, gone", None)


def _streams_cases(topic: _Groups) -> None:
    def group(name: str, epoch: int, target: int, validated: int, topology: int | None) -> None:
        topic.epoch("Streams", name, epoch, validated_topology_epoch=validated)
        topic.target("Streams", name, target)
        if topology is not None:
            topic.topology(name, topology)

    group("streams, empty", 2, 2, 0, 0)
    group("streams, no topology", 2, 2, -1, None)
    topic.member("Streams", "streams, no topology", "m", 2, state=1)
    group("streams, topology not validated", 2, 2, 0, 1)
    topic.member("Streams", "streams, topology not validated", "m", 2, state=1)
    group("streams, assigning", 3, 2, 0, 0)
    topic.member("Streams", "streams, assigning", "m", 2, state=1)
    group("streams, reconciling", 3, 3, 0, 0)
    # For members of streams groups 1 is stable; 2 has tasks to give up.
    topic.member("Streams", "streams, reconciling", "m", 3, state=2)
    group("streams, stable", 3, 3, 1, 1)
    topic.member("Streams", "streams, stable", "m", 3, state=1)


def _broken_cases(topic: _Groups) -> None:
    topic.add_bytes(*_cut("GroupMetadata", {"group": "broken classic"}))
    topic.add_bytes(*_cut("ConsumerGroupMetadata", {"group_id": "broken consumer"}))
    topic.commit("broken consumer", 1)
    topic.epoch("Consumer", "broken target", 3)
    topic.add_bytes(*_cut("ConsumerGroupTargetAssignmentMetadata", {"group_id": "broken target"}))
    topic.add_bytes(*_cut("OffsetCommit", {"group": "broken offset", "topic": "orders", "partition": 0}))
    topic.add_bytes(*_cut("GroupMetadata", {"group": "broken once"}))
    topic.classic("broken once", 1)


def _cut(record: str, key: dict[str, Any]) -> tuple[bytes, bytes]:
    """A record whose value ends too early."""
    whole = encode_record(message_class(f"{record}Key")(**key), message_class(f"{record}Value")())
    assert whole[1] is not None
    return whole[0], whole[1][:4]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> dict[str, Row]:
    topic = _case_topic()
    # Rows that are there twice count once.
    topic.rows += topic.rows[::7]
    found = groups(topic.frame(spark)).collect()
    assert len(found) == len({row.group_id for row in found})
    return {row.group_id: row for row in found}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ("classic with members", ("classic", "Stable", 7, "consumer", "range", 2)),
        ("classic and empty", ("classic", "Empty", 2, "consumer", None, 0)),
        ("classic without type", ("simple", "Empty", 0, "", None, 0)),
        ("classic of another protocol", ("classic", "Stable", 1, "connect", "range", 1)),
        ("offsets only", ("simple", "Empty", None, "", None, 0)),
        ("legacy offsets only", ("simple", "Empty", None, "", None, 0)),
        ("pending only", ("simple", "Empty", None, "", None, 0)),
        ("pending over deleted", ("simple", "Empty", None, "", None, 0)),
        ("consumer, empty", ("consumer", "Empty", 6, "consumer", None, 0)),
        ("consumer, assigning", ("consumer", "Assigning", 3, "consumer", None, 1)),
        ("consumer, no target yet", ("consumer", "Assigning", 2, "consumer", None, 1)),
        ("consumer, stable", ("consumer", "Stable", 3, "consumer", None, 2)),
        ("consumer, old member epoch", ("consumer", "Reconciling", 3, "consumer", None, 2)),
        ("consumer, unrevoked", ("consumer", "Reconciling", 3, "consumer", None, 1)),
        ("consumer, static member away", ("consumer", "Reconciling", 3, "consumer", None, 1)),
        ("consumer, member without assignment", ("consumer", "Reconciling", 3, "consumer", None, 1)),
        ("classic to consumer", ("consumer", "Stable", 2, "consumer", None, 1)),
        ("consumer to classic", ("classic", "Stable", 3, "consumer", "range", 1)),
        ("two kinds, consumer newer", ("consumer", "Empty", 2, "consumer", None, 0)),
        ("two kinds, classic newer", ("classic", "Stable", 1, "consumer", "range", 1)),
        ("consumer with offsets", ("consumer", "Empty", 2, "consumer", None, 0)),
        ("share, empty", ("share", "Empty", 4, "share", None, 0)),
        ("share, stable", ("share", "Stable", 5, "share", None, 1)),
        ("share, offsets set only", ("share", "Empty", None, "share", None, 0)),
        ("streams, empty", ("streams", "Empty", 2, "streams", None, 0)),
        ("streams, no topology", ("streams", "NotReady", 2, "streams", None, 1)),
        ("streams, topology not validated", ("streams", "NotReady", 2, "streams", None, 1)),
        ("streams, assigning", ("streams", "Assigning", 3, "streams", None, 1)),
        ("streams, reconciling", ("streams", "Reconciling", 3, "streams", None, 1)),
        ("streams, stable", ("streams", "Stable", 3, "streams", None, 1)),
        ("undecided over committed", ("simple", "Empty", None, "", None, 0)),
        ("undecided and classic", ("classic", "Stable", 1, "consumer", "range", 1)),
        ("nothing told", ("simple", "Empty", None, "", None, 0)),
        ("broken classic", ("classic", None, None, None, None, None)),
        ("broken consumer", ("consumer", None, None, "consumer", None, 0)),
        ("broken target", ("consumer", None, 3, "consumer", None, 0)),
        ("broken offset", ("simple", "Empty", None, "", None, 0)),
        ("broken once", ("classic", "Stable", 1, "consumer", "range", 1)),
    ],
)
def test_kind_state_and_epoch(rows: dict[str, Row], group: str, expected: tuple[Any, ...]) -> None:
    row = rows[group]
    assert (
        row.group_kind,
        row.state,
        row.epoch,
        row.protocol_type,
        row.protocol,
        row.member_count,
    ) == expected


@pytest.mark.parametrize(
    "group",
    [
        "classic and gone",
        "aborted only",
        "offsets deleted",
        "deleted by the other type",
        "pending, then deleted",
        "undecided only",
        "undecided over deleted",
        "undecided, then deleted",
        "simple and gone",
        "share, gone",
        "of another topic",
    ],
)
def test_groups_that_are_gone_have_no_row(rows: dict[str, Row], group: str) -> None:
    assert group not in rows


def test_every_group_of_the_topic_is_a_case(rows: dict[str, Row]) -> None:
    assert len(rows) == 38


def test_the_place_is_that_of_the_record_that_makes_the_group(spark: SparkSession) -> None:
    topic = _Groups()
    first = topic.commit("offsets", 1)
    topic.classic("classic", 1)
    topic.commit("classic", 1)
    pending = topic.commit("offsets", 2, transaction="open")
    topic.add("ShareGroupStatePartitionMetadata", {"group_id": "share"}, {})
    topic.epoch("Share", "share", 2)

    found = {row.group_id: (row.log_partition, row.log_offset) for row in groups(topic.frame(spark)).collect()}

    assert first < pending
    assert found == {"offsets": (0, pending), "classic": (0, 1), "share": (0, 5)}


def test_records_that_could_not_be_used_are_shown(spark: SparkSession) -> None:
    found = undecodable(_case_topic().frame(spark)).orderBy("log_offset").collect()

    left_out, null = (
        "the group is left out: nothing else makes it one",
        "its group keeps a row, with null for what this record would tell",
    )
    assert [(row.record_type, row.error.path, row.error.byte_offset, row.consequence) for row in found] == [
        (1, None, None, left_out),
        (1, None, None, left_out),
        (2, "generation", 1, null),
        (3, "epoch", 0, null),
        (6, "assignment_epoch", 0, null),
        (1, "offset", 0, null),
    ]
    assert [row.error.message for row in found[:2]] == [
        f"a commit of group {group}: nobody can tell how the transaction of producer 1000 ended, "
        "its marker was not read"
        for group in ("undecided only", "undecided over deleted")
    ]


def test_an_empty_topic_has_no_groups(spark: SparkSession) -> None:
    assert groups(Topic().frame(spark)).collect() == []
