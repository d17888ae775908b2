"""Reads `share_group_topics`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.last_records import LastOfKeyReader, LastRecords
from kafka_records_tables.tables.share_group_topics import _RECORDS, TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords


_LISTS: Final = {
    "initializing": "initializing_topics",
    "initialized": "initialized_topics",
    "deleting": "deleting_topics",
}
"""The state of the topics in each list of the record."""


class Reader(LastOfKeyReader):
    def __init__(self, context: Context) -> None:
        super().__init__(
            context,
            "consumer_offsets",
            _RECORDS,
            "group_id",
            about="group",
            left_out="its group has no rows: older lists would be wrong",
        )

    def rows_of(self, last: LastRecords) -> Iterator[pa.RecordBatch]:
        found, types, usable = last
        for initialization, field in _LISTS.items():
            yield from _in_list(found, types, np.flatnonzero(usable), initialization, field, self.context)


def _in_list(
    found: DecodedRecords, types: tuple[int, ...], usable: Any, initialization: str, field: str, context: Context
) -> Iterator[Any]:
    """The rows from one list in the records, one per topic and partition."""
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
