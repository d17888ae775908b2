"""The lag of each group, added up over all partitions that it consumes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table, timestamps
from kafka_records_tables.tables.lag import SPARK_CHECKPOINT

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

TABLE: Final = Table(
    name="group_lag",
    topic=EVERY_TOPIC,
    about="how far each group is behind, over all partitions that it consumes",
    helper="view",
    inputs=("lag",),
    join_keys=("group_id",),
    group_inputs=("lag",),
    options=(SPARK_CHECKPOINT,),
    records=(),
    reads=(),
    columns=(
        Column("group_id", "string", "the group"),
        Column("lag", "int64", "sum of the known lags of partitions; null if none is known"),
        Column("max_lag", "int64", "largest known lag of a partition"),
        Column(
            "stable_lag",
            "int64",
            "sum of the lags up to the last stable offsets; null if it is unknown for a partition whose lag is known",
        ),
        Column("lost", "int64", "number of offsets that were deleted before they were consumed"),
        Column("topics", "int64", "number of topics"),
        Column("partitions", "int64", "number of partitions"),
        Column(
            "unknown", "int64", "number of partitions whose lag is null; if there are any, the sums are lower bounds"
        ),
        Column(
            "problems",
            "list<struct<problem: string, partitions: int64>>",
            "the problems, each with the number of its partitions",
        ),
        *timestamps("commit", "when the group last committed an offset that still exists; null if it has none"),
        Column(
            "log_partition",
            "int32",
            "partition of `__consumer_offsets` that holds the group; null for Spark queries",
        ),
    ),
    sort=("group_id", "log_partition"),
    group="group_id",
    module=__name__,
    essential=("group_id", "lag", "partitions", "unknown", "problems"),
    details=("log_partition", "stable_lag", "topics", "commit_timestamp"),
    rules="""\
One row per group with rows in `lag`, which has the rules. A group in two partitions of `__consumer_offsets` has a row
for each.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows described in `TABLE.rules`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.column_types import instants

    key = ["group_id", "log_partition"]
    rows = parts["lag"]
    summed = rows.group_by(key, use_threads=False).aggregate(
        [
            ("lag", "sum"),
            ("lag", "max"),
            ("stable_lag", "sum"),
            ("lost", "sum"),
            ("topic", "count_distinct"),
            ("topic", "count"),
            ("lag", "count"),
            ("stable_lag", "count"),
            ("commit_timestamp_ms", "max"),
        ]
    )
    if not summed.num_rows:
        return
    # Both sums cover the same partitions, so `unknown` applies to both.
    is_stable_known = pc.equal(summed["stable_lag_count"], summed["lag_count"])
    last_commit = summed["commit_timestamp_ms_max"].combine_chunks()
    columns = {
        **{name: summed[name] for name in key},
        **{name: summed[f"{name}_sum"] for name in ("lag", "lost")},
        "stable_lag": pc.if_else(is_stable_known, summed["stable_lag_sum"], pa.scalar(None, pa.int64())),
        "max_lag": summed["lag_max"],
        "topics": summed["topic_count_distinct"],
        "partitions": summed["topic_count"],
        "unknown": pc.subtract(summed["topic_count"], summed["lag_count"]),
        "problems": _problems(rows, summed.select(key)),
        "commit_timestamp": instants(last_commit),
        "commit_timestamp_ms": last_commit,
    }
    yield from pa.table({name: columns[name] for name in TABLE.names}).cast(TABLE.schema).to_batches()


def _problems(rows: Any, groups: Any) -> Any:
    """For each of `groups`, its problems with the number of partitions of each, sorted by problem."""
    import pyarrow as pa
    import pyarrow.compute as pc

    key = groups.column_names
    counted = rows.filter(pc.is_valid(rows["problem"])).group_by([*key, "problem"]).aggregate([("topic", "count")])
    found: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in counted.sort_by("problem").to_pylist():
        told = {"problem": row["problem"], "partitions": row["topic_count"]}
        found.setdefault(tuple(row[name] for name in key), []).append(told)
    lists = [found.get(group, []) for group in zip(*(groups[name].to_pylist() for name in key), strict=True)]
    return pa.array(lists, TABLE.schema.field("problems").type)
