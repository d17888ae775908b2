"""Where share groups began to read, by the first records of their state: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.coordinator.records.named_records import events
from kafka_records_tables.coordinator.shares.share_replay import SNAPSHOT, UPDATE
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_PICKED: Final = {SNAPSHOT: ("start_offset",), UPDATE: ("start_offset",)}
_UNSET: Final = -1
"""The start offset of a share partition that nothing was read of: share.auto.offset.reset decides where it begins."""

TABLE: Final = Table(
    name="share_beginnings",
    topic=SHARE_STATE,
    about="the offset at which a share group began to read a partition without a start offset",
    helper="history",
    records=("ShareSnapshot", "ShareUpdate"),
    reads=("offset", "timestamp_ms", "base_offset", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic_id", "string", "id of the topic that it consumes"),
        Column("topic", "string", "name of the topic; null if the source does not report it"),
        Column("partition", "int32", "partition of the topic"),
        Column("start_offset", "int64", "the offset at which it began"),
        *timestamps("log", "when the first record with this offset was written"),
        *LOG_PLACE,
    ),
    sort=("log_partition", "log_offset"),
    group="group_id",
    module=__name__,
    rules="""\
One row per share partition that was initialized without a start offset. A broker writes the state after the first
acknowledgements, with the start offset that it had before them: so the first one in the log is where the group began
(`SharePartition`). Later initializations of the same share partition have rows of their own.
""",
)


class Reader(RecordReader):
    uses_topics = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "share_group_state", TABLE.records, "not used: its share partition is unknown")
        self._unset: set[tuple[str, str, int]] = set()
        self._rows: list[dict[str, Any]] = []

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        records = rows.filter(pc.is_null(rows.column("control")))
        if records.num_rows:
            for event in events(DecodedRecords(records, self.schemas), _PICKED):
                self._take(event)
        return ()

    def _take(self, event: Any) -> None:
        start = None if event.value is None else event.value.start_offset
        if start == _UNSET:
            self._unset.add(event.key)
        elif event.key in self._unset:
            self._unset.discard(event.key)
            if start is not None:
                group_id, topic_id, partition = event.key
                self._rows.append(
                    {
                        "group_id": group_id,
                        "topic_id": topic_id,
                        "topic": self.context.log.topics.names.get(topic_id),
                        "partition": partition,
                        "start_offset": start,
                        "log_timestamp_ms": event.timestamp_ms,
                        "log_partition": self.context.partition,
                        "log_offset": event.offset,
                    }
                )

    def finish(self) -> Iterator[pa.RecordBatch]:
        if self._rows:
            yield batch_of(TABLE.schema, self._rows)
