"""Returns the records of a metadata log as a controller applies them, taking checkpoints and metadata transactions into
account."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns.framing_in_columns import api_key_column
from kafka_records_engine.findings import INCOMPLETE_HISTORY, UNREAD_LOG, Finding
from kafka_records_runtime.records.framing import MOST_IN_FRAME
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, numbers_of, schemas

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import INT16, INT64
    from kafka_records_engine.sources import Context

FOLDER: Final = "cluster_metadata"
READS: Final = ("offset", "timestamp_ms", "key", "value", "control")
"""The columns of raw rows that a table about the metadata log needs."""

_BEGIN, _END, _ABORT = "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"
_KRAFT_VERSION: Final = "kraft_version"
_STOPS: Final = "its changes are unknown: a controller does not load this log"


_CONTROL_RECORDS: Final = 16
"""The maximum number of quorum control records, about the first leader and the voters, before the first row. They are
not rows."""


class MetadataRecords:
    """Returns the records of the given types that take effect, decoded.

    Records of a metadata transaction take effect when it ends and are discarded when it is aborted (`QuorumController`,
    KIP-868). Records of a transaction that is still open at the end of the log do not count. If the log does not begin
    at its first record, the checkpoint found by the source comes first, and records that it covers are skipped.
    """

    def __init__(self, context: Context, names: Collection[str], apart: Collection[str] = ()) -> None:
        """Records of the types `apart` are returned separately, after the other records of their batch, which is faster
        if there are many."""
        self._context = context
        self.schemas = schemas(context, FOLDER)
        self.numbers = dict(zip(names, numbers_of(self.schemas, names), strict=True))
        alone = [(self.numbers[name],) for name in apart]
        together = [number for name, number in self.numbers.items() if name not in apart]
        self._group_of = np.zeros(MOST_IN_FRAME + 2, np.int8)
        """For each api key, 0 if its records are not needed; otherwise a number shared by records that are returned
        together."""
        self._count = 1 + len(alone)
        for group, members in enumerate((together, *alone), 1):
            self._group_of[[*members]] = group
        self._is_known = np.zeros(MOST_IN_FRAME + 2, np.bool_)
        self._is_known[[*self.schemas]] = True
        self._begin, self._end, self._abort = numbers_of(self.schemas, (_BEGIN, _END, _ABORT))
        self._is_turn = np.zeros(MOST_IN_FRAME + 2, np.bool_)
        self._is_turn[[self._begin, self._end, self._abort]] = True
        self._pending: list[DecodedRecords] | None = None
        self._first: int | None = None
        """The offset of the first record that is not in the checkpoint; None before the first rows."""
        self._end_offset = 0
        """The offset after the last row."""
        self.since_ms: int | None = None
        """When the first available rows of the log were written; None if they are the beginning of the log."""
        self.until_ms: int | None = None
        """The latest time of a row."""
        self._is_checkpoint = False
        """Whether the rows come from a checkpoint that is the only source."""
        self._in_checkpoint = False
        """Whether the rows belong to a checkpoint, whose times are not those of the changes."""
        self.kraft_version: tuple[bytes, int | None] | None = None
        """The last `KRaftVersionRecord`, if any, and its time; None in a checkpoint, which does not contain one."""

    def take(self, batch: pa.RecordBatch) -> Iterator[tuple[DecodedRecords, bool]]:
        """The records that take effect by the end of these rows, and whether they come from the checkpoint, which has
        no times."""
        self._note_start(batch)
        yield from self._start()
        assert self._first is not None
        self._note_times(batch)
        self._end_offset = int(batch.column("offset")[-1].as_py()) + 1 if batch.num_rows else self._end_offset
        if self._first:
            offsets = batch.column("offset").to_numpy()
            if offsets[0] < self._first:
                batch = batch.slice(int(np.searchsorted(offsets, self._first)))
        for found in self._in_force(batch):
            yield found, self._is_checkpoint

    def _note_times(self, batch: pa.RecordBatch) -> None:
        times = batch.column("timestamp_ms")
        if times.null_count == batch.num_rows:
            return
        if self.until_ms is None and (self._context.log.start or self._is_checkpoint):
            self.since_ms = pc.max_element_wise(times[0], 0).as_py()
        latest = pc.max(times).as_py()
        self.until_ms = latest if self.until_ms is None else max(self.until_ms, latest)

    def _note_start(self, batch: pa.RecordBatch) -> None:
        """Set the log start from the first row if the source does not report it. A log begins at 0, and records are
        removed only from its start."""
        log = self._context.log
        if self._first is None and batch.num_rows:
            self._is_checkpoint = self._in_checkpoint = batch.column("control")[0].as_py() == "snapshot_header"
        if self._first is None and log.start is None and batch.num_rows:
            first = int(batch.column("offset")[0].as_py())
            log.start = first if first > _CONTROL_RECORDS else 0

    def finish(self) -> Iterator[tuple[DecodedRecords, bool]]:
        """The remaining records at the end of the log, even if no row of the log was read. Reports a finding if the
        checkpoint has records that were written after the requested time."""
        yield from self._start()
        context = self._context
        if context.question.as_of_ms is not None and self._first and self._end_offset < self._first:
            what = f"the state at that moment is in no file: the oldest checkpoint is at offset {self._first}"
            consequence = "the answer comes from the checkpoint, which is later than the requested moment"
            context.report(
                Finding(
                    "note",
                    INCOMPLETE_HISTORY,
                    what,
                    consequence,
                    context.topic,
                    context.partition,
                    complete_from=self._first,
                )
            )

    def _start(self) -> Iterator[tuple[DecodedRecords, bool]]:
        """The rows of the checkpoint, once. Reports if it is missing."""
        if self._first is not None:
            return
        context, self._first = self._context, 0
        if context.log.checkpoint is not None:
            self._first = context.log.checkpoint.end_offset
            self._in_checkpoint = True
            for rows in context.log.checkpoint.rows:
                for found in self._in_force(rows):
                    yield found, True
            self._in_checkpoint = False
        elif context.log.start:
            what = f"this log begins at offset {context.log.start}, and no intact checkpoint has the earlier state"
            consequence = "earlier changes are unknown: pass the whole folder of the metadata log"
            context.report(Finding("damage", UNREAD_LOG, what, consequence, context.topic, context.partition))

    def _in_force(self, batch: pa.RecordBatch) -> Iterator[DecodedRecords]:
        if not batch.num_rows:
            return
        if batch.column("control").null_count < batch.num_rows:
            self._note_kraft_version(batch)
            batch = batch.filter(batch.column("control").is_null())
        types = api_key_column(batch.column("key"), batch.column("value"))
        known = self._is_known[types]  # unknown types have the index -1, which refers to the last element
        if not known.all():
            self._report(batch.filter(pa.array(~known)))
        begin = 0
        for turn in np.flatnonzero(self._is_turn[types]).tolist():
            yield from self._part(batch, types, begin, turn)
            if types[turn] == self._begin:
                self._pending = []
            else:
                ended, self._pending = self._pending, None
                if types[turn] == self._end:
                    yield from ended or ()
            begin = turn + 1
        yield from self._part(batch, types, begin, batch.num_rows)

    def _note_kraft_version(self, batch: pa.RecordBatch) -> None:
        """Note the last control record with which the quorum itself raises its feature."""
        found = batch.filter(pc.equal(batch.column("control"), _KRAFT_VERSION))
        for row in found.select(["timestamp_ms", "value"]).to_pylist()[-1:]:
            self.kraft_version = row["value"] or b"", None if self._in_checkpoint else row["timestamp_ms"]

    def _part(self, batch: pa.RecordBatch, types: INT16, begin: int, end: int) -> Iterator[DecodedRecords]:
        part, kinds = batch.slice(begin, end - begin), types[begin:end]
        groups = self._group_of[kinds]
        for group in range(1, self._count + 1):
            wanted = groups == group
            if wanted.any():
                decoded = DecodedRecords(part if wanted.all() else part.filter(pa.array(wanted)), self.schemas)
                decoded.report(self._context, lambda row: _STOPS)
                if self._pending is None:
                    yield decoded
                else:
                    self._pending.append(decoded)

    def _report(self, rows: pa.RecordBatch) -> None:
        """Report records without a known type, because a controller rejects them."""
        DecodedRecords(rows, self.schemas).report(self._context, lambda row: _STOPS)


def values_of(decoded: DecodedRecords, number: int) -> tuple[INT64, pa.Array] | None:
    """The rows that have a record of a type, and their values as structs; None if there are none."""
    records = decoded.columns.records.get(number)
    if records is None or records.null_count == len(records):
        return None
    if not records.null_count:
        return np.arange(len(records)), records.field("value")
    rows = np.flatnonzero(records.is_valid().to_numpy(zero_copy_only=False))
    return rows, records.drop_null().field("value")


def events(decoded: DecodedRecords, numbers: dict[str, int]) -> list[tuple[int, str, dict[str, Any]]]:
    """The records of the given types in log order: row, name and value."""
    found: list[tuple[int, str, dict[str, Any]]] = []
    for name, number in numbers.items():
        values = values_of(decoded, number)
        if values is not None:
            rows, structs = values
            fields = [field.name for field in structs.type]
            # This is faster than `to_pylist` on the structs.
            columns = zip(*(structs.field(field).to_pylist() for field in fields), strict=True) if fields else ()
            values_of_rows = (dict(zip(fields, each, strict=True)) for each in columns)
            found += [(row, name, value) for row, value in zip(rows.tolist(), values_of_rows, strict=True)]
    return sorted(found, key=lambda event: event[0])
