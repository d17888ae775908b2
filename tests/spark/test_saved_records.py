"""Saved rows in Spark: rows that Spark saved are read like the segments, and decoded in one pass to Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from kafka_records.schemas import consumer_offsets, share_group_state, transaction_state
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.saved_rows import FilePart, SavedRows
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.spark.decode import decode_records
from kafka_records_engine.spark.errors import UnknownRecord
from kafka_records_engine.spark.raw import as_raw_rows
from kafka_records_engine.spark.saved_records import RecordReader, packed, read_records
from kafka_records_engine.spark.segments import read_segments
from kafka_records_tables import TABLES, read_table, read_tables
from kafka_records_tables import spark as in_spark
from tests.sources.saved_files import captured, in_hex, segments, simple_rows, tables_of, write_lines
from tests.tables.names import OF_RECORDS, USUALLY

pytestmark = pytest.mark.spark

OFFSETS = "__consumer_offsets"
CAPTURE = "kafka-4.3"


@pytest.fixture(scope="module")
def saved(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A captured data directory as Spark saves it, in files of some log partitions each."""
    path = tmp_path_factory.mktemp("saved") / "rows"
    read_segments(spark, segments(CAPTURE)).repartition(3).write.parquet(str(path))
    return str(path)


def rows_of(df: DataFrame) -> list[Any]:
    return sorted(
        (row.asDict(recursive=True) for row in df.collect()), key=lambda row: (row["partition"], row["offset"])
    )


def test_rows_that_are_left_out_have_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = in_hex(simple_rows([0, 1]))
    path = write_lines(rows.set_column(4, "value", pa.array(["7630", "no hex"])), tmp_path / "rows.jsonl")
    (part,) = SavedRows(path, encoding="hex").parts()
    reader = RecordReader.of(consumer_offsets.RECORDS, None, "PERMISSIVE", False, ["offset"], "t")
    assert [batch.column("offset").to_pylist() for batch in reader.of_part(part)] == [[0]]
    assert caplog.messages == [
        f"{path}: record at offset 1: row 2: value is not hex (the record is left out)",
    ]


def test_what_spark_saves_is_what_the_segments_hold(spark: SparkSession, saved: str, tmp_path: Path) -> None:
    by_place = tmp_path / "by_place"
    spark.read.parquet(saved).write.partitionBy("topic", "partition").parquet(str(by_place))
    truth = tables_of(Segments(segments(CAPTURE)))
    for path in (saved, by_place):
        found = tables_of(SavedRows(path))
        assert found.keys() == truth.keys()
        for place, rows in truth.items():
            assert is_transactional(found[place]) == is_transactional(rows)
            assert found[place].drop_columns("transaction").equals(rows.drop_columns("transaction"))


def is_transactional(rows: Any) -> list[bool]:
    """read_segments looks for the marker of each record first, and says how its transaction ended."""
    return [word != "none" for word in rows["transaction"].to_pylist()]


def test_tables_over_what_spark_saved_are_those_of_the_segments(saved: str) -> None:
    found, expected = (read_tables(OF_RECORDS, source) for source in (saved, segments(CAPTURE)))
    assert list(found) == list(expected)
    for name, result in expected.items():
        assert found[name].table.equals(result.table), name


@pytest.mark.parametrize("name", USUALLY)
def test_tables_by_spark_over_what_spark_saved_are_the_same(spark: SparkSession, saved: str, name: str) -> None:
    expected = read_table(name, segments(CAPTURE)).table
    assert read_table(name, saved, spark=spark).table.equals(expected)
    found = in_spark.read_table(spark, name, saved).toArrow().select(expected.column_names)
    keys = [(each, "ascending") for each in TABLES[name].sort]
    assert found.sort_by(keys).to_pylist() == expected.sort_by(keys).to_pylist()


@pytest.mark.parametrize(
    ("topic", "schemas", "asked"),
    [
        (OFFSETS, consumer_offsets.RECORDS, {"records": ["OffsetCommit"], "coordinates": ["partition", "offset"]}),
        pytest.param(OFFSETS, consumer_offsets.RECORDS, {}, marks=pytest.mark.matrix),
        pytest.param(
            "__transaction_state", transaction_state.RECORDS, {"records": ["TransactionLog"]}, marks=pytest.mark.matrix
        ),
        pytest.param(
            "__share_group_state",
            share_group_state.RECORDS,
            {"coordinates": ["partition", "offset"]},
            marks=pytest.mark.matrix,
        ),
    ],
)
def test_one_crossing_gives_the_rows_of_two(
    spark: SparkSession, saved: str, topic: str, schemas: Any, asked: dict[str, Any]
) -> None:
    raw = as_raw_rows(spark.read.parquet(saved)).where(f"topic = '{topic}'")
    expected = decode_records(raw, schemas, **asked)
    found = read_records(spark, saved, schemas, topic=topic, **asked)
    assert found.schema == expected.schema
    rows = rows_of(found)
    assert rows
    assert rows == rows_of(expected)


def test_the_options_of_the_source_give_the_same_rows(spark: SparkSession, saved: str) -> None:
    in_spark.register(spark, engine="python")
    names, kept = ["OffsetCommit", "ConsumerGroupMetadata"], ["partition", "offset"]
    expected = read_records(spark, saved, consumer_offsets.RECORDS, names, topic=OFFSETS, coordinates=kept)
    read = spark.read.format("kafka-records").option("topic", OFFSETS).option("records", ",".join(names))
    found = read.option("coordinates", ", ".join(kept)).load(saved)
    assert found.schema.simpleString() == expected.schema.simpleString()
    rows = rows_of(found)
    assert len(rows) > 200
    assert rows == rows_of(expected)


def test_texts_and_other_names_are_decoded_too(spark: SparkSession, saved: str, tmp_path: Path) -> None:
    expected = read_records(spark, saved, consumer_offsets.RECORDS, ["OffsetCommit"], topic=OFFSETS)
    rows = in_hex(captured(CAPTURE)).rename_columns({"key": "k", "value": "v"})
    source = SavedRows(write_lines(rows, tmp_path / "rows.jsonl"), columns={"key": "k", "value": "v"})
    found = read_records(spark, source, consumer_offsets.RECORDS, ["OffsetCommit"], topic=OFFSETS)
    kept = [name for name in expected.columns if name != "transaction"]
    assert rows_of(found.select(kept)) == rows_of(expected.select(kept))


def test_what_cannot_be_read_ends_a_query_under_failfast(spark: SparkSession, tmp_path: Path) -> None:
    rows = simple_rows([0, 1], topic=OFFSETS)
    pq.write_table(rows, tmp_path / "rows.parquet")
    kept = read_records(spark, tmp_path / "rows.parquet", consumer_offsets.RECORDS, topic=OFFSETS).collect()
    assert [row["error"] for row in kept] == [None, None]  # an unknown type is no error
    hurt = rows.set_column(3, "key", [[b"\0\1\0\x09g", b"\0\1"]])
    pq.write_table(hurt, tmp_path / "rows.parquet")
    with pytest.raises(Exception, match=f"{OFFSETS}-0.*offset 0"):
        read_records(
            spark, tmp_path / "rows.parquet", consumer_offsets.RECORDS, mode="FAILFAST", topic=OFFSETS
        ).collect()
    texts = in_hex(hurt).set_column(4, "value", [["00", "xyz"]])
    path = write_lines(texts, tmp_path / "rows.jsonl")
    source = SavedRows(path, encoding="hex")
    with pytest.raises(Exception, match="row 2: value is not hex"):
        read_records(spark, source, consumer_offsets.RECORDS, mode="FAILFAST", topic=OFFSETS).collect()
    assert read_records(spark, source, consumer_offsets.RECORDS, topic=OFFSETS).count() == 1


def test_mistakes_are_told_at_once(spark: SparkSession, saved: str) -> None:
    with pytest.raises(UnknownRecord):
        read_records(spark, saved, consumer_offsets.RECORDS, ["OffsetComit"], topic=OFFSETS)
    with pytest.raises(ValueError, match="mode"):
        read_records(spark, saved, consumer_offsets.RECORDS, mode="DROPMALFORMED", topic=OFFSETS)
    with pytest.raises(LogSourceError, match="there is no such file or directory"):
        read_records(spark, saved + "x", consumer_offsets.RECORDS, topic=OFFSETS)


def test_parts_are_packed_into_tasks() -> None:
    def sizes(mebibytes: list[int], cores: int) -> list[list[int]]:
        parts = [FilePart(None, None, size << 20) for size in mebibytes]  # type: ignore[arg-type]
        return [[part.size >> 20 for part in task] for task in packed(parts, cores)]

    assert sizes([], 2) == []
    assert sizes([1, 1, 1], 2) == [[1, 1, 1]]
    assert sizes([8, 8, 8, 8], 2) == [[8, 8], [8, 8]]
    assert sizes([200, 100, 100, 20], 1) == [[200], [100], [100, 20]]


def test_options_say_how_rows_were_saved(spark: SparkSession, tmp_path: Path) -> None:
    rows = in_hex(captured(CAPTURE)).rename_columns({"key": "k", "value": "v", "control": "marker"})
    path = str(write_lines(rows, tmp_path / "rows.bin"))
    in_spark.register(spark, engine="python")
    told = {
        "topic": OFFSETS,
        "savedColumns": '{"key": "k", "value": "v", "control": "marker"}',
        "savedEncoding": '{"value": "hex"}',
        "savedFormat": "json",
        "savedTimeUnit": "ms",
    }

    def count(**options: str) -> int:
        return spark.read.format("kafka-records").options(**options).load(path).count()

    assert count(**told, table="current_offsets") == read_table("current_offsets", segments(CAPTURE)).table.num_rows
    commits = read_table("offset_commits", segments(CAPTURE)).table.num_rows
    assert count(**told, records="OffsetCommit") >= commits > 0
    del told["savedColumns"]
    with pytest.raises(Exception, match="or the option 'savedColumns' in Spark"):
        count(**told, records="OffsetCommit")
