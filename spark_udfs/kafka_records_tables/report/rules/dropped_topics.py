"""Topics that a group read and no longer subscribes to, although records are still written to them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, MemberLife, ends_of_topic, member_lives, names_of
from kafka_records_tables.report.facts.known_logs import known_ends
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import (
    DAY_MS,
    MOST_EVIDENCE,
    RuleContext,
    counted,
    listed,
    moment,
    of_group,
    shown,
)
from kafka_records_tables.report.rules.group_spans import settled
from kafka_records_tables.topics import OFFSETS

KIND: Final = "subscription_dropped"
_MISTAKE, _PURPOSE = "topic_forgotten", "topic_retired"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A topic that a group read, that none of its members subscribes to, and that is still written to."""

    group: str
    topic: str
    offsets: list[dict[str, Any]]
    """Its rows of `deletable_offsets`."""
    unread: int
    written: int | None
    """The number of records written since; None if their times are unknown."""
    written_ms: int | None
    """When the newest known record was written."""
    since_ms: int | None
    last_reader: MemberLife | None
    """The last member that had the topic; None if no record shows it."""
    former: list[MemberLife]
    present: list[MemberLife]
    taken_in: list[str]
    """Topics that present members have, but that no member with this topic had."""
    successors: list[tuple[str, int]]
    """Groups that began to read it at about that time, with the times of their first commits."""
    expires_ms: int | None

    @property
    def is_new_deployment(self) -> bool:
        """Whether all members that had the topic have left."""
        return bool(self.former) and all(each.left_at is not None for each in self.former)


def dropped_topics(context: RuleContext) -> list[Dropped]:
    """All such topics, for this rule and the rule about offsets that are no longer needed."""
    rows = context.table("deletable_offsets")
    rows = kept(rows, equal(rows, "kind", "offset"), equal(rows, "reason", "not_subscribed"))
    rows = kept(rows, settled(context, rows))
    if not rows.num_rows:
        return []
    ends = known_ends(context)
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows.to_pylist():
        if row["offset"] is not None and ends.get((row["topic"], row["partition"]), 0) > row["offset"]:
            found.setdefault((row["group_id"], row["topic"]), []).append(row)
    names = sorted({group for group, _ in found})[:MOST_GROUPS]
    lives = member_lives(context, names) if names else {}
    known = [_dropped(context, *key, of_key, lives.get(key[0], [])) for key, of_key in found.items() if key[0] in names]
    return [each for each in known if each is not None]


def _dropped(
    context: RuleContext, group: str, topic: str, rows: list[dict[str, Any]], lives: list[MemberLife]
) -> Dropped | None:
    former = [each for each in lives if topic in each.topics]
    last = max(former, key=lambda each: _had_until(each, topic), default=None)
    commits = [each["commit_timestamp_ms"] for each in rows if each["commit_timestamp_ms"] is not None]
    since = max(commits, default=None) if last is None else _had_until(last, topic)
    logs = ends_of_topic(context, group, topic)
    places, ends = [(topic, each["partition"]) for each in rows], known_ends(context)
    thens = [logs.end_at(place, since) for place in places]
    counts = [None if then is None else max(ends[place] - then, 0) for place, then in zip(places, thens, strict=True)]
    written = None if None in counts else sum(each for each in counts if each is not None)
    latest = [found[1] for place in places if (found := logs.latest(place)) is not None]
    if written == 0 or (written is None and (not latest or (since is not None and max(latest) <= since))):
        return None
    present = [each for each in lives if each.left_at is None]
    theirs = set().union(*(each.topics for each in present)) if present else set()
    return Dropped(
        group,
        topic,
        rows,
        sum(ends[place] - each["offset"] for place, each in zip(places, rows, strict=True)),
        written,
        max(latest, default=None),
        since,
        last,
        former,
        present,
        sorted(theirs - set().union(*(each.topics for each in former))) if former else [],
        _successors(context, group, topic, since, former),
        _expires(context, group, topic),
    )


def _had_until(life: MemberLife, topic: str) -> int:
    """When a member last had a partition of a topic."""
    lost = [life.lost_ms.get(place) for place in life.places if place[0] == topic]
    if None not in lost:
        return max(each for each in lost if each is not None)
    return life.left_ms or life.joined_ms or 0


def _successors(
    context: RuleContext, group: str, topic: str, since_ms: int | None, former: list[MemberLife]
) -> list[tuple[str, int]]:
    """Other groups that began to read a topic in the second half of the group's own reading time and at most a day
    before it stopped, or later."""
    if since_ms is None:
        return []
    begins = min((each.joined_ms for each in former if each.joined_ms is not None), default=since_ms)
    after = max((begins + since_ms) // 2, since_ms - DAY_MS)
    events = context.table("timeline")
    rows = kept(events, equal(events, "event", "first_commit"), pc.greater_equal(events["at_timestamp_ms"], after))
    found = {
        row["group_id"]: row["at_timestamp_ms"]
        for row in rows.to_pylist()
        if row["group_id"] != group and row["detail"] and json.loads(row["detail"]).get("topic") == topic
    }
    shares = context.table("share_group_topics")
    for name in set(kept(shares, equal(shares, "topic", topic))["group_id"].to_pylist()):
        of_share = kept(events, equal(events, "group_id", name), equal(events, "event", "member_joined"))
        first = pc.min(of_share["at_timestamp_ms"]).as_py()
        if first is not None and first >= after:
            found.setdefault(name, first)
    offsets = context.table("current_offsets")
    reads = {
        *kept(offsets, equal(offsets, "topic", topic))["group_id"].to_pylist(),
        *kept(shares, equal(shares, "topic", topic))["group_id"].to_pylist(),
    }
    return sorted((each for each in found.items() if each[0] in reads), key=lambda each: each[1])


def _expires(context: RuleContext, group: str, topic: str) -> int | None:
    rows = context.table("expirations")
    rows = kept(rows, equal(rows, "group_id", group), equal(rows, "topic", topic))
    found: int | None = pc.min(rows["expires_timestamp_ms"]).as_py()
    return found


def _find(context: RuleContext) -> list[Incident]:
    return [_incident(context, each) for each in context.once(dropped_topics)]


def _incident(context: RuleContext, dropped: Dropped) -> Incident:
    group, topic = shown(dropped.group), shown(dropped.topic)
    is_known = dropped.written is not None
    level = Level.MODERATE if is_known and not dropped.successors else Level.NOTE
    old, new = names_of(dropped.former), names_of(dropped.present)
    count, unread = len(dropped.offsets), counted(dropped.unread, "record")
    since = "" if dropped.since_ms is None else f" since {moment(dropped.since_ms)}"
    before = f" {listed(old)} read it." if old else ""
    now = f" The members now are {listed(new)}." if new and new != old else ""
    took = f" They have {listed(dropped.taken_in)} in addition." if dropped.taken_in else ""
    written = "" if dropped.written is None else f"; {dropped.written} of them were written since then"
    others = (
        f" {listed([name for name, _ in dropped.successors])} began to read it at about that time."
        if dropped.successors
        else ""
    )
    expire = (
        "before its offsets expire"
        if dropped.expires_ms is None
        else f"before {moment(dropped.expires_ms)}, when its first offset expires"
    )
    rows = Rows("deletable_offsets", of_group(dropped.group, "kind=offset", "reason=not_subscribed"))
    delete = context.ask_records(
        f"Only if {topic} was removed from the subscription on purpose: this shows what deleting its offsets "
        "would do; --execute does it, and writes a file that can restore them",
        "delete-offsets",
        *option("--group", dropped.group),
        *option("--topic", dropped.topic),
    )
    proof = _proof(dropped)
    finding = ReportFinding(
        kind=KIND,
        level=level,
        title=RULE.title,
        problem=(
            f"No member of the group {group} has subscribed to {topic}{since}. The group read it, and has committed "
            f"{counted(count, 'offset')} of it; {unread} after these "
            f"{'is' if dropped.unread == 1 else 'are'} unread{written}.{before}{now}{took}{others}"
        ),
        impact=(
            f"Nobody in {group} reads the records of {topic}, and the group looks healthy otherwise. When its "
            "offsets have expired, a member that subscribes again begins where auto.offset.reset says: it skips "
            "what is unread, or reads all records again."
        ),
        group_ids=(dropped.group,),
        topics=(dropped.topic,),
        partitions=tuple(sorted(each["partition"] for each in dropped.offsets)),
        who=tuple(
            Actor(f"does not subscribe to {topic}", dropped.group, each.member_id, each.client_id, each.host)
            for each in dropped.present[:4]
        )
        + tuple(
            Actor(f"read {topic} before", dropped.group, each.member_id, each.client_id, each.host)
            for each in dropped.former[:4]
        ),
        since_timestamp_ms=dropped.since_ms,
        since_note=_since_note(dropped),
        is_going_on=True,
        scale={"unread_records": dropped.unread, "partitions": count},
        symptom_confidence="high" if is_known else "medium",
        why_not_sure=None if is_known else "when the unread records were written is unknown",
        evidence=proof,
        evidence_count=len(proof),
        rows=(rows, Rows("timeline", of_group(dropped.group))),
        next=(
            NextStep(
                f"Compare the topics that the version of {listed(new) if new else 'the present members'} "
                f"subscribes to with those of the version before. If {topic} is missing by mistake, put it back "
                f"and deploy {expire}; the group then continues from its committed offsets, without a reset"
            ),
            context.describe_members(dropped.group),
            context.see("See the offsets", rows),
            delete,
        ),
        measured={"unread": dropped.unread, "offsets": count},
    )
    return Incident(finding, dropped.unread, {_MISTAKE: _weigh_mistake(dropped), _PURPOSE: _weigh_purpose(dropped)})


def _since_note(dropped: Dropped) -> str:
    if dropped.since_ms is None:
        return "no record shows when the subscription changed"
    return (
        "or later: the last commit for it"
        if dropped.last_reader is None
        else "when the last member that subscribed to the topic left"
    )


def _proof(dropped: Dropped) -> tuple[Evidence, ...]:
    last = dropped.last_reader
    gone = (
        (
            Evidence(
                f"{last.name}, the last member that subscribed to the topic, leaves",
                OFFSETS,
                last.log_partition,
                last.left_at,
                last.left_ms,
            ),
        )
        if last is not None and last.left_at is not None
        else ()
    )
    commits = sorted(dropped.offsets, key=lambda each: -(each["commit_timestamp_ms"] or 0))
    return gone + tuple(
        Evidence(
            f"the last commit for {each['topic']}-{each['partition']}",
            OFFSETS,
            each["log_partition"],
            each["log_offset"],
            each["commit_timestamp_ms"],
        )
        for each in commits[:MOST_EVIDENCE]
    )


def _weigh_mistake(dropped: Dropped) -> Verdict:
    supports, against = [], _taken_over(dropped)
    if dropped.written:
        last = "" if dropped.written_ms is None else f", the last one at {moment(dropped.written_ms)}"
        supports.append(Evidence(f"{counted(dropped.written, 'record')} were written to it since then{last}"))
    if dropped.taken_in:
        supports.append(
            Evidence(f"the list of topics was changed at that time, and now includes {listed(dropped.taken_in)}")
        )
    return Verdict(
        f"The new version of the application of {shown(dropped.group)} omits {shown(dropped.topic)} from its list of "
        "topics by mistake.",
        evidence_for=tuple(supports),
        evidence_against=against,
    )


def _taken_over(dropped: Dropped) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"{shown(name)} has read it since {moment(at_ms)}", timestamp_ms=at_ms)
        for name, at_ms in dropped.successors[:MOST_EVIDENCE]
    )


def _weigh_purpose(dropped: Dropped) -> Verdict:
    supports, against = list(_taken_over(dropped)), []
    if dropped.is_new_deployment:
        supports.append(Evidence("all members that read it were replaced: it is a new version, not a single process"))
    if dropped.written and not dropped.successors:
        against.append(Evidence("it is still written, and no other group began to read it at about that time"))
    return Verdict(
        f"{shown(dropped.topic)} was removed from the subscription on purpose: {shown(dropped.group)} no longer "
        "needs it.",
        evidence_for=tuple(supports),
        evidence_against=tuple(against),
    )


RULE = incident_rule(
    kind=KIND,
    title="a group no longer subscribes to a topic that it read, while records arrive",
    about="""\
Topics that no member of a group with offsets subscribes to any more, if records were written since. Otherwise it is
`offsets_unneeded`.""",
    tables=("deletable_offsets", "expirations", "timeline", "log_ends", "current_offsets", "share_group_topics"),
    levels={
        Level.MODERATE: "records were written since, and no other group took over",
        Level.NOTE: "another group took over, or it is unknown when records were written",
    },
    find=_find,
    listing=Rows("deletable_offsets", ("kind=offset", "reason=not_subscribed")),
    causes=(
        PossibleCause(
            _MISTAKE,
            "a new version of the application omits the topic from its list by mistake",
            "for: other topics were added at the same time; against: another group began to read it",
        ),
        PossibleCause(
            _PURPOSE,
            "the topic was removed from the subscription on purpose",
            "for: another group began to read it, all members were replaced",
        ),
    ),
    questions=(Question(_PURPOSE, _MISTAKE, "Was the topic removed from the subscription on purpose?", asked="last"),),
)

RULES = (RULE,)
