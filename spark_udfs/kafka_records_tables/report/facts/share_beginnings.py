"""Where share groups began to read, from the first records of their state: a table that only the report uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.report.facts.share_state_reader import READS, RECORDS, ShareStateReader
from kafka_records_tables.tables.column_types import batch_of
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.shares.share_batches import StateBatch

_UNSET: Final = -1
"""The start offset of a share partition that was never read; share.auto.offset.reset decides where reading begins."""

TABLE: Final = Table(
    name="share_beginnings",
    topic=SHARE_STATE,
    about="the offset at which a share group began to read a partition without a start offset",
    helper="history",
    records=RECORDS,
    reads=READS,
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


class Reader(ShareStateReader):
    uses_topics = True

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._unset: set[tuple[str, str, int]] = set()
        self._rows: list[dict[str, Any]] = []

    def take_state(self, event: Any, batches: Sequence[StateBatch]) -> None:
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
