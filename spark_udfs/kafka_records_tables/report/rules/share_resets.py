"""Start offsets of share groups that were altered by request, so that records were skipped or are delivered again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import kept
from kafka_records_tables.report.command_lines import option
from kafka_records_tables.report.facts.group_facts import LogEnds, MemberLife, log_ends, member_lives
from kafka_records_tables.report.facts.known_logs import members_known
from kafka_records_tables.report.facts.offset_ranges import OffsetRange, offset_count, within
from kafka_records_tables.report.facts.share_initializations import TABLE as INITIALIZATIONS
from kafka_records_tables.report.facts.share_resets import TABLE
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Actor, Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Threshold, Verdict
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    SECOND_MS,
    RuleContext,
    counted,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.topics import SHARE_STATE

KIND: Final = "share_offsets_reset"
_NEAR_MS: Final = 5 * SECOND_MS
"""The most time between a tool's request for the end of a log and the change; also allows for producers' clocks."""
_BACK: Final = "the start offsets of a share group were moved back"
_KNOWN, _REMADE, _DELETED, _UNKNOWN = "known", "recreated", "deleted", "unknown"
"""What is known about the log of a partition now."""
_GONE: Final = "the start offsets of a share group were moved ahead, past offsets that are not in the logs"


@dataclass(frozen=True, slots=True)
class _Reset:
    """An altered start offset of a share partition, with the affected offsets that are still in the log."""

    row: dict[str, Any]
    topic: str
    skipped: list[OffsetRange]
    repeated: list[OffsetRange]
    log_start: int | None
    """The offset at which the log starts now; None if the log is not in the source."""
    log: str
    """Whether the records of that time may still be there: `_KNOWN` or a reason why not."""
    is_at_end: bool
    """Whether the new offset is known to be the end of the log at that time."""

    @property
    def partition(self) -> int:
        return int(self.row["partition"])

    @property
    def place(self) -> str:
        """The partition in the form `<topic>-<partition>`."""
        return f"{self.topic}-{self.partition}"

    def __str__(self) -> str:
        return f"{self.place} from {self.row['old_start_offset']} to {self.row['start_offset']}"


def _find(context: RuleContext) -> list[Incident]:
    # Each initialization after the first one writes a snapshot with a higher epoch than 0.
    states = context.table("share_partitions")
    groups = kept(states, pc.greater(states["snapshot_epoch"], 0))["group_id"].unique().to_pylist()
    groups = sorted(set(context.look(INITIALIZATIONS, groups)["group_id"].to_pylist())) if groups else []
    if not groups:
        return []
    rows = context.look(TABLE, groups).to_pylist()
    names = {each["topic_id"]: each["topic"] for each in context.table("share_group_topics").to_pylist()}
    lives, ends = member_lives(context, groups), log_ends(context)
    # The epoch of the group changes when a member joins.
    found: dict[tuple[str, int], list[_Reset]] = {}
    for row in rows:
        topic = row["topic"] or names.get(row["topic_id"]) or row["topic_id"]
        found.setdefault((row["group_id"], row["state_epoch"]), []).append(_reset(context, row, topic, ends))
    return [
        _incident(context, group, resets, lives.get(group, []), ends)
        for (group, _), resets in found.items()
        if any(each.skipped or each.repeated or each.row["skipped"] or each.row["recovered"] for each in resets)
    ]


def _reset(context: RuleContext, row: dict[str, Any], topic: str, ends: LogEnds) -> _Reset:
    place = topic, row["partition"]
    log = _log_of(context, row, topic, ends)
    is_same = log == _KNOWN
    start, end = (ends.start(place), ends.end(place)) if is_same else (None, None)
    last = None if end is None else end - 1
    skipped, repeated = (
        within(((each["first_offset"], each["last_offset"]) for each in row[name]), start or 0, last)
        for name in ("skipped", "repeated")
    )
    at_ms, is_at_end = row["log_timestamp_ms"], False
    if is_same and at_ms is not None:
        least, most = (ends.end_at(place, at_ms + each) for each in (-_NEAR_MS, _NEAR_MS))
        is_at_end = least is not None and most is not None and least <= row["start_offset"] <= most
    return _Reset(row, topic, skipped, repeated, start, log, is_at_end)


def _log_of(context: RuleContext, row: dict[str, Any], topic: str, ends: LogEnds) -> str:
    """What is known about the log of a share partition now. A topic that was recreated has new logs."""
    changes = [each for each in changes_of(context, topic) if each["event"] in ("created", "deleted")]
    if changes and changes[-1]["event"] == "deleted":
        return _DELETED
    topic_id = changes[-1]["topic_id"] if changes else ends.topic_id(topic)
    if topic_id not in (None, row["topic_id"]):
        return _REMADE
    return _UNKNOWN if ends.end((topic, row["partition"])) is None else _KNOWN


def _incident(
    context: RuleContext, group: str, resets: list[_Reset], lives: list[MemberLife], ends: LogEnds
) -> Incident:
    resets = sorted(resets, key=lambda each: (each.topic, each.partition))
    times = [each.row["log_timestamp_ms"] for each in resets if each.row["log_timestamp_ms"] is not None]
    since = min(times, default=None)
    skipped, repeated = (sum(offset_count(getattr(each, name)) for each in resets) for name in ("skipped", "repeated"))
    recovered, attempted = (sum(each.row[name] for each in resets) for name in ("recovered", "attempted"))
    is_new = since is None or since >= context.at_ms - context.limit(f"{KIND}.lately")
    is_much = skipped >= context.limit(f"{KIND}.records")
    left = max((each.left_ms for each in lives if each.left_ms and since and each.left_ms <= since), default=None)
    back = min((each.joined_ms for each in lives if each.joined_ms and since and each.joined_ms > since), default=None)
    is_empty = back is None and members_known(context, group)
    finding = ReportFinding(
        kind=KIND,
        level=(
            (Level.HIGH if is_much and is_new else Level.MODERATE)
            if skipped
            else Level.MODERATE if repeated and is_new else Level.NOTE
        ),
        title=RULE.title if skipped or recovered else _BACK if repeated else _GONE,
        problem=_problem(group, resets, since, left, back),
        impact=_impact(resets, skipped, repeated, attempted, recovered, is_empty=is_empty),
        consequence="data_lost" if skipped else "work_repeated" if repeated else "none",
        group_ids=(group,),
        topics=tuple(sorted({each.topic for each in resets})),
        partitions=tuple(sorted({each.partition for each in resets if each.topic == resets[0].topic})),
        who=(Actor("had no members at that time", group),),
        since_timestamp_ms=since,
        is_going_on=False,
        symptom_confidence="medium",
        why_not_sure=(
            "offsets of transaction markers, and of records that a cleaner has removed, are counted too"
            if all(each.row["is_beginning_known"] for each in resets)
            else "the log does not show at which offset the group began"
        ),
        scale={"records_lost": skipped, "records_repeated": repeated, "partitions": len(resets)},
        evidence=tuple(_evidence(each) for each in resets[:MOST_EVIDENCE]),
        evidence_count=len(resets),
        rows=(Rows("share_partitions", of_group(group)),),
        next=tuple(_steps(context, group, resets, ends, is_empty=is_empty)),
        measured={"skipped": skipped, "repeated": repeated, "recovered": recovered},
        thresholds=context.limits_of(f"{KIND}.records", f"{KIND}.lately"),
    )
    return Incident(finding, skipped * 1000 + repeated, _verdicts(context, group, resets))


def _problem(group: str, resets: list[_Reset], since: int | None, left: int | None, back: int | None) -> str:
    where = places_shown({(each.topic, each.partition) for each in resets})
    when = "" if since is None else f"At {moment(since)}, "
    empty = "while it had no members" + ("" if left is None else f" (since {moment(left)})")
    ahead = [each for each in resets if each.row["start_offset"] > each.row["old_start_offset"]]
    ends = "the end of the log" if len(resets) == 1 else "the ends of the logs"
    how = "set" if 0 < len(ahead) < len(resets) else "moved ahead" if ahead else "moved back"
    to = f" to {ends}" if all(each.is_at_end for each in resets) else ""
    offsets = ", ".join(map(str, resets[:3])) + (f" and {len(resets) - 3} more" if len(resets) > 3 else "")
    continued = "" if back is None else f" Its members have continued from there since {moment(back)}."
    begin = f"{when}the" if when else "The"
    return (
        f"{begin} start offsets of the share group {shown(group)} for {where} were {how}{to} by request, {empty}: "
        f"{offsets}.{continued}"
    )


def _impact(
    resets: list[_Reset], skipped: int, repeated: int, attempted: int, recovered: int, *, is_empty: bool
) -> str:
    texts = []
    deleted = sum(each["last_offset"] - each["first_offset"] + 1 for one in resets for each in one.row["skipped"])
    deleted -= skipped
    if skipped:
        tried = f" ({attempted} of them had been delivered, but not acknowledged)" if attempted else ""
        texts.append(
            f"{counted(skipped, 'record')} that no member had finished {'was' if skipped == 1 else 'were'} "
            f"skipped{tried}: the group will not get them{_still_there(resets)}"
        )
    if recovered:
        texts.append(f"A later request has moved back to {counted(recovered, 'skipped record')}.")
    if repeated:
        known = all(each.row["is_beginning_known"] for each in resets)
        will = "will be" if is_empty else "are"
        still = "" if all(each.log == _KNOWN for each in resets) else ", if they are still in the topic"
        texts.append(
            f"{'' if known else 'Up to '}{counted(repeated, 'record')} that had been acknowledged or archived {will} "
            f"delivered again{still}."
        )
    if deleted > 0:
        texts.append(
            f"{counted(deleted, 'other offset')} in between {'is' if deleted == 1 else 'are'} not in the logs now: "
            "whether the records were deleted before is unknown."
        )
    return " ".join(texts)


def _still_there(resets: list[_Reset]) -> str:
    """The end of a sentence about skipped records: whether they are still in the topic."""
    places: dict[str, list[tuple[str, int]]] = {}
    for each in resets:
        if each.skipped:
            places.setdefault(each.log, []).append((each.topic, each.partition))
    if [*places] == [_KNOWN]:
        return ", unless its start offsets are moved back. They are still in the topic."
    texts = ["."]
    for log, those in places.items():
        where = f"The records of {places_shown(those)} are" if len(places) > 1 else "They are"
        if log in (_REMADE, _DELETED):
            texts.append(f"{where} gone, because the topic was {log}.")
        elif log == _UNKNOWN:
            texts.append(f"Whether records of {places_shown(those)} are still in the topic is unknown.")
        else:
            texts.append(f"{where} still in the topic.")
    return " ".join(texts)


def _evidence(each: _Reset) -> Evidence:
    row = each.row
    is_back = row["start_offset"] < row["old_start_offset"]
    parts = (
        [f"{counted(offset_count(each.skipped), 'record')} skipped ({_shown(each.skipped)})"] if each.skipped else []
    )
    parts += [f"{counted(offset_count(each.repeated), 'record')} repeated"] if each.repeated else []
    parts += [f"the log starts at {each.log_start} now"] if each.log_start and not is_back and not parts else []
    return Evidence(
        f"{each.place}: a new snapshot without batches, with state epoch {row['state_epoch']}, has start offset "
        f"{row['start_offset']} after {row['old_start_offset']}{''.join(f'; {part}' for part in parts)}",
        SHARE_STATE,
        row["log_partition"],
        row["log_offset"],
        row["log_timestamp_ms"],
    )


def _shown(ranges: Sequence[OffsetRange], most: int = 3) -> str:
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:most]]
    return ", ".join(texts) + (f" and {len(ranges) - most} more ranges" if len(ranges) > most else "")


def _steps(
    context: RuleContext, group: str, resets: list[_Reset], ends: LogEnds, *, is_empty: bool
) -> Iterable[NextStep]:
    skipping = [each for each in resets if each.skipped and each.log == _KNOWN]
    others = [each for each in resets if each.skipped and each.log != _KNOWN]
    if skipping:
        first = skipping[0]
        begin, end = first.skipped[0]
        ranges = "; ".join(f"{each.place} {_shown(each.skipped)}" for each in skipping[:MOST_EVIDENCE])
        more = len(skipping) - MOST_EVIDENCE
        read = context.ask_kafka(
            f"If these records must be processed, read exactly the skipped offsets with a consumer that is not in the "
            f"group, and process them: {ranges}{f' and {more} more partitions' if more > 0 else ''}. This prints "
            f"{'the first of these ranges' if len(skipping) > 1 or len(first.skipped) > 1 else 'them'}",
            "kafka-console-consumer",
            *option("--topic", first.topic),
            *("--partition", str(first.partition), "--offset", str(begin), "--max-messages", str(end - begin + 1)),
        )
        reset = _back_step(context, group, skipping, ends, is_empty=is_empty)
        yield from (reset, read) if is_empty else (read, reset)
    elif not others and any(each.repeated for each in resets) and is_empty:
        old = ", ".join(f"{each.place} to {each.row['old_start_offset']}" for each in resets[:MOST_EVIDENCE])
        yield NextStep(
            "If the records must not be delivered again, set the old start offsets before members start "
            f"(Admin.alterShareGroupOffsets; kafka-share-groups can only move to a time): {old}"
        )
    if others:
        ranges = "; ".join(f"{each.place} {_shown(each.skipped)}" for each in others[:MOST_EVIDENCE])
        yield NextStep(
            "If these records must be processed, and are not in the topic any more, have the producing systems send "
            f"them again: {ranges}"
        )
    times = sorted({each.row["log_timestamp_ms"] for each in resets if each.row["log_timestamp_ms"] is not None})
    when = f" at {moment(times[0])}" if times else ""
    what = (
        "the records in between were to be skipped" if skipping or others else "the records were to be delivered again"
    )
    yield NextStep(f"Ask who altered the start offsets{when}, and whether {what}")
    if context.request.source_arguments:
        yield NextStep(
            "List each change of its state, with its time",
            context.reading_command("dump", "--topic", SHARE_STATE, *option("--group", group)),
        )
    yield context.ask_kafka(
        "Ask the brokers for the present start offsets", "kafka-share-groups", "--describe", *option("--group", group)
    )


def _back_step(context: RuleContext, group: str, resets: list[_Reset], ends: LogEnds, *, is_empty: bool) -> NextStep:
    """The step that moves back to the first skipped records. The tool accepts only times, so the step passes the time
    of the record before them: the first record at or after that time is not after the skipped ones."""
    topics: dict[str, list[_Reset]] = {}
    for each in resets:
        topics.setdefault(each.topic, []).append(each)
    first = topics[resets[0].topic]
    places = [((each.topic, each.partition), each.skipped[0][0]) for each in first]
    before = [ends.last_ms_before(*each) for each in places]
    times = [each for each in before if each is not None]
    to: tuple[str, ...] = ()
    if len(times) == len(before):
        at = datetime.fromtimestamp(min(times) / SECOND_MS, UTC).isoformat(timespec="milliseconds")
        to = ("--to-datetime", at.removesuffix("+00:00"))
    elif all(ends.start(place) == offset for place, offset in places):
        to = ("--to-earliest",)
    again = "" if is_empty else ". Then records that were delivered since are delivered again"
    what = (
        "If these records must be processed, move the start offsets back before members start"
        if is_empty
        else "Or stop the members, and move the start offsets back"
    )
    others = f". Do the same for {counted(len(topics) - 1, 'other topic')}" if len(topics) > 1 else ""
    if not to:
        exact = ", ".join(f"{each.place} to {each.skipped[0][0]}" for each in resets[:MOST_EVIDENCE])
        return NextStep(f"{what} (Admin.alterShareGroupOffsets: {exact}){again}")
    partitions = ",".join(str(each.partition) for each in first)
    return context.ask_kafka(
        f"{what}: this shows where they would be, at or a little before the first skipped record, and sets them with "
        f"--execute in place of --dry-run{others}{again}",
        "kafka-share-groups",
        "--reset-offsets",
        *option("--group", group),
        *option("--topic", f"{resets[0].topic}:{partitions}"),
        *to,
        "--dry-run",
    )


def _verdicts(context: RuleContext, group: str, resets: list[_Reset]) -> dict[str, Verdict]:
    first = resets[0]
    row = first.row
    proof = _evidence(first)
    before = Evidence(
        f"the group had state for {first.place} before, with start offset {row['old_start_offset']}",
        SHARE_STATE,
        row["log_partition"],
        row["state_log_offset"],
        row["state_timestamp_ms"],
    )
    ends = Evidence("the new offsets were the ends of the logs at that moment")
    by_request = Verdict(
        f"Somebody altered the start offsets of {shown(group)} (kafka-share-groups --reset-offsets, "
        "Admin.alterShareGroupOffsets).",
        evidence_for=(proof, *((ends,) if all(each.is_at_end for each in resets) else ())),
        is_certain=True,
    )
    return {
        "altered_by_request": by_request,
        "began_at_latest": Verdict("The group is new and began at the ends of the logs.", refuted_by=before),
        "records_deleted": Verdict("The records between the offsets were deleted.", refuted_by=proof),
    }


RULE = incident_rule(
    kind=KIND,
    title="the start offsets of a share group were moved ahead, so that it skipped records",
    about="""\
Start offsets of share partitions that a request (AlterShareGroupOffsets) altered after the group had read them. Records
between the old and the new offset are repeated if they were acknowledged or archived, otherwise skipped. Deleted
records are not counted.""",
    tables=("share_partitions", "share_group_topics", "timeline", "log_ends"),
    levels={
        Level.HIGH: "`records` or more were skipped, within `lately`",
        Level.MODERATE: "fewer, or earlier; or records are delivered again, within `lately`",
        Level.NOTE: "repeated earlier; or a later request moved back to all that were skipped, or they are not in the "
        "logs",
    },
    find=_find,
    listing=Rows("share_partitions"),
    causes=(
        PossibleCause(
            "altered_by_request",
            "an administrator or a tool altered the start offsets",
            "certain: the snapshot has a higher state epoch and no batches",
        ),
        PossibleCause(
            "began_at_latest",
            "the group is new and began at the ends of the logs (`share.auto.offset.reset`)",
            "refuted: it had a start offset before",
        ),
        PossibleCause(
            "records_deleted",
            "retention or a request deleted the records in between",
            "refuted: that keeps the state epoch",
        ),
    ),
    thresholds=(
        Threshold(
            "records",
            "count",
            20,
            "skipped records that are more than somebody leaves out on purpose",
            "records that cannot be processed are skipped one by one",
        ),
        Threshold("lately", "duration", "24h", "incidents within this time are new", "since the last shift"),
    ),
)

RULES = (RULE,)
