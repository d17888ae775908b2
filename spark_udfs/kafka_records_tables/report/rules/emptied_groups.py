"""Groups that kept up with their topics until their last member left, and were not started again."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.departures import Departures, departures
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    MemberLife,
    Place,
    Span,
    commit_spans,
    ends_of_topic,
    member_lives,
)
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.random_names import RANDOM, pattern_of
from kafka_records_tables.report.facts.successor_groups import (
    WITHIN_MS,
    common_words,
    may_return,
    stopped_groups,
    successions,
)
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MINUTE_MS,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KIND: Final = "group_emptied"
_STOPPED, _DIED = "members_stopped", "processes_died"
_LEAST_COMMITS: Final = 5
"""The number of times with commits that are needed to see whether a group keeps up."""
_MOST_LOOKED_AT: Final = 50
_LATE: Final = 10
"""A group keeps up if, at half of its commits, no record had waited longer than this share of the group's life."""


@dataclass(frozen=True, slots=True)
class _Emptied:
    """A group that was working and has no members now."""

    group: str
    lives: Sequence[MemberLife]
    at_ms: int
    """When its last member left."""
    joined_ms: int
    """When its first known member joined."""
    lags: Sequence[Mapping[str, Any]]
    """The rows of `lag` for partitions with waiting records."""
    left: Departures

    @property
    def waiting(self) -> int:
        return sum(each["lag"] for each in self.lags)

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({each["topic"] for each in self.lags}))

    @property
    def last_ones(self) -> list[MemberLife]:
        """The members that the group had shortly before it became empty."""
        return [each for each in self.lives if (each.left_ms or 0) > self.at_ms - MINUTE_MS]


def _find(context: RuleContext) -> list[Incident]:
    found = (_emptied(context, *each) for each in _suspects(context))
    return [_incident(context, each) for each in found if each is not None]


def _suspects(context: RuleContext) -> list[tuple[str, int, list[Mapping[str, Any]]]]:
    """The groups that have had no members for some time, with the time at which each became empty and its partitions
    with waiting records. Groups with the most waiting records come first."""
    groups = without_old_copies(context, context.table("groups"))
    groups = kept(groups, pc.equal(groups["member_count"], 0), pc.not_equal(groups["group_kind"], "share"))
    there = set(groups["group_id"].to_pylist())
    limit = context.at_ms - context.limit(f"{KIND}.after")
    emptied = {group: at_ms for group, at_ms in stopped_groups(context).items() if group in there and at_ms <= limit}
    if not emptied:
        return []
    lag = context.table("lag")
    lag = kept(lag, pc.greater(lag["lag"], 0), pc.is_null(lag["problem"]), equal(lag, "group_id", *emptied))
    of_groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in lag.to_pylist():
        of_groups.setdefault(row["group_id"], []).append(row)
    worst = sorted(of_groups.items(), key=lambda each: -sum(row["lag"] for row in each[1]))
    return [(group, emptied[group], lags) for group, lags in worst[:MOST_GROUPS]]


def _emptied(context: RuleContext, group: str, at_ms: int, lags: list[Mapping[str, Any]]) -> _Emptied | None:
    """The case of a group; None if the group is a job that starts and ends regularly, if another group continues its
    work, or if the records were waiting before it became empty."""
    lives = member_lives(context, [group]).get(group, [])
    joined = [each.joined_ms for each in lives if each.joined_ms is not None]
    if not joined or may_return(context, lives) or RANDOM in pattern_of(group):
        return None
    if group in {each.old for each in successions(context)}:
        return None
    if _expires(context, group, at_ms - min(joined)) or _continues(context, group, lives, at_ms):
        return None
    spans = {key[1:]: each for key, each in commit_spans(context, (group,)).items() if key[0] == group}
    topic = max(lags, key=lambda each: each["lag"])["topic"]
    ends = ends_of_topic(context, group, topic)
    if not _goes_on(context, ends, lags, topic, at_ms) or not _kept_up(ends, spans, topic, at_ms - min(joined)):
        return None
    return _Emptied(group, lives, at_ms, min(joined), lags, departures(context, group, at_ms - MINUTE_MS))


def _expires(context: RuleContext, group: str, lived_ms: int) -> bool:
    """Whether the offsets of the group expire so soon that `offsets_expiring` reports it."""
    if lived_ms < context.limit("offsets_expiring.in_use_for"):
        return False
    rows = context.rows_of_group("expirations", group)
    soonest = pc.min(kept(rows, equal(rows, "kind", "offset"))["expires_timestamp_ms"]).as_py()
    return soonest is not None and soonest - context.at_ms <= context.limit("offsets_expiring.within")


def _continues(context: RuleContext, group: str, lives: Sequence[MemberLife], at_ms: int) -> bool:
    """Whether this group was replaced by another deployment: a group with members that reads the same topics with
    clients of the same application, and began late in the life of this one or after it."""
    topics = {topic for each in lives for topic in each.topics}
    members = context.table("members")
    others = set(kept(members, pc.not_equal(members["group_id"], group))["group_id"].to_pylist())
    lag = context.table("lag")
    same = set(kept(lag, equal(lag, "topic", *topics), equal(lag, "group_id", *others))["group_id"].to_pylist())
    joined = min(each.joined_ms for each in lives if each.joined_ms is not None)
    since = max(joined + (at_ms - joined) // 2, at_ms - WITHIN_MS)
    return any(
        min((each.joined_ms or 0 for each in of_other), default=0) > since
        and common_words(group, lives, other, of_other)
        for other, of_other in member_lives(context, sorted(same)[:MOST_GROUPS]).items()
    )


def _goes_on(context: RuleContext, ends: LogEnds, lags: Sequence[Mapping[str, Any]], topic: str, at_ms: int) -> bool:
    """Whether records were still written to the topic long after the group became empty."""
    latest = [
        last[1]
        for each in lags
        if each["topic"] == topic and (last := ends.latest((topic, each["partition"]))) is not None
    ]
    return bool(latest) and max(latest) >= at_ms + (context.at_ms - at_ms) // 2


def _kept_up(ends: LogEnds, spans: Mapping[Place, Sequence[Span]], topic: str, lived_ms: int) -> bool:
    """Whether, at half of the group's commits, no record of the topic had waited for long. A job differs: it reads the
    records that have accumulated, and ends."""
    places = [place for place in spans if place[0] == topic]
    if not places:
        return False
    place = max(places, key=lambda each: len(spans[each]))
    commits = [each for each in spans[place] if each.from_ms is not None and each.ended_by != "tombstone"]
    if len(commits) < _LEAST_COMMITS:
        return False
    waits = []
    for each in commits[:: max(1, len(commits) // _MOST_LOOKED_AT)]:
        end = ends.end_at(place, each.from_ms)
        if end is None or each.from_ms is None:
            continue
        # If it is unknown when the first unread record was written, that was long ago.
        written_ms = ends.written_ms(place, each.offset) if end > each.offset else each.from_ms
        waits.append(lived_ms if written_ms is None else max(0, each.from_ms - written_ms))
    if len(waits) < _LEAST_COMMITS:
        return False
    return median(waits) <= lived_ms / _LATE


def _incident(context: RuleContext, found: _Emptied) -> Incident:
    group, last = shown(found.group), found.last_ones
    names = list(dict.fromkeys(each.name for each in last))
    away = context.at_ms - found.at_ms
    rate = found.waiting * MINUTE_MS / away
    emptied = Evidence(
        f"the last member of {group} is gone",
        OFFSETS,
        last[-1].log_partition,
        max(each.left_at or 0 for each in last),
        found.at_ms,
    )
    died = found.left.timed_out or found.left.may_have_timed_out
    several = len({each.member_id for each in last}) > 1
    is_known = several or found.at_ms - found.joined_ms > away
    rows = Rows("lag", of_group(found.group))
    finding = ReportFinding(
        kind=KIND,
        level=Level.NOTE if not is_known else Level.HIGH if died else Level.MODERATE,
        title=RULE.title,
        problem=(
            f"The group {group} has had no members since {moment(found.at_ms)}. The last "
            f"{'one was' if len(names) == 1 else 'ones were'} {listed(names)}. It "
            f"had kept up with {listed(found.topics)} for {length(found.at_ms - found.joined_ms)}, as far as the log "
            "shows, and had never been without members for so long. "
            f"{counted(found.waiting, 'record')} wait, {rate:.0f} more each minute."
        ),
        impact=(
            "Nobody reads these records. Nothing is lost: when members come back, they continue at the committed "
            "offsets, until the topic deletes records or the offsets expire."
        ),
        consequence="work_stopped",
        group_ids=(found.group,),
        topics=found.topics,
        partitions=tuple(sorted({each["partition"] for each in found.lags})) if len(found.topics) == 1 else (),
        who=tuple(Actor("left", found.group, each.member_id, each.client_id, each.host) for each in last[:5]),
        since_timestamp_ms=found.at_ms,
        is_going_on=True,
        scale={"records_waiting": found.waiting, "partitions": len(found.lags)},
        evidence=(emptied,),
        evidence_count=1,
        rows=(rows, Rows("timeline", of_group(found.group))),
        next=(
            context.describe_group(found.group, "Ask the brokers whether the group has members by now"),
            context.see("List what waits, by partition", rows),
        ),
        measured={"away_ms": away, "limit_ms": context.limit(f"{KIND}.after")},
        thresholds=context.limits_of(f"{KIND}.after"),
    )
    return Incident(finding, found.waiting, _verdicts(found, names, emptied))


def _verdicts(found: _Emptied, names: Sequence[str], emptied: Evidence) -> dict[str, Verdict]:
    left, who, group = found.left, listed(names), shown(found.group)
    start = NextStep(
        f"Find out whether {group} should run. If so, start it again: it continues at its committed offsets, and no "
        "offset has to be reset. If not, delete the group, so that nobody is alarmed by its lag"
    )
    silent = sorted(left.silences)
    session = "the session timeout" if left.session_ms is None else f"the session timeout ({length(left.session_ms)})"
    shortest = f"{length(silent[0])}" if silent else ""
    timed = Evidence(f"they had committed nothing for {shortest} or longer, as long as {session}, when they were gone")
    orderly = Evidence(f"they had committed {shortest} before, less than {session}") if silent else None
    died = left.timed_out or left.may_have_timed_out
    is_one = len(names) == 1
    return {
        _STOPPED: Verdict(
            f"{who} {'was' if is_one else 'were'} stopped and left the group: scaled to zero, removed, or not started "
            "again after a deployment.",
            evidence_for=(emptied, *((orderly,) if orderly is not None and left.left_by_themselves else ())),
            refuted_by=timed if left.timed_out else None,
            steps=(start,),
        ),
        _DIED: Verdict(
            f"The process{'' if is_one else 'es'} of {who} ended without leaving the group (a crash, a lost machine or "
            "network), and nothing has started again.",
            evidence_for=(timed,) if died else (),
            refuted_by=orderly if left.left_by_themselves else None,
            steps=(
                NextStep(
                    f"Look why {who} ended: exit codes, the last lines of {'its log' if is_one else 'their logs'}, the "
                    "machine"
                ),
                start,
            ),
        ),
    }


RULE = incident_rule(
    kind=KIND,
    title="a group that was at work has no members, and records wait",
    about="""\
Groups without members for longer than `after`, and for longer than three times their longest earlier absence. They kept
up with their topic before: at half of their commits, no record had waited for a tenth of the group's life. Records have
been written since. Jobs that read what has gathered and end are left out; so are groups whose work another group
continues, and those that `offsets_expiring` reports.""",
    tables=("groups", "timeline", "lag", "members", "expirations", "current_offsets", "share_group_topics"),
    levels={
        Level.HIGH: "its members were removed after their session timeout, so that a crash is likely",
        Level.MODERATE: "its members left, so that somebody may have stopped it on purpose",
        Level.NOTE: "it had one member, for a shorter time than it has been away",
    },
    find=_find,
    listing=Rows("groups", ("member_count=0",)),
    causes=(
        PossibleCause(
            _STOPPED,
            "the members were stopped, and not started again",
            "for: they committed until they left; refuted by session timeouts",
        ),
        PossibleCause(
            _DIED,
            "the processes ended without leaving",
            "for: they had committed nothing for the session timeout when they were removed",
        ),
    ),
    questions=(
        Question(_STOPPED, _DIED, "Did somebody, or a deployment, stop these processes?"),
        Question(_DIED, _STOPPED, "Did these processes crash, or was their machine lost?"),
    ),
    thresholds=(Threshold("after", "duration", "1m", "how long a group has no members", "a restart takes less"),),
)

RULES = (RULE,)
