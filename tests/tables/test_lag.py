"""Lag: committed offsets next to the ends of the logs that they are for, by partition and by group."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from kafka_records_engine.sources import Context
from kafka_records_engine.sources.protocol import LogEnds
from kafka_records_engine.sources.question import Question
from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_tables import TABLES, read_table
from kafka_records_tables.tables.lagging.owners import of_own_partition, report_absent_logs
from kafka_records_tables.topics import OFFSETS
from tests.cli.running import run
from tests.tables.consumed import START_MS, Brokers, Commit, Place, data_directory, plain_lag, told
from tools.incidents.recording import unpack

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).resolve().parents[1] / "data"
RECORDED, CLUSTERS = DATA / "incidents", DATA / "clusters"
Row = dict[str, Any]
ID, OTHER_ID = "GbK1GQHFS4ymFPkmnUrzCQ", "t45nZMKZRXuARwA1OeCzdg"
HOSTILE = 'a "b",\n\x1b[31m→'

ENDS: dict[Place, LogEnds] = {
    ("orders", 0): told(10, 50, 45, ID),
    ("orders", 1): told(0, 7, topic_id=ID),
    ("orders", 2): told(3, 3, topic_id=ID),
    ("untold", 0): LogEnds("", 0),
    ("untold", 1): LogEnds("", 1, log_start_offset=0),
    ("nobodys", 0): told(0, 100),
}
COMMITS = [
    Commit("well", "orders", 0, 40, ID, at_ms=START_MS - 5),
    Commit("well", "orders", 1, 7, at_ms=START_MS + 5),
    Commit("past the open transaction", "orders", 0, 48),
    Commit("too low", "orders", 0, 4, ID),
    Commit("too high", "orders", 0, 51, ID),
    Commit("of another topic", "orders", 0, 20, OTHER_ID),
    Commit("negative", "orders", 0, -(1 << 63)),
    Commit(HOSTILE, "gone", 3, 12),
    Commit("untold", "untold", 0, 12),
    Commit("twice", "orders", 0, 11, log_partition=0),
    Commit("twice", "orders", 0, 50, log_partition=1),
]
ASSIGNED = {
    "well": [("orders", 0), ("orders", 1), ("orders", 2)],
    "too low": [("orders", 1)],
    "never commits": [("orders", 0), ("orders", 2), ("untold", 0), ("gone", 0)],
}
EXPECTED = {
    ("well", "orders", 0, 0): (10, 5, 0, None),
    ("well", "orders", 1, 0): (0, 0, 0, None),
    ("past the open transaction", "orders", 0, 0): (2, 0, 0, None),
    ("too low", "orders", 0, 0): (46, 41, 6, "below_log_start"),
    ("too low", "orders", 1, 0): (None, None, None, "no_commit"),
    ("too high", "orders", 0, 0): (None, None, None, "beyond_end"),
    ("of another topic", "orders", 0, 0): (None, None, None, "topic_recreated"),
    ("negative", "orders", 0, 0): (None, None, None, "no_commit"),
    (HOSTILE, "gone", 3, 0): (None, None, None, "no_log"),
    ("untold", "untold", 0, 0): (None, None, None, "end_unknown"),
    ("never commits", "orders", 0, 0): (None, None, None, "no_commit"),
    ("never commits", "untold", 0, 0): (None, None, None, "end_unknown"),
    ("twice", "orders", 0, 0): (39, 34, 0, None),
    ("twice", "orders", 0, 1): (0, 0, 0, None),
}
JUDGED = ("lag", "stable_lag", "lost", "problem")


def rows_of(source: Any, name: str = "lag", **options: Any) -> list[Row]:
    result = read_table(name, source, **options)
    assert result.findings == ()
    rows: list[Row] = result.table.to_pylist()
    return rows


KEY = ("group_id", "topic", "partition", "log_partition")


def judged(rows: list[Row]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    told = {tuple(row[name] for name in KEY): tuple(row[name] for name in JUDGED) for row in rows}
    assert len(told) == len(rows)
    return told


def test_every_case() -> None:
    rows = rows_of(Brokers(COMMITS, ENDS, ASSIGNED))
    assert judged(rows) == EXPECTED
    (row,) = [row for row in rows if (row["group_id"], row["partition"]) == ("well", 0)]
    assert {name: row[name] for name in row if name not in JUDGED} == {
        "group_id": "well",
        "topic": "orders",
        "partition": 0,
        "offset": 40,
        "log_start_offset": 10,
        "end_offset": 50,
        "last_stable_offset": 45,
        **dict.fromkeys(("unread", "held_back", "unread_timestamp", "unread_timestamp_ms", "known_by")),
        **dict.fromkeys(("lag_ms", "margin_ms", "commit_rate", "produce_rate", "caught_up_in_ms")),
        "member_id": "m-1",
        "client_id": "client",
        "client_host": "/127.0.0.1",
        "has_left": False,
        "topic_id": ID,
        "commit_timestamp": pa.scalar(START_MS - 5, pa.timestamp("ms", tz="UTC")).as_py(),
        "commit_timestamp_ms": START_MS - 5,
        "log_partition": 0,
    }


def test_random_commits_and_ends_by_the_same_rule_once_more() -> None:
    seen = Counter[Any]()
    for seed in range(40):
        chance = Random(seed)
        topics = {f"t{number}": (chance.choice([None, ID]), chance.randrange(1, 4)) for number in range(3)}
        ends = {}
        for topic, (known, count) in topics.items():
            for partition in range(count):
                end = chance.randrange(30)
                log = told(chance.randrange(end + 1), end, chance.randrange(end + 1), known)
                ends[topic, partition] = chance.choice([log, log, log, replace(log, high_watermark=None)])
        commits = [
            Commit(
                f"g{chance.randrange(5)}",
                f"t{chance.randrange(4)}",
                chance.randrange(4),
                chance.randrange(-1, 32),
                chance.choice([None, ID, OTHER_ID]),
                chance.randrange(2),
            )
            for _ in range(chance.randrange(30))
        ]
        places = [(f"t{topic}", partition) for topic in range(4) for partition in range(4)]
        assigned = {f"g{number}": chance.sample(places, chance.randrange(6)) for number in range(4)}
        expected = plain_lag(commits, ends, assigned)
        names = list(expected[0]) if expected else []
        assert [
            {name: row[name] for name in names} for row in rows_of(Brokers(commits, ends, assigned))
        ] == expected, seed
        seen.update(row["problem"] for row in expected)
    assert len(seen) == 7
    assert min(seen.values()) > 5


def test_commits_are_read_before_ends() -> None:
    brokers = Brokers(COMMITS, ENDS)
    rows_of(brokers)
    assert brokers.asked == ["__consumer_offsets", "topics", "ends"]


def test_by_group() -> None:
    rows = {
        (row["group_id"], row["log_partition"]): row for row in rows_of(Brokers(COMMITS, ENDS, ASSIGNED), "group_lag")
    }
    assert rows.keys() == {(group, partition) for group, _, _, partition in EXPECTED}
    assert rows["well", 0] == {
        "group_id": "well",
        "lag": 10,
        "max_lag": 10,
        "stable_lag": 5,
        "lost": 0,
        "topics": 1,
        "partitions": 2,
        "unknown": 0,
        "problems": [],
        "commit_timestamp": pa.scalar(START_MS + 5, pa.timestamp("ms", tz="UTC")).as_py(),
        "commit_timestamp_ms": START_MS + 5,
        "log_partition": 0,
    }
    assert rows["too low", 0]["problems"] == [
        {"problem": "below_log_start", "partitions": 1},
        {"problem": "no_commit", "partitions": 1},
    ]
    assert [rows["too low", 0][name] for name in ("lag", "lost", "partitions", "unknown")] == [46, 6, 2, 1]
    assert [rows[HOSTILE, 0][name] for name in ("lag", "max_lag", "stable_lag", "lost")] == [None] * 4
    assert (rows["untold", 0]["partitions"], rows["untold", 0]["unknown"]) == (1, 1)
    assert (rows["never commits", 0]["partitions"], rows["never commits", 0]["unknown"]) == (2, 2)
    assert [rows["twice", partition]["lag"] for partition in (0, 1)] == [39, 0]


def test_sums_over_partitions_whose_end_or_stability_is_unknown() -> None:
    """Each sum is over all partitions but the unknown ones, or null."""
    commits = [Commit("g", topic, 0, 1) for topic in ("a", "b")]
    b = told(0, 20)
    ends = {("a", 0): told(0, 10, 4), ("a", 1): LogEnds("", 1), ("b", 0): b}
    assigned = {"g": [("a", 0), ("a", 1)]}
    (row,) = rows_of(Brokers(commits, ends, assigned), "group_lag")
    assert [row[name] for name in ("lag", "stable_lag", "partitions", "unknown")] == [28, 22, 3, 1]
    assert row["problems"] == [{"problem": "end_unknown", "partitions": 1}]
    ends["b", 0] = replace(b, high_watermark=None, last_stable_offset=None, log_end_offset=20)
    (row,) = rows_of(Brokers(commits, ends, assigned), "group_lag")
    assert [row[name] for name in ("lag", "stable_lag", "unknown")] == [28, None, 1]


@pytest.mark.parametrize("name", ["lag", "group_lag"])
def test_only_some_groups(name: str) -> None:
    brokers = Brokers(COMMITS, ENDS, ASSIGNED)
    groups = ["well", HOSTILE]
    expected = [row for row in rows_of(brokers, name) if row["group_id"] in groups]
    assert expected
    assert rows_of(brokers, name, group=groups) == expected
    (note,) = read_table(name, brokers, group=["nobody", "well"]).findings
    assert (note.severity, note.what) == ("note", "no row is about 'nobody'")


def test_a_group_has_the_partitions_that_it_has_committed_for() -> None:
    """A consumer that assigns itself half of a topic has no lag in the other half."""
    ends: dict[Place, LogEnds] = {("halves", number): told(0, 10) for number in range(12)}
    brokers = Brokers([Commit("half", "halves", number, 4) for number in range(6)], ends)
    (row,) = rows_of(brokers, "group_lag")
    assert [row[name] for name in ("lag", "topics", "partitions", "unknown")] == [36, 1, 6, 0]


def directory(folder: Path) -> Path:
    logs = {place: (each.log_start_offset or 0, each.high_watermark or 0, ID) for place, each in ENDS.items()}
    return data_directory(folder, [each for each in COMMITS if each.topic != "untold"], logs, ASSIGNED)


def test_a_data_directory(tmp_path: Path) -> None:
    folder = directory(tmp_path)
    rows = rows_of(folder)
    # No file has the last stable offset.
    untold = {place: (lag, None, *rest) for place, (lag, _, *rest) in EXPECTED.items() if "untold" not in place[:2]}
    assert judged(rows) == untold
    (folder / "replication-offset-checkpoint").write_text("0\n1\norders 0 30\n")
    assert judged(rows_of(folder)) == untold  # it is seconds old, and lag is not computed up to it
    some = read_table("lag", folder, group="well", columns=["lag"])
    assert some.table.to_pydict() == {"lag": [10, 0]}

    ran = run(
        "table", "lag", str(folder), "--topic-filter", "gone", "--columns", "partition,problem", "--format", "csv"
    )
    assert (ran.status, ran.out) == (0, "partition,problem\r\n3,no_log\r\n")
    ran = run("table", "group_lag", str(folder), "--as-of", "1h")
    assert ran.status == 2
    told = "--as-of: rows of group_lag show logs as they are now: leave it out, or ask current_offsets, which can show"
    assert ran.err.splitlines()[0] == f"kafka-records table: error: {told} that moment"


def test_a_source_that_knows_no_other_logs(topics_dir: Path) -> None:
    folder = topics_dir / "kafka-4.3" / "segments"
    commits = read_table("current_offsets", folder).table
    same = ["group_id", "topic", "partition", "offset", "commit_timestamp", "log_partition"]
    for source in (folder, read_segments(folder)):
        found = read_table("lag", source).table
        assert found.select(same) == commits.select(same)
        assert {*found["problem"].to_pylist()} == {"no_log"}
        assert found["lag"].null_count == found.num_rows == 78


def read_segments(folder: Path) -> pa.Table:
    """The raw rows of the offsets topic."""
    from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
    from kafka_records_engine.sources import Context
    from kafka_records_engine.sources.segment_files import Segments

    logs = Segments(folder).partitions("__consumer_offsets")
    names = RAW_SCHEMA.names
    batches = [batch.select(names) for log in logs for batch in log.batches(Context(), names)]
    return pa.Table.from_batches(batches)


def test_a_view_asks_its_inputs_what_they_can_be_asked() -> None:
    """An input gets all of its own options, with the values that the view has under the same names."""
    from kafka_records_tables.engines.checked_request import request_of
    from kafka_records_tables.engines.joined_tables import input_requests
    from kafka_records_tables.engines.request import TableRequest

    asked = input_requests(request_of("lag", group="g"))
    assert {name: each.question.groups for name, each in asked.items()} == {
        "current_offsets": ("g",),
        "assigned_partitions": ("g",),
        "log_ends": None,
    }
    question = replace(request_of("open_transactions", group="id").question, values=((("retention", 5),),))
    inputs = [each.question for each in input_requests(TableRequest(question)).values()]
    assert all(each.groups is None and each.options == {} for each in inputs)


def timeless(rows: pa.Table) -> pa.Table:
    """The columns that do not depend on the moment of the answer."""
    return rows.drop_columns([name for name in ("lag_ms", "margin_ms") if name in rows.column_names])


# -- in Spark ----------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.matrix
@pytest.mark.parametrize("name", ["lag", "group_lag"])
def test_spark_gives_the_same_rows(spark: SparkSession, tmp_path: Path, name: str) -> None:
    from kafka_records_tables import spark as tables

    folder = str(directory(tmp_path))
    expected = read_table(name, folder).table
    tables.register(spark, engine="python")
    source = spark.read.format("kafka-records").options(table=name).load(folder)
    for frame in (tables.read_table(spark, name, folder), source):
        rows = frame.toArrow().cast(TABLES[name].schema)
        assert timeless(rows.sort_by([(each, "ascending") for each in TABLES[name].sort])).equals(timeless(expected))
    assert timeless(read_table(name, folder, spark=spark).table).equals(timeless(expected))
    assert (
        tables.read_table(spark, name, folder, group="well").count()
        == read_table(name, folder, group="well").table.num_rows
    )
    assert tables.read_findings(spark, name, folder).count() == 0
    with pytest.raises(ValueError, match=f"{name} is not computed from records: pass the source of the logs"):
        tables.table(spark.range(1), name)


@pytest.mark.spark
@pytest.mark.matrix
def test_spark_gives_the_same_rates_of_a_real_broker(spark: SparkSession, tmp_path: Path) -> None:
    from kafka_records_tables import spark as tables

    folder = str(unpack(RECORDED / "too_slow-1", tmp_path))
    expected = read_table("lag", folder, window="1m").table
    assert expected["produce_rate"].null_count == 0
    assert 0 < expected["caught_up_in_ms"].null_count < expected["commit_rate"].length()
    rows = tables.read_table(spark, "lag", folder, window="1m").toArrow().cast(TABLES["lag"].schema)
    assert timeless(rows.sort_by([(each, "ascending") for each in TABLES["lag"].sort])).equals(timeless(expected))


def test_dead_copies_of_groups_do_not_count() -> None:
    """The number of partitions was changed, and the coordinator of the group has read another one since."""
    home = partition_for("g", 50)
    found = [(0, 7), (home, 9)]
    rows = pa.table({"group_id": ["g"] * 2, "log_partition": pa.array([at for at, _ in found], pa.int32())})
    context = Context()
    assert of_own_partition(rows, None, context) == rows
    assert not [*context.findings]
    assert of_own_partition(rows, 50, context)["log_partition"].to_pylist() == [home]
    (finding,) = context.findings
    assert finding.severity == "note"


@pytest.mark.parametrize(
    ("count", "groups", "what"),
    [
        (4, None, ["partitions 1, 3 of 4 have no log in the source"]),
        (3, None, ["partition 1 of 3 has no log in the source"]),
        (4, ("a",), ["partitions 1, 3 of 4 have no log in the source"]),
        (4, ("b",), []),
        (None, None, []),
    ],
)
def test_partitions_of_the_offsets_topic_without_a_log(
    count: int | None, groups: tuple[str, ...] | None, what: list[str]
) -> None:
    assert [partition_for(group, 4) for group in "ab"] == [1, 2]
    ends = pa.table({"topic": [OFFSETS, OFFSETS, "orders"], "partition": pa.array([0, 2, 1], pa.int32())})
    context = Context(question=Question(groups=groups))
    report_absent_logs(ends, count, context)
    assert [(each.severity, each.what) for each in context.findings] == [("damage", each) for each in what]


def test_a_copy_without_a_log_of_the_offsets_topic(tmp_path: Path) -> None:
    """The metadata log says how many partitions there are."""
    folder = unpack(CLUSTERS / "16", tmp_path / "data")
    assert run("table", "group_lag", str(folder)).status == 0
    rmtree(folder / "__consumer_offsets-3")
    ran = run("table", "group_lag", str(folder), "--columns", "group_id")
    assert ran.status == 1
    said = "__consumer_offsets: partition 3 of 5 has no log in the source (groups in these partitions have no rows)"
    assert said in ran.err.splitlines()
    assert "could not be decoded" not in ran.err


def test_the_history_of_commits_tells_times_and_rates() -> None:
    minute = 60_000
    commits = [
        *(Commit("ahead", "orders", 0, 10 * n, at_ms=START_MS + n * minute) for n in range(31)),
        *(Commit("late", "orders", 0, n, at_ms=START_MS + n * minute) for n in range(31)),
        Commit("alone", "returns", 0, 5, at_ms=START_MS),
    ]
    source = Brokers(commits, {("orders", 0): told(0, 300), ("returns", 0): told(0, 9)})

    def rows(**options: Any) -> dict[str, dict[str, Any]]:
        return {row["group_id"]: row for row in read_table("lag", source, **options).table.to_pylist()}

    without = rows()
    assert {row["known_by"] for row in without.values()} == {None}
    assert {row["commit_rate"] for row in without.values()} == {None}
    late, ahead, alone = (rows(window="10m")[name] for name in ("late", "ahead", "alone"))
    # The other group was behind offset 30 when it committed 40.
    assert (late["unread_timestamp_ms"], late["known_by"]) == (START_MS + 4 * minute, "commits")
    assert late["lag_ms"] > 0
    assert (ahead["lag"], ahead["unread_timestamp_ms"]) == (0, None)
    assert (alone["lag"], alone["unread_timestamp_ms"]) == (4, None)
    names = ("lag", "stable_lag", "problem", "offset")
    assert [late[name] for name in names] == [without["late"][name] for name in names]
