"""Every commit of an offset and every tombstone, as they stand in the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.committed.commits import COMMITS, commit_columns, committed, report_undecided
from kafka_records_tables.tables.declaration import LOG_PLACE, Column, Table, timestamps

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

NO_EXPIRY: Final = -1

TABLE: Final = Table(
    name="offset_commits",
    topic="__consumer_offsets",
    about="every commit and every deletion of an offset that the log still holds",
    helper="facts",
    records=COMMITS,
    reads=("offset", "timestamp_ms", "key", "value", "producer_id", "transaction", "control"),
    columns=(
        *committed("; null for a tombstone"),
        *timestamps("expire", "when it expires, where a client before Kafka 2.1 said so (value version 1); else null"),
        Column("is_tombstone", "bool", "whether the record deletes the offset"),
        Column(
            "transaction",
            "string",
            "none, committed, aborted, open (the log ends before its marker) or unknown",
            ("none", "committed", "aborted", "open", "unknown"),
        ),
        Column("producer_id", "int64", "producer of the transaction; null where there is none"),
        *timestamps("log", "timestamp of the record in the log"),
        *LOG_PLACE,
    ),
    sort=("group_id", "topic", "partition", "log_partition", "log_offset"),
    needs_transactions=True,
    group="group_id",
    module=__name__,
    is_history=True,
    essential=("group_id", "topic", "partition", "offset", "is_tombstone"),
    details=(
        "topic_id",
        "leader_epoch",
        "metadata",
        "commit_timestamp",
        "expire_timestamp",
        "producer_id",
        "log_partition",
        "log_offset",
    ),
    rules="""\
One row per record that commits an offset or deletes one (types 0 and 1), aborted and open commits too.

A cleaner removes records that were written over later and, after a while, tombstones. Where it has been, rows are
missing; a finding says from which offset on the rows are complete. A record that cannot be decoded has no row; a
finding names it. A commit is `unknown` if damage or a missing file hides the marker of its transaction; a finding names
it too.
""",
)


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.column_types import instants, record_batch
    from kafka_records_tables.tables.decoded.decoded_records import nulled, numbers_of, of_types, schemas
    from kafka_records_tables.tables.decoded.facts import OUTCOME, facts
    from kafka_records_tables.tables.decoded.transactions_settled import UNKNOWN

    records = schemas(context, "consumer_offsets")
    types = numbers_of(records, COMMITS)
    chosen = of_types(batches, types, context, "left out: nobody can tell whose offset it is")
    for found in facts(chosen, records, context):
        found.report(context, lambda row: "its row is left out")
        rows, outcome = found.rows, found.rows.column(OUTCOME)
        usable = found.has_key & ~found.has_error
        is_unknown = pc.equal(outcome, UNKNOWN).to_numpy(zero_copy_only=False)
        report_undecided(found, types, usable & is_unknown, context, "its row says that nobody knows", what="a commit")
        expires = nulled(found.member(types[1:], "value", "expire_timestamp"), NO_EXPIRY)
        columns = {
            **commit_columns(found, types, context),
            "expire_timestamp": instants(expires),
            "expire_timestamp_ms": expires,
            "is_tombstone": pa.array(found.is_tombstone),
            "transaction": outcome,
            "producer_id": nulled(rows.column("producer_id"), -1),
            "log_timestamp": instants(rows.column("timestamp_ms")),
            "log_timestamp_ms": rows.column("timestamp_ms"),
        }
        if usable.all():
            yield record_batch(TABLE.schema, columns, rows.num_rows)
        elif usable.any():
            yield record_batch(TABLE.schema, columns, rows.num_rows).filter(pa.array(usable))
