"""Reads `share_partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records.enums import DeliveryState
from kafka_records_tables.coordinator.records.decoded_records import (
    DecodedRecords,
    nulled,
)
from kafka_records_tables.coordinator.records.named_records import events
from kafka_records_tables.coordinator.records.since_snapshot import SinceSnapshot
from kafka_records_tables.coordinator.shares.share_replay import PICKED, ShareReplay, batches_of, reported_as_refused
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.tables.share_partitions import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.shares.share_batches import StateBatch
    from kafka_records_tables.coordinator.shares.share_replay import SharePartition, ShareState


_OF_A_STATE: Final = (
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "snapshot_epoch",
    "update_count",
    "is_partial",
    "log_offset",
    "snapshot_log_offset",
)

_UNKNOWN: Final = -1

_MOST: Final = 2**63 - 1


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "share_group_state", TABLE.records, _NOT_USED)
        self._live = SinceSnapshot(("offset", "key", "value", "file", "position", "base_offset"), self.types[0])

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        self._live.add(rows.filter(pc.is_null(rows.column("control"))))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        kept, context = self._live.rows(), self.context
        if kept is None:
            return
        found = DecodedRecords(kept, self.schemas)
        left_out = "its share partition has no row: an older state would be wrong"
        found.report(context, lambda row: left_out if found.has_key[row] else _NOT_USED)
        unusable = reported_as_refused(found, self.types, context, left_out)
        replay = ShareReplay(unusable, batches_of(found, self.types))
        for event in events(found, PICKED):
            replay.take(event)
        states = replay.states()
        if states:
            yield _as_rows(states, context)


_NOT_USED: Final = "not used: it is unknown which share partition it is about"


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
    told |= _of_batches([state.batches for state in states.values()])
    told |= {"log_partition": context.partition, "coordinator_lag": None}
    return record_batch(TABLE.schema, told, len(states))


def _of_batches(lists: list[list[StateBatch]]) -> dict[str, Any]:
    """The columns about the batches of share partitions."""
    names = {
        DeliveryState.AVAILABLE: "available_count",
        DeliveryState.ACKNOWLEDGED: "acknowledged_count",
        DeliveryState.ARCHIVED: "archived_count",
    }
    first, last, count, state = zip(*chain(*lists), strict=True) if any(lists) else ((), (), (), ())
    known = {each: DeliveryState(each) for each in set(state)}
    of_state = {each: names.get(told, "other_count") for each, told in known.items()}
    counts: dict[str, list[int]] = {name: [0] * len(lists) for name in (*names.values(), "other_count")}
    for row, batches in enumerate(lists):
        for batch in batches:
            column = counts[of_state[batch[3]]]
            # A batch may cover more offsets than exist.
            column[row] = min(column[row] + batch[1] - batch[0] + 1, _MOST)
    kind = TABLE.schema.field("batches").type
    labels = {each: told.label for each, told in known.items()}
    members = (first, last, state, [labels[each] for each in state], count)
    parts = [pa.array(values, field.type) for values, field in zip(members, kind.value_type, strict=True)]
    flat = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
    places = pa.array([0, *accumulate(map(len, lists))], pa.int32())
    return {
        **{name: pa.array(values, pa.int64()) for name, values in counts.items()},
        "batches": pa.ListArray.from_arrays(places, flat, type=kind),
    }
