"""Records of a recreated topic that a group may have skipped because they were written before its members got the
partitions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import kept
from kafka_records_tables.report.facts.group_facts import LogEnds, asked_ends, commit_spans, log_ends
from kafka_records_tables.report.facts.recreated_topics import deletion_ms, recreation_of
from kafka_records_tables.report.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class PossibleSkip:
    """Records that a group skipped if its `auto.offset.reset` is latest."""

    group_id: str
    partitions: tuple[int, ...]
    records: int
    """The number of offsets between the start of the new logs and their ends when the group's members were assigned
    them."""
    left: int
    """How many of these records are still in the logs."""
    assigned_ms: int
    was_away: bool
    """Whether the group had no members when the topic was created. If False, its members got the partitions later."""


def possible_skips(context: RuleContext, topic: str, first: Iterable[Mapping[str, Any]]) -> list[PossibleSkip]:
    """The groups that may have skipped records of a recreated topic. They got its partitions after it was created, and
    their first commits for it (`first`, in the columns of `regressions`) are not below the log ends at the time of
    assignment. Such a group either began at these ends or read everything before its first commit. No record shows
    which, unless the group once began below the end of another log."""
    commits: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in sorted(first, key=lambda each: each["commit_timestamp_ms"] or 0):
        if row["commit_timestamp_ms"] is not None:
            commits.setdefault(row["group_id"], {}).setdefault(row["partition"], row)
    back_ms = {group: min(each["commit_timestamp_ms"] for each in rows.values()) for group, rows in commits.items()}
    found = recreation_of(context, topic)
    made_ms = deletion_ms(context, topic, back_ms) if found is None else found.created["at_timestamp_ms"]
    skips = []
    for group, rows in commits.items() if made_ms is not None else ():
        events = context.rows_of_group("timeline", group)
        own = kept(events, pc.is_valid(events["at_timestamp_ms"])).to_pylist()
        before = [each["member_count"] for each in own if each["at_timestamp_ms"] <= made_ms]
        after = [each for each in own if each["at_timestamp_ms"] > made_ms]
        skip = _skip(context, topic, rows, after, bool(before) and before[-1] == 0) if before else None
        if skip is not None and (skip.was_away or not _began_below_ends(context, group, topic, own)):
            skips.append(skip)
    return skips


def _skip(
    context: RuleContext,
    topic: str,
    commits: Mapping[int, Mapping[str, Any]],
    events: list[dict[str, Any]],
    was_away: bool,
) -> PossibleSkip | None:
    group: str = next(iter(commits.values()))["group_id"]
    ends = _ends_for(context, group)
    records, left, times, partitions = 0, 0, [], []
    for partition, commit in commits.items():
        given_ms = assigned_ms(events, topic, partition, commit["commit_timestamp_ms"])
        end = ends.end_at((topic, partition), given_ms)
        if given_ms is None or end is None:
            continue
        if commit["to_offset"] < end:
            # The group began below the end of the log, so its auto.offset.reset is not latest.
            return None
        if end > 0:
            records += end
            left += max(end - (ends.start((topic, partition)) or 0), 0)
            times.append(given_ms)
            partitions.append(partition)
    return PossibleSkip(group, tuple(sorted(partitions)), records, left, min(times), was_away) if records else None


def _ends_for(context: RuleContext, group: str) -> LogEnds:
    return log_ends(context) if context.is_stored else asked_ends(context, (group,)).get(group, LogEnds(()))


def _began_below_ends(context: RuleContext, group: str, topic: str, events: list[dict[str, Any]]) -> bool:
    """Whether a group's first commit for a partition of another topic was below the end that the log had when it was
    assigned. If so, auto.offset.reset is not latest, unless the group was restarted with another value since."""
    ends = _ends_for(context, group)
    for (_, other, partition), spans in commit_spans(context, (group,)).items():
        first = spans[0]
        if other != topic and first.from_ms is not None:
            end = ends.end_at((other, partition), assigned_ms(events, other, partition, first.from_ms))
            if end is not None and first.offset < end:
                return True
    return False


def assigned_ms(events: list[dict[str, Any]], topic: str, partition: int, until_ms: int) -> int | None:
    """When a partition was last assigned to a member before a commit."""
    found = None
    for each in events:
        if each["event"] == "assignment_changed" and each["at_timestamp_ms"] <= until_ms and each["detail"]:
            gained = json.loads(each["detail"]).get("gained", {}).get(topic, ())
            found = each["at_timestamp_ms"] if isinstance(gained, list) and partition in gained else found
    return found
