"""Adds the owner of a partition: the member that has it now, or none if the group has left the topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import ABSENT_LOG, UNREAD_LOG, Finding
from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_tables.tables.lagging.matching import with_columns
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_STRAYS: Final = "groups have records in partitions that their coordinators do not read"
_LEFT_OUT: Final = "these do not count: the table checks has them as wrong_partition"
_NO_ROWS: Final = "groups in these partitions have no rows"
_MOST_NUMBERS: Final = 10
_TOPIC: Final = ["group_id", "log_partition", "topic"]
_PARTITION: Final = [*_TOPIC, "partition"]
_OWNER: Final = ["member_id", "client_id", "client_host"]


def with_owners(rows: pa.Table, assigned: pa.Table) -> pa.Table:
    """The rows of lag with `member_id`, `client_id`, `client_host` and `has_left`. `assigned` are the partitions that
    members have, and the topics that groups have left, without a partition."""
    left = assigned.select([*_TOPIC, "has_left"]).filter(assigned["has_left"])
    if left.num_rows < assigned.num_rows:
        rows = with_columns(rows, assigned.select([*_PARTITION, *_OWNER]), _PARTITION)
    else:
        for name in _OWNER:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, pa.string()))
    if left.num_rows:
        rows = with_columns(rows, left, _TOPIC)
    else:
        rows = rows.append_column("has_left", pa.nulls(rows.num_rows, pa.bool_()))
    no = pa.scalar(False, pa.bool_())
    has_left = pc.if_else(pc.is_valid(rows["member_id"]), no, rows["has_left"])
    return rows.set_column(rows.schema.get_field_index("has_left"), "has_left", has_left)


def report_absent_logs(ends: pa.Table, partitions: int | None, context: Context) -> None:
    """Report which partitions of `__consumer_offsets` have no log in the source, given its rows of `log_ends`, unless
    no requested group is in one of them. Reports nothing if the partition count is unknown, or if the source has no log
    of the topic at all, as with answers of coordinators."""
    there = ends.filter(pc.equal(ends["topic"], OFFSETS))["partition"].to_pylist()
    if not partitions or not there:
        return
    absent = sorted(set(range(partitions)).difference(there))
    groups = context.question.groups
    if groups is not None and not any(partition_for(group, partitions) in absent for group in groups):
        return
    if absent:
        numbers = ", ".join(map(str, absent[:_MOST_NUMBERS])) + (" and more" if len(absent) > _MOST_NUMBERS else "")
        one, has = ("partition", "has") if len(absent) == 1 else ("partitions", "have")
        what = f"{one} {numbers} of {partitions} {has} no log in the source"
        context.report(Finding("damage", ABSENT_LOG, what, _NO_ROWS, OFFSETS))


def of_own_partition(rows: pa.Table, partitions: int | None, context: Context) -> pa.Table:
    """The rows, except those of groups in a log partition that their coordinator does not read. The partition is
    determined by the hash of the group id (`GroupCoordinatorService.partitionFor`). If rows are left out, a note says
    so. All rows are returned if the partition count is unknown, or if coordinators were asked directly."""
    if not partitions or rows["log_partition"].null_count == rows.num_rows:
        return rows
    groups = rows["group_id"].combine_chunks().dictionary_encode()
    groups = groups.combine_chunks() if isinstance(groups, pa.ChunkedArray) else groups
    own = pa.array([partition_for(group, partitions) for group in groups.dictionary.to_pylist()], pa.int32())
    found = rows.filter(pc.equal(rows["log_partition"], own.take(groups.indices)))
    if found.num_rows < rows.num_rows:
        context.report(Finding("note", UNREAD_LOG, _STRAYS, _LEFT_OUT, OFFSETS))
    return found
