"""Share groups with a state epoch that rose, because their state was initialized again. Only the report uses this
table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords
from kafka_records_tables.coordinator.records.named_records import events
from kafka_records_tables.coordinator.shares.share_replay import SNAPSHOT
from kafka_records_tables.report.facts.share_state_reader import READS
from kafka_records_tables.tables.declaration import Column, Table
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_PICKED: Final = {SNAPSHOT: ("state_epoch",)}

TABLE: Final = Table(
    name="share_initializations",
    topic=SHARE_STATE,
    about="share groups with a share partition whose state epoch rose",
    helper="history",
    records=(SNAPSHOT,),
    reads=READS,
    columns=(
        Column("group_id", "string", "the group"),
        Column("log_partition", "int32", "partition of the log"),
    ),
    sort=("group_id", "log_partition"),
    group="group_id",
    module=__name__,
    rules="""\
One row per group and log partition. Only an initialization sets the state epoch: snapshots of later writes repeat it
(`ShareCoordinatorShard.generateShareStateRecord`). Updates are not read, so that the table costs little.
""",
)


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "share_group_state", TABLE.records, "not used: its share partition is unknown")
        self._epochs: dict[tuple[Any, ...], int] = {}
        self._groups: set[str] = set()

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        records = rows.filter(pc.is_null(rows.column("control")))
        for event in events(DecodedRecords(records, self.schemas), _PICKED) if records.num_rows else ():
            if event.value is None:
                self._epochs.pop(event.key, None)
                continue
            epoch = event.value.state_epoch
            if self._epochs.get(event.key, epoch) < epoch:
                self._groups.add(event.group_id)
            self._epochs[event.key] = epoch
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        if self._groups:
            rows = [{"group_id": each, "log_partition": self.context.partition} for each in sorted(self._groups)]
            yield pa.RecordBatch.from_pylist(rows, schema=TABLE.schema)
