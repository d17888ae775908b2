"""`decode_records` has the same result as the row reader in the driver, for everything that Kafka wrote."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_engine.spark.raw import RAW_COLUMNS, RAW_SCHEMA
from kafka_records_engine.spark.segments import read_segments
from tests.spark.across_releases.reading import Record, Schemas, decoded_rows, key_and_value

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.conftest import VectorLoader
    from tests.spark.across_releases.conftest import Engine

pytestmark = pytest.mark.spark

OFFSETS, SHARE, TRANSACTIONS = "__consumer_offsets", "__share_group_state", "__transaction_state"


def _compared(
    frame: DataFrame, raw: list[Record], topic: str, engine: Engine, unknown_tags: bool = False
) -> list[Record]:
    """Compare all columns of all rows, in log order. Returns the expected rows."""
    schemas: Schemas = import_module(f"kafka_records.schemas.{topic.strip('_')}").RECORDS
    expected = list(decoded_rows(raw, schemas, unknown_tags))

    decode_records = import_module(f"kafka_records.spark.{topic.strip('_')}").decode_records
    found = decode_records(frame, unknown_tags=unknown_tags, engine=engine).collect()

    # Sort here, because Spark decodes everything twice to sort it.
    found.sort(key=lambda row: (row.partition, row.offset))
    for row, wanted in zip(found, expected, strict=True):
        assert row.asDict(recursive=True) == wanted
    return expected


@pytest.mark.parametrize(
    ("broker", "topic", "records"),
    [
        ("kafka-4.3", OFFSETS, 859),
        ("kafka-4.3", SHARE, 95),
        ("kafka-4.3", TRANSACTIONS, 45),
        pytest.param("kafka-2.8", OFFSETS, 496, marks=pytest.mark.matrix),
        pytest.param("kafka-2.8", TRANSACTIONS, 68, marks=pytest.mark.matrix),
    ],
)
def test_captured_topics(
    session: SparkSession, engine: Engine, topics_dir: Path, broker: str, topic: str, records: int
) -> None:
    folder = topics_dir / broker / "segments"
    raw = [
        row
        for log in find_logs([folder], topic)
        for batch in read_partition(log, below_log_start=True)
        for row in batch.to_pylist()
    ]

    rows = _compared(read_segments(session, folder, topic, below_log_start=True), raw, topic, engine)

    assert len(rows) == records
    assert [row["error"] for row in rows if row["error"]] == []


@pytest.mark.parametrize("unknown_tags", [False, True])
@pytest.mark.parametrize(
    ("topic", "records", "refused", "tagged"), [(OFFSETS, 174, 18, 9), (SHARE, 18, 6, 2), (TRANSACTIONS, 18, 6, 0)]
)
def test_framed_vectors(
    session: SparkSession,
    engine: Engine,
    load_vectors: VectorLoader,
    topic: str,
    records: int,
    refused: int,
    tagged: int,
    unknown_tags: bool,
) -> None:
    """Every record type in every version, unknown types and versions, unknown tags, and records that Kafka refuses."""
    raw: list[Record] = []
    for case in load_vectors("framed.jsonl"):
        if case.get("topic") == topic:
            key, value = key_and_value(case)
            place = {"topic": topic, "partition": 0, "offset": len(raw), "transaction": "none"}
            raw.append(dict.fromkeys(RAW_COLUMNS) | place | {"key": key, "value": value})
    frame = session.createDataFrame([tuple(row[name] for name in RAW_COLUMNS) for row in raw], RAW_SCHEMA)

    rows = _compared(frame, raw, topic, engine, unknown_tags)

    counts = len(rows), sum(bool(row["error"]) for row in rows), sum(row["has_unknown_tags"] for row in rows)
    assert counts == (records, refused, tagged)
