"""Tombstones of members: a table that only the report uses.

A cleaner removes the records of a member that has left, but keeps their tombstones for delete.retention.ms (24 h by
default). So tombstones show how many members have left a group, even if nothing else is known about these members.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

TABLE: Final = Table(
    name="departed_members",
    topic=OFFSETS,
    about="every tombstone of a member of a consumer or streams group",
    helper="history",
    records=("ConsumerGroupMemberMetadata", "StreamsGroupMemberMetadata"),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("member_id", "string", "the member"),
        *timestamps("log", "when it left, or was removed"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    rules="""\
One row per tombstone. The coordinator writes one when a member leaves, is fenced or has timed out
(`GroupCoordinatorRecordHelpers.newConsumerGroupMemberSubscriptionTombstoneRecord`, KIP-848; KIP-1071). Classic groups
have their members in one record, which leaves no trace of those who have left.
""",
)


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", TABLE.records, "not used: its member is unknown")

    def add(self, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        found = DecodedRecords(rows, self.schemas)
        groups = found.member(self.types, "key", "group_id").to_pylist()
        members = found.member(self.types, "key", "member_id").to_pylist()
        times = found.timestamps
        left: list[dict[str, Any]] = [
            {
                "group_id": groups[at],
                "member_id": members[at],
                "log_timestamp_ms": times[at],
                "log_partition": self.context.partition,
                "log_offset": int(found.offsets[at]),
            }
            for at in np.flatnonzero(found.is_tombstone).tolist()
            if groups[at] is not None and times is not None and times[at] is not None
        ]
        if left:
            yield batch_of(TABLE.schema, left)
