"""Reads `pending_offsets`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns.arrow_arrays import flags
from kafka_records_tables.coordinator.offsets.commits import COMMITS, report_undecided
from kafka_records_tables.coordinator.offsets.last_commits import NOT_USED, commit_keys, last_offsets
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, numbers_of, schemas
from kafka_records_tables.coordinator.records.latest import Latest, joined
from kafka_records_tables.coordinator.transactions import (
    OPEN,
    UNKNOWN,
    Resolved,
    TransactionResolver,
    outside_transactions,
)
from kafka_records_tables.tables.column_types import instants, record_batch
from kafka_records_tables.tables.commit_columns import commit_columns
from kafka_records_tables.tables.pending_offsets import TABLE
from kafka_records_tables.tables.record_reader import RecordReader

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.offsets.last_commits import CommitKey


class Reader(RecordReader):
    last_of_key = True
    tells_open = True

    def __init__(self, context: Context) -> None:
        super().__init__(context, "consumer_offsets", COMMITS, NOT_USED)
        self._tombstones = Latest(("offset", "key"))
        self._waiting: dict[str, list[Any]] = {OPEN: [], UNKNOWN: []}
        self._settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=False)

    def add(self, rows: pa.RecordBatch) -> Iterable[pa.RecordBatch]:
        is_record, is_tombstone = (pc.is_null(rows.column(name)) for name in ("control", "value"))
        self._tombstones.add(rows, flags(pc.and_(is_record, is_tombstone)))
        # Most commits are outside of transactions, and never wait.
        rows = rows.filter(pa.array(~outside_transactions(rows, self.context)))
        self._settled(self._settling.take(rows))
        return ()

    def finish(self) -> Iterator[pa.RecordBatch]:
        self._settled(self._settling.rest())
        deleted = last_offsets(self._tombstones, self.schemas) if any(self._waiting.values()) else {}
        for outcome, parts in self._waiting.items():
            if parts:
                found = DecodedRecords(joined(parts), self.schemas)
                yield from _waiting(found, outcome == UNKNOWN, deleted, self.context)

    def _settled(self, settled: Iterable[Resolved]) -> None:
        for outcome, rows in settled:
            if outcome in self._waiting:
                self._waiting[outcome].append(rows)


def _waiting(
    found: DecodedRecords, is_unknown: bool, deleted: Mapping[CommitKey, int], context: Context
) -> Iterator[Any]:
    """The rows, from commits that wait for a marker. With `is_unknown`, there may be a marker, so there are no rows."""
    types = numbers_of(schemas(context, "consumer_offsets"), COMMITS)
    keys, producers = commit_keys(found, types), found.rows.column("producer_id").to_pylist()
    firsts: dict[tuple[CommitKey, int], int] = {}
    lasts: dict[tuple[CommitKey, int], int] = {}
    for row in np.argsort(found.offsets, kind="stable").tolist():
        if found.has_key[row] and found.offsets[row] > deleted.get(keys[row], -1):
            firsts.setdefault((keys[row], producers[row]), row)
            lasts[keys[row], producers[row]] = row
    decides = ~found.has_key
    decides[list(lasts.values())] = True

    def consequence(row: int) -> str:
        return "its row is left out: it is unknown which offset is pending" if found.has_key[row] else NOT_USED

    found.report(context, consequence, decides)
    if is_unknown:
        chosen = np.zeros(len(keys), np.bool_)
        chosen[list(lasts.values())] = True
        report_undecided(found, types, chosen, context, "its row is left out: it may be pending, committed or aborted")
        return
    usable = [pair for pair, row in lasts.items() if not found.has_error[row]]
    if not usable:
        return
    first = pa.array([firsts[pair] for pair in usable])
    since = found.rows.column("timestamp_ms").take(first)
    chosen = pa.array([lasts[pair] for pair in usable])
    told = {
        name: column.take(chosen) if isinstance(column, pa.Array) else column
        for name, column in commit_columns(found, types, context).items()
    }
    told |= {
        "producer_id": found.rows.column("producer_id").take(chosen),
        "since_timestamp": instants(since),
        "since_timestamp_ms": since,
        "since_log_offset": found.rows.column("offset").take(first),
    }
    yield record_batch(TABLE.schema, told, len(usable))
