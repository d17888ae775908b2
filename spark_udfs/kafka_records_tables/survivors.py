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
from kafka_records_spark.decode import ERROR_SCHEMA, chosen_records
from kafka_records_spark.modes import PERMISSIVE
from kafka_records_spark.raw import has_record_type, is_undecided, is_unframed, raw_rows

TOPIC: Final = "__consumer_offsets"

UNDECIDED: Final = "UndecidedTransaction"
"""The `reason` of a record that can be read, but nobody can tell whether its transaction was committed."""

_COORDINATES: Final = ("partition", "offset", "producer_id", "transaction")
"""The raw columns that tables need of a decoded row: each of them costs its way through Python."""

_REMARK: Final = ("log_partition", "log_offset", "record_type", "error", "consequence", "raw_key", "raw_value")


def records_of_topic(raw: DataFrame) -> DataFrame:
    """The rows of `__consumer_offsets`.

    Raises MissingColumn for rows that are no raw rows; fails, when it runs, on rows without partition or offset.
    """
    rows = raw_rows(raw).where(F.col("topic") == TOPIC)
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

    A row in a transaction of which nobody can tell how it ended stands beside the last one that is decided.

    Reads its input twice. `max` of a long and a join on coordinates ran four times as fast as keeping the bytes of the
    last row in the aggregate (`max_by`, a window), because aggregates with binary buffers fall back to sorting.
    """
    undecided = is_undecided(F.col("value").isNotNull()).alias("undecided")
    last = rows.groupBy("partition", "key", undecided).agg(F.max("offset").alias("offset"))
    return rows.join(last.select("partition", "offset"), ["partition", "offset"], "left_semi")


def with_unframed(survivors: DataFrame, raw: DataFrame) -> DataFrame:
    """`survivors`, and the rows of the topic whose keys hold no record type."""
    return survivors.unionByName(records_of_topic(raw).where(is_unframed()))


def decoded(survivors: DataFrame, records: Iterable[str]) -> DataFrame:
    """`survivors` with columns of typed keys and values; rows that cannot be decoded stay, with their error."""
    return decode_records(survivors, records=list(records), mode=PERMISSIVE, coordinates=_COORDINATES)


def place_and_state(part_of_key: Column) -> list[Column]:
    """What every decoded row keeps on its way into a table, whatever else it says.

    `part_of_key` is null when the key could not be read. Columns: `log_partition, log_offset, record_type, producer_id,
    has_key, is_tombstone, is_undecided, error, raw_key, raw_value, bytes_left, leniencies`.
    """
    return [
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        *map(F.col, ("record_type", "producer_id")),
        part_of_key.isNotNull().alias("has_key"),
        F.col("is_tombstone"),
        is_undecided(~F.col("is_tombstone")).alias("is_undecided"),
        *map(F.col, ("error", "raw_key", "raw_value")),
        (F.col("key_bytes_left") + F.col("value_bytes_left")).alias("bytes_left"),
        F.col("leniencies"),
    ]


def last_per_decoded_key(rows: DataFrame, *key: str) -> DataFrame:
    """The row with the highest `log_offset` per decoded key; of rows with the same coordinates one.

    Rows whose keys cannot be read all stay. There is a column more, `_rank`, which whoever selects leaves out: a
    Connect server looks at the input of `drop` at once, which fails over a table of the same Declarative Pipeline.
    """
    newest = Window.partitionBy("log_partition", *key, _alone()).orderBy(F.desc("log_offset"))
    return rows.withColumn("_rank", F.row_number().over(newest)).where(F.col("_rank") == 1)


def last_decided_and_undecided(rows: DataFrame, *key: str) -> DataFrame:
    """As `last_per_decoded_key`, and a newer row that is undecided beside it. There is one more column, `_decided`."""
    alike = Window.partitionBy("log_partition", *key, _alone())
    decided = F.max(F.when(~F.col("is_undecided"), F.col("log_offset"))).over(alike)
    return (
        last_per_decoded_key(rows, *key, "is_undecided")
        .withColumn("_decided", decided)
        .where(~F.col("is_undecided") | F.col("_decided").isNull() | (F.col("log_offset") > F.col("_decided")))
    )


def _alone() -> Column:
    """Tells rows apart that have no key to tell them apart by."""
    return F.when(~F.col("has_key"), F.col("log_offset"))


def remarks_about(rows: DataFrame, what: Column, consequence: Column) -> DataFrame:
    """What there is to say about the records that decide: see `kafka_records_tables.Table.remarks` for the columns.

    `rows` has the columns of `place_and_state`. `what` names in words what an undecided record is about; `consequence`
    is what the table does about a record that it cannot use.
    """
    error = F.coalesce(F.col("error"), F.when(F.col("is_undecided"), _undecided(what)))
    is_lenient = (F.col("bytes_left") > 0) | (F.size("leniencies") > 0)
    return (
        rows.withColumn("error", error)
        .where(F.col("error").isNotNull() | is_lenient)
        .withColumn("consequence", F.when(F.col("error").isNotNull(), consequence))
        .select(*_REMARK, "bytes_left", "leniencies")
    )


def only_undecodable(remarks: DataFrame) -> DataFrame:
    """The remarks about records that a table could not use."""
    return remarks.where(F.col("error").isNotNull()).select(*_REMARK)


def _undecided(what: Column) -> Column:
    start, end = ": nobody can tell how the transaction of producer ", " ended, its marker was not read"
    facts = {
        "reason": F.lit(UNDECIDED),
        "record_type": F.col("record_type"),
        "message": F.concat(what, F.lit(start), F.col("producer_id").cast("string"), F.lit(end)),
    }
    return F.struct(
        *(facts.get(each.name, F.lit(None)).cast(each.dataType).alias(each.name) for each in ERROR_SCHEMA.fields)
    )
