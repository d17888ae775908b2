"""`format("kafka-records")`, and what `register` makes callable from SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_tables import TABLES, read_table
from kafka_records_tables.coordinator.transactions import UnknownTransactions
from tests.conftest import DATA_DIR
from tests.tables.names import USUALLY
from tests.tables.topic import OFFSETS_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def names(spark: SparkSession) -> tuple[str, ...]:
    from kafka_records_tables.spark import register

    return register(spark, engine="python")


@pytest.fixture(scope="module")
def segments(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments")


def load(spark: SparkSession, path: str | list[str], **options: str) -> DataFrame:
    return spark.read.format("kafka-records").options(**options).load(path)


def in_order(frame: DataFrame, name: str) -> Any:
    declaration = TABLES[name]
    return frame.toArrow().cast(declaration.schema).sort_by([(each, "ascending") for each in declaration.sort])


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("name", USUALLY)
def test_a_table_by_its_name(spark: SparkSession, segments: str, name: str) -> None:
    frame = load(spark, segments, table=name)
    assert in_order(frame, name).equals(read_table(name, segments).table)
    partitions = {"transactions": 2, "share_partitions": 3, "share_disappearances": 3}.get(name, 4)
    assert frame.rdd.getNumPartitions() >= partitions


def test_each_session_gets_the_source(spark: SparkSession, segments: str) -> None:
    """Spark looks for the name of a source in the active session, but registers the source in the given one."""
    from kafka_records_tables.spark import register

    first, second = spark.newSession(), spark.newSession()
    jvm: Any = spark._jvm
    before = jvm.SparkSession.getActiveSession().get()
    try:
        for session in (first, second, second):
            register(session, engine="python")
            jvm.SparkSession.setActiveSession(first._jsparkSession)
        active = jvm.SparkSession.getActiveSession().get()
        register(second, engine="python")
        assert jvm.SparkSession.getActiveSession().get().equals(active)
        groups = len(read_table("groups", segments))
        assert [load(each, segments, table="groups").count() for each in (first, second)] == [groups, groups]
    finally:
        jvm.SparkSession.setActiveSession(before)


@pytest.mark.usefixtures("names")
def test_where_logs_end(spark: SparkSession, segments: str) -> None:
    whole = load(spark, segments, table="log_ends")
    assert in_order(whole, "log_ends").equals(read_table("log_ends", segments).table)
    one = load(spark, segments, table="log_ends", topic="__share_group_state", columns="topic,log_start_offset")
    assert sorted(map(tuple, one.collect())) == [("__share_group_state", each) for each in (0, 0, 11)]


@pytest.mark.usefixtures("names")
def test_options(spark: SparkSession, segments: str) -> None:
    whole = read_table("offset_commits", segments).table
    groups = whole["group_id"].unique().to_pylist()[:2]
    middle = sorted(whole["log_timestamp_ms"].to_pylist())[len(whole) // 2]
    asked = {"group": f'["{groups[0]}", "{groups[1]}"]', "columns": "log_offset, group_id", "asOf": str(middle)}
    found = load(spark, segments, table="offset_commits", **asked)

    expected = read_table("offset_commits", segments, group=groups, as_of=middle, columns=["log_offset", "group_id"])
    assert found.columns == ["log_offset", "group_id"]
    assert sorted(map(tuple, found.collect())) == sorted(zip(*expected.table.to_pydict().values(), strict=True))
    assert 0 < found.count() < len(whole)


@pytest.mark.usefixtures("names")
def test_options_of_one_table(spark: SparkSession, segments: str) -> None:
    from kafka_records_engine.spark.segments import read_segments
    from kafka_records_tables import spark as tables

    expected = read_table("expirations", segments, at="2026-11-28T02:13:20", retention="7d").table
    asked: dict[str, Any] = {"at": "2026-11-28T02:13:20", "retention": "P7D"}
    assert in_order(load(spark, segments, table="expirations", **asked), "expirations").equals(expected)
    raw = read_segments(spark, segments, topic="__consumer_offsets")
    assert in_order(tables.table(raw, "expirations", **asked), "expirations").equals(expected)
    assert expected.num_rows > 10


@pytest.mark.usefixtures("names")
def test_raw_rows_and_several_paths(spark: SparkSession, segments: str, topics_dir: Path) -> None:
    from kafka_records_engine.spark.raw import RAW_SCHEMA
    from kafka_records_engine.spark.segments import read_segments

    raw = load(spark, segments, topic="__transaction_state")
    expected = read_segments(spark, segments, topic="__transaction_state")
    assert raw.schema == RAW_SCHEMA
    assert sorted(map(str, raw.collect())) == sorted(map(str, expected.collect()))

    both = [f"{segments}/__consumer_offsets-0", f"{segments}/__consumer_offsets-1"]
    found = load(spark, both, table="current_offsets", columns="group_id,topic,partition")
    assert found.count() == len(read_table("current_offsets", both))


@pytest.mark.usefixtures("names")
def test_a_view_in_sql_with_comments(spark: SparkSession, segments: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW listed USING `kafka-records` OPTIONS (table 'groups', path '{segments}')"
    )
    expected = read_table("groups", segments).table.select(["group_id", "state"]).to_pylist()
    found = spark.sql("SELECT group_id, state FROM listed ORDER BY group_id").collect()
    assert [row.asDict() for row in found] == expected
    described = {row["col_name"]: row["comment"] for row in spark.sql("DESCRIBE listed").collect()}
    assert described == {column.name: column.about for column in TABLES["groups"].columns}


def test_column_functions_in_sql(spark: SparkSession, names: tuple[str, ...], segments: str) -> None:
    load(spark, segments, topic="__consumer_offsets").createOrReplaceTempView("raw_of_sql")
    found = spark.sql(
        "SELECT from_offset_commit_key(key).group AS group, from_offset_commit_value(value).offset AS offset,"
        " value_version(value) AS version,"
        " to_offset_commit_value(from_offset_commit_value(value), value_version(value)) = value AS is_same"
        " FROM raw_of_sql WHERE control IS NULL AND record_type(key) = 1 AND value IS NOT NULL"
    ).collect()
    commits = [row for row in read_table("offset_commits", segments).table.to_pylist() if not row["is_tombstone"]]
    assert sorted((row["group"], row["offset"]) for row in found) == sorted(
        (row["group_id"], row["offset"]) for row in commits
    )
    assert {row["version"] for row in found} == {1, 4}
    assert all(row["is_same"] for row in found)
    short = spark.sql("SELECT record_type(X'80FF') AS low, record_type(X'01') AS none, record_type(NULL) AS nothing")
    assert [tuple(row) for row in short.collect()] == [(-32513, None, None)]
    assert {"record_type", "from_group_metadata_value", "from_end_txn_marker"} < set(names)
    assert not {"from_heartbeat_request", "to_heartbeat_request"} & set(names)


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tabel": "groups"}, "kafka-records: no option is called 'tabel'; did you mean table?"),
        ({"table": "grups"}, "kafka-records: no table is called 'grups'; did you mean groups?"),
        (
            {"table": "groups", "columns": "state,grop_id"},
            "kafka-records: groups has no column 'grop_id'; did you mean group_id?",
        ),
        ({"table": "groups", "mode": "FAST"}, "kafka-records: mode 'FAST' is not one of FAILFAST, PERMISSIVE"),
        (
            {"table": "groups", "assume": "aborted"},
            "kafka-records: assume must be \"committed\" or None, not 'aborted'",
        ),
        ({"asOf": "2h"}, "kafka-records: the option 'asOf' is for tables: name one with the option 'table'"),
    ],
)
def test_what_cannot_be_asked(spark: SparkSession, segments: str, options: dict[str, str], sentence: str) -> None:
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException) as caught:
        load(spark, segments, **options).count()
    assert f"BadOption: {sentence}\n" in f"{caught.value}\n"


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize("table", ["current_offsets", "open_transactions"])
def test_saved_rows_that_do_not_tell_of_transactions_are_refused_before_a_worker_starts(
    spark: SparkSession, table: str
) -> None:
    from pyspark.errors import AnalysisException

    saved = str(DATA_DIR / "saved" / "spark-kafka-source.parquet")
    with pytest.raises(AnalysisException) as caught:
        load(spark, saved, table=table).count()
    assert f"UnknownTransactions: {UnknownTransactions(OFFSETS_TOPIC)}\n" in f"{caught.value}\n"
