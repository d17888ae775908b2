"""Records of a recreated topic that a group may have skipped because it was away when the topic was created."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.group_facts import LogEnds, asked_ends, log_ends
from kafka_records_tables.report.facts.recreated_topics import deletion_ms, recreation_of
from kafka_records_tables.report.rule_context import RuleContext


@dataclass(frozen=True, slots=True)
class PossibleSkip:
    """Records that a group skipped if its `auto.offset.reset` is latest."""

    group_id: str
    partitions: tuple[int, ...]
    records: int
    """The offsets from the start of the new logs to their ends at the time when the group was assigned them."""
    left: int
    """How many of these the logs still have."""
    assigned_ms: int


def possible_skips(context: RuleContext, topic: str, first: Iterable[Mapping[str, Any]]) -> list[PossibleSkip]:
    """The groups that had no members when a topic was recreated, and whose first commits for the new topic (`first`, in
    the columns of `regressions`) are not below the ends that its logs had when their members were assigned them. Such a
    group began at these ends, or it read everything before its first commit: no record shows which."""
    commits: dict[str, dict[int, Mapping[str, Any]]] = {}
    for row in sorted(first, key=lambda each: each["commit_timestamp_ms"] or 0):
        if row["commit_timestamp_ms"] is not None:
            commits.setdefault(row["group_id"], {}).setdefault(row["partition"], row)
    back_ms = {group: min(each["commit_timestamp_ms"] for each in rows.values()) for group, rows in commits.items()}
    found = recreation_of(context, topic)
    made_ms = deletion_ms(context, topic, back_ms) if found is None else found.created["at_timestamp_ms"]
    events = context.table("timeline")
    skips = []
    for group, rows in commits.items() if made_ms is not None else ():
        own = kept(events, equal(events, "group_id", group), pc.is_valid(events["at_timestamp_ms"])).to_pylist()
        before = [each["member_count"] for each in own if each["at_timestamp_ms"] <= made_ms]
        if before and before[-1] == 0:
            skip = _skip(context, topic, rows, [each for each in own if each["at_timestamp_ms"] > made_ms])
            skips += [skip] if skip is not None else []
    return skips


def _skip(
    context: RuleContext, topic: str, commits: Mapping[int, Mapping[str, Any]], events: list[dict[str, Any]]
) -> PossibleSkip | None:
    group: str = next(iter(commits.values()))["group_id"]
    ends = log_ends(context) if context.is_stored else asked_ends(context, (group,)).get(group, LogEnds(()))
    records, left, times, partitions = 0, 0, [], []
    for partition, commit in commits.items():
        given_ms = _assigned_ms(events, topic, partition, commit["commit_timestamp_ms"])
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
    return PossibleSkip(group, tuple(sorted(partitions)), records, left, min(times)) if records else None


def _assigned_ms(events: list[dict[str, Any]], topic: str, partition: int, until_ms: int) -> int | None:
    """When a member was last assigned a partition before a commit."""
    found = None
    for each in events:
        if each["event"] == "assignment_changed" and each["at_timestamp_ms"] <= until_ms and each["detail"]:
            gained = json.loads(each["detail"]).get("gained", {}).get(topic, ())
            found = each["at_timestamp_ms"] if isinstance(gained, list) and partition in gained else found
    return found
