"""Members of one group whose client ids look like those of two applications that consume the same topics."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.command_lines import instant, option
from kafka_records_tables.report.facts.client_names import by_application, together
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    MemberLife,
    commit_spans,
    first_joined,
    member_lives,
)
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, command_of, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, listed, moment, of_group, shown
from kafka_records_tables.topics import OFFSETS

KIND: Final = "unlike_members"
_MOST_APPLICATIONS: Final = 3
"""The maximum number of applications in a group. If there are more kinds of client ids, they are names of hosts or
people."""


@dataclass(frozen=True, slots=True)
class Sharing:
    """Two applications that consume the same topics in one group."""

    group_id: str
    first: list[MemberLife]
    second: list[MemberLife]
    """The members of the application that joined later."""
    topics: tuple[str, ...]
    since_ms: int
    until_ms: int
    together_ms: int
    software: Evidence | None
    """A difference between what members of the two applications offer to the coordinator, if any."""
    came: Evidence | None
    """Evidence that the second application joined while all members of the first one stayed; None if this did not
    happen."""

    @property
    def is_plain(self) -> bool:
        """Whether records show two programs, not just two client ids."""
        return self.software is not None or (self.came is not None and _has_several(self))


def _suspects(context: RuleContext) -> list[str]:
    """Groups with members whose client ids begin differently."""
    rows = context.table("timeline")
    joins = kept(rows, equal(rows, "event", "member_joined"))
    begins = pc.extract_regex(joins["detail"], r'"client_id": "(?P<begin>[^"]{4})')
    joins = joins.select(["group_id"]).append_column("begin", pc.utf8_lower(pc.struct_field(begins, 0)))
    counts = grouped(joins, ["group_id"], [("begin", "count_distinct")])
    found: list[str] = counts.filter(pc.greater_equal(counts["begin_count_distinct"], 2))["group_id"].to_pylist()
    return sorted(found)[:MOST_GROUPS]


def _find(context: RuleContext) -> list[Incident]:
    found = [_sharing(context, group, lives) for group, lives in member_lives(context, _suspects(context)).items()]
    return [_incident(context, each) for each in found if each is not None]


def _sharing(context: RuleContext, group: str, lives: list[MemberLife]) -> Sharing | None:
    apps = [each for each in by_application(lives) if any(life.places for life in each)]
    if not 2 <= len(apps) <= _MOST_APPLICATIONS:
        return None
    # Choose the two applications that have been in the group together the longest.
    pairs = [(one, other) for at, one in enumerate(apps) for other in apps[at + 1 :]]
    first, second = max(pairs, key=lambda each: _lasts(together(each[0], each[1], context.at_ms)))
    topics = set().union(*(each.topics for each in first)) & set().union(*(each.topics for each in second))
    spans = together(first, second, context.at_ms)
    if not topics or not spans:
        return None
    since, until, lasts = spans[0][0], spans[-1][1], _lasts(spans)
    begins = min(each.joined_ms or since for each in lives)
    alone = since - begins
    joins = [each.joined_ms for each in second if each.joined_ms is not None and each.joined_ms - since < lasts]
    rollout = max(joins, default=since) - since
    share = context.limit(f"{KIND}.share")
    is_long = lasts >= context.limit(f"{KIND}.together") or (
        # The log covers only a few minutes, and the group has been in this state for much of that time, so this is not
        # a rollout.
        alone > 0
        and lasts >= share * (context.at_ms - begins)
        and lasts >= _TIMES * max(rollout, _started_within(first, since))
    )
    if not is_long:
        return None
    came = None
    if alone > 0 and all(each.left_at is None or (each.left_ms or until) >= until for each in _there(first, since)):
        joined = first_joined(second)
        shows = f"{joined.name} joins; each of {listed(_names(first))} that was there then stays"
        came = Evidence(shows, OFFSETS, joined.log_partition, joined.joined_at, since)
    software = _software(context, group, first, second)
    return Sharing(group, first, second, tuple(sorted(topics)), since, until, lasts, software, came)


_TIMES: Final = 10
"""A rollout counts as over after this many times the period in which members joined."""


def _lasts(spans: list[tuple[int, int]]) -> int:
    return sum(end - start for start, end in spans)


def _there(lives: list[MemberLife], at_ms: int) -> list[MemberLife]:
    return [each for each in lives if each.was_there(at_ms)]


def _started_within(first: list[MemberLife], until_ms: int) -> int:
    """The period in which the first members of the group joined."""
    times = sorted(each.joined_ms for each in first if each.joined_ms is not None and each.joined_ms < until_ms)
    names = len({each.name for each in first})
    return times[min(names, len(times)) - 1] - times[0] if times else 0


def _names(lives: Sequence[MemberLife]) -> list[str]:
    return sorted({each.name for each in lives})


def _has_several(sharing: Sharing) -> bool:
    """Whether each application has several client ids of one kind, so that the kinds are not just host names."""
    return all(len(_names(each)) > 1 for each in (sharing.first, sharing.second))


def _software(
    context: RuleContext, group: str, first: Sequence[MemberLife], second: Sequence[MemberLife]
) -> Evidence | None:
    """How present members differ in what their client libraries write, if all members of both applications do."""
    rows = context.rows_of_group("members", group).to_pylist()
    offers: list[dict[str, dict[str, Any]]] = [{}, {}]
    for row in rows:
        for at, lives in enumerate((first, second)):
            if any(each.member_id == row["member_id"] for each in lives):
                offers[at][_offer(row)] = row
    if not offers[0] or not offers[1] or offers[0].keys() & offers[1].keys():
        return None
    words = " and ".join(next(iter(each)) for each in offers)
    row = next(iter(offers[1].values()))
    return Evidence(f"their clients write {words}", OFFSETS, row["log_partition"], row["log_offset"])


def _offer(row: dict[str, Any]) -> str:
    """The assignors and the form of the subscription that a client library writes. For members with the consumer
    protocol: whether the client uses the classic one."""
    if row["protocols"]:
        parts = []
        for each in row["protocols"]:
            # Libraries use different subscription versions, and write absent user data as null or as empty bytes.
            opened = json.loads(each["opened"]) if each["opened"] else {}
            data = "null" if isinstance(opened, dict) and opened.get("userData", "") is None else "not null"
            parts.append(f"{each['name']} with version {each['version']}, user data {data}")
        return "; ".join(parts)
    return "classic subscriptions" if row["uses_classic_protocol"] else f"assignor {row['server_assignor'] or 'unset'}"


def _consumed(context: RuleContext, sharing: Sharing) -> tuple[int, int, dict[str, list[int]]]:
    """How many offsets the first and the second application committed while both were present, and the partitions that
    the second one had."""
    owners: dict[tuple[str, int], list[tuple[int, int]]] = {}
    sides = {each.member_id: side for side, lives in enumerate((sharing.first, sharing.second)) for each in lives}
    rows = context.rows_of_group("timeline", sharing.group_id)
    rows = kept(rows, equal(rows, "event", "assignment_changed"))
    for row in rows.to_pylist():
        gained = json.loads(row["detail"]).get("gained", {}) if row["detail"] and row["member_id"] in sides else {}
        for topic, partitions in gained.items():
            for each in partitions if isinstance(partitions, list) else ():
                owners.setdefault((topic, each), []).append((row["at_timestamp_ms"] or 0, sides[row["member_id"]]))
    counts, taken = [0, 0], dict[str, list[int]]()
    for (_, topic, partition), spans in commit_spans(context, (sharing.group_id,)).items():
        if topic not in sharing.topics:
            continue
        before = None
        for span in spans:
            at_ms = span.from_ms or 0
            side = next((side for since, side in reversed(owners.get((topic, partition), [])) if since <= at_ms), None)
            if before is not None and side is not None and sharing.since_ms <= at_ms <= sharing.until_ms:
                counts[side] += max(span.offset - before, 0)
                if side and partition not in taken.setdefault(topic, []):
                    taken[topic].append(partition)
            before = span.offset
    return counts[0], counts[1], taken


def _incident(context: RuleContext, sharing: Sharing) -> Incident:
    group, first, second = sharing.group_id, _names(sharing.first), _names(sharing.second)
    by_first, by_second, taken = _consumed(context, sharing)
    goes_on = sharing.until_ms >= context.at_ms
    level = Level.MODERATE if sharing.is_plain and goes_on else Level.NOTE
    hosts = [{each.host for each in lives if each.host} for lives in (sharing.first, sharing.second)]
    apart = (Evidence("they run on different hosts"),) if all(hosts) and not hosts[0] & hosts[1] else ()
    ended = "" if goes_on else f", until {moment(sharing.until_ms)}"
    verdicts = {
        "two_applications": Verdict(
            f"{listed(first)} and {listed(second)} are two applications that were configured with one group.id: each"
            f" gets only a part of the records of {listed(sharing.topics)}.",
            evidence_for=(
                *((sharing.came,) if sharing.came else ()),
                *((sharing.software,) if sharing.software else ()),
                *apart,
                Evidence("their client ids have no word in common"),
            ),
            steps=_repairs(context, sharing, taken),
        ),
        "one_application": Verdict(
            f"{listed(first)} and {listed(second)} are processes of one application with different client ids: then "
            "nothing is wrong.",
            evidence_against=(sharing.software,) if sharing.software else (),
        ),
    }
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title=RULE.title,
        problem=(
            f"{listed(second)} joined {shown(group)}, the group of {listed(first)}, and the partitions of "
            f"{listed(sharing.topics)} have been shared between them for {length(sharing.together_ms)}{ended}. "
            f"Since then {listed(first)} consumed {counted(by_first, 'record')}, and {listed(second)} "
            f"{counted(by_second, 'other one')}."
        ),
        impact=(
            f"If they are two applications, neither gets all records: {listed(first)} missed {by_second}, and "
            f"{listed(second)} {by_first}. No lag shows this."
        ),
        group_ids=(group,),
        topics=sharing.topics,
        partitions=tuple(sorted(taken.get(sharing.topics[0], ()))) if len(sharing.topics) == 1 else (),
        who=tuple(Actor("joined later", group, None, name, next(iter(hosts[1]), None)) for name in second[:4])
        + tuple(Actor("was there before", group, None, name, next(iter(hosts[0]), None)) for name in first[:4]),
        since_timestamp_ms=sharing.since_ms,
        is_going_on=goes_on,
        scale={"records_possibly_missed": by_first + by_second, "applications": 2},
        evidence=tuple(each for each in (sharing.came, sharing.software) if each is not None),
        evidence_count=sum(each is not None for each in (sharing.came, sharing.software)),
        rows=(Rows("timeline", of_group(group)), Rows("members", of_group(group))),
        next=(
            context.see("List who joined when, and what each is assigned", Rows("timeline", of_group(group))),
            context.see("List the members with their client ids", Rows("members", of_group(group))),
        ),
        measured={"together_ms": sharing.together_ms, "by_first": by_first, "by_second": by_second},
        thresholds=context.limits_of(f"{KIND}.together", f"{KIND}.share"),
    )
    return Incident(finding, sharing.together_ms, verdicts, context.describe_members(group).command)


def _repairs(context: RuleContext, sharing: Sharing, taken: dict[str, list[int]]) -> tuple[NextStep, ...]:
    second, first = listed(_names(sharing.second)), listed(_names(sharing.first))
    again = [
        context.ask_kafka(
            f"Then have {first} read what only {second} got, if it needs these records: stop the group, and move "
            "these partitions back to the time when both were there first (--execute in place of --dry-run does "
            "it)",
            "kafka-consumer-groups",
            "--reset-offsets",
            *option("--group", sharing.group_id),
            *option("--topic", f"{topic}:{','.join(map(str, sorted(partitions)))}"),
            *option("--to-datetime", instant(sharing.since_ms).removesuffix("Z")),
            "--dry-run",
        )
        for topic, partitions in sorted(taken.items())
    ]
    own = NextStep(
        f"If so, give {second} a group.id of its own, beginning at {moment(sharing.since_ms)} or earlier if it needs "
        f"what {first} got"
    )
    return (own, *again)


RULE = incident_rule(
    kind=KIND,
    title="a group has members that look like two applications",
    about="""\
Members of one group that consume the same topics, with client ids without a common word or beginning. Both were there
for `together`, or for `share` of the group's life after one had it alone.""",
    tables=("timeline", "members"),
    levels={
        Level.MODERATE: "both are there, and more than the client ids differs",
        Level.NOTE: "otherwise",
    },
    find=_find,
    listing=Rows("members"),
    causes=(
        PossibleCause(
            "two_applications",
            "two applications were configured with one group id",
            "for: different assignors, subscriptions, hosts",
        ),
        PossibleCause(
            "one_application",
            "one application, whose processes have different client ids",
            "against: the same",
        ),
    ),
    questions=(
        Question(
            "two_applications",
            "one_application",
            "Are these members two applications, each of which needs all records?",
            command_of(_find),
        ),
    ),
    thresholds=(
        Threshold(
            "together",
            "duration",
            "1h",
            "how long members of both must have been there",
            "a rollout that renames clients takes less",
        ),
        Threshold(
            "share",
            "share",
            0.33,
            "the share of the group's life that is enough instead",
            "the log may be only minutes long",
        ),
    ),
)

RULES = (RULE,)
