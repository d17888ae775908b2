"""Processes raw rows before they reach a table: counts them, stops at the requested time, and checks for gaps in the
offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import UNKNOWN_RECORDS, Finding
from kafka_records_engine.numpy_types import INT64
from kafka_records_runtime.errors import plural
from kafka_records_tables.tables.completeness import Completeness
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table

_NO_TIMESTAMP: Final = -1


class IncomingRows:
    """Selects the raw rows that a table uses, up to the requested time and only of the requested groups.

    Counts records and markers. If the answer depends on records that a cleaner has removed, a note says from where it
    is complete (`Table.is_history`, `Question.as_of_ms`). A log without any record of a known type counts as damage,
    because its answer would be empty. Raises ValueError for a row without a timestamp if one is needed.
    """

    def __init__(self, context: Context, table: Table) -> None:
        self._context = context
        self._all_groups = table.reader.needs_all_groups
        self._completeness = Completeness(context, table)
        self._known = _KnownTypes(context, table)
        self._cut_at: int | None = None
        """The offset of the first record after the requested time."""
        self._later: pa.RecordBatch | None = None
        """Rows after the requested time that `Completeness` has not seen yet."""

    def take(self, batch: pa.RecordBatch) -> pa.RecordBatch | None:
        """The rows of the next batch that the table uses; None if there are none."""
        if not batch.num_rows:
            return None
        if self._cut_at is not None:
            self._later = batch
            return None
        batch = self._up_to_moment(batch)
        if not batch.num_rows:
            return None
        is_metadata = self._context.topic == METADATA  # the quorum's control records count as records
        markers = 0 if is_metadata else batch.num_rows - batch.column("control").null_count
        self._context.counts.records += batch.num_rows - markers
        self._context.counts.markers += markers
        self._known.look_for(batch)
        batch = _with_times(batch)
        return batch if self._all_groups else _of_groups(batch, self._context)

    def _up_to_moment(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows up to the first record with a later timestamp."""
        context, completeness = self._context, self._completeness
        if context.question.as_of_ms is None:
            if "timestamp_ms" in batch.schema.names:
                _note_times(context, batch.column("timestamp_ms").drop_null().to_numpy())
            completeness.before(batch, None)
            return batch
        times = _times(batch, context)
        _note_times(context, times)
        later = np.flatnonzero(times > context.question.as_of_ms)
        first = int(later[0]) if later.size else len(times)
        completeness.before(batch.slice(0, first), times[:first])
        if first < len(times):
            self._cut_at = int(batch.column("offset")[first].as_py())
            self._later = batch.slice(first)
        return batch.slice(0, first)

    def look_beyond(self) -> None:
        """Check the rows after the requested time, once the table has all earlier rows. They show what is missing."""
        if self._later is None:
            return
        times = _times(self._later, self._context)
        if int(self._later.column("offset")[0].as_py()) != self._cut_at:
            _note_times(self._context, times)
        self._completeness.behind(self._later, times)
        self._later = None

    @property
    def is_done(self) -> bool:
        """Whether the requested time has passed and it is known what is missing."""
        return self._cut_at is not None and self._completeness.is_known

    def finish(self) -> None:
        """Report what was found, at the end of the log or when `is_done`."""
        if self._cut_at is not None:
            # Unreadable places after the end of the result do not hide markers that matter for the result.
            self._context.log.holes[:] = [hole for hole in self._context.log.holes if hole < self._cut_at - 1]
        self._completeness.report()
        self._known.report()


class _KnownTypes:
    """Whether a log has any record of a type that the package knows. Others are skipped, as coordinators do."""

    def __init__(self, context: Context, table: Table) -> None:
        # Imported here because modules that decode keys load slowly, and a kept answer does not need them.
        from kafka_records_tables.coordinator.records.decoded_records import schemas

        self._context = context
        self._types = np.array([*schemas(context, table.folder)], np.int16)
        self._unknown = 0
        self._is_known = False

    def look_for(self, batch: pa.RecordBatch) -> None:
        """Check a batch, until such a record is found. Records whose keys have no type have their own findings."""
        if self._is_known:
            return
        from kafka_records_engine.columns.framing_in_columns import prefix_column

        numbers, has_type = prefix_column(batch.column("key"))
        is_typed = has_type & batch.column("control").is_null().to_numpy(zero_copy_only=False)
        self._is_known = bool(np.isin(numbers[is_typed], self._types).any())
        self._unknown += int(is_typed.sum())

    def report(self) -> None:
        """Report that there was none, if there were records."""
        if self._is_known or not self._unknown:
            return
        context = self._context
        what = f"none of {plural(self._unknown, 'record')} is of a type that {context.question.package} knows"
        consequence = "none of them has rows; check the topic, and how keys were saved (encoding)"
        context.report(Finding("damage", UNKNOWN_RECORDS, what, consequence, context.topic, context.partition))


def _note_times(context: Context, times: INT64) -> None:
    counts, told = context.counts, times[times != _NO_TIMESTAMP]
    if told.size:
        first = int(told[0]) if counts.first_timestamp_ms is None else None
        counts.note_times(first, int(told.max()))


def _times(batch: pa.RecordBatch, context: Context) -> INT64:
    times = batch.column("timestamp_ms")
    if times.null_count:
        offset = batch.column("offset")[int(np.argmax(times.is_null().to_numpy(zero_copy_only=False)))]
        raise ValueError(
            f"{context.topic}-{context.partition}: the record at offset {offset} has no timestamp, so the state of "
            "the log at a moment is unknown: ask for the end of the log, or read a source that has the "
            "column 'timestamp_ms'"
        )
    milliseconds: INT64 = times.to_numpy()
    return milliseconds


def _with_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, with a null time for rows without a time (`RecordBatch.NO_TIMESTAMP`)."""
    names = batch.schema.names
    if "timestamp_ms" not in names:
        return batch
    times = batch.column("timestamp_ms")
    is_none = pc.equal(times, _NO_TIMESTAMP)
    if not pc.any(is_none).as_py():
        return batch
    told = pc.if_else(is_none, pa.scalar(None, times.type), times)
    return batch.set_column(names.index("timestamp_ms"), batch.schema.field("timestamp_ms"), told)


def _of_groups(batch: pa.RecordBatch, context: Context) -> pa.RecordBatch:
    """The rows about some groups, and control rows, which are about producers."""
    if context.question.groups is None:
        return batch
    from kafka_records_engine.columns.framing_in_columns import begins_with

    groups = (group.encode("utf-8", "surrogatepass") for group in context.question.groups)
    return batch.filter(pc.or_(pc.is_valid(batch.column("control")), begins_with(batch.column("key"), groups)))
