"""Groups with records in two partitions of `__consumer_offsets`, because its partition count was changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import instant, option
from kafka_records_tables.report.facts.beginnings import either_words
from kafka_records_tables.report.facts.group_facts import MOST_GROUPS
from kafka_records_tables.report.facts.known_logs import incomplete_partitions
from kafka_records_tables.report.facts.moved_groups import MovedGroup, add_effects, count_before, moved_groups
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import AT_LEAST, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    capital,
    counted,
    length,
    listed,
    moment,
    of_group,
)
from kafka_records_tables.topics import METADATA, OFFSETS

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND: Final = "groups_in_two_partitions"
_MOST_NAMED: Final = 10
"""The maximum number of groups to name in a step."""


@dataclass(frozen=True, slots=True)
class _Change:
    """When the number of partitions was changed, and when coordinators began to use it."""

    before: int | None
    since_ms: int | None
    note: str | None
    first_ms: int | None
    """The time of the first record of a group in its new partition."""
    evidence: tuple[Evidence, ...] = ()
    """The record that adds partitions."""


def _find(context: RuleContext) -> list[Incident]:
    count, moved = moved_groups(context)
    if count is None or not moved:
        return []
    add_effects(context, moved)
    return [_incident(context, count, _change(context, count, moved), moved)]


def _change(context: RuleContext, count: int, moved: Sequence[MovedGroup]) -> _Change:
    first = _first_in_new(context, moved)
    last = max((each.last_old_ms for each in moved if each.last_old_ms is not None), default=None)
    until = None if last is None else f"the last commit to an old partition was at {moment(last)}"
    counts = changes_of(context, OFFSETS)
    added = [at for at, each in enumerate(counts) if each["event"] == "partitions_added"]
    row = counts[added[-1]] if added else None
    if row is None or row["partition_count"] != count or row["at_timestamp_ms"] is None:
        return _Change(count_before(moved), last if first is None else first, until, first)
    before, at_ms = counts[added[-1] - 1]["partition_count"], row["at_timestamp_ms"]
    shows = f"{OFFSETS} got {count} partitions instead of {before} at {moment(at_ms)}"
    evidence = (Evidence(shows, METADATA, 0, row["log_offset"], at_ms),)
    starts = [each["registered_timestamp_ms"] for each in context.look("brokers").to_pylist()]
    # A coordinator counts partitions when it starts (`GroupCoordinatorService.startup`).
    used = [each for each in starts if each is not None and at_ms <= each <= (2**62 if first is None else first)]
    added_then = f"partitions were added at {moment(at_ms)}, and brokers count them when they start"
    if used:
        return _Change(before, min(used), f"a broker started then; {added_then}", first, evidence)
    return _Change(before, at_ms if first is None else first, added_then, first, evidence)


def _first_in_new(context: RuleContext, moved: Sequence[MovedGroup]) -> int | None:
    """The time of the first record of these groups in their new partitions."""
    rows = context.table("timeline")
    rows = kept(rows, equal(rows, "group_id", *(each.group_id for each in moved)), pc.is_valid(rows["at_timestamp_ms"]))
    homes = {each.group_id: each.home for each in moved}
    columns = (rows[name].to_pylist() for name in ("group_id", "log_partition", "at_timestamp_ms"))
    times = [at for group, partition, at in zip(*columns, strict=True) if homes[group] == partition]
    times += [each.first_new_ms for each in moved if each.first_new_ms is not None]
    return min(times, default=None)


def _incident(context: RuleContext, count: int, change: _Change, moved: list[MovedGroup]) -> Incident:
    since, before = change.since_ms, change.before
    again = sorted((each for each in moved if each.read_again), key=lambda each: -each.read_again)
    # Commits were impossible between the stop of the old coordinator and the start of the new one.
    worked = [each.last_old_ms for each in moved if each.last_old_ms is not None and each.last_old_ms <= (since or 0)]
    until = max(worked, default=since)
    # If the log of a group's new partition is missing, what the group has done since is unknown.
    unread = incomplete_partitions(context, OFFSETS)
    known = [each for each in moved if each.home not in unread]
    stopped = [each for each in known if each.is_stopped(until, context.at_ms)]
    either = [each for each in moved if each.unsure and not each.read_again and each not in stopped]
    facts = (
        *change.evidence,
        Evidence(f"{OFFSETS} has {count} partitions, so these groups belong to another one"),
        *(
            Evidence(
                f"{each.group_id} is in partition {', '.join(map(str, each.old))}, and its coordinator reads"
                f" {each.home}",
                OFFSETS,
                each.old[0],
                None,
                each.last_old_ms,
            )
            for each in moved[:3]
        ),
    )
    was = "" if before is None else f" from {before}"
    finding = ReportFinding(
        kind=KIND,
        level=Level.LOW if (since or 0) < context.at_ms - context.limit(f"{KIND}.lately") else Level.CRITICAL,
        title=RULE.title,
        problem=(
            f"{counted(len(moved), 'group')} of {len(_groups(context))} "
            f"({listed([each.group_id for each in moved])}) have their offsets in a partition of {OFFSETS} that "
            f"their coordinators do not read: the topic has {count} "
            f"partitions{'' if before is None else f', and the groups are where {before} put them'}. So their "
            "coordinators do not know these groups."
        ),
        impact=_impact(moved, again, either, stopped, [each for each in known if each.is_idle(until)], until),
        consequence="work_repeated" if again else "work_stopped" if stopped else "none",
        group_ids=tuple(each.group_id for each in moved),
        topics=(OFFSETS,),
        since_timestamp_ms=since,
        since_note=change.note,
        is_going_on=True,
        scale={
            "groups": len(moved),
            "groups_read_again": len(again),
            f"records_repeated{AT_LEAST if any(each.is_least for each in again) else ''}": sum(
                each.read_again for each in again
            ),
            "groups_stopped": len(stopped),
            "groups_repeated_or_skipped_records": len(either),
        },
        evidence=tuple(shown for each in moved for shown in each.evidence)[:MOST_EVIDENCE] or facts[1:],
        evidence_count=sum(len(each.evidence) for each in moved) or len(moved),
        rows=(Rows("current_offsets"), Rows("groups")),
        next=_steps(context, change, moved, stopped),
        measured={"groups": len(moved), "partitions": count},
        thresholds=context.limits_of(f"{KIND}.lately", "report.group_settles_within"),
    )
    verdict = Verdict(
        f"Somebody has changed the number of partitions of {OFFSETS}{was} to {count} (kafka-topics --alter): with the "
        "new number, the hash of a group's name gives another partition.",
        evidence_for=facts,
        is_certain=True,
    )
    return Incident(finding, len(moved), {"partitions_added": verdict})


def _impact(
    moved: Sequence[MovedGroup],
    again: Sequence[MovedGroup],
    either: Sequence[MovedGroup],
    stopped: Sequence[MovedGroup],
    idle: Sequence[MovedGroup],
    until_ms: int | None,
) -> str:
    def named(groups: Sequence[MovedGroup]) -> str:
        return f"{counted(len(groups), 'group')} ({_names(groups)})"

    def form(groups: Sequence[MovedGroup], one: str, more: str) -> str:
        return one if len(groups) == 1 else more

    parts = []
    if again:
        parts.append(
            f"{named(again)} began again at lower offsets, and read"
            f" {'at least ' if any(each.is_least for each in again) else ''}"
            f"{counted(sum(each.read_again for each in again), 'record')} a second time"
        )
    if either:
        begins = [began for each in either for began in each.unsure]
        who, whose = form(either, "it", "they"), form(either, "its", "their")
        parts.append(f"{named(either)} continued without {whose} offsets: {either_words(who, whose, begins)}")
    if stopped:
        has_stopped = form(stopped, "has stopped: it has", "have stopped: they have")
        new, commits = form(stopped, "its", "their"), form(stopped, "commits", "commit")
        parts.append(f"{named(stopped)} {has_stopped} no members in {new} new partition and {commits} nothing")
    empty = [each for each in idle if each.had_members_until_ms is not None]
    silent = [each for each in idle if each not in empty]
    was_empty = "had no members at the time of the change"
    for groups, before in ((empty, was_empty), (silent, _silence(silent, until_ms or 0))):
        if groups:
            setting = "auto.offset.reset"
            settings = sorted({f"share.{setting}" if each.is_share else setting for each in groups})
            parts.append(
                f"{named(groups)} {before}, and {form(groups, 'has', 'have')} done nothing since: "
                f"{form(groups, 'it', 'they')} will begin where {' or '.join(settings)} says"
            )
    if len(moved) > MOST_GROUPS:
        parts.append(f"what groups read again was counted for {MOST_GROUPS} of them")
    back = [each for each in moved if each.is_share and each.is_there]
    if back:
        they = form(back, "it", "they")
        parts.append(
            f"the state of {named(back)} was initialized again: {they} began where share.auto.offset.reset says"
        )
    text = "; ".join(parts)
    return f"{capital(text)}." if parts else "Their coordinators do not have their offsets."


def _silence(silent: Sequence[MovedGroup], until_ms: int) -> str:
    """How long groups had been without commits before the change."""
    least = min((until_ms - (each.last_old_ms or until_ms) for each in silent), default=0)
    return f"had committed nothing for {'' if len(silent) == 1 else 'at least '}{length(least)} before the change"


def _steps(
    context: RuleContext, change: _Change, moved: Sequence[MovedGroup], stopped: Sequence[MovedGroup]
) -> tuple[NextStep, ...]:
    shares = [each.group_id for each in moved if each.is_share]
    with_offsets = [each for each in moved if not each.is_share]
    passed = [each for each in with_offsets if each.gains_nothing]
    halted = [each for each in stopped if not each.is_share and each not in passed]
    skipped = [each for each in with_offsets if each.skipped and each not in halted]
    others = [each for each in with_offsets if each not in (*passed, *halted, *skipped)]
    as_of = _as_of(context, change, moved)
    steps = []
    first = next(iter((*halted, *sorted(skipped, key=lambda each: -each.skipped), *others)), None)
    if first is not None:
        of_groups = (word for each in context.request.groups or () for word in option("--group", each))
        steps.append(
            context.see(
                "Stop the consumers of the groups to restore. Then write the old copies of the offsets into a file for "
                "kafka-consumer-groups",
                Rows("current_offsets"),
                *of_groups,
                *as_of,
                *("--format", "reset-offsets", "--output", "offsets.csv"),
            )
        )
        cases = (
            (halted, "so that each continues where it stopped"),
            (
                skipped,
                "so that each reads what it skipped, if its auto.offset.reset is latest (leave it out if that is "
                "earliest: it has read everything, and would only repeat records)",
            ),
            (others, "so that each continues after what it had read"),
        )
        restored = "; of ".join(f"{_names(groups, _MOST_NAMED)}, {why}" for groups, why in cases if groups)
        steps.append(
            context.ask_kafka(
                f"Restore the old offsets of {restored}. {_not_restored(passed)}The command is for one group, with its "
                "lines of the file: it shows what would be done, and does it with --execute in place of --dry-run. "
                "Then start the consumers",
                "kafka-consumer-groups",
                *("--reset-offsets", *option("--group", first.group_id), "--from-file", "offsets.csv", "--dry-run"),
            )
        )
    elif passed:
        steps.append(NextStep(_not_restored(passed).rstrip(" .")))
    if shares:
        steps.append(
            context.see(
                f"Share groups ({listed(shares)}) have no offsets in that file: look where they were. When their "
                "consumers start, a new coordinator initializes their state again",
                Rows("share_partitions", of_group(shares[0])),
                *as_of,
            )
        )
        steps.append(
            context.ask_kafka(
                "Before they start, have each share group begin where it was: with a duration from that moment until "
                "they start (one hour here), in place of share.auto.offset.reset, which is latest unless it is set",
                "kafka-configs",
                *("--alter", "--entity-type", "groups", *option("--entity-name", shares[0])),
                *("--add-config", "share.auto.offset.reset=by_duration:PT1H"),
            )
        )
    old = Rows("current_offsets", (f"log_partition<{change.before}",) if change.before else ())
    return (
        *steps,
        NextStep(
            "The number of partitions cannot be reduced. The old copies are of no use to coordinators afterwards, "
            "and groups that have stopped must be restarted"
        ),
        context.see("List the old copies", old),
        context.ask_kafka(
            "Ask the brokers for the number of partitions", "kafka-topics", "--describe", "--topic", OFFSETS
        ),
    )


def _as_of(context: RuleContext, change: _Change, moved: Sequence[MovedGroup]) -> tuple[str, ...]:
    """The option for a time at which only the old copies existed."""
    if change.first_ms is not None:
        return ("--as-of", instant(change.first_ms - 1))
    # Without commits in the new partitions, the state in the old ones is right. But groups outside this report may have
    # commits in the new ones.
    if context.request.groups is None or change.since_ms is None:
        return ()
    return ("--as-of", instant(max(change.since_ms, *(each.last_old_ms or 0 for each in moved))))


def _not_restored(passed: Sequence[MovedGroup]) -> str:
    """A sentence about groups whose old offsets would only repeat records, with a trailing space."""
    if not passed:
        return ""
    they = "it has" if len(passed) == 1 else "they have"
    return (
        f"There is nothing to restore for {_names(passed, _MOST_NAMED)}: {they} read up to the old offsets "
        "again, which would only repeat records. "
    )


def _names(groups: Sequence[MovedGroup], most: int = 3) -> str:
    return listed([each.group_id for each in groups], most)


def _groups(context: RuleContext) -> set[str]:
    return {
        *context.table("current_offsets")["group_id"].unique().to_pylist(),
        *context.table("groups")["group_id"].to_pylist(),
    }


RULE = incident_rule(
    kind=KIND,
    title=f"groups have lost their offsets: {OFFSETS} has another number of partitions",
    about="""\
Groups with records in a partition that their coordinator does not read. A group that began at a lower offset has read
records again.""",
    tables=("current_offsets", "groups", "timeline", "checks"),
    levels={Level.CRITICAL: "it happened within `lately`", Level.LOW: "it happened earlier, and old copies are left"},
    find=_find,
    listing=Rows("current_offsets"),
    causes=(
        PossibleCause(
            "partitions_added",
            "somebody has changed the number of partitions of the topic",
            "for: the number in the metadata log",
        ),
    ),
    thresholds=(
        Threshold("lately", "duration", "7d", "incidents within this time matter", "old copies are never removed"),
    ),
    folds=(
        Folds("records_misplaced"),
        Folds("offsets_rewound"),
        Folds("offsets_began_again"),
        Folds("members_unsettled"),
        Folds("group_stands_still"),
    ),
)

RULES = (RULE,)
