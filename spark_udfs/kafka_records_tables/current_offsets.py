"""The committed offsets, as the group coordinator would answer for them at the end of the log."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_tables.commits import COMMIT_RECORDS, commit_key, commit_value
from kafka_records_tables.survivors import (
    deciding_rows,
    decoded,
    last_per_decoded_key,
    last_per_key,
    only_undecodable,
    place_and_state,
    remarks_about,
    with_unframed,
)
from kafka_records_tables.timestamps import timestamp

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
        been left out, as `read_segments` does.

    Returns
    -------
    DataFrame
        `group_id` string, `topic` string, `topic_id` string (22 characters; null when the record names none, as no
        transactional commit and no commit before Kafka 4.1 does), `partition` int, `offset` long (next offset to
        consume), `leader_epoch` int (null when the record has none), `metadata` string, `commit_timestamp` TIMESTAMP
        (null outside the years 1 to 9999), `commit_timestamp_ms` long (milliseconds since 1970), and the place of the
        record: `log_partition` int, `log_offset` long. In no particular order.

    Raises
    ------
    MissingColumn
        For rows that are no raw rows.

    Notes
    -----
    A key whose deciding record cannot be used has no row, because an older offset would be wrong. `undecodable` shows
    such records. Either their bytes cannot be decoded or are of a version this build does not know (a broker stops
    loading the partition there); or they are values in a transaction of which nobody can tell how it ended, because its
    marker cannot be read or stands in a file that was not given. Rows whose source tells neither transaction nor
    producer (`as_raw_records` over Spark's Kafka source, for instance) count as committed, although some may be of
    aborted or open transactions.

    Examples
    --------
    >>> from kafka_records_spark.segments import read_segments
    >>> raw = read_segments(spark, "/var/lib/kafka/data", topic="__consumer_offsets")
    >>> current_offsets(raw).where("group_id = 'payments-settlement'").select("topic", "partition", "offset").show()
    """
    usable = F.col("has_key") & F.col("error").isNull() & ~F.col("is_undecided") & ~F.col("is_tombstone")
    return (
        _last_commits(last_per_key(deciding_rows(raw, COMMIT_RECORDS, *_IGNORED)))
        .where(usable)
        .select(
            *("group_id", "topic", "topic_id", "partition", "offset", "leader_epoch", "metadata"),
            timestamp("commit_timestamp_ms").alias("commit_timestamp"),
            *("commit_timestamp_ms", "log_partition", "log_offset"),
        )
    )


def remarks(raw: DataFrame) -> DataFrame:
    """What there is to say about the records that decide about an offset; see `kafka_records_tables.Table.remarks`."""
    survivors = last_per_key(deciding_rows(raw, COMMIT_RECORDS, *_IGNORED))
    what = F.concat(
        *(F.lit("the commit of group "), F.col("group_id"), F.lit(" for ")),
        *(F.col("topic"), F.lit("-"), F.col("partition").cast("string")),
    )
    consequence = (
        F.when(~F.col("has_key"), "not used: nobody can tell whose offset it is")
        .when(F.col("is_undecided"), "its row is left out: this offset or an older one may be the committed one")
        .otherwise("its row is left out: an older offset would be wrong")
    )
    return remarks_about(_last_commits(with_unframed(survivors, raw)), what, consequence)


def undecodable(raw: DataFrame) -> DataFrame:
    """The records that would decide about an offset but cannot be used.

    Takes the same `raw` as `current_offsets`; gives `log_partition, log_offset, record_type, error, consequence,
    raw_key, raw_value`. The `reason` in `error` is UndecidedTransaction for a value whose transaction may have been
    committed or aborted; its bytes are sound, so both are null. `consequence` says what that does to the table. Rows of
    the topic without a record type in their key are among them.
    """
    return only_undecodable(remarks(raw))


def _last_commits(survivors: DataFrame) -> DataFrame:
    """The row that decides per group, topic and partition, from the last rows of each byte key."""
    topic_id = F.col("offset_commit.value.topic_id")
    leader_epoch = F.col("offset_commit.value.leader_epoch")
    commits = decoded(survivors, COMMIT_RECORDS).select(
        *place_and_state(commit_key("group")),
        commit_key("group").alias("group_id"),
        commit_key("topic"),
        commit_key("partition"),
        F.when(topic_id != _NO_TOPIC_ID, topic_id).alias("topic_id"),
        commit_value("offset"),
        F.when(leader_epoch != _NO_LEADER_EPOCH, leader_epoch).alias("leader_epoch"),
        commit_value("metadata"),
        commit_value("commit_timestamp").alias("commit_timestamp_ms"),
    )
    return last_per_decoded_key(commits, "group_id", "topic", "partition")
