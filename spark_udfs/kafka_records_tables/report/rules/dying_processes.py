"""One process that ends and restarts, as a cause of an offset that does not move."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.facts.departures import Departures, departures
from kafka_records_tables.report.facts.group_facts import MemberLife, Offset, Place, Span, stopped_quickly
from kafka_records_tables.report.facts.processes import several_failed
from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import RuleContext, counted, length, listed, moment, places_shown
from kafka_records_tables.report.rules.frozen_members import left_by_itself, silent_before

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.report_parts import ReportFinding
    from kafka_records_tables.report.rules.stuck_partitions import StuckPartition

NAME: Final = "process_dies"
CAUSE: Final = PossibleCause(
    NAME,
    "a process ends again and again for another reason: memory, a failed probe, an exit",
    "for: it alone comes and goes, reads another partition in each life, or ends without leaving; does not apply if "
    "other processes fail there too",
)
DECIDES: Final = (
    "Do the exit code (137: killed, often out of memory) and the last lines of the log of the process name another "
    "reason than a record, or does another instance get past this offset?"
)


@dataclass(frozen=True, slots=True)
class LoneProcess:
    """The process whose members had a partition one after another, as far as records show."""

    names: list[str]
    """Its client id, or several if members with different client ids had the partition."""
    place: Place
    offset: int
    left: Departures
    tries: Sequence[MemberLife]
    stayed: list[str]
    """The clients of members that stayed the whole time."""
    read: tuple[Place, int] | None
    """The other partition that moved in most of the process's lives, and the number of these lives."""
    places: list[Place]
    """The partitions that its members had, and all that do not move."""
    record: str
    """The record on which it may fail, as words in a sentence."""

    @property
    def is_one(self) -> bool:
        """Whether all these members have one client id."""
        return len(self.names) == 1

    @property
    def who(self) -> str:
        """Its client ids as words in a sentence."""
        return listed(self.names)


def lone_process(
    context: RuleContext,
    group: str,
    stuck: Sequence[StuckPartition],
    spans: dict[Offset, list[Span]],
    lives: Sequence[MemberLife],
) -> LoneProcess | None:
    """The process that may be the only one to fail in the first of some stuck partitions; None if several processes
    fail there."""
    first, tries = stuck[0], stuck[0].attempts
    since = max(first.span.from_ms or 0, first.unread_ms or 0)
    until = max(each.left_ms or 0 for each in tries)
    left = departures(context, group, since)
    left = replace(left, every=[each for each in left.every if (each.life.left_ms or 0) <= until])
    still = [(each.topic, each.partition) for each in stuck]
    if several_failed(left, tries, lives, still):
        return None
    places = sorted({place for each in tries for place in each.places}.union(still))
    moves = [(place, _lives_with_moves(tries, spans.get((group, *place), []))) for place in places]
    read = max(moves, key=lambda each: each[1], default=None)
    names = list(dict.fromkeys(each.name for each in tries))
    stayed = [
        each.name
        for each in lives
        if (each.joined_ms or 0) <= since and (each.left_at is None or (each.left_ms or 0) > until)
    ]
    is_read = read is not None and 2 * read[1] >= len(tries)
    place = first.topic, first.partition
    return LoneProcess(names, place, first.offset, left, tries, stayed, read if is_read else None, places, first.record)


def _lives_with_moves(tries: Sequence[MemberLife], spans: Sequence[Span]) -> int:
    """The number of lives in which an offset has risen."""
    rose = [after.log_offset for before, after in pairwise(spans) if after.offset > before.offset]
    return sum(any(each.joined_at < at < (each.left_at or 0) for at in rose) for each in tries)


def weigh_process(lone: LoneProcess, *, is_over: bool = False) -> Verdict:
    """The verdict on whether the process ends for a reason other than a record."""
    orderly, silent = left_by_itself(lone.left), silent_before(lone.left)
    is_same = bool(lone.stayed) and lone.is_one and 5 * len(lone.tries) >= 4 * len(lone.left.every)
    facts = (
        Evidence(f"only {lone.who} came and went; {listed(lone.stayed)} stayed") if is_same else None,
        _reads(lone),
        silent,
    )
    of = f"The process{'' if lone.is_one else 'es'} of {lone.who}"
    verb = "ended" if is_over else "ends" if lone.is_one else "end"
    return Verdict(
        f"{of} {verb} again and again for another reason than this record: out of memory, killed by a failed probe, an "
        "exit.",
        evidence_for=tuple(filter(None, facts)),
        evidence_against=() if orderly is None else (orderly,),
        steps=() if is_over else _steps(lone),
    )


def _steps(lone: LoneProcess) -> tuple[NextStep, ...]:
    """The steps of looking at the process and of moving its work to others."""
    last = max(lone.left.every, key=lambda each: each.life.left_ms or 0, default=None)
    ended = max(each.left_ms or 0 for each in lone.tries) - ((last.silent_ms or 0) if last is not None else 0)
    stop = NextStep(
        f"Until it stays up, take it out of the group, if the other members can do its work: if they get past offset "
        f"{lone.offset} of {lone.place[0]}-{lone.place[1]}, the record is not the cause"
    )
    return (
        NextStep(
            f"Look at the process of {lone.who} only: its exit code (137 or OOMKilled: out of memory), how often it "
            f"was started, and the last lines of its log before each end, such as that at about {moment(ended)}"
        ),
        *((stop,) if lone.stayed else ()),
    )


def weigh_record(lone: LoneProcess, poison: Verdict, *, is_over: bool = False) -> Verdict:
    """The verdict on the record, if only this process is known to have failed on it. Other members' partitions then say
    nothing about it."""
    orderly, reads = left_by_itself(lone.left), _reads(lone)
    return replace(
        poison,
        statement=(
            f"The application {'failed' if is_over else 'fails'} on {lone.record}. No record shows that another "
            f"process {'tried' if is_over else 'has tried'} it."
        ),
        evidence_for=(*poison.evidence_for[:1], *(() if orderly is None else (orderly,))),
        evidence_against=(*poison.evidence_against, *(() if reads is None else (reads,))),
    )


def _reads(lone: LoneProcess) -> Evidence | None:
    if lone.read is None:
        return None
    (topic, partition), number = lone.read
    return Evidence(
        f"{topic}-{partition}, which it has too, moved on in {number} of {len(lone.tries)} lives of its members"
    )


def finding_of_process(lone: LoneProcess, finding: ReportFinding, lags: Sequence[dict[str, Any]]) -> ReportFinding:
    """The finding about a loop, in words that blame neither the record nor the process. `lags` are the group's rows of
    `lag` with records to read."""
    stays = [each for each in map(stopped_quickly, lone.tries) if each is not None]
    waits = {(each["topic"], each["partition"]): each["lag"] for each in lags}
    unread = [each for each in lone.places if waits.get(each)] or [lone.place]
    waiting = sum(waits.get(each, 0) for each in unread)
    session, silences = lone.left.session_ms, lone.left.silences
    is_removed = session is not None and (lone.left.timed_out or lone.left.may_have_timed_out)
    how = (
        f" They do not leave the group: each stays in it until its session timeout ({length(session)}) is over, half "
        f"of them for {length(median(silences))} after the last commit, and the next generation waits for that."
        if session is not None and is_removed
        else ""
    )
    reads = _reads(lone)
    stayed = f" {listed(lone.stayed)} stayed." if lone.stayed else ""
    topic, partition = lone.place
    return replace(
        finding,
        title=(
            "one client comes and goes again and again, and an offset does not move"
            if lone.is_one
            else "members come and go again and again, and an offset does not move"
        ),
        problem=(
            f"{counted(len(lone.tries), 'member')} of {lone.who} joined the group {listed(finding.group_ids)} one "
            f"after another and were gone, half of them within {length(median(stays) if stays else 0)}. "
            f"{topic}-{partition} stays at offset {lone.offset}"
            + (f"; {reads.shows}." if reads else ".")
            + how
            + stayed
        ),
        impact=(
            f"{counted(waiting, 'record')} of {places_shown(unread)} wait, and more come. Each restart rebalances the "
            "whole group. What a member has read since its last commit is read again; no record shows how much."
        ),
        partitions=tuple(sorted({number for name, number in unread if name == topic})),
        scale={**finding.scale, "records_waiting": waiting, "partitions": len(unread)},
    )
