"""Sums of what groups did, by group, topic and window of time, in columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.tables.committed.commit_lots import of_offsets
from kafka_records_tables.tables.committed.commit_order import ends, numbers_of_keys
from kafka_records_tables.tables.committed.commits import COMMITS
from kafka_records_tables.tables.committed.repeated_commits import COMMITS as TO_SETTLE
from kafka_records_tables.tables.committed.repeated_commits import RepeatedCommits
from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, numbers_of
from kafka_records_tables.tables.decoded.latest import joined
from kafka_records_tables.tables.decoded.lots import LOT_ROWS
from kafka_records_tables.tables.replay.group_replay import ROLES

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.tables.replay.group_events import GroupEvent

BY: Final = ("group_id", "topic", "window")
"""What sums are by: `window` is the beginning of one in milliseconds since 1970, null without a time; `topic` is null
for what is about a group alone."""

SUMMED: Final = (
    "commits",
    "transactional_commits",
    "repeated_commits",
    "intervals",
    "interval_sum",
    "expirations",
    "deletions",
    "offset_deletions",
    "likely_expirations",
    "likely_deletions",
    "unclear_deletions",
    "completed_rebalances",
    "classic_rebalances",
    "records",
    "key_bytes",
    "value_bytes",
)
GREATEST: Final = ("interval_max",)

_SCHEMA: Final = pa.schema(
    [("group_id", pa.string()), ("topic", pa.string())]
    + [(name, pa.int64()) for name in ("window", *SUMMED, *GREATEST)]
)

_NO_TIMESTAMP: Final = -1

_LOST: Final = "it is counted, and nothing that its value would tell"


class ActivitySums:
    """Adds up; memory follows the sums and the keys of offsets."""

    def __init__(self, schemas: Mapping[int, RecordSchema], context: Context, window_ms: int) -> None:
        self._schemas = schemas
        self._context = context
        self._window_ms = window_ms
        self._types = numbers_of(schemas, COMMITS)
        self._parts: list[pa.Table] = []
        self._count = self._summed = 0
        self._before: pa.RecordBatch | None = None
        self._repeats = RepeatedCommits(context)

    def commits(self, batch: pa.RecordBatch) -> None:
        """Add raw rows behind those before; only commits, tombstones of offsets and control rows count."""
        rows = of_offsets(batch, self._schemas)
        markers = batch.filter(pc.is_valid(batch.column("control")))
        if not rows.num_rows + markers.num_rows:
            return
        found = DecodedRecords(rows, self._schemas)
        found.report(
            self._context, lambda row: _LOST if found.has_key[row] else "not counted: nobody can tell whose it is"
        )
        group, topic, partition = (found.member(self._types, "key", name) for name in ("group", "topic", "partition"))
        keyed = pa.array(found.has_key)
        columns = {"group_id": group, "topic": topic, "partition": partition}
        columns |= {"committed": found.member(self._types, "value", "offset"), "time": rows.column("timestamp_ms")}
        columns["offset"] = rows.column("offset")
        columns |= {name: rows.column(name) for name in ("key", "value", "transaction", "producer_id")}
        columns["is_tombstone"] = pa.array(found.is_tombstone)
        new = pa.RecordBatch.from_pydict(columns).filter(keyed)
        is_commit = ~new.column("is_tombstone").to_numpy(zero_copy_only=False)
        interval = self._since_the_last(new)
        self._repeated(self._repeats.take(_to_settle(new, markers)))
        known = is_commit & (interval >= 0)
        self._add(
            new,
            commits=is_commit,
            transactional_commits=is_commit & _is_transactional(new),
            intervals=known,
            interval_sum=np.where(known, interval, 0),
            interval_max=np.where(known, interval, -1),
            records=np.ones(new.num_rows, np.int64),
            key_bytes=_bytes(new.column("key")),
            value_bytes=_bytes(new.column("value")),
        )

    def records_of_groups(self, rows: pa.RecordBatch, events: Iterable[GroupEvent]) -> None:
        """Add records of groups: `events` are those among `rows`."""
        offsets = rows.column("offset").to_numpy()
        told = [(each.group_id, each.event.offset) for each in events if each.event.record in ROLES]
        if not told:
            return
        chosen = rows.take(pa.array(np.searchsorted(offsets, [offset for _, offset in told])))
        nothing = pa.nulls(len(told), pa.string())
        columns = {"group_id": pa.array([group for group, _ in told], pa.string()), "topic": nothing}
        columns["time"] = chosen.column("timestamp_ms")
        sizes = {"key_bytes": _bytes(chosen.column("key")), "value_bytes": _bytes(chosen.column("value"))}
        self._add(pa.RecordBatch.from_pydict(columns), records=np.ones(len(told), np.int64), **sizes)

    def happened(self, what: str, places: list[tuple[str, str | None, int | None]]) -> None:
        """Add one to `what`, one of SUMMED, for each group, topic and time."""
        if places:
            group, topic, time = zip(*places, strict=True)
            columns = {"group_id": pa.array(group, pa.string()), "topic": pa.array(topic, pa.string())}
            columns["time"] = pa.array(time, pa.int64())
            self._add(pa.RecordBatch.from_pydict(columns), **{what: np.ones(len(places), np.int64)})

    def sums(self) -> pa.Table:
        """All of BY with SUMMED and GREATEST, which are -1 where there is none."""
        self._repeated(self._repeats.rest())
        self._sum_up()
        return self._parts[0] if self._parts else _SCHEMA.empty_table()

    # -- inside --------------------------------------------------------------------------------------------------------

    def _repeated(self, rows: pa.RecordBatch) -> None:
        if rows.num_rows:
            self._add(rows, repeated_commits=np.ones(rows.num_rows, np.int64))

    def _since_the_last(self, new: pa.RecordBatch) -> INT64:
        """For each row the milliseconds since the commit before of its key; -1 where there is none, or no time."""
        kept = new.select(["group_id", "topic", "partition", "time", "is_tombstone"])
        first_new = 0 if self._before is None else self._before.num_rows
        rows = kept if self._before is None else joined([self._before, kept])
        keys = numbers_of_keys(rows)
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        time = rows.column("time").fill_null(_NO_TIMESTAMP).to_numpy()[order]
        holds = ~rows.column("is_tombstone").to_numpy(zero_copy_only=False)[order]
        follows = np.append(False, (keys[1:] == keys[:-1]) & holds[:-1] & holds[1:])
        is_timed = follows & (time >= 0) & np.append(False, time[:-1] >= 0)
        since = np.where(is_timed, np.maximum(np.append(0, np.diff(time)), 0), -1)
        interval = np.full(len(keys), -1, np.int64)
        interval[order] = since
        last = ends(keys) & holds
        self._before = rows.take(pa.array(order[last]))
        return interval[first_new:]

    def _add(self, rows: pa.RecordBatch, **told: Any) -> None:
        time = rows.column("time").fill_null(_NO_TIMESTAMP).to_numpy()
        window = pa.array(time - time % self._window_ms, pa.int64(), mask=time < 0)
        columns: dict[str, Any] = {"group_id": rows.column("group_id"), "topic": rows.column("topic"), "window": window}
        zeros, none = np.zeros(rows.num_rows, np.int64), np.full(rows.num_rows, -1, np.int64)
        for name in SUMMED:
            columns[name] = pa.array(np.asarray(told.get(name, zeros)).astype(np.int64))
        columns["interval_max"] = pa.array(told.get("interval_max", none))
        self._parts.append(_summed(pa.Table.from_pydict(columns, schema=_SCHEMA)))
        self._count += self._parts[-1].num_rows
        if self._count > max(LOT_ROWS, 2 * self._summed):
            self._sum_up()

    def _sum_up(self) -> None:
        if self._parts:
            self._parts = [_summed(pa.concat_tables(self._parts))]
            self._count = self._summed = self._parts[0].num_rows


def _summed(rows: pa.Table) -> pa.Table:
    wanted = [*((name, "sum") for name in SUMMED), *((name, "max") for name in GREATEST)]
    found = rows.group_by(list(BY)).aggregate(wanted)
    names = [*BY, *(f"{name}_{function}" for name, function in wanted)]
    return found.select(names).rename_columns([*BY, *SUMMED, *GREATEST]).cast(_SCHEMA)


def _to_settle(commits: pa.RecordBatch, markers: pa.RecordBatch) -> pa.RecordBatch:
    """Commits and control rows as `RepeatedCommits` takes them, in the order of the log."""
    has_value = pc.if_else(commits.column("is_tombstone"), pa.scalar(None, pa.bool_()), True)
    of_commits = {name: commits.column(name) for name in TO_SETTLE.names if name not in ("value", "control")}
    of_commits |= {"value": has_value, "control": pa.nulls(commits.num_rows, pa.string())}
    lots = [pa.RecordBatch.from_pydict(of_commits, TO_SETTLE)]
    if markers.num_rows:
        told = [
            markers.column(name) if name in ("offset", "producer_id", "transaction", "control") else None
            for name in TO_SETTLE.names
        ]
        nothing = [pa.nulls(markers.num_rows, each.type) for each in TO_SETTLE]
        columns = [each if each is not None else null for each, null in zip(told, nothing, strict=True)]
        lots.append(pa.RecordBatch.from_arrays(columns, schema=TO_SETTLE))
    rows = joined(lots)
    return rows.take(pa.array(np.argsort(rows.column("offset").to_numpy())))


def _bytes(column: pa.Array) -> INT64:
    found: INT64 = pc.binary_length(column).fill_null(0).cast(pa.int64()).to_numpy()
    return found


def _is_transactional(rows: pa.RecordBatch) -> FLAGS:
    """Which rows a transaction wrote, as far as the source tells."""
    said = rows.column("transaction")
    told = pc.fill_null(pc.not_equal(said, "none"), False).to_numpy(zero_copy_only=False)
    by_nobody = rows.column("producer_id").fill_null(0).to_numpy() < 0
    found: FLAGS = told & ~by_nobody
    return found
