"""Damage that was met while reading, and files that are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka_records_tables.report.report_parts import Evidence, Level, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rules.broken_logs import LOADS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.sight import Sight


def _places(sight: Sight) -> set[tuple[Any, ...]]:
    """The records at which a coordinator stops, which are findings of their own."""
    from kafka_records_tables.report.case_columns import equal, kept

    rows = sight.table("checks")
    stops = kept(rows, equal(rows, "check", *LOADS)).select(["log_topic", "log_partition", "log_offset"])
    places = zip(*(column.to_pylist() for column in stops.columns), strict=True)
    return set(places)


def _damage_cases(sight: Sight) -> pa.Table:
    import pyarrow as pa

    from kafka_records_tables.report.case_columns import ranked

    told = _places(sight)
    damage: dict[tuple[str | None, int | None], list[int]] = {}
    for at, finding in enumerate(sight.reading):
        place: tuple[Any, ...] = (finding.topic, finding.partition, finding.offset)
        if finding.offset is None:
            place = (*place, finding.file, finding.position, finding.base_offset)
        # Several tables meet the same record, and say what it means for each of them.
        if finding.severity == "damage" and place not in told:
            told.add(place)
            damage.setdefault((finding.topic, finding.partition), []).append(at)
    table = pa.table({"at": pa.array(list(damage.values()), pa.list_(pa.int64()))})
    return ranked(table, [int(Level.HIGH)] * len(damage), [len(each) for each in damage.values()])


def _tell_damage(sight: Sight, case: dict[str, Any]) -> ReportFinding:
    from kafka_records_tables.report.command_lines import command_line
    from kafka_records_tables.report.sight import MOST_EVIDENCE, counted

    found = [sight.reading[at] for at in case["at"]]
    first = found[0]
    records, unread = sum(each.records for each in found), sum(each.bytes for each in found)
    log = first.topic if first.partition is None else f"{first.topic}-{first.partition}"
    lost = (
        f" {counted(records, 'record')} are known to be lost, {counted(unread, 'byte')} were not read."
        if unread or records
        else ""
    )
    steps = []
    if sight.request.source_arguments:
        line = command_line(["kafka-records", "counts", *sight.request.source_arguments])
        steps.append(NextStep("See every damaged place: file, byte and what is lost", line))
    steps.append(
        NextStep(
            "Compare with another replica: copy the partition's folder from another broker, and make the report of it. "
            "When it is whole, let the damaged replica be fetched anew"
        )
    )
    return ReportFinding(
        kind="damage",
        level=Level(case["level"]),
        title=DAMAGE.title,
        what=(
            f"{counted(len(found), 'place')} of {log or 'the log'} could not be read, for instance: {first.what} "
            f"({first.consequence}).{lost} Every answer about groups that stand there may lack something."
        ),
        since_timestamp_ms=None,
        evidence=tuple(
            Evidence(
                str(each), each.topic, each.partition, each.offset if each.offset is not None else each.base_offset
            )
            for each in found[:MOST_EVIDENCE]
        ),
        evidence_count=len(found),
        next=tuple(steps),
        measured={"places": len(found), "lost_records": records, "unread_bytes": unread},
    )


DAMAGE = ReportRule(
    kind="damage",
    title="a log is damaged, or records cannot be used",
    about="""\
Everything that was found while reading and calls itself damage: wrong checksums, torn batches, records that cannot
be decoded, transactions of which nobody can tell how they ended. One finding for each log partition.""",
    tables=(),
    levels={Level.HIGH: "always"},
    cases=_damage_cases,
    tell=_tell_damage,
    listing=lambda _: Rows("checks", ("check=damaged_log",)),
)

# -- files that are gone -----------------------------------------------------------------------------------------------


def _lost_cases(sight: Sight) -> pa.Table:
    import pyarrow as pa

    from kafka_records_tables.report.case_columns import ranked

    least = sight.limit("segment_lost.whole_before")
    found = [each for each in sight.lost if each.whole_before >= least]
    columns = {name: [getattr(each, name) for each in found] for name in ("topic", "partition", "first", "behind")}
    times = pa.array([each.before_ms for each in found], pa.int64())
    table = pa.table({**columns, "before_ms": times, "whole_before": [each.whole_before for each in found]})
    return ranked(table, [int(Level.HIGH)] * len(found), [each.behind - each.first for each in found])


def _tell_lost(sight: Sight, case: dict[str, Any]) -> ReportFinding:
    from kafka_records_tables.report.sight import counted, listed

    topic, partition, first, behind = case["topic"], case["partition"], case["first"], case["behind"]
    rows = Rows("groups", (f"log_partition={partition}",))
    groups: tuple[str, ...] = ()
    if topic == "__consumer_offsets":
        import pyarrow.compute as pc

        of_log = sight.table("groups").filter(pc.equal(sight.table("groups")["log_partition"], partition))
        groups = tuple(of_log["group_id"].to_pylist())
    whom = f", where {counted(len(groups), 'group')} of {topic} stand: {listed(groups)}" if groups else ""
    return ReportFinding(
        kind="segment_lost",
        level=Level(case["level"]),
        title=LOST.title,
        what=(
            f"Offsets {first} to {behind - 1} of {topic}-{partition} are in no file{whom}. The log is whole up to "
            "there, so no cleaner took them: a segment file is missing. Commits, members and deletions that stood in "
            "it are unknown, so what is told of these groups may be older than it was."
        ),
        group_ids=groups,
        since_timestamp_ms=case["before_ms"],
        evidence=(
            Evidence("the last record before the missing file", topic, partition, first - 1, case["before_ms"]),
            Evidence("the first record behind it", topic, partition, behind),
        ),
        evidence_count=2,
        rows=(rows,) if groups else (),
        next=(
            NextStep(
                f"Look for a file {first:020}.log in the folder {topic}-{partition}, on this broker and on the others "
                "that have the partition; make the report of a replica that has it"
            ),
            sight.ask_kafka("Ask which brokers have the partition", "kafka-topics", "--describe", "--topic", topic),
            *((sight.see("See the groups that stand there", rows),) if groups else ()),
            NextStep(
                "Until that is clear, let no broker that lacks the file become leader of the partition: a coordinator "
                "that loads its log would go on from what is left. When another replica is whole, let this one be "
                "fetched anew"
            ),
        ),
        measured={"missing_offsets": behind - first, "whole_before": case["whole_before"]},
        thresholds=sight.limits_of("segment_lost.whole_before"),
    )


LOST = ReportRule(
    kind="segment_lost",
    title="a segment file is missing",
    about="""\
Offsets that are in no file, of a log that is whole up to there. A cleaner begins at the start of a log and leaves
gaps there, so it has not been at these. Where it has been, nobody can tell a missing file from what it took, and
there is no finding. Only the first such gap of a log is told.""",
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
            "a cleaner leaves a few in a row, and hardly ever a hundred",
        ),
    ),
)

RULES = (DAMAGE, LOST)
