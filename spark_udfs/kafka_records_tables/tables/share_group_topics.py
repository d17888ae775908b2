"""The topic partitions that share groups have state in, as the group coordinator remembers them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords

_RECORDS: Final = ("ShareGroupStatePartitionMetadata",)

_LISTS: Final = {
    "initializing": "initializing_topics",
    "initialized": "initialized_topics",
    "deleting": "deleting_topics",
}
"""What each list of the record says of the topics in it."""

TABLE: Final = Table(
    name="share_group_topics",
    topic="__consumer_offsets",
    about="the topic partitions in which share groups have state, or get it, or lose it",
    helper="latest",
    records=_RECORDS,
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the share group"),
        Column("topic", "string", "name of the topic"),
        Column("topic_id", "string", "its id, 22 characters; share_partitions has the state under it"),
        Column("partition", "int32", "partition of that topic; null for a topic that is deleting"),
        Column(
            "initialization",
            "string",
            "initializing (the share coordinator was asked for state), initialized (it has state), deleting",
        ),
        *LOG_PLACE,
    ),
    sort=("group_id", "topic", "topic_id", "partition", "initialization"),
    needs_transactions=False,
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "initialization"),
    details=("topic_id", "log_partition", "log_offset"),
    last_of_key=True,
    rules="""\
One row per partition in the lists of a group's record of type 15 (`ShareGroupStatePartitionMetadata`; KIP-932), and
one per topic that is deleting, for which the record names no partitions. The last record of each group counts; a
tombstone leaves no row. A group whose offsets an administrator set may have this record and no other one.

The group coordinator writes it before it asks the share coordinator for state (initializing) and after it got an answer
(initialized), so the two topics differ for a moment. A record that cannot be decoded leaves its group without rows,
because older lists would be wrong; a finding names it.
""",
)


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    import numpy as np

    from kafka_records_tables.tables.decoded.last_records import last_records

    last = last_records(
        batches,
        context,
        "consumer_offsets",
        _RECORDS,
        "group_id",
        about="group",
        left_out="its group has no rows: older lists would be wrong",
    )
    if last is None:
        return
    found, types, usable = last
    for initialization, field in _LISTS.items():
        yield from _in_list(found, types, np.flatnonzero(usable), initialization, field, context)


def _in_list(
    found: DecodedRecords, types: tuple[int, ...], usable: Any, initialization: str, field: str, context: Context
) -> Iterator[Any]:
    """The rows out of one list of the records, one per topic and partition in it."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.column_types import record_batch

    records = pa.array(usable)
    lists = found.member(types, "value", field).take(records)
    topics = pc.list_flatten(lists)
    records = records.take(pc.list_parent_indices(lists))
    partitions = pa.nulls(len(topics), pa.int32())
    if topics.type.get_field_index("partitions") >= 0:
        numbers = pc.struct_field(topics, "partitions")
        of_topic = pc.list_parent_indices(numbers)
        partitions, topics, records = pc.list_flatten(numbers), topics.take(of_topic), records.take(of_topic)
    if not len(topics):
        return
    columns = {
        "group_id": found.member(types, "key", "group_id").take(records),
        "topic": pc.struct_field(topics, "topic_name"),
        "topic_id": pc.struct_field(topics, "topic_id"),
        "partition": partitions,
        "initialization": initialization,
        "log_partition": context.partition,
        "log_offset": pa.array(found.offsets[np.asarray(records)]),
    }
    yield record_batch(TABLE.schema, columns, len(topics))
