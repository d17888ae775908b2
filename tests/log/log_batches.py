"""A log partition batch by batch, as Kafka's dump tool prints it, because our readers only return rows or records."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kafka_records_engine.findings import OnFinding
from kafka_records_engine.log.files.opened import OpenLog
from kafka_records_engine.log.format.batches import BatchHead, RawRecord
from kafka_records_engine.log.format.control_records import ControlMarker
from kafka_records_engine.log.reading._transaction_index import OnHole, Transaction
from kafka_records_engine.log.reading.segment_files import FoundLog, _ended, _entries, _ignore, _opened, _records


@dataclass(frozen=True, slots=True)
class LogBatch:
    """A batch (magic 2), a message or a wrapper of messages (magic 0 and 1) with the records that could be read."""

    file: str
    batch: BatchHead
    records: tuple[RawRecord, ...]
    transaction: Transaction
    """The outcome of its transaction; for a control batch, that of its first marker."""
    markers: tuple[ControlMarker | None, ...] = ()
    """For a control batch: the marker in each of its records; None for a record that cannot be parsed."""

    @property
    def base_offset(self) -> int:
        """The offset of the first record; for magic 2 that of the batch, which stays when a cleaner removes the
        record."""
        return self.records[0].offset if self.batch.magic < 2 and self.records else self.batch.offset


def read_batches(
    log: FoundLog | OpenLog,
    *,
    on_finding: OnFinding = _ignore,
    settle: bool = True,
    on_hole: OnHole | None = None,
) -> Iterator[LogBatch]:
    """Every usable batch of a log partition, empty ones included, in the order of the log.

    A batch is usable if its CRC is right and its offset can be where it is (`_vetting`). This is the plain counterpart
    of `read_partition`, with the same records, the same findings and the same meaning of `settle` and `on_hole`, and a
    Python object for each record. It also keeps control records that end no transaction. All records of a batch are in
    memory at once; `read_log` yields them one by one.
    """
    with _opened(log) as opened:
        for path, batch, entry, state in _entries(opened, on_finding, settle, on_hole):
            pairs = list(_records(path, batch, entry, on_finding, of_quorum=False))
            markers = tuple(marker for _, marker in pairs) if batch.is_control else ()
            ends = (marker for marker in markers if marker is not None and marker.control is not None)
            transaction = _ended(next(ends, None)) if batch.is_control else state()
            yield LogBatch(path, batch, tuple(record for record, _ in pairs), transaction, markers)
