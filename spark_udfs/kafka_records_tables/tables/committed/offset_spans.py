"""From commits and tombstones to spans of time in which a committed offset held, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.committed.commit_order import begins, ends, in_effect
from kafka_records_tables.tables.committed.commits import COMMITS, commit_columns, report_undecided
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, numbers_of
from kafka_records_tables.tables.decoded.latest import joined
from kafka_records_tables.tables.decoded.lots import LOT_ROWS
from kafka_records_tables.tables.decoded.transactions_settled import UNKNOWN

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.tables.committed.commit_effects import Effect

COMMIT: Final = "commit"
TRANSACTION: Final = "transaction"
TOMBSTONE: Final = "tombstone"
UNUSABLE: Final = "unusable"
ENDS: Final = (COMMIT, TRANSACTION, TOMBSTONE, UNUSABLE)
"""What a record does to the offset that held before it; in columns the place among these."""

_KEY: Final = ("group_id", "topic", "partition")
_SAID: Final = ("offset", "leader_epoch", "metadata", "topic_id")
"""What a commit says. Commits of one key that follow each other and say the same are one span."""

_LOST: Final = "which offset held from here on is not told"


class OffsetSpans:
    """Makes spans of what takes effect. Memory follows the keys, and the deleted ones while a transaction is open."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context) -> None:
        self._schemas = schemas
        self._context = context
        self._types = numbers_of(schemas, COMMITS)
        self._waiting: list[pa.RecordBatch] = []
        self._count = 0
        self._kept = 0

    def add(self, found: list[Effect], waits: bool) -> Iterator[dict[str, Any]]:
        """Add what took effect by the end of a batch; `waits` says whether rows wait for their markers. Columns of
        spans that have ended."""
        for effect in found:
            changes = self._changes(effect)
            if changes.num_rows:
                self._waiting.append(changes)
                self._count += changes.num_rows
        if self._count > max(LOT_ROWS, 2 * self._kept):
            yield from self._ended(waits)

    def rest(self) -> Iterator[dict[str, Any]]:
        """At the end of the log: the spans that have ended, and those that have not."""
        if self._waiting:
            yield from self._ended(waits=True)
        for rows in self._waiting:
            yield _columns(rows.filter(_holds(rows)), None)

    # -- changes of offsets --------------------------------------------------------------------------------------------

    def _changes(self, effect: Effect) -> pa.RecordBatch:
        found = DecodedRecords(effect.rows, self._schemas)
        is_undecided = effect.outcome == UNKNOWN
        found.report(
            self._context, lambda row: _LOST if found.has_key[row] else "not used: nobody can tell whose it is"
        )
        if is_undecided:
            report_undecided(found, self._types, found.has_key & ~found.has_error, self._context, _LOST)
        does = np.full(len(effect.place), ENDS.index(TRANSACTION if effect.is_transactional else COMMIT), np.int8)
        does[found.is_tombstone] = ENDS.index(TOMBSTONE)
        does[found.has_error | (is_undecided & ~found.is_tombstone)] = ENDS.index(UNUSABLE)
        columns = commit_columns(found, self._types, self._context)
        chosen = {name: columns[name] for name in (*_KEY, *_SAID, "commit_timestamp_ms", "log_offset")}
        chosen |= {"does": pa.array(does), "place": pa.array(effect.place), "clock": pa.array(effect.clock)}
        chosen |= {"newest": chosen["log_offset"], "commits": pa.array(np.ones(len(does), np.int64))}
        return pa.RecordBatch.from_pydict(chosen).filter(pa.array(found.has_key))

    # -- spans ---------------------------------------------------------------------------------------------------------

    def _ended(self, waits: bool) -> Iterator[dict[str, Any]]:
        """The spans that have ended; the last change of each key waits on."""
        changes = joined(self._waiting)
        order, keys = in_effect(changes, changes.column("place").to_numpy(), changes.column("newest").to_numpy())
        rows = changes.take(pa.array(order))
        rows, keys = _first_of_runs(rows, keys)
        is_last = ends(keys)
        following = np.minimum(np.arange(len(keys)) + 1, len(keys) - 1)
        has_ended = ~is_last & _holds(rows).to_numpy(zero_copy_only=False)
        ended = np.flatnonzero(has_ended)
        if len(ended):
            by = rows.select(["does", "place", "clock"]).take(pa.array(following[ended]))
            yield _columns(rows.take(pa.array(ended)), by)
        # A deleted key matters as long as an older commit of it may come with its marker.
        stays = is_last if waits else is_last & _holds(rows).to_numpy(zero_copy_only=False)
        left = rows.filter(pa.array(stays))
        self._waiting = [left] if left.num_rows else []
        self._count = self._kept = left.num_rows


def _holds(rows: pa.RecordBatch) -> pa.BooleanArray:
    """Which rows are committed offsets."""
    return pc.less(rows.column("does"), ENDS.index(TOMBSTONE))


def _codes(column: pa.Array) -> INT64:
    codes: INT64 = column.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64) + 1
    return codes


def _first_of_runs(rows: pa.RecordBatch, keys: INT64) -> tuple[pa.RecordBatch, INT64]:
    """Rows of one key that follow each other and say the same become the first of them, with the sum of `commits`; and
    those that delete, or of which nobody can tell, too."""
    is_first = begins(keys)
    is_first[1:] |= _differs(rows)
    run = np.cumsum(is_first) - 1
    commits = np.bincount(run, weights=rows.column("commits").to_numpy()).astype(np.int64)
    last = np.append(np.flatnonzero(is_first)[1:], len(keys)) - 1
    newest = rows.column("newest").to_numpy()[last]
    rows = rows.filter(pa.array(is_first))
    rows = rows.set_column(rows.schema.get_field_index("commits"), "commits", pa.array(commits))
    return rows.set_column(rows.schema.get_field_index("newest"), "newest", pa.array(newest)), keys[is_first]


def _differs(rows: pa.RecordBatch) -> FLAGS:
    """Which rows behind the first say something else than the row before them."""
    holds = _holds(rows).to_numpy(zero_copy_only=False)
    does = np.where(holds, 0, rows.column("does").to_numpy())
    differs = does[1:] != does[:-1]
    said = np.zeros(len(differs), np.bool_)
    for name in _SAID:
        column = rows.column(name)
        codes = _codes(column) if pa.types.is_string(column.type) else _with_null(column)
        said |= codes[1:] != codes[:-1]
    found: FLAGS = differs | (holds[1:] & said)
    return found


def _with_null(column: pa.Array) -> INT64:
    """Numbers, with one that stands for null: no offset and no epoch is as low."""
    numbers: INT64 = column.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
    return numbers


def _columns(rows: pa.RecordBatch, by: pa.RecordBatch | None) -> dict[str, Any]:
    """The columns of some spans. `by` are the changes that ended them; None where they have not ended."""
    found = {name: rows.column(name) for name in (*_KEY, *_SAID, "commit_timestamp_ms", "commits", "log_offset")}
    found |= {"valid_from_log_offset": rows.column("place"), "last_log_offset": rows.column("newest")}
    found["valid_from_timestamp_ms"] = rows.column("clock")
    nothing = pa.nulls(rows.num_rows, pa.int64())
    found["valid_to_timestamp_ms"] = nothing if by is None else by.column("clock")
    found["valid_to_log_offset"] = nothing if by is None else by.column("place")
    words = pa.array(ENDS, pa.string())
    found["ended_by"] = pa.nulls(rows.num_rows, pa.string()) if by is None else words.take(by.column("does"))
    found["is_current"] = pa.array(np.full(rows.num_rows, by is None))
    return found
