"""Damage found while reading, and missing files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_engine.findings import MISSING_RIGHT
from kafka_records_engine.log.files.source_error import NOT_READABLE
from kafka_records_tables.report.case_columns import equal, kept, ranked
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted, listed, moment
from kafka_records_tables.report.rules.broken_logs import LOADS, groups_of_logs, groups_shown, logs_shown
from kafka_records_tables.topics import METADATA, OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_engine.findings import Finding
    from kafka_records_tables.report.lost_files import LostFile

_COORDINATORS = (OFFSETS, SHARE_STATE, TRANSACTIONS, None)


def _places(context: RuleContext) -> set[tuple[Any, ...]]:
    """The records at which a coordinator stops. They have their own findings."""
    rows = context.table("checks")
    stops = kept(rows, equal(rows, "check", *LOADS)).select(["log_topic", "log_partition", "log_offset"])
    places = zip(*(column.to_pylist() for column in stops.columns), strict=True)
    return set(places)


def _damage_cases(context: RuleContext) -> pa.Table:
    told = _places(context)
    damage: dict[tuple[str | None, bool], list[int]] = {}
    # Findings that show how much is lost come before table findings about the same place.
    by_loss = sorted(enumerate(context.reading), key=lambda each: not (each[1].records or each[1].bytes))
    for at, finding in by_loss:
        place: tuple[Any, ...] = (finding.topic, finding.partition, finding.offset)
        if finding.offset is None:
            # If a batch is unreadable, some readers cannot determine its first offset.
            place = (*place, finding.file, finding.position)
            place = place if finding.position is not None else (*place, finding.base_offset)
        if _is_forbidden(finding):
            place = (*place[:3], finding.file)
        # Several tables may report the same record, each with a different consequence.
        if finding.severity == "damage" and finding.reason != MISSING_RIGHT and place not in told:
            told.add(place)
            damage.setdefault((finding.topic, _is_forbidden(finding)), []).append(at)
    table = pa.table({"at": pa.array(list(damage.values()), pa.list_(pa.int64()))})
    return ranked(table, [int(Level.HIGH)] * len(damage), [len(each) for each in damage.values()])


def _is_forbidden(finding: Finding) -> bool:
    """Whether only another user may read a file or folder."""
    return finding.what == NOT_READABLE


def _is_lost(finding: Finding) -> bool:
    """Whether one of several sources had nothing to read."""
    return finding.topic is None and finding.is_about_file


def _see_places(found: Sequence[Finding], context: RuleContext) -> NextStep:
    """The command that reads the damaged logs of a topic. `counts` reads only coordinators' records."""
    what, topic = "List every damaged place: file, byte and what is lost", found[0].topic
    if topic == METADATA:
        return context.see(what, Rows("topics"))
    # Of other topics, only batch headers and producer snapshots are read.
    if topic not in _COORDINATORS or all((each.file or "").endswith(".snapshot") for each in found):
        return context.see(what, Rows("open_transactions"))
    return NextStep(what, context.reading_command("counts"))


def _tell_damage(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    found = [context.reading[at] for at in case["at"]]
    first = found[0]
    records, unread = sum(each.records for each in found), sum(each.bytes for each in found)
    numbers = sorted({each.partition for each in found if each.partition is not None})
    groups = groups_of_logs(context, first.topic, numbers)
    lost = (
        f" Known to be lost: {counted(records, 'record')}; not read: {counted(unread, 'byte')}."
        if unread or records
        else ""
    )
    steps = []
    if _is_lost(first):
        steps.append(NextStep("Make the report again with the right path, or without it"))
    elif _is_forbidden(first):
        steps.append(NextStep("Make the report again as a user who may read these files"))
    else:
        if context.request.source_arguments:
            steps.append(_see_places(found, context))
        steps.append(
            NextStep(
                "Compare with another replica: copy the partition's folder from another broker, and make a report of "
                "it. If it is complete, have the damaged replica fetched again"
            )
        )
    return ReportFinding(
        kind="damage",
        level=Level(case["level"]),
        title=_ABSENT if _is_lost(first) else _FORBIDDEN if _is_forbidden(first) else DAMAGE.title,
        problem=(
            f"{counted(len(found), 'source' if _is_lost(first) else 'place')}"
            f"{'' if _is_lost(first) else f' of {logs_shown(first.topic, numbers)}'} could not be "
            f"read{', for instance' if len(found) > 1 else ''}: {first}.{lost} {groups_shown(groups)}Every answer "
            f"about groups{'' if _is_lost(first) else ' in these logs'} may be incomplete."
        ),
        group_ids=groups,
        topics=() if first.topic is None else (first.topic,),
        partitions=tuple(numbers),
        since_note=None if _is_lost(first) or _is_forbidden(first) else "bytes that cannot be read show no time",
        evidence=tuple(
            Evidence(
                str(each), each.topic, each.partition, each.offset if each.offset is not None else each.base_offset
            )
            for each in found[:MOST_EVIDENCE]
        ),
        evidence_count=len(found),
        next=tuple(steps),
        measured={"places": len(found), "logs": len(numbers), "lost_records": records, "unread_bytes": unread},
    )


_FORBIDDEN: Final = "the user of this report may not read some files"
_ABSENT: Final = "there is nothing to read in some of the sources"

DAMAGE = ReportRule(
    kind="damage",
    title="a log is damaged, or records cannot be used",
    about="""\
Wrong checksums, torn batches, records that cannot be decoded, transactions with an unknown end. One finding for a
topic. Missing rights on brokers are `right_missing`.""",
    tables=("checks", "groups"),
    levels={Level.HIGH: "always"},
    cases=_damage_cases,
    tell=_tell_damage,
    listing=lambda _: Rows("checks", ("check=damaged_log",)),
)

# -- files that are gone -----------------------------------------------------------------------------------------------


def _lost_cases(context: RuleContext) -> pa.Table:
    least = context.limit("segment_lost.whole_before")
    lost: dict[str, list[int]] = {}
    for at, each in enumerate(context.lost):
        if each.whole_before >= least:
            lost.setdefault(each.topic, []).append(at)
    table = pa.table({"at": pa.array(list(lost.values()), pa.list_(pa.int64()))})
    missing = [sum(context.lost[at].behind - context.lost[at].first for at in each) for each in lost.values()]
    return ranked(table, [int(Level.HIGH)] * len(lost), missing)


def _how_lost(lost: LostFile) -> str:
    name = f"{lost.first:020}.log"
    return f"{name} is empty" if lost.is_emptied else f"{name} is missing, or the file before it was cut"


def _tell_lost(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    found = [context.lost[at] for at in case["at"]]
    first, topic = found[0], found[0].topic
    numbers = sorted(each.partition for each in found)
    groups = groups_of_logs(context, topic, numbers)
    rows = Rows("groups", (f"log_partition={first.partition}",))
    began = [each.before_ms for each in found if each.before_ms is not None]
    ended = [each.behind_ms for each in found if each.behind_ms is not None]
    span = f", written between {moment(min(began))} and {moment(max(ended))}" if began and ended else ""
    others = "" if len(found) == 1 else f", and others from {counted(len(found) - 1, 'other log')} of the topic"
    missing = sum(each.behind - each.first for each in found)
    return ReportFinding(
        kind="segment_lost",
        level=Level(case["level"]),
        title=LOST.title,
        problem=(
            f"The offsets from {first.first} to {first.behind - 1} are missing from "
            f"{topic}-{first.partition}{others}: {counted(missing, 'offset')} in no file{span}. The log is complete "
            f"up to there, so no cleaner removed them: {_how_lost(first)}. {groups_shown(groups)}The commits, members "
            "and deletions in the missing part are unknown, so what the report says about these groups may be out of "
            "date."
        ),
        group_ids=groups,
        topics=(topic,),
        partitions=tuple(numbers),
        since_timestamp_ms=min(began, default=None),
        since_note="the last record before the missing ones; the log does not show when the file disappeared",
        evidence=tuple(
            evidence
            for each in found[: MOST_EVIDENCE // 2]
            for evidence in (
                Evidence("the last record before a gap", topic, each.partition, each.first - 1, each.before_ms),
                Evidence("the first record after it", topic, each.partition, each.behind, each.behind_ms),
            )
        ),
        evidence_count=2 * len(found),
        next=(
            NextStep(
                f"Look for a file {first.first:020}.log in the folder {topic}-{first.partition}, on this broker and "
                "on the others that have the partition; make a report of a replica that has it"
            ),
            context.ask_kafka("Ask which brokers have the partition", "kafka-topics", "--describe", "--topic", topic),
            *((context.see(f"List the groups of {topic}-{first.partition}", rows),) if groups else ()),
            NextStep(
                "Until that is clear, let no broker without the file become leader of the partition: a coordinator "
                "that loads its log would continue with the remaining records. If another replica is complete, have "
                "this one fetched again"
            ),
        ),
        measured={
            "missing_offsets": missing,
            "logs": len(found),
            "whole_before": min(each.whole_before for each in found),
        },
        thresholds=context.limits_of("segment_lost.whole_before"),
    )


LOST = ReportRule(
    kind="segment_lost",
    title="records between two segment files are missing",
    about="""\
Offsets that are in no file, of a log that is complete up to there. In the cleaned part of a log, a missing file is not
found. Only the first gap of a log is reported. A missing beginning or end is `log_cut`.
""",
    tables=("groups",),
    levels={Level.HIGH: "always"},
    cases=_lost_cases,
    tell=_tell_lost,
    listing=lambda _: Rows("groups"),
    thresholds=(
        Threshold(
            "whole_before",
            "count",
            100,
            "records before the missing ones, without a gap",
            "a cleaner leaves a few in a row, and hardly ever a hundred of them",
        ),
    ),
)

# -- rights that are missing -------------------------------------------------------------------------------------------


def _hidden(context: RuleContext) -> list[Finding]:
    """A finding for each topic that the brokers hide."""
    rights = {each.topic: each for each in context.reading if each.reason == MISSING_RIGHT}
    return [rights[topic] for topic in sorted(rights, key=str)]


def _right_cases(context: RuleContext) -> pa.Table:
    hidden = _hidden(context)
    table = pa.table({"at": pa.array([0] if hidden else [], pa.int64())})
    return ranked(table, [int(Level.HIGH)] * table.num_rows, [len(hidden)] * table.num_rows)


def _tell_right(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    found = _hidden(context)
    topics = tuple(each.topic for each in found if each.topic is not None)
    return ReportFinding(
        kind="right_missing",
        level=Level(case["level"]),
        title=RIGHT.title,
        problem=(
            f"Brokers hide {counted(len(topics), 'topic')} from the user of this report: {listed(topics)}. Problems "
            f"there are not reported. For instance: {found[0].what}."
        ),
        topics=topics,
        since_note="brokers do not report when it began",
        evidence=tuple(Evidence(each.what, each.topic) for each in found[:MOST_EVIDENCE]),
        evidence_count=len(found),
        next=(
            NextStep(
                "Give the user the right: READ on the topics of coordinators, DESCRIBE on the topics that groups "
                "consume. docs/live.md lists what each command needs"
            ),
            *(
                context.ask_kafka(
                    f"List which users have which rights on {topic}", "kafka-acls", "--list", "--topic", topic
                )
                for topic in topics[:1]
            ),
        ),
        measured={"topics": len(topics)},
    )


RIGHT = ReportRule(
    kind="right_missing",
    title="a right is missing, so the report is incomplete",
    about="""\
Topics of coordinators and groups that the user may not describe or read (an ACL is missing). The command ends with
status 1.""",
    tables=("lag",),
    levels={Level.HIGH: "always"},
    cases=_right_cases,
    tell=_tell_right,
    listing=lambda _: Rows("lag", ("problem=not_authorized",)),
)

RULES = (DAMAGE, LOST, RIGHT)
