"""The stated effects on Parquet files, compared with Spark and pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kafka_records_codegen.evolution.downstream import parquet_kind

TYPES: Final = {
    "tinyint": (pa.int8(), 1),
    "int": (pa.int32(), 70000),
    "bigint": (pa.int64(), 1),
    "string": (pa.string(), "a"),
    "binary": (pa.binary(), b"a"),
    "array<int>": (pa.list_(pa.int32()), [70000]),
}
"""SQL type → what a file holds."""


@pytest.mark.spark
@pytest.mark.parametrize(
    ("written", "read", "kind", "found"),
    [
        ("tinyint", "int", "widened", 1),
        ("int", "bigint", "widened-by-spark-4", 70000),
        ("array<int>", "array<bigint>", "widened-by-spark-4", [70000]),
        ("int", "smallint", "truncated", 4464),
        ("string", "binary", "as-text", b"a"),
        ("binary", "string", "as-text", "a"),
        ("bigint", "int", "unreadable", None),
        ("int", "string", "unreadable", None),
        ("int", "array<int>", "unreadable", None),
    ],
)
def test_spark_reads_older_files_as_it_is_said(
    spark: SparkSession, tmp_path: Path, written: str, read: str, kind: str, found: Any
) -> None:
    assert parquet_kind(written, read) == kind
    type_, value = TYPES[written]
    file = tmp_path / "older.parquet"
    pq.write_table(pa.table({"x": pa.array([value], type_)}), file)
    frame = spark.read.schema(f"x {read}").parquet(str(file))
    if kind == "unreadable":
        with pytest.raises(Exception, match="FAILED_READ_FILE"):
            frame.collect()
    else:
        assert frame.collect()[0]["x"] == found


def test_pyarrow_refuses_what_does_not_fit(tmp_path: Path) -> None:
    file = tmp_path / "older.parquet"
    pq.write_table(pa.table({"x": pa.array([70000], pa.int32())}), file)
    assert pq.read_table(file, schema=pa.schema([("x", pa.int64())])).to_pylist() == [{"x": 70000}]
    with pytest.raises(pa.ArrowInvalid):
        pq.read_table(file, schema=pa.schema([("x", pa.int16())]))
