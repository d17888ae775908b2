"""Finds the commits in force at the end of a log, once for all tables of a reading that need them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.offsets.last_commits import (
    NOT_USED,
    CommitKey,
    Deciding,
    LastCommits,
    last_offsets,
)
from kafka_records_tables.coordinator.records.decoded_records import filter_record_types, numbers_of, schemas
from kafka_records_tables.coordinator.records.latest import Latest
from kafka_records_tables.coordinator.transactions import OPEN, UNKNOWN, TransactionResolver
from kafka_records_tables.tables.made_once import MadeOnce

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.transactions import Resolved


class CommitsAtEnd(NamedTuple):
    """The commits in force at the end of a log partition."""

    last: Deciding | None
    """The last commits; None if there were no commits."""
    pending: frozenset[CommitKey]
    """The partitions with a commit in an open transaction and no later tombstone; empty if no table needs them."""


class SettledCommits:
    """Collects commits. Tables that share a reading share the result. Reports commits that should decide but are
    unusable; the table handles keys without a type. With `with_pending`, it finds pending offsets."""

    def __init__(self, context: Context, *, with_pending: bool = False) -> None:
        self._once: MadeOnce[_Maker, CommitsAtEnd] = MadeOnce(SettledCommits, _Maker, context)
        self._once.maker.with_pending |= with_pending

    def take(self, batch: pa.RecordBatch) -> None:
        """Add the raw rows that follow, with `transactions.COLUMNS`."""
        self._once.take(batch)

    def rest(self) -> CommitsAtEnd:
        """The result at the end of the log."""
        (made,) = self._once.rest()
        return made


class _Maker:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._schemas = schemas(context, "consumer_offsets")
        self._types = numbers_of(self._schemas, COMMITS)
        self._commits = LastCommits(self._schemas)
        self._pending, self._tombstones = Latest(("offset", "key")), Latest(("offset", "key"))
        self._settling = TransactionResolver(context, tombstones_at_once=True, last_of_key=True)
        self.with_pending = False

    def take(self, batch: pa.RecordBatch) -> tuple[()]:
        rows = filter_record_types(batch, self._types, self._context.apart(), NOT_USED)
        if rows.num_rows:
            self._add(self._settling.take(rows))
        return ()

    def rest(self) -> tuple[CommitsAtEnd]:
        self._add(self._settling.rest())
        return (CommitsAtEnd(self._commits.deciding(self._context), self._still_open()),)

    def _add(self, settled: Iterator[Resolved]) -> None:
        for outcome, rows in settled:
            self._commits.add(outcome, rows)
            if self.with_pending:
                self._tombstones.add(rows.filter(pc.is_null(rows.column("value"))))
                if outcome in (OPEN, UNKNOWN):
                    self._pending.add(rows)

    def _still_open(self) -> frozenset[CommitKey]:
        waiting = last_offsets(self._pending, self._schemas)
        if not waiting:
            return frozenset()
        deleted = last_offsets(self._tombstones, self._schemas)
        return frozenset(key for key, offset in waiting.items() if offset > deleted.get(key, -1))
