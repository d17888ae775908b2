"""The functions of Spark refuse arguments of a wrong type at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_engine.spark.decode import decode_records
from kafka_records_engine.spark.kafka_source import read_kafka
from kafka_records_engine.spark.raw import RAW_SCHEMA, as_raw_rows
from kafka_records_engine.spark.segments import read_segments
from kafka_records_tables.spark import groups, read_table
from tests.conftest import DATA_DIR

pytestmark = pytest.mark.spark

SEGMENTS = str(DATA_DIR / "topics" / "kafka-4.3" / "segments")

Call = Callable[[SparkSession], object]


def kafka(session: Any, bootstrap: Any = "a:1", topic: Any = "t", **options: Any) -> object:
    return read_kafka(session, bootstrap, topic, isolation_level="read_committed", **{"partitions": [0], **options})


def decode(session: SparkSession, **options: Any) -> object:
    return decode_records(session.createDataFrame([], RAW_SCHEMA), RECORDS, **options)


CASES: dict[str, Call] = {
    "df must be a Spark DataFrame, not 'saved'": lambda session: decode_records("saved", RECORDS),  # type: ignore[arg-type]
    "records must be a list of names, not 3": lambda session: decode(session, records=3),
    "records must be a list of names, but 3 is not": lambda session: decode(session, records=[3]),
    "coordinates must be a list of names, not 3": lambda session: decode(session, coordinates=3),
    "unknown_tags must be True or False, not 'no'": lambda session: decode(session, unknown_tags="no"),
    "df must be a Spark DataFrame, not 3": lambda session: as_raw_rows(3),  # type: ignore[arg-type]
    "raw must be a Spark DataFrame, not 3": lambda session: groups(3),  # type: ignore[arg-type]
    "spark must be a SparkSession, not None": lambda session: read_table(None, "groups", SEGMENTS),  # type: ignore[arg-type]
    "spark must be a SparkSession, not 3": lambda session: read_segments(3, SEGMENTS),  # type: ignore[arg-type]
    "topic must be a string, not ['t']": lambda session: read_segments(session, SEGMENTS, topic=["t"]),  # type: ignore[arg-type]
    "below_log_start must be True or False, not 'no'": lambda session: read_segments(
        session,
        SEGMENTS,
        below_log_start="no",  # type: ignore[arg-type]
    ),
    "spark must be a SparkSession, not 'local'": lambda session: kafka("local"),
    "bootstrap must be a string, not ['a:1']": lambda session: kafka(session, ["a:1"]),
    "topic must be a string, not 3": lambda session: kafka(session, topic=3),
    "stream must be True or False, not 'yes'": lambda session: kafka(session, stream="yes"),
    "partitions must be a list of numbers, not ['0']": lambda session: kafka(session, partitions=["0"]),
    "partitions must be a list of numbers, not 3": lambda session: kafka(session, partitions=3),
    "options must be a mapping of names to strings, not int": lambda session: kafka(session, options=3),
}


@pytest.mark.parametrize("text", CASES)
def test_what_does_not_fit_is_named(spark: SparkSession, text: str) -> None:
    with pytest.raises(TypeError) as failure:
        CASES[text](spark)
    assert str(failure.value) == text
