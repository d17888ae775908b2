"""Reads `share_partitions`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_records.enums import DeliveryState
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, nulled
from kafka_records_tables.coordinator.records.since_snapshot import SinceSnapshot
from kafka_records_tables.coordinator.shares.share_batches import StateBatch
from kafka_records_tables.coordinator.shares.share_replay import ShareReplay, reported_as_refused
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.record_reader import RecordReader
from kafka_records_tables.tables.share_partitions import TABLE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_UNKNOWN: Final = -1

_MOST: Final = 2**63 - 1


class Reader(RecordReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "share_group_state", TABLE.records, _NOT_USED)
        self._live = SinceSnapshot(("offset", "key", "value", "file", "position", "base_offset"), self.types[0])

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        control = rows.column("control")
        self._live.add(rows if control.null_count == len(control) else rows.filter(control.is_null()))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        kept, context = self._live.rows(), self.context
        if kept is None:
            return
        found = DecodedRecords(kept, self.schemas)
        left_out = "its share partition has no row: an older state would be wrong"
        found.report(context, lambda row: left_out if found.has_key[row] else _NOT_USED)
        unusable = reported_as_refused(found, self.types, context, left_out)
        replay = ShareReplay(found, self.types, unusable)
        if len(replay):
            yield _as_rows(replay, context)


_NOT_USED: Final = "not used: it is unknown which share partition it is about"


def _as_rows(replay: ShareReplay, context: Context) -> Any:
    told: dict[str, Any] = {name: replay.key(name) for name in ("group_id", "topic_id", "partition")}
    told |= {name: replay.field(name) for name in ("state_epoch", "snapshot_epoch")}
    for name in ("leader_epoch", "start_offset", "delivery_complete_count"):
        told[name] = nulled(replay.field(name), _UNKNOWN)
    for name in ("create_timestamp", "write_timestamp"):
        times = replay.field(name)
        told |= {name: instants(times), f"{name}_ms": times}
    told |= {
        "update_count": pa.array(replay.update_counts),
        "is_partial": pa.array(replay.is_partial),
        "log_offset": pa.array(replay.log_offsets),
        "snapshot_log_offset": replay.snapshot_offsets,
        "log_partition": context.partition,
        "coordinator_lag": None,
    }
    return record_batch(TABLE.schema, told | _of_batches(replay), len(replay))


def _of_batches(replay: ShareReplay) -> dict[str, Any]:
    """The columns about the batches of share partitions."""
    names = {
        DeliveryState.AVAILABLE: "available_count",
        DeliveryState.ACKNOWLEDGED: "acknowledged_count",
        DeliveryState.ARCHIVED: "archived_count",
    }
    places, (first, last, count, state) = replay.batches()
    # A batch may cover more offsets than exist, and more than an int64 can count.
    lengths = (last - first).view(np.uint64)
    lengths = (lengths.astype(object) if (lengths >= _MOST // (len(places) + 1)).any() else last - first) + 1
    told: dict[str, Any] = {}
    for name, which in [
        *((name, state == each) for each, name in names.items()),
        ("other_count", ~np.isin(state, list(names))),
    ]:
        counts = np.zeros(len(replay), lengths.dtype)
        np.add.at(counts, places[which], lengths[which])
        told[name] = pa.array(np.minimum(counts, _MOST), pa.int64())
    states, at = np.unique(state, return_inverse=True)
    labels = pa.array([DeliveryState(each).label for each in states.tolist()], pa.string()).take(pa.array(at))
    kind = TABLE.schema.field("batches").type
    members = dict(zip(StateBatch._fields, map(pa.array, (first, last, count, state)), strict=True))
    members |= {"delivery_state_name": labels}
    parts = [members[field.name].cast(field.type) for field in kind.value_type]
    flat = pa.StructArray.from_arrays(parts, fields=list(kind.value_type))
    ends = np.searchsorted(places, np.arange(len(replay) + 1))
    return {**told, "batches": pa.ListArray.from_arrays(pa.array(ends, pa.int32()), flat, type=kind)}
