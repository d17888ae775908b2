"""From all records of the topic to the last one of each key, before any of them is decoded.

The offsets topic holds many records per key, and crossing from the JVM to Python is what costs; so the record type is
read from the first two key bytes, and the last record of each key is found on the bytes alone. Two byte keys can still
be one key to Kafka (types 0 and 1; bytes behind a key are ignored), so a table sorts out decoded keys once more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records.spark.consumer_offsets import decode_records
from kafka_records_spark.decode import chosen_records
from kafka_records_spark.modes import PERMISSIVE
from kafka_records_spark.raw import has_record_type, is_unframed

TOPIC: Final = "__consumer_offsets"


def records_of_topic(raw: DataFrame) -> DataFrame:
    """The rows of `__consumer_offsets`. Fails, when it runs, on rows without partition or offset."""
    rows = raw.where(F.col("topic") == TOPIC)
    for name in ("partition", "offset"):
        message = f"a row of {TOPIC} has no {name}: without it nobody can tell which record of a key is the last"
        kind = "int" if name == "partition" else "bigint"
        # A plain filter would lose such rows without a word.
        rows = rows.withColumn(name, F.coalesce(F.col(name), F.raise_error(F.lit(message)).cast(kind)))
    return rows


def takes_effect(*ignored: str) -> Column:
    """Condition on raw rows: a tombstone, or a value whose transaction did not end up in one of the `ignored` states.

    A tombstone acts at once, whoever wrote it (`OffsetMetadataManager.replay`).
    """
    return F.col("value").isNull() | ~F.coalesce(F.col("transaction"), F.lit("unknown")).isin(*ignored)


def deciding_rows(raw: DataFrame, records: Iterable[str], *ignored: str) -> DataFrame:
    """The rows of `__consumer_offsets` that hold one of these records and take effect."""
    types = chosen_records(RECORDS, records)
    return records_of_topic(raw).where(has_record_type(types) & takes_effect(*ignored))


def last_per_key(rows: DataFrame) -> DataFrame:
    """The row with the highest offset per log partition and key bytes; rows that are there twice stay there twice.

    Reads its input twice. `max` of a long and a join on coordinates ran four times as fast as keeping the bytes of the
    last row in the aggregate (`max_by`, a window), because aggregates with binary buffers fall back to sorting.
    """
    last = rows.groupBy("partition", "key").agg(F.max("offset").alias("offset"))
    return rows.join(last.select("partition", "offset"), ["partition", "offset"], "left_semi")


def last_per_decoded_key(rows: DataFrame, *key: str) -> DataFrame:
    """The row with the highest `log_offset` per decoded key; of rows with the same coordinates one."""
    newest = Window.partitionBy("log_partition", *key).orderBy(F.desc("log_offset"))
    return rows.withColumn("_rank", F.row_number().over(newest)).where(F.col("_rank") == 1).drop("_rank")


def undecodable_among(raw: DataFrame, records: Iterable[str], ignored: Iterable[str]) -> DataFrame:
    """The deciding records of a table that it could not read, and those whose keys hold no record type.

    Columns: `log_partition, log_offset, record_type, error, raw_key, raw_value`, with the error struct of
    `kafka_records_spark.decode`.
    """
    names = list(records)
    deciding = last_per_key(deciding_rows(raw, names, *ignored))
    unframed = records_of_topic(raw).where(is_unframed())
    return (
        decoded(deciding.unionByName(unframed), names)
        .where(F.col("error").isNotNull())
        .dropDuplicates(["partition", "offset"])
        .select(
            F.col("partition").alias("log_partition"),
            F.col("offset").alias("log_offset"),
            "record_type",
            "error",
            "raw_key",
            "raw_value",
        )
    )


def decoded(rows: DataFrame, records: Iterable[str]) -> DataFrame:
    """`rows` with their columns of typed keys and values; rows that cannot be decoded stay, with their error."""
    return decode_records(rows, records=list(records), mode=PERMISSIVE)
