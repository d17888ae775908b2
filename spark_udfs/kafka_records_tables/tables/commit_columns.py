"""The columns shared by tables about committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_records_tables.coordinator.offsets.commits import read_columns
from kafka_records_tables.tables.declaration import Column, timestamps

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords


def committed(of_a_tombstone: str = "") -> tuple[Column, ...]:
    """The content of a commit as columns. LOG_PLACE follows them in every table. `of_a_tombstone` is appended to the
    descriptions of columns that are null for tombstones."""
    return (
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        Column("partition", "int32", "partition of the topic"),
        Column("offset", "int64", f"offset of the next record to consume{of_a_tombstone}"),
        Column("leader_epoch", "int32", "leader epoch of the last consumed record; null if the record has none"),
        Column("metadata", "string", f"metadata that the client stored with the offset{of_a_tombstone}"),
        *timestamps("commit", "when the offset was committed, by the broker's clock or as set by the client"),
    )


def commit_columns(found: DecodedRecords, types: tuple[int, ...], context: Context) -> dict[str, Any]:
    """The columns of `committed` and LOG_PLACE. `types` are the numbers of the record types COMMITS."""
    from kafka_records_tables.tables.column_types import instants

    columns = read_columns(found, types)
    return columns | {
        "commit_timestamp": instants(columns["commit_timestamp_ms"]),
        "log_partition": context.partition,
        "log_offset": found.rows.column("offset"),
    }
