"""Sums of the actions of groups, by group, topic and time window, in columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.groups.group_model import ROLES
from kafka_records_tables.coordinator.groups.last_group_records import NOT_USED
from kafka_records_tables.coordinator.offsets.commit_order import begins, ends
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.key_numbers import UNREADABLE, KeyNumbers
from kafka_records_tables.coordinator.offsets.repeated_commits import COMMITS as TO_SETTLE
from kafka_records_tables.coordinator.offsets.repeated_commits import RepeatedCommits
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, are_of_types, numbers_of
from kafka_records_tables.coordinator.records.lot_size import LOT_ROWS
from kafka_records_tables.tables.group_rows.window_sums import NO_TIME, WindowSums

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

NOT_THERE: Final = -2
"""The time of a key's last commit if there is no commit. (NO_TIME is the time of a commit without a timestamp.)"""

_LOST: Final = "the record is counted, but without the content of its value"


_DECODED: Final = (
    "offset",
    "timestamp_ms",
    "base_offset",
    "key",
    "value",
    "producer_id",
    "transaction",
    "file",
    "position",
)


class ActivitySums:
    """Adds up the actions of groups. Memory grows with the number of sums and of offset keys."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context, window_ms: int) -> None:
        self._schemas = schemas
        self._context = context
        self._types = numbers_of(schemas, COMMITS)
        self._of_groups = numbers_of(schemas, ROLES)
        self._sums = WindowSums(window_ms)
        self._keys = KeyNumbers()
        self._kept = 0
        # For each key number: the position of its group and topic in `_sums`, and the time of its last record, or
        # NOT_THERE after a tombstone.
        self._places = np.zeros(0, np.int64)
        self._last_ms = np.zeros(0, np.int64)
        self._repeats = RepeatedCommits(context)

    def commits(self, batch: pa.RecordBatch) -> None:
        """Add the raw rows that follow. Only commits, tombstones of offsets and control rows count."""
        numbers, _ = prefix_column(batch.column("key"))
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        is_of_offset = is_record & are_of_types(numbers, self._types)
        is_chosen = ~is_record | is_of_offset
        if not is_chosen.any():
            return
        chosen = _filtered(batch, ("offset", "timestamp_ms", "producer_id", "transaction", "control"), is_chosen)
        rows = _filtered(batch, _DECODED, is_of_offset)
        found = DecodedRecords(rows, self._schemas, self._context.shared)
        found.report(
            self._context, lambda row: _LOST if found.has_key[row] else "not counted: its group and topic are unknown"
        )
        keys = self._keys.of_rows(found, self._types)
        self._note_places()
        committed = found.member(self._types, "value", "offset").fill_null(-1).to_numpy(zero_copy_only=False)
        self._note_repeats(chosen, is_record[is_chosen], keys, committed, ~found.is_tombstone)
        counts = {
            "transactional_commits": ~found.is_tombstone & _is_transactional(rows),
            "key_bytes": _bytes(rows.column("key")),
            "value_bytes": _bytes(rows.column("value")),
        }
        time, is_tombstone = rows.column("timestamp_ms").fill_null(NO_TIME).to_numpy(), found.is_tombstone
        if len(keys) and keys.min() == UNREADABLE:
            is_read = keys > UNREADABLE
            keys, time, is_tombstone = keys[is_read], time[is_read], is_tombstone[is_read]
            counts = {name: values[is_read] for name, values in counts.items()}
        if not len(keys):
            return
        interval = self._since_the_last(keys, time, is_tombstone)
        known = interval >= 0
        self._sums.add(
            self._places[keys],
            time,
            commits=~is_tombstone,
            intervals=known,
            interval_sum=np.where(known, interval, 0),
            interval_max=interval,
            records=np.ones(len(keys), np.int64),
            **counts,
        )
        if len(self._keys) > max(LOT_ROWS, 2 * self._kept):
            self._forget()

    def records_of_groups(self, batch: pa.RecordBatch) -> None:
        """Add the raw rows that follow. Only records of groups count."""
        numbers, _ = prefix_column(batch.column("key"))
        is_chosen = batch.column("control").is_null().to_numpy(zero_copy_only=False) & are_of_types(
            numbers, self._of_groups
        )
        if not is_chosen.any():
            return
        found = DecodedRecords(_filtered(batch, _DECODED, is_chosen), self._schemas, self._context.shared)
        found.report(self._context, lambda row: _LOST if found.has_key[row] else NOT_USED)
        groups = pa.nulls(len(found.offsets), pa.string())
        for number, column in found.columns.records.items():
            groups = pc.coalesce(groups, pc.struct_field(column, ["key", found.key_names(number)[0]]))
        is_read = groups.is_valid()
        rows = found.rows.filter(is_read)
        self._sums.add(
            self._sums.places((group, None) for group in groups.filter(is_read).to_pylist()),
            rows.column("timestamp_ms").fill_null(NO_TIME).to_numpy(),
            records=np.ones(rows.num_rows, np.int64),
            key_bytes=_bytes(rows.column("key")),
            value_bytes=_bytes(rows.column("value")),
        )

    def happened(self, what: str, places: list[tuple[str, str | None, int | None]]) -> None:
        """Add one to the sum `what`, one of SUMMED, for each group, topic and time."""
        if places:
            time = np.array([NO_TIME if time is None else time for _, _, time in places], np.int64)
            of_places = self._sums.places((group, topic) for group, topic, _ in places)
            self._sums.add(of_places, time, **{what: np.ones(len(places), np.int64)})

    def sums(self) -> pa.Table:
        """The columns BY, SUMMED and GREATEST. A greatest value is -1 if there is none."""
        self._repeated(self._repeats.rest())
        return self._sums.table()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _note_places(self) -> None:
        """Make room for new keys, and note their groups and topics."""
        new = self._keys.taken_again()
        if not new:
            return
        keys = self._keys.keys
        if len(keys) > len(self._places):
            more = np.zeros(max(len(keys), 2 * len(self._places)) - len(self._places), np.int64)
            self._places = np.concatenate([self._places, more])
            self._last_ms = np.concatenate([self._last_ms, more])
        self._places[new] = self._sums.places(keys[number][:2] for number in new)
        self._last_ms[new] = NOT_THERE

    def _note_repeats(
        self, rows: pa.RecordBatch, is_record: FLAGS, keys: INT64, committed: INT64, is_value: FLAGS
    ) -> None:
        """Count commits that change nothing. `rows` are commits, tombstones and control rows; the vectors after
        `is_record` have an element for each commit and tombstone."""
        told = np.full((2, rows.num_rows), UNREADABLE, np.int64)
        told[0, is_record], told[1, is_record] = keys, committed
        has_value = np.zeros(rows.num_rows, np.bool_)
        has_value[is_record] = is_value
        of_rows = {name: rows.column(name) for name in ("offset", "producer_id", "transaction", "control")}
        of_rows["value"] = pa.array(np.ones(rows.num_rows, np.bool_), mask=~has_value)
        of_rows |= {"key": pa.array(told[0]), "committed": pa.array(told[1]), "time": rows.column("timestamp_ms")}
        lot = pa.RecordBatch.from_pydict(of_rows, TO_SETTLE)
        is_unread = is_record & (told[0] == UNREADABLE)
        self._repeated(self._repeats.take(lot.filter(pa.array(~is_unread)) if is_unread.any() else lot))

    def _repeated(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            time = rows.column("time").fill_null(NO_TIME).to_numpy()
            count = np.ones(rows.num_rows, np.int64)
            self._sums.add(self._places[rows.column("key").to_numpy()], time, repeated_commits=count)

    def _since_the_last(self, keys: INT64, time: INT64, is_tombstone: FLAGS) -> INT64:
        """For each row, the milliseconds since the previous commit of its key; -1 if there is no such commit or no
        time."""
        order = np.argsort(keys, kind="stable")
        keys, time = keys[order], np.where(is_tombstone, NOT_THERE, np.maximum(time, NO_TIME))[order]
        before = np.append(NOT_THERE, time[:-1])
        first = begins(keys)
        before[first] = self._last_ms[keys[first]]
        interval = np.full(len(keys), -1, np.int64)
        interval[order] = np.where((time >= 0) & (before >= 0), np.maximum(time - before, 0), -1)
        last = ends(keys)
        self._last_ms[keys[last]] = time[last]
        return interval

    def _forget(self) -> None:
        """Free the numbers of deleted offsets."""
        is_kept = self._last_ms > NOT_THERE
        is_kept[self._repeats.keys()] = True
        self._keys.keep(is_kept)
        self._kept = len(self._keys)


def _filtered(batch: pa.RecordBatch, names: Iterable[str], which: FLAGS) -> pa.RecordBatch:
    """The selected rows, with those of the columns that exist."""
    columns = batch.select([name for name in names if name in batch.schema.names])
    return columns if which.all() else columns.filter(pa.array(which))


def _bytes(column: pa.Array) -> INT64:
    found: INT64 = pc.binary_length(column).fill_null(0).cast(pa.int64()).to_numpy()
    return found


def _is_transactional(rows: pa.RecordBatch) -> FLAGS:
    """Flags rows written in a transaction, if the source reports it."""
    said = rows.column("transaction")
    told = pc.fill_null(pc.not_equal(said, "none"), False).to_numpy(zero_copy_only=False)
    by_nobody = rows.column("producer_id").fill_null(0).to_numpy() < 0
    found: FLAGS = told & ~by_nobody
    return found
