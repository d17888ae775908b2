"""Records that were deleted before a group read them, because somebody had shortened the retention."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.commit_jumps import steps_of
from kafka_records_tables.report.facts.deleted_while_away import away_before, commits_of_topic, emptied_events
from kafka_records_tables.report.facts.group_facts import commit_spans, ends_of_topic
from kafka_records_tables.report.facts.retention_changes import OF_BROKERS, OF_TOPIC, RetentionChange, retention_changes
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep
from kafka_records_tables.report.rule import Verdict
from kafka_records_tables.report.rule_context import DAY_MS, MOST_EVIDENCE, RuleContext, length, moment, shown
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.facts.commit_jumps import Jump

NAME: Final = "retention_shortened"
CAUSE: Final = PossibleCause(
    NAME,
    "somebody has shortened the retention of the topic, or of all topics without one of their own",
    "for: the metadata log shows the change shortly before the first jump; certain if records waited longer than the "
    "new retention before, and the lost ones for less than the old one, and nothing else deletes records",
)
_OWN_MS: Final = 7 * DAY_MS
"""The retention in an example: Kafka's default for `log.retention.hours`."""
_RIVALS: Final = ("too_much", "by_hand", "early_timestamps")
"""Other causes of the rule for which the present logs may show evidence."""


@dataclass(frozen=True, slots=True)
class _Shortened:
    """A change that shortened the retention shortly before the first jump."""

    change: RetentionChange
    keeps_ms: int
    at_ms: int
    waited_ms: int | None
    """For how long a record had waited that the group read before the change, if that exceeds the new retention;
    otherwise None."""
    oldest_ms: int
    """The age of the oldest lost record, or how long the group was away before its longest jump."""
    last_ms: int
    """The time of the last jump."""

    @property
    def against(self) -> tuple[Evidence, ...]:
        """The fact that some of the records would have been deleted without the change too."""
        before_ms = self.change.before_ms
        if before_ms is None or self.oldest_ms < before_ms:
            return ()
        return (
            Evidence(
                f"unread records were up to {length(self.oldest_ms)} old, and were deleted after {length(before_ms)} "
                "before the change too"
            ),
        )


class _Written:
    """The times by which records of a topic existed."""

    def __init__(self, context: RuleContext, group: str, topic: str) -> None:
        self._topic, self._ends = topic, ends_of_topic(context, group, topic)
        self._commits: dict[int, tuple[list[int], list[int]]] = {}
        for partition, commits in commits_of_topic(context, topic).items():
            commits.sort()
            self._commits[partition] = (
                [at_ms for at_ms, _ in commits],
                list(accumulate((offset for _, offset in commits), max)),
            )

    def by(self, partition: int, offset: int) -> int | None:
        """The earliest known time at which the record at an offset existed, by its batch or by a commit of any group
        beyond it; None if there is neither. The batch may be deleted."""
        times, highest = self._commits.get(partition, ([], []))
        at = bisect_right(highest, offset)
        found = [self._ends.written_ms((self._topic, partition), offset), times[at] if at < len(times) else None]
        return min((each for each in found if each is not None), default=None)


def _shortened(context: RuleContext, group: str, topic: str, jumps: Sequence[Jump]) -> _Shortened | None:
    changes = retention_changes(context, topic)
    first = min(jumps, key=lambda each: each.after.from_ms or 0)
    back_ms, left_ms = first.after.from_ms, first.before_ms
    if not changes or back_ms is None or left_ms is None:
        return None
    change, at_ms = changes[-1], changes[-1].at_ms
    if at_ms is None or change.ms is None or (change.before_ms is not None and change.ms >= change.before_ms):
        return None
    made = next((each for each in reversed(changes_of(context, topic)) if each["event"] == "created"), None)
    if made is not None and (
        OF_TOPIC not in (made["changed"] or ()) if change.name == OF_TOPIC else at_ms <= (made["at_timestamp_ms"] or 0)
    ):
        # The topic was created with this retention.
        return None
    # The pause before the first jump is about as long as usual, so an older change had no effect.
    if not left_ms - max(change.ms, back_ms - left_ms) <= at_ms <= back_ms:
        return None
    written = _Written(context, group, topic)
    longest = _longest_wait(context, group, topic, at_ms, written)
    if change.before_ms is None and longest <= change.ms:
        # The retention before may have been as short: no record shows what the properties files of brokers set.
        return None
    ages = []
    for each in jumps:
        if each.after.from_ms is not None and each.before_ms is not None:
            by_ms = written.by(each.partition, each.before)
            ages.append(each.after.from_ms - min(each.before_ms, each.before_ms if by_ms is None else by_ms))
    last_ms = max(each.after.from_ms or 0 for each in jumps)
    return _Shortened(change, change.ms, at_ms, longest if longest > change.ms else None, max(ages), last_ms)


def _longest_wait(context: RuleContext, group: str, topic: str, at_ms: int, written: _Written) -> int:
    """The longest time for which a record had waited that the group read before some time. A pause between commits
    proves nothing if no record was there."""
    longest = 0
    for (of_group, of_topic, partition), spans in commit_spans(context, (group,)).items():
        if (of_group, of_topic) != (group, topic):
            continue
        for before, after in steps_of(spans):
            by_ms = written.by(partition, before.offset)
            if by_ms is not None and after.from_ms is not None and after.from_ms <= at_ms:
                longest = max(longest, after.from_ms - by_ms)
    return longest


def with_changed_retention(
    context: RuleContext, group: str, topic: str, jumps: Sequence[Jump], incident: Incident
) -> Incident:
    """Add a change of the retention, if one came before the deletions, to the incident. If the group lost no records
    before the change, the incident begins with it."""
    found = _shortened(context, group, topic, jumps)
    if found is None:
        return incident
    change, is_of_brokers = found.change, found.change.name == OF_BROKERS
    whose = "all brokers" if is_of_brokers else shown(topic)
    record = Evidence(
        f"{change.name} of {whose} was set to {change.value}"
        + (", and was not set before" if change.value_before is None else f", in place of {change.value_before}"),
        METADATA,
        0,
        change.log_offset,
        found.at_ms,
    )
    waited, is_known = found.waited_ms, change.before_ms is not None
    facts = () if waited is None else (Evidence(f"before, a record waited for {length(waited)}, and it was read"),)
    rivals = tuple(
        fact
        for name, each in incident.verdicts.items()
        if name in _RIVALS and each.refuted_by is None
        for fact in each.evidence_for[:1]
    )
    against = (*found.against, *rivals)
    explains = waited is not None and not against
    of_all = f", as every topic without {OF_TOPIC} of its own" if is_of_brokers else ""
    is_away = away_before(emptied_events(context, group), jumps) is not None
    verdict = Verdict(
        f"Somebody set {change.name} of {whose} to {change.value} at {moment(found.at_ms)}: since then, {shown(topic)} "
        f"keeps records for only {length(found.keeps_ms)}{of_all}, and {shown(group)} "
        f"{'is away for longer' if is_away else 'reads them later'}.",
        evidence_for=(record, *facts),
        evidence_against=against,
        is_certain=explains and is_known,
        lacked=() if is_known else ("the retention in the properties files of the brokers, which held before",),
        steps=_steps(context, group, topic, change),
    )
    finding, verdicts = incident.finding, dict(incident.verdicts)
    if explains:
        if "away" in verdicts:
            away = verdicts["away"]
            verdicts["away"] = replace(away, evidence_against=(*away.evidence_against, *facts))
        # The retention is still short. The group has not come back from another such absence since.
        goes_on = finding.is_going_on or (is_away and context.at_ms - found.last_ms <= found.oldest_ms)
        finding = replace(
            finding,
            level=Level.CRITICAL if goes_on else finding.level,
            is_going_on=goes_on,
            since_timestamp_ms=found.at_ms,
            since_note=f"the change of {change.name}",
            evidence=(record, *finding.evidence)[:MOST_EVIDENCE],
            evidence_count=finding.evidence_count + 1,
        )
    return replace(incident, finding=finding, verdicts={NAME: verdict, **verdicts})


def _runs(context: RuleContext, group: str) -> bool:
    """Whether the group has members."""
    return any(each["member_count"] for each in context.rows_of_group("groups", group).to_pylist())


def _steps(context: RuleContext, group: str, topic: str, change: RetentionChange) -> tuple[NextStep, ...]:
    is_of_brokers = change.name == OF_BROKERS
    where = ("--entity-type", "brokers", "--entity-default") if is_of_brokers else option("--topic", topic)
    undo = ("--delete-config", change.name)
    if change.value_before is not None:
        undo = ("--add-config", f"{change.name}={change.value_before}")
    what = (
        f"Undo the change of {change.name}, which holds for every topic without {OF_TOPIC} of its own"
        if is_of_brokers
        else f"Undo the change of {change.name} of {shown(topic)}"
    )
    own = context.ask_kafka(
        f"If it must stay, let {shown(topic)} alone keep records longer than {shown(group)} is away (7 days here)",
        "kafka-configs",
        *("--alter", *option("--topic", topic), "--add-config", f"{OF_TOPIC}={_OWN_MS}"),
    )
    start = NextStep(f"Start {shown(group)} now, so that it reads what the log still has")
    return (
        context.ask_kafka(f"{what}, so that no more records are lost", "kafka-configs", "--alter", *where, *undo),
        *((own,) if is_of_brokers else ()),
        *(() if _runs(context, group) else (start,)),
        NextStep("Get the deleted records from their origin if they are needed"),
    )
