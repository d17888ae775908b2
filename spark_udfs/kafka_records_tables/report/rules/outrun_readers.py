"""Groups so slow that records are deleted before they read them, judged by their commits."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.commit_jumps import (
    Jump,
    Steps,
    jumps_of,
    steps_of,
    usual_if_few_jump,
    usual_if_most_jump,
    was_outrun,
)
from kafka_records_tables.report.facts.deleted_while_away import away_before, emptied_events, over_deleted
from kafka_records_tables.report.facts.first_reads import without_first_reads, without_polls
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, commit_spans, ends_of_topic
from kafka_records_tables.report.facts.log_deletions import log_deletions
from kafka_records_tables.report.facts.retention_changes import retention_at, retention_changes
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    MOST_EVIDENCE,
    SECOND_MS,
    RuleContext,
    counted,
    of_group,
    partitions_shown,
    shown,
)
from kafka_records_tables.report.rules.mixed_offsets import mixed_places
from kafka_records_tables.report.rules.outrun_causes import EARLY, deleted_by
from kafka_records_tables.report.rules.shortened_retention import CAUSE as SHORTENED
from kafka_records_tables.report.rules.shortened_retention import with_changed_retention
from kafka_records_tables.tables.log_sizes import TABLE as LOG_SIZES
from kafka_records_tables.topics import OFFSETS

KIND: Final = "deleted_before_read"
_ESTIMATED: Final = "how many records were read before a jump is estimated from the other commits of the group"
_SINCE_WHEN: Final = (
    "no record shows when timestamps became wrong, so some jumps may be backlogs that it read in one commit"
)
_BACKLOGS: Final = "some jumps may be backlogs that it read in one commit, and that were deleted later"
_OF_LAG: Final = ("group_id", "topic", "partition", "log_start_offset", "end_offset", "lost", "problem")


def _suspects(context: RuleContext) -> dict[str, list[dict[str, Any]]]:
    """From `lag`, partitions whose logs do not start at 0, for groups with records to read in one of them and for
    groups that lost their members."""
    rows, worst = context.table("lag").select([*_OF_LAG, "lag"]), [("lost", "descending")]
    rows = kept(rows, pc.greater(rows["log_start_offset"], 0))
    behind = kept(rows.select(["group_id", "lost"]), pc.greater(rows["lag"], 0)).sort_by(worst)
    events = context.table("timeline")
    left = kept(events.select(["group_id"]), equal(events, "event", "emptied"))
    names = pc.unique(kept(left, pc.is_in(left["group_id"], rows["group_id"].combine_chunks()))["group_id"])
    chosen = dict.fromkeys((*pc.unique(behind["group_id"]).to_pylist(), *names.to_pylist()))
    found: dict[str, list[dict[str, Any]]] = {each: [] for each in [*chosen][:MOST_GROUPS]}
    for row in kept(rows, equal(rows, "group_id", *found)).sort_by(worst).to_pylist():
        found[row["group_id"]].append(row)
    return found


def _find(context: RuleContext) -> list[Incident]:
    suspects = _suspects(context)
    steps_by_topic: dict[tuple[str, str], dict[int, Steps]] = {}
    for (group, topic, partition), spans in commit_spans(context, tuple(suspects)).items():
        steps = steps_of(spans)
        if steps:
            # Offsets of other partitions are no steps.
            mixed = mixed_places(context)
            steps = [each for each in steps if not mixed.was_at(group, topic, partition, each[1].from_ms)]
        steps_by_topic.setdefault((group, topic), {})[partition] = steps
    found: list[Incident] = []
    for group, rows in suspects.items():
        of_topics: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if mixed_places(context).is_now(group, row["topic"], row["partition"]):
                continue
            of_topics.setdefault(row["topic"], []).append(row)
        for topic, own in of_topics.items():
            jumps = _jumps(context, group, own, steps_by_topic.get((group, topic), {}))
            if jumps:
                partitions = {each.partition for each in jumps}
                rows_of = [row for row in own if row["partition"] in partitions]
                found.append(_incident(context, group, topic, jumps, rows_of))
    return found


def _jumps(context: RuleContext, group: str, rows: list[dict[str, Any]], steps: Mapping[int, Steps]) -> list[Jump]:
    """The jumps of a group over deleted records of a topic, given its rows of `lag` and the steps by partition."""
    least, times = context.limit(f"{KIND}.commits"), context.limit(f"{KIND}.times")
    found: list[Jump] = []
    left: list[dict[str, Any]] = []
    unproven: list[Jump] = []
    retention = cluster_settings(context).retention_ms(rows[0]["topic"])
    is_behind = any(row["lag"] for row in rows)
    for row in rows:
        own = steps.get(row["partition"], ())
        # If the group has been without commits for that long, its absence explains why it is below the start.
        is_silent = bool(own) and retention is not None and context.at_ms - (own[-1][1].from_ms or 0) > retention
        is_below = row["problem"] == "below_log_start" and not is_silent
        usual = usual_if_few_jump(own, least, times)
        jumps = [] if usual is None else jumps_of(row, own, usual)
        # Records were certainly deleted if the log starts between two commits, or beyond the last one.
        if is_below or (
            is_behind and any(each.before < row["log_start_offset"] <= each.after.offset for each in jumps)
        ):
            found += jumps
        else:
            unproven += jumps
        if is_below and not jumps:
            left.append(row)
    usual = usual_if_most_jump(steps.values(), least, times) if left else None
    if usual is not None:
        ends = ends_of_topic(context, group, rows[0]["topic"])
        if any(was_outrun(row, steps.get(row["partition"], ()), ends, _largest_file(context, row)) for row in left):
            found += [jump for row in left for jump in jumps_of(row, steps.get(row["partition"], ()), usual)]
    if found:
        # The topic loses records before this group reads them, so it lost those in its other partitions the same way.
        found += unproven
        unproven = []
    topic = rows[0]["topic"]
    starts = {row["partition"]: row["log_start_offset"] for row in rows}
    emptied = emptied_events(context, group) if found or unproven else []
    found = without_first_reads(
        _without_backlogs(context, group, topic, found, steps, starts, emptied), steps, starts, emptied, times
    )
    return [*found, *_jumps_after_absence(context, group, topic, unproven, steps, starts, emptied)]


def _without_backlogs(
    context: RuleContext,
    group: str,
    topic: str,
    jumps: list[Jump],
    steps: Mapping[int, Steps],
    starts: Mapping[int, int],
    emptied: list[dict[str, Any]],
) -> list[Jump]:
    """The jumps without those over records that were deleted only later, because they were too young for the topic's
    retention when the group came back. Such a jump is a backlog that the group read in few commits."""
    if not jumps:
        return jumps
    partitions = sorted({each.partition for each in jumps})
    deletions = log_deletions(context, topic, partitions, ends_of_topic(context, group, topic))
    if deletions.is_by_request:
        # A request deletes records of any age. This one moved the start of the log to where it is now.
        return [each for each in jumps if each.after.offset >= starts[each.partition]]
    retention = deletions.retention_ms
    if retention is None or deletions.size is not None or deletions.early_times:
        return jumps
    left = [each["at_timestamp_ms"] for each in emptied]
    ends = {(each.partition, each.after.offset) for each in jumps}
    found = []
    for jump in jumps:
        until = jump.after.from_ms or 0
        commits = [each for pair in steps[jump.partition] for each in pair]
        if not any(
            until - retention < (each.from_ms or 0) <= away <= until
            # Records written since that commit may have been deleted by age since then.
            and (each.from_ms or 0) < context.at_ms - retention
            and each.offset <= jump.before
            and (jump.partition, each.offset) not in ends
            for each in commits
            for away in left
        ):
            found.append(jump)
    return found


def _jumps_after_absence(
    context: RuleContext,
    group: str,
    topic: str,
    jumps: list[Jump],
    steps: Mapping[int, Steps],
    starts: Mapping[int, int],
    emptied: list[dict[str, Any]],
) -> list[Jump]:
    """The jumps of a group that came back after the topic's retention had deleted what it had not read. The present
    start of a log proves nothing about earlier jumps. The proof is the age of the records, or timestamps so old that
    records are deleted as soon as they are written."""
    back = [each for each in jumps if away_before(emptied, [each]) is not None]
    partitions = sorted({each.partition for each in back})
    if not back:
        return []
    deletions = log_deletions(context, topic, partitions, ends_of_topic(context, group, topic))
    if deletions.early_times:
        return without_first_reads(back, steps, starts, emptied, context.limit(f"{KIND}.times"))
    if deletions.retention_ms is None or deletions.never_by_age is not None:
        return []
    logs = {each["partition"]: each for each in context.look(LOG_SIZES, topic=topic).to_pylist()}
    changes = retention_changes(context, topic)
    by_retention: dict[int | None, list[Jump]] = {}
    for each in back:
        then = retention_at(changes, each.after.from_ms or 0, deletions.retention_ms)
        by_retention.setdefault(then, []).append(each)
    over = [
        jump
        for retention, own in by_retention.items()
        if retention is not None
        for jump in over_deleted(context, own, steps, logs, retention)
    ]
    return without_polls(over, steps, emptied, context.limit(f"{KIND}.times"))


def _largest_file(context: RuleContext, row: dict[str, Any]) -> int:
    """The number of offsets in the largest file of a log, or in the whole log if the source does not show its files."""
    logs = context.look(LOG_SIZES, topic=row["topic"]).to_pylist()
    files = [each["offset"] for log in logs if log["partition"] == row["partition"] for each in log["sizes"] or ()]
    places = [row["log_start_offset"], *(each for each in files if each > row["log_start_offset"]), row["end_offset"]]
    return max((after - before for before, after in pairwise(places)), default=0)


def _incident(context: RuleContext, group: str, topic: str, jumps: list[Jump], rows: list[dict[str, Any]]) -> Incident:
    jumps.sort(key=lambda each: (each.after.from_ms or 0, each.partition))
    since, until = jumps[0].after.from_ms or 0, jumps[-1].after.from_ms or 0
    waiting = sum(each["lost"] or 0 for each in rows)
    lost = sum(each.lost for each in jumps) + waiting
    lasts = max(until - since, 1)
    a_minute = (
        round(sum(each.lost for each in jumps) * MINUTE_MS / lasts)
        if _moments(jumps) > 2 and lasts >= 10 * SECOND_MS
        else None
    )
    speed = f", about {counted(a_minute, 'record')} a minute" if a_minute else ""
    goes_on = waiting > 0 or context.at_ms - until <= 3 * lasts / max(len(jumps), 1)
    more = (
        f" Among them are {counted(waiting, 'record')} between its last commit and the start of the log, over "
        "which it has yet to jump."
        if waiting
        else ""
    )
    keeps, causes = deleted_by(context, group, topic, jumps, rows)
    starts = {each["partition"]: each["log_start_offset"] for each in rows}
    certain = waiting + sum(
        each.at_least or (each.lost if each.after.offset >= starts[each.partition] else 0) for each in jumps
    )
    # A group that was away may read a backlog in few commits, and the topic may have deleted it later.
    is_bound = certain < lost and any(each.at_least is not None for each in jumps)
    partitions = sorted({each.partition for each in jumps})
    finding = ReportFinding(
        kind=KIND,
        level=Level.CRITICAL if goes_on else Level.HIGH,
        title=RULE.title if len(jumps) > 1 or waiting else "records were deleted before a group read them",
        problem=(
            f"The group {shown(group)} jumped {counted(len(jumps), 'time')} over records of {shown(topic)}"
            f" ({partitions_shown(partitions)}) that "
            + (
                f"are deleted now. In these jumps it lost at most {counted(lost, 'record')}"
                f"{f', and at least {certain}' if certain else ''}.{more}{keeps}"
                if is_bound
                else f"had been deleted before it read them: about {counted(lost, 'record')}{speed}.{more}{keeps}"
            )
        ),
        impact=(
            "The group has not read these records, and they are deleted. This continues as long as the group is this "
            "slow."
            if goes_on
            and causes["too_slow"].refuted_by is None
            and "away" not in causes
            and not any(each.is_certain for each in causes.values())
            else (
                "What was deleted before a run of the group is lost to it."
                if is_bound
                else "No member of the group has read these records, and they are deleted."
            )
        ),
        consequence="data_lost",
        group_ids=(group,),
        topics=(topic,),
        partitions=tuple(partitions),
        since_timestamp_ms=since,
        since_note="the first jump that may be over deleted records" if is_bound else None,
        is_going_on=goes_on,
        scale=(
            ({"records_lost_at_least": certain} if certain else {})
            | {"records_lost_in_jumps_at_most": lost, "jumps": len(jumps)}
            if is_bound
            else {"records_lost": lost, "jumps": len(jumps), "records_lost_a_minute": a_minute or 0}
        ),
        symptom_confidence="medium",
        why_not_sure=f"{_ESTIMATED}; {_SINCE_WHEN if EARLY in causes else _BACKLOGS}" if is_bound else _ESTIMATED,
        evidence=tuple(
            Evidence(
                f"{each.topic}-{each.partition}: from {each.before} to {each.after.offset}",
                OFFSETS,
                each.after.log_partition,
                each.after.log_offset,
                each.after.from_ms,
            )
            for each in jumps[:MOST_EVIDENCE]
        ),
        evidence_count=len(jumps),
        rows=(Rows("lag", of_group(group)),),
        next=(
            context.see("List how its offsets moved", Rows("history", of_group(group))),
            context.see("List where logs start, and where the group is", Rows("lag", of_group(group))),
        ),
        measured={"lost": lost, "jumps": len(jumps)},
        thresholds=context.limits_of(f"{KIND}.commits", f"{KIND}.times"),
    )
    return with_changed_retention(context, group, topic, jumps, Incident(finding, lost, causes))


def _moments(jumps: list[Jump]) -> int:
    """How many times a group jumped. When it comes back, it jumps in all its partitions at once."""
    times = [each.after.from_ms or 0 for each in jumps]
    return 1 + sum(later - earlier > SECOND_MS for earlier, later in pairwise(times))


def _ask_for_settings(context: RuleContext, case: dict[str, Any]) -> str | None:
    words = ("--describe", "--all", *option("--topic", case["topic_list"][0]))
    return context.ask_kafka("", "kafka-configs", *words).command


RULE = incident_rule(
    kind=KIND,
    title="records are deleted before a group reads them",
    about="""\
Commits of lagging groups that jump `times` times as far as usual, from offsets that the log no longer has. Among
the first `commits` of a partition, a jump counts only if the start of the log is in it. The loss is an estimate:
all jumps, minus what the group usually reads. Backlogs of jobs are left out; if a first commit may be one, the
loss has bounds.""",
    tables=("lag", "regressions", "timeline", "log_ends"),
    levels={Level.CRITICAL: "it goes on", Level.HIGH: "it has ended"},
    find=_find,
    listing=Rows("lag", ("problem=below_log_start",)),
    causes=(
        SHORTENED,
        PossibleCause(
            "too_much",
            "the topic is limited in size, and the group is slower, or was away",
            "for: retention.bytes of the topic or of all brokers",
        ),
        PossibleCause(
            "too_slow",
            "the group is slower than the retention of the topic",
            "refuted if no record is deleted by its age, or if it was away that long before each jump",
        ),
        PossibleCause(
            "away",
            "the group was away for longer than the retention of the topic",
            "for: it had no members before each jump",
        ),
        PossibleCause(
            "by_hand",
            "somebody deletes records",
            "for: no record is deleted by its age, and no size limit is known; certain if logs with a single replica "
            "begin in the middle of a file",
        ),
        PossibleCause(
            EARLY,
            "a producer writes timestamps far in the past, such as seconds instead of milliseconds",
            "certain if the records left have timestamps from long before the topic was created",
        ),
    ),
    questions=(
        Question(
            "too_much",
            "too_slow",
            "Is the topic limited in size (retention.bytes)?",
            _ask_for_settings,
            "if_undecided",
        ),
        Question(
            "by_hand",
            "away",
            "Has somebody run kafka-delete-records (a request DeleteRecords in the request log of the brokers)?",
        ),
        Question(
            "by_hand",
            "too_slow",
            "Has somebody run kafka-delete-records (a request DeleteRecords in the request log of the brokers)?",
        ),
    ),
    thresholds=(
        Threshold(
            "commits",
            "count",
            5,
            "the fewest commits of a partition that show its usual distance",
            "fewer do not show what is usual",
        ),
        Threshold(
            "times",
            "count",
            4,
            "how many times the usual distance makes a commit a jump",
            "polls differ in size",
        ),
    ),
    folds=(
        Folds("offsets_below_log_start", ("group_id",)),
        Folds("group_stands_still"),
        Folds("too_slow"),
    ),
)

RULES = (RULE,)
