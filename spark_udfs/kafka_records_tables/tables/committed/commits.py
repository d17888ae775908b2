"""What the tables about committed offsets have in common: the two records of a commit, and the columns they give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import Column, timestamps

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords

COMMITS: Final = ("LegacyOffsetCommit", "OffsetCommit")
"""The records that commit offsets: of two with the same group, topic and partition the later one counts, whichever of
the two records it is."""

NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""What a commit holds that names no topic id: no transactional one does, and none before Kafka 4.1."""

_NO_LEADER_EPOCH: Final = -1


def committed(of_a_tombstone: str = "") -> tuple[Column, ...]:
    """What a commit says, as columns; LOG_PLACE follows them in every table. `of_a_tombstone` is what stands behind the
    meaning of those that a tombstone lacks."""
    return (
        Column("group_id", "string", "the group that committed"),
        Column("topic", "string", "topic whose records it consumes"),
        Column("topic_id", "string", "its id, 22 characters; null where the record names none"),
        Column("partition", "int32", "partition of that topic"),
        Column("offset", "int64", f"offset of the next record to consume{of_a_tombstone}"),
        Column("leader_epoch", "int32", "leader epoch of the last consumed record; null where the record has none"),
        Column("metadata", "string", f"what the client stored beside the offset{of_a_tombstone}"),
        *timestamps("commit", "when it was committed, by the clock of the broker or as the client said"),
    )


def commit_columns(found: DecodedRecords, types: tuple[int, ...], context: Context) -> dict[str, Any]:
    """The columns of `committed` and LOG_PLACE. `types` are those of COMMITS; only the later one has epoch and id."""
    from kafka_records_tables.tables.column_types import instants

    members = {name: found.member(types, "value", name) for name in ("offset", "metadata", "commit_timestamp")}
    members |= {name: found.member(types[1:], "value", name) for name in ("topic_id", "leader_epoch")}
    columns = value_columns(members)
    return {
        "group_id": found.member(types, "key", "group"),
        "topic": found.member(types, "key", "topic"),
        "partition": found.member(types, "key", "partition"),
        **columns,
        "commit_timestamp": instants(columns["commit_timestamp_ms"]),
        "log_partition": context.partition,
        "log_offset": found.rows.column("offset"),
    }


def value_columns(members: Mapping[str, Any]) -> dict[str, Any]:
    """What the members of values say, as columns: null where they name no topic id and no leader epoch."""
    from kafka_records_tables.tables.decoded.decoded_records import nulled

    return {
        "offset": members["offset"],
        "leader_epoch": nulled(members["leader_epoch"], _NO_LEADER_EPOCH),
        "metadata": members["metadata"],
        "topic_id": nulled(members["topic_id"], NO_TOPIC_ID),
        "commit_timestamp_ms": members["commit_timestamp"],
    }


def report_undecided(
    found: DecodedRecords,
    types: tuple[int, ...],
    chosen: Any,
    context: Context,
    consequence: str,
    *,
    what: str = "the commit",
) -> None:
    """Report the rows of commits that are True in `chosen`: nobody can tell how their transactions ended. `what` is one
    of them in words; `types` are those of COMMITS."""
    import numpy as np

    from kafka_records_tables.tables.decoded.decoded_records import undecided

    group, topic, partition = (found.member(types, "key", name) for name in ("group", "topic", "partition"))
    for row in np.flatnonzero(chosen).tolist():
        told = f"{what} of group {group[row]} for {topic[row]}-{partition[row]}"
        context.report(undecided(found.rows, row, context, int(found.columns.record_type[row]), told, consequence))
