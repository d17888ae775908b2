"""Framing in the JVM compared with the framing of one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_engine.spark.framing_in_jvm import (
    begins_with,
    has_record_type,
    is_unframed,
    prefix,
    prefix_bytes,
    sql_of_prefix,
)
from kafka_records_runtime.records.framing import message_start, prefix_of
from tests.framed import KEYS, TEXTS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def keys(spark: SparkSession) -> DataFrame:
    """The keys as records and, with higher numbers, as control records."""
    rows: list[Any] = [(number, key, None) for number, key in enumerate(KEYS)]
    rows += [(number + len(KEYS), key, "commit") for number, key in enumerate(KEYS)]
    return spark.createDataFrame(rows, "number int, key binary, control string").cache()


def _column(keys: DataFrame, column: Any) -> list[Any]:
    rows = keys.where("control is null").select("number", column).orderBy("number").collect()
    return [value for _, value in rows]


def test_the_prefix_as_a_column_and_in_sql(keys: DataFrame) -> None:
    expected = [prefix_of(key) for key in KEYS]
    assert {-32768, -2, None, 0, 1, 99, 32767} <= set(expected)
    for column in (prefix(F.col("key")), F.expr(sql_of_prefix("key"))):
        assert keys.select(column.alias("prefix")).dtypes == [("prefix", "smallint")]
        assert _column(keys, column) == expected


def test_cut_off_behind_the_prefix(keys: DataFrame) -> None:
    cut = _column(keys, prefix_bytes(F.col("key")))
    assert cut == [key if key is None else key[:2] for key in KEYS]


@pytest.mark.parametrize("types", [(), (0,), (0, 1, 99), (1, -32768), (32767, -32768), (-2, -1), (-1, 99, 12336)])
def test_records_of_some_types(keys: DataFrame, types: tuple[int, ...]) -> None:
    found = keys.where(has_record_type(types)).select("number").collect()
    assert sorted(number for (number,) in found) == [n for n, key in enumerate(KEYS) if prefix_of(key) in types]


@pytest.mark.parametrize(
    "types",
    [
        (255,),
        (256,),
        (255, 256),
        range(250, 520),
        (-1, 0),
        (-2, -1),
        (-32768, 32767),
        (-32768, -32767),
        range(-260, 260),
        (-257, -256),
    ],
)
def test_records_of_types_beside_a_change_of_the_first_byte(spark: SparkSession, types: Sequence[int]) -> None:
    """A key of one byte comes between the last type below a boundary and the first one above it."""
    edges = sorted({0, 1, 254, 255, *(byte << 8 | low for byte in range(256) for low in (0, 1, 254, 255))})
    keys = [b"", *(bytes([byte]) for byte in range(256)), *(edge.to_bytes(2, "big") for edge in edges)]
    keys += [edge.to_bytes(2, "big") + b"\xff" for edge in edges]
    rows: list[Any] = [(key, None) for key in keys]
    found = spark.createDataFrame(rows, "key binary, control string").where(has_record_type(types)).collect()
    assert sorted(bytes(row.key) for row in found) == sorted(key for key in keys if prefix_of(key) in types)


def test_records_without_a_type(keys: DataFrame) -> None:
    found = keys.where(is_unframed()).select("number").collect()
    assert sorted(number for (number,) in found) == [n for n, key in enumerate(KEYS) if prefix_of(key) is None]


def test_keys_that_begin_with_a_text(keys: DataFrame) -> None:
    asked = [(), *((text,) for text in TEXTS), TEXTS]
    columns = [begins_with(F.col("key"), texts).alias(f"c{place}") for place, texts in enumerate(asked)]
    rows = keys.where("control is null").orderBy("number").select(*columns).collect()
    for place, texts in enumerate(asked):
        starts = tuple(start for text in texts if (start := message_start(text)) is not None)
        expected = [key is not None and key[2:].startswith(starts) for key in KEYS]
        assert [row[place] for row in rows] == expected
