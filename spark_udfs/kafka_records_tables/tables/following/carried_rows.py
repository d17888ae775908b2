"""Chooses the raw rows of a log that a table has to keep in order to continue with the rows that follow.

A table is a function of a log from its start. The carried rows suffice for any rows that follow: the table over the
carried and the new rows equals the table over the whole log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import filter_record_types, numbers_of, schemas
from kafka_records_tables.coordinator.records.latest import Latest, joined
from kafka_records_tables.coordinator.transactions import (
    ABORTED,
    COMMITTED,
    NONE,
    OPEN,
    UNKNOWN,
    TransactionResolver,
    UnknownTransactions,
)

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import INT64
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.declaration import Table

_VALUE: Final = "value"
_TOMBSTONE: Final = "tombstone"
_BEFORE: Final = "before"
_NO_PRODUCER: Final = -1

_TOLD_AS: Final = {COMMITTED: NONE, ABORTED: ABORTED, UNKNOWN: UNKNOWN}


def is_by_group(table: Table) -> bool:
    """Whether rows about a group depend only on that group's records and on markers. Topic names may come from records
    of other groups. For tables of facts, only waiting records are carried."""
    reader = table.reader
    return (
        table.helper != "facts" and table.group is not None and not reader.uses_topics and not reader.needs_all_groups
    )


def carried(rows: pa.RecordBatch, table: Table, context: Context) -> pa.RecordBatch:
    """The rows to carry, out of the previously carried rows and the new ones, all in log order.

    For a table of facts, these are the records of open transactions. For a table in which the last record of a key
    decides (`TableReader.last_of_key`), the last value and the last tombstone of each key are carried too. A record
    whose transaction has ended is carried as if it had never been in a transaction, because its marker is not read
    again.
    """
    known = schemas(context, table.folder)
    types = numbers_of(known, table.records)
    chosen = iter([filter_record_types(rows, types, context, "")])
    parts = (
        _waiting(chosen, context)
        if table.helper == "facts"
        else _last(chosen, table, context, _named(rows, table, context))
    )
    found = [part for part in parts if part is not None and part.num_rows]
    if not found:
        return rows.slice(0, 0)
    left = joined(found)
    _, first = np.unique(left.column("offset").to_numpy(), return_index=True)
    return left.take(pa.array(first))


def needed_by_state(rows: Iterator[pa.RecordBatch], context: Context) -> list[pa.RecordBatch] | None:
    """The rows of a coordinators' topic to carry for all tables in which the last record of a key decides, as `carried`
    returns them for each table. Both `rows` and the result are batches in log order. None if the source does not show
    which records are transactional."""
    kept: dict[tuple[str, bool], Latest] = {}
    waiting: list[pa.RecordBatch] = []
    settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=False)

    def add(settled: Iterable[tuple[str, pa.RecordBatch]]) -> None:
        for outcome, batch in settled:
            if outcome == OPEN:
                waiting.append(batch)
                continue
            # A committed record of a transaction is treated as one outside any transaction.
            word = NONE if outcome == COMMITTED else outcome
            is_tombstone = batch.column("value").is_null()
            for which, part in ((True, batch.filter(is_tombstone)), (False, batch.filter(pc.invert(is_tombstone)))):
                kept.setdefault((word, which), Latest(part.schema.names)).add(_ended(part, outcome))

    try:
        for batch in rows:
            add(settling.take(batch))
        add(settling.rest())
    except UnknownTransactions:
        return None
    found = [part for part in (*waiting, *(latest.rows() for latest in kept.values())) if part is not None]
    if not found:
        return []
    left = joined(found)
    return [left.take(pa.array(np.argsort(left.column("offset").to_numpy(), kind="stable")))]


def _named(rows: pa.RecordBatch, table: Table, context: Context) -> INT64:
    """The offsets of earlier records to which rows about later records may refer."""
    named: set[int] = set()
    if table.names_earlier and rows.num_rows:
        named = table.code.named_later(iter([rows]), context)
    return np.array(sorted(named), np.int64)


def _waiting(rows: Iterator[pa.RecordBatch], context: Context) -> Iterator[pa.RecordBatch]:
    settling = TransactionResolver(context, tombstones_at_once=False, last_of_key=False)
    for batch in rows:
        for _ in settling.take(batch):
            pass
    yield from (batch for outcome, batch in settling.rest() if outcome == OPEN)


def _last(
    rows: Iterator[pa.RecordBatch], table: Table, context: Context, named: INT64
) -> Iterator[pa.RecordBatch | None]:
    kept: dict[str, Latest] = {}

    def add(which: str, batch: pa.RecordBatch) -> None:
        kept.setdefault(which, Latest(batch.schema.names)).add(batch)

    settled = list(_settled(rows, table, context))
    waits_from = _first_offset(batch for outcome, batch in settled if outcome == OPEN)
    for outcome, batch in settled:
        if table.names_earlier and waits_from is not None:
            # Use the group's state from when the waiting commit was written, because it may have changed since.
            of_groups = _of_groups(batch, table, context)
            is_before = pa.array(of_groups.column("offset").to_numpy() < waits_from)
            add(_BEFORE, of_groups.filter(is_before))
            yield of_groups.filter(pc.invert(is_before))
        if outcome == OPEN:
            yield batch
        elif outcome == UNKNOWN:
            add(outcome, _ended(batch, UNKNOWN))
        elif outcome == ABORTED:
            # An aborted commit still shows that the group existed, but its offset never counts.
            if not table.reader.last_of_key:
                add(outcome, _ended(batch, outcome))
        else:
            is_tombstone = batch.column("value").is_null()
            add(_TOMBSTONE, batch.filter(is_tombstone))
            values = batch.filter(pc.invert(is_tombstone))
            if table.names_earlier:
                yield _ended(values.filter(pa.array(np.isin(values.column("offset").to_numpy(), named))), COMMITTED)
                # The other records did not take effect, and must not take effect later.
                add(ABORTED, _ended(values, ABORTED))
            else:
                add(_VALUE, _ended(values, outcome))
    yield from (latest.rows() for latest in kept.values())


def _first_offset(batches: Iterable[pa.RecordBatch]) -> int | None:
    """The lowest offset; None if there are no rows."""
    return min((int(batch.column("offset").to_numpy().min()) for batch in batches if batch.num_rows), default=None)


def _of_groups(rows: pa.RecordBatch, table: Table, context: Context) -> pa.RecordBatch:
    """The rows that are not commits."""
    types, _ = prefix_column(rows.column("key"))
    commits = numbers_of(schemas(context, table.folder), COMMITS)
    return rows.filter(pa.array(~np.isin(types, commits)))


def _settled(rows: Iterator[pa.RecordBatch], table: Table, context: Context) -> Iterator[tuple[str, pa.RecordBatch]]:
    """The records by the outcome of their transactions. If rows do not depend on it, all records count as outside of
    transactions."""
    if not table.needs_transactions:
        for batch in rows:
            yield NONE, batch.filter(pc.is_null(batch.column("control")))
        return
    settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=False)
    for batch in rows:
        yield from settling.take(batch)
    yield from settling.rest()


def _ended(batch: pa.RecordBatch, outcome: str) -> pa.RecordBatch:
    """The rows in a form that no later marker changes: outside of transactions, aborted without a producer, or with an
    unknown outcome."""
    if outcome not in _TOLD_AS:
        return batch
    names, count = batch.schema.names, batch.num_rows
    if outcome == ABORTED:
        nobody = pa.repeat(pa.scalar(_NO_PRODUCER, pa.int64()), count)
        batch = batch.set_column(names.index("producer_id"), "producer_id", nobody)
    words = pa.repeat(pa.scalar(_TOLD_AS[outcome]), count)
    return batch.set_column(names.index("transaction"), "transaction", words)
