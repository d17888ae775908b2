"""A reader of the history of share state, the base class of tables about it that only the report uses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.coordinator.records.named_records import events
from kafka_records_tables.coordinator.shares.share_replay import SNAPSHOT, UPDATE, batches_of
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.shares.share_batches import StateBatch

RECORDS: Final = ("ShareSnapshot", "ShareUpdate")
READS: Final = ("offset", "timestamp_ms", "base_offset", "key", "value", "control")
"""The columns of rows that such tables need."""


class ShareStateReader(RecordReader):
    """Passes the records of share state to `take_state`, in log order."""

    picked: ClassVar[Mapping[str, tuple[str, ...]]] = {SNAPSHOT: ("start_offset",), UPDATE: ("start_offset",)}
    """The fields of values that `take_state` gets."""

    def __init__(self, context: Context) -> None:
        super().__init__(context, "share_group_state", RECORDS, "not used: its share partition is unknown")

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        records = rows.filter(pc.is_null(rows.column("control")))
        if records.num_rows:
            found = DecodedRecords(records, self.schemas)
            batches = batches_of(found, self.types)
            for event in events(found, self.picked):
                self.take_state(event, batches.get(event.offset, ()))
        return ()

    def take_state(self, event: Any, batches: Sequence[StateBatch]) -> None:
        """Take a record with its batches. The key of the event has group id, topic id and partition; its value has the
        `picked` fields, and is None for a tombstone."""
        raise NotImplementedError
