"""Logs of coordinators that lack their beginning or their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.report_parts import Evidence, Level, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rules.broken_logs import groups_of_logs, groups_shown, logs_shown
from kafka_records_tables.topics import OFFSETS, TRANSACTIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.rule_context import RuleContext

_KIND: Final = "log_cut"
_NEVER_CUT: Final = (OFFSETS, TRANSACTIONS)
"""Topics whose logs begin at offset 0: they are cleaned and not deleted, and a broker refuses DeleteRecords for them
(`ReplicaManager.deleteRecords`). A share coordinator deletes records that it needs no more."""


def _cases(context: RuleContext) -> pa.Table:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.report.case_columns import equal, grouped, kept, looked_up, ranked, with_columns

    ends = context.table("log_ends")
    ends = kept(ends, equal(ends, "topic", *_NEVER_CUT))
    ends = with_columns(ends, last_ms=looked_up(ends["partition"], _last_written(context), "log_partition", "last"))
    begins = kept(ends, pc.greater(ends["log_start_offset"], 0))
    begins = with_columns(begins, side=pa.array(["start"] * begins.num_rows), missing=begins["log_start_offset"])
    told_ms = pc.subtract(ends["high_watermark_timestamp_ms"], pc.coalesce(ends["last_ms"], pa.scalar(0, pa.int64())))
    stops = kept(
        ends,
        equal(ends, "topic", OFFSETS),
        pc.greater(ends["high_watermark"], ends["log_end_offset"]),
        pc.greater_equal(told_ms, context.limit(f"{_KIND}.silent_for")),
    )
    missing = pc.subtract(stops["high_watermark"], stops["log_end_offset"])
    stops = with_columns(stops, side=pa.array(["end"] * stops.num_rows, pa.string()), missing=missing)
    begins = with_columns(begins, side=begins["side"].cast(pa.string()))
    lists = ("partition", "log_start_offset", "log_end_offset", "high_watermark", "last_ms")
    cut = pa.concat_tables([begins, stops])
    cases = grouped(
        with_columns(cut, log_topic=cut["topic"]),
        ["log_topic", "side"],
        [*((name, "list") for name in lists), ("missing", "sum"), ("last_ms", "min")],
    )
    return ranked(cases, np.full(cases.num_rows, int(Level.HIGH)), cases["missing_sum"].to_numpy())


def _last_written(context: RuleContext) -> pa.Table:
    """`log_partition` of the offsets topic and `last`: when the hour began that its last record is of."""
    from kafka_records_tables.report.case_columns import grouped

    rows = grouped(context.table("activity"), ["log_partition"], [("window_start_timestamp_ms", "max")])
    return rows.rename_columns(["log_partition", "last"])


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    from kafka_records_tables.report.command_lines import condition_of
    from kafka_records_tables.report.rule_context import MOST_EVIDENCE, counted

    topic, partitions = case["log_topic"], case["partition_list"]
    first = partitions[0]
    is_start = case["side"] == "start"
    groups = groups_of_logs(context, topic, partitions)
    rows = Rows("log_ends", (condition_of("topic", topic), *_WHERE[case["side"]]))
    places = zip(
        partitions, case["log_start_offset_list"], case["log_end_offset_list"], case["high_watermark_list"], strict=True
    )
    what = _START if is_start else _END
    return ReportFinding(
        kind=_KIND,
        level=Level(case["level"]),
        title=RULE.title,
        problem=what.format(
            logs=logs_shown(topic, sorted(partitions)),
            missing=counted(case["missing_sum"], "offset"),
            groups=groups_shown(groups),
        ),
        group_ids=groups,
        topics=(topic,),
        partitions=tuple(sorted(partitions)),
        since_timestamp_ms=None if is_start else case["last_ms_min"],
        since_note=(
            "no record tells when the files went"
            if is_start or case["last_ms_min"] is None
            else "the hour of the last record that is left"
        ),
        confidence="medium",
        why_not_sure=_START_UNSURE if is_start else _END_UNSURE,
        evidence=tuple(
            Evidence(
                (
                    f"{topic}-{partition} begins at {start}"
                    if is_start
                    else f"{topic}-{partition} ends at {end}, and its high watermark was {high}"
                ),
                topic,
                partition,
                start if is_start else end - 1,
            )
            for partition, start, end, high in list(places)[:MOST_EVIDENCE]
        ),
        evidence_count=len(partitions),
        rows=(rows,),
        next=(
            context.see("See where the logs begin and end", rows),
            NextStep(
                f"Look for {'earlier' if is_start else 'later'} files of {topic}-{first} on this broker and on the"
                " others that have the partition; make the report of a replica that has them"
            ),
            context.ask_kafka("Ask which brokers have the partitions", "kafka-topics", "--describe", "--topic", topic),
            NextStep(
                "Until that is clear, let no broker without the files become leader of the partition: its "
                "coordinator would go on from what is left"
            ),
        ),
        measured={"missing_offsets": case["missing_sum"], "logs": len(partitions)},
        thresholds=context.limits_of(f"{_KIND}.silent_for"),
    )


_WHERE: Final = {"start": ("log_start_offset>0",), "end": ()}
_START: Final = (
    "{logs} lacks its beginning, {missing} in all. No broker deletes records of this topic at the start of a log, "
    "and a cleaner keeps the name of the first file: files are missing. {groups}The records in them are unknown, and "
    "groups that have written nothing since are not in this report."
)
_END: Final = (
    "{logs} ends {missing} before its high watermark, as the broker wrote it down last. So the last file is missing, "
    "or was cut. {groups}What is said about these groups is older than it was."
)
_START_UNSURE: Final = "only some of the files may have been copied, or somebody has once had the topic deleted by age"
_END_UNSURE: Final = "only some of the files may have been copied, or the log long before its high watermark"

RULE = ReportRule(
    kind=_KIND,
    title="a log lacks its beginning or its end",
    about="""\
Logs of `__consumer_offsets` and `__transaction_state` that do not begin at offset 0, which no clean-up brings about,
and logs of `__consumer_offsets` that end before the high watermark that the broker wrote beside them
(`replication-offset-checkpoint`), `silent_for` or longer before it did. In a copy of a directory that a broker was
writing to, logs end a little before, and are left alone. A file that is missing in between is `segment_lost`.""",
    tables=("log_ends", "activity", "groups"),
    levels={Level.HIGH: "always"},
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("log_ends", (f"topic={OFFSETS}",)),
    thresholds=(
        Threshold(
            "silent_for",
            "duration",
            "2h",
            "from the hour of the last record of a log to the high watermark that is beyond it",
            "copying a directory takes minutes, and records are counted by hours",
        ),
    ),
)

RULES = (RULE,)
