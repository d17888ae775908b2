"""The committed offsets, as the group coordinator would answer for them at the end of the log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.commits import COMMITS, commit_columns, committed
from kafka_records_tables.tables.declaration import LOG_PLACE, Table

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.decoded_records import DecodedRecords

TABLE: Final = Table(
    name="current_offsets",
    topic="__consumer_offsets",
    about="the committed offset of every group, topic and partition",
    helper="latest",
    records=COMMITS,
    reads=("offset", "key", "value", "producer_id", "transaction", "control"),
    columns=(*committed(), *LOG_PLACE),
    sort=("group_id", "topic", "partition"),
    needs_transactions=True,
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "offset"),
    details=("topic_id", "leader_epoch", "log_partition", "log_offset"),
    last_of_key=True,
    rules="""\
One row per group, topic and partition with a committed offset.

Of all records for a key, the one with the highest offset in the log decides; types 0 and 1 count together. A tombstone
counts, whoever wrote it. A value counts if it was written outside a transaction or in a committed one. Its place is
then its own offset, not that of the marker (`OffsetMetadataManager.replayEndTransactionMarker`).

If the deciding record cannot be used, the key has no row, because an older offset would be wrong; a finding names the
record. A record cannot be used if its bytes cannot be decoded, if this build does not know its version (a broker stops
loading the partition there), or if it is a value and nobody can tell how its transaction ended.
""",
)


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; `TABLE.rules` says which."""
    import numpy as np
    import pyarrow as pa

    from kafka_records_tables.tables.column_types import record_batch
    from kafka_records_tables.tables.decoded_records import DecodedRecords, numbers_of, of_types, schemas
    from kafka_records_tables.tables.latest import Latest, joined, last_of_same
    from kafka_records_tables.tables.transactions_settled import ABORTED, OPEN, UNKNOWN, settled

    records = schemas(context, "consumer_offsets")
    types = numbers_of(records, COMMITS)
    kept = ("offset", "key", "value", "file", "position", "base_offset")
    decided, unknown = Latest(kept), Latest((*kept, "producer_id"))
    chosen = of_types(batches, types, context, "not used: nobody can tell whose offset it is")
    for outcome, batch in settled(chosen, context, tombstones_at_once=True, last_of_key=True):
        if outcome not in (ABORTED, OPEN):
            (unknown if outcome == UNKNOWN else decided).add(batch)
    last_decided, last_unknown = decided.rows(), unknown.rows()
    parts = [part for part in (last_decided, last_unknown) if part is not None]
    if not parts:
        return
    is_unknown = np.repeat([False, True], [_count(last_decided), _count(last_unknown)])
    names = [name for name in kept if name in parts[0].schema.names]
    found = DecodedRecords(joined([part.select(names) for part in parts]), records)
    group, topic, partition = (found.member(types, "key", name) for name in ("group", "topic", "partition"))
    decides = ~found.has_key | last_of_same(np.where(found.has_key, found.offsets, -1), group, topic, partition)

    def consequence(row: int) -> str:
        if not found.has_key[row]:
            return "not used: nobody can tell whose offset it is"
        return "its row is left out: an older offset would be wrong"

    found.report(context, consequence, decides & ~is_unknown)
    _report_undecided(found, types, np.flatnonzero(decides & is_unknown).tolist(), last_unknown, context)
    usable = decides & found.has_key & ~found.has_error & ~found.is_tombstone & ~is_unknown
    if usable.any():
        columns = commit_columns(found, types, context)
        yield record_batch(TABLE.schema, columns, found.rows.num_rows).filter(pa.array(usable))


def _report_undecided(
    found: DecodedRecords, types: tuple[int, ...], rows: list[int], unknown: Any, context: Context
) -> None:
    """Report `rows` of `found`: nobody can tell how their transactions ended. Its last rows are those of `unknown`."""
    from kafka_records_tables.tables.decoded_records import undecided

    group, topic, partition = (found.member(types, "key", name) for name in ("group", "topic", "partition"))
    first_unknown = found.rows.num_rows - _count(unknown)
    for row in rows:
        what = f"the commit of group {group[row]} for {topic[row]}-{partition[row]}"
        left_out = "its row is left out: this offset or an older one may be the committed one"
        number = int(found.columns.record_type[row])
        context.report(undecided(unknown, row - first_unknown, context, number, what, left_out))


def _count(rows: Any) -> int:
    return 0 if rows is None else int(rows.num_rows)
