"""Finds a coordinator's writes that contain tombstones. A coordinator writes the records of one operation one after
another, with the same time. A batch may contain several writes (`group.coordinator.append.linger.ms`), and a large
write needs several batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.groups.group_model import MEMBER, ROLES
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, numbers_of
from kafka_records_tables.coordinator.records.latest import joined
from kafka_records_tables.coordinator.records.named_records import Event, Picked, events

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

_NO_BATCH: Final = -1

_LONG: Final = 500
"""The number of records in a batch from which a write may continue in the next one. A batch has at most
`max.message.bytes`."""


class Write(NamedTuple):
    """Records that were written at once, including tombstones."""

    records: tuple[Event, ...]
    timestamp_ms: int | None
    """When they were written; None if the source does not report it."""
    is_whole: bool
    """Whether all of its records are in the log, with no gap before or after them."""
    tombstones: tuple[Event, ...]
    """The tombstones among `records`."""

    @property
    def offset(self) -> int:
        """The offset where the write begins."""
        return self.records[0].offset


def picked(schemas: Mapping[int, RecordSchema]) -> Picked:
    """The fields to read from values: the instance ids of members, for records that have them."""
    members = {}
    for schema in schemas.values():
        if ROLES.get(schema.name) == MEMBER:
            has_instance = any(field.name == "instance_id" for field in schema.value.root.fields)
            members[schema.name] = ("instance_id",) if has_instance else ()
    return {schema.name: members.get(schema.name, ()) for schema in schemas.values()}


class Boundaries:
    """Determines which rows were written together. Rows arrive in log order, a batch at a time."""

    def __init__(self) -> None:
        self._held: list[pa.RecordBatch] = []
        self._behind = 0
        """The offset after the last row that was returned."""

    def complete(self, batches: list[pa.RecordBatch], *, is_end: bool) -> tuple[pa.RecordBatch, INT64, FLAGS] | None:
        """The rows of complete writes, with the start of each write and whether all its records are there. These are
        the rows up to the last batch in which a write begins or, at the end of the log, all rows. None if there are
        none."""
        parts = [*self._held, *batches]
        self._held = []
        if not parts:
            return None
        rows = joined(parts)
        starts, is_whole = self._writes(rows)
        if not is_end:
            # Do not split the last batch in which a write begins, because its length and first record show what wrote
            # it.
            behind = int(starts[_begins_batch(rows, starts)][-1])
            self._held = [rows.slice(behind)]
            if not behind:
                return None
            rows, is_whole = rows.slice(0, behind), is_whole[starts < behind]
            starts = starts[starts < behind]
        self._behind = int(rows.column("offset")[-1].as_py()) + 1
        return rows, starts, is_whole

    def _writes(self, rows: pa.RecordBatch) -> tuple[INT64, FLAGS]:
        offsets = rows.column("offset").to_numpy()
        is_next = np.diff(offsets) == 1
        is_new = ~is_next
        for name in ("timestamp_ms", "producer_id"):
            if name in rows.schema.names:
                is_new = is_new | (np.diff(rows.column(name).fill_null(_NO_BATCH).to_numpy()) != 0)
        batches = (
            rows.column("base_offset").fill_null(_NO_BATCH).to_numpy() if "base_offset" in rows.schema.names else None
        )
        if batches is not None:
            is_new = is_new | ((np.diff(batches) != 0) & ~_goes_on(rows, batches))
        starts = np.concatenate([[0], np.flatnonzero(is_new) + 1])
        is_after = np.concatenate([[self._behind == offsets[0]], is_next])
        follows = is_after[starts]
        is_whole = follows & np.append(follows[1:], True)
        if batches is not None:
            # If the first records of a batch are missing, others may be missing too.
            told = batches[starts]
            is_first = (starts == 0) | (told != batches[starts - 1])
            is_whole &= ~is_first | (told == _NO_BATCH) | (told == offsets[starts])
            # The last write may continue in a batch that has not been read yet.
            is_long = int(np.count_nonzero(batches == batches[-1])) >= _LONG
            is_whole[-1] &= not (is_long and rows.column("value")[-1].as_py() is None)
        if _is_old(rows).any():
            # Records in the oldest format do not show where the next write begins.
            is_whole &= ~_is_old(rows)[starts]
        return starts, is_whole


def _begins_batch(rows: pa.RecordBatch, starts: INT64) -> FLAGS:
    """Flags writes that begin with their batch, if the source reports batches."""
    if "base_offset" not in rows.schema.names:
        return np.ones(len(starts), np.bool_)
    batches = rows.column("base_offset").fill_null(_NO_BATCH).to_numpy()
    begins: FLAGS = (starts == 0) | (batches[starts] != batches[starts - 1]) | (batches[starts] == _NO_BATCH)
    return begins


def _goes_on(rows: pa.RecordBatch, batches: INT64) -> FLAGS:
    """For each row except the last, whether a write may continue after it in another batch: both it and the next row
    are tombstones in long batches."""
    is_tombstone = rows.column("value").is_null().to_numpy(zero_copy_only=False)
    begins = np.concatenate([[True], np.diff(batches) != 0])
    numbers = np.cumsum(begins) - 1
    is_long = (np.bincount(numbers) >= _LONG)[numbers[:-1]]
    goes_on: FLAGS = is_tombstone[:-1] & is_tombstone[1:] & (is_long | _is_old(rows)[:-1])
    return goes_on


def _is_old(rows: pa.RecordBatch) -> FLAGS:
    """Flags records in the format before batches (magic 0 and 1), in which each record is separate. They have no leader
    epoch."""
    if "leader_epoch" not in rows.schema.names:
        return np.zeros(rows.num_rows, np.bool_)
    old: FLAGS = rows.column("leader_epoch").fill_null(0).to_numpy() < 0
    return old


def writes(
    rows: pa.RecordBatch,
    starts: INT64,
    is_whole: FLAGS,
    schemas: Mapping[int, RecordSchema],
    context: Context,
    consequence: str,
) -> list[Write]:
    """The writes with tombstones among some rows, as returned by `Boundaries`. Reports tombstones of offsets with
    undecodable keys, with the `consequence`."""
    is_record = rows.column("control").is_null().to_numpy(zero_copy_only=False)
    is_tombstone = is_record & rows.column("value").is_null().to_numpy(zero_copy_only=False)
    write = np.zeros(rows.num_rows, np.int64)
    write[starts[1:]] = 1
    write = np.cumsum(write)
    chosen = np.unique(write[is_tombstone])
    if not len(chosen):
        return []
    kept = np.flatnonzero(np.isin(write, chosen) & is_record)
    found = DecodedRecords(rows.take(pa.array(kept)), schemas)
    is_of_offset = np.isin(found.columns.record_type, numbers_of(schemas, COMMITS))
    found.report(context, lambda row: consequence, found.is_tombstone & is_of_offset)
    every = list(events(found, picked(schemas)))
    places = np.searchsorted(rows.column("offset").to_numpy(), np.array([event.offset for event in every], np.int64))
    lots: dict[int, list[Event]] = {}
    for event, number in zip(every, write[places].tolist(), strict=True):
        lots.setdefault(number, []).append(event)
    return [
        _write(tuple(lots[number]), whole)
        for number, whole in zip(chosen.tolist(), is_whole[chosen].tolist(), strict=True)
        if number in lots
    ]


def _write(records: tuple[Event, ...], is_whole: bool) -> Write:
    time = records[0].timestamp_ms
    # The oldest message format has no timestamps.
    when = None if time is None or time < 0 else time
    tombstones = tuple([event for event in records if event.value is None and not event.is_broken])
    return Write(records, when, is_whole, records if len(tombstones) == len(records) else tombstones)
