"""The contenders of `spark_decode.py`: the ways to decode a DataFrame of raw rows.

Two of them decode nothing. They show a limit that the others cannot exceed. All decoders return the fields of key and
value, and all but one also the raw coordinates (every column but key and value). Each contender names its columns with
the key and value structs, so that one query compares all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records.spark.consumer_offsets import decode_records, from_offset_commit_key, from_offset_commit_value
from kafka_records_engine.spark.raw import RAW_COLUMNS
from kafka_records_engine.spark.saved_records import read_records
from kafka_records_engine.spark.spark_types import record_spark_type
from tools.benchmarks._java_udf import UDF_CLASS

Batches = Iterator[pa.RecordBatch]

RECORD: Final = "OffsetCommit"
TOPIC: Final = "__consumer_offsets"
RECORD_TYPE: Final = record_spark_type(RECORDS[OffsetCommitKey.RECORD_TYPE])
COORDINATES: Final = tuple(name for name in RAW_COLUMNS if name not in ("key", "value"))


@dataclass(frozen=True)
class Contender:
    """One way to treat raw rows.

    `structs` are the names of the key and value columns in its result; None if it decodes nothing. If it `is_slow`, it
    gets fewer rows.
    """

    name: str
    note: str
    build: Callable[[DataFrame], DataFrame]
    structs: tuple[str, str] | None = None
    is_slow: bool = False

    def decoded(self, raw: DataFrame) -> DataFrame:
        """The columns that it decodes from `raw`, under names that are the same for all contenders."""
        assert self.structs is not None
        key, value = (F.col(name) for name in self.structs)
        return self.build(raw).select("offset", "partition", key.alias("decoded_key"), value.alias("decoded_value"))


def scan(raw: DataFrame) -> DataFrame:
    return raw


def same(batches: Batches) -> Batches:
    return batches


def identity(raw: DataFrame) -> DataFrame:
    return raw.mapInArrow(same, raw.schema)


def ours(raw: DataFrame) -> DataFrame:
    return decode_records(raw, records=[RECORD], engine="python")


def ours_in_place(raw: DataFrame) -> DataFrame:
    return decode_records(raw, records=[RECORD], coordinates=["partition", "offset"], engine="python")


def in_the_jvm(raw: DataFrame) -> DataFrame:
    """Decode with `decode_records` in the JVM."""
    return decode_records(raw, records=[RECORD], engine="jvm")


def jvm_columns(raw: DataFrame) -> DataFrame:
    """Decode key and value with one function each in the JVM."""
    key, value = from_offset_commit_key("key", engine="jvm"), from_offset_commit_value("value", engine="jvm")
    return _beside_coordinates(raw, [key.alias("decoded_key"), value.alias("decoded_value")])


def one_crossing(raw: DataFrame) -> DataFrame:
    """Decode with a function that reads the files of `raw` itself."""
    return read_records(raw.sparkSession, _paths(raw), RECORDS, [RECORD], topic=TOPIC)


def one_crossing_in_place(raw: DataFrame) -> DataFrame:
    coordinates = ["partition", "offset"]
    return read_records(raw.sparkSession, _paths(raw), RECORDS, [RECORD], coordinates=coordinates, topic=TOPIC)


def _paths(raw: DataFrame) -> list[str]:
    return [unquote(urlsplit(uri).path) for uri in raw.inputFiles()]


def column_functions(raw: DataFrame) -> DataFrame:
    key, value = from_offset_commit_key("key", engine="python"), from_offset_commit_value("value", engine="python")
    return _beside_coordinates(raw, [key.alias("decoded_key"), value.alias("decoded_value")])


def java_udf(raw: DataFrame) -> DataFrame:
    """Decode with the Java UDF. Call `register_java_udf` once per session before this."""
    return _beside_coordinates(raw, [F.call_function(UDF_CLASS, "key", "value").alias("record")])


def register_java_udf(spark: SparkSession) -> None:
    """Register the class in `spark.jars` as a function."""
    spark.udf.registerJavaFunction(UDF_CLASS, UDF_CLASS, RECORD_TYPE)


def pickled_row_udf(raw: DataFrame) -> DataFrame:
    return _row_udf(raw, use_arrow=False)


def arrow_row_udf(raw: DataFrame) -> DataFrame:
    return _row_udf(raw, use_arrow=True)


def _row_udf(raw: DataFrame, use_arrow: bool) -> DataFrame:
    function: Any = F.udf(_decode_row, RECORD_TYPE, useArrow=use_arrow)
    return _beside_coordinates(raw, [function("key", "value").alias("record")])


def _decode_row(key: bytes, value: bytes | None) -> tuple[Any, Any]:
    """The straightforward way to use the generated codecs."""
    read_key = OffsetCommitKey.decode(bytes(key[2:]), 0)
    key_fields = (read_key.group, read_key.topic, read_key.partition)
    if value is None:
        return key_fields, None
    read = OffsetCommitValue.decode(bytes(value[2:]), int.from_bytes(value[:2], "big"))
    return key_fields, (
        read.offset,
        read.leader_epoch,
        read.metadata,
        read.commit_timestamp,
        read.expire_timestamp,
        str(read.topic_id),
    )


def _beside_coordinates(raw: DataFrame, decoded: Iterable[Column]) -> DataFrame:
    return raw.select(*COORDINATES, *decoded)


_IN_RECORD: Final = ("record.key", "record.value")
_BY_COLUMN: Final = ("decoded_key", "decoded_value")

CONTENDERS: Final[dict[str, Contender]] = {
    each.name: each
    for each in (
        Contender("scan", "the rows as they are, no Python", scan),
        Contender("identity", "mapInArrow that gives back what it gets", identity),
        Contender(
            "ours",
            'decode_records(raw, records=["OffsetCommit"], engine="python")',
            ours,
            ("offset_commit.key", "offset_commit.value"),
        ),
        Contender("jvm", 'the same with engine="jvm"', in_the_jvm, ("offset_commit.key", "offset_commit.value")),
        Contender("jvm columns", 'the two functions with engine="jvm"', jvm_columns, _BY_COLUMN),
        Contender(
            "one crossing",
            'read_records(spark, path, RECORDS, ["OffsetCommit"], topic=…)',
            one_crossing,
            ("offset_commit.key", "offset_commit.value"),
        ),
        Contender(
            "one crossing in place",
            'the same with coordinates=["partition", "offset"]',
            one_crossing_in_place,
            ("offset_commit.key", "offset_commit.value"),
        ),
        Contender(
            "ours in place",
            'decode_records(raw, records=["OffsetCommit"], coordinates=["partition", "offset"])',
            ours_in_place,
            ("offset_commit.key", "offset_commit.value"),
        ),
        Contender("columns", "from_offset_commit_key and from_offset_commit_value", column_functions, _BY_COLUMN),
        Contender("java", "Java UDF on Kafka's generated classes", java_udf, _IN_RECORD),
        Contender("row udf", "Python function per row, pickled, generated codecs", pickled_row_udf, _IN_RECORD, True),
        Contender("arrow row udf", "the same function, rows sent by Arrow", arrow_row_udf, _IN_RECORD, True),
    )
}
"""The contenders by their names in the table."""
