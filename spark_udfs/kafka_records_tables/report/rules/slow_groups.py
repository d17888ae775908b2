"""Groups that read less than is written: they commit, but their backlog grows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept, numbers
from kafka_records_tables.report.facts.client_quotas import lacking_quotas
from kafka_records_tables.report.facts.earlier_writes import most_written
from kafka_records_tables.report.facts.group_facts import (
    MOST_GROUPS,
    LogEnds,
    Place,
    Span,
    asked_ends,
    commit_spans,
    committed_at,
    log_ends,
)
from kafka_records_tables.report.facts.known_logs import ends_of_logs, without_end
from kafka_records_tables.report.facts.moved_groups import without_old_copies
from kafka_records_tables.report.facts.new_topics import NewTopic, new_topic
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Question, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    RuleContext,
    counted,
    length,
    moment,
    of_group,
    partitions_shown,
    shown,
)
from kafka_records_tables.report.rules.fewer_members import CAUSE as FEWER_CAUSE
from kafka_records_tables.report.rules.fewer_members import NAME as FEWER_MEMBERS
from kafka_records_tables.report.rules.fewer_members import weigh_members
from kafka_records_tables.report.rules.key_skew import HotPartition, hot_partition, spread, weigh_skew
from kafka_records_tables.report.rules.new_topics import CAUSE as NEW_TOPIC_CAUSE
from kafka_records_tables.report.rules.new_topics import QUESTIONS as NEW_TOPIC_QUESTIONS
from kafka_records_tables.report.rules.new_topics import by_new_topic, with_new_topic
from kafka_records_tables.report.rules.slow_members import CAUSE as SLOW_MEMBER_CAUSE
from kafka_records_tables.report.rules.slow_members import NAME as SLOW_MEMBER
from kafka_records_tables.report.rules.slow_members import Window, places_behind, weigh_slow_members, what_helps
from kafka_records_tables.report.rules.throttled_clients import CAUSE as THROTTLED_CAUSE
from kafka_records_tables.report.rules.throttled_clients import QUESTIONS, THROTTLED, Reading, weigh_quotas
from kafka_records_tables.report.rules.throttled_groups import by_quota
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    import pyarrow as pa

KIND: Final = "too_slow"
_MOMENTS: Final = 60
"""The number of times at which the backlog is measured."""
_SMALL: Final = 10
"""A group kept up if its backlog was at most a tenth of the present one."""
_MOST_ASKED: Final = 5
"""The maximum number of groups and topics for which running brokers are asked when records were written."""
_USUAL: Final = 2
"""A backlog counts as usual for a group from this number of earlier backlogs of the same size."""
_CHANGED: Final = 5
"""A speed counts as changed if it differs by a fifth."""


@dataclass(frozen=True, slots=True)
class Growth:
    """The backlog of a group in a topic since the group last kept up."""

    places: list[Place]
    since_ms: int
    until_ms: int
    lag: int
    read: int
    written: int
    before: tuple[float, float] | None
    """Records per second that were read and written before that; None if that time was too short."""
    last: Span
    from_ms: int
    """The start of its known history."""
    usual_lag: int
    """The median of its backlog between then and when it last kept up."""
    episodes: int
    """The number of earlier backlogs of this size with which the group caught up."""
    reads: dict[Place, int] = field(default_factory=dict)
    """The number of records read from each partition."""
    written_before: float | None = None
    """The maximum number of records per second written before that; None if unknown."""

    @property
    def rates(self) -> tuple[float, float]:
        """Records per second that have been read and written since."""
        seconds = max(self.until_ms - self.since_ms, 1) / 1000
        return self.read / seconds, self.written / seconds


def _suspects(context: RuleContext) -> dict[tuple[str, str], list[int]]:
    """Groups with members and unread records older than `after`, with their topics and partitions."""

    if not context.is_stored:
        return _suspects_on_brokers(context)
    rows = context.table("progress")
    is_old = numbers(rows, "moment_timestamp_ms") - numbers(rows, "unread_timestamp_ms", 2**62)
    rows = kept(
        rows,
        equal(rows, "state", "ok", "falling_behind"),
        numbers(rows, "end_offset") > numbers(rows, "offset"),
        (is_old >= context.limit(f"{KIND}.after")) | equal(rows, "state", "falling_behind").to_numpy(),
    )
    return _worst(context, rows)


def _suspects_on_brokers(context: RuleContext) -> dict[tuple[str, str], list[int]]:
    """Like `_suspects`, but asks running brokers for the times of the first unread records of groups with a backlog."""

    behind = _worst(context, context.table("lag"))
    if not behind or context.second_look is None:
        return {}
    lag = context.look("lag", tuple(dict.fromkeys(group for group, _ in behind)), times=True)
    is_old = context.at_ms - numbers(lag, "unread_timestamp_ms", 2**62) >= context.limit(f"{KIND}.after")
    found = _worst(context, kept(lag, is_old))
    return {key: found[key] for key in [*found][:_MOST_ASKED]}


def _worst(context: RuleContext, rows: pa.Table) -> dict[tuple[str, str], list[int]]:
    """The groups with members and the largest backlogs (at least `records`), with their topics and partitions."""

    groups = without_old_copies(context, context.table("groups"))
    members = kept(groups, pc.greater(groups["member_count"], 0))["group_id"].combine_chunks()
    rows = kept(rows, pc.is_in(rows["group_id"], members), pc.greater(rows["end_offset"], rows["offset"]))
    found: dict[tuple[str, str], list[int]] = {}
    backlog: dict[tuple[str, str], int] = {}
    for row in rows.select(["group_id", "topic", "partition", "offset", "end_offset"]).to_pylist():
        key = row["group_id"], row["topic"]
        found.setdefault(key, []).append(row["partition"])
        backlog[key] = backlog.get(key, 0) + row["end_offset"] - row["offset"]
    least = context.limit(f"{KIND}.records")
    worst = sorted((key for key in found if backlog[key] >= least), key=lambda key: -backlog[key])
    return {key: found[key] for key in worst[:MOST_GROUPS]}


def find(context: RuleContext) -> list[Incident]:

    suspects = _suspects(context)
    if not suspects:
        return []
    groups = tuple(dict.fromkeys(group for group, _ in suspects))
    spans = commit_spans(context, groups)
    asked = {} if context.is_stored else asked_ends(context, groups)
    found: list[tuple[Incident, NewTopic | None]] = []
    for (group, topic), partitions in suspects.items():
        of_places = {(topic, each): spans.get((group, topic, each), []) for each in partitions}
        ends = log_ends(context) if context.is_stored else asked.get(group)
        growth = None if ends is None else _growth(context, of_places, ends)
        if growth is not None and ends is not None:
            hot = _hot(context, topic, growth, ends)
            incident = _incident(context, group, topic, growth, hot, ends)
            new = new_topic(context, group, spans, ends, (growth.since_ms, growth.until_ms), topic)
            if new is not None:
                places = {number for owner, name, number in spans if (owner, name) == (group, topic)}
                is_even = hot is None and places <= set(incident.finding.partitions)
                incident = with_new_topic(group, incident, new, is_even)
            found.append((incident, new))
    return by_quota(context, by_new_topic(found))


def _hot(context: RuleContext, topic: str, growth: Growth, ends: LogEnds) -> HotPartition | None:
    """The partition that gets most records of a topic, if the group falls behind there."""
    rows = context.table("log_ends")
    partitions = sorted(kept(rows, equal(rows, "topic", topic))["partition"].to_pylist())
    hot = hot_partition(topic, partitions, ends, growth.since_ms, growth.until_ms)
    if hot is None or (topic, hot.partition) not in growth.reads:
        return None
    if growth.before is None:
        return hot
    before = hot_partition(topic, partitions, ends, growth.from_ms, growth.since_ms)
    return replace(hot, was_hot=before is not None and before.partition == hot.partition)


def _growth(context: RuleContext, of_places: dict[Place, list[Span]], ends: LogEnds) -> Growth | None:
    moving = {place: spans for place, spans in of_places.items() if len(spans) >= 2}
    if not moving:
        return None
    began = max(spans[0].from_ms or 0 for spans in moving.values())
    until = max(spans[-1].from_ms or 0 for spans in moving.values())
    if until - began < context.limit(f"{KIND}.lasts"):
        return None
    moments = [began + (until - began) * each // _MOMENTS for each in range(_MOMENTS + 1)]

    def totals(at_ms: int) -> tuple[int, int] | None:
        offsets = [(committed_at(spans, at_ms), ends.end_at(place, at_ms)) for place, spans in moving.items()]
        if any(offset is None or end is None for offset, end in offsets):
            return None
        return sum(each[0] or 0 for each in offsets), sum(each[1] or 0 for each in offsets)

    known = [(at, *found) for at in moments if (found := totals(at)) is not None]
    if len(known) < _MOMENTS // 4:
        return None
    lags = [max(end - offset, 0) for _, offset, end in known]
    last = lags[-1]
    kept_up = max((at for at, lag in enumerate(lags) if lag <= last / _SMALL), default=0)
    usual = sorted(lags[: kept_up + 1])[kept_up // 2]
    start = max((at for at in range(kept_up + 1) if lags[at] <= 2 * usual + 1), default=kept_up)
    if known[-1][0] - known[start][0] < context.limit(f"{KIND}.lasts") or len(known) - start < 6:
        return None
    # in each third of that time, the group read some records, but fewer than were written
    corners = [start + (len(known) - 1 - start) * third // 3 for third in range(4)]
    for one, other in pairwise(corners):
        grows = 10 * (lags[other] - lags[one]) >= last
        if known[other][1] <= known[one][1] or not grows:
            return None
    read, written = known[-1][1] - known[start][1], known[-1][2] - known[start][2]
    if read >= written * (1 - context.limit(f"{KIND}.left_over")):
        return None
    before = None
    if start >= _MOMENTS // 6:
        seconds = max(known[start][0] - known[0][0], 1) / 1000
        before = (known[start][1] - known[0][1]) / seconds, (known[start][2] - known[0][2]) / seconds
    newest = max((spans[-1] for spans in moving.values()), key=lambda each: each.from_ms or 0)
    episodes = earlier_backlogs(lags[: kept_up + 1], last)
    times = known[start][0], known[-1][0]
    reads = {
        place: (committed_at(spans, times[1]) or 0) - (committed_at(spans, times[0]) or 0)
        for place, spans in moving.items()
    }
    wrote = (
        before[1] if before is not None else most_written(ends, sorted(moving), times, context.limit(f"{KIND}.lasts"))
    )
    return Growth(
        sorted(moving), *times, last, read, written, before, newest, known[0][0], usual, episodes, reads, wrote
    )


def earlier_backlogs(lags: list[int], size: int) -> int:
    """How often a backlog grew to at least this size and was then reduced to a tenth of it."""
    count, is_large = 0, False
    for lag in lags:
        if is_large and lag <= size / _SMALL:
            count += 1
        is_large = lag >= size or (is_large and lag > size / _SMALL)
    return count


def _incident(
    context: RuleContext,
    group: str,
    topic: str,
    growth: Growth,
    hot: HotPartition | None = None,
    ends: LogEnds | None = None,
) -> Incident:

    reads, writes = growth.rates
    lag = context.rows_of_group("lag", group)
    lags = kept(lag, equal(lag, "topic", topic)).to_pylist()
    waiting = sum(each["lag"] or 0 for each in lags) or growth.lag
    members = context.rows_of_group("members", group).to_pylist()
    partitions = tuple(sorted({each["partition"] for each in lags}))
    behind, owners = places_behind(lags, waiting)
    is_uneven = 0 < len(behind) < len(partitions)
    slow = [each for each in members if each["member_id"] in owners] if is_uneven and owners else members
    since = Evidence(
        f"{growth.read} records read and {growth.written} written since, {growth.lag} left over at the last commit",
        OFFSETS,
        growth.last.log_partition,
        growth.last.log_offset,
        growth.last.from_ms,
    )
    look = NextStep("Find out why the work became slow (a database, a service it calls, garbage collection)")
    unknown = without_end(context, [group])
    lacked = (ends_of_logs(unknown),) if unknown else ()
    # This rate excludes the time that the group spends on other partitions.
    weighed = _weighed(group, topic, growth, since)
    if hot is not None and not hot.was_hot:
        of_hot = sum(each["lag"] or 0 for each in lags if each["partition"] == hot.partition)
        weighed["key_skew"] = weigh_skew(hot, growth.reads[topic, hot.partition], of_hot, waiting)
        if growth.before is None:
            # It is already known that more is written than the group reads. The hot partition explains why.
            del weighed["more_written"]
    # If `before` is None, there is no known time in which the group kept up.
    kept_up_ms = None if growth.before is None else growth.from_ms
    quota = weigh_quotas(context, Reading(group, topic, growth.since_ms, reads, kept_up_ms), members)
    if quota is not None:
        weighed[THROTTLED] = quota
    if growth.before is not None:
        kept_up = growth.from_ms, growth.since_ms
        fewer = weigh_members(context, group, kept_up, growth.until_ms, (growth.before[0], reads))
        if fewer is not None:
            weighed[FEWER_MEMBERS] = fewer
    throttles = quota is not None and quota.is_certain
    unknown_of_work = _unknown_of_work(context, group, topic)
    steps = (spread(hot),) if hot is not None else ()
    if is_uneven and ends is not None and hot is None and not throttles:
        window = Window(growth.since_ms, growth.until_ms, kept_up_ms)
        some = weigh_slow_members(context, group, lags, behind, window, ends)
        if some is not None:
            # Then the group as a whole is not slow, and more members do not help.
            weighed[SLOW_MEMBER] = replace(some, lacked=some.lacked + unknown_of_work)
            del weighed["work_slower"]
    if not steps and not throttles and SLOW_MEMBER not in weighed:
        steps = (what_helps(members, lags, behind if is_uneven else (), owners),)
    if "work_slower" in weighed:
        weighed["work_slower"] = replace(weighed["work_slower"], lacked=weighed["work_slower"].lacked + unknown_of_work)
    causes = {name: replace(each, lacked=each.lacked + lacked) for name, each in weighed.items()}
    is_slow = "work_slower" in causes and causes["work_slower"].refuted_by is None
    is_short = FEWER_MEMBERS in causes and causes[FEWER_MEMBERS].is_certain
    is_usual = growth.before is not None and growth.episodes >= _USUAL
    finding = ReportFinding(
        kind=KIND,
        level=Level.NOTE if is_usual else Level.HIGH if reads < writes / 2 else Level.MODERATE,
        title=RULE.title if not is_usual else "a group has a backlog as large as it had before",
        problem=(
            f"The group {shown(group)} reads {reads:.1f} records per second of {shown(topic)}"
            f" ({partitions_shown([each for _, each in growth.places])}), and {writes:.1f} are written: its backlog has"
            f" grown since {moment(growth.since_ms)}, for {length(growth.until_ms - growth.since_ms)}, to"
            f" {counted(waiting, 'record')}.{_own_history(growth)}"
            + (
                f" Its other partitions keep up: the waiting records are in {partitions_shown(behind)}."
                if is_uneven
                else ""
            )
        ),
        impact=(
            f"It falls behind by {writes - reads:.1f} records per second: its results are later and later, and records "
            "that the topic deletes by their age before they are read are lost."
        ),
        consequence="work_stopped" if reads < writes / 10 else "none",
        group_ids=(group,),
        topics=(topic,),
        partitions=behind if is_uneven else partitions,
        who=tuple(
            Actor("reads too slowly", group, each["member_id"], each["client_id"], each["client_host"])
            for each in slow[:5]
        ),
        since_timestamp_ms=growth.since_ms,
        is_going_on=True,
        scale={"records_waiting": waiting, "partitions": len(behind) if is_uneven else len(partitions)},
        evidence=(since,),
        evidence_count=1,
        rows=(Rows("lag", of_group(group)), Rows("progress", of_group(group))),
        next=(
            *((look,) if is_slow and not throttles and not is_short else ()),
            *steps,
            context.see("List its lag by partition", Rows("lag", of_group(group))),
            context.describe_members(group),
        ),
        measured={
            "lag": waiting,
            "read": growth.read,
            "written": growth.written,
            "usual_lag": growth.usual_lag,
            "history_ms": growth.since_ms - growth.from_ms,
        },
        thresholds=context.limits_of(*(f"{KIND}.{each.name}" for each in RULE.thresholds)),
    )
    return Incident(finding, waiting, causes)


def _own_history(growth: Growth) -> str:
    """A sentence about the history with which the group is compared."""

    if growth.before is None:
        return " Its earlier history is too short to know what is usual for it, so thresholds decide."
    lasts = length(growth.since_ms - growth.from_ms)
    usual = f"a backlog of at most {counted(growth.usual_lag, 'record')}" if growth.usual_lag else "no backlog"
    told = (
        f" Compared with its own history from {moment(growth.from_ms)} on: in the {lasts} before, it had {usual} for "
        "half of the time"
    )
    if growth.episodes:
        return f"{told}, and it read a backlog of this size {counted(growth.episodes, 'time')} before."
    return f"{told}, and it never had one of this size."


def _unknown_of_work(context: RuleContext, group: str, topic: str) -> tuple[str, ...]:
    """What would rule out that the reading became slower for a reason other than the group's work."""
    lag = context.table("lag")
    others = kept(lag, equal(lag, "topic", topic), pc.not_equal(lag["group_id"], group))
    backlog: dict[str, int] = {}
    for each in kept(others, pc.is_valid(others["lag"])).to_pylist():
        backlog[each["group_id"]] = backlog.get(each["group_id"], 0) + each["lag"]
    is_read = any(waiting < context.limit(f"{KIND}.records") for waiting in backlog.values())
    return lacking_quotas(context) + (
        () if is_read else (f"whether brokers serve {topic} slowly: no other group keeps up with it",)
    )


def _weighed(group: str, topic: str, growth: Growth, since: Evidence) -> dict[str, Verdict]:

    reads, writes = growth.rates
    slower = f"The work of {shown(group)} became slow: it reads {reads:.1f} records per second"
    more = f"More is written to {shown(topic)} than {shown(group)} can read: {writes:.1f} records per second"
    if growth.before is None:
        lacked = ("how fast it was before the backlog grew",)
        wrote = growth.written_before
        if wrote is None or reads <= wrote or writes * _CHANGED <= wrote * (_CHANGED + 1):
            return {
                "work_slower": Verdict(f"{slower}.", (since,), lacked=lacked),
                "more_written": Verdict(f"{more}.", (since,), lacked=lacked),
            }
        of_writes = Evidence(f"at most {wrote:.1f} records per second were written before, {writes:.1f} since")
        return {
            "work_slower": Verdict(f"{slower}.", (since,), (of_writes,), lacked=lacked),
            "more_written": Verdict(f"{more}, and at most {wrote:.1f} before.", (of_writes,)),
        }
    read, wrote = growth.before
    of_reads = Evidence(f"{read:.1f} records per second were read before, {reads:.1f} since")
    of_writes = Evidence(f"{wrote:.1f} records per second were written before, {writes:.1f} since")
    is_slower, is_more = reads * _CHANGED < read * (_CHANGED - 1), writes * _CHANGED > wrote * (_CHANGED + 1)
    if not is_slower and not is_more:
        # Neither rate has changed much, so neither cause is more likely.
        return {
            "work_slower": Verdict(f"{slower}, and read {read:.1f} before.", evidence_against=(of_reads,)),
            "more_written": Verdict(f"{more}, and {wrote:.1f} before.", evidence_against=(of_writes,)),
        }
    return {
        "work_slower": Verdict(
            f"{slower}, and read {read:.1f} before.", (of_reads,), refuted_by=None if is_slower else of_reads
        ),
        "more_written": Verdict(
            f"{more}, and {wrote:.1f} before.", (of_writes,), refuted_by=None if is_more else of_writes
        ),
    }


RULE = incident_rule(
    kind=KIND,
    title="a group reads less than is written, and its backlog grows",
    about="""\
Groups whose members commit, but too slowly: at least `records` of a topic are unread, the oldest for `after`. For
`lasts` or longer, the backlog has grown all the time, and `left_over` of what was written is unread. Running brokers
get up to 37 Fetch requests for each partition with a backlog, of the five groups with the largest in a topic.""",
    tables=("progress", "lag", "members", "groups", "log_ends", "timeline"),
    levels={
        Level.HIGH: "it reads less than half of what is written",
        Level.MODERATE: "it reads more",
        Level.NOTE: "it had such a backlog twice before, and caught up",
    },
    find=find,
    listing=Rows("progress", ("state=falling_behind",)),
    causes=(
        THROTTLED_CAUSE,
        NEW_TOPIC_CAUSE,
        FEWER_CAUSE,
        SLOW_MEMBER_CAUSE,
        PossibleCause(
            "key_skew",
            "one partition gets most records, and has one reader",
            "for: its rates and its backlog; refuted if it always got most records",
        ),
        PossibleCause(
            "work_slower",
            "the work became slow",
            "",
        ),
        PossibleCause("more_written", "more is written than before", ""),
    ),
    questions=(
        *QUESTIONS,
        *NEW_TOPIC_QUESTIONS,
        *(
            Question(
                "work_slower", other, "Does the work for each record take longer than it did?", asked="if_undecided"
            )
            for other in ("more_written", "key_skew")
        ),
    ),
    thresholds=(
        Threshold("records", "count", 100, "records left over", "fewer are read in a moment"),
        Threshold("after", "duration", "10s", "how long the oldest of them has waited", "pauses may be as long"),
        Threshold("lasts", "duration", "20s", "how long the backlog has grown", "a burst takes as long to read"),
        Threshold("left_over", "share", 0.1, "share of what was written that was not read", "the rest is on its way"),
    ),
    folds=(Folds("group_stands_still"),),
)

RULES = (RULE,)
