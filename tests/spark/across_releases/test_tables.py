"""Every table over segment files and over a DataFrame, compared with processes on this machine.

For the installed release, `make test` compares them in tests/tables/test_spark.py and test_spark_sql.py.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.spark.segments import read_segments
from kafka_records_tables import TABLES, read_table
from kafka_records_tables import spark as tables
from tests.tables.names import USUALLY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def segments(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments")


def _plain(name: str) -> list[str]:
    """The columns without instants, which `collect` returns in the time zone of the machine."""
    return [column.name for column in TABLES[name].columns if column.type != "timestamp"]


def _in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=str)


def _collected(frame: DataFrame) -> list[dict[str, Any]]:
    return _in_order([row.asDict(recursive=True) for row in frame.collect()])


@pytest.mark.matrix
@pytest.mark.parametrize("name", USUALLY)
def test_tables(spark: SparkSession, segments: str, name: str) -> None:
    expected = read_table(name, segments)
    rows = _in_order(expected.table.select(_plain(name)).to_pylist())

    found = read_table(name, segments, spark=spark)
    assert (found.table, found.findings) == (expected.table, expected.findings)
    assert _collected(tables.read_table(spark, name, segments, columns=_plain(name))) == rows
    raw = read_segments(spark, segments)
    assert _collected(tables.table(raw.unionByName(raw), name, columns=_plain(name))) == rows


def test_instants(spark: SparkSession, segments: str) -> None:
    frame = tables.read_table(spark, "current_offsets", segments)
    times = frame.selectExpr("unix_millis(commit_timestamp) = commit_timestamp_ms AS is_same").collect()
    assert len(times) == 78
    assert all(row["is_same"] for row in times)


@pytest.mark.matrix
def test_sql(spark: SparkSession, segments: str) -> None:
    """As far as the release supports it: Python Data Sources exist since 4.0, functions on columns since 4.1."""
    if find_spec("pyspark.sql.datasource") is None:
        from kafka_records_engine.spark.errors import UnsupportedSpark

        with pytest.raises(UnsupportedSpark) as caught:
            tables.register(spark, engine="python")
        text = str(caught.value)
        assert text.startswith("register needs PySpark 4.0 or later, but this is 3.5")
        assert text.endswith(
            ": kafka_records_tables.spark.read_table returns the same rows, "
            'and register(spark, engine="jvm") makes the functions known to SQL'
        )
        return
    names = tables.register(spark, engine="python")
    assert {"record_type", "value_version"} <= set(names)
    expected = _in_order(read_table("groups", segments).table.to_pylist())
    spark.sql(
        f"CREATE OR REPLACE TEMP VIEW every_group USING `kafka-records` OPTIONS (table 'groups', path '{segments}')"
    )
    assert _collected(spark.sql("SELECT * FROM every_group")) == expected
