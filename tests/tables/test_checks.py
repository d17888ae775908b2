"""The table `checks`: every problem once, planted in made-up topics; nothing in sound ones."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import UNMADE_CHECKS
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_runtime.partitioner import partition_for, share_partition_key
from kafka_records_runtime.uuids import Uuid
from kafka_records_tables import read_table
from kafka_records_tables.query import QueryError
from kafka_records_tables.tables.check_words import CHECKS, INFORMATION, TRANSIENT
from tests.tables.cluster import ORDERS, Cluster, parts
from tests.tables.histories import SHARE_NAMES, history
from tests.tables.names import mostly
from tests.tables.planted_conflicts import PLANTED
from tests.tables.share_topic import SHARE_TOPIC
from tests.tables.topic import OFFSETS_TOPIC, Topic, struct

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]

OTHER = "AAAAAAAAAAAAAAAAAAAAAQ"
TRANSACTIONS = "__transaction_state"
ONE_EACH = {OFFSETS_TOPIC: 1, SHARE_TOPIC: 1, TRANSACTIONS: 1}
HOSTILE = "a\n'\"\u202e\x00; DROP"
NOT_LOADED = "no coordinator loads this log, it stops at this record"


def _rows(cluster: Topic | pa.Table, **options: Any) -> list[Row]:
    """The problems; there is nothing to find but what was not checked for want of a topic."""
    table = cluster.table() if isinstance(cluster, Topic) else cluster
    result = read_table("checks", table, **{"partitions": ONE_EACH, **options})
    assert {finding.reason for finding in result.findings} <= {UNMADE_CHECKS}
    rows: list[Row] = result.table.to_pylist()
    assert {row["check"] for row in rows} <= set(CHECKS)
    assert all(row["detail"] and row["log_topic"] for row in rows)
    return rows


def _told(rows: list[Row], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in columns) for row in rows]


def _one(cluster: Topic, **options: Any) -> Row:
    (row,) = _rows(cluster, **options)
    return row


# -- sound topics ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("capture", ["kafka-2.8", "kafka-4.3", "kafka-4.3-expiry"])
def test_what_brokers_wrote_is_sound(capture: str, topics_dir: Path) -> None:
    segments = topics_dir / capture / "segments"
    counts: dict[str, int] = {}
    for place in segments.iterdir():
        topic = place.name.rpartition("-")[0]
        if topic.startswith("__"):
            counts[topic] = counts.get(topic, 0) + 1
    result = read_table("checks", segments, partitions=counts)
    assert result.table.to_pylist() == []
    assert {each.topic for each in result.findings if each.reason == UNMADE_CHECKS} == set(ONE_EACH) - counts.keys()
    # A topic with one partition more or less has groups elsewhere.
    wrong = read_table("checks", segments, partitions=counts[OFFSETS_TOPIC] + 1).table
    assert set(wrong["check"].to_pylist()) == {"wrong_partition"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARE_NAMES)
def test_share_state_and_groups_of_a_cluster_fit_together(name: str) -> None:
    told, state = history(name.removesuffix("-share")), history(name)
    assert {row["level"] for row in _rows(pa.concat_tables([told.rows, state.rows]))} <= {TRANSIENT}


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("name", SHARE_NAMES)
def test_they_did_so_at_earlier_moments(name: str) -> None:
    told, state = history(name.removesuffix("-share")), history(name)
    both, times = pa.concat_tables([told.rows, state.rows]), told.rows["timestamp_ms"].to_pylist()
    for cut in told.cuts:
        if cut + 1 == len(times) or times[cut + 1] > times[cut]:
            assert {row["level"] for row in _rows(both, as_of=times[cut])} <= {TRANSIENT}


def _sound() -> Cluster:
    cluster = Cluster()
    cluster.epochs()
    for member, number in (("m", 0), ("n", 1)):
        cluster.member(member, "orders")
        cluster.target(member, number)
        cluster.current(member, number)
    return cluster


def test_a_sound_group_has_no_row() -> None:
    assert _rows(_sound()) == []


# -- assignments -------------------------------------------------------------------------------------------------------


def test_a_partition_in_two_targets() -> None:
    cluster = _sound()
    offset = cluster.target("n", 0, 1)
    row = _one(cluster)
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
    """At a higher epoch a coordinator takes the second for right; it is broken all the same."""
    cluster = _sound()
    cluster.current("n", 1, epoch=2, gives_up=(0,))
    row = _one(cluster)
    assert (row["check"], row["level"], row["partition"]) == ("assigned_twice", "broken", 0)
    assert "the current assignments of 'm' and 'n'" in row["detail"]


def test_holes_between_the_partitions_that_are_assigned() -> None:
    cluster = _sound()
    cluster.commit("elsewhere", 1)
    offset = cluster.target("n", 2, 5, 9)
    row = _one(cluster)
    assert _told([row], "check", "level", "topic_id", "partition", "member_id", "log_offset") == [
        ("unassigned", "broken", ORDERS, 1, None, offset)
    ]
    assert row["detail"].startswith(f"6 partitions of topic '{ORDERS}' in no target assignment while the group has mem")
    assert row["detail"].endswith(": 1, 3 to 4, 6 to 8")
    # While a new target assignment is due, the old one may lack some.
    cluster.of_group("ConsumerGroupMetadata", "g", {"epoch": 2})
    row = _one(cluster)
    assert (row["level"], "while the group is Assigning" in row["detail"]) == ("transient", True)


def test_hostile_numbers_of_partitions_cost_nothing() -> None:
    cluster = _sound()
    cluster.target("n", 2**31 - 1, -5, 1)
    row = _one(cluster)
    assert (row["check"], row["partition"]) == ("unassigned", 2)
    assert row["detail"].endswith(f": 2 to {2**31 - 2}")


def test_partitions_that_a_group_of_an_older_broker_remembers() -> None:
    cluster = _sound()
    module = "consumer_group_partition_metadata"
    topics = [("orders", ORDERS, 4), ("others", OTHER, 2), ("nobody's", "AAAAAAAAAAAAAAAAAAAAAg", 3)]
    topics_known = tuple(
        struct(module, "TopicMetadata", topic_id=Uuid.from_string(each), topic_name=name, num_partitions=count)
        for name, each, count in topics
    )
    cluster.of_group("ConsumerGroupPartitionMetadata", "g", {"topics": topics_known})
    cluster.member("m", "orders", "others")
    assert _told(_rows(cluster), "check", "level", "topic", "partition") == [
        ("unassigned", "broken", "others", 0),
        ("unassigned", "broken", "orders", 2),
    ]


def test_partitions_that_the_source_knows() -> None:
    """A topic that has grown gets a new target assignment at the next heartbeat."""

    class Brokers:
        name = "brokers"

        def __init__(self, rows: pa.Table) -> None:

            self._rows = ArrowRows(rows)

        def topics(self) -> Any:
            return self._rows.topics()

        def partitions(self, topic: str) -> Any:
            return self._rows.partitions(topic)

        def topic_names(self) -> dict[str, str]:
            return {ORDERS: "orders", OTHER: "others"}

        def partition_counts(self) -> dict[str, int]:
            return {"orders": 3, "others": 6, OFFSETS_TOPIC: 2}

    cluster = _sound()
    result = read_table("checks", Brokers(cluster.table()))
    rows = sorted(result.table.to_pylist(), key=lambda row: str(row["check"]))
    assert _told(rows, "check", "level", "topic", "partition", "group_id") == [
        ("unassigned", "transient", "orders", 2, "g"),
        ("wrong_partition", "broken", None, None, "g"),
    ]
    assert partition_for("g", 2) == 1
    assert all("partitions" not in finding.what for finding in result.findings)
    cluster.member("m", "orders", "others")
    whole = read_table("checks", Brokers(cluster.table())).table.to_pylist()
    (row,) = [row for row in whole if row["topic"] == "others"]
    assert _told([row], "check", "level", "partition", "group_id") == [("unassigned", "transient", 0, "g")]
    assert row["detail"].endswith(": 0 to 5")
    nobody = Cluster()
    nobody.epochs()
    nobody.member("m", "orders")
    (row,) = [row for row in read_table("checks", Brokers(nobody.table())).table.to_pylist() if row["topic"]]
    assert _told([row], "check", "topic", "log_offset") == [("unassigned", "orders", None)]


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
    assert _told(_rows(cluster), "check", "level", "group_id", "member_id", "log_offset") == [
        ("unknown_member", "broken", "g", HOSTILE, offset)
    ]


def test_active_tasks_once() -> None:
    cluster = Cluster()
    module = "streams_group_target_assignment_member"
    for member, numbers in (("m", (0, 3)), ("n", (0, 1))):
        cluster.member(member, kind="Streams")
        tasks = (struct(module, "TaskIds", subtopology_id="sub", partitions=numbers),)
        value = {"active_tasks": tasks, "standby_tasks": tasks}
        cluster.of_group("StreamsGroupTargetAssignmentMember", "g", value, member_id=member)
    cluster.of_group("StreamsGroupMetadata", "g", {"epoch": 1, "validated_topology_epoch": 0})
    cluster.of_group("StreamsGroupTopology", "g", {"epoch": 0, "subtopologies": ()})
    assert _told(_rows(cluster), "check", "level", "member_id", "partition", "detail") == [
        ("assigned_twice", "broken", "n", 0, "active task sub_0 is in the target assignments of 'm' and 'n'"),
        (
            "unassigned",
            "broken",
            None,
            2,
            "1 task of subtopology 'sub' in no target assignment while the group has members: 2",
        ),
    ]


def test_members_of_a_share_group_may_have_the_same_partition() -> None:
    cluster = Cluster()
    for member in "mn":
        cluster.member(member, "orders", kind="Share")
        numbers = parts("share_group_target_assignment_member", ORDERS, (1, 2))
        cluster.of_group("ShareGroupTargetAssignmentMember", "g", {"topic_partitions": numbers}, member_id=member)
    assert _rows(cluster) == []


# -- share state -------------------------------------------------------------------------------------------------------


def test_share_state_on_both_sides() -> None:
    cluster = Cluster()
    named = cluster.share_topics(initialized=(0, 1), initializing=(2, 3))
    cluster.state(0)
    cluster.state(2)
    left = cluster.state(7)
    alone = cluster.state(0, group=HOSTILE)
    deleting = cluster.share_topics("h", deleting=())
    cluster.state(5, group="h")
    columns = ("check", "level", "group_id", "topic", "partition", "log_topic", "log_offset")
    assert _told(_rows(cluster), *columns) == [
        ("share_state_missing", "broken", "g", "orders", 1, OFFSETS_TOPIC, named),
        ("share_state_unnamed", "broken", "g", None, 7, SHARE_TOPIC, left),
        ("share_state_unnamed", "broken", HOSTILE, None, 0, SHARE_TOPIC, alone),
        ("share_state_deleting", "transient", "h", "orders", None, OFFSETS_TOPIC, deleting),
        ("share_state_initializing", "transient", "g", "orders", 2, OFFSETS_TOPIC, named),
        ("share_state_initializing", "transient", "g", "orders", 3, OFFSETS_TOPIC, named),
    ]
    details = {(row["check"], row["partition"]): row["detail"] for row in _rows(cluster)}
    assert "and 1 of its share partitions have it" in details["share_state_deleting", None]
    assert "which has it" in details["share_state_initializing", 2]
    assert "which does not have it" in details["share_state_initializing", 3]
    # Only some groups are shown, and what they name is known all the same.
    assert _told(_rows(cluster, group="h"), "check", "group_id") == [("share_state_deleting", "h")]


def test_state_written_after_groups_were_read_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.share_topics(initialized=())
    cluster.state(7)
    assert _one(cluster)["level"] == "broken"
    monkeypatch.setattr("time.time", lambda: 1_699_999_999.0)
    row = _one(cluster)
    assert (row["check"], row["level"]) == ("share_state_unnamed", "transient")


def test_numbers_of_partitions_that_cannot_be_are_told(topics_dir: Path) -> None:
    segments = topics_dir / "kafka-4.3" / "segments"
    with pytest.raises(
        ValueError, match=r"^partitions: '__consumer_offset' is no topic of a coordinator; did you mean"
    ):
        read_table("checks", segments, partitions={"__consumer_offset": 6})
    result = read_table("checks", segments, partitions=5)
    (too_few,) = (finding for finding in result.findings if finding.partition is not None)
    assert str(too_few) == (
        "__consumer_offsets-5: this is partition 5, and the option partitions says that there are 5 in all (rows of "
        "wrong_partition come from that number: it is wrong, or the log is that of another topic)"
    )
    assert all(finding.partition is None for finding in read_table("checks", segments, partitions=6).findings)


def test_as_of_a_moment_state_may_have_been_lost() -> None:
    cluster = Cluster()
    cluster.share_topics(initialized=(0, 1))
    cluster.state(0)
    row = _one(cluster, as_of=1_700_000_000_000)
    assert (row["check"], row["level"]) == ("share_state_missing", "transient")


def test_where_one_topic_is_not_there_nothing_is_compared() -> None:
    cluster = Cluster()
    cluster.share_topics(initialized=(0, 1))
    result = read_table("checks", cluster.table(), partitions=1)
    assert result.table.num_rows == 0
    assert [str(finding) for finding in result.findings] == [
        f"{SHARE_TOPIC}: no log of this topic was read (its records are not checked, and share state is not compared "
        "with groups)",
        f"{TRANSACTIONS}: no log of this topic was read (its records are not checked)",
    ]


def test_share_groups_with_unreadable_records_are_not_compared() -> None:
    cluster = Cluster()
    cluster.share_topics(initialized=(0,))
    key = cluster.rows[-1][5]
    cluster.add_bytes(key, b"\x00\x00\xff")
    cluster.state(4)
    cluster.share_topics("h", initialized=(0,))
    cluster.state(0, group="h")
    cluster.add_bytes(cluster.rows[-1][5], b"\x00\x09", topic=SHARE_TOPIC)
    assert _told(_rows(cluster), "check", "group_id", "log_topic") == [
        ("undecodable_record", "g", OFFSETS_TOPIC),
        ("undecodable_record", "h", SHARE_TOPIC),
    ]


# -- what does not load ------------------------------------------------------------------------------------------------


def test_records_that_cannot_be_decoded() -> None:
    cluster = Cluster()
    cluster.commit(HOSTILE, 1)
    key = cluster.rows[-1][5]
    broken = cluster.add_bytes(key, b"\x00\x63")
    nameless = cluster.add_bytes(None, b"")
    cluster.add_bytes(b"\x00\x63key", b"\x00\x00")
    unknown = len(cluster.rows) - 1
    cluster.add_bytes(b"\x00\x63other", None)
    entry = cluster.add_bytes(b"\x00\x00\x00\x02id", b"\x00\x09", topic=TRANSACTIONS)
    rows = _rows(cluster)
    assert _told(rows, "check", "level", "group_id", "transactional_id", "log_offset") == [
        ("undecodable_record", "broken", HOSTILE, None, broken),
        ("undecodable_record", "broken", None, None, nameless),
        ("undecodable_record", "broken", None, "id", entry),
        ("unknown_record_type", INFORMATION, None, None, unknown),
    ]
    assert rows[0]["detail"].endswith(f": {NOT_LOADED}")
    assert "stops reading here" in rows[2]["detail"]
    assert rows[3]["detail"].startswith("2 records of type 99, which Kafka 4.3 does not know")


def test_damage_of_the_log_is_a_row(tmp_path: Path, topics_dir: Path) -> None:
    name = "__consumer_offsets-4"
    folder = tmp_path / name
    folder.mkdir()
    for file in (topics_dir / "kafka-4.3" / "segments" / name).glob("*.log"):
        content = bytearray(file.read_bytes())
        if file.name == "00000000000000000267.log":
            content[4000:4001] = b"X"
        (folder / file.name).write_bytes(content)
    result = read_table("checks", folder)
    assert _told(result.table.to_pylist(), "check", "level", "log_topic", "log_partition", "log_offset") == [
        ("damaged_log", "broken", OFFSETS_TOPIC, 4, 322)
    ]
    assert any("wrong CRC" in finding.what for finding in result.findings if finding.severity == "damage")


# -- where records stand -----------------------------------------------------------------------------------------------


def test_records_in_the_wrong_partition() -> None:
    cluster = Cluster()
    groups = ["g", HOSTILE, "polygenelubricants", "\U0001f600"]
    for number, group in enumerate(groups):
        home = partition_for(group, 7)
        cluster.commit(group, 1, partition=home)
        cluster.commit(group, 2, partition=(home + number) % 7)
        cluster.commit(group, 3, partition=(home + number) % 7)
    home = partition_for(share_partition_key("a:b", Uuid.from_string(ORDERS), 3), 5)
    cluster.share_topics("a:b", initialized=(3,))
    cluster.rows[-1] = (*cluster.rows[-1][:1], partition_for("a:b", 7), *cluster.rows[-1][2:])
    cluster.state(3, group="a:b", log_partition=home)
    stray = cluster.state(3, group="a:b", log_partition=(home + 1) % 5)
    rows = _rows(cluster, partitions=f"7, {SHARE_TOPIC}=5")
    assert {row["check"] for row in rows} == {"wrong_partition"}
    assert sorted(row["group_id"] for row in rows) == sorted([*groups[1:], "a:b"])
    (of_state,) = [row for row in rows if row["log_topic"] == SHARE_TOPIC]
    assert (of_state["log_partition"], of_state["log_offset"]) == ((home + 1) % 5, stray)
    shown = next(row for row in rows if row["group_id"] == "\U0001f600")
    home = partition_for("\U0001f600", 7)
    assert shown["detail"] == (
        f"2 records in partition {(home + 3) % 7}: of 7 partitions {home} is asked for {chr(0x1F600)!r}, whose "
        "coordinator does not read them"
    )


def test_without_a_number_of_partitions_a_note_says_so() -> None:
    result = read_table("checks", _sound().table())
    (told,) = [str(each) for each in result.findings if each.topic is None]
    assert told == (
        f"the log: nobody tells how many partitions there are of {OFFSETS_TOPIC} (wrong_partition is not checked "
        f"there; the option partitions says it, as in {OFFSETS_TOPIC}=50)"
    )


@pytest.mark.parametrize("wrong", ["", "x", "0", "-1", "a=", "a=0", "99999999999", 0, {"a": 0}, 2**31])
def test_what_is_no_number_of_partitions(wrong: Any) -> None:
    with pytest.raises(
        QueryError, match=r"^partitions: .* is no number of partitions: write 50, or .*=50 for one topic$"
    ):
        read_table("checks", _sound().table(), partitions=wrong)


@pytest.mark.parametrize("wrong", [True, 1.5, [50], {"a": "1"}])
def test_what_is_no_kind_of_number(wrong: Any) -> None:
    with pytest.raises(TypeError, match="partitions is a number"):
        read_table("checks", _sound().table(), partitions=wrong)


# -- on either engine --------------------------------------------------------------------------------------------------


def _everything() -> Cluster:
    cluster = _sound()
    cluster.target("n", 0, 1, 5)
    cluster.share_topics("s", initialized=(0, 1))
    cluster.state(1, group="s")
    cluster.state(2, group="t")
    cluster.add_bytes(b"\x00\x09\x00", None)
    cluster.add_bytes(b"\x00\x02\x00\x01h", b"\x00\x63")
    cluster.of_group("ShareGroupMetadata", "g", {"epoch": 1, "metadata_hash": 0})
    return cluster


def test_rows_in_any_order_and_each_twice() -> None:
    rows = _everything().table()
    expected = _rows(rows)
    assert {row["check"] for row in expected} >= {"replay_conflict", "undecodable_record", "share_state_missing"}
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    Random(1).shuffle(order)
    assert _rows(rows.take(order)) == expected


@pytest.mark.spark
@pytest.mark.parametrize("way", ["table", "format", *mostly((("read_table",), ("one run",)), lambda _: False)])
def test_spark_gives_the_same_rows(spark: SparkSession, tmp_path: Path, way: str) -> None:
    import pyarrow.parquet as pq

    from kafka_records_tables import TABLES
    from kafka_records_tables import spark as tables

    def in_order(rows: pa.Table) -> pa.Table:
        order = [(each, "ascending") for each in (*TABLES["checks"].sort, "detail")]
        return rows.cast(TABLES["checks"].schema).sort_by(order)

    saved = str(tmp_path / "rows.parquet")
    pq.write_table(_everything().table(), saved)
    asked: dict[str, Any] = {"partitions": f"2,{SHARE_TOPIC}=1", "loads_in": "3.9"}
    expected = read_table("checks", saved, **asked).table
    assert {"wrong_partition", "passed_over_by_release"} <= set(expected["check"].to_pylist())
    if way == "table":
        raw = spark.read.parquet(saved)
        found = tables.table(raw.unionByName(raw), "checks", **asked).toArrow()
    elif way == "format":
        tables.register(spark)
        options = {"table": "checks", "partitions": asked["partitions"], "loadsIn": "3.9", "mode": "PERMISSIVE"}
        found = spark.read.format("kafka-records").options(**options).load(saved).toArrow()
    elif way == "read_table":
        found = tables.read_table(spark, "checks", saved, **asked).toArrow()
    else:
        found = read_table("checks", saved, spark=spark, **asked).table
    assert in_order(found).equals(in_order(expected))


# -- other releases ----------------------------------------------------------------------------------------------------


def _of_now() -> Cluster:
    """Records as Kafka 4.3 writes them."""
    cluster = Cluster()
    cluster.commit("c", 1)
    cluster.commit("c", 2)
    cluster.commit("deleted", None)
    cluster.member("m", "orders")
    cluster.share_topics("s", initialized=(0,))
    cluster.state(0, group="s")
    return cluster


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("4.3", []),
        ("4.1", []),
        ("4.0", [("not_loaded_by_release", "s", 5), ("not_loaded_by_release", "s", 4)]),
        (
            "3.9",
            [
                ("passed_over_by_release", "g", 3),
                ("passed_over_by_release", "s", 4),
                ("passed_over_by_release", "s", 5),
            ],
        ),
        (
            "2.8",
            [
                ("not_loaded_by_release", "c", 0),
                ("not_loaded_by_release", "g", 3),
                ("not_loaded_by_release", "s", 4),
                ("passed_over_by_release", "s", 5),
            ],
        ),
    ],
)
def test_what_a_release_does_with_records_of_now(release: str, expected: list[tuple[str, str, int]]) -> None:
    rows = _rows(_of_now(), loads_in=release)
    assert sorted(_told(rows, "check", "group_id", "log_offset")) == sorted(expected)
    assert {row["level"] for row in rows if row["check"] == "not_loaded_by_release"} <= {"broken"}
    assert {row["level"] for row in rows if row["check"] == "passed_over_by_release"} <= {INFORMATION}


def test_tombstones_of_types_that_a_release_does_not_know() -> None:
    cluster = Cluster()
    cluster.of_group("ConsumerGroupMetadata", "g", None)
    row = _one(cluster, loads_in="2.8")
    assert _told([row], "check", "level", "group_id") == [("not_loaded_by_release", "broken", "g")]
    assert row["detail"] == (
        "1 record ConsumerGroupMetadata (type 3): 2.8 does not know this record type, and does not load the log"
    )
    assert _told([_one(cluster, loads_in="3.9")], "check") == [("passed_over_by_release",)]
    assert _rows(cluster, loads_in="4.0") == []


def test_types_that_nobody_knows_are_not_loaded_before_3_5() -> None:
    cluster = Cluster()
    cluster.add_bytes(b"\x00\x63\x00\x01a", None)
    later, rows = (read_table("checks", cluster.table(), loads_in=each).table.to_pylist() for each in ("3.5", "2.8"))
    assert _told(later, "check") == [("unknown_record_type",)]
    assert _told(rows, "check", "level") == [("not_loaded_by_release", "broken"), ("unknown_record_type", INFORMATION)]
    assert rows[0]["detail"].startswith("1 record of type 99: 2.8 does not know this record type")


@pytest.mark.parametrize(
    ("release", "known"), [("2.8.2", "2.8"), ("3.4", "2.8"), ("3.6", "3.5"), ("3.9.1", "3.9"), ("4.3.1", "4.3")]
)
def test_any_release_is_the_last_known_one_before_it(release: str, known: str) -> None:
    same = [
        row | {"detail": row["detail"].replace(f": {release} ", f": {known} ")}
        for row in _rows(_of_now(), loads_in=release)
    ]
    assert same == _rows(_of_now(), loads_in=known)


def test_of_a_newer_release_a_note_says_that_nothing_is_known() -> None:
    found = read_table("checks", _of_now().table(), partitions=ONE_EACH, loads_in="5.0")
    assert "the log: nothing is known of Kafka 5.0 (loads_in tells what 4.3 could not load)" in map(str, found.findings)
    assert found.table.to_pylist() == _rows(_of_now(), loads_in="4.3")


@pytest.mark.parametrize("wrong", ["2.7", "4", "", "x", "3.9-rc1", "1." * 9])
def test_what_is_no_release(wrong: str) -> None:
    with pytest.raises(QueryError, match=r"^loads_in: .* is no release of Kafka from 2.8 on: write 3.9, or 4.1.2$"):
        read_table("checks", _of_now().table(), loads_in=wrong)


def test_records_of_one_kind_are_one_row() -> None:
    first = next(row for row in _rows(_of_now(), loads_in="2.8") if row["group_id"] == "c")
    assert first["detail"] == (
        "2 records OffsetCommit (type 1) with values of version 4: 2.8 does not know this version, and does not load "
        "the log"
    )


# -- conflicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANTED)
def test_conflicts_are_found(name: str) -> None:
    plant, why = PLANTED[name]
    cluster = Cluster()
    plant(cluster)
    conflicts = [row for row in _rows(cluster) if row["check"] == "replay_conflict"]
    assert _told(conflicts, "level", "group_id") == [("broken", "g")] * (why is not None)
    if why is not None:
        detail = conflicts[0]["detail"]
        assert why in detail
        assert detail.endswith(f"; {NOT_LOADED}")


def test_of_each_group_the_first_conflict_is_told() -> None:
    cluster = Cluster()
    for group in ("h", "i"):
        cluster.commit(group, 1)
        first = cluster.of_group("ShareGroupMetadata", group, {"epoch": 1, "metadata_hash": 0})
        cluster.of_group("ShareGroupMetadata", group, {"epoch": 2, "metadata_hash": 0})
    assert _told(_rows(cluster), "check", "group_id", "log_offset") == [
        ("replay_conflict", "h", 1),
        ("replay_conflict", "i", first),
    ]
