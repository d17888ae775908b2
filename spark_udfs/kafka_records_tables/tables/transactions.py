"""The transactional ids, as a transaction coordinator knows them at the end of the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import FLAGS
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords

_RECORDS: Final = ("TransactionLog",)
_NO_TIMESTAMP: Final = -1

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""The words of the column `state`, as Kafka's tools spell them (`TransactionState`)."""

TABLE: Final = Table(
    name="transactions",
    topic="__transaction_state",
    about="every transactional id with its producer and the state of its last transaction",
    helper="latest",
    records=_RECORDS,
    reads=("offset", "key", "value", "control"),
    columns=(
        Column("transactional_id", "string", "the transactional id"),
        Column("producer_id", "int64", "producer id it maps to"),
        Column("producer_epoch", "int16", "epoch of that producer; a higher one fences lower ones"),
        Column(
            "state",
            "string",
            "state of the last transaction, as Kafka's tools spell it: Ongoing, CompleteCommit, …",
            STATES,
        ),
        Column("timeout_ms", "int32", "milliseconds after which the coordinator aborts an open transaction"),
        Column(
            "partitions",
            "list<struct<topic: string, partitions: list<int32>>>",
            "partitions written to in the transaction; null in state Empty",
        ),
        *timestamps("start", "when the transaction began; null where there was none yet"),
        *timestamps("last_update", "when this state was recorded"),
        *LOG_PLACE,
    ),
    sort=("transactional_id",),
    needs_transactions=False,
    group="transactional_id",
    module=__name__,
    essential=("transactional_id", "state", "last_update_timestamp"),
    details=("producer_epoch", "timeout_ms", "start_timestamp", "log_partition", "log_offset"),
    last_of_key=True,
    rules="""\
One row per transactional id that has a record and no tombstone behind it
(`TransactionStateManager.loadTransactionMetadata`; KIP-98). A record that cannot be decoded has no row, because an
older state would be wrong; a finding names it.
""",
)


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    import pyarrow as pa

    from kafka_records_tables.tables.column_types import record_batch
    from kafka_records_tables.tables.decoded.last_records import last_records

    last = last_records(
        batches,
        context,
        "transaction_state",
        _RECORDS,
        "transactional_id",
        about="transactional id",
        left_out="its row is left out: an older state would be wrong",
    )
    if last is None:
        return
    found, types, usable = last
    usable = usable & _in_known_state(found, types, usable, context)
    if usable.any():
        columns = _columns(found, types, context)
        yield record_batch(TABLE.schema, columns, found.rows.num_rows).filter(pa.array(usable))


def _in_known_state(found: DecodedRecords, types: tuple[int, ...], usable: FLAGS, context: Context) -> FLAGS:
    """Rows whose state Kafka knows. The `usable` ones among the others are reported."""
    import numpy as np

    from kafka_records.enums import TransactionState
    from kafka_records_engine.findings import UNKNOWN_STATE, Finding
    from kafka_records_tables.tables.decoded.decoded_records import place_of

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
    """The columns of the table, of all rows that were kept."""
    import pyarrow as pa

    from kafka_records.enums import TransactionState
    from kafka_records_tables.tables.column_types import instants
    from kafka_records_tables.tables.decoded.decoded_records import nulled

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
    """The same lists of structs, under the names of the table's own fields."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = lists.offsets
    items = lists.values
    found = (pc.struct_field(items, name) for name in ("topic", "partition_ids"))
    members = [member.cast(field.type) for member, field in zip(found, kind.value_type, strict=True)]
    structs = pa.StructArray.from_arrays(members, fields=list(kind.value_type))
    mask = lists.is_null() if lists.null_count else None
    return pa.ListArray.from_arrays(offsets, structs, type=kind, mask=mask)
