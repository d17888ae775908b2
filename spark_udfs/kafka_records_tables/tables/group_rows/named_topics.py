"""Topic names by id, from the records of a log partition and from its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_tables.coordinator.groups.group_model import SHARE_STATE, TOPICS, Group
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, are_of_types, numbers_of
from kafka_records_tables.coordinator.records.latest import Latest

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.coordinator.records.named_records import Picked

_LOST: Final = "not used: a topic may be without its name"

PICKED: Final[Picked] = {
    "ConsumerGroupPartitionMetadata": ("topics",),
    "ShareGroupStatePartitionMetadata": ("initializing_topics", "initialized_topics", "deleting_topics"),
}
"""The records of groups that contain both names and ids of topics, and the fields."""


class NamedTopics:
    """Collects the last commit of each key for the topic names in them."""

    def __init__(self, schemas: Mapping[int, RecordSchema], commit: str) -> None:
        """`commit` is the record that contains both the id and the name of a topic."""
        self._schemas = schemas
        self._types = numbers_of(schemas, (commit,))
        self._latest = Latest(("offset", "key", "value", "file", "position", "base_offset"))

    def taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Remove commits from a batch, and return the other rows."""
        types, _ = prefix_column(batch.column("key"))
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        is_commit = are_of_types(types, self._types) & is_record
        if is_commit.any():
            self._latest.add(batch, is_commit)
            batch = batch.filter(pa.array(~is_commit))
        return batch

    def names(self, context: Context, groups: Iterable[Group]) -> dict[str, str]:
        """The names by id. Reports undecodable commits."""
        names = dict(context.log.topics.names)
        names |= names_in_groups(groups)
        rows = self._latest.rows()
        if rows is not None:
            found = DecodedRecords(rows, self._schemas)
            found.report(context, lambda row: _LOST)
            names |= names_in_commits(found, self._types)
        return names


def names_in_groups(groups: Iterable[Group]) -> dict[str, str]:
    """The names by id in the records of groups, which must have been read with PICKED."""
    names: dict[str, str] = {}
    for group in groups:
        for event in map(group.record, (SHARE_STATE, TOPICS)):
            if event is not None and event.value is not None:
                lists = (getattr(event.value, name) for name in PICKED[event.record])
                names |= {topic["topic_id"]: topic["topic_name"] for topics in lists for topic in topics}
    return names


def names_in_commits(found: DecodedRecords, types: tuple[int, ...]) -> dict[str, str]:
    """The names by id in commits. Transactional commits and commits of brokers before 4.1 have the id that means there
    is none."""
    from kafka_records_tables.coordinator.offsets.commits import NO_TOPIC_ID

    columns = [found.member(types, "value", "topic_id"), found.member(types, "key", "topic")]
    pairs = pa.Table.from_arrays(columns, names=["id", "topic"]).group_by(["id", "topic"]).aggregate([])
    named = zip(pairs["id"].to_pylist(), pairs["topic"].to_pylist(), strict=True)
    return {topic_id: topic for topic_id, topic in named if topic_id not in (None, NO_TOPIC_ID)}
