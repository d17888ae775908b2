"""The two record types of commits, and the meaning of their values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

COMMITS: Final = ("LegacyOffsetCommit", "OffsetCommit")
"""The record types that commit offsets. If two records have the same group, topic and partition, the later one counts,
even if their types differ."""

NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""The topic id that means there is none. Transactional commits and commits before Kafka 4.1 have no topic id."""

_NO_LEADER_EPOCH: Final = -1


def read_columns(found: DecodedRecords, types: tuple[int, ...]) -> dict[str, Any]:
    """The contents of commits, in columns. `types` are the numbers of the record types COMMITS; only the newer type has
    an epoch and a topic id."""
    members = {name: found.member(types, "value", name) for name in ("offset", "metadata", "commit_timestamp")}
    members |= {name: found.member(types[1:], "value", name) for name in ("topic_id", "leader_epoch")}
    keys = {"group_id": "group", "topic": "topic", "partition": "partition"}
    return {name: found.member(types, "key", field) for name, field in keys.items()} | value_columns(members)


def value_columns(members: Mapping[str, Any]) -> dict[str, Any]:
    """The contents of commits, from the columns of their values. Topic id and leader epoch are null if the commit does
    not have them."""
    from kafka_records_tables.coordinator.records.decoded_records import nulled

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
    """Report the commits selected by `chosen` because the outcome of their transactions is unknown. `what` describes
    such a commit; `types` are the numbers of the record types COMMITS."""
    import numpy as np

    from kafka_records_tables.coordinator.records.decoded_records import undecided

    group, topic, partition = (found.member(types, "key", name) for name in ("group", "topic", "partition"))
    for row in np.flatnonzero(chosen).tolist():
        told = f"{what} of group {group[row]} for {topic[row]}-{partition[row]}"
        context.report(undecided(found.rows, row, context, int(found.columns.record_type[row]), told, consequence))
