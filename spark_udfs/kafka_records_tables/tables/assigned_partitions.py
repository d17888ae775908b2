"""The partitions that members of groups have: an input of the table lag, which looks for those without a commit."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import Column, Table
from kafka_records_tables.tables.replay.records_of_groups import GROUP_RECORDS, PARTS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_ROWS: Final = 65_536

TABLE: Final = Table(
    name="assigned_partitions",
    topic="__consumer_offsets",
    about="the partitions that members of groups have",
    helper="fold",
    records=(*GROUP_RECORDS, *PARTS),
    reads=("offset", "timestamp_ms", "key", "value", "control"),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic of the partition"),
        Column(
            "partition", "int32", "the partition; null where the log names the topic of an assignment by its id only"
        ),
        Column("log_partition", "int32", "partition of the topic that the group is in"),
    ),
    sort=("group_id", "topic", "partition", "log_partition"),
    needs_transactions=False,
    group="group_id",
    module=__name__,
    last_of_key=True,
    uses_topics=True,
    rules="An input of lag.",
)


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows, each partition of a group once; `lag` says what they are for."""
    import pyarrow as pa

    from kafka_records_tables.tables.column_types import record_batch
    from kafka_records_tables.tables.decoded.decoded_records import numbers_of, of_types, schemas
    from kafka_records_tables.tables.replay.assignment_rows import CONSUMED_KEPT, CONSUMED_PICKED, consumed_partitions
    from kafka_records_tables.tables.replay.group_records import NOT_USED, GroupRecords
    from kafka_records_tables.tables.replay.named_topics import names_in_groups

    known = schemas(context, "consumer_offsets")
    records = GroupRecords(known, with_values=PARTS, columns=("timestamp_ms",))
    for batch in of_types(batches, numbers_of(known, TABLE.records), context, NOT_USED):
        records.add(batch)
    replayed = records.replayed(
        context, "what it assigns is not looked for", picked=CONSUMED_PICKED, kept=CONSUMED_KEPT
    )
    groups = replayed.replay.groups
    names = {**context.topic_names, **names_in_groups(groups.values())}
    found = consumed_partitions(groups, names)
    while some := list(islice(found, _ROWS)):
        groups_, topics, partitions = map(pa.array, zip(*some, strict=True))
        columns = {"group_id": groups_, "topic": topics, "partition": partitions, "log_partition": context.partition}
        yield record_batch(TABLE.schema, columns, len(some))
