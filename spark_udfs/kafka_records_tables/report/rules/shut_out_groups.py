"""Groups that stopped when access control lists (ACLs) of their topics, or their own, were changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.acl_changes import READ, TOPIC, Restriction, restrictions
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, Offset, Span, commit_spans
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.topics import METADATA, OFFSETS

KIND: Final = "groups_shut_out"
_DENIED, _OTHERWISE = "acl_denies", "stopped_otherwise"
_MOST_ENTRIES: Final = 3
"""The number of entries that a sentence names."""


@dataclass(frozen=True, slots=True)
class _ShutOut:
    """A group that has committed nothing for a topic since shortly before or after a change."""

    group_id: str
    topics: tuple[str, ...]
    last: Span
    """Its last commit for these topics."""
    waiting: int
    """The number of offsets that have not been consumed since."""
    joins: int
    """How often members joined since."""


def _find(context: RuleContext) -> list[Incident]:
    if not context.is_stored or not context.table("lag").num_rows:
        return []
    found: list[Incident] = []
    for change in reversed(context.once(restrictions)):
        if change.takes(READ) and context.at_ms - change.at_ms >= context.limit("report.group_settles_within"):
            groups = _shut_out(context, change)
            known = {name for each in found for name in each.finding.group_ids}
            groups = [each for each in groups if each.group_id not in known]
            if groups:
                found.append(_incident(context, change, groups))
    return found


def _shut_out(context: RuleContext, change: Restriction) -> list[_ShutOut]:
    """The groups that consumed what the change is about until then, and nothing of it since, although records wait."""
    around = context.limit(f"{KIND}.around")
    key = "topic" if change.resource_type == TOPIC else "group_id"
    rows = context.table("current_offsets")
    names = [each for each in rows[key].unique().to_pylist() if change.matches(each)]
    rows = kept(rows, equal(rows, key, *names), pc.is_valid(rows["commit_timestamp_ms"]))
    newest = rows.group_by("group_id", use_threads=False).aggregate(
        [("commit_timestamp_ms", "max"), ("topic", "distinct")]
    )
    suspects = {
        row["group_id"]: tuple(sorted(row["topic_distinct"]))
        for row in newest.to_pylist()
        if abs(row["commit_timestamp_ms_max"] - change.at_ms) <= around
    }
    chosen = tuple(suspects)[:MOST_GROUPS]
    spans = commit_spans(context, chosen)
    found = [_judged(context, change, each, suspects[each], spans) for each in chosen]
    return [each for each in found if each is not None]


def _judged(
    context: RuleContext, change: Restriction, group: str, topics: tuple[str, ...], spans: dict[Offset, list[Span]]
) -> _ShutOut | None:
    own = sorted(
        (
            each
            for (name, topic, _), of_place in spans.items()
            if name == group and topic in topics
            for each in of_place
        ),
        key=lambda each: each.from_ms or 0,
    )
    times = [each.from_ms for each in own if each.from_ms is not None]
    if len(times) < 2 or context.at_ms - times[-1] <= 2 * max(later - first for first, later in pairwise(times)):
        return None
    lag = context.rows_of_group("lag", group)
    lag = kept(lag, equal(lag, "topic", *topics), pc.greater(lag["lag"], 0))
    # Without records that were written after its last commit, a group has nothing to commit.
    if not lag.num_rows or not _waits_after(lag, change.at_ms):
        return None
    events = context.rows_of_group("timeline", group).to_pylist()
    before = [each for each in events if (each["at_timestamp_ms"] or 0) <= times[-1]]
    if before and before[-1]["member_count"] == 0 and before[-1]["event"] in ("emptied", "epoch", "member_left"):
        return None  # it had been stopped before
    joins = sum(each["event"] == "member_joined" and (each["at_timestamp_ms"] or 0) > change.at_ms for each in events)
    return _ShutOut(group, topics, own[-1], pc.sum(lag["lag"]).as_py(), joins)


def _waits_after(lag: Any, at_ms: int) -> bool:
    """Whether records wait that were written around a moment or later: others had been waiting before."""
    times = [each for each in lag["unread_timestamp_ms"].to_pylist() if each is not None]
    return bool(times) and max(times) >= at_ms - MINUTE_MS


def _incident(context: RuleContext, change: Restriction, groups: list[_ShutOut]) -> Incident:
    groups = sorted(groups, key=lambda each: (-each.waiting, each.group_id))
    names = tuple(each.group_id for each in groups)
    topics = tuple(sorted({topic for each in groups for topic in each.topics}))
    waiting, joins = sum(each.waiting for each in groups), sum(each.joins for each in groups)
    what = f"{change.resource_type} {shown(change.resource_name)}{' (names that begin so)' if change.is_prefix else ''}"
    entries = "; ".join(each.words for each in change.entries[:_MOST_ENTRIES])
    did = "were added" if change.is_first or change.entries[0].is_denied else "were removed"
    is_one, noun = len(names) == 1, "group" if len(names) == 1 else "groups"
    first, last = (pick(each.last.from_ms or 0 for each in groups) for pick in (min, max))
    changed = Evidence(f"ACLs of {what} {did}: {entries}", METADATA, 0, change.log_offset, change.at_ms)
    commits = tuple(
        Evidence(
            f"the last commit of {each.group_id}",
            OFFSETS,
            each.last.log_partition,
            each.last.log_offset,
            each.last.from_ms,
        )
        for each in groups
    )
    again = f" Their members have joined {joins} times since, and committed nothing." if joins else ""
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH,
        title=RULE.title,
        problem=(
            f"At {moment(change.at_ms)} ACLs of {what} {did}: {entries}. The {noun} {listed(names)} "
            f"{'consumes' if is_one else 'consume'} {listed(topics)}, and {'has' if is_one else 'have'} committed "
            f"nothing of {'it' if len(topics) == 1 else 'them'} since {moment(last)}, although records were written."
            f"{again}"
        ),
        impact=(
            f"{counted(waiting, 'record')} wait, and more come. Nothing is lost as long as the "
            f"{'topic keeps' if len(topics) == 1 else 'topics keep'} them: the {noun} will go on at "
            f"{'its offset' if is_one else 'their offsets'}."
        ),
        consequence="work_stopped",
        group_ids=names,
        topics=topics,
        since_timestamp_ms=change.at_ms,
        is_going_on=True,
        scale={"groups": len(names), "records_waiting": waiting, "joins_since": joins},
        evidence=(changed, *commits)[:MOST_EVIDENCE],
        evidence_count=1 + len(commits),
        rows=(Rows("lag", of_group(names[0])), Rows("timeline", of_group(names[0]))),
        next=_steps(context, change, names),
        measured={"last_commits_within_ms": last - first, "last_commit_to_change_ms": abs(change.at_ms - last)},
        thresholds=context.limits_of(f"{KIND}.around", "report.group_settles_within"),
    )
    others = _that_go_on(context, change, names, topics)
    near = Evidence(
        f"{counted(len(names), 'group')} last committed within {length(abs(change.at_ms - first))} of the change",
        OFFSETS,
        groups[0].last.log_partition,
        groups[0].last.log_offset,
        groups[0].last.from_ms,
    )
    go_on = Evidence(f"{counted(others, 'group')} of other topics went on") if others else None
    denied = Verdict(
        f"The changed ACLs refuse the clients of {listed(names)}: {change.how}.",
        (changed, near, *((go_on,) if go_on is not None else ())),
        lacked=("the principals of their clients: no record of a group has them",),
    )
    otherwise = Verdict(
        f"The {noun} stopped at that time for another reason.",
        evidence_against=(near,),
    )
    return Incident(finding, waiting, {_DENIED: denied, _OTHERWISE: otherwise})


def _that_go_on(context: RuleContext, change: Restriction, names: Sequence[str], topics: Sequence[str]) -> int:
    """The number of groups of other topics that have committed since."""
    rows = context.table("current_offsets")
    since = change.at_ms + context.limit(f"{KIND}.around")
    rows = kept(rows, pc.greater(rows["commit_timestamp_ms"], since))
    rows = kept(rows, pc.invert(equal(rows, "group_id", *names)), pc.invert(equal(rows, "topic", *topics)))
    return len(rows["group_id"].unique())


def _steps(context: RuleContext, change: Restriction, names: Sequence[str]) -> tuple[NextStep, ...]:
    pattern = ("--resource-pattern-type", "prefixed") if change.is_prefix else ()
    resource = (*option(f"--{change.resource_type}", change.resource_name), *pattern)
    error = "TopicAuthorizationException" if change.resource_type == TOPIC else "GroupAuthorizationException"
    return (
        context.ask_kafka(
            f"Allow READ to the principals of {listed(names)} (User:NAME here), or undo the change, if the groups are "
            "to read. No offset has to be moved",
            "kafka-acls",
            *("--add", "--allow-principal", "User:NAME", "--operation", "Read", *resource),
        ),
        context.ask_kafka("List the ACLs now", "kafka-acls", "--list", *resource),
        NextStep(
            f"Look for {error} in the logs of the applications, and for denied requests in the authorizer log of the "
            "brokers (kafka.authorizer.logger), which has the principals"
        ),
        context.see("List what is waiting", Rows("lag", of_group(names[0]))),
    )


RULE = incident_rule(
    kind=KIND,
    title="groups stopped when ACLs were changed",
    about="""\
Groups whose last commits for a topic are within `around` of a change of ACLs of the topic or the group, while
records wait. The change must take rights away: the first entry of a resource (before it,
`allow.everyone.if.no.acl.found` may have allowed everything), an entry that denies, or the removal of one that
allowed. Left out are groups without members, groups that have committed as rarely before, and entries that allow
everybody to read. Records do not have the principals of clients, so it is unknown to whom an entry applies. The
metadata log is needed.""",
    tables=("current_offsets", "lag", "timeline"),
    levels={Level.HIGH: "always"},
    find=_find,
    listing=Rows("lag", ("lag>0",)),
    causes=(
        PossibleCause(
            _DENIED,
            "the changed ACLs refuse the clients of the groups",
            "for: the last commits are near the change, and groups of other topics go on",
        ),
        PossibleCause(
            _OTHERWISE, "the groups stopped for another reason", "against: the last commits are near the change"
        ),
    ),
    questions=(
        Question(
            _DENIED,
            _OTHERWISE,
            "Do the logs of the applications have TopicAuthorizationException or GroupAuthorizationException?",
            asked="last",
        ),
    ),
    thresholds=(
        Threshold(
            "around",
            "duration",
            "10s",
            "how long before or after a change a last commit may be",
            "consumers commit every five seconds (auto.commit.interval.ms), and brokers apply a change within a second",
        ),
    ),
    folds=(
        Folds("crash_loop"),
        Folds("endless_rebalances"),
        Folds("group_stands_still"),
        Folds("too_slow"),
        Folds("members_unsettled"),
    ),
)

RULES = (RULE,)
