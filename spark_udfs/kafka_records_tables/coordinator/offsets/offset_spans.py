"""Computes the time spans in which each committed offset was valid, from commits and tombstones in columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commit_order import begins, ends, in_effect_by_number, numbers_of_keys
from kafka_records_tables.coordinator.offsets.commits import COMMITS, report_undecided
from kafka_records_tables.coordinator.offsets.decoded_commits import KEY, VALUE, DecodedCommits
from kafka_records_tables.coordinator.records.decoded_records import numbers_of
from kafka_records_tables.coordinator.records.latest import joined
from kafka_records_tables.coordinator.records.lot_size import LOT_ROWS
from kafka_records_tables.coordinator.transactions import UNKNOWN

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.coordinator.offsets.commit_effects import Effect

COMMIT: Final = "commit"
TRANSACTION: Final = "transaction"
TOMBSTONE: Final = "tombstone"
UNUSABLE: Final = "unusable"
ENDS: Final = (COMMIT, TRANSACTION, TOMBSTONE, UNUSABLE)
"""How a span can end. Columns contain the index in this tuple."""

_SAID: Final = ("offset", "leader_epoch", "metadata", "topic_id")
"""The content of a commit. Consecutive commits of one key with the same content are one span."""

_LOST: Final = "which offset was valid from here on is unknown"


class OffsetSpans:
    """Builds spans from the commits that take effect. Memory grows with the number of keys and, while a transaction is
    open, with the number of deleted keys."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context) -> None:
        self._schemas = schemas
        self._context = context
        self._types = numbers_of(schemas, COMMITS)
        self._waiting: list[_Changes] = []
        self._count = 0
        self._kept = 0

    def add(self, found: list[Effect], waits: bool) -> Iterator[dict[str, Any]]:
        """Add the rows that took effect by the end of a batch. `waits` says whether other rows still wait for their
        markers. Yields the columns of the spans that have ended."""
        for effect in found:
            changes = self._changes(effect)
            if changes.count:
                self._waiting.append(changes)
                self._count += changes.count
        if self._count > max(LOT_ROWS, 2 * self._kept):
            yield from self._ended(waits)

    def rest(self) -> Iterator[dict[str, Any]]:
        """At the end of the log, yield the remaining spans, whether or not they have ended."""
        if self._waiting:
            yield from self._ended(waits=True)
        for changes in self._waiting:
            yield changes.spans(np.flatnonzero(changes.holds), None)

    # -- changes of offsets --------------------------------------------------------------------------------------------

    def _changes(self, effect: Effect) -> _Changes:
        decoded = DecodedCommits(effect.rows, self._schemas)
        is_undecided = effect.outcome == UNKNOWN
        if not decoded.is_plain:
            decoded.found.report(
                self._context,
                lambda row: _LOST if decoded.has_key[row] else "not used: its group and topic are unknown",
            )
        if is_undecided:
            usable = decoded.has_key & ~decoded.has_error
            report_undecided(decoded.found, self._types, usable, self._context, _LOST)
        does = np.full(len(effect.place), ENDS.index(TRANSACTION if effect.is_transactional else COMMIT), np.int8)
        does[decoded.is_tombstone] = ENDS.index(TOMBSTONE)
        does[decoded.has_error | (is_undecided & ~decoded.is_tombstone)] = ENDS.index(UNUSABLE)
        offsets = effect.rows.column("offset").to_numpy()
        changes = _Changes(
            keys=decoded.keys,
            values=decoded.values,
            key=decoded.key,
            value=decoded.value,
            does=does,
            place=effect.place,
            clock=effect.clock,
            log_offset=offsets,
            newest=offsets,
            commits=np.ones(len(does), np.int64),
        )
        return changes if decoded.has_key.all() else changes.some(np.flatnonzero(decoded.has_key))

    # -- spans ---------------------------------------------------------------------------------------------------------

    def _ended(self, waits: bool) -> Iterator[dict[str, Any]]:
        """The spans that have ended; the last change of each key is kept."""
        changes = _joined(self._waiting)
        numbers = numbers_of_keys(changes.keys)[changes.key]
        order, keys = in_effect_by_number(numbers, changes.place, changes.newest)
        changes, first = _first_of_runs(changes, order, keys)
        keys = keys[first]
        rows = order[first]
        is_last = ends(keys)
        holds = changes.holds[rows]
        ended = np.flatnonzero(~is_last & holds)
        if len(ended):
            yield changes.spans(rows[ended], rows[ended + 1])
        # Keep a deleted key while the marker of an older commit for it may still follow.
        left = changes.some(rows[is_last if waits else is_last & holds]).compact()
        self._waiting = [left] if left.count else []
        self._count = self._kept = left.count


@dataclass(frozen=True, slots=True)
class _Changes:
    """How some records affect offsets, in vectors with an element per record."""

    keys: pa.RecordBatch
    """See `DecodedCommits.keys`."""
    values: pa.RecordBatch
    """See `DecodedCommits.values`."""
    key: INT64
    value: INT64
    """Indexes in `values`, or -1."""
    does: NDArray[np.int8]
    """The effect, as an index in ENDS."""
    place: INT64
    """Offset and CLOCK of the record at which it takes effect."""
    clock: INT64
    log_offset: INT64
    newest: INT64
    """For consecutive records with the same content: the offset of the last one, and their number."""
    commits: INT64

    @property
    def count(self) -> int:
        return len(self.key)

    @property
    def holds(self) -> FLAGS:
        """Which records are commits."""
        found: FLAGS = self.does < ENDS.index(TOMBSTONE)
        return found

    def some(self, rows: INT64) -> _Changes:
        return replace(self, **{name: getattr(self, name)[rows] for name in _VECTORS})

    def compact(self) -> _Changes:
        """The same changes, with only the keys and values they need."""
        keys, key = np.unique(self.key, return_inverse=True)
        has_value = self.value >= 0
        value = np.full(self.count, -1, np.int64)
        value[has_value] = np.arange(int(has_value.sum()))
        values = self.values.take(pa.array(self.value[has_value]))
        return replace(self, keys=self.keys.take(pa.array(keys)), values=values, key=key, value=value)

    def spans(self, rows: INT64, by: INT64 | None) -> dict[str, Any]:
        """The columns of the spans that begin with some of the changes. `by` are the changes that ended them; None if
        they have not ended."""
        keys, values = pa.array(self.key[rows]), pa.array(self.value[rows])
        found = {name: self.keys.column(name).take(keys) for name in KEY}
        found |= {name: self.values.column(name).take(values) for name in VALUE}
        found |= {name: pa.array(getattr(self, name)[rows]) for name in ("commits", "log_offset")}
        found["valid_from_log_offset"] = pa.array(self.place[rows])
        found["last_log_offset"] = pa.array(self.newest[rows])
        found["valid_from_timestamp_ms"] = pa.array(self.clock[rows])
        nothing = pa.nulls(len(rows), pa.int64())
        found["valid_to_timestamp_ms"] = nothing if by is None else pa.array(self.clock[by])
        found["valid_to_log_offset"] = nothing if by is None else pa.array(self.place[by])
        words = pa.array(ENDS, pa.string())
        found["ended_by"] = pa.nulls(len(rows), pa.string()) if by is None else words.take(pa.array(self.does[by]))
        found["is_current"] = pa.array(np.full(len(rows), by is None))
        return found


_VECTORS: Final = tuple(each.name for each in fields(_Changes) if each.name not in ("keys", "values"))


def _joined(parts: list[_Changes]) -> _Changes:
    if len(parts) == 1:
        return parts[0]
    vectors = {name: np.concatenate([getattr(part, name) for part in parts]) for name in _VECTORS}
    first = keys = values = 0
    for part in parts:
        rows = slice(first, first + part.count)
        vectors["key"][rows] += keys
        value = vectors["value"][rows]
        value[value >= 0] += values
        first, keys, values = rows.stop, keys + part.keys.num_rows, values + part.values.num_rows
    return _Changes(joined([part.keys for part in parts]), joined([part.values for part in parts]), **vectors)


def _first_of_runs(changes: _Changes, order: INT64, keys: INT64) -> tuple[_Changes, INT64]:
    """Merge consecutive changes of one key that have the same content into the first one, and add up their `commits`.
    Consecutive deletions and consecutive changes with an unknown effect are merged too. Returns the merged changes, and
    the indexes in `order` of the first ones; `keys` are the key numbers in this order."""
    is_first = begins(keys)
    is_first[1:] |= _differs(changes, order)
    first = np.flatnonzero(is_first)
    if len(first) == len(order):
        return changes, first
    last = np.append(first[1:], len(order)) - 1
    commits, newest = changes.commits.copy(), changes.newest.copy()
    commits[order[first]] = np.add.reduceat(changes.commits[order], first)
    newest[order[first]] = changes.newest[order[last]]
    return replace(changes, commits=commits, newest=newest), first


def _differs(changes: _Changes, order: INT64) -> FLAGS:
    """Which of the ordered changes differ from the previous one. The first is left out."""
    holds = changes.holds[order]
    does = np.where(holds, 0, changes.does[order])
    differs: FLAGS = does[1:] != does[:-1]
    value = changes.value[order]
    said = np.zeros(len(differs), np.bool_)
    if not changes.values.num_rows:
        return differs
    for name in _SAID:
        codes = _codes(changes.values.column(name))
        if codes is not None:
            codes = codes[value]
            said |= codes[1:] != codes[:-1]
    return differs | (holds[1:] & said)


def _codes(column: pa.Array) -> INT64 | None:
    """A number for each value, equal for equal values; None if all are equal."""
    if not pa.types.is_string(column.type):
        # Null becomes the lowest int64, which is lower than any offset or epoch.
        numbers: INT64 = column.cast(pa.int64()).fill_null(np.iinfo(np.int64).min).to_numpy()
        return numbers
    encoded = column.dictionary_encode()
    if len(encoded.dictionary) + (encoded.null_count > 0) < 2:
        return None
    codes: INT64 = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    return codes
