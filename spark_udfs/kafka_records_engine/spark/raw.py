"""The schema of raw rows, which all functions accept, for records from any source."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.types import DataType, StringType, StructField, TimestampType

from kafka_records_engine import arguments
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA as _ARROW_SCHEMA
from kafka_records_engine.spark.errors import MissingColumn, WrongColumnType
from kafka_records_engine.spark.spark_types import spark_schema
from kafka_records_engine.spark.workers import is_connect

RAW_SCHEMA: Final = spark_schema(_ARROW_SCHEMA)
"""One record of a log, not decoded.

A field that the message format of a record lacks is -1, as in Kafka: `timestamp_ms` in format 0, epochs and producers
in formats 0 and 1. Values that a source does not report are null. `timestamp_type` is `create`, `log_append` or null.
`transaction` is the outcome of the record's transaction: `none` (outside of transactions), `committed`, `aborted`,
`open`, or `unknown` if unreadable bytes may hide the marker that ended it. `control` is `commit` or `abort` for markers
and null for everything else.
"""

RAW_COLUMNS: Final[tuple[str, ...]] = tuple(field.name for field in RAW_SCHEMA.fields)

_TIMESTAMP_TYPES: Final = {0: "create", 1: "log_append"}
"""The meaning of the numbers in the `timestampType` column of Spark's Kafka source."""


def raw_rows(df: DataFrame) -> DataFrame:
    """The columns of `RAW_SCHEMA` from `df`. Every function that accepts raw rows calls this first.

    Raises MissingColumn and WrongColumnType for other rows. Under Spark Connect, the query fails with Spark's own
    message instead, because checking the columns first would cost a round trip.
    """
    if not is_connect(df.sparkSession):
        found = {field.name.lower(): field.dataType for field in df.schema.fields}
        for field in RAW_SCHEMA.fields:
            if field.name not in found:
                raise MissingColumn(
                    field.name,
                    "these are not raw rows: convert them with kafka_records_engine.spark.raw.as_raw_rows",
                )
            kind = found[field.name]
            if type(kind) is not type(field.dataType):
                raise WrongColumnType(field.name, kind.simpleString(), field.dataType.simpleString())
    return df.select(*RAW_COLUMNS)


_ABSENT: Final = "kafka-records.absent"
"""A mark in the metadata of a column that `as_raw_rows` added because its input lacked it. Spark keeps the mark as long
as the column is not changed."""


def absent_columns(df: DataFrame) -> set[str]:
    """The columns of raw rows that contain only nulls, because the input of `as_raw_rows` lacked them. Under Spark
    Connect, this costs a round trip."""
    return {field.name for field in df.schema.fields if _ABSENT in field.metadata}


def as_raw_rows(df: DataFrame, topic: str | None = None, columns: Collection[str] | None = None) -> DataFrame:
    """Convert records from elsewhere to raw rows: a saved topic, or rows of Spark's Kafka source.

    Parameters
    ----------
    df
        Has `key` and `value` (binary, or text, which is encoded as UTF-8), and any of these: the columns of
        `RAW_SCHEMA`, and `timestamp` (TIMESTAMP) and `timestampType` (0 or 1) of Spark's Kafka source. Numbers may have
        another width. `timestamp_ms` is in milliseconds; it may be a TIMESTAMP unless `columns` is passed.
    topic
        The topic of every row. Required if `df` has no `topic` column; otherwise it overrides that column.
    columns
        The names of the columns of `df`. By default, they are read from `df`, which a Declarative Pipeline forbids and
        which costs a round trip under Spark Connect.

    Returns
    -------
    DataFrame
        Rows of `RAW_SCHEMA`. Columns that `df` lacks are null, including `transaction`: a table that depends on
        transactions rejects such a record unless its `producer_id` (-1) shows that it was not part of a transaction, or
        the caller says how to treat it (`assume`). Tables need `partition` and `offset`. Rows without these columns can
        be decoded but not ordered, so tables cannot be computed from them.

    Raises
    ------
    MissingColumn
        There is no `key`, no `value`, or neither a `topic` column nor a `topic` argument.

    Examples
    --------
    >>> saved = spark.createDataFrame([(bytes.fromhex("00020001") + b"g", None)], "key binary, value binary")
    >>> as_raw_rows(saved, topic="__consumer_offsets").select("topic", "key", "transaction").show()
    +------------------+----------------+-----------+
    |             topic|             key|transaction|
    +------------------+----------------+-----------+
    |__consumer_offsets|[00 02 00 01 67]|       NULL|
    +------------------+----------------+-----------+
    """
    arguments.frame("df", df)
    types = dict[str, DataType]() if columns is not None else {field.name: field.dataType for field in df.schema.fields}
    names = set(types if columns is None else columns)
    for required in ("key", "value"):
        if required not in names:
            raise MissingColumn(required, "rows without it cannot be converted to raw rows")
    if topic is None and "topic" not in names:
        raise MissingColumn("topic", "pass the topic of the records as topic=…")
    if isinstance(types.get("timestamp_ms"), TimestampType):
        df = df.withColumn("timestamp_ms", F.unix_millis(F.col("timestamp_ms")))
    raw: list[Column | str] = []
    for field in RAW_SCHEMA.fields:
        made = _raw_column(field, names, topic)
        column = (F.lit(None) if made is None else made).cast(field.dataType)
        raw.append(column.alias(field.name, metadata={_ABSENT: True}) if made is None else column.alias(field.name))
    return df.select(raw)


def _raw_column(field: StructField, names: set[str], topic: str | None) -> Column | None:
    """The column of raw rows for `field`; None if the input has no column for it."""
    name = field.name
    if name == "topic" and topic is not None:
        return F.lit(topic)
    if name in names:
        return F.col(name)
    if name == "timestamp_ms" and "timestamp" in names:
        return F.unix_millis(F.col("timestamp"))
    if name == "timestamp_type" and "timestampType" in names:
        return _named_timestamp_type(F.col("timestampType"))
    return None


def _named_timestamp_type(number: Column) -> Column:
    named = F.lit(None).cast(StringType())
    for value, name in _TIMESTAMP_TYPES.items():
        named = F.when(number == value, F.lit(name)).otherwise(named)
    return named
