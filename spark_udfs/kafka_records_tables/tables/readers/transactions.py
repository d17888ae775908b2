"""Reads `transactions`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records.enums import TransactionState
from kafka_records_engine.findings import UNKNOWN_STATE, Finding
from kafka_records_tables.coordinator.records.decoded_records import nulled, place_of
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.last_records import LastOfKeyReader, LastRecords
from kafka_records_tables.tables.transactions import _RECORDS, TABLE

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import FLAGS
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords


_NO_TIMESTAMP: Final = -1


class Reader(LastOfKeyReader):
    def __init__(self, context: Context) -> None:
        super().__init__(
            context,
            "transaction_state",
            _RECORDS,
            "transactional_id",
            about="transactional id",
            left_out="its row is left out: an older state would be wrong",
        )

    def rows_of(self, last: LastRecords) -> Iterator[pa.RecordBatch]:
        found, types, usable = last
        usable = usable & _in_known_state(found, types, usable, self.context)
        if usable.any():
            columns = _columns(found, types, self.context)
            yield record_batch(TABLE.schema, columns, found.rows.num_rows).filter(pa.array(usable))


def _in_known_state(found: DecodedRecords, types: tuple[int, ...], usable: FLAGS, context: Context) -> FLAGS:
    """Flags rows with a state that Kafka knows. Reports the others that are `usable`."""
    is_known = np.ones(len(usable), np.bool_)
    name = found.member(types, "key", "transactional_id")
    states = found.member(types, "value", "transaction_status").to_pylist()
    for row in np.flatnonzero(usable).tolist():
        if not TransactionState(states[row]).is_known:
            what = f"the transactional id {name[row]} is in state {states[row]}, which Kafka does not know"
            left_out = "its row is left out: a coordinator stops loading here"
            place = place_of(found.rows, row, context)
            context.report(Finding("damage", UNKNOWN_STATE, what, left_out, record_type=types[0], **place))
            is_known[row] = False
    return is_known


def _columns(found: DecodedRecords, types: tuple[int, ...], context: Context) -> dict[str, Any]:
    """The columns of the table for all rows that were kept."""
    states = found.member(types, "value", "transaction_status").to_pylist()
    partitions = found.member(types, "value", "transaction_partitions")
    started = nulled(found.member(types, "value", "transaction_start_timestamp_ms"), _NO_TIMESTAMP)
    updated = found.member(types, "value", "transaction_last_update_timestamp_ms")
    return {
        "transactional_id": found.member(types, "key", "transactional_id"),
        "producer_id": found.member(types, "value", "producer_id"),
        "producer_epoch": found.member(types, "value", "producer_epoch"),
        "state": pa.array([None if state is None else TransactionState(state).label for state in states], pa.string()),
        "timeout_ms": found.member(types, "value", "transaction_timeout_ms"),
        "partitions": _renamed(partitions, TABLE.schema.field("partitions").type),
        "start_timestamp": instants(started),
        "start_timestamp_ms": started,
        "last_update_timestamp": instants(updated),
        "last_update_timestamp_ms": updated,
        "log_partition": context.partition,
        "log_offset": found.rows.column("offset"),
    }


def _renamed(lists: Any, kind: Any) -> Any:
    """The same lists of structs, with the names of the table's own fields."""
    offsets = lists.offsets
    items = lists.values
    found = (pc.struct_field(items, name) for name in ("topic", "partition_ids"))
    members = [member.cast(field.type) for member, field in zip(found, kind.value_type, strict=True)]
    structs = pa.StructArray.from_arrays(members, fields=list(kind.value_type))
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, structs, type=kind, mask=mask)
