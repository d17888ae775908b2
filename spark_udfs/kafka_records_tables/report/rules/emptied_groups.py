"""Groups that kept up with their topics until their last member left, and were not started again."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.facts.departures import LEAST_SESSION_MS, Departures, departures
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
_OF_LAG: Final = ["group_id", "topic", "partition", "lag", "end_offset"]
_MOST_CLOSE: Final = 20
_MOST_ON_BROKERS: Final = 5
"""The number of groups with the most waiting records of which the commits are read, from files and from brokers."""
_SEVERAL: Final = 3
"""A group of several members was probably no test, even if it has been away for so many times its life."""
_LONG_MS: Final = 5 * MINUTE_MS
"""A deployment takes less."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A group without members, and the topic with most of its waiting records."""

    group: str
    at_ms: int
    """When its last member left."""
    lags: Sequence[Mapping[str, Any]]
    """The rows of `lag` for partitions with waiting records."""
    lives: Sequence[MemberLife]
    joined_ms: int
    """When its first known member joined."""

    @property
    def lived_ms(self) -> int:
        return self.at_ms - self.joined_ms

    @property
    def topic(self) -> str:
        return str(max(self.lags, key=lambda each: each["lag"])["topic"])

    @property
    def waiting(self) -> int:
        return sum(each["lag"] for each in self.lags)

    @property
    def last_ones(self) -> list[MemberLife]:
        """The members that the group had shortly before it became empty."""
        return [each for each in self.lives if (each.left_ms or 0) > self.at_ms - MINUTE_MS]


def _find(context: RuleContext) -> list[Incident]:
    suspects = [each for each in _suspects(context) if not _expires(context, each)]
    suspects = suspects[: _MOST_CLOSE if context.is_stored else _MOST_ON_BROKERS]
    replaced = _replaced(context, suspects)
    suspects = [each for each in suspects if each.group not in replaced]
    groups = tuple(each.group for each in suspects)
    spans: dict[str, dict[Place, list[Span]]] = {}
    for key, of_place in commit_spans(context, groups).items():
        spans.setdefault(key[0], {})[key[1:]] = of_place
    ends = {each.group: ends_of_topic(context, each.group, each.topic) for each in suspects}
    found = [
        each
        for each in suspects
        if _goes_on(context, ends[each.group], each)
        and _kept_up(ends[each.group], spans.get(each.group, {}), each.topic, each.lived_ms)
    ]
    if found:
        # Read the commits of all these groups at once; `departures` then finds them.
        context.look("offset_commits", tuple(each.group for each in found))
    return [_incident(context, each, ends[each.group]) for each in found]


def _suspects(context: RuleContext) -> list[_Suspect]:
    """The groups that have had no members for longer than ever before, and have partitions with waiting records. Groups
    with the most waiting records come first."""
    groups = without_old_copies(context, context.table("groups"))
    groups = kept(groups, pc.equal(groups["member_count"], 0), pc.not_equal(groups["group_kind"], "share"))
    there = set(groups["group_id"].to_pylist())
    limit = context.at_ms - context.limit(f"{KIND}.after")
    emptied = {
        group: at_ms for group, at_ms in context.once(stopped_groups).items() if group in there and at_ms <= limit
    }
    if not emptied:
        return []
    lag = context.table("lag")
    lag = kept(lag, pc.greater(lag["lag"], 0), pc.is_null(lag["problem"]), equal(lag, "group_id", *emptied))
    order = [("lag_sum", "descending"), ("group_id", "ascending")]
    worst = grouped(lag, ["group_id"], [("lag", "sum")]).sort_by(order)["group_id"].slice(0, MOST_GROUPS).to_pylist()
    of_groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in kept(lag.select(_OF_LAG), equal(lag, "group_id", *worst)).to_pylist():
        of_groups.setdefault(row["group_id"], []).append(row)
    lives = member_lives(context, worst)
    found = []
    for group in worst:
        lags = of_groups[group]
        joined = [each.joined_ms for each in lives.get(group, ()) if each.joined_ms is not None]
        if joined and not may_return(context, lives[group]) and RANDOM not in pattern_of(group):
            found.append(_Suspect(group, emptied[group], lags, lives[group], min(joined)))
    return found


def _expires(context: RuleContext, suspect: _Suspect) -> bool:
    """Whether the offsets of the group expire so soon that `offsets_expiring` reports it."""
    if suspect.lived_ms < context.limit("offsets_expiring.in_use_for"):
        return False
    rows = context.rows_of_group("expirations", suspect.group)
    soonest = pc.min(kept(rows, equal(rows, "kind", "offset"))["expires_timestamp_ms"]).as_py()
    return soonest is not None and soonest - context.at_ms <= context.limit("offsets_expiring.within")


def _replaced(context: RuleContext, suspects: Sequence[_Suspect]) -> set[str]:
    """The groups that another deployment has replaced: a group with members reads the same topics with clients of the
    same application, and began in the second half of the life of this one or after it."""
    if not suspects:
        return set()
    readers = _readers(context, {topic for each in suspects for life in each.lives for topic in life.topics})
    rivals = {
        each.group: sorted({name for life in each.lives for topic in life.topics for name in readers.get(topic, ())})
        for each in suspects
    }
    lives = member_lives(context, sorted({name for names in rivals.values() for name in names})[:MOST_GROUPS])
    found = {each.old for each in successions(context)}
    for suspect in suspects:
        since = suspect.joined_ms + suspect.lived_ms // 2
        for name in rivals[suspect.group]:
            joined = [each.joined_ms for each in lives.get(name, ()) if each.joined_ms is not None]
            if joined and min(joined) > since and common_words(suspect.group, suspect.lives, name, lives[name]):
                found.add(suspect.group)
    return found


def _readers(context: RuleContext, topics: set[str]) -> dict[str, list[str]]:
    """The groups with members, share groups among them, by each of the given topics that they read."""
    groups = context.table("groups")
    alive = kept(groups, pc.greater(groups["member_count"], 0))["group_id"].combine_chunks()
    names = ["group_id", "topic"]
    rows = pa.concat_tables(
        kept(context.table(each), equal(context.table(each), "topic", *topics)).select(names)
        for each in ("current_offsets", "share_group_topics")
    )
    rows = rows.filter(pc.is_in(rows["group_id"], alive)).group_by(names).aggregate([])
    found: dict[str, list[str]] = {}
    for group, topic in zip(rows["group_id"].to_pylist(), rows["topic"].to_pylist(), strict=True):
        found.setdefault(topic, []).append(group)
    return found


def _goes_on(context: RuleContext, ends: LogEnds, suspect: _Suspect) -> bool:
    """Whether records were still written to the topic long after the group became empty."""
    latest = [
        last[1]
        for each in suspect.lags
        if each["topic"] == suspect.topic and (last := ends.latest((suspect.topic, each["partition"]))) is not None
    ]
    return bool(latest) and max(latest) >= suspect.at_ms + (context.at_ms - suspect.at_ms) // 2


def _written_since(ends: LogEnds, suspect: _Suspect) -> int | None:
    """How many records were written to the topic since the group became empty; None if that is unknown."""
    found = 0
    for each in suspect.lags:
        if each["topic"] == suspect.topic:
            before = ends.end_at((suspect.topic, each["partition"]), suspect.at_ms)
            if before is None:
                return None
            found += each["end_offset"] - before
    return found


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


def _incident(context: RuleContext, found: _Suspect, ends: LogEnds) -> Incident:
    group, last = shown(found.group), found.last_ones
    names = list(dict.fromkeys(each.name for each in last))
    away = max(context.at_ms - found.at_ms, 1)
    since = _written_since(ends, found)
    rate = (
        ""
        if since is None
        else f" To {shown(found.topic)}, {since * MINUTE_MS / away:.0f} more are written each minute."
    )
    emptied = Evidence(
        f"the last member of {group} is gone",
        OFFSETS,
        last[-1].log_partition,
        max(each.left_at or 0 for each in last),
        found.at_ms,
    )
    left = departures(context, found.group, found.at_ms - MINUTE_MS)
    is_old = away <= (_SEVERAL if len(last) > 1 else 1) * found.lived_ms
    topics = tuple(sorted({each["topic"] for each in found.lags}))
    rows = Rows("lag", of_group(found.group))
    finding = ReportFinding(
        kind=KIND,
        level=(Level.NOTE if not is_old else Level.HIGH if _timed_out(left) and away >= _LONG_MS else Level.MODERATE),
        title=RULE.title,
        problem=(
            f"The group {group} has had no members since {moment(found.at_ms)}. The last "
            f"{'one was' if len(names) == 1 else 'ones were'} {listed(names)}. It had kept up with "
            f"{shown(found.topic)} for {length(found.lived_ms)}, as far as the log shows, and had never been without "
            f"members for so long. {counted(found.waiting, 'record')} wait.{rate}"
        ),
        impact=(
            "The group does not read these records. Nothing is lost: when members come back, they continue at the "
            "committed offsets, until the topic deletes records or the offsets expire."
        ),
        consequence="work_stopped",
        group_ids=(found.group,),
        topics=topics,
        partitions=tuple(sorted({each["partition"] for each in found.lags})) if len(topics) == 1 else (),
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
    return Incident(finding, found.waiting, _verdicts(found, names, left, emptied))


def _timed_out(left: Departures) -> bool:
    """Whether most of the last members had committed nothing for a known session timeout, and missed commits."""
    return left.session_ms is not None and left.may_have_timed_out


def _verdicts(found: _Suspect, names: Sequence[str], left: Departures, emptied: Evidence) -> dict[str, Verdict]:
    who, group, is_one = listed(names), shown(found.group), len(names) == 1
    start = NextStep(
        f"Find out whether {group} should run. If so, start it again: it continues at its committed offsets, and no "
        "offset has to be reset. If not, delete the group, so that its lag alarms nobody"
    )
    silent = median(left.silences) if left.silences else None
    limit = LEAST_SESSION_MS if left.session_ms is None else left.session_ms
    session = (
        f"any session timeout that brokers allow by default ({length(limit)})"
        if left.session_ms is None
        else f"the session timeout ({length(limit)})"
    )
    orderly = (
        Evidence(f"half of them had committed within {length(silent)} before, which is less than {session}")
        if silent is not None and silent < limit
        else None
    )
    timed = (
        Evidence(f"half of them had committed nothing for {length(silent)} or longer, which is not less than {session}")
        if silent is not None and _timed_out(left)
        else None
    )
    return {
        _STOPPED: Verdict(
            f"{who} {'was' if is_one else 'were'} stopped and left the group: scaled to zero, removed, or not started "
            "again after a deployment.",
            evidence_for=(emptied,) if orderly is None else (orderly, emptied),
            evidence_against=() if timed is None else (timed,),
            steps=(start,),
        ),
        _DIED: Verdict(
            f"The process{'' if is_one else 'es'} of {who} crashed, hung or lost the network, and the group removed "
            f"{'it' if is_one else 'them'}. Nothing has started again.",
            evidence_for=() if timed is None else (timed,),
            refuted_by=orderly,
            lacked=("the session timeout of its members",) if left.session_ms is None and orderly is None else (),
            steps=(
                NextStep(
                    f"Look why {who} ended or hung: exit codes, the machine, the last lines of "
                    f"{'its log' if is_one else 'their logs'}"
                ),
                start,
            ),
        ),
    }


RULE = incident_rule(
    kind=KIND,
    title="a group that was at work has no members, and records wait",
    about="""\
Groups that kept up with a topic, and have had no members for longer than `after` and than three times their longest
earlier absence, while records are still written. Not found: jobs, which read what has accumulated and end; groups that
another group has replaced; and those that `offsets_expiring` reports.""",
    tables=("groups", "timeline", "lag", "members", "expirations", "current_offsets", "share_group_topics"),
    levels={
        Level.HIGH: "its members timed out, at least five minutes ago",
        Level.MODERATE: "its members left, so somebody may have stopped it on purpose",
        Level.NOTE: "it has been away for longer than it had members (with several members: for more than three times "
        "that)",
    },
    find=_find,
    listing=Rows("groups", ("member_count=0",)),
    causes=(
        PossibleCause(
            _STOPPED,
            "the members were stopped, and not started again",
            "for: they committed until they left; against: session timeouts",
        ),
        PossibleCause(
            _DIED,
            "the processes crashed or hung, and were removed",
            "for: they had committed nothing for the session timeout before; refuted if they had",
        ),
    ),
    questions=(
        Question(_STOPPED, _DIED, "Did somebody, or a deployment, stop these processes?"),
        Question(_DIED, _STOPPED, "Did these processes crash, or was their machine lost?"),
    ),
    thresholds=(Threshold("after", "duration", "1m", "how long a group has no members", "a restart takes less"),),
)

RULES = (RULE,)
