"""Groups that commit the offset of the last processed record instead of the next one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import (
    equal,
    grouped,
    kept,
    numbers,
    true_where,
    with_columns,
)
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    MemberLife,
    Place,
    Span,
    commit_spans,
    ends_of_topic,
    gains_of,
    member_lives,
    names_of,
)
from kafka_records_tables.report.facts.low_commits import LowCommits, low_commits
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import AT_LEAST, Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.reset_steps import reset_from_file
from kafka_records_tables.topics import OFFSETS

KIND: Final = "commits_one_too_low"
_OWN_OFFSET: Final = "commits_own_offset"
_KEEPS_BACK: Final = "keeps_last_record_back"
_NEVER: Final = -(2**62)
_MOST_OTHERS: Final = 0.2
"""At most this share of resting commits may be further below the end, as those of a stopped group are."""
_TOGETHER: Final = 3
"""If two records were written together and only one remained uncommitted this many times, a window or batch is ruled
out."""


@dataclass(frozen=True, slots=True)
class _Starts:
    """How often members got partitions whose committed offset was one too low."""

    repeated: int
    is_least: bool
    """Whether members kept partitions in a rebalance; they may then have read from the committed offset."""
    recommits: int
    """How often such a member's first commit had the same offset again."""


def _find(context: RuleContext) -> list[Incident]:
    names = _suspects(context) if context.is_stored else []
    spans: dict[str, dict[Place, list[Span]]] = {each: {} for each in names}
    for (group, topic, partition), of_place in commit_spans(context, names).items():
        spans[group][topic, partition] = of_place
    names = [each for each in names if _may_rest(context, spans[each])]
    # Programs that copy offsets from another cluster may stay below the end. Their groups have no members.
    lives = member_lives(context, names) if names else {}
    found = [_incident(context, group, spans[group], of_group) for group, of_group in lives.items()]
    return [each for each in found if each is not None]


def _suspects(context: RuleContext) -> list[str]:
    """The groups with exactly one unread record in some partitions, written before the last commit, if no later commit
    reached the end of another partition."""
    rows = context.table("lag")
    rows = kept(rows, pc.is_valid(rows["unread"]), pc.greater(rows["end_offset"], rows["log_start_offset"]))
    is_one = true_where(pc.equal(rows["unread"], 1))
    is_low = is_one & true_where(pc.greater_equal(rows["commit_timestamp_ms"], rows["unread_timestamp_ms"]))
    is_low &= true_where(pc.equal(rows["held_back"], 0))
    at_ms = numbers(rows, "commit_timestamp_ms")
    reached_ms = np.where(true_where(pc.equal(rows["unread"], 0)), at_ms, _NEVER)
    rows = with_columns(
        rows,
        low=is_low.astype(np.int64),
        other=(is_one & ~is_low).astype(np.int64),
        low_ms=np.where(is_low, at_ms, -_NEVER),
        reached_ms=reached_ms,
    )
    sums = [("low", "sum"), ("other", "sum"), ("low_ms", "min"), ("reached_ms", "max")]
    groups = grouped(rows, ["group_id"], sums)
    groups = kept(
        groups,
        pc.greater(groups["low_sum"], 0),
        pc.equal(groups["other_sum"], 0),
        pc.less(groups["reached_ms_max"], groups["low_ms_min"]),
    )
    names: list[str] = groups.sort_by([("low_sum", "descending")])["group_id"].slice(0, MOST_GROUPS).to_pylist()
    return names


def _may_rest(context: RuleContext, spans: Mapping[Place, Sequence[Span]]) -> bool:
    """Whether enough commits remained valid for long enough, regardless of log ends."""
    least_ms, least = context.limit(f"{KIND}.quiet"), context.limit(f"{KIND}.rests")
    lasted = ((each.to_ms or context.at_ms) - (each.from_ms or 0) for of_place in spans.values() for each in of_place)
    return bool(sum(each >= least_ms for each in lasted) >= least)


def _incident(
    context: RuleContext,
    group: str,
    spans: Mapping[Place, Sequence[Span]],
    lives: Sequence[MemberLife],
) -> Incident | None:
    ends = {topic: ends_of_topic(context, group, topic) for topic in {topic for topic, _ in spans}}
    low = low_commits(spans, ends, context.limit(f"{KIND}.quiet"), context.at_ms)
    short = sorted(low.one_short, key=lambda each: each.span.from_ms or 0)
    if len(short) < context.limit(f"{KIND}.rests") or len(short) < (1 - _MOST_OTHERS) * len(low.rests):
        return None
    places = sorted({each.place for each in short})
    reached_ms = None if low.reached is None else low.reached[1].from_ms or 0
    first = min((low.first[place] for place in low.first), key=lambda each: (each.from_ms or 0, each.log_offset))
    since_ms = first.from_ms or 0
    there = [each for each in lives if each.left_at is None or (each.left_ms or 0) >= since_ms]
    new = [each for each in there if reached_ms is not None and reached_ms < (each.joined_ms or 0) <= since_ms]
    since_ms = min([since_ms, *(each.joined_ms or 0 for each in new)])
    by = new or there
    former = [each for each in lives if reached_ms is not None and each.was_there(reached_ms)]
    starts = _starts(context, group, low, spans)
    again = {f"records_repeated{AT_LEAST if starts.is_least else ''}": starts.repeated} if starts.repeated else {}
    topics = tuple(sorted({topic for topic, _ in places}))
    longest = max(each.stayed_ms for each in short)
    until = "" if reached_ms is None else f" Until {moment(reached_ms)} its commits reached the ends."
    least = "at least " if starts.is_least else ""
    finding = ReportFinding(
        kind=KIND,
        level=Level.MODERATE if starts.repeated else Level.LOW,
        title=RULE.title,
        problem=(
            f"The commits of {shown(group)} stay one below the end: {counted(len(short), 'time')} in "
            f"{places_shown(places)}, for up to {length(longest)} without a new record, and since {moment(since_ms)} "
            f"none has reached the end of a log.{until} The remaining lag of 1 is not an unread record."
        ),
        impact=(
            "Each member that gets one of these partitions reads its last record again"
            + (f": {least}{counted(starts.repeated, 'record')} so far." if starts.repeated else ".")
        ),
        consequence="work_repeated" if starts.repeated else "none",
        group_ids=(group,),
        topics=topics,
        partitions=tuple(number for _, number in places) if len(topics) == 1 else (),
        who=tuple(
            Actor("was the first to commit this way" if new else "commits so", group, each.member_id, each.client_id)
            for each in by[:1]
        ),
        since_timestamp_ms=since_ms,
        since_note=None if reached_ms is not None else "or earlier: no commit is known that reached the end",
        is_going_on=True,
        scale={**again, "partitions": len(places)},
        evidence=(
            *((_shown(*low.reached, "the last commit that reached the end"),) if low.reached is not None else ()),
            *(
                _shown(
                    each.place,
                    each.span,
                    f"one below the end, with no new record and no commit for {length(each.stayed_ms)}",
                )
                for each in short
            ),
        )[:MOST_EVIDENCE],
        evidence_count=len(short) + (low.reached is not None),
        rows=(Rows("history", of_group(group)), Rows("lag", of_group(group))),
        next=(context.see("List what the group committed, and when", Rows("history", of_group(group))),),
        measured={"rests": len(short), "stayed_ms": longest},
        thresholds=context.limits_of(f"{KIND}.rests", f"{KIND}.quiet"),
    )
    together = sum(each.came_together for each in short)
    kept_one = Evidence(f"{counted(together, 'time')} two records came together, and only the last one was kept back")
    stays = Evidence(f"{counted(len(short), 'time')} the commits stayed exactly one below the end")
    repeats = Evidence(
        f"{counted(starts.recommits, 'time')} a member that got a partition committed the same offset again"
    )
    verdicts = {
        _OWN_OFFSET: Verdict(
            f"The application of {shown(group)} commits the offset of the record that it has processed, not the next "
            "one (offset instead of offset + 1).",
            evidence_for=(stays, *((repeats,) if starts.recommits else ())),
            steps=(
                _repair(by, former),
                reset_from_file(
                    context,
                    group,
                    "Until then, to avoid repeating the last records at the next start: while the group has no "
                    "members,",
                    [(place, spans[place][-1].offset + 1) for place in places],
                ),
            ),
        ),
        _KEEPS_BACK: Verdict(
            f"{shown(group)} commits a record only when the next one has arrived.",
            refuted_by=kept_one if together >= _TOGETHER else None,
            evidence_against=(repeats,) if starts.recommits else (),
        ),
    }
    return Incident(finding, starts.repeated, verdicts)


def _shown(place: Place, span: Span, what: str) -> Evidence:
    shows = f"{span.offset} of {place[0]}-{place[1]}: {what}"
    return Evidence(shows, OFFSETS, span.log_partition, span.log_offset, span.from_ms)


def _repair(by: Sequence[MemberLife], former: Sequence[MemberLife]) -> NextStep:
    before = f", or go back to the version of {listed(names_of(former)[-1:])}" if former and by else ""
    return NextStep(
        f"Have the application of {listed(names_of(by)[:1])} commit the offset after the last processed record: "
        f"record.offset() + 1, or in Java commitSync() without arguments{before}"
    )


def _starts(context: RuleContext, group: str, low: LowCommits, spans: Mapping[Place, Sequence[Span]]) -> _Starts:
    rows = context.rows_of_group("timeline", group)
    rows = kept(rows, equal(rows, "event", "assignment_changed", "rebalance_completed"))
    got: dict[Place, list[int]] = {}
    gained: dict[tuple[int, int], set[str]] = {}
    rebalances: dict[tuple[int, int], tuple[int, int]] = {}
    for row in rows.to_pylist():
        at = row["log_partition"], row["log_offset"]
        if row["event"] == "assignment_changed":
            for place in gains_of(context, row):
                got.setdefault(place, []).append(row["at_timestamp_ms"] or 0)
                gained.setdefault(at, set()).add(row["member_id"])
        elif row["group_kind"] == "classic":
            rebalances[at] = row["at_timestamp_ms"] or 0, row["member_count"] or 0
    since = {place: span.from_ms or 0 for place, span in low.first.items()}
    repeated = sum(at_ms > since[place] for place in since for at_ms in got.get(place, ()))
    began = min(since.values(), default=0)
    is_least = any(at_ms > began and len(gained.get(at, ())) < count for at, (at_ms, count) in rebalances.items())
    recommits = 0
    for place, from_ms in since.items():
        for span in spans[place]:
            start, end = span.from_ms or 0, span.to_ms if span.to_ms is not None else context.at_ms
            inside = sum(start < at_ms < end for at_ms in got.get(place, ()))
            recommits += inside if start >= from_ms and inside and span.commits - 1 == inside else 0
    return _Starts(repeated, is_least, recommits)


RULE = incident_rule(
    kind=KIND,
    title="a group commits offsets that are one too low",
    about="""\
Groups with members of which `rests` commits stayed one below the end of a log until another record came, for `quiet`
and far longer than the record before took. Transaction markers do not count as records. The files of the topics are
needed.""",
    tables=("lag", "timeline"),
    levels={
        Level.MODERATE: "members have started since then, and have read the last records again",
        Level.LOW: "otherwise",
    },
    find=_find,
    listing=Rows("lag", ("unread=1",)),
    causes=(
        PossibleCause(
            _OWN_OFFSET,
            "the application commits the offset of the record that it has processed, not the next one",
            "for: members that get a partition commit the same offset again",
        ),
        PossibleCause(
            _KEEPS_BACK,
            "the application commits a record only when the next one has arrived",
            "does not apply if only the last of several records was kept back",
        ),
    ),
    questions=(Question(_OWN_OFFSET, _KEEPS_BACK, "Does the application commit record.offset() without adding 1?"),),
    thresholds=(
        Threshold(
            "rests",
            "count",
            6,
            "how many commits must have stayed one below the end",
            "a group may stop with one unread record, but not each time",
        ),
        Threshold(
            "quiet",
            "duration",
            "2s",
            "how long nothing may have been written or committed after each of them",
            "timestamps of producers may differ from those of brokers",
        ),
    ),
)

RULES = (RULE,)
