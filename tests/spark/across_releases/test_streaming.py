"""`decode_records` inside Structured Streaming, with the counts that a running query shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_records.spark import consumer_offsets
from kafka_records_engine.spark.raw import RAW_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from tests.spark.across_releases.conftest import Engine

pytestmark = pytest.mark.spark

KEY = bytes.fromhex("0001" "0001" "67" "0001" "74" "00000003")
VALUE = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")
GROUP_KEY = bytes.fromhex("0002" "0001" "67")
FIRST = [(KEY, VALUE), (KEY, None), (GROUP_KEY, None)]
SECOND = [(KEY, VALUE[:5]), (KEY, VALUE + b"\0\0")]


def test_a_stream_of_files(session: SparkSession, engine: Engine, tmp_path: Path) -> None:
    offset = 0
    for records in (FIRST, SECOND):
        rows = []
        for key, value in records:
            rows.append(("t", 0, offset, 99, "create", key, value, 1, offset, -1, -1, "none", None))
            offset += 1
        session.createDataFrame(rows, RAW_SCHEMA).coalesce(1).write.mode("append").parquet(str(tmp_path / "raw"))
    stream = session.readStream.schema(RAW_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "raw"))
    decoded = consumer_offsets.decode_records(
        stream, records=["OffsetCommit"], mode="DROPMALFORMED", observation="commits", engine=engine
    )

    query = (
        decoded.writeStream.format("parquet")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "decoded"))
    )
    assert query.awaitTermination(120)

    found = session.read.parquet(str(tmp_path / "decoded")).orderBy("offset").collect()
    assert [(row.offset, row.is_tombstone, row.offset_commit.key.group) for row in found] == [
        (0, False, "g"),
        (1, True, "g"),
        (4, False, "g"),
    ]
    assert [row.offset_commit.value and row.offset_commit.value.offset for row in found] == [42, None, 42]
    counted = [progress["observedMetrics"]["commits"] for progress in query.recentProgress if progress["numInputRows"]]
    assert [_filled(counts) for counts in counted] == [
        {"rows": 2, "decoded": 2, "tombstone": 1},
        {"rows": 2, "decoded": 1, "corrupt": 1, "with_bytes_left": 1, "bytes_left": 2},
    ]


def _filled(counts: Row | dict[str, int]) -> dict[str, int]:
    """The counts above 0. They come as a dict before PySpark 4."""
    by_name = counts if isinstance(counts, dict) else counts.asDict()
    return {name: count for name, count in by_name.items() if count}
