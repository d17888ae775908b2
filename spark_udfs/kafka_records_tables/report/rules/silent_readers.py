"""Members that read but do not commit, as a cause of offsets that do not move."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from statistics import median
from typing import Final

from kafka_records_tables.report.facts.departures import SESSION_MS, session_timeout
from kafka_records_tables.report.facts.group_facts import commit_spans, member_lives
from kafka_records_tables.report.facts.usual_values import UsualGap, usual_gap
from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, moment, shown
from kafka_records_tables.topics import OFFSETS

PROCESSES: Final = (
    "Do the results or the log of the application show that it processes the records from the committed offset on?"
)
DOES_NOT_COMMIT: Final = PossibleCause(
    "does_not_commit",
    "the application reads, but does not commit",
    "for: members work for much longer than the usual interval between commits; refuted if an offset moves, or if "
    "it is Kafka Streams",
)
_LONG: Final = 3
"""A working member would have committed within this many times the usual commit interval, which is the 95th
percentile."""
_STREAMS: Final = ("stream", "streams")
"""Protocol and kind of Kafka Streams groups. Streams commits offsets itself."""


def reads_without_commits(context: RuleContext, group: str, stays: Sequence[int]) -> Verdict | None:
    """Whether a group whose offsets have all stopped may read without committing. `stays` are how long members with
    waiting records have been in the group since then, in milliseconds. None if a member from before the last commit is
    still there, because its commits worked, or if it is a Kafka Streams group, in which commits cannot be turned
    off."""
    groups = context.rows_of_group("groups", group).to_pylist()
    if any(each["group_kind"] in _STREAMS or each["protocol"] in _STREAMS for each in groups):
        return None
    spans = {key[1:]: of_place for key, of_place in commit_spans(context, (group,)).items() if key[0] == group}
    ended = {place: of_place[-1] for place, of_place in spans.items() if of_place and of_place[-1].to_ms is None}
    last = max(ended.values(), key=lambda each: each.from_ms or 0, default=None)
    if last is None or last.from_ms is None:
        return None
    lives = member_lives(context, [group]).get(group, [])
    later = [each for each in lives if each.joined_ms is not None and each.joined_ms >= last.from_ms]
    if not later or any(each.left_at is None for each in lives if each not in later):
        return None
    times = [[each.from_ms or 0 for each in of_place] for of_place in spans.values()]
    gaps = [after - before for of_place in times for before, after in pairwise(of_place)]
    usual = usual_gap(accumulate(gaps, initial=0))
    stay = median(stays) if stays else 0
    timeout = session_timeout(context, group) or SESSION_MS
    is_long = usual is not None and stay - timeout >= _LONG * usual.high_ms
    is_short = usual is not None and stay <= usual.median_ms
    facts = (_stay_fact(stay, timeout, usual, is_long),) if usual is not None and (is_long or is_short) else ()
    first = later[0]
    stopped = Evidence(
        f"nothing was committed after {moment(last.from_ms)}, in {counted(len(ended), 'partition')}: "
        f"{length((first.joined_ms or 0) - last.from_ms)} later, the first of these members joined",
        OFFSETS,
        first.log_partition,
        first.joined_at,
        first.joined_ms,
    )
    return Verdict(
        f"The application of {shown(group)} reads, but does not commit: a new version or a setting has turned commits "
        "off (enable.auto.commit=false without calls of commit), or they fail. Each new member reads the same records "
        "again.",
        evidence_for=(*facts, stopped) if is_long else (),
        evidence_against=facts if is_short else (),
        lacked=("how often the group committed before",) if usual is None else (),
        steps=(
            NextStep(
                f"Find out whether the application of {shown(group)} still commits (enable.auto.commit, its calls of "
                f"commit, errors in its log), and what was deployed about {moment(last.from_ms)}; before the next "
                "start, set the offsets to what it has processed"
            ),
        ),
    )


def _stay_fact(stay: float, timeout: int, usual: UsualGap, is_long: bool) -> Evidence:
    return Evidence(
        f"half of the members worked for {length(stay - timeout)} or longer without a commit, even if the last "
        f"{length(timeout)} were their session timeout; before, 95 % of the intervals between commits of a partition "
        f"took at most {length(usual.high_ms)}"
        if is_long
        else f"half of the members left within {length(stay)}; before, half of the intervals between commits of a "
        f"partition took {length(usual.median_ms)} or longer"
    )
