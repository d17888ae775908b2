"""Clients that commit the offset of one partition for other partitions too."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept
from kafka_records_tables.report.facts.beginnings import either_words, repeated_words, scale_of, skipped_words
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
from kafka_records_tables.report.facts.known_logs import known_ends
from kafka_records_tables.report.facts.mixed_offsets import (
    Batch,
    Gain,
    Logs,
    MixedOffsets,
    MixedPlaces,
    Start,
    batches_of,
    handled,
    mixed_offsets,
    spans_of_runs,
    starts_of,
)
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    capital,
    counted,
    listed,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.reset_steps import reset_from_file
from kafka_records_tables.topics import OFFSETS

KIND: Final = "offsets_of_other_partitions"
_ONE_FOR_ALL: Final = "one_offset_for_all"
_WITHOUT_TOPIC: Final = "topic_ignored"
_EXCHANGED: Final = "partitions_exchanged"
_TOOL, _TWO, _CUT = "written_by_tool", "two_committers", "log_lost_end"
_MOST_SHOWN: Final = 6
"""The maximum number of partitions, or of starts, that a sentence names."""


@dataclass(frozen=True, slots=True)
class _Group:
    """A group whose clients commit offsets of other partitions."""

    group: str
    spans: Mapping[Place, Sequence[Span]]
    lives: Sequence[MemberLife]
    mixed: MixedOffsets
    logs: Logs
    gains: Sequence[Gain]


def _find(context: RuleContext) -> list[Incident]:
    return [_incident(context, each) for each in context.once(_groups)]


def _groups(context: RuleContext) -> list[_Group]:
    names = _suspects(context)
    spans: dict[str, dict[Place, list[Span]]] = {each: {} for each in names}
    for (group, topic, partition), of_place in commit_spans(context, names).items():
        spans[group][topic, partition] = of_place
    names = [each for each in names if len(spans[each]) > 1]
    lives = member_lives(context, names) if names else {}
    found = [_of_group(context, group, spans[group], of_group) for group, of_group in lives.items()]
    return [each for each in found if each is not None]


def _suspects(context: RuleContext) -> list[str]:
    """The groups with an offset beyond the end of its log, and those whose offsets of several partitions fell to the
    same one at the same time."""
    lag = context.table("lag")
    beyond = kept(lag, equal(lag, "problem", "beyond_end"))["group_id"].unique().to_pylist()
    falls = context.table("regressions")
    falls = kept(falls, pc.is_valid(falls["commit_timestamp_ms"]), pc.greater(falls["to_offset"], 0))
    together = grouped(falls, ["group_id", "commit_timestamp_ms", "to_offset"], [("partition", "count")])
    times = grouped(kept(together, pc.greater(together["partition_count"], 1)), ["group_id"], [("to_offset", "count")])
    times = kept(times, pc.greater(times["to_offset_count"], 1)).sort_by([("to_offset_count", "descending")])
    return list(dict.fromkeys([*times["group_id"].to_pylist(), *beyond]))[:MOST_GROUPS]


def _of_group(
    context: RuleContext, group: str, spans: Mapping[Place, Sequence[Span]], lives: Sequence[MemberLife]
) -> _Group | None:
    least = context.limit(f"{KIND}.commits")
    batches = batches_of(spans)
    if len(batches) < least:
        return None
    ends = {topic: ends_of_topic(context, group, topic) for topic in {topic for topic, _ in spans}}
    is_old = {
        place
        for place, of_place in spans.items()
        for known in (ends[place[0]].topic_id(place[0]),)
        if known is not None and any(each.topic_id not in (None, known) for each in of_place)
    }
    # Offsets of a topic that was recreated are beyond the ends of the new logs.
    batches = batches_of({place: of_place for place, of_place in spans.items() if place not in is_old})
    logs, gains = Logs(ends, known_ends(context)), _gains(context, group, lives)
    mixed = mixed_offsets(batches, logs, gains, least, _by_member(lives))
    return None if mixed is None else _Group(group, spans, lives, mixed, logs, gains)


def _by_member(lives: Sequence[MemberLife]) -> Callable[[Batch], bool]:
    """Tells whether the group had a member when something was committed."""
    joined: dict[int, list[int]] = {}
    left: dict[int, list[int]] = {}
    for life in lives:
        joined.setdefault(life.log_partition, []).append(life.joined_at)
        if life.left_at is not None:
            left.setdefault(life.log_partition, []).append(life.left_at)
    for offsets in (*joined.values(), *left.values()):
        offsets.sort()

    def had_member(batch: Batch) -> bool:
        came = bisect_left(joined.get(batch.log_partition, ()), batch.log_offset)
        return came > bisect_right(left.get(batch.log_partition, ()), batch.log_offset)

    return had_member


def _was_there(life: MemberLife, batch: Batch) -> bool:
    """Whether a member existed when something was committed. The order of records decides."""
    is_before = life.left_at is None or life.left_at > batch.log_offset
    return life.log_partition == batch.log_partition and life.joined_at < batch.log_offset and is_before


def _gains(context: RuleContext, group: str, lives: Sequence[MemberLife]) -> list[Gain]:
    rows = context.rows_of_group("timeline", group)
    names = {each.member_id: each.name for each in lives}
    found = []
    for row in kept(rows, equal(rows, "event", "assignment_changed")).to_pylist():
        places = gains_of(context, row)
        if places and row["at_timestamp_ms"] is not None:
            client = names.get(row["member_id"], row["member_id"] or "")
            at = row["at_timestamp_ms"], row["log_partition"], row["log_offset"]
            found.append(Gain(*at, client, frozenset(places)))
    return sorted(found, key=lambda each: (each.log_partition, each.log_offset))


def _incident(context: RuleContext, found: _Group) -> Incident:
    group, spans, lives, mixed, logs = found.group, found.spans, found.lives, found.mixed, found.logs
    starts = starts_of(mixed, spans, found.gains, logs)
    first, last, before = mixed.batches[0], mixed.batches[-1], mixed.before
    # The log does not show which member committed. One that never had some of the partitions is not all of them.
    by = [each for each in lives if _was_there(each, first) and each.places >= set(mixed.places)]
    new = [each for each in by if before is not None and each.joined_at > before.log_offset]
    since_ms = min([first.at_ms, *(each.joined_ms for each in new if each.joined_ms is not None)])
    by = new or by
    former = [each for each in lives if before is not None and _was_there(each, before)]
    places = mixed.places
    topics = tuple(sorted({topic for topic, _ in places}))
    begins = [each.began for each in starts]
    scale = scale_of(begins)
    now = {place: spans[place][-1].offset for place in places}
    ends = {place: logs.end(place) for place in places}
    beyond = [place for place in places if logs.is_beyond(place, now[place], context.at_ms)]
    is_current = not mixed.is_over
    left = [each for each in lives if each.left_at is None]
    finding = ReportFinding(
        kind=KIND,
        level=Level.CRITICAL if scale["records_lost"] else Level.HIGH if is_current else Level.MODERATE,
        title=RULE.title,
        problem=_problem(group, by, mixed, places, since_ms)
        + (_now(now, ends, beyond) if is_current else f" The last was at {moment(last.at_ms)}; later ones are right."),
        impact=_impact(starts) + (_next_start(mixed, now, places, logs, bool(left)) if is_current else ""),
        consequence=(
            "data_lost"
            if scale["records_lost"]
            else "work_repeated" if any(each.again and not each.is_unsure for each in begins) else "none"
        ),
        group_ids=(group,),
        topics=topics,
        partitions=tuple(number for _, number in places) if len(topics) == 1 else (),
        who=tuple(
            Actor("was the first that committed so" if new else "commits so", group, each.member_id, each.client_id)
            for each in by[:1]
        ),
        since_timestamp_ms=since_ms,
        since_note=None if before is not None else "or earlier: no commit with other offsets is known",
        is_going_on=is_current,
        scale={**{name: count for name, count in scale.items() if count}, "partitions": len(places)},
        evidence=_evidence(mixed, starts, logs)[:MOST_EVIDENCE],
        evidence_count=len(mixed.batches) + (before is not None),
        rows=(Rows("history", of_group(group)), Rows("lag", of_group(group))),
        next=_steps(context, group, by, former, mixed, starts, logs),
        measured={"commits": len(mixed.batches), "commits_beyond_end": mixed.beyond, "falls": mixed.falls},
        thresholds=context.limits_of(f"{KIND}.commits"),
    )
    return Incident(finding, sum(each.again for each in begins), _verdicts(group, by, mixed, lives))


def _problem(group: str, by: Sequence[MemberLife], mixed: MixedOffsets, places: Sequence[Place], since_ms: int) -> str:
    who, has = f"{listed(names_of(by)[:1])} of the group {shown(group)}", "has"
    if not by:
        who, has = f"members of the group {shown(group)}", "have"
    count = f"{counted(len(mixed.batches), 'commit')} in a row"
    if mixed.sources:
        pairs = [f"{_name(place)} got that of {_name(source)}" for place, source in mixed.sources.items()]
        what = f"{has} committed offsets of other partitions: in {count}, {', '.join(pairs[:_MOST_SHOWN])}."
    else:
        same = "for the same partition of several topics" if mixed.is_by_number else "for several partitions"
        what = f"{has} committed the same offset {same}: {count}, of {places_shown(places)}, although the logs end at "
        what += "different offsets."
    beyond = f" {mixed.beyond} of them were beyond the end of a log at that moment." if mixed.beyond else ""
    falls = f" {counted(mixed.falls, 'time')} the offsets fell while the members read on." if mixed.falls else ""
    return f"Since {moment(since_ms)} {who} {what}{beyond}{falls}"


def _name(place: Place) -> str:
    return f"{place[0]}-{place[1]}"


def _now(now: Mapping[Place, int], ends: Mapping[Place, int | None], beyond: Sequence[Place]) -> str:
    several = [
        f"{now[place]} for {_name(place)}, whose log ends at {ends[place]}"
        for place in list(now)[:_MOST_SHOWN]
        if ends[place] is not None
    ]
    text = f" Now the offsets are {'; '.join(several)}." if several else ""
    if beyond:
        text += f" {capital(places_shown(beyond))} {'is' if len(beyond) == 1 else 'are'} beyond the end."
    return text


def _impact(starts: Sequence[Start]) -> str:
    text = "A running member reads on from its own position, but each start continues from the wrong offsets"
    if not starts:
        return f"{text}. None has started since."
    begins = [each.began for each in starts]
    certain, unsure = [each for each in begins if not each.is_unsure], [each for each in begins if each.is_unsure]
    times = len({(each.gain.log_partition, each.gain.log_offset) for each in starts})
    again = repeated_words(certain)
    parts = [f"{text}: {counted(times, 'start')} so far"]
    if again is not None:
        counts = Counter[Place]()
        for each in starts:
            if not each.began.is_unsure:
                counts[each.place] += each.began.again
        of_places = ", ".join(f"{count} of {_name(place)}" for place, count in counts.most_common(_MOST_SHOWN) if count)
        parts.append(f"about {again} were read again ({of_places})")
    if any(each.skipped for each in certain):
        parts.append(f"{skipped_words(certain)} were never read")
    elif not unsure:
        parts.append("nothing was skipped")
    if unsure:
        parts.append(f"where the offset was beyond the end, {either_words('it', 'its', unsure)}")
    return f"{'; '.join(parts)}."


def _next_start(
    mixed: MixedOffsets, now: Mapping[Place, int], places: Sequence[Place], logs: Logs, is_running: bool
) -> str:
    """What the next start would repeat if nobody sets the offsets before it."""
    low = {place: handled(mixed, place, None, logs)[0] - now[place] for place in places}
    low = {place: count for place, count in low.items() if count > 0}
    parts = []
    if low:
        parts.append(f"read {counted(sum(low.values()), 'record')} of {places_shown(low)} again")
    beyond = [place for place in places if logs.is_beyond(place, now[place], mixed.batches[-1].at_ms)]
    if beyond:
        parts.append(f"begin in {places_shown(beyond)} as auto.offset.reset says")
    who = "The next start" if is_running else "The next member"
    return f" {who} would {' and '.join(parts)}." if parts else ""


def _evidence(mixed: MixedOffsets, starts: Sequence[Start], logs: Logs) -> tuple[Evidence, ...]:
    found = []
    if mixed.before is not None:
        found.append(_committed(mixed.before, "the last commit with an offset for each partition"))
    found.append(_committed(mixed.batches[0], f"the first that is wrong; {_ends_then(mixed.batches[0], logs)}"))
    for each in starts:
        if each.began.again or each.began.skipped:
            where = "beyond the end, so auto.offset.reset decided" if each.is_beyond else "in the log"
            found.append(
                Evidence(
                    f"{each.gain.client} starts with {each.committed} for {_name(each.place)}: {where}",
                    OFFSETS,
                    each.gain.log_partition,
                    each.gain.log_offset,
                    each.gain.at_ms,
                )
            )
    found = found[: MOST_EVIDENCE - 1]
    found.append(_committed(mixed.batches[-1], f"the last one; {_ends_then(mixed.batches[-1], logs)}"))
    return tuple(found)


def _committed(batch: Batch, what: str) -> Evidence:
    offsets = ", ".join(f"{_name(place)}: {each}" for place, each in sorted(batch.offsets.items())[:_MOST_SHOWN])
    return Evidence(f"{offsets}: {what}", OFFSETS, batch.log_partition, batch.log_offset, batch.at_ms)


def _ends_then(batch: Batch, logs: Logs) -> str:
    ends = [logs.at_most(place, batch.at_ms) for place in sorted(batch.offsets)[:_MOST_SHOWN]]
    return f"the logs ended at {', '.join('?' if each is None else str(each) for each in ends)}"


def _steps(
    context: RuleContext,
    group: str,
    by: Sequence[MemberLife],
    former: Sequence[MemberLife],
    mixed: MixedOffsets,
    starts: Sequence[Start],
    logs: Logs,
) -> tuple[NextStep, ...]:
    steps = []
    if not mixed.is_over:
        clients = listed(names_of(by)[:1]) if by else f"the clients of {shown(group)}"
        before = [each for each in names_of(former) if each not in names_of(by)]
        back = f"Go back to the version of {listed(before[-1:])}, or fix" if by and before else "Fix"
        steps.append(
            NextStep(
                f"{back} the commit of {clients}: an offset for each partition, the one after its own last record (in "
                "Java commitSync() without arguments, or a map with record.offset() + 1 for each TopicPartition). Do "
                "not restart it before: each start repeats records"
            )
        )
        read = [(place, handled(mixed, place, None, logs)) for place in mixed.places]
        is_near = all(is_near for _, (*_, is_near) in read)
        of = "the ends of the logs" if is_near else "the highest offsets known to have been read"
        steps.append(
            reset_from_file(
                context,
                group,
                "Before the next start, set the offsets to what was really processed. Stop the group, run this report "
                f"again (these are {of} at its last commit so far), compare with its results, and while it has no "
                "members,",
                [(place, least) for place, (least, *_) in read],
            )
        )
    again = [each for each in starts if each.began.again and not each.began.is_unsure]
    if again:
        gains = dict.fromkeys(each.gain.at_ms for each in again)
        steps.append(
            NextStep(
                f"Correct results of {shown(group)} that count records twice: what it processed after its starts at "
                + ", ".join(moment(each) for each in list(gains)[:_MOST_SHOWN])
            )
        )
    steps.append(context.see("List what the group committed, and when", Rows("history", of_group(group))))
    return tuple(steps)


def _verdicts(
    group: str, by: Sequence[MemberLife], mixed: MixedOffsets, lives: Sequence[MemberLife]
) -> dict[str, Verdict]:
    client, count = listed(names_of(by)[:1]) if by else "A client", counted(len(mixed.batches), "commit")
    if mixed.sources:
        name, statement = _EXCHANGED, f"{client} assigns offsets to the wrong partitions when it commits."
        shows = f"in {count} in a row, partitions got the offsets of others"
    elif mixed.is_by_number:
        name = _WITHOUT_TOPIC
        statement = f"{client} keeps offsets by the number of the partition, without the topic, and commits them so."
        shows = f"{count} in a row had the same offset for the same partition of several topics"
    else:
        name = _ONE_FOR_ALL
        statement = (
            f"{client} commits one offset for all of its partitions: that of the last record of a poll, "
            "regardless of the partition of the record."
        )
        shows = f"{count} in a row had the same offset for all partitions of a member"
    there = Evidence(f"{shown(group)} had members that read at all {count}")
    beside = Evidence("the wrong offsets of all partitions were committed together")
    others = Evidence("the offsets beyond the end of a log are positions in the logs of other partitions")
    return {
        name: Verdict(
            statement,
            evidence_for=(
                Evidence(shows),
                *((Evidence(f"{mixed.beyond} of them were beyond the end of a log"),) if mixed.beyond else ()),
            ),
            is_certain=True,
        ),
        _TOOL: Verdict("A tool wrote the offsets.", refuted_by=there),
        _TWO: Verdict("Two consumers commit in turns.", refuted_by=beside),
        _CUT: Verdict("Logs lost their ends.", refuted_by=others),
    }


RULE = incident_rule(
    kind=KIND,
    title="a client commits offsets of other partitions",
    about="""\
Groups with members of which `commits` in a row had one offset for several partitions, or the offset of another
partition, although their logs end elsewhere. Evenly filled partitions have equal offsets at times, so the offsets must
also be beyond the end of a log, or fall again and again. Offsets that a tool wrote are `offsets_from_elsewhere`.""",
    tables=("lag", "regressions", "timeline", "log_ends"),
    levels={
        Level.CRITICAL: "records were skipped",
        Level.HIGH: "it goes on",
        Level.MODERATE: "the group commits other offsets now",
    },
    find=_find,
    listing=Rows("lag", ("problem=beyond_end",)),
    causes=(
        PossibleCause(
            _ONE_FOR_ALL,
            "a client commits the offset of the last record of a poll for all partitions",
            "for: all of its partitions have one offset",
        ),
        PossibleCause(
            _WITHOUT_TOPIC,
            "a client keeps offsets by the number of the partition, without the topic",
            "for: partitions with the same number share an offset, and others do not",
        ),
        PossibleCause(
            _EXCHANGED,
            "a client assigns offsets to the wrong partitions",
            "for: the offset is always the end of a certain other log",
        ),
        PossibleCause(_TOOL, "a tool wrote the offsets", "refuted: the group had members"),
        PossibleCause(_TWO, "two consumers commit in turns", "refuted: all partitions have the same offset together"),
        PossibleCause(_CUT, "logs lost their ends", "refuted: the offsets are positions in other logs"),
    ),
    thresholds=(
        Threshold(
            "commits",
            "count",
            10,
            "how many commits in a row must have offsets of other partitions",
            "a tool may set equal offsets once, and evenly filled partitions have them at times",
        ),
    ),
    folds=(
        Folds("offsets_beyond_end"),
        Folds("two_committers"),
        Folds("offsets_rewound"),
        Folds("offsets_reset"),
        Folds("group_stands_still"),
        Folds("too_slow"),
    ),
)

RULES = (RULE,)


def groups_with_mixed_offsets(context: RuleContext) -> set[str]:
    """The groups whose clients commit offsets of other partitions: their offsets show nothing about the logs."""
    return {each.group for each in context.once(_groups)}


def mixed_places(context: RuleContext) -> MixedPlaces:
    """Where offsets show nothing about the log of their partition, because they are those of another one."""
    return context.once(_mixed_places)


def _mixed_places(context: RuleContext) -> MixedPlaces:
    return MixedPlaces(
        {
            (each.group, *place): of_place
            for each in context.once(_groups)
            for place, of_place in spans_of_runs(each.mixed, each.spans).items()
        }
    )
