"""How far each share group is behind the end of the logs that it consumes, by Kafka's own count."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table, timestamps
from kafka_records_tables.tables.lag import TIMES, end_offsets

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_PARTITION: Final = ["topic_id", "partition"]
_USED: Final = [
    *_PARTITION,
    "group_id",
    "start_offset",
    "coordinator_lag",
    "delivery_complete_count",
    "acknowledged_count",
    "archived_count",
    "write_timestamp",
    "write_timestamp_ms",
    "log_partition",
]
"""The columns of share partitions that the table needs."""

TABLE: Final = Table(
    name="share_lag",
    topic=EVERY_TOPIC,
    about="how far each share group is behind the end of each log, as Kafka counts it",
    helper="view",
    inputs=("share_partitions", "log_ends"),
    join_keys=("topic_id",),
    group_inputs=("share_partitions",),
    options=(TIMES,),
    records=(),
    reads=(),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic; null if the source has no log of it"),
        Column("partition", "int32", "partition of the topic"),
        Column("start_offset", "int64", "first offset that is not acknowledged or archived; null until it is decided"),
        Column("log_start_offset", "int64", "first offset of the log; null if unknown"),
        Column("end_offset", "int64", "offset up to which lag is counted; null if unknown"),
        Column("done", "int64", "number of offsets from start_offset on that are acknowledged or archived"),
        Column(
            "lag",
            "int64",
            "number of offsets from start_offset on that are not acknowledged or archived; null if unknown",
        ),
        *timestamps(
            "unread",
            "time of the first unread record; null if there is none or it is unknown",
        ),
        Column(
            "known_by",
            "string",
            "what unread_timestamp is: the time of the record (record) or of its batch (batch); null if "
            "unread_timestamp is null",
            ("record", "batch"),
        ),
        Column(
            "lag_ms",
            "int64",
            "milliseconds from unread_timestamp to the time of the answer; null if unread_timestamp is null",
        ),
        Column("topic_id", "string", "id of the topic, 22 characters; null if the source has none"),
        *timestamps("write", "when the last snapshot was written; null if the log has none"),
        Column("log_partition", "int32", "partition of `__share_group_state` that holds the state"),
    ),
    sort=("group_id", "topic", "partition", "topic_id"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "start_offset", "lag"),
    details=("topic_id", "log_partition", "write_timestamp", "log_start_offset", "known_by", "unread_timestamp"),
    rules="""\
One row per share partition (`share_partitions`). Lag is what `kafka-share-groups --describe` shows since Kafka 4.2
(KIP-1226): the high watermark (in a directory, the log end) minus the start offset, minus the acknowledged and
archived records after the start offset. It includes records that a member has acquired but not acknowledged,
transaction markers, and gaps.

Start offset and lag are null until the group first reads the partition.
""",
)


def lagging(state: Any, ends: Any) -> Any:
    """Share partitions (`share_partitions`) with the columns `topic`, `log_start_offset`, `end_offset`, `done` and
    `lag`, from `log_ends`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.lagging.matching import with_columns

    by_batches = pc.add(state["acknowledged_count"], state["archived_count"])
    state = state.append_column("done", pc.coalesce(state["delivery_complete_count"].cast(pa.int64()), by_batches))
    ends = ends.append_column("end_offset", end_offsets(ends))
    ends = ends.select([*_PARTITION, "topic", "log_start_offset", "end_offset"])
    rows = with_columns(state, ends.filter(pc.is_valid(ends["topic_id"])), _PARTITION)
    lag = pc.subtract(pc.subtract(rows["end_offset"], rows["start_offset"]), rows["done"])
    lag = pc.coalesce(rows["coordinator_lag"], pc.max_element_wise(lag, 0, skip_nulls=False))
    return rows.append_column("lag", lag)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows described in `TABLE.rules`."""
    import pyarrow as pa

    from kafka_records_tables.tables.lagging.unread_columns import time_columns, unread_columns

    state = parts["share_partitions"]
    if not state.num_rows:
        return
    rows = lagging(state.select(_USED), parts["log_ends"])
    unread = unread_columns(rows.append_column("offset", rows["start_offset"]), context)
    made = {name: unread[name] for name in ("unread_timestamp", "unread_timestamp_ms", "known_by")}
    made["lag_ms"] = time_columns(rows, made["unread_timestamp_ms"], {}, int(time.time() * 1000))["lag_ms"]
    yield from pa.table({name: made[name] if name in made else rows[name] for name in TABLE.names}).cast(
        TABLE.schema
    ).to_batches()
