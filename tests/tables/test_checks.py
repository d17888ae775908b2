"""The table `checks`: every problem once, planted in synthetic topics; none in healthy ones."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import UNMADE_CHECKS
from kafka_records_runtime.kafka.partitioner import partition_for, share_partition_key
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from kafka_records_tables.query import QueryError
from kafka_records_tables.tables.words.check_words import INFORMATION, TRANSIENT
from tests.tables.check_cases import (
    HOSTILE,
    NOT_LOADED,
    ONE_EACH,
    TRANSACTIONS,
    problem,
    problems,
    sound_group,
    values_of,
)
from tests.tables.cluster import ORDERS, Cluster
from tests.tables.histories import SHARE_NAMES, history
from tests.tables.share_topic import SHARE_TOPIC
from tests.tables.topic import OFFSETS_TOPIC
from tests.variants import mostly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    # With another number of partitions, groups belong in other partitions.
    wrong = read_table("checks", segments, partitions=counts[OFFSETS_TOPIC] + 1).table
    assert set(wrong["check"].to_pylist()) == {"wrong_partition"}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARE_NAMES)
def test_share_state_and_groups_of_a_cluster_fit_together(name: str) -> None:
    told, state = history(name.removesuffix("-share")), history(name)
    assert {row["level"] for row in problems(pa.concat_tables([told.rows, state.rows]))} <= {TRANSIENT}


@pytest.mark.slow
@pytest.mark.matrix
@pytest.mark.parametrize("name", SHARE_NAMES)
def test_they_did_so_at_earlier_moments(name: str) -> None:
    told, state = history(name.removesuffix("-share")), history(name)
    both, times = pa.concat_tables([told.rows, state.rows]), told.rows["timestamp_ms"].to_pylist()
    for cut in told.cuts:
        if cut + 1 == len(times) or times[cut + 1] > times[cut]:
            assert {row["level"] for row in problems(both, as_of=times[cut])} <= {TRANSIENT}


def test_a_sound_group_has_no_row() -> None:
    assert problems(sound_group()) == []


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
    assert values_of(problems(cluster), *columns) == [
        ("share_state_missing", "broken", "g", "orders", 1, OFFSETS_TOPIC, named),
        ("share_state_unnamed", "broken", "g", None, 7, SHARE_TOPIC, left),
        ("share_state_unnamed", "broken", HOSTILE, None, 0, SHARE_TOPIC, alone),
        ("share_state_deleting", "transient", "h", "orders", None, OFFSETS_TOPIC, deleting),
        ("share_state_initializing", "transient", "g", "orders", 2, OFFSETS_TOPIC, named),
        ("share_state_initializing", "transient", "g", "orders", 3, OFFSETS_TOPIC, named),
    ]
    details = {(row["check"], row["partition"]): row["detail"] for row in problems(cluster)}
    assert "and 1 of its share partitions still have it" in details["share_state_deleting", None]
    assert "which has it" in details["share_state_initializing", 2]
    assert "which does not have it" in details["share_state_initializing", 3]
    # Only some groups are shown, but what they name is known.
    assert values_of(problems(cluster, group="h"), "check", "group_id") == [("share_state_deleting", "h")]


def test_state_written_after_groups_were_read_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.share_topics(initialized=())
    cluster.state(7)
    assert problem(cluster)["level"] == "broken"
    monkeypatch.setattr("time.time", lambda: 1_699_999_999.0)
    row = problem(cluster)
    assert (row["check"], row["level"]) == ("share_state_unnamed", "transient")


def test_state_that_a_group_named_after_share_state_was_read_is_transient(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    cluster.state(0)
    cluster.share_topics(initialized=(0, 1))
    assert problem(cluster)["level"] == "broken"
    monkeypatch.setattr("time.time", lambda: 1_699_999_999.0)
    row = problem(cluster)
    assert (row["check"], row["level"]) == ("share_state_missing", "transient")
    assert row["detail"].endswith("was written after share state was read")


def test_numbers_of_partitions_that_cannot_be_are_told(topics_dir: Path) -> None:
    segments = topics_dir / "kafka-4.3" / "segments"
    with pytest.raises(
        ValueError, match=r"^partitions: '__consumer_offset' is not a topic of a coordinator; did you mean"
    ):
        read_table("checks", segments, partitions={"__consumer_offset": 6})
    result = read_table("checks", segments, partitions=5)
    (too_few,) = (finding for finding in result.findings if finding.partition is not None)
    assert str(too_few) == (
        "__consumer_offsets-5: this is partition 5, but the given number of partitions is 5 (that number causes the "
        "rows of wrong_partition: it is wrong, or the log belongs to another topic)"
    )
    assert all(finding.partition is None for finding in read_table("checks", segments, partitions=6).findings)


def test_as_of_a_moment_state_may_have_been_lost() -> None:
    cluster = Cluster()
    cluster.share_topics(initialized=(0, 1))
    cluster.state(0)
    row = problem(cluster, as_of=1_700_000_000_000)
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
    assert values_of(problems(cluster), "check", "group_id", "log_topic") == [
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
    rows = problems(cluster)
    assert values_of(rows, "check", "level", "group_id", "transactional_id", "log_offset") == [
        ("undecodable_record", "broken", HOSTILE, None, broken),
        ("undecodable_record", "broken", None, None, nameless),
        ("undecodable_record", "broken", None, "id", entry),
        ("unknown_record_type", INFORMATION, None, None, unknown),
    ]
    assert rows[0]["detail"].endswith(f": {NOT_LOADED}")
    assert "stops reading here" in rows[2]["detail"]
    assert rows[3]["detail"].startswith("2 records of type 99, which Kafka 4.4 does not know")


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
    assert values_of(result.table.to_pylist(), "check", "level", "log_topic", "log_partition", "log_offset") == [
        ("damaged_log", "broken", OFFSETS_TOPIC, 4, 322)
    ]
    assert any("wrong CRC" in finding.what for finding in result.findings if finding.severity == "damage")


# -- where records are -----------------------------------------------------------------------------------------------


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
    rows = problems(cluster, partitions=f"7, {SHARE_TOPIC}=5")
    assert {row["check"] for row in rows} == {"wrong_partition"}
    assert sorted(row["group_id"] for row in rows) == sorted([*groups[1:], "a:b"])
    (of_state,) = [row for row in rows if row["log_topic"] == SHARE_TOPIC]
    assert (of_state["log_partition"], of_state["log_offset"]) == ((home + 1) % 5, stray)
    shown = next(row for row in rows if row["group_id"] == "\U0001f600")
    home = partition_for("\U0001f600", 7)
    assert shown["detail"] == (
        f"2 records in partition {(home + 3) % 7}: the coordinator of {chr(0x1F600)!r} reads only partition {home} of 7"
    )


def test_without_a_number_of_partitions_a_note_says_so() -> None:
    result = read_table("checks", sound_group().table())
    (told,) = [str(each) for each in result.findings if each.topic is None]
    assert told == (
        f"the log: the number of partitions is unknown for {OFFSETS_TOPIC} (wrong_partition is not checked "
        f"there; pass it with --partitions {OFFSETS_TOPIC}=N (partitions in Python and Spark), N as kafka-topics "
        "--describe has it)"
    )


@pytest.mark.parametrize("wrong", ["", "x", "0", "-1", "a=", "a=0", "99999999999", 0, {"a": 0}, 2**31])
def test_what_is_no_number_of_partitions(wrong: Any) -> None:
    with pytest.raises(
        QueryError, match=r"^partitions: .* is not a number of partitions: write 50, or .*=50 for one topic$"
    ):
        read_table("checks", sound_group().table(), partitions=wrong)


@pytest.mark.parametrize("wrong", [True, 1.5, [50], {"a": "1"}])
def test_what_is_no_kind_of_number(wrong: Any) -> None:
    with pytest.raises(TypeError, match="partitions must be a number"):
        read_table("checks", sound_group().table(), partitions=wrong)


# -- on either engine --------------------------------------------------------------------------------------------------


def _everything() -> Cluster:
    cluster = sound_group()
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
    expected = problems(rows)
    assert {row["check"] for row in expected} >= {"replay_conflict", "undecodable_record", "share_state_missing"}
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    Random(1).shuffle(order)
    assert problems(rows.take(order)) == expected


@pytest.mark.spark
@pytest.mark.parametrize(
    "way", mostly((("table",), ("format",), ("read_table",), ("one run",)), lambda way: way == "table")
)
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
        tables.register(spark, engine="python")
        options = {"table": "checks", "partitions": asked["partitions"], "loadsIn": "3.9", "mode": "PERMISSIVE"}
        found = spark.read.format("kafka-records").options(**options).load(saved).toArrow()
    elif way == "read_table":
        found = tables.read_table(spark, "checks", saved, **asked).toArrow()
    else:
        found = read_table("checks", saved, spark=spark, **asked).table
    assert in_order(found).equals(in_order(expected))
