"""The table `checks` on assignments: every partition and every task must be assigned once, to an existing member."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.log_facts import KnownTopics, TopicDeletions
from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from tests.tables.check_cases import (
    HOSTILE,
    OTHER,
    Row,
    problem,
    problems,
    sound_group,
    values_of,
)
from tests.tables.cluster import ORDERS, Cluster, parts
from tests.tables.topic import OFFSETS_TOPIC, struct


def test_a_partition_in_two_targets() -> None:
    cluster = sound_group()
    offset = cluster.target("n", 0, 1)
    row = problem(cluster)
    assert row == {
        "check": "assigned_twice",
        "level": "broken",
        "group_id": "g",
        "transactional_id": None,
        "member_id": "n",
        "topic": None,
        "topic_id": ORDERS,
        "partition": 0,
        "detail": f"partition 0 of topic '{ORDERS}' is in the target assignments of 'm' and 'n'",
        "log_topic": OFFSETS_TOPIC,
        "log_timestamp": pa.scalar(1_700_000_000_000, pa.timestamp("ms", tz="UTC")).as_py(),
        "log_timestamp_ms": 1_700_000_000_000,
        "log_partition": 0,
        "log_offset": offset,
    }


def test_a_partition_that_two_members_have() -> None:
    """At a higher epoch, a coordinator accepts the second assignment; it is still broken."""
    cluster = sound_group()
    cluster.current("n", 1, epoch=2, gives_up=(0,))
    row = problem(cluster)
    assert (row["check"], row["level"], row["partition"]) == ("assigned_twice", "broken", 0)
    assert "the current assignments of 'm' and 'n'" in row["detail"]


def test_holes_between_the_partitions_that_are_assigned() -> None:
    cluster = sound_group()
    cluster.commit("elsewhere", 1)
    offset = cluster.target("n", 2, 5, 9)
    row = problem(cluster)
    assert values_of([row], "check", "level", "topic_id", "partition", "member_id", "log_offset") == [
        ("unassigned", "broken", ORDERS, 1, None, offset)
    ]
    assert row["detail"].startswith(f"6 partitions of topic '{ORDERS}' are in no target assignment while the group")
    assert row["detail"].endswith(": 1, 3 to 4, 6 to 8")
    # While a new target assignment is due, the old one may lack some.
    cluster.of_group("ConsumerGroupMetadata", "g", {"epoch": 2})
    row = problem(cluster)
    assert (row["level"], "while the group is Assigning" in row["detail"]) == ("transient", True)


def test_what_classic_members_brought_along_is_transient() -> None:
    cluster = sound_group()
    cluster.target("n", 2, 4)
    classic = struct(
        "consumer_group_member_metadata", "ClassicMemberMetadata", session_timeout_ms=1, supported_protocols=()
    )
    cluster.member("n", "orders", classic_member_metadata=classic)
    row = problem(cluster)
    assert values_of([row], "check", "level", "partition") == [("unassigned", "transient", 1)]
    assert row["detail"].endswith("what they had assigned among themselves: 1, 3")
    # A member reached the epoch of the target from an earlier one, so a broker has made the target.
    cluster.epochs(7, 7)
    cluster.current("m", 0, epoch=7)
    assert problem(cluster)["level"] == "broken"
    cluster.epochs(8, 8)
    assert problem(cluster)["level"] == "transient"
    cluster.member("n", "orders")
    assert problem(cluster)["level"] == "broken"


def test_hostile_numbers_of_partitions_cost_nothing() -> None:
    cluster = sound_group()
    cluster.target("n", 2**31 - 1, -5, 1)
    row = problem(cluster)
    assert (row["check"], row["partition"]) == ("unassigned", 2)
    assert row["detail"].endswith(f": 2 to {2**31 - 2}")


def test_partitions_that_a_group_of_an_older_broker_remembers() -> None:
    cluster = sound_group()
    module = "consumer_group_partition_metadata"
    topics = [("orders", ORDERS, 4), ("others", OTHER, 2), ("nobody's", "AAAAAAAAAAAAAAAAAAAAAg", 3)]
    topics_known = tuple(
        struct(module, "TopicMetadata", topic_id=Uuid.from_string(each), topic_name=name, num_partitions=count)
        for name, each, count in topics
    )
    cluster.of_group("ConsumerGroupPartitionMetadata", "g", {"topics": topics_known})
    cluster.member("m", "orders", "others")
    assert values_of(problems(cluster), "check", "level", "topic", "partition") == [
        ("unassigned", "broken", "others", 0),
        ("unassigned", "broken", "orders", 2),
    ]


class Brokers:
    """Rows as a source that knows topics."""

    name = "brokers"

    def __init__(self, rows: pa.Table, names: dict[str, str], counts: dict[str, int], *deleted: str) -> None:
        self._rows, self.asked = ArrowRows(rows), 0
        self._known = KnownTopics(names, counts, deletions=TopicDeletions(topic_ids=frozenset(deleted)))

    def topics(self) -> Any:
        return self._rows.topics()

    def partitions(self, topic: str) -> Any:
        return self._rows.partitions(topic)

    def known_topics(self) -> KnownTopics:
        self.asked += 1
        return self._known


def _leave(cluster: Cluster, kind: str, member_id: str) -> None:
    """The tombstones of a member, in the order in which a coordinator writes them."""
    for record in ("CurrentMemberAssignment", "TargetAssignmentMember", "MemberMetadata"):
        cluster.of_group(f"{kind}Group{record}", "g", None, member_id=member_id)


def _with_brokers(cluster: Cluster, **counts: int) -> list[Row]:
    """The problems, with the given numbers of partitions of topics, and two partitions of __consumer_offsets."""
    source = Brokers(cluster.table(), {ORDERS: "orders", OTHER: "others"}, counts | {OFFSETS_TOPIC: 2})
    result = read_table("checks", source)
    assert all("partitions" not in finding.what for finding in result.findings)
    assert source.asked == 1
    rows: list[Row] = result.table.to_pylist()
    return rows


def test_partitions_that_the_source_knows() -> None:
    """A topic that has grown gets a new target assignment at the next heartbeat."""
    cluster = sound_group()
    rows = sorted(_with_brokers(cluster, orders=3, others=6), key=lambda row: str(row["check"]))
    assert values_of(rows, "check", "level", "topic", "partition", "group_id") == [
        ("unassigned", "transient", "orders", 2, "g"),
        ("wrong_partition", "broken", None, None, "g"),
    ]
    assert partition_for("g", 2) == 1
    cluster.member("m", "orders", "others")
    (row,) = [row for row in _with_brokers(cluster, orders=3, others=6) if row["topic"] == "others"]
    assert values_of([row], "check", "level", "partition", "group_id") == [("unassigned", "transient", 0, "g")]
    assert row["detail"].endswith(": 0 to 5")
    nobody = Cluster()
    nobody.epochs()
    nobody.member("m", "orders")
    (row,) = [row for row in _with_brokers(nobody, orders=3) if row["topic"]]
    assert values_of([row], "check", "topic", "log_offset") == [("unassigned", "orders", None)]


def test_a_topic_that_nobody_subscribes_to_any_more_may_grow() -> None:
    """The topic stays in the target assignment until the next one, and its new partitions are assigned to no member."""
    cluster = sound_group()
    for member in "mn":
        cluster.member(member, "others")
    assert {row["topic"] for row in _with_brokers(cluster, orders=3, others=6)} == {"others", None}


def test_a_topic_that_is_gone_has_no_partitions_now() -> None:
    """Another topic has its name; a group of an older broker remembers the old one."""
    cluster = sound_group()
    gone = Uuid.from_string("AAAAAAAAAAAAAAAAAAAAAg")
    old = struct("consumer_group_partition_metadata", "TopicMetadata", topic_id=gone, topic_name="orders")
    cluster.of_group("ConsumerGroupPartitionMetadata", "h", {"topics": (old,)})
    rows = _with_brokers(cluster, orders=3)
    assert values_of(rows, "check", "topic_id", "partition")[1:] == [("unassigned", ORDERS, 2)]


def test_a_deleted_topic_has_no_partitions_to_assign() -> None:
    """The metadata log names it too, and another topic has its name now."""
    names, counts = {OTHER: "orders", ORDERS: "orders"}, {"orders": 2, OFFSETS_TOPIC: 1}
    assert read_table("checks", Brokers(sound_group().table(), names, counts, OTHER)).table.num_rows == 0


@pytest.mark.parametrize("kind", ["Consumer", "Share", "Streams"])
def test_an_assignment_of_somebody_who_is_no_member(kind: str) -> None:
    cluster = Cluster()
    cluster.member("m", "orders", kind=kind)
    module = f"{kind.lower()}_group_target_assignment_member"
    if kind == "Streams":
        value: dict[str, Any] = {"active_tasks": (struct(module, "TaskIds", subtopology_id="0", partitions=(0,)),)}
    else:
        value = {"topic_partitions": parts(module, ORDERS, (0,))}
    offset = cluster.of_group(f"{kind}GroupTargetAssignmentMember", "g", value, member_id=HOSTILE)
    assert values_of(problems(cluster), "check", "level", "group_id", "member_id", "log_offset") == [
        ("unknown_member", "broken", "g", HOSTILE, offset)
    ]


# -- tasks -------------------------------------------------------------------------------------------------------------


def _streams_group(*subtopologies: Any, validated: int = 0) -> Cluster:
    """A streams group with the members m and n."""
    cluster = Cluster()
    cluster.of_group("StreamsGroupMetadata", "g", {"epoch": 1, "validated_topology_epoch": validated})
    cluster.of_group("StreamsGroupTopology", "g", {"epoch": 0, "subtopologies": subtopologies})
    for member in "mn":
        cluster.member(member, kind="Streams")
    return cluster


def _subtopology(subtopology_id: str, *topics: str, **repartition: int) -> Any:
    """A subtopology that reads `topics`, and repartition topics with the given numbers of partitions."""
    module = "streams_group_topology"
    repartition_topics = tuple(
        struct(module, "TopicInfo", name=name, partitions=count, replication_factor=0, topic_configs=())
        for name, count in repartition.items()
    )
    return struct(
        module,
        "Subtopology",
        subtopology_id=subtopology_id,
        source_topics=topics,
        source_topic_regex=(),
        state_changelog_topics=(),
        repartition_sink_topics=(),
        repartition_source_topics=repartition_topics,
        copartition_groups=(),
    )


def _tasks(cluster: Cluster, member_id: str, **tasks: tuple[int, ...]) -> int:
    """Active tasks by subtopology in the target assignment of a member, and standby tasks of the same numbers."""
    module = "streams_group_target_assignment_member"
    told = tuple(struct(module, "TaskIds", subtopology_id=of, partitions=numbers) for of, numbers in tasks.items())
    value = {"active_tasks": told, "standby_tasks": told}
    return cluster.of_group("StreamsGroupTargetAssignmentMember", "g", value, member_id=member_id)


def test_active_tasks_once() -> None:
    cluster = _streams_group(_subtopology("sub", "orders"))
    _tasks(cluster, "m", sub=(0, 3))
    _tasks(cluster, "n", sub=(0, 1))
    assert values_of(problems(cluster), "check", "level", "member_id", "partition", "detail") == [
        ("assigned_twice", "broken", "n", 0, "active task sub_0 is in the target assignments of 'm' and 'n'"),
        (
            "unassigned",
            "broken",
            None,
            2,
            "1 task of subtopology 'sub' is in no target assignment while the group has members: 2",
        ),
    ]


def test_a_target_without_any_task_was_made_while_topics_were_missing() -> None:
    cluster = _streams_group(_subtopology("sub", "orders"))
    _tasks(cluster, "m")
    row = problem(cluster)
    assert values_of([row], "check", "level", "partition") == [("unassigned", "transient", 0)]
    assert row["detail"].endswith("topics may have been missing when the target was computed: 0")


@pytest.mark.parametrize(("validated", "level"), [(0, "broken"), (-1, "transient")])
def test_tasks_that_the_topology_has(validated: int, level: str) -> None:
    """At least one task of each subtopology, and as many as the topology wants for a repartition topic; not yet if the
    topology is new."""
    cluster = _streams_group(
        _subtopology("a", "orders"),
        _subtopology("b", "others"),
        _subtopology("c", "orders", repartitioned=4, as_many_as_follow=0),
        validated=validated,
    )
    _tasks(cluster, "m", a=(0,))
    offset = _tasks(cluster, "n", c=(0, 1))
    why = "while the group has members" if validated == 0 else "while the group is NotReady"
    assert values_of(problems(cluster), "check", "level", "partition", "log_offset", "detail") == [
        ("unassigned", level, 0, offset, f"1 task of subtopology 'b' is in no target assignment {why}: 0"),
        ("unassigned", level, 2, offset, f"2 tasks of subtopology 'c' are in no target assignment {why}: 2 to 3"),
    ]
    _tasks(cluster, "m", a=(0,), b=(0,), c=(3, 2))
    assert problems(cluster) == []


def test_rows_that_differ_only_in_their_words_have_an_order() -> None:
    """The same one in every process, although the hashes of texts differ."""
    names = [f"sub{number}" for number in range(9)]
    cluster = _streams_group(*(_subtopology(name, "orders") for name in names))
    _tasks(cluster, "m", **dict.fromkeys(reversed(names), (1,)))
    told = [row["detail"].split("'")[1] for row in problems(cluster) if row["partition"] == 0]
    assert told == names


def test_tasks_that_the_source_knows() -> None:
    """As many tasks as the largest topic has partitions, whether it is a source topic or a repartition topic."""
    cluster = _streams_group(_subtopology("a", "orders", "others"), _subtopology("b", others=0), _subtopology("c", "x"))
    _tasks(cluster, "m", a=(0, 1), b=(0,), c=(0,))
    rows = [row for row in _with_brokers(cluster, orders=3, others=2) if row["check"] == "unassigned"]
    assert values_of(rows, "level", "partition", "topic_id") == [("transient", 1, None), ("transient", 2, None)]
    assert "1 task of subtopology 'a' is in no target assignment and the topic has it now" in rows[1]["detail"]
    for member in "mn":
        _leave(cluster, "Streams", member)
    rows = _with_brokers(cluster, orders=3, others=2)
    assert {row["check"] for row in rows} == {"wrong_partition"}, "a group without members"


@pytest.mark.parametrize(("validated", "level"), [(0, "broken"), (-1, "transient")])
def test_tasks_that_the_topology_does_not_have(validated: int, level: str) -> None:
    cluster = _streams_group(_subtopology("a", "orders"), validated=validated)
    _tasks(cluster, "m", a=(0,))
    offset = _tasks(cluster, "n", b=(3, 2))
    (row,) = [row for row in problems(cluster) if row["check"] == "unknown_task"]
    assert values_of([row], "level", "member_id", "partition", "log_offset") == [(level, "n", 2, offset)]
    assert row["detail"].startswith(
        "the target assignment of 'n' has tasks of subtopology 'b', which the topology of the group does not have"
    )
    # Nothing is known about a topology whose record a cleaner has removed.
    cluster.of_group("StreamsGroupTopology", "g", None)
    assert {row["check"] for row in problems(cluster)} == {"unassigned"}


# -- share groups ------------------------------------------------------------------------------------------------------


def _share_group(initialized: tuple[int, ...], *, epoch: int = 1) -> Cluster:
    """A share group at an epoch, with a target assignment of epoch 1: its member subscribes to orders and gets the
    partitions 1 and 2."""
    cluster = Cluster()
    cluster.of_group("ShareGroupMetadata", "g", {"epoch": epoch, "metadata_hash": 0})
    cluster.share_topics(initialized=initialized)
    cluster.member("m", "orders", kind="Share")
    _share_target(cluster, "m", 1, 2)
    cluster.of_group("ShareGroupTargetAssignmentMetadata", "g", {"assignment_epoch": 1})
    return cluster


def _share_target(cluster: Cluster, member_id: str, *numbers: int) -> None:
    value = {"topic_partitions": parts("share_group_target_assignment_member", ORDERS, numbers)}
    cluster.of_group("ShareGroupTargetAssignmentMember", "g", value, member_id=member_id)


def _unassigned(cluster: Cluster) -> list[Row]:
    """Share state itself is not tested here, and was not read."""
    return [row for row in problems(cluster) if row["check"] != "share_state_missing"]


def test_members_of_a_share_group_may_have_the_same_partition() -> None:
    cluster = _share_group((1, 2))
    cluster.member("n", "orders", kind="Share")
    _share_target(cluster, "n", 2, 1)
    assert _unassigned(cluster) == []


def test_initialized_partitions_that_no_member_of_a_share_group_gets() -> None:
    cluster = _share_group((1, 2, 4, 5, 7))
    (row,) = _unassigned(cluster)
    assert values_of([row], "check", "level", "topic", "topic_id", "partition", "member_id") == [
        ("unassigned", "broken", "orders", ORDERS, 4, None)
    ]
    assert row["detail"] == (
        "3 partitions of topic 'orders' are in no target assignment while the group has members: 4 to 5, 7"
    )
    _share_target(cluster, "m")
    (row,) = _unassigned(cluster)
    assert "while the group has members, unless the topic was deleted: 1 to 2, 4 to 5, 7" in row["detail"]
    _share_target(cluster, "m", 1, 2, 4, 5, 7)
    assert _unassigned(cluster) == []


def test_partitions_of_a_topic_that_brokers_no_longer_have() -> None:
    cluster = _share_group((1, 2, 4))
    there = Brokers(cluster.table(), {OTHER: "others"}, {"others": 2, OFFSETS_TOPIC: 2})
    assert "unassigned" not in read_table("checks", there).table["check"].to_pylist()


def test_partitions_that_are_about_to_be_given_out_are_transient() -> None:
    cluster = _share_group((1, 2, 3), epoch=2)
    (row,) = _unassigned(cluster)
    assert (row["level"], row["partition"]) == ("transient", 3)
    assert "while the target assignment is being computed" in row["detail"]
    cluster = _share_group((1, 2))
    cluster.share_topics(initialized=(1, 2, 3))
    (row,) = _unassigned(cluster)
    assert (row["level"], row["partition"]) == ("transient", 3)
    assert "and their share state came later" in row["detail"]


def test_partitions_that_a_share_group_does_not_want() -> None:
    cluster = _share_group((1, 2, 3))
    cluster.member("m", "others", kind="Share")
    assert _unassigned(cluster) == []
    cluster.member("m", "orders", kind="Share")
    assert len(_unassigned(cluster)) == 1
    _leave(cluster, "Share", "m")
    assert _unassigned(cluster) == []


def test_partitions_that_have_no_share_state_yet() -> None:
    cluster = _share_group((1, 2))
    cluster.share_topics(initialized=(1, 2), initializing=(0, 4))
    rows = [row for row in _with_brokers(cluster, orders=6, others=3) if row["check"] == "unassigned"]
    assert values_of(rows, "level", "topic", "partition") == [("transient", "orders", 3)]
    assert rows[0]["detail"].endswith(
        "because they have no share state yet: the next heartbeat of a member requests it: 3, 5"
    )
    cluster.share_topics(initialized=(1, 2), deleting=())
    assert "unassigned" not in {row["check"] for row in _with_brokers(cluster, orders=6, others=3)}
