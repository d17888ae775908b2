"""Determines whether a topic's retention deleted records while a group had no members. The present start of the log
cannot show this, because more records have been deleted since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, commit_spans
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule_context import moment
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.commit_jumps import Jump, Steps
    from kafka_records_tables.report.rule_context import RuleContext

_MARGIN: Final = 1.25
"""How much faster than the average a topic may be written to."""


def emptied_events(context: RuleContext, group: str) -> list[dict[str, Any]]:
    """The events in which groups lost their last member, if their time is known."""
    events = context.rows_of_group("timeline", group)
    events = kept(events, equal(events, "event", "emptied"))
    return [each for each in events.to_pylist() if each["at_timestamp_ms"] is not None]


def away_before(emptied: Iterable[Mapping[str, Any]], jumps: Iterable[Jump]) -> Evidence | None:
    """The event in which the group lost its last member, if that happened before each jump and after the group had
    committed the offset from which it jumped."""
    found = None
    for each in jumps:
        since, until = each.before_ms, each.after.from_ms
        if since is None or until is None:
            return None
        found = next((event for event in emptied if since <= event["at_timestamp_ms"] <= until), None)
        if found is None:
            return None
    if found is None:
        return None
    at = found["at_timestamp_ms"]
    shows = f"the group had no members from {moment(at)} on, until it came back and jumped"
    return Evidence(shows, OFFSETS, found["log_partition"], found["log_offset"], at)


def kept_ms(log: Mapping[str, Any], retention_ms: int, at_ms: int) -> int | None:
    """The longest time for which retention keeps a record in a log (a row of `log_sizes`), judged by the log's files at
    a given time; None if there are too few.

    A file is deleted at the first retention check after its newest record has become too old
    (`UnifiedLog.deleteRetentionMsBreachedSegments`)."""
    times = [each["timestamp_ms"] for each in log["sizes"] or () if each["timestamp_ms"] is not None]
    if len(times) < 2:
        return None
    longest = max(later - earlier for earlier, later in pairwise(times))
    return int(max(retention_ms, at_ms - times[0]) + 2 * longest)


def over_deleted(
    context: RuleContext,
    jumps: Sequence[Jump],
    steps: Mapping[int, Steps],
    logs: Mapping[int, Mapping[str, Any]],
    retention_ms: int,
) -> list[Jump]:
    """The jumps that a group made in one topic when it came back, over records that retention had deleted by then.

    The proof is another group, which had committed a later offset before records of that age were deleted, or the
    group's own pace, if the distance is longer than what is written while records are kept."""
    later = commits_of_topic(context, jumps[0].topic) if jumps else {}
    found = []
    for jump in jumps:
        log, back_ms = logs.get(jump.partition), jump.after.from_ms
        keeps = None if log is None else kept_ms(log, retention_ms, context.at_ms)
        if keeps is None or back_ms is None or jump.before_ms is None:
            continue
        oldest_ms = back_ms - keeps
        others = (offset for at_ms, offset in later.get(jump.partition, ()) if at_ms <= oldest_ms)
        pace = _pace(jump, steps[jump.partition])
        is_far = pace is not None and jump.after.offset - jump.before > _MARGIN * pace * keeps
        if jump.before_ms < oldest_ms and (is_far or max(others, default=0) > jump.before):
            found.append(jump)
    return found


def _pace(jump: Jump, steps: Steps) -> float | None:
    """The number of offsets per millisecond, from the commits before a jump."""
    earlier = [before for before, after in steps if after.offset <= jump.before]
    first = next((each for each in earlier if each.from_ms is not None), None)
    if first is None or first.from_ms is None or jump.before_ms is None or jump.before_ms <= first.from_ms:
        return None
    return (jump.before - first.offset) / (jump.before_ms - first.from_ms)


def commits_of_topic(context: RuleContext, topic: str) -> dict[int, list[tuple[int, int]]]:
    """By partition, the times and offsets of the commits of all groups."""
    rows = context.table("current_offsets")
    groups = kept(rows, equal(rows, "topic", topic))["group_id"].unique().to_pylist()[:MOST_GROUPS]
    found: dict[int, list[tuple[int, int]]] = {}
    for (_, of_topic, partition), spans in commit_spans(context, tuple(groups)).items():
        if of_topic == topic:
            known = [(each.from_ms, each.offset) for each in spans if each.from_ms is not None]
            found.setdefault(partition, []).extend(known)
    return found
