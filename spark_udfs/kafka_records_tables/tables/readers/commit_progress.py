"""Reads `commit_progress`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.numpy_types import INT64
from kafka_records_tables.coordinator.offsets.advances import NONE, Advances
from kafka_records_tables.tables.column_types import record_batch
from kafka_records_tables.tables.commit_progress import TABLE
from kafka_records_tables.tables.group_rows.shared_steps import shared_steps
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.offsets.commit_steps import StepLot

_ADVANCE: Final = {
    "timestamp_ms": "ms",
    "offset": "offset",
    "before_timestamp_ms": "before_ms",
    "before_offset": "before_offset",
}
_OF_POLLS: Final = ("polled_timestamp_ms", "polled_before_ms", "offset_before", "end_before")
_ROWS: Final = 65_536


class Reader(TableReader):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._steps = shared_steps(context)
        self._advances = Advances(context.question.options["window"])

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._add(self._steps.take(batch))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._add(self._steps.rest())
        counts, nothing = self._context.counts, dict.fromkeys(TABLE.names)
        of_log = {
            "first_log_timestamp_ms": counts.first_timestamp_ms,
            "log_timestamp_ms": counts.last_timestamp_ms,
            "log_partition": self._context.partition,
        }
        yield record_batch(TABLE.schema, nothing | of_log, 1)
        keys = np.flatnonzero(self._advances.state["is_value"] > 0)
        for start in range(0, len(keys), _ROWS):
            yield self._rows(keys[start : start + _ROWS], of_log)

    def _add(self, lots: Iterable[StepLot]) -> None:
        for lot in lots:
            if lot.steps is not None:
                self._advances.add(lot.steps)

    def _rows(self, keys: INT64, of_log: dict[str, int | None]) -> pa.RecordBatch:
        found, of_keys = self._advances, self._advances.keys
        assert of_keys is not None
        state = {name: vector[keys] for name, vector in found.state.items()}
        named = of_keys.take(pa.array(keys))
        ids = pa.array(found.ids, pa.string()).take(pa.array(state["topic_id"], mask=state["topic_id"] < 0))
        columns = {
            **{name: named.column(name) for name in named.schema.names},
            "topic_id": ids,
            "offset": pa.array(state["offset"]),
            "commit_timestamp_ms": pa.array(state["commit_ms"]),
            "changed_timestamp_ms": pa.array(state["changed_ms"]),
            "commits": pa.array(state["commits"]),
            "peak": pa.array(state["peak"]),
            "fell_timestamp_ms": _nullable(state["fell_ms"]),
            "fell_from": _nullable(state["fell_from"]),
            "advances": self._of_keys(keys),
            **of_log,
            **dict.fromkeys(_OF_POLLS),
        }
        return record_batch(TABLE.schema, columns, len(keys))

    def _of_keys(self, keys: INT64) -> pa.Array:
        """The advances of some ascending keys, as one list per key."""
        of_key = self._advances.advances["key"]
        first, behind = np.searchsorted(of_key, keys), np.searchsorted(of_key, keys, side="right")
        sizes = behind - first
        starts = np.concatenate([[0], np.cumsum(sizes)])
        at = np.arange(starts[-1]) - np.repeat(starts[:-1] - first, sizes)
        members = {name: _nullable(self._advances.advances[of][at]) for name, of in _ADVANCE.items()}
        kind = TABLE.schema.field("advances").type
        structs = pa.StructArray.from_arrays(list(members.values()), fields=list(kind.value_type))
        return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), structs, type=kind)


def _nullable(numbers: INT64) -> pa.Array:
    return pa.array(numbers, mask=numbers == NONE)
