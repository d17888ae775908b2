"""Other features that the functions in the JVM need on every release: SQL and views, ANSI, FAILFAST, and Java 8."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.spark.consumer_offsets import decode_records, from_offset_commit_value
from kafka_records_engine.spark.errors import UnsupportedSpark
from kafka_records_engine.spark.jvm import JAR
from kafka_records_engine.spark.raw import as_raw_rows
from kafka_records_tables.engines.spark_sql import is_before_4
from kafka_records_tables.spark import register
from tests.spark.conftest import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

KEY = bytes.fromhex("0001" "0001" "67" "0001" "74" "00000003")
VALUE = bytes.fromhex("0003" "000000000000002a" "ffffffff" "0000" "0000000000000005")
CUT = "OffsetCommitValue v3 at byte 14: commit_timestamp needs 8 bytes, but 7 are left"


@pytest.fixture(scope="module")
def registered(spark: SparkSession, built: None) -> Iterator[SparkSession]:
    """A session that has the functions after `register`."""
    session = spark.newSession()
    names = register(session, engine="jvm")
    assert {"kafka_records.from_offset_commit", "kafka_records.decode_consumer_offsets"} <= {*names}
    assert ("record_type" in names) is not is_before_4()
    with active(session):
        yield session


def _raw(spark: SparkSession, *values: bytes | None) -> DataFrame:
    """A commit for each value, at the offsets 0, 1 …"""
    rows = [(KEY, value, offset) for offset, value in enumerate(values)]
    frame = spark.createDataFrame(rows, "key binary, value binary, offset bigint")
    return as_raw_rows(frame.withColumn("partition", F.lit(3)), "__consumer_offsets")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_sql_over_a_view(registered: SparkSession, ansi: str) -> None:
    before = registered.conf.get("spark.sql.ansi.enabled")
    registered.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        _raw(registered, VALUE, VALUE[:-1], None).createOrReplaceTempView("raw")
        registered.sql("""
            CREATE OR REPLACE TEMPORARY VIEW commits AS
            SELECT offset, kafka_records.decode_consumer_offsets(key, value) AS record,
                   kafka_records.from_offset_commit_value(value).offset AS committed FROM raw
            """)
        rows = registered.sql("""
            SELECT record.offset_commit.key.topic, committed, record.is_tombstone, record.error.message
            FROM commits ORDER BY offset
            """).collect()
    finally:
        registered.conf.set("spark.sql.ansi.enabled", before or "false")
    assert [tuple(row) for row in rows] == [("t", 42, False, None), ("t", None, False, CUT), ("t", None, True, None)]


def test_the_session_uses_them_by_itself(registered: SparkSession) -> None:
    frame = _raw(registered, VALUE).select(from_offset_commit_value("value").alias("commit"))
    assert "kafka_records.from_offset_commit_value" in frame._jdf.queryExecution().toString()
    assert frame.select("commit.offset").collect() == [(42,)]


def test_failfast_says_which_record(registered: SparkSession) -> None:
    raw = _raw(registered, VALUE, VALUE[:-1])
    with pytest.raises(Py4JJavaError) as by_rows:
        decode_records(raw, mode="FAILFAST").collect()
    with pytest.raises(Py4JJavaError) as by_column:
        raw.select(from_offset_commit_value("value", mode="FAILFAST")).collect()
    assert f": java.lang.IllegalArgumentException: __consumer_offsets-3 offset 1: {CUT}\n" in str(by_rows.value)
    assert f": java.lang.IllegalArgumentException: {CUT}\n" in str(by_column.value)


def test_a_release_without_data_sources_says_so(spark: SparkSession) -> None:
    if is_before_4():
        with pytest.raises(UnsupportedSpark, match=re.escape('register(spark, engine="jvm") makes the functions')):
            register(spark)


def test_the_classes_are_for_java_8(built: None) -> None:
    """Java 8 is the oldest on which the oldest of these releases runs. The seventh and eighth byte of a class file have
    the version."""
    with zipfile.ZipFile(JAR) as jar:
        classes = [jar.read(name) for name in jar.namelist() if name.endswith(".class")]
    assert {int.from_bytes(data[6:8], "big") for data in classes} == {52}
