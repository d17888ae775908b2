"""Reads `share_partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.tables.decoded.decoded_records import filter_record_types
from kafka_records_tables.tables.reader import TableReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.shares.share_batches import StateBatch
    from kafka_records_tables.tables.shares.share_replay import SharePartition, ShareState

from kafka_records.enums import DeliveryState
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, nulled, numbers_of, schemas
from kafka_records_tables.tables.decoded.fold import events
from kafka_records_tables.tables.decoded.since_snapshot import SinceSnapshot
from kafka_records_tables.tables.share_partitions import _MOST, _OF_A_STATE, _RECORDS, _UNKNOWN, TABLE
from kafka_records_tables.tables.shares.share_replay import PICKED, ShareReplay, reported_as_refused


def reader(context: Context) -> TableReader:
    """A reader of one log partition."""
    return _Reader(context)


class _Reader(TableReader):
    def __init__(self, context: Context) -> None:
        self._context = context
        self._schemas = schemas(context, "share_group_state")
        self._types = numbers_of(self._schemas, _RECORDS)
        self._live = SinceSnapshot(("offset", "key", "value", "file", "position", "base_offset"), self._types[0])

    def take(self, batch: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        rows = filter_record_types(batch, self._types, self._context, _NOT_USED)
        self._live.add(rows.filter(pc.is_null(rows.column("control"))))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        kept, context = self._live.rows(), self._context
        if kept is None:
            return
        found = DecodedRecords(kept, self._schemas)
        left_out = "its share partition has no row: an older state would be wrong"
        found.report(context, lambda row: left_out if found.has_key[row] else _NOT_USED)
        replay = ShareReplay(reported_as_refused(found, self._types, context, left_out))
        for event in events(found, PICKED):
            replay.take(event)
        states = replay.states()
        if states:
            yield _as_rows(states, context)


_NOT_USED: Final = "not used: nobody can tell which share partition it is about"


def _as_rows(states: Mapping[SharePartition, ShareState], context: Context) -> Any:
    told: dict[str, Any] = {
        name: pa.array([getattr(state, name) for state in states.values()], TABLE.schema.field(name).type)
        for name in _OF_A_STATE
    }
    for name in ("leader_epoch", "start_offset", "delivery_complete_count"):
        told[name] = nulled(told[name], _UNKNOWN)
    for name in ("create", "write"):
        times = pa.array([getattr(state, f"{name}_timestamp") for state in states.values()], pa.int64())
        told |= {f"{name}_timestamp": instants(times), f"{name}_timestamp_ms": times}
    told |= dict(zip(("group_id", "topic_id", "partition"), map(pa.array, zip(*states, strict=True)), strict=True))
    counts = [_counts(state.batches) for state in states.values()]
    told |= {name: pa.array([each[name] for each in counts], pa.int64()) for name in counts[0]}
    batches = [[_batch(batch) for batch in state.batches] for state in states.values()]
    told["batches"] = pa.array(batches, TABLE.schema.field("batches").type)
    told["log_partition"] = context.partition
    return record_batch(TABLE.schema, told, len(states))


def _counts(batches: Iterable[StateBatch]) -> dict[str, int]:
    columns = {
        DeliveryState.AVAILABLE: "available_count",
        DeliveryState.ACKNOWLEDGED: "acknowledged_count",
        DeliveryState.ARCHIVED: "archived_count",
    }
    counts = dict.fromkeys((*columns.values(), "other_count"), 0)
    for batch in batches:
        name = columns.get(DeliveryState(batch.delivery_state), "other_count")
        # A batch may name more offsets than there are.
        counts[name] = min(counts[name] + batch.last_offset - batch.first_offset + 1, _MOST)
    return counts


def _batch(batch: StateBatch) -> dict[str, Any]:
    return {**batch._asdict(), "delivery_state_name": DeliveryState(batch.delivery_state).label}
