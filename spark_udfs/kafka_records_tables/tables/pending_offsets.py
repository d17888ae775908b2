"""The commits whose transactions are open at the end of the log: offsets that a group coordinator calls unstable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.committed.commits import COMMITS, commit_columns, committed, report_undecided
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.committed.last_commits import CommitKey
    from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords

TABLE: Final = Table(
    name="pending_offsets",
    topic="__consumer_offsets",
    about="every commit whose transaction is open: what a group waits for",
    helper="latest",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        *committed(),
        Column("producer_id", "int64", "producer of the open transaction"),
        *timestamps("since", "log timestamp of its first commit for this partition; null where the source has none"),
        *LOG_PLACE,
        Column("since_log_offset", "int64", "offset of the first commit of this partition in the transaction"),
    ),
    sort=("group_id", "topic", "partition", "log_offset"),
    needs_transactions=True,
    group="group_id",
    module=__name__,
    tells_open=True,
    essential=("group_id", "topic", "partition", "offset", "producer_id"),
    details=(
        "topic_id",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "log_partition",
        "log_offset",
        "since_log_offset",
    ),
    last_of_key=True,
    forgets=("offsets",),
    rules="""\
One row per group, topic, partition and producer with a commit in a transaction that has no marker up to the end of the
log, and with no tombstone of that partition behind the commit: a tombstone drops what is pending
(`OffsetMetadataManager.replay`, `replayEndTransactionMarker`). Of several commits in one transaction the last one is
the row; `since_timestamp` and `since_log_offset` are those of the first.

Who asks a coordinator for stable offsets gets UNSTABLE_OFFSET_COMMIT for these partitions, and waits (KIP-447). Plain
commits do not change that. When the transaction commits, the row becomes the committed offset unless a commit behind it
is there already. open_transactions says who holds it back.

A commit has no row, and a finding names it, if its value cannot be decoded, or if damage or a missing file may hide the
marker of its transaction.
""",
)


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    import pyarrow.compute as pc

    from kafka_records_tables.tables.committed.last_commits import NOT_USED, last_offsets
    from kafka_records_tables.tables.decoded.decoded_records import DecodedRecords, numbers_of, of_types, schemas
    from kafka_records_tables.tables.decoded.latest import Latest, joined
    from kafka_records_tables.tables.decoded.transactions_settled import NONE, OPEN, UNKNOWN, settled

    records = schemas(context, "consumer_offsets")
    tombstones = Latest(("offset", "key"))
    waiting: dict[str, list[Any]] = {OPEN: [], UNKNOWN: []}
    chosen = of_types(batches, numbers_of(records, COMMITS), context, NOT_USED)
    for outcome, batch in settled(chosen, context, tombstones_at_once=True, last_of_key=False):
        if outcome in waiting:
            waiting[outcome].append(batch)
        elif outcome == NONE:
            tombstones.add(batch.filter(pc.is_null(batch.column("value"))))
    deleted = last_offsets(tombstones, records) if any(waiting.values()) else {}
    for outcome, parts in waiting.items():
        if parts:
            yield from _waiting(DecodedRecords(joined(parts), records), outcome == UNKNOWN, deleted, context)


def _waiting(
    found: DecodedRecords, is_unknown: bool, deleted: Mapping[CommitKey, int], context: Context
) -> Iterator[Any]:
    """The rows out of commits that wait for a marker; where `is_unknown` it may be there, and there are none."""
    import numpy as np
    import pyarrow as pa

    from kafka_records_tables.tables.column_types import instants, record_batch
    from kafka_records_tables.tables.committed.last_commits import NOT_USED, commit_keys
    from kafka_records_tables.tables.decoded.decoded_records import numbers_of, schemas

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
        return "its row is left out: nobody can tell which offset is pending" if found.has_key[row] else NOT_USED

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
