"""Transactions that take longer than their timeout, as a cause of offsets that do not move."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import kept
from kafka_records_tables.report.facts.departures import departures
from kafka_records_tables.report.facts.group_facts import member_lives, names_of
from kafka_records_tables.report.facts.timed_out_transactions import timed_out_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted, length, listed, moment
from kafka_records_tables.report.rules.frozen_members import left_by_itself, silent_before
from kafka_records_tables.topics import TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import MemberLife, Place
    from kafka_records_tables.report.rules.stuck_partitions import StuckPartition

NAME: Final = "transaction_times_out"
CAUSE: Final = PossibleCause(
    NAME,
    "transactions take longer than transaction.timeout.ms, so the coordinator aborts them",
    "for: it aborted one of each member after this time, and none was committed since; certain if these members left "
    "by themselves, or if the last commits took nearly as long",
)
CAUSE_OF_STOP: Final = PossibleCause(
    NAME,
    CAUSE.about,
    "for: it aborted several since; certain if a member was there all the time, or if the last commits took nearly as "
    "long",
)
_LEAST: Final = 3
"""The fewest transactions that time out one after another because of their work: a process may die in one."""
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class TimedOut:
    """Transactions with the offsets of a group that timed out one after another, since the last one that was
    committed."""

    rows: Sequence[dict[str, Any]]
    """The rows of `timed_out_transactions` of its transactional ids."""

    @property
    def names(self) -> tuple[str, ...]:
        """The transactional ids."""
        return tuple(each["transactional_id"] for each in self.rows)

    @property
    def times(self) -> list[tuple[int, int]]:
        """When each of these transactions began, and when it was aborted."""
        return sorted((each["began_ms"], each["aborted_ms"]) for row in self.rows for each in row["timeouts"])

    @property
    def timeout_ms(self) -> int:
        """The shortest transaction.timeout.ms of the ids."""
        return int(min(each["timeout_ms"] for each in self.rows))

    @property
    def shows(self) -> tuple[Evidence, ...]:
        """The aborts as evidence, without the middle ones."""
        found = [(row, each) for row in self.rows for each in row["timeouts"]]
        found.sort(key=lambda pair: pair[1]["aborted_ms"])
        return tuple(
            Evidence(
                f"the coordinator aborted a transaction of {row['transactional_id']} after "
                f"{length(each['aborted_ms'] - each['began_ms'])} and raised the epoch to {each['producer_epoch']}; "
                f"its timeout is {length(row['timeout_ms'])}",
                TRANSACTIONS,
                row["log_partition"],
                each["log_offset"],
                each["aborted_ms"],
            )
            for row, each in (found if len(found) <= _SHOWN else [*found[: _SHOWN - 1], found[-1]])
        )

    @property
    def slow(self) -> Evidence | None:
        """The fact that the last transactions that were committed took nearly as long as the timeout, or longer."""
        row = max(self.rows, key=lambda each: each["slowest_ms"] or 0)
        slowest, timeout = row["slowest_ms"] or 0, row["timeout_ms"]
        if 5 * slowest < 4 * timeout:
            return None
        return Evidence(
            f"of the last transactions of {row['transactional_id']} that were committed, one took {length(slowest)}",
            TRANSACTIONS,
            row["log_partition"],
            None,
            row["committed_timestamp_ms"],
        )


def _of_group(context: RuleContext, group: str, places: Iterable[Place]) -> TimedOut | None:
    """The transactions that timed out of the producers that commit the offsets of a group; None if there are none, or
    if the last commit of one of some partitions belonged to no transaction."""
    commits = context.look("offset_commits", (group,))
    commits = kept(commits, pc.invert(commits["is_tombstone"]))
    producers = set(commits["producer_id"].drop_null().to_pylist())
    # Without transactional commits, the log of transactions need not be read: it may be large.
    if not producers:
        return None
    rows = timed_out_of(context)
    if not rows:
        return None
    last: dict[Place, int | None] = {}
    columns = (commits[name].to_pylist() for name in ("topic", "partition", "producer_id", "transaction"))
    for topic, partition, producer, outcome in zip(*columns, strict=True):
        if outcome != "aborted":
            last[topic, partition] = producer
    own = [each for each in rows if producers & set(each["producer_ids"])]
    return None if any(last.get(each) is None for each in places) or not own else TimedOut(own)


def _verdict(found: TimedOut, then: str, facts: Iterable[Evidence | None], **more: Any) -> Verdict:
    names, times = listed(found.names), found.times
    usual = median(aborted - began for began, aborted in times)
    committed = max((each["committed_timestamp_ms"] or 0 for each in found.rows), default=0)
    since = f" since {moment(committed)}" if committed else ""
    began, aborted = times[-1]
    return Verdict(
        f"The transactions of the transactional.id {names} take longer than transaction.timeout.ms "
        f"({length(found.timeout_ms)}): the coordinator aborted {len(times)}, half of them when they were open for "
        f"{length(usual)}, and none was committed{since}. {then}",
        evidence_for=(*found.shows, *filter(None, facts)),
        steps=(
            NextStep(
                f"Raise transaction.timeout.ms of {names} well above the time that one batch takes (brokers allow up "
                "to transaction.max.timeout.ms), or lower max.poll.records, and restart the application"
            ),
            NextStep(
                "Then find out what makes a batch take so long: a slow service, or a record with much work. The last "
                f"of these transactions was open from {moment(began)} until {moment(aborted)}"
            ),
        ),
        **more,
    )


def with_timeouts(context: RuleContext, group: str, stuck: Sequence[StuckPartition], loop: Incident) -> Incident:
    """A loop of members that leave, with the cause that their transactions time out, if they do: each of these members
    had a transaction that the coordinator aborted before the member left."""
    found = _of_group(context, group, [(each.topic, each.partition) for each in stuck])
    tries = stuck[0].attempts
    if found is None or len(found.times) < _LEAST or 5 * _that_had_one(tries, found.times) < 4 * len(tries):
        return loop
    left = departures(context, group, stuck[0].span.from_ms or 0)
    orderly, silent = left_by_itself(left), silent_before(left)
    is_certain = orderly is not None or (found.slow is not None and silent is None)
    verdict = _verdict(
        found,
        "Its producer is fenced then, the application fails, starts again and gets the same records.",
        (found.slow, orderly),
        evidence_against=() if is_certain or silent is None else (silent,),
        is_certain=is_certain,
    )
    finding = loop.finding
    if is_certain:
        finding = replace(
            finding,
            title="transactions time out, and members leave and join again, endlessly",
            problem=f"{finding.problem} {_numbers(found)}",
            impact=f"{finding.impact} The work of each of these transactions is done again.",
            transactional_ids=found.names,
            scale={**finding.scale, "transactions_timed_out": len(found.times)},
            evidence=(*found.shows, *finding.evidence)[:MOST_EVIDENCE],
            evidence_count=finding.evidence_count + len(found.times),
            measured={**finding.measured, "transaction_timeout_ms": found.timeout_ms},
        )
    return replace(loop, finding=finding, verdicts={NAME: verdict, **loop.verdicts})


def weigh_timeouts(context: RuleContext, group: str, places: Iterable[Place]) -> Verdict | None:
    """Judges whether a group has stopped because its transactions time out; None if they do not. An application may
    replace only its producer and read the same records again, so that its members stay."""
    found = _of_group(context, group, places)
    if found is None or len(found.times) < _LEAST:
        return None
    first_ms = found.times[0][0]
    lives = member_lives(context, [group]).get(group, [])
    stayed = [each for each in lives if each.left_at is None and each.joined_ms and each.joined_ms <= first_ms]
    there = Evidence(f"{listed(names_of(stayed))} stayed all the time") if stayed else None
    return _verdict(
        found,
        "Its producer is fenced then, and the application starts another one and gets the same records.",
        (found.slow, there),
        is_certain=there is not None or found.slow is not None,
    )


def _numbers(found: TimedOut) -> str:
    return (
        f"{counted(len(found.times), 'transaction')} of {listed(found.names)} timed out since "
        f"(transaction.timeout.ms is {length(found.timeout_ms)}), and none was committed."
    )


def _that_had_one(tries: Sequence[MemberLife], times: Sequence[tuple[int, int]]) -> int:
    """The number of members during whose membership one of these transactions was aborted."""
    return sum(any((each.joined_ms or 0) <= at <= (each.left_ms or 0) for _, at in times) for each in tries)
