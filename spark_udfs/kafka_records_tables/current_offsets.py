"""The committed offsets, as the group coordinator would answer for them at the end of the log."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_tables.survivors import (
    deciding_rows,
    decoded,
    last_per_decoded_key,
    last_per_key,
    undecodable_among,
)
from kafka_records_tables.timestamps import timestamp

RECORDS: Final = ("OffsetCommit", "LegacyOffsetCommit")

_IGNORED: Final = ("aborted", "open")

_NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
_NO_LEADER_EPOCH: Final = -1


def current_offsets(raw: DataFrame) -> DataFrame:
    """One row per group, topic and partition with a committed offset.

    Of all records for a key, types 0 and 1 taken together, the one with the highest log offset decides. A tombstone
    counts whoever wrote it; a value counts when it was written outside a transaction or in a committed one, and then at
    the log offset of the value, not of the marker (`OffsetMetadataManager.replayEndTransactionMarker`).

    Parameters
    ----------
    raw
        Raw rows (`kafka_records_spark.raw.RAW_SCHEMA`), read twice: give it something that reads the same both times.
        Rows of other topics are ignored, rows that are there twice count once. Rows below a raised log start must have
        been left out, as `read_segments` does. Rows whose `transaction` is `unknown` count as committed.

    Returns
    -------
    DataFrame
        `group_id` string, `topic` string, `topic_id` string (22 characters; null when the record names none, as no
        transactional commit and no commit before Kafka 4.1 does), `partition` int, `offset` long (next offset to
        consume), `leader_epoch` int (null when the record has none), `metadata` string, `commit_timestamp` TIMESTAMP
        (null outside the years 1 to 9999), `commit_timestamp_ms` long (milliseconds since 1970), and the place of the
        record: `log_partition` int, `log_offset` long. In no particular order.

    Notes
    -----
    A key whose deciding record cannot be decoded has no row: an older offset would be wrong, and a broker stops loading
    the partition there. `undecodable` shows such records.

    Examples
    --------
    >>> from kafka_records_spark.segments import read_segments
    >>> raw = read_segments(spark, "/var/lib/kafka/data", topic="__consumer_offsets")
    >>> current_offsets(raw).where("group_id = 'payments-settlement'").select("topic", "partition", "offset").show()
    """
    return last_commits(last_per_key(deciding_rows(raw, RECORDS, *_IGNORED)))


def undecodable(raw: DataFrame) -> DataFrame:
    """The records that would decide about an offset but cannot be decoded.

    Takes the same `raw` as `current_offsets`; gives `log_partition, log_offset, record_type, error, raw_key,
    raw_value`. Rows of the topic without a record type in their key are among them.
    """
    return undecodable_among(raw, RECORDS, _IGNORED)


def last_commits(survivors: DataFrame) -> DataFrame:
    """The table, from the last row of each byte key."""
    commits = decoded(survivors, RECORDS).select(
        _key("group").alias("group_id"),
        _key("topic").alias("topic"),
        _key("partition").alias("partition"),
        *_value_columns(),
        F.col("partition").alias("log_partition"),
        F.col("offset").alias("log_offset"),
        (~F.col("is_tombstone") & F.col("error").isNull()).alias("is_commit"),
    )
    last = last_per_decoded_key(commits.where(F.col("group_id").isNotNull()), "group_id", "topic", "partition")
    return last.where(F.col("is_commit")).select(
        "group_id",
        "topic",
        "topic_id",
        "partition",
        "offset",
        "leader_epoch",
        "metadata",
        timestamp("commit_timestamp_ms").alias("commit_timestamp"),
        "commit_timestamp_ms",
        "log_partition",
        "log_offset",
    )


def _key(name: str) -> Column:
    return F.coalesce(F.col(f"offset_commit.key.{name}"), F.col(f"legacy_offset_commit.key.{name}"))


def _value(name: str) -> Column:
    return F.coalesce(F.col(f"offset_commit.value.{name}"), F.col(f"legacy_offset_commit.value.{name}"))


def _value_columns() -> list[Column]:
    topic_id = F.col("offset_commit.value.topic_id")
    leader_epoch = F.col("offset_commit.value.leader_epoch")
    return [
        F.when(topic_id != _NO_TOPIC_ID, topic_id).alias("topic_id"),
        _value("offset").alias("offset"),
        F.when(leader_epoch != _NO_LEADER_EPOCH, leader_epoch).alias("leader_epoch"),
        _value("metadata").alias("metadata"),
        _value("commit_timestamp").alias("commit_timestamp_ms"),
    ]
