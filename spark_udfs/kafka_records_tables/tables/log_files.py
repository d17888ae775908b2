"""The files of each log, how far it has been cleaned, what delays its cleaner, and what a coordinator has to load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table
from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

OPEN_TRANSACTION: Final = "open_transaction"
ACTIVE_SEGMENT: Final = "active_segment"
DIRTY_RATIO: Final = "dirty_ratio"
CLEANER: Final = "cleaner"
_HELD_BY: Final = (OPEN_TRANSACTION, ACTIVE_SEGMENT, DIRTY_RATIO, CLEANER)

_COMPACTED: Final = (OFFSETS, TRANSACTIONS)
"""The coordinators' topics that are compacted. In the topic of share groups, the start of the log is deleted
instead."""

_RECORDS: Final = ("loaded_offsets", "loaded_share_state", "loaded_transactions")

TABLE: Final = Table(
    name="log_files",
    topic=EVERY_TOPIC,
    about="files and bytes of each log, what holds its cleaner back, what a coordinator has to load",
    helper="view",
    inputs=(*_RECORDS, "log_sizes"),
    optional_inputs=_RECORDS,
    records=(),
    reads=(),
    columns=(
        Column("topic", "string", "name of the topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("segments", "int64", "number of files with records; null if the source has no files"),
        Column("bytes", "int64", "total bytes of the files with records; null if the source has no files"),
        Column("log_start_offset", "int64", "first offset of the log; null if unknown"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column(
            "records_to_load",
            "int64",
            "number of records and transaction markers that a coordinator reads before it answers; null for users' "
            "topics",
        ),
        Column(
            "superseded",
            "int64",
            "number of records that are replaced by a later one, or belong to aborted transactions",
        ),
        Column(
            "superseded_percent",
            "int32",
            "superseded records as a percentage of all records, rounded down; null if there are none",
        ),
        Column("tombstones", "int64", "number of tombstones that are not superseded"),
        Column(
            "cleaner_offset",
            "int64",
            "offset up to which the log is cleaned (cleaner-offset-checkpoint); null if it never was, or if the "
            "source has no files",
        ),
        Column(
            "cleanable_offset",
            "int64",
            "offset up to which a cleaner may clean now; null for logs that are not compacted, and if the source has "
            "no files",
        ),
        Column(
            "dirty_bytes",
            "int64",
            "bytes from cleaner_offset to cleanable_offset, in whole files; null if cleanable_offset is null",
        ),
        Column(
            "dirty_percent",
            "int32",
            "dirty_bytes as a percentage of all bytes up to cleanable_offset, rounded down; null if "
            "cleanable_offset is null",
        ),
        Column(
            "held_by",
            "string",
            "what holds the cleaner back: open_transaction, active_segment, dirty_ratio or cleaner; null if "
            "cleanable_offset is null",
            _HELD_BY,
        ),
        Column(
            "open_transaction_offset",
            "int64",
            "offset of the first record of the first open transaction; null if there is none",
        ),
        Column("place", "string", "folder of the log, or the broker it was read from"),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    essential=("topic", "partition", "segments", "bytes", "records_to_load", "superseded_percent", "held_by"),
    details=(
        "place",
        "log_start_offset",
        "log_end_offset",
        "tombstones",
        "superseded",
        "dirty_bytes",
        "open_transaction_offset",
    ),
    rules=f"""\
One row per log partition of every topic in the source. Running brokers, snapshots and saved rows have no files:
columns about files and the cleaner are null, and a finding says so.

A coordinator that gets a partition reads its entire log before it answers: `records_to_load` and `bytes` show how
much. A cleaner would remove the `superseded` ones.

A cleaner compacts `{OFFSETS}`, `{TRANSACTIONS}`, and topics with an entry in
`cleaner-offset-checkpoint`, up to `cleanable_offset`, the start of the first open transaction or of the newest file,
whichever is first (`LogCleanerManager.cleanableOffsets`). `{SHARE_STATE}` is not compacted: its coordinator
deletes the beginning. `held_by` is the first that applies:

- `open_transaction`: an open transaction begins in an older file. If it does not end, the log grows without limit.
  `open_transactions` names its owner.
- `active_segment`: everything before the newest file is cleaned, and the newest file never is. This is normal.
- `dirty_ratio`: at most half of the bytes up to `cleanable_offset` are dirty (`min.cleanable.dirty.ratio`, 0.5 by
  default), so a cleaner does not clean the log yet.
- `cleaner`: a cleaner would clean. It may be about to, slow, or dead: after a failure on a partition, a cleaner does
  not try it again before a restart (`uncleanable-partitions-count`). If the offset in `cleaner-offset-checkpoint` does
  not move for days, it is dead.

Settings of topics are ignored, and open transactions are found only in the coordinators' topics.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows described in `TABLE.rules`."""
    import pyarrow as pa

    from kafka_records_engine.findings import UNMADE_CHECKS, Finding

    sizes = parts["log_sizes"]
    if not sizes.num_rows:
        return
    if sizes["segments"].null_count == sizes.num_rows:
        what = "this source has no files of logs"
        consequence = "columns about files and the cleaner are null: read the data directory of a broker for them"
        context.report(Finding("note", UNMADE_CHECKS, what, consequence))
    records = {(row["topic"], row["partition"]): row for name in _RECORDS for row in parts[name].to_pylist()}
    rows = [_row(log, records.get((log["topic"], log["partition"]), {})) for log in sizes.to_pylist()]
    yield from pa.Table.from_pylist(rows, TABLE.schema).to_batches()


def _row(log: Mapping[str, Any], counted: Mapping[str, Any]) -> dict[str, Any]:
    records = counted.get("records")
    return {
        **{name: log[name] for name in log if name in TABLE.names},
        "records_to_load": None if records is None else records + counted["markers"],
        "superseded": counted.get("superseded"),
        "superseded_percent": 100 * counted["superseded"] // records if records else None,
        "tombstones": counted.get("tombstones"),
        "open_transaction_offset": counted.get("open_from"),
        **_cleaning(cleanable(log, counted.get("open_from"))),
    }


class Cleanable(NamedTuple):
    """How far a log has been cleaned, and what a cleaner may clean."""

    start: int
    """The offset up to which it has been cleaned."""
    end: int
    """The offset up to which a cleaner may clean now."""
    files: Sequence[Mapping[str, Any]]
    """The files between these two offsets: `offset`, `bytes`, `timestamp_ms`."""
    clean_bytes: int
    """The size of these files."""
    dirty_bytes: int
    held_by: str
    """See `TABLE.rules`."""

    @property
    def counted_bytes(self) -> int:
        """The number of bytes to which the dirty ratio refers."""
        return self.clean_bytes + self.dirty_bytes


def cleanable(log: Mapping[str, Any], open_from: int | None) -> Cleanable | None:
    """How far a log (`topic`, `sizes`, `cleaner_offset`) has been cleaned and may be cleaned, given the start of its
    first open transaction, `open_from`; None if the log is not compacted or has no files."""
    sizes = log["sizes"]
    is_compacted = log["topic"] in _COMPACTED or log["cleaner_offset"] is not None
    if not is_compacted or not sizes or any(each["offset"] is None for each in sizes):
        return None
    active = sizes[-1]["offset"]
    start = max(log["cleaner_offset"] or 0, sizes[0]["offset"])
    end = max(start, active if open_from is None else min(active, open_from))
    files = [each for each in sizes if start <= each["offset"] < end]
    clean = sum(each["bytes"] for each in sizes if each["offset"] < start)
    dirty = sum(each["bytes"] for each in files)
    if open_from is not None and open_from < active:
        held_by = OPEN_TRANSACTION
    elif not dirty:
        held_by = ACTIVE_SEGMENT
    else:
        held_by = CLEANER if dirty > clean else DIRTY_RATIO
    return Cleanable(start, end, files, clean, dirty, held_by)


def _cleaning(found: Cleanable | None) -> dict[str, Any]:
    """The columns about cleaning."""
    if found is None:
        return {}
    percent = 100 * found.dirty_bytes // found.counted_bytes if found.counted_bytes else None
    return {
        "cleanable_offset": found.end,
        "dirty_bytes": found.dirty_bytes,
        "dirty_percent": percent,
        "held_by": found.held_by,
    }
