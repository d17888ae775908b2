"""What the log shows about groups, on synthetic topics: one group per case, one table for all of them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records.consumer_offsets import encode_record
from kafka_records.registry import message_class
from kafka_records_tables import read_table
from tests.tables.topic import Topic, struct

Row = dict[str, Any]


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
        """A member and its assignment; with `epoch` None, both are deleted, as by a broker."""
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
    # A cleaner removes tombstones after a while, and the values they delete before that.
    topic.classic("two kinds, consumer newer", 1)
    group("two kinds, consumer newer", 2, 2)
    group("two kinds, classic newer", 2, 2)
    topic.classic("two kinds, classic newer", 1)
    group("consumer with offsets", 2, 2)
    topic.commit("consumer with offsets", 1)

    # An empty classic group was replaced because of a member whose subscription is not resolved yet.
    group("consumer, first epoch told", 0, 0)
    topic.member("Consumer", "consumer, first epoch told", "m", 0)


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
    # Kafka 4.3.1 loads these without the record of the group: its first epoch is 1, and topology 0 counts as valid.
    for name, epoch in (("streams, no record", 0), ("streams, no record of a later topology", 1)):
        topic.topology(name, epoch)
        topic.member("Streams", name, "m", 1, state=1)


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
def rows() -> dict[str, Row]:
    topic = _case_topic()
    # Rows that are there twice count once.
    topic.rows += topic.rows[::7]
    found = read_table("groups", topic.table()).table.to_pylist()
    assert len(found) == len({row["group_id"] for row in found})
    return {row["group_id"]: row for row in found}


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
        ("aborted only", ("simple", "Empty", None, "", None, 0)),
        ("offsets deleted", ("simple", "Empty", None, "", None, 0)),
        ("deleted by the other type", ("simple", "Empty", None, "", None, 0)),
        ("pending, then deleted", ("simple", "Empty", None, "", None, 0)),
        ("undecided only", ("simple", "Empty", None, "", None, 0)),
        ("undecided over deleted", ("simple", "Empty", None, "", None, 0)),
        ("undecided, then deleted", ("simple", "Empty", None, "", None, 0)),
        ("pending over deleted", ("simple", "Empty", None, "", None, 0)),
        ("consumer, empty", ("consumer", "Empty", 6, "consumer", None, 0)),
        ("consumer, assigning", ("consumer", "Assigning", 3, "consumer", None, 1)),
        ("consumer, no target yet", ("consumer", "Assigning", 2, "consumer", None, 1)),
        ("consumer, first epoch told", ("consumer", "Stable", 0, "consumer", None, 1)),
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
        ("streams, no record", ("streams", "Stable", None, "streams", None, 1)),
        ("streams, no record of a later topology", ("streams", "NotReady", None, "streams", None, 1)),
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
    columns = ("group_kind", "state", "epoch", "protocol_type", "protocol", "member_count")
    assert tuple(row[column] for column in columns) == expected


@pytest.mark.parametrize(
    "group",
    [
        "classic and gone",
        "simple and gone",
        "share, gone",
        "of another topic",
    ],
)
def test_groups_that_are_gone_have_no_row(rows: dict[str, Row], group: str) -> None:
    assert group not in rows


def test_every_group_of_the_topic_is_a_case(rows: dict[str, Row]) -> None:
    assert len(rows) == 48


def test_the_place_is_that_of_the_record_that_makes_the_group() -> None:
    topic = _Groups()
    first = topic.commit("offsets", 1)
    topic.classic("classic", 1)
    topic.commit("classic", 1)
    pending = topic.commit("offsets", 2, transaction="open")
    topic.add("ShareGroupStatePartitionMetadata", {"group_id": "share"}, {})
    topic.epoch("Share", "share", 2)

    found = _places(topic)

    assert first < pending
    assert found == {"offsets": (0, pending), "classic": (0, 1), "share": (0, 5)}


def test_records_that_could_not_be_used_are_found() -> None:
    findings = read_table("groups", _case_topic().table()).findings

    null = "its group keeps a row, with null instead of the values of this record"
    assert [(each.record_type, each.path, each.byte_offset, each.consequence) for each in findings] == [
        (2, "generation", 1, null),
        (3, "epoch", 0, null),
        (6, "assignment_epoch", 0, null),
    ]
    assert {each.severity for each in findings} == {"damage"}


def test_what_became_of_a_commit_does_not_matter_but_a_group_tombstone_behind_it_does() -> None:
    """`GroupMetadataManager` makes a group for any commit value; only the tombstone of a group record ends it."""
    topic = _Groups()
    topic.commit("ended", 1, transaction="open")
    topic.classic("ended", None)
    topic.marker("commit")
    topic.commit("again", 1)
    topic.commit("again", None)
    topic.classic("again", None)
    topic.commit("again", 2, transaction="open")
    topic.marker("abort")
    topic.commit("beside a tombstone alone", None)

    assert _places(topic) == {"again": (0, 6)}


@pytest.mark.parametrize("kind", ["Consumer", "Streams"])
def test_a_member_makes_a_group(kind: str) -> None:
    topic = _Groups()
    topic.commit("g", 1)
    topic.member(kind, "g", "m", 1, state=int(kind == "Streams"))
    (row,) = read_table("groups", topic.table()).table.to_pylist()

    state = {"Consumer": "Stable", "Streams": "NotReady"}[kind]
    assert (row["group_kind"], row["state"], row["epoch"], row["member_count"]) == (kind.lower(), state, None, 1)


def test_an_empty_topic_has_no_groups() -> None:
    result = read_table("groups", Topic().table())
    assert (result.table.num_rows, result.findings) == (0, ())


def _places(topic: Topic) -> dict[str, tuple[int, int]]:
    rows = read_table("groups", topic.table()).table.to_pylist()
    return {row["group_id"]: (row["log_partition"], row["log_offset"]) for row in rows}


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        ("ConsumerGroupTargetAssignmentMember", "consumer"),
        ("ConsumerGroupRegularExpression", "consumer"),
        ("ShareGroupTargetAssignmentMember", "share"),
        ("ShareGroupCurrentMemberAssignment", "share"),
        ("StreamsGroupTargetAssignmentMember", "streams"),
    ],
)
def test_any_record_of_a_kind_makes_a_group(record: str, kind: str) -> None:
    """As `GroupMetadataManager.replay` does; a log may begin with one, and a tombstone of it ends nothing."""
    topic = _Groups()
    key = {"group_id": "g", "regular_expression" if "Regular" in record else "member_id": "x"}
    topic.add(record, key, {})
    rows = read_table("groups", topic.table()).table.to_pylist()
    assert [(row["group_id"], row["group_kind"]) for row in rows] == [("g", kind)]

    topic.add(record, key, None)
    rows = read_table("groups", topic.table()).table.to_pylist()
    assert [(row["group_id"], row["group_kind"]) for row in rows] == [("g", kind)]
