"""Determines which of the logs that groups consume are available up to their end.

If a log is not available, nothing can be concluded: a group may have read all or none of it, and its offsets may be
beyond the end. A copy of one broker's files has only some partitions of a topic, and a report about an earlier time has
no log ends at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.files.source_error import NOT_READABLE
from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, Place
from kafka_records_tables.report.rule_context import RuleContext, partitions_shown, places_shown
from kafka_records_tables.tables.lag import end_offsets
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.report_parts import ReportFinding

_PLACE: Final = ["topic", "partition"]
_OF_RECORDS: Final = "records_"
"""The prefix of names in `scale` that count records."""


def known_ends(context: RuleContext) -> dict[Place, int]:
    return context.once(_ends_by_place)


def without_end(context: RuleContext, groups: Iterable[str], topics: Iterable[str] = ()) -> list[Place]:
    """The partitions with an unknown end that some groups consume, of the given topics or else of all topics."""
    rows, topics = context.once(_rows_without_end), tuple(topics)
    if not rows.num_rows:
        return []
    rows = kept(rows, equal(rows, "group_id", *groups), *((equal(rows, "topic", *topics),) if topics else ()))
    return sorted(set(zip(rows["topic"].to_pylist(), rows["partition"].to_pylist(), strict=True)))


def partition_count(context: RuleContext, topic: str) -> int | None:
    """The number of partitions of a topic: from the user, the brokers or the metadata log; None if unknown."""
    passed = (context.request.partitions or {}).get(topic)
    return passed if passed is not None else context.once(_topics).get(topic, {}).get("partition_count")


def replication_factor(context: RuleContext, topic: str) -> int | None:
    """The number of replicas of each partition of a topic; None if unknown."""
    return context.once(_topics).get(topic, {}).get("replication_factor")


def _topics(context: RuleContext) -> dict[str, dict[str, Any]]:
    """The rows of `topics` by name, without deleted topics."""
    rows = context.look("topics").to_pylist()
    return {each["topic"]: each for each in rows if not each["deleted_timestamp_ms"]}


def absent_partitions(context: RuleContext, topic: str) -> list[int]:
    """The partitions of a coordinators' topic that have no log in the source, or one that the user may not read. If the
    number of partitions is unknown, missing partitions after the last one in the source are not found. Empty if no log
    ends are known."""
    rows = context.table("log_ends")
    there = set(kept(rows, equal(rows, "topic", topic))["partition"].to_pylist())
    if not there:
        return []
    count = partition_count(context, topic) or max(there) + 1
    return sorted(set(range(count)) - (there - unreadable_partitions(context, topic)))


def unreadable_partitions(context: RuleContext, topic: str) -> set[int]:
    """The partitions of a topic with a folder or a file that the user may not read."""
    return {
        each.partition
        for each in context.reading
        if each.topic == topic and each.partition is not None and each.what == NOT_READABLE
    }


def members_known(context: RuleContext, group: str) -> bool:
    """Whether the source has the log with a group's members, up to its end."""
    if "members" not in context.tables:
        return False
    count = partition_count(context, OFFSETS)
    return count is None or partition_for(group, count) not in incomplete_partitions(context, OFFSETS)


def incomplete_partitions(context: RuleContext, topic: str) -> list[int]:
    """The partitions of a coordinators' topic with a log that is absent or lacks its end."""
    return sorted(
        {*absent_partitions(context, topic), *(each.partition for each in context.ends if each.topic == topic)}
    )


def ends_of_logs(places: Iterable[Place]) -> str:
    """The missing ends of logs, as a noun phrase: `the ends of the logs of "orders" (partitions 0, 1)`."""
    places = list(dict.fromkeys(places))
    what = "the end of the log" if len(places) == 1 else "the ends of the logs"
    return f"{what} of {places_shown(places)}"


def with_known_counts(context: RuleContext, finding: ReportFinding) -> ReportFinding:
    """Add a sentence to a finding that names the logs for which its record counts are incomplete."""
    if not any(number for name, number in finding.scale.items() if name.startswith(_OF_RECORDS)):
        return finding
    topics = [each for each in finding.topics if not each.startswith("__")]
    unknown = without_end(context, finding.group_ids[:MOST_GROUPS], topics)
    if not unknown:
        return finding
    ends = "the end of this log is" if len(unknown) == 1 else "the ends of these logs are"
    return replace(
        finding,
        problem=f"{finding.problem} For {places_shown(unknown)}, the counts of records include only what commits show, "
        f"because {ends} unknown.",
    )


def with_known_present(context: RuleContext, finding: ReportFinding) -> ReportFinding:
    """Remove the statement that a problem continues or is over if the logs of all its groups lack their ends, because
    the files do not show what these groups did later."""
    logs = context.once(_logs_without_end)
    if finding.is_going_on is None or not logs or not finding.group_ids:
        return finding
    count = partition_count(context, OFFSETS)
    of_groups = {None if count is None else partition_for(each, count) for each in finding.group_ids[:MOST_GROUPS]}
    if not of_groups <= logs:
        return finding
    which = f"{OFFSETS} ({partitions_shown(sorted(each for each in of_groups if each is not None))})"
    return replace(
        finding,
        is_going_on=None,
        problem=f"{finding.problem} Whether this goes on, and what was read since, is unknown: {which} lacks its end.",
    )


def _logs_without_end(context: RuleContext) -> set[int | None]:
    """The partitions of `__consumer_offsets` that lack more than a copy of a running broker usually lacks."""
    return {each.partition for each in context.ends if each.topic == OFFSETS and each.is_certain}


def _ends(context: RuleContext) -> pa.Table:
    """Rows of `log_ends` with a known end."""
    rows = context.table("log_ends")
    is_whole = pc.and_(pc.is_valid(end_offsets(rows)), pc.invert(pc.fill_null(rows["is_cut"], False)))
    ends = pa.table({**{name: rows[name] for name in _PLACE}, "end": end_offsets(rows)})
    return ends.filter(is_whole)


def _ends_by_place(context: RuleContext) -> dict[Place, int]:
    columns = context.once(_ends).columns
    return {(topic, number): end for topic, number, end in zip(*(each.to_pylist() for each in columns), strict=True)}


def _rows_without_end(context: RuleContext) -> pa.Table:
    """Groups, with the partitions that they consume and that have no known end."""
    columns = ["group_id", *_PLACE]
    assigned = context.table("assignments")
    assigned = kept(assigned.select(columns), equal(assigned, "group_kind", "classic", "consumer"))
    consumed = pa.concat_tables([context.table("current_offsets").select(columns), assigned])
    there = context.once(_ends).select(_PLACE)
    return consumed.drop_null().join(there, _PLACE, join_type="left anti", use_threads=False)
