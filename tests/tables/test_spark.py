"""The tables with Spark: they have the rows and findings of the local engine, over files and over DataFrames of raw
rows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_tables import TABLES, Result, read_table, read_tables
from kafka_records_tables.coordinator.transactions import UnknownTransactions
from tests.tables.names import CAPTURED, USUAL, USUALLY
from tests.tables.topic import OFFSETS_TOPIC, Topic
from tests.variants import mostly, one_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

HAVE_TRANSACTIONS = ("kafka-2.8", "kafka-4.3")


def _is_usual(capture: str, name: str) -> bool:
    """Whether a table is tested in a usual run, because a run for each table takes seconds. Usual tables are of each
    kind: `test_all_tables_in_one_run` has all tables, and the way in which rows reach a table does not depend on the
    table."""
    return name in USUAL or (capture == "kafka-4.3" and name in ("history", "share_partitions"))


TABLE_AND_CAPTURE = pytest.mark.parametrize(("capture", "name"), mostly(CAPTURED, _is_usual))
TABLE_OF_TWO_CAPTURES = pytest.mark.parametrize(
    ("capture", "name"), mostly((case for case in CAPTURED if case[0] in HAVE_TRANSACTIONS), _is_usual)
)


@pytest.fixture(scope="module")
def segments(topics_dir: Path) -> Callable[[str], str]:
    return lambda capture: str(topics_dir / capture / "segments")


@pytest.fixture(scope="module")
def local(segments: Callable[[str], str]) -> Callable[[str, str], Result]:
    """A table from the local engine."""
    return cache(lambda capture, name: read_table(name, segments(capture)))


@pytest.fixture(scope="module")
def saved(spark: SparkSession, segments: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The raw rows of a captured data directory in Parquet, each twice, and shuffled."""
    from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

    from kafka_records_engine.spark.segments import read_segments

    @cache
    def folder(capture: str) -> str:
        place = str(tmp_path_factory.mktemp("saved") / capture)
        raw = read_segments(spark, segments(capture))
        raw.unionByName(raw).orderBy(F.xxhash64("offset", "partition", "key")).write.parquet(place)
        return place

    return folder


def in_order(frame: DataFrame, name: str) -> pa.Table:
    """The rows of a DataFrame of a table, in the order of the table."""
    declaration = TABLES[name]
    table: pa.Table = frame.toArrow().cast(declaration.schema)
    return table.sort_by([(each, "ascending") for each in declaration.sort])


# -- the same answers --------------------------------------------------------------------------------------------------


def test_where_logs_end_by_spark(
    spark: SparkSession, segments: Callable[[str], str], local: Callable[[str, str], Result]
) -> None:
    from kafka_records_tables import spark as tables

    expected = local("kafka-4.3", "log_ends")
    found = read_table("log_ends", segments("kafka-4.3"), spark=spark)
    assert (found.table, found.counts) == (expected.table, expected.counts)
    frame = tables.read_table(spark, "log_ends", segments("kafka-4.3"), topic="__transaction_state")
    one = read_table("log_ends", segments("kafka-4.3"), topic="__transaction_state")
    assert in_order(frame, "log_ends").equals(one.table)
    with pytest.raises(ValueError, match="log_ends is not computed from records: pass the source of the logs"):
        tables.table(frame, "log_ends")


@TABLE_AND_CAPTURE
def test_one_run_over_files_gives_what_the_local_engine_gives(
    spark: SparkSession, segments: Callable[[str], str], local: Callable[[str, str], Result], capture: str, name: str
) -> None:
    expected = local(capture, name)
    moved: list[tuple[int, int]] = []

    def on_progress(done: int, total: int) -> None:
        moved.append((done, total))

    found = read_table(name, segments(capture), spark=spark, on_progress=on_progress)

    assert found.table.equals(expected.table)
    assert found.findings == expected.findings
    assert found.counts == expected.counts
    assert moved[-1][0] == moved[-1][1] > 0


def test_all_tables_in_one_run(spark: SparkSession, segments: Callable[[str], str]) -> None:
    names = [*(name for capture, name in CAPTURED if capture == "kafka-4.3"), "open_transactions", "lag"]
    found, expected = (read_tables(names, segments("kafka-4.3"), spark=by) for by in (spark, None))

    assert list(found) == names
    for name, result in expected.items():
        assert found[name].table.equals(result.table), name
        assert (found[name].findings, found[name].counts) == (result.findings, result.counts), name
    assert (found.reading, found.counts) == (expected.reading, expected.counts)


@pytest.mark.parametrize("name", USUALLY)
def test_a_frame_over_files_has_the_same_rows(
    spark: SparkSession, segments: Callable[[str], str], local: Callable[[str, str], Result], name: str
) -> None:
    from kafka_records_tables import spark as tables

    frame = tables.read_table(spark, name, segments("kafka-4.3"))
    assert in_order(frame, name).equals(local("kafka-4.3", name).table)


@TABLE_OF_TWO_CAPTURES
def test_shuffled_raw_rows_that_are_there_twice_give_the_same_rows_and_findings(
    spark: SparkSession, saved: Any, local: Callable[[str, str], Result], capture: str, name: str
) -> None:
    from kafka_records_tables import spark as tables

    raw = spark.read.parquet(saved(capture))
    assert in_order(tables.table(raw, name), name).equals(local(capture, name).table)

    in_memory = read_table(name, raw.toArrow())
    assert in_memory.table.equals(local(capture, name).table)
    said = [row["message"] for row in tables.findings(raw, name).collect()]
    assert sorted(said) == sorted(map(str, in_memory.findings))


def test_what_was_found_stands_in_columns(spark: SparkSession, segments: Callable[[str], str], local: Any) -> None:
    from kafka_records_tables import spark as tables

    found = tables.read_findings(spark, "groups", segments("kafka-2.8")).collect()
    (finding,) = local("kafka-2.8", "groups").findings
    assert [row.asDict() for row in found] == [
        {
            **{name: getattr(finding, name) for name in tables.FINDINGS_SCHEMA.names if name != "message"},
            "message": str(finding),
        }
    ]


@pytest.mark.matrix
def test_what_a_view_finds_itself(spark: SparkSession, segments: Callable[[str], str], saved: Any) -> None:
    from kafka_records_tables import spark as tables

    expected = sorted(map(str, read_table("checks", segments("kafka-4.3")).findings))
    assert any("the number of partitions is unknown" in each for each in expected)
    assert sorted(row["message"] for row in tables.read_findings(spark, "checks", segments("kafka-4.3")).collect()) == (
        expected
    )
    raw = spark.read.parquet(saved("kafka-4.3")).where("topic = '__consumer_offsets'")
    expected = sorted(map(str, read_table("checks", raw.toArrow()).findings))
    assert any("no log of this topic was read" in each for each in expected)
    assert sorted(row["message"] for row in tables.findings(raw, "checks").collect()) == expected


@pytest.mark.parametrize("name", one_in(3, ["groups", "current_offsets", "offset_commits"]))
def test_a_moment_and_a_group(spark: SparkSession, saved: Any, local: Callable[[str, str], Result], name: str) -> None:
    from kafka_records_tables import spark as tables

    raw = spark.read.parquet(saved("kafka-4.3"))
    rows = raw.toArrow()
    times = sorted(rows["timestamp_ms"].to_pylist())
    middle = times[len(times) // 2]
    expected = read_table(name, rows, as_of=middle)
    assert 0 < len(expected) < len(local("kafka-4.3", name))
    moment = datetime.fromtimestamp(middle / 1000, UTC)
    assert in_order(tables.table(raw, name, as_of=moment), name).equals(expected.table)
    said = [row["message"] for row in tables.findings(raw, name, as_of=middle).collect()]
    assert sorted(said) == sorted(map(str, expected.findings))

    group = local("kafka-4.3", name).table["group_id"][0].as_py()
    expected = read_table(name, rows, group=group)
    assert 0 < len(expected) < len(local("kafka-4.3", name))
    assert in_order(tables.table(raw, name, group=group), name).equals(expected.table)


# -- what a table does with rows ---------------------------------------------------------------------------------------


def frame_of(spark: SparkSession, topic: Topic) -> DataFrame:
    from kafka_records_engine.spark.raw import RAW_SCHEMA

    return spark.createDataFrame(topic.rows, RAW_SCHEMA)


def offsets(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in frame.select("group_id", "offset").collect())


def test_the_columns_that_were_asked_for_with_their_meaning(spark: SparkSession) -> None:
    from kafka_records_tables.spark import current_offsets

    topic = Topic()
    topic.commit("billing", 5)
    frame = current_offsets(frame_of(spark, topic), columns=["offset", "group_id"])
    assert [tuple(row) for row in frame.collect()] == [(5, "billing")]
    assert [(field.name, field.dataType.simpleString(), field.metadata) for field in frame.schema] == [
        ("offset", "bigint", {"comment": "offset of the next record to consume"}),
        ("group_id", "string", {"comment": "the group"}),
    ]


def test_pending_values_and_markers_are_not_left_out_before_they_are_settled(spark: SparkSession) -> None:
    from kafka_records_tables.spark import current_offsets, groups

    topic = Topic()
    topic.commit("later", 1)
    for offset in (7, 8):
        topic.commit("later", offset, transaction="open", producer=9)
    topic.add_bytes(
        b"\x00\x00\x00\x01", b"\x00\x00\x00\x00\x00\x00", transaction="committed", control="commit", producer=9
    )
    topic.commit("never", 2)
    topic.commit("never", 3, transaction="open", producer=9)
    topic.marker("abort", producer=9)
    topic.commit("gone", 4)
    topic.commit("gone", None)
    topic.commit("open", 5)
    topic.commit("open", 6, transaction="open", producer=9)
    raw = frame_of(spark, topic).repartition(3)

    assert offsets(current_offsets(raw)) == [("later", 8), ("never", 2), ("open", 5)]
    assert sorted(row["group_id"] for row in groups(raw).collect()) == ["gone", "later", "never", "open"]


def test_damage_ends_a_query_and_permissive_reads_on(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    from kafka_records_tables.spark import current_offsets, findings

    topic = Topic()
    topic.commit("billing", 5)
    topic.add_bytes(b"\x00", b"")
    raw = frame_of(spark, topic)
    with pytest.raises(PySparkException) as caught:
        current_offsets(raw).collect()
    line = (
        "__consumer_offsets-0: record at offset 1: the key has 1 byte, but a key starts with an int16 record type (not "
        "used: it is unknown whose offset it is)"
    )
    sentence = (
        f'DamageFound: {line}; mode "PERMISSIVE" returns the other rows, and kafka_records_tables.spark.findings or '
        "read_findings returns all findings"
    )
    assert sentence in str(caught.value)
    assert offsets(current_offsets(raw, mode="PERMISSIVE")) == [("billing", 5)]
    (found,) = findings(raw, "current_offsets").collect()
    assert (found["severity"], found["message"]) == ("damage", line)


def test_rows_that_do_not_tell_of_transactions_are_refused(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

    from kafka_records_engine.spark.raw import as_raw_rows
    from kafka_records_tables.spark import current_offsets, findings, groups

    topic = Topic()
    topic.commit("billing", 6)
    whole = frame_of(spark, topic)
    raw = as_raw_rows(whole.select("partition", "offset", "key", "value"), OFFSETS_TOPIC)
    # The driver sees that the columns are missing, also after filters and with other columns.
    for frame in (raw, raw.where("offset >= 0").withColumn("leader_epoch", F.lit(1))):
        with pytest.raises(UnknownTransactions) as at_once:
            current_offsets(frame)
        assert str(at_once.value) == str(UnknownTransactions(OFFSETS_TOPIC))
    with pytest.raises(UnknownTransactions):
        findings(raw, "current_offsets")
    assert offsets(current_offsets(raw, assume="committed")) == [("billing", 6)]
    assert [row["group_id"] for row in groups(raw).collect()] == ["billing"]
    # A user who knows the outcome can say so; an existing column of nulls has precedence.
    for name, value in (("transaction", F.lit("none")), ("producer_id", F.lit(-1).cast("bigint"))):
        assert offsets(current_offsets(raw.withColumn(name, value))) == [("billing", 6)]
    with pytest.raises(PySparkException) as caught:
        current_offsets(raw.withColumn("transaction", F.lit(None).cast("string"))).collect()
    assert f"UnknownTransactions: {UnknownTransactions(OFFSETS_TOPIC, 0, 0)}" in str(caught.value)


def test_saved_rows_that_do_not_tell_of_transactions_are_refused_by_the_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    from kafka_records_tables import spark as in_spark

    topic = Topic()
    topic.commit("billing", 6)
    rows = topic.table().drop_columns(["transaction", "producer_id"])
    pq.write_table(rows, tmp_path / "rows.parquet")
    for source in (rows, str(tmp_path)):
        with pytest.raises(UnknownTransactions) as caught:
            in_spark.read_table(spark, "current_offsets", source)
        assert caught.value.offset is None
        assert offsets(in_spark.read_table(spark, "current_offsets", source, assume="committed")) == [("billing", 6)]


def test_in_one_run_a_table_raises_what_it_raises_here(spark: SparkSession) -> None:
    topic = Topic()
    topic.commit("billing", 5)
    rows = topic.table().drop_columns(["transaction", "producer_id"])
    with pytest.raises(UnknownTransactions) as here:
        read_table("current_offsets", rows)
    with pytest.raises(UnknownTransactions) as there:
        read_table("current_offsets", rows, spark=spark)
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize("name", ["partition", "offset"])
def test_rows_without_a_place_are_named(spark: SparkSession, name: str) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

    from kafka_records_tables.spark import groups

    topic = Topic()
    topic.commit("billing", 5)
    raw = frame_of(spark, topic)
    raw = raw.withColumn(name, F.lit(None).cast(raw.schema[name].dataType))
    with pytest.raises(PySparkException) as caught:
        groups(raw).collect()
    sentence = f"a row of {OFFSETS_TOPIC} has no {name}: without it the last record of a key is unknown"
    assert sentence in str(caught.value)


def test_a_stream_is_refused_with_the_way_for_streams(spark: SparkSession, saved: Any) -> None:
    from kafka_records_engine.spark.raw import RAW_SCHEMA
    from kafka_records_tables.engines.spark_rows import StreamGiven
    from kafka_records_tables.spark import findings, groups

    stream = spark.readStream.schema(RAW_SCHEMA).parquet(saved("kafka-2.8"))
    sentence = (
        "groups needs a log from its start, but a streaming DataFrame returns it in pieces: "
        'kafka_records_tables.spark.changes(raw, "groups") returns what each piece changes in the table; or '
        "save the raw "
        "rows of the stream, and build the table from all saved rows"
    )
    with pytest.raises(StreamGiven) as caught:
        groups(stream)
    assert str(caught.value) == sentence
    with pytest.raises(StreamGiven) as caught:
        findings(stream, "groups")
    assert str(caught.value) == sentence


def test_places_that_are_not_there_are_refused_at_once(spark: SparkSession, tmp_path: Path) -> None:
    from kafka_records_tables import spark as tables

    with pytest.raises(LogSourceError):
        tables.read_table(spark, "groups", tmp_path / "nowhere")
