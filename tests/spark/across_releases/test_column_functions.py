"""Column functions, which Python has from PySpark 4.1 on. Before, their message says so, and what to use instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records.spark import consumer_offsets, consumer_protocol
from kafka_records_engine.spark.errors import UnsupportedSpark
from kafka_records_engine.spark.functions import record_type, value_version
from kafka_records_runtime.text.casing import snake_case
from tests.row_reader import RowReader
from tests.spark.across_releases.reading import in_columns, key_and_value

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from tests.conftest import VectorLoader
    from tests.spark.across_releases.conftest import Engine

pytestmark = pytest.mark.spark

HAS_COLUMN_FUNCTIONS = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 1)


def _error(call: Callable[[], object]) -> str | None:
    try:
        call()
    except UnsupportedSpark as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("function", "remedy"),
    [
        (consumer_offsets.from_offset_commit_key, ': pass engine="jvm", or use decode_records'),
        (consumer_offsets.from_offset_commit_value, ': pass engine="jvm", or use decode_records'),
        (consumer_offsets.to_offset_commit_key, ': pass engine="jvm"'),
        (consumer_offsets.to_offset_commit_value, ': pass engine="jvm"'),
        (consumer_protocol.from_consumer_protocol_subscription, ': pass engine="jvm", or use decode_records'),
        (consumer_protocol.to_consumer_protocol_assignment, ': pass engine="jvm"'),
    ],
)
def test_a_release_without_them_is_named(spark: SparkSession, function: Callable[..., Any], remedy: str) -> None:
    text = f"{function.__name__} needs PySpark 4.1 or later, but this is {pyspark.__version__}{remedy}"
    assert _error(lambda: function("data")) == (None if HAS_COLUMN_FUNCTIONS else text)


@pytest.mark.parametrize(
    ("record", "records"),
    [("OffsetCommit", 24), ("GroupMetadata", 5), ("ConsumerGroupCurrentMemberAssignment", 4)],
)
def test_keys_and_values_there_and_back(
    session: SparkSession, engine: Engine, load_vectors: VectorLoader, record: str, records: int
) -> None:
    """From bytes to the result of the row reader, and back to the same bytes."""
    pairs = [
        key_and_value(case)
        for case in load_vectors("framed.jsonl")
        if case.get("key_message") == f"{record}Key" and "version" in case and "note" not in case
    ]
    assert len(pairs) == records
    name = snake_case(record)
    from_key, to_key, from_value, to_value = (
        getattr(consumer_offsets, f"{way}_{name}_{part}") for part in ("key", "value") for way in ("from", "to")
    )

    def columns() -> list[Column]:
        key = from_key("key", unknown_tags=True, engine=engine)
        value = from_value("value", unknown_tags=True, engine=engine)
        return [
            *(key.alias("typed_key"), value.alias("typed_value")),
            to_key(key, engine=engine).alias("key"),
            to_value(value, value_version("value"), engine=engine).alias("value"),
        ]

    if engine == "python" and not HAS_COLUMN_FUNCTIONS:
        assert _error(columns) == f"from_{name}_key needs PySpark 4.1 or later, but this is {pyspark.__version__}: " + (
            "use decode_records"
        )
        return
    frame = session.createDataFrame(pairs, "key binary, value binary").coalesce(1)
    rows = frame.select(columns()).collect()

    reader = RowReader(RECORDS, unknown_tags=True)
    for (key, value), row in zip(pairs, rows, strict=True):
        read = reader.read(key, value)
        assert row.typed_key.asDict(recursive=True) == in_columns(read.key, unknown_tags=True)
        assert row.typed_value.asDict(recursive=True) == in_columns(read.value, unknown_tags=True)
        assert (row.key, row.value) == (key, value)


def test_types_and_versions_need_no_such_release(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(b"\x00\x03",), (b"\xff\xfe\x01",), (b"\x01",), (None,)], "data binary")
    rows = frame.coalesce(1).select(record_type("data"), value_version("data")).collect()
    assert [tuple(row) for row in rows] == [(3, 3), (-2, -2), (None, None), (None, None)]
