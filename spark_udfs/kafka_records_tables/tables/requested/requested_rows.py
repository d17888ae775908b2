"""The rows of tables from the answers of coordinators."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.groups.group_model import CLASSIC, SIMPLE
from kafka_records_tables.tables.group_rows.assignment_rows import (
    Consumed,
    assignment_rows,
    consumed_partitions,
    left_topics,
)
from kafka_records_tables.tables.group_rows.member_rows import member_rows
from kafka_records_tables.tables.requested.described_groups import (
    described_group,
    has_unresolved_regex,
    members_of_unknown_type,
    names_told,
)
from kafka_records_tables.tables.requested.what_requests_tell import UNKNOWN

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_engine.sources.live_requests import AskedGroup, CoordinatorAnswers
    from kafka_records_tables.tables.declaration import Table

_Row = Mapping[str, Any]

_ROWS: Final = 65_536
_NO_EPOCH: Final = -1
_NOWHERE: Final = -1


def requested_rows(table: Table, answers: CoordinatorAnswers, context: Context) -> Iterator[pa.RecordBatch]:
    """The rows of a table about the requested groups, as batches of `Table.schema`. `table` is in `UNKNOWN` or `INPUTS`
    and is not a view."""
    groups = context.question.groups
    wanted = None if groups is None or table.group != "group_id" else tuple(groups)
    for rows in _ROWS_OF[table.name](table, answers, wanted, context):
        yield with_unknown(table, rows)


def with_unknown(table: Table, rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows, with null in the columns that requests cannot fill."""
    for name in UNKNOWN.get(table.name, ()):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), pa.nulls(rows.num_rows, rows.schema.field(at).type))
    return rows


def _batches(table: Table, rows: Sequence[_Row]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        columns = [pa.array([row.get(field.name) for row in some], field.type) for field in table.schema]
        yield pa.RecordBatch.from_arrays(columns, schema=table.schema)


_Wanted = Sequence[str] | None


# -- groups ------------------------------------------------------------------------------------------------------------


def _groups(table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context) -> Iterator[pa.RecordBatch]:
    rows = []
    for group_id, asked in answers.groups(wanted, context).items():
        told = asked.described.fields
        is_simple = asked.kind == CLASSIC and not asked.listed.protocol_type
        rows.append(
            {
                "group_id": group_id,
                "group_kind": SIMPLE if is_simple else asked.kind,
                "state": told.get("group_state") or asked.listed.state or None,
                "epoch": told.get("group_epoch"),
                "protocol_type": asked.listed.protocol_type,
                "protocol": told.get("protocol_data") or None,
                "member_count": len(told["members"]) if told else None,
            }
        )
    yield from _batches(table, rows)


def _members(table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context) -> Iterator[pa.RecordBatch]:
    asked = answers.groups(wanted, context)
    for rows in member_rows(_described(asked), _NOWHERE, table.schema):
        yield _with_unknown_types(rows, asked)


def _with_unknown_types(rows: pa.RecordBatch, asked: Mapping[str, AskedGroup]) -> pa.RecordBatch:
    """The members, with a null protocol if it is unknown."""
    unknown = {(group, member) for group, each in asked.items() for member in members_of_unknown_type(each)}
    if not unknown:
        return rows
    places = zip(rows.column("group_id").to_pylist(), rows.column("member_id").to_pylist(), strict=True)
    at = rows.schema.get_field_index("uses_classic_protocol")
    is_unknown = pa.array([place in unknown for place in places], pa.bool_())
    told = pc.if_else(is_unknown, pa.scalar(None, pa.bool_()), rows.column(at))
    return rows.set_column(at, rows.schema.field(at), told)


def _assignments(
    table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context
) -> Iterator[pa.RecordBatch]:
    asked = answers.groups(wanted, context)
    yield from assignment_rows(_described(asked), _names(asked), _NOWHERE, table.schema)


def _assigned_partitions(
    table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context
) -> Iterator[pa.RecordBatch]:
    asked, offsets = answers.groups(wanted, context), answers.offsets(wanted, context)
    groups = _described(asked)
    # Without a description, or with unresolved regular expressions, it is unknown which offsets are no longer needed.
    told = {
        group_id: group
        for group_id, group in groups.items()
        if asked[group_id].described.fields and not has_unresolved_regex(asked[group_id])
    }
    commits = sorted({(group, topic) for group, fetched in offsets.items() for topic, _ in fetched.offsets})
    found: Iterator[Consumed] = chain(consumed_partitions(groups, _names(asked)), left_topics(told, commits))
    yield from _batches(table, [each._asdict() for each in found])


def _described(asked: Mapping[str, AskedGroup]) -> dict[str, Any]:
    return {group_id: described_group(group_id, each) for group_id, each in asked.items()}


def _names(asked: Mapping[str, AskedGroup]) -> dict[str, str]:
    return {topic_id: name for each in asked.values() for topic_id, name in names_told(each).items()}


# -- offsets -----------------------------------------------------------------------------------------------------------


def _current_offsets(
    table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context
) -> Iterator[pa.RecordBatch]:
    rows = [
        {
            "group_id": group,
            "topic": topic,
            "partition": partition,
            "offset": told.offset,
            "leader_epoch": _epoch(told.leader_epoch),
            "metadata": told.metadata,
        }
        for group, fetched in answers.offsets(wanted, context).items()
        for (topic, partition), told in fetched.offsets.items()
    ]
    yield from _batches(table, rows)


def _share_partitions(
    table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context
) -> Iterator[pa.RecordBatch]:
    rows = [
        {
            "group_id": group,
            "topic_id": told.topic_id,
            "partition": told.partition,
            "leader_epoch": _epoch(told.leader_epoch),
            "start_offset": told.start_offset if told.start_offset >= 0 else None,
            "coordinator_lag": told.lag if told.lag >= 0 else None,
        }
        for group, fetched in answers.share_offsets(wanted, context).items()
        for told in fetched.offsets
    ]
    yield from _batches(table, rows)


def _commit_progress(
    table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context
) -> Iterator[pa.RecordBatch]:
    polls = answers.two_polls(wanted, context.question.options["interval"], context)
    rows = []
    for group, fetched in polls.after.items():
        before = polls.before.get(group)
        for place, told in fetched.offsets.items():
            earlier = None if before is None else before.offsets.get(place)
            rows.append(
                {
                    "group_id": group,
                    "topic": place[0],
                    "partition": place[1],
                    "offset": told.offset,
                    "polled_timestamp_ms": polls.after_ms,
                    "polled_before_ms": polls.before_ms,
                    "offset_before": None if earlier is None else earlier.offset,
                    "end_before": polls.ends_before.get(place),
                }
            )
    yield from _batches(table, rows)


def _epoch(told: int) -> int | None:
    return None if told == _NO_EPOCH else told


# -- transactions ------------------------------------------------------------------------------------------------------


def _transactions(
    table: Table, answers: CoordinatorAnswers, wanted: _Wanted, context: Context
) -> Iterator[pa.RecordBatch]:
    rows = [
        {"producer_id": each.producer_id, "producer_epoch": each.producer_epoch, **each.columns()}
        for each in answers.transactions(context)
    ]
    yield from _batches(table, rows)


_ROWS_OF: Final[Mapping[str, Callable[..., Iterator[pa.RecordBatch]]]] = {
    "groups": _groups,
    "members": _members,
    "assignments": _assignments,
    "assigned_partitions": _assigned_partitions,
    "current_offsets": _current_offsets,
    "share_partitions": _share_partitions,
    "commit_progress": _commit_progress,
    "transactions": _transactions,
}
