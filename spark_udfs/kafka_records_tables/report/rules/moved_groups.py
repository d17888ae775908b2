"""Groups in two partitions of `__consumer_offsets`, because its number of partitions was changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Threshold, Verdict
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import LogEnds, Offset, Span
    from kafka_records_tables.report.rule_context import RuleContext

KIND: Final = "groups_in_two_partitions"


@dataclass(slots=True)
class MovedGroup:
    """A group whose records are in a partition that its coordinator does not read."""

    group_id: str
    home: int
    """The partition that its coordinator reads now."""
    old: tuple[int, ...]
    last_old_ms: int | None = None
    """When it last committed to an old partition."""
    first_new_ms: int | None = None
    read_again: int = 0
    is_least: bool = False
    """Whether the start of a log is unknown, so that it may have read more again."""
    unclear: int = 0
    """Partitions whose first offset after the move is not below the last one before it."""
    unread: int = 0
    """Records of those partitions that were skipped or read again, regardless of auto.offset.reset."""
    evidence: list[Evidence] = field(default_factory=list)


def _moved(context: RuleContext) -> tuple[int | None, list[MovedGroup]]:
    """The number of partitions, if it is known, and the groups with records in other partitions."""
    from kafka_records_runtime.kafka.partitioner import partition_for

    places: dict[str, set[int]] = {}
    for name in ("current_offsets", "groups"):
        rows = context.table(name).group_by(["group_id", "log_partition"]).aggregate([])
        for row in rows.to_pylist():
            places.setdefault(row["group_id"], set()).add(row["log_partition"])
    count = _partition_count(context, places)
    if count is None:
        return None, []
    homes = {group: partition_for(group, count) for group in places}
    return count, [
        MovedGroup(group, homes[group], tuple(sorted(each - {homes[group]})))
        for group, each in places.items()
        if each - {homes[group]}
    ]


def _partition_count(context: RuleContext, places: dict[str, set[int]]) -> int | None:
    """The number of partitions of the topic: as passed by the user, from the metadata log, or from the available logs
    if a group is in two of them."""
    from kafka_records_runtime.kafka.partitioner import partition_for

    said = context.request.partitions
    if said is not None and OFFSETS in said:
        return said[OFFSETS]
    if all(len(each) == 1 for each in places.values()) and not context.table("checks").num_rows:
        return None
    for row in context.look("topics").to_pylist():
        if row["topic"] == OFFSETS and row["deleted_timestamp_ms"] is None:
            found: int | None = row["partition_count"]
            return found
    twice = {group: each for group, each in places.items() if len(each) > 1}
    highest = max((max(each) for each in places.values()), default=0)
    counts = [
        count
        for count in range(highest + 1, 2 * highest + 64)
        if all(partition_for(group, count) in each for group, each in twice.items())
    ]
    # If a group is in two partitions, one of them is the new one. A few such groups are enough to determine the number
    # of partitions.
    return counts[0] if twice and len(counts) == 1 else None


def _find(context: RuleContext) -> list[Incident]:
    from kafka_records_tables.report.facts.group_facts import MOST_GROUPS, commit_spans, log_ends, member_lives

    count, moved = _moved(context)
    if count is None or not moved:
        return []
    before = _count_before(context, moved)
    spans = commit_spans(context, tuple(each.group_id for each in moved[:MOST_GROUPS]))
    lives = member_lives(context, [each.group_id for each in moved[:MOST_GROUPS]])
    of_group: dict[str, dict[Offset, list[Span]]] = {}
    for key, value in spans.items():
        of_group.setdefault(key[0], {})[key] = value
    ends = log_ends(context)
    for each in moved:
        joined = [life.joined_ms for life in lives.get(each.group_id, ()) if life.log_partition == each.home]
        _consequences(each, of_group.get(each.group_id, {}), ends, min(filter(None, joined), default=None))
    return [_incident(context, count, before, moved)]


def _count_before(context: RuleContext, moved: list[MovedGroup]) -> int | None:
    """The earlier number of partitions: the one with which every old copy is in its partition."""
    from kafka_records_runtime.kafka.partitioner import partition_for

    highest = max(max(each.old) for each in moved)
    fits = [
        count
        for count in range(highest + 1, highest + 200)
        if all(partition_for(each.group_id, count) in each.old for each in moved)
    ]
    return fits[0] if fits else None


def _consequences(moved: MovedGroup, spans: dict[Offset, list[Span]], ends: LogEnds, joined_ms: int | None) -> None:
    """Add the evidence of a group's commits: a group that began below the end that the log had when it joined began at
    the earliest record."""
    from kafka_records_tables.report.facts.beginnings import beginning

    for (_, topic, partition), every in spans.items():
        old = [each for each in every if each.log_partition != moved.home]
        new = [each for each in every if each.log_partition == moved.home]
        if old:
            moved.last_old_ms = max(moved.last_old_ms or 0, old[-1].from_ms or 0)
        if not new:
            continue
        first = new[0]
        moved.first_new_ms = min(moved.first_new_ms or 2**62, first.from_ms or 2**62)
        if not old:
            continue
        last = old[-1]
        start = ends.start((topic, partition))
        began = beginning(ends, (topic, partition), last.offset, first.offset, joined_ms)
        if began.again and not began.is_unsure:
            moved.read_again += min(last.offset, new[-1].offset) - min(
                first.offset if start is None else start, first.offset
            )
            moved.is_least = moved.is_least or start is None
            shows = (
                f"{moved.group_id} had committed {last.offset} for {topic}-{partition}, and began again: {first.offset}"
            )
            moved.evidence.append(Evidence(shows, OFFSETS, first.log_partition, first.log_offset, first.from_ms))
        elif first.offset > last.offset:
            moved.unclear += 1
            moved.unread += first.offset - last.offset


def _incident(context: RuleContext, count: int, before: int | None, moved: list[MovedGroup]) -> Incident:
    from kafka_records_tables.report.rule_context import MOST_EVIDENCE, counted, listed, moment

    again = sorted((each for each in moved if each.read_again), key=lambda each: -each.read_again)
    stopped = [each for each in moved if each.first_new_ms is None]
    unclear = [each for each in moved if each.unclear and not each.read_again]
    firsts = [each.first_new_ms for each in moved if each.first_new_ms is not None]
    lasts = [each.last_old_ms for each in moved if each.last_old_ms is not None]
    since = min(firsts, default=max(lasts, default=None))
    parts = []
    if again:
        named = listed([each.group_id for each in again])
        parts.append(
            f"{counted(len(again), 'group')} ({named}) began again at lower offsets, and read"
            f" {'at least ' if any(each.is_least for each in again) else ''}"
            f"{counted(sum(each.read_again for each in again), 'record')} a second time"
        )
    if unclear:
        named = listed([each.group_id for each in unclear])
        parts.append(
            f"{counted(len(unclear), 'group')} ({named}) continued without their offsets, as auto.offset.reset says: "
            "with `earliest` they read everything again, with `latest` they skipped the unread records"
        )
    if stopped:
        named = listed([each.group_id for each in stopped])
        parts.append(f"{counted(len(stopped), 'group')} ({named}) committed nothing to their new coordinator")
    until = max(lasts, default=None)
    # Without commits in new partitions, the present state of the old ones is right.
    before_it = None if not firsts else min(firsts) - 1
    as_of = () if before_it is None else ("--as-of", str(before_it))
    old = Rows("current_offsets", (f"log_partition<{before}",) if before else ())
    keep = context.see(
        "Stop the consumers. Then write the old copies of the offsets into a file for kafka-consumer-groups",
        Rows("current_offsets"),
        *as_of,
        "--format",
        "reset-offsets",
        "--output",
        "offsets.csv",
    )
    write = context.ask_kafka(
        "Restore the old offsets of each group (the same for each group, with its lines of the file): this shows what "
        "would be done, and does it with --execute in place of --dry-run. Then start the consumers",
        "kafka-consumer-groups",
        "--reset-offsets",
        "--group",
        (again or unclear or stopped or moved)[0].group_id,
        "--from-file",
        "offsets.csv",
        "--dry-run",
    )
    facts = (
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
            f"{counted(len(moved), 'group')} of {len(_groups(context))}"
            f" ({listed([each.group_id for each in moved])}) have"
            f" their offsets in a partition of {OFFSETS} that their coordinators do not read: the topic has {count}"
            f" partitions{'' if before is None else f', and the groups are where {before} put them'}. So their"
            " coordinators know nothing of them."
        ),
        impact=(
            "; ".join(parts)[:1].upper() + "; ".join(parts)[1:] + "."
            if parts
            else "Their coordinators do not have their offsets."
        ),
        consequence="work_repeated" if again else "work_stopped",
        group_ids=tuple(each.group_id for each in moved),
        topics=(OFFSETS,),
        since_timestamp_ms=since,
        since_note=None if until is None else f"the last commit to an old partition was at {moment(until)}",
        is_going_on=True,
        scale={
            "groups": len(moved),
            "groups_read_again": len(again),
            "records_repeated": sum(each.read_again for each in again),
            "groups_stopped": len(stopped),
            "groups_unclear": len(unclear),
        },
        evidence=tuple(shown for each in moved for shown in each.evidence)[:MOST_EVIDENCE] or facts[1:],
        evidence_count=sum(len(each.evidence) for each in moved) or len(moved),
        rows=(Rows("current_offsets"), Rows("groups")),
        next=(
            keep,
            write,
            NextStep(
                "The number of partitions cannot be reduced. The old copies are of no use to coordinators afterwards, "
                "and groups that have stopped must be restarted"
            ),
            context.see("List the old copies", old),
            context.ask_kafka(
                "Ask the brokers for the number of partitions", "kafka-topics", "--describe", "--topic", OFFSETS
            ),
        ),
        measured={"groups": len(moved), "partitions": count},
        thresholds=context.limits_of(f"{KIND}.lately"),
    )
    verdict = Verdict(
        f"Somebody has changed the number of partitions of {OFFSETS}{was} to {count} (kafka-topics --alter): with the "
        "new number, the hash of a group's name gives another partition.",
        evidence_for=facts,
        is_certain=True,
    )
    return Incident(finding, len(moved), {"partitions_added": verdict})


def _groups(context: RuleContext) -> set[str]:
    return {
        *context.table("current_offsets")["group_id"].unique().to_pylist(),
        *context.table("groups")["group_id"].to_pylist(),
    }


RULE = incident_rule(
    kind=KIND,
    title=f"groups have lost their offsets: {OFFSETS} has another number of partitions",
    about="""\
Groups with records in a partition that their coordinators do not read, given the number of partitions that the topic
has. The commits of each group show the effect: a group that began at a lower offset has read records again; for a group
that continued at a higher one, the effect depends on its auto.offset.reset; a group without a commit in its new
partition has stopped.""",
    tables=("current_offsets", "groups", "checks"),
    levels={Level.CRITICAL: "it happened within `lately`", Level.LOW: "it happened earlier: old copies are left"},
    find=_find,
    listing=Rows("current_offsets"),
    causes=(
        PossibleCause(
            "partitions_added",
            "somebody has changed the number of partitions of the topic",
            "for: the number in the metadata log, old copies that fit another number",
        ),
    ),
    thresholds=(
        Threshold("lately", "duration", "7d", "incidents within this time matter", "old copies are never removed"),
    ),
    folds=(
        Folds("records_misplaced"),
        Folds("offsets_rewound"),
        Folds("offsets_began_anew"),
        Folds("members_unsettled"),
        Folds("group_stands_still"),
    ),
)

RULES = (RULE,)
