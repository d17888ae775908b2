"""How far each group's committed offset is behind the end of the log that it consumes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Option, Table, timestamps
from kafka_records_tables.tables.words.progress_words import BY_COMMITS
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

NO_LOG: Final = "no_log"
NOT_AUTHORIZED: Final = "not_authorized"
TOPIC_RECREATED: Final = "topic_recreated"
END_UNKNOWN: Final = "end_unknown"
NO_COMMIT: Final = "no_commit"
BEYOND_END: Final = "beyond_end"
BELOW_LOG_START: Final = "below_log_start"

SPARK_CHECKPOINT: Final = Option(
    "spark_checkpoint",
    "checkpoints",
    "add rows for Spark Structured Streaming queries, from their checkpoints: DIR, or NAME=DIR",
    instead_of=("current_offsets", "assigned_partitions", "commit_progress"),
)

TIMES: Final = Option(
    "times",
    "flag",
    "ask running brokers for the time of the first unread record of each partition",
)

_WINDOW: Final = Option(
    "window",
    "duration",
    "also read the history of commits: for `commit_rate`, `produce_rate` and `caught_up_in_ms` over this time (10m is "
    "usual), and for times that are otherwise unknown",
    least_ms=1000,
    adds=("progress",),
)

_OF_THE_COMMIT: Final = (
    "group_id",
    "topic",
    "partition",
    "topic_id",
    "offset",
    "commit_timestamp",
    "commit_timestamp_ms",
    "log_partition",
)
_OF_THE_LOG: Final = ("log_start_offset", "log_end_offset", "high_watermark", "last_stable_offset", "is_cut")

_OF_THE_JUDGED: Final = frozenset(("id_of_log", "log_end_offset", "high_watermark", "is_cut", "has_log"))
"""Columns that are needed only to find problems."""

_UNKNOWN_PLACE: Final = -1

_GROUP: Final = ["group_id", "log_partition", "topic"]
_PARTITION: Final = ["topic", "partition"]

TABLE: Final = Table(
    name="lag",
    topic=EVERY_TOPIC,
    about="how far each committed offset is behind the end of its log, and what is wrong with it",
    helper="view",
    inputs=("current_offsets", "assigned_partitions", "log_ends", "progress"),
    join_keys=("topic",),
    group_inputs=("current_offsets", "assigned_partitions"),
    options=(SPARK_CHECKPOINT, TIMES, _WINDOW),
    records=(),
    reads=(),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "name of the topic"),
        Column("partition", "int32", "partition of the topic; null if the topic is hidden"),
        Column(
            "offset",
            "int64",
            "offset of the next record to consume; null if none is committed",
        ),
        Column("log_start_offset", "int64", "first offset of the log; null if unknown"),
        Column("end_offset", "int64", "offset up to which lag is counted; null if unknown"),
        Column(
            "last_stable_offset",
            "int64",
            "start of the first open transaction, or else the high watermark; null if no broker reported it",
        ),
        Column(
            "lag",
            "int64",
            "number of offsets from the committed offset to the end of the log; null if unknown",
        ),
        Column(
            "stable_lag",
            "int64",
            "number of offsets from the committed offset to the last stable offset, at least 0; null if lag or "
            "last_stable_offset is null",
        ),
        Column(
            "lost",
            "int64",
            "number of offsets that were deleted before they were consumed",
        ),
        Column(
            "problem",
            "string",
            "why the offset is not what it seems, such as no_commit or beyond_end; null if all is well",
            (NOT_AUTHORIZED, NO_LOG, TOPIC_RECREATED, END_UNKNOWN, NO_COMMIT, BEYOND_END, BELOW_LOG_START),
        ),
        Column(
            "unread",
            "int64",
            "number of records left to read before the first open transaction; null if lag is null, or if they were "
            "not counted",
        ),
        Column(
            "held_back", "int64", "number of records from the first open transaction onward; null if unread is null"
        ),
        *timestamps("unread", "time of the first unread record; null if there is none or it is unknown"),
        Column(
            "known_by",
            "string",
            "what unread_timestamp is: the time of the record (record), of its batch (batch), or by which another "
            "group had consumed it (commits); null if unread_timestamp is null",
            ("record", "batch", BY_COMMITS),
        ),
        Column(
            "lag_ms",
            "int64",
            "milliseconds from unread_timestamp to the time of the answer; null if unread_timestamp is null",
        ),
        Column(
            "margin_ms",
            "int64",
            "milliseconds until retention (`retention.ms`) may delete the first unread record; null without the "
            "topic's settings, and for topics that are compacted, limited in size or kept forever",
        ),
        Column(
            "commit_rate",
            "float64",
            "offsets per second by which the group advanced, over the window; null without a window, or if unknown",
        ),
        Column(
            "produce_rate",
            "float64",
            "offsets per second that were written to the log, over the window; null without a window, or if unknown",
        ),
        Column(
            "caught_up_in_ms",
            "int64",
            "milliseconds until the group reaches the end at these rates; null if it is there or would never get "
            "there",
        ),
        Column("member_id", "string", "member of the group that has the partition; null if there is none"),
        Column("client_id", "string", "client.id; null if there is none, or if no record has it"),
        Column(
            "client_host",
            "string",
            "address that the member joined from; null if there is none, or if no record has it",
        ),
        Column(
            "has_left",
            "bool",
            "true if no member subscribes to the topic any more, false if a member has the partition; null if "
            "consumers assign themselves partitions; null if neither is known",
        ),
        Column("topic_id", "string", "id of the topic in the commit; null if it has none"),
        *timestamps("commit", "when the offset was committed; null if there is none"),
        Column(
            "log_partition",
            "int32",
            "partition of `__consumer_offsets` that holds the group; null for Spark queries",
        ),
    ),
    sort=("group_id", "topic", "partition", "log_partition"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "offset", "lag", "problem"),
    details=(
        "topic_id",
        "log_partition",
        "last_stable_offset",
        "stable_lag",
        "commit_timestamp",
        "client_host",
        "client_id",
        "member_id",
        "has_left",
        "margin_ms",
        "commit_rate",
        "produce_rate",
        "caught_up_in_ms",
        "known_by",
        "held_back",
        "unread_timestamp",
    ),
    rules="""\
One row per committed offset. A partition that is assigned to a member but has no commit also has a row, if it has
offsets to consume. `share_lag` has share groups.

Lag is what `kafka-consumer-groups --describe` shows: the high watermark (in a directory, the log end) minus the
committed offset. It counts offsets, including transaction markers and the gaps that a cleaner leaves. `stable_lag` is
what a consumer with `read_committed` has left to read.

`problem` says why an offset is not what it seems; it is the first that applies:

- `not_authorized`: brokers do not describe the topic to this client. A finding names the missing right.
- `no_log`: the source has no log of this partition: its topic is deleted, or elsewhere.
- `topic_recreated`: the topic id differs from that of the commit (Kafka 4.1 and later write it).
- `end_unknown`: the source has the log but not its end, or an incomplete batch follows the end (`is_cut` in
  `log_ends`).
- `no_commit`: a member has the partition, but the group has committed no offset for it. After a restart it begins
  where `auto.offset.reset` says.
- `beyond_end`: the offset is above the end of a log that was truncated or recreated. The consumer goes where
  `auto.offset.reset` sends it, so there is no lag.
- `below_log_start`: records that the group has not consumed were deleted: `lost` offsets, which `lag` includes.

`unread` and `held_back` count records that consumers get, and `unread_timestamp` is the time of the first of them
(`message.timestamp.type`). In a directory they have these limits:

- For an offset within a batch `known_by` is `batch`: the record may be as new as the last one of the batch.
- Open transactions that began before the committed offset, and before the last 1 MiB of the log, are not found: what
  they hold back counts as `unread`.
- If more than 64 MiB of the log are left, records are not counted.

Brokers report none of this unless `times` is given. Then one to eight batches are fetched per offset with lag. Records
are not counted, and the time is null if the first record is in an open transaction. A snapshot of the topic (`snapshot
--topic`) has all of this for the last million offsets of each log; other saved rows have none of it.

With `spark_checkpoint` there are also rows for queries of Spark Structured Streaming: one per partition of Kafka's
topics in the last committed batch of a checkpoint, a local directory. The source then need not have
`__consumer_offsets`. `group_id` is the given name, or else the id of the query, and `commit_timestamp` is when Spark
planned the batch. Partitions newer than the batch have no row. If two sources read a partition, the lower offset
counts.

What is produced during the reading counts as lag. In Spark, a DataFrame over a directory in use reads in any order, so
the newest offsets may seem `beyond_end`.

What the logs do not show: offsets that consumers have not committed yet, or keep elsewhere.
""",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[Any]:
    """The rows described in `TABLE.rules`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.lagging.matching import with_columns
    from kafka_records_tables.tables.lagging.owners import of_own_partition, report_absent_logs, with_owners
    from kafka_records_tables.tables.lagging.query_offsets import query_notes, query_offsets

    partitions = context.log.topics.partition_counts.get(OFFSETS)
    report_absent_logs(parts["log_ends"], partitions, context)
    commits = _placed(of_own_partition(parts["current_offsets"].select(_OF_THE_COMMIT), partitions, context))
    assigned = _placed(of_own_partition(parts["assigned_partitions"], partitions, context))
    queries = context.question.options[SPARK_CHECKPOINT.name] or ()
    commits = pa.concat_tables([commits, query_offsets(queries, commits.schema)])
    for note in query_notes(queries):
        context.report(note)
    if not commits.num_rows and not assigned.num_rows:
        return
    ends = parts["log_ends"].select([*_PARTITION, "topic_id", *_OF_THE_LOG])
    ends = ends.rename_columns({"topic_id": "id_of_log"}).append_column("end_offset", end_offsets(ends))
    ends = ends.append_column("has_log", pa.repeat(True, ends.num_rows))
    topics = [commits["topic"], assigned["topic"].filter(pc.invert(assigned["has_left"]))]
    hidden = _hidden_topics(topics, ends, context)

    def finished(rows: Any) -> Iterator[Any]:
        if rows.num_rows:
            rows = with_owners(_judged(rows, hidden), assigned)
            yield from _in_time(rows, parts.get("progress"), context).to_batches()

    yield from finished(with_columns(commits, ends, _PARTITION))
    yield from finished(_without_a_commit(commits, assigned, ends, hidden))


def _in_time(rows: Any, progress: Any | None, context: Context) -> Any:
    """The rows of the table, from those with the lag in offsets."""
    import pyarrow as pa

    from kafka_records_tables.tables.lagging.history_columns import times_by_commits, with_progress
    from kafka_records_tables.tables.lagging.unread_columns import time_columns, unread_columns

    rows = with_progress(rows, progress)
    made = unread_columns(rows, context)
    made |= times_by_commits(rows, made)
    stamps = made["unread_timestamp_ms"]
    timed = rows["topic"].combine_chunks().filter(stamps.is_valid()).unique().to_pylist()
    retentions = {**context.log.topics.retentions, **(context.log.retentions(timed) if timed else {})}
    made |= time_columns(rows, stamps, retentions, int(time.time() * 1000))
    columns = {name: made[name] if name in made else rows[name] for name in TABLE.names}
    return pa.table(columns).cast(TABLE.schema)


def _placed(rows: Any) -> Any:
    """The rows with a number in place of an unknown log partition, because nulls do not join."""
    at = rows.schema.get_field_index("log_partition")
    return rows.set_column(at, rows.schema.field(at), rows["log_partition"].fill_null(_UNKNOWN_PLACE))


def _hidden_topics(parts: Sequence[Any], ends: Any, context: Context) -> Any:
    """Topics that groups consume but that the user may not describe. Reports a finding for each. `parts` are columns
    with the topics that groups consume."""
    import pyarrow as pa
    import pyarrow.compute as pc

    topics = pc.unique(pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string()))
    without_log = topics.filter(pc.invert(pc.is_in(topics, pc.unique(ends["topic"])))).drop_null()
    rights = context.log.missing_rights(sorted(without_log.to_pylist()))
    for right in rights:
        context.report(right.finding("its lag is unknown"))
    return pa.array([right.resource_name for right in rights], pa.string())


def end_offsets(ends: Any) -> Any:
    """For rows of `log_ends`, the offset up to which consumer lag is counted."""
    import pyarrow.compute as pc

    # Only brokers report the last stable offset, and their high watermark is current.
    is_told_by_a_broker = pc.is_valid(ends["last_stable_offset"])
    in_files = pc.coalesce(ends["log_end_offset"], ends["high_watermark"])
    return pc.if_else(is_told_by_a_broker, ends["high_watermark"], in_files)


def _without_a_commit(commits: Any, assigned: Any, ends: Any, hidden: Any) -> Any:
    """The partitions that members have without a commit of their group, if there are offsets to consume or the end is
    unknown."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.tables.lagging.matching import has_match, with_columns

    key = [*_GROUP, "partition"]
    has_none = pc.invert(pc.or_(has_match(assigned, commits, key), assigned["has_left"]))
    missing = assigned.select(key).filter(has_none)
    missing = with_columns(missing, ends, _PARTITION)
    has_offsets = pc.greater(missing["end_offset"], pc.coalesce(missing["log_start_offset"], 0))
    has_log = pc.and_(pc.is_valid(missing["has_log"]), pc.fill_null(has_offsets, True))
    missing = missing.filter(pc.or_(has_log, pc.is_in(missing["topic"], hidden)))
    of_a_commit = [field for field in commits.schema if field.name not in key]
    return pa.table(
        {
            **{name: missing[name] for name in missing.column_names},
            **{field.name: pa.nulls(missing.num_rows, field.type) for field in of_a_commit},
        }
    )


def _judged(rows: Any, hidden: Any) -> Any:
    """The lag in offsets and the problem of each row, from commits and what is known about their logs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offset, start, end = rows["offset"], rows["log_start_offset"], rows["end_offset"]
    zero, none = pa.scalar(0, pa.int64()), pa.scalar(None, pa.int64())
    cases = {
        NOT_AUTHORIZED: pc.and_(pc.is_null(rows["has_log"]), pc.is_in(rows["topic"], hidden)),
        NO_LOG: pc.is_null(rows["has_log"]),
        TOPIC_RECREATED: pc.not_equal(rows["topic_id"], rows["id_of_log"]),
        END_UNKNOWN: pc.or_kleene(pc.is_null(end), pc.and_(rows["is_cut"], pc.greater(offset, end))),
        NO_COMMIT: pc.less(pc.fill_null(offset, -1), 0),
        BEYOND_END: pc.greater(offset, end),
        BELOW_LOG_START: pc.less(offset, start),
    }
    applies = pc.make_struct(*(pc.fill_null(case, False) for case in cases.values()))
    problem = pc.case_when(applies, *map(pa.scalar, cases))
    has_lag = pc.is_in(pc.fill_null(problem, BELOW_LOG_START), pa.array([BELOW_LOG_START]))
    lag = pc.if_else(has_lag, pc.subtract(end, offset), none)
    stable = pc.max_element_wise(pc.subtract(rows["last_stable_offset"], offset), zero, skip_nulls=False)
    lost = pc.max_element_wise(pc.subtract(start, offset), zero, skip_nulls=False)
    made = {
        "lag": lag,
        "stable_lag": pc.if_else(has_lag, stable, none),
        "lost": pc.if_else(has_lag, lost, none),
        "problem": problem,
    }
    return pa.table({**{name: rows[name] for name in rows.column_names if name not in _OF_THE_JUDGED}, **made})
