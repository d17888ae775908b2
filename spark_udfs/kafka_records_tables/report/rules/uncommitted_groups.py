"""Groups whose members have partitions with records but never commit."""

from __future__ import annotations

import re
from typing import Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.uncommitted_places import Uncommitted, uncommitted_groups
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.silent_readers import PROCESSES
from kafka_records_tables.topics import OFFSETS

KIND: Final = "never_commits"
_OFF, _ELSEWHERE, _HANGS, _LEFT_OUT = "does_not_commit", "offsets_elsewhere", "application_hangs", "partition_left_out"
_KEEP_OFFSETS: Final = re.compile(r"(?i)(spark|flink|beam|druid|pinot|clickhouse|hudi|databricks|iceberg)")
"""Systems that keep offsets in their own checkpoints or tables, as named in client ids."""


def _find(context: RuleContext) -> list[Incident]:
    return [_incident(context, each) for each in context.once(found_groups)]


def found_groups(context: RuleContext) -> list[Uncommitted]:
    """The groups with such partitions."""
    return uncommitted_groups(context, context.limit(f"{KIND}.after"))


def commits_seldom(context: RuleContext, group: str) -> Verdict | None:
    """Whether a group that has stopped committing may just commit rarely, for example only when partitions are taken
    from a member. A sign of this is that it has never committed for other partitions."""
    found = next((each for each in context.once(found_groups) if each.group == group), None)
    if found is None:
        return None
    return Verdict(
        f"The application of {shown(group)} reads, but commits only when it ends or partitions are taken from it.",
        evidence_for=(
            Evidence(
                f"it has never committed {places_shown(found.places)}, although its members have these too, and "
                "they have records"
            ),
        ),
        steps=(
            NextStep(
                f"Look up how the application of {shown(group)} commits (enable.auto.commit, its calls of commit), and "
                "errors of commits in its log"
            ),
        ),
    )


def _level(context: RuleContext, group: Uncommitted) -> Level:
    """The level. It is higher than a note if the group commits other partitions and is not so far behind there that it
    may just not have reached a commit yet, or if it was restarted and may have reread or skipped records."""
    if group.records is None:
        return Level.NOTE
    if not (group.others or group.former):
        return Level.LOW if group.restarts and group.between and _system(group) is None else Level.NOTE
    lag = context.table("lag")
    lag = kept(lag, equal(lag, "group_id", group.group))
    behind = sum(each or 0 for each in lag["lag"].to_pylist())
    return Level.NOTE if behind >= group.records else Level.MODERATE


def _incident(context: RuleContext, group: Uncommitted) -> Incident:
    name, where = shown(group.group), places_shown(group.places)
    who = list(dict.fromkeys(each["client_id"] or each["member_id"] for each in group.members))
    level = _level(context, group)
    assigned = Evidence(f"{where}: assigned to a member of {name}", OFFSETS, *group.first_at, group.since_ms)
    written = "" if group.records is None else f", and {counted(group.records, 'record')} have been written to them"
    have_had = "its members, including those that left," if group.with_former else "its present members"
    commits = Evidence(
        f"{have_had} have had {where} for {length(group.held_ms)}{written}; the log has no commit for them"
    )
    records = (
        "which have records"
        if group.records is None
        else f"to which {counted(group.records, 'record')} {'was' if group.records == 1 else 'were'} written since"
    )
    last = _last_of_others(group)
    other = f" It has committed {counted(len(group.others), 'other partition')}{last}." if group.others else ""
    former = (
        f" It committed until {moment(group.former.from_ms)} for partitions whose offsets were deleted later."
        if group.former is not None and group.former.from_ms is not None
        else ""
    )
    restarts = _restarts(group)
    rows = Rows("assignments", of_group(group.group, "role=current"))
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title="a group never commits some of its partitions" if group.others else RULE.title,
        problem=(
            f"{counted(len(group.members), 'member')} of the group {name} ({listed(who)}) "
            f"{'has' if len(group.members) == 1 else 'have'} {where}, {records}, and the group has never committed an "
            f"offset {'of these' if group.others else 'at all'}.{other}{former}{restarts}"
        ),
        impact=(
            f"{'Either these records are not processed, or' if group.others else 'If it has no offsets elsewhere,'} "
            "the next member with these partitions begins where auto.offset.reset says: it reads records again, or "
            f"skips some. {_of_restarts(group)}Its lag is unknown."
        ),
        group_ids=(group.group,),
        topics=tuple(sorted({topic for topic, _ in group.places})),
        partitions=_partitions(group),
        who=tuple(
            Actor("has partitions and commits nothing for them", group.group, *(each[name] for name in _MEMBER))
            for each in group.members[:5]
        ),
        since_timestamp_ms=group.since_ms,
        since_note="the first assignment of these partitions that the log has",
        is_going_on=True,
        scale={"partitions": len(group.places)}
        | ({} if group.records is None else {"records_without_commit": group.records})
        | ({"restarts": group.restarts} if group.restarts else {})
        | ({"records_while_it_was_away": group.between} if group.restarts and group.between else {}),
        symptom_confidence="high" if group.records is not None else "medium",
        why_not_sure=None if group.records is not None else "when the records were written is unknown",
        evidence=(assigned, commits),
        evidence_count=2,
        rows=(rows, Rows("members", of_group(group.group))),
        next=(
            NextStep(
                f"Look up how the application of {name} commits (enable.auto.commit, its calls of commit), and errors "
                "of commits in its log"
                + (
                    "; before the version that commits starts, set the offsets of the group to where the present "
                    "members are"
                    if group.restarts and not group.others
                    else ""
                )
            ),
            context.describe_members(group.group),
            context.see("List the partitions that its members have", rows),
        ),
        measured={"held_ms": group.held_ms, "partitions": len(group.places), "restarts": group.restarts},
        thresholds=context.limits_of(f"{KIND}.after"),
    )
    verdicts = {
        _LEFT_OUT: _weigh_left_out(group, listed(who)),
        _OFF: _weigh_off(context, group, name),
        _ELSEWHERE: _weigh_elsewhere(group, name),
        _HANGS: _weigh_hangs(context, group, listed(who)),
    }
    known = {cause: verdict for cause, verdict in verdicts.items() if verdict is not None}
    return Incident(finding, group.records or 0, known)


_MEMBER: Final = ("member_id", "client_id", "client_host")


def _partitions(group: Uncommitted) -> tuple[int, ...]:
    return tuple(number for _, number in group.places) if len({topic for topic, _ in group.places}) == 1 else ()


def _restarts(group: Uncommitted) -> str:
    """A sentence about the times at which all members left and new ones joined."""
    if not group.restarts:
        return ""
    meanwhile = (
        ""
        if group.between is None
        else f"; {counted(group.between, 'record')} "
        f"{'was' if group.between == 1 else 'were'} written to these partitions while it had no members"
    )
    return f" All its members left and others came {counted(group.restarts, 'time')}{meanwhile}."


def _of_restarts(group: Uncommitted) -> str:
    """What each restart caused, as far as records tell."""
    if not group.restarts or group.others:
        return ""
    each = "its restart" if group.restarts == 1 else f"each of its {group.restarts} restarts"
    return (
        f"So {each} read records again (earliest), or skipped those that were written meanwhile (latest): no record "
        "shows which. "
    )


def _system(group: Uncommitted) -> str | None:
    """The system named in a client id or the group id that keeps offsets elsewhere."""
    names = " ".join([group.group, *(each["client_id"] or "" for each in group.members)])
    found = _KEEP_OFFSETS.search(names)
    return None if found is None else found.group()


def _last_of_others(group: Uncommitted) -> str:
    last = max((each.from_ms or 0 for each in group.others.values()), default=0)
    return f", the last one at {moment(last)}" if last else ""


def _polls(context: RuleContext, group: Uncommitted) -> Evidence | None:
    """The fact that members have stayed for longer than a client may go without polling."""
    limits = [each["rebalance_timeout_ms"] for each in group.members if each["rebalance_timeout_ms"]]
    most = max(limits, default=0)
    if group.with_former or not most or len(limits) < len(group.members) or group.held_ms <= most:
        return None
    return Evidence(
        f"its members have had these partitions for {length(group.held_ms)}; most clients leave the group if they do "
        f"not poll within {length(most)} (max.poll.interval.ms)"
    )


def _weigh_off(context: RuleContext, group: Uncommitted, name: str) -> Verdict:
    polls = _polls(context, group)
    how = (
        "these partitions: its commits leave them out, or fail."
        if group.others
        else (
            "anything: enable.auto.commit is false and it calls no commit, or its commits fail."
            if group.restarts
            else "anything: enable.auto.commit is false and it calls no commit, its commits fail, or it commits only "
            "when it ends."
        )
    )
    return Verdict(
        f"The application of {name} reads, but does not commit {how}", evidence_for=() if polls is None else (polls,)
    )


def _weigh_elsewhere(group: Uncommitted, name: str) -> Verdict:
    system = _system(group)
    speaks = (
        ()
        if system is None
        else (Evidence(f"its client ids or its group id contain {system!r}, a system that does so"),)
    )
    against = []
    if group.others:
        against.append(_newest_of_others(group, "it commits other partitions, such as {}"))
    if group.former is not None:
        span = group.former
        shows = "it committed offsets to Kafka earlier"
        against.append(Evidence(shows, OFFSETS, span.log_partition, span.log_offset, span.from_ms))
    return Verdict(
        f"The application of {name} keeps its offsets elsewhere (a database, or a checkpoint as in Flink and "
        "Spark Structured Streaming). Then nothing is wrong.",
        evidence_for=speaks,
        evidence_against=tuple(against),
    )


def _newest_of_others(group: Uncommitted, shows: str) -> Evidence:
    """The newest commit for another partition, which replaces the braces in `shows`."""
    place, span = max(group.others.items(), key=lambda each: each[1].from_ms or 0)
    where = f"{place[0]}-{place[1]}"
    return Evidence(shows.format(where), OFFSETS, span.log_partition, span.log_offset, span.from_ms)


def _weigh_left_out(group: Uncommitted, who: str) -> Verdict | None:
    """Judges whether members leave out these partitions, if they commit others."""
    if not group.others:
        return None
    return Verdict(
        f"The application of {who} leaves these partitions out: it has paused them and does not resume them, or the "
        "thread that processes their records hangs.",
        evidence_for=(_newest_of_others(group, "the group commits {} meanwhile"),),
    )


def _weigh_hangs(context: RuleContext, group: Uncommitted, who: str) -> Verdict | None:
    if group.others:
        return None
    polls = _polls(context, group)
    return Verdict(
        f"The application of {who} hangs, or fails on its first records without leaving: its heartbeats go on.",
        evidence_against=() if polls is None else (polls,),
        steps=(NextStep(f"Take a stack dump of {who} (jstack for Java) and look into its log"),),
    )


RULE = incident_rule(
    kind=KIND,
    title="a group has members but never commits",
    about="""\
Stable groups whose members have had partitions for `after`, without a commit, although records were written. Left out
are Kafka Streams, Connect and share groups, tools that do not commit (`console-consumer-N`, `spark-kafka-source-…`),
and groups whose log does not begin at its first record. On running brokers it is always a note.""",
    tables=("groups", "assignments", "current_offsets", "pending_offsets", "members", "timeline", "log_ends", "lag"),
    levels={
        Level.MODERATE: "it commits or has committed other partitions, without a backlog in them",
        Level.LOW: "it never committed, and was restarted while records were written",
        Level.NOTE: "otherwise, or if the times of the records are unknown",
    },
    find=_find,
    listing=Rows("assignments", ("role=current",)),
    causes=(
        PossibleCause(
            _LEFT_OUT,
            "the application has paused these partitions, or hangs in them alone",
            "applies if the group commits other partitions",
        ),
        PossibleCause(
            _OFF,
            "the application reads, but does not commit, or only when it ends",
            "for: its members stay longer than max.poll.interval.ms, so they poll",
        ),
        PossibleCause(
            _ELSEWHERE,
            "the application keeps its offsets elsewhere",
            "for: a client id or the group id names a system that does so",
        ),
        PossibleCause(
            _HANGS,
            "the application hangs, or fails on its first records",
            "against: its members stay longer than max.poll.interval.ms",
        ),
    ),
    questions=(
        Question(
            _ELSEWHERE,
            _OFF,
            "Does the application continue where it had stopped after it is restarted (from its own store of offsets)?",
        ),
        Question(_OFF, _HANGS, PROCESSES),
        Question(
            _LEFT_OUT,
            _OFF,
            "Has the application paused these partitions, or does its log show no record of them?",
        ),
    ),
    thresholds=(
        Threshold(
            "after",
            "duration",
            "1m",
            "how long members must have had partitions with records",
            "most clients commit at least every five seconds (auto.commit.interval.ms)",
        ),
    ),
)

RULES = (RULE,)
