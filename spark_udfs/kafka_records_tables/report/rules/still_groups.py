"""Groups that have stopped reading, judged by their own history."""

from __future__ import annotations

from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept, numbers
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, Place, commit_spans, member_lives
from kafka_records_tables.report.facts.member_names import member_names
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.usual_values import STOP, UsualGap, usual_gap
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    capital,
    counted,
    length,
    listed,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.gone_processes import CAUSE as GONE
from kafka_records_tables.report.rules.gone_processes import NAME as PROCESS_GONE
from kafka_records_tables.report.rules.gone_processes import QUESTION as IS_RUNNING
from kafka_records_tables.report.rules.gone_processes import weigh_gone
from kafka_records_tables.report.rules.long_metadata import CAUSE as LONG_METADATA
from kafka_records_tables.report.rules.long_metadata import NAME as METADATA_TOO_LARGE
from kafka_records_tables.report.rules.long_metadata import QUESTION, weigh_metadata
from kafka_records_tables.report.rules.silent_readers import DOES_NOT_COMMIT, PROCESSES, reads_without_commits
from kafka_records_tables.report.rules.throttled_clients import CAUSE, QUESTIONS, THROTTLED, Reading, weigh_quotas
from kafka_records_tables.report.rules.timed_out_transactions import CAUSE_OF_STOP as TIMEOUT_CAUSE
from kafka_records_tables.report.rules.timed_out_transactions import NAME as TRANSACTION_TIMES_OUT
from kafka_records_tables.report.rules.timed_out_transactions import weigh_timeouts
from kafka_records_tables.report.rules.uncommitted_groups import commits_seldom
from kafka_records_tables.report.rules.unseen_holds import CAUSE as HELD_BACK
from kafka_records_tables.report.rules.unseen_holds import NAME as TRANSACTION_HOLDS_BACK
from kafka_records_tables.report.rules.unseen_holds import QUESTION as IS_HELD
from kafka_records_tables.report.rules.unseen_holds import weigh_transactions
from kafka_records_tables.topics import OFFSETS

KIND: Final = "group_stands_still"
_NOT_COUNTED: Final = " (how many is unknown: the log of the topic is not in the source)"


def _find(context: RuleContext) -> list[Incident]:
    rows = context.table("progress")
    rows = kept(rows, equal(rows, "state", "stopped"))
    stopped: dict[str, list[dict[str, Any]]] = {}
    for row in [*rows.to_pylist(), *_stopped_on_brokers(context)]:
        stopped.setdefault(row["group_id"], []).append(row)
    groups = without_old_copies(context, context.table("groups"))
    counts = {each["group_id"]: each["member_count"] for each in groups.to_pylist()}
    # A stopped application has no members that could read the backlog.
    suspects = [
        group
        for group, places in stopped.items()
        if counts.get(group) and all(each["reason"] is None for each in places)
    ]
    found = []
    for group, usual in _usual_gaps(context, suspects).items():
        places = stopped[group]
        limit = context.limit(f"{KIND}.after")
        if usual is not None:
            # The longest intervals include nights without records. For stored logs, `progress` has the longest wait,
            # which is a better measure.
            own = usual.high_ms if context.is_stored else usual.most_ms
            limit = max(STOP * own, context.limit("report.group_settles_within"))
        if max(each["wait_ms"] or 0 for each in places) >= limit:
            found.append(_incident(context, group, places, limit, usual))
    return found


def _usual_gaps(context: RuleContext, groups: list[str]) -> dict[str, UsualGap | None]:
    """How long groups usually take from one commit of a new offset to the next, in any of their partitions; None for
    groups with too few commits in the log."""
    times: dict[str, set[int]] = {each: set() for each in groups}
    for (group, *_), spans in commit_spans(context, tuple(groups[:MOST_GROUPS])).items():
        times[group].update(each.from_ms for each in spans if each.from_ms is not None)
    return {group: usual_gap(of_group) for group, of_group in times.items()}


def _stopped_on_brokers(context: RuleContext) -> list[dict[str, Any]]:
    """Rows like those that `progress` has for files, for partitions on running brokers that have records to read but no
    commit for longer than usual. Brokers are asked for the times of the first unread records, because `progress` lacks
    them."""
    if context.is_stored or context.second_look is None:
        return []
    groups = without_old_copies(context, context.table("groups"))
    alive = kept(groups, pc.greater(groups["member_count"], 0))["group_id"].to_pylist()
    lag = context.table("lag")
    is_old = numbers(lag, "commit_timestamp_ms", 2**62) <= context.at_ms - context.limit(f"{KIND}.after")
    lag = kept(lag, pc.greater(lag["lag"], 0), pc.is_null(lag["problem"]), equal(lag, "group_id", *alive), is_old)
    suspects = tuple(lag["group_id"].unique().to_pylist())[:MOST_GROUPS]
    if not suspects:
        return []
    spans = commit_spans(context, suspects)
    still = set(zip(*(lag[name].to_pylist() for name in ("group_id", "topic", "partition")), strict=True))
    found = []
    for row in context.look("lag", suspects, times=True).to_pylist():
        key = row["group_id"], row["topic"], row["partition"]
        of_place = spans.get(key, [])
        if key not in still or row["unread_timestamp_ms"] is None or not of_place:
            continue
        since = max(row["unread_timestamp_ms"], of_place[-1].from_ms or 0)
        usual = usual_gap([each.from_ms for each in of_place])
        if usual is not None and context.at_ms - since > STOP * usual.most_ms:
            more = {"since_timestamp_ms": since, "wait_ms": context.at_ms - since, "longest_wait_ms": usual.most_ms}
            found.append({**row, **more, "reason": None})
    return found


def _incident(
    context: RuleContext, group: str, places: list[dict[str, Any]], limit: int, gaps: UsualGap | None
) -> Incident:
    rows = context.rows_of_group("lag", group)
    lags = {(each["topic"], each["partition"]): each for each in rows.to_pylist()}
    mine = [lags.get((each["topic"], each["partition"])) or {} for each in places]
    waiting = sum(each.get("lag") or 0 for each in mine)
    is_counted = any(each.get("lag") is not None for each in mine)
    since = min((each["since_timestamp_ms"] or context.at_ms for each in places), default=context.at_ms)
    last = max((each["commit_timestamp_ms"] or 0 for each in places), default=0)
    records, unknown = (counted(waiting, "record"), "") if is_counted else ("records", _NOT_COUNTED)
    waits = f"{records} wait, and more come{unknown}."
    is_one = is_counted and waiting == 1
    wait = max(each["wait_ms"] or 0 for each in places)
    known = [each["longest_wait_ms"] for each in places if each["longest_wait_ms"] is not None]
    usual = max(known, default=None)
    before = "" if usual is None else f", and never waited for longer than {length(usual)} before"
    mine_now = context.rows_of_group("members", group)
    members = without_old_copies(context, mine_now).to_pylist()
    names = member_names(members)
    has = {each["member_id"] for each in members}
    owner_of = {(each["topic"], each["partition"]): _owner(lags, each, has) for each in places}
    owner_ids = list(dict.fromkeys(filter(None, owner_of.values()))) or list(names)
    owners = [names[each] for each in owner_ids]
    others, moving = _goes_on(context, group, places, owner_of, lags)
    where = places_shown(owner_of)
    # If a member still reads other partitions, the member itself is not stuck.
    left_out = bool(moving) and {each["member_id"] for each in moving} >= set(owner_of.values())
    long = weigh_metadata(context, group, owner_of)
    is_refused = long is not None and long.verdict.is_certain
    skips = Verdict(
        f"The application of {listed(owners)} leaves out {where}: it has paused it and does not resume it, or the "
        "thread that processes its records hangs or tries one again and again.",
        evidence_for=tuple(
            Evidence(
                f"{shown(names[each['member_id']])} has committed {each['topic']}-{each['partition']} since, at "
                f"{moment(each['commit_timestamp_ms'])}",
                OFFSETS,
                each["log_partition"],
                None,
                each["commit_timestamp_ms"],
            )
            for each in moving[:3]
        ),
        is_certain=left_out and long is None,
        refuted_by=None if others else Evidence(f"{listed(owners)} has committed no other partition since"),
        lacked=() if moving or not others else ("which member committed the other partitions",),
        steps=tuple(
            context.ask_kafka(
                f"Look at the record at offset {each['offset']} of {each['topic']}-{each['partition']}, where it stays",
                "kafka-console-consumer",
                *option("--topic", each["topic"]),
                "--partition",
                str(each["partition"]),
                "--offset",
                str(each["offset"]),
                "--max-messages",
                "1",
            )
            for each in mine[:1]
            if moving and each.get("offset") is not None
        ),
    )
    by_owner = [each for each in members if each["member_id"] in owner_ids]
    gone = None if moving else weigh_gone(context, group, by_owner, owners, last)
    verdict = Verdict(
        f"The application of {listed(owners)} hangs, fails on the records it has read without leaving, or has paused "
        "its partitions and does not resume them"
        + (": it is still a member, so its heartbeats go on." if gone is None else "."),
        refuted_by=Evidence(f"{listed(owners)} commits other partitions meanwhile") if left_out else None,
        evidence_for=(
            Evidence(f"nothing was committed after {moment(last)}", OFFSETS, places[0]["log_partition"], None, last),
            Evidence(
                f"for this group, a stop is a pause of more than {length(limit)}: "
                + (
                    f"{STOP} times what {'95 % of' if context.is_stored else 'all'} {gaps.count} intervals between "
                    f"its commits of new offsets took at most (half of them: {length(gaps.median_ms)}), and at least "
                    f"{length(context.limit('report.group_settles_within'))}"
                    if gaps is not None
                    else "the threshold, because the log has too few of its commits to know what is usual"
                )
            ),
        ),
    )
    silent = None if others else reads_without_commits(context, group, _stays(context, members, since))
    seldom = commits_seldom(context, group) if gaps is None and silent is None and not others else None
    progress = context.rows_of_group("progress", group)
    rest = kept(progress, equal(progress, "state", "ok")).num_rows
    along = f" {counted(rest, 'other partition')} {'goes' if rest == 1 else 'go'} on." if rest else ""
    dump = NextStep(
        f"Take a stack dump of {listed(owners)} (jstack for Java) and look into its log, then restart it"
        + (": it reads the partition again then, unless it fails on a record" if left_out else "")
    )
    what = f"commits nothing of {where}" if rest else "is a member but commits nothing"
    topics = tuple(sorted({each["topic"] for each in places}))
    numbers = tuple(sorted({each["partition"] for each in places}))
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH if seldom is None else Level.MODERATE,
        title="a group no longer reads some partitions" if rest else RULE.title,
        problem=(
            f"The group {shown(group)} has {counted(len(members), 'member')} ({listed(list(names.values()))}) and "
            f"{'makes no progress in' if long is None else 'commits no new offset of'} {where}: records wait "
            f"{'' if long is None else 'for a commit '}for {length(wait)}{before}. "
            f"The last commit was at {moment(last)}.{along}"
        ),
        impact=(
            (capital(waits) if seldom is None else f"Unless it reads them without a commit, {waits}")
            if long is None
            else f"{capital(records)} {'is' if is_one else 'are'} not committed, and more come{unknown}. "
            "Probably they are processed, but each restart reads them again from the last commit."
        ),
        consequence=(
            ("work_stopped" if seldom is None else "none")
            if long is None
            else "work_repeated" if is_refused and long.later else "none"
        ),
        group_ids=(group,),
        topics=topics,
        partitions=numbers if len(topics) == 1 else (),
        who=tuple(
            Actor(what, group, each["member_id"], each["client_id"], each["client_host"]) for each in by_owner[:5]
        ),
        since_timestamp_ms=since,
        is_going_on=True,
        scale=({f"records_{'waiting' if long is None else 'without_commit'}": waiting} if is_counted else {})
        | {"partitions": len(places)},
        evidence=verdict.evidence_for[:1],
        evidence_count=len(places),
        rows=(Rows("progress", of_group(group)), Rows("lag", of_group(group))),
        next=(
            *((dump,) if long is None else ()),
            context.see("List which partitions do not move, and when they stopped", Rows("progress", of_group(group))),
            context.describe_members(group),
        ),
        measured={"wait_ms": wait, "limit_ms": limit} | ({} if usual is None else {"usual_ms": usual}),
        thresholds=context.limits_of(f"{KIND}.after"),
    )
    causes = {"application_hangs": verdict, "partition_left_out": skips}
    if gone is not None:
        causes[PROCESS_GONE] = gone
    if long is not None:
        causes[METADATA_TOO_LARGE] = long.verdict
    held = weigh_transactions(context, places)
    if held is not None:
        causes[TRANSACTION_HOLDS_BACK] = held
    timeouts = weigh_timeouts(context, group, owner_of)
    if timeouts is not None:
        causes[TRANSACTION_TIMES_OUT] = timeouts
    # A quota slows a consumer in all partitions.
    quota = None if rest else weigh_quotas(context, Reading(group, topics[0], since, None), members)
    if quota is not None:
        causes[THROTTLED] = quota
    reads = silent or seldom
    if reads is not None and not rest:
        causes["does_not_commit"] = reads
    return Incident(finding, waiting, causes)


def _stays(context: RuleContext, members: list[dict[str, Any]], since_ms: int) -> list[int]:
    """How long each of the given members has been in the group while records waited."""
    lives = [
        each for of_group in member_lives(context, {each["group_id"] for each in members}).values() for each in of_group
    ]
    there = {each["member_id"] for each in members}
    joined = (each.joined_ms for each in lives if each.member_id in there and each.joined_ms is not None)
    return [context.at_ms - max(each, since_ms) for each in joined]


def _owner(lags: dict[Place, dict[str, Any]], place: dict[str, Any], members: set[str]) -> str | None:
    """The member that has a partition now; None if unknown."""
    owner: str | None = lags.get((place["topic"], place["partition"]), {}).get("member_id")
    return owner if owner in members else None


def _goes_on(
    context: RuleContext,
    group: str,
    places: list[dict[str, Any]],
    owner_of: dict[Place, str | None],
    lags: dict[Place, dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of `lag` for other partitions that were committed after these stopped: those that the owners of these
    partitions may have committed, and those that they certainly committed. A member counts only if it has had all its
    partitions since before the commit; otherwise an earlier owner may have committed."""
    since: dict[str | None, int] = {}
    for each in places:
        owner = owner_of[each["topic"], each["partition"]]
        since[owner] = max(since.get(owner, 0), each["since_timestamp_ms"] or context.at_ms)
    rows = context.rows_of_group("timeline", group)
    rows = kept(rows, equal(rows, "event", *_CHANGES), pc.is_valid(rows["member_id"]))
    changed: dict[str, int] = {}
    for row in rows.to_pylist():
        changed[row["member_id"]] = max(changed.get(row["member_id"], 0), row["at_timestamp_ms"] or 2**62)
    possible, sure = [], []
    for place, each in lags.items():
        owner, at_ms = each["member_id"], each["commit_timestamp_ms"] or 0
        if place in owner_of or at_ms <= min(since.values()):
            continue
        if owner is None or None in since or owner in since or at_ms <= changed.get(owner, 2**62):
            possible.append(each)
        if owner in since and max(since[owner], changed.get(owner, 2**62)) < at_ms:
            sure.append(each)
    return possible, sure


_CHANGES: Final = ("member_joined", "member_replaced", "assignment_changed")

RULE = incident_rule(
    kind=KIND,
    title="a group has members but commits nothing",
    about="""\
Groups with members whose partitions are `stopped` in `progress`: without a commit, records have waited for twice the
usual longest interval between commits (`after`, if there are fewer than ten), and at least
`report.group_settles_within`.""",
    tables=("progress", "lag", "members", "groups", "timeline", "open_transactions"),
    levels={
        Level.HIGH: "it has committed other partitions that its members have",
        Level.MODERATE: "it never has, so it may just commit seldom",
    },
    find=_find,
    listing=Rows("progress", ("state=stopped",)),
    causes=(
        CAUSE,
        LONG_METADATA,
        HELD_BACK,
        TIMEOUT_CAUSE,
        GONE,
        PossibleCause(
            "application_hangs",
            "the application hangs, or has paused all its partitions",
            "refuted if it commits its other partitions",
        ),
        PossibleCause(
            "partition_left_out",
            "it has paused a partition, or fails in it alone",
            "certain if its member commits its other partitions",
        ),
        DOES_NOT_COMMIT,
    ),
    questions=(QUESTION, IS_HELD, IS_RUNNING, Question("does_not_commit", "application_hangs", PROCESSES), *QUESTIONS),
    folds=(Folds("never_commits"),),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "30s",
            "how long records have waited, for groups whose own history is too short",
            "shorter stops happen in any deployment",
        ),
    ),
)

RULES = (RULE,)
