"""Logs of coordinators that lack their beginning or their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, grouped, kept, ranked, true_where
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.deleting_topics import deleting_topics
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted
from kafka_records_tables.report.rules.broken_logs import groups_of_logs, groups_shown, logs_shown
from kafka_records_tables.topics import OFFSETS, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_records_engine.log.reading.missing_end import MissingEnd

_KIND: Final = "log_cut"
_NEVER_CUT: Final = (OFFSETS, TRANSACTIONS)
"""Topics whose logs begin at offset 0: they are compacted and never deleted, and brokers refuse DeleteRecords for them
(`ReplicaManager.deleteRecords`). A share coordinator deletes records that it no longer needs."""


def _cases(context: RuleContext) -> pa.Table:
    ends = context.table("log_ends")
    begins = kept(ends, equal(ends, "topic", *_NEVER_CUT), pc.greater(ends["log_start_offset"], 0))
    # If a topic is set to delete records, the broker deletes them (`coordinator_topic_deletes`).
    deletes = context.once(deleting_topics) if begins.num_rows else {}
    begins = kept(begins, ~true_where(equal(begins, "topic", *deletes)))
    cut = [
        {
            "log_topic": row["topic"],
            "side": "start",
            "level": int(Level.HIGH),
            "partition": row["partition"],
            "missing": row["log_start_offset"],
            "last_ms": None,
            "shows": f"{row['topic']}-{row['partition']} begins at {row['log_start_offset']}",
            "offset": row["log_start_offset"],
        }
        for row in begins.select(["topic", "partition", "log_start_offset"]).to_pylist()
    ]
    cut += [
        {
            "log_topic": each.topic,
            "side": "end" if each.has_folder else "log",
            "level": int(level),
            "partition": each.partition,
            "missing": each.reached - each.end,
            "last_ms": each.last_ms,
            "shows": f"{each.topic}-{each.partition} {_what_is_left(each)}, but {', and '.join(each.shown_by)}",
            "offset": max(each.end - 1, 0) if each.has_folder else None,
        }
        for each in context.ends
        if (level := _level_of(context, each)) is not None
    ]
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("log_topic", "side", "shows")),
            *((name, pa.int64()) for name in ("level", "partition", "missing", "last_ms", "offset")),
        ]
    )
    lists = ("partition", "shows", "offset")
    cases = grouped(
        pa.Table.from_pylist(cut, schema),
        ["log_topic", "side", "level"],
        [*((name, "list") for name in lists), ("missing", "sum"), ("last_ms", "min")],
    )
    return ranked(cases, cases["level"].to_numpy(), cases["missing_sum"].to_numpy())


def _what_is_left(end: MissingEnd) -> str:
    return f"ends at {end.end}" if end.has_folder else "has no folder"


def _level_of(context: RuleContext, end: MissingEnd) -> Level | None:
    """The level; None if the report is about a time before the end, or if the only sign is a torn batch, which was
    found while reading."""
    if context.request.as_of and end.last_ms is not None and end.last_ms >= context.at_ms:
        return None
    if end.is_certain:
        return Level.HIGH
    if end.shown_ms is None:
        return None
    is_long = end.last_ms is None or end.shown_ms - end.last_ms >= context.limit(f"{_KIND}.silent_for")
    return Level.HIGH if is_long else Level.NOTE


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    topic, partitions = case["log_topic"], case["partition_list"]
    first = partitions[0]
    is_start, is_gone = case["side"] == "start", case["side"] == "log"
    groups = groups_of_logs(context, topic, partitions)
    rows = Rows("log_ends", (condition_of("topic", topic), *_WHERE[case["side"]]))
    places = zip(partitions, case["shows_list"], case["offset_list"], strict=True)
    is_copied = case["level"] == Level.NOTE
    what, why_not_sure = _WORDS["copied" if is_copied else case["side"]]
    it = "it" if is_gone else "them"
    files = "the folder" if is_gone else f"{'earlier' if is_start else 'later'} files of"
    return ReportFinding(
        kind=_KIND,
        level=Level(case["level"]),
        title=_GONE_TITLE if is_gone else RULE.title,
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
            f"no record shows when the {'beginning' if is_start else 'folder' if is_gone else 'files'} disappeared"
            if is_start or case["last_ms_min"] is None
            else "the last record that is left"
        ),
        confidence="medium",
        why_not_sure=why_not_sure,
        evidence=tuple(
            Evidence(shows) if is_gone else Evidence(shows, topic, partition, offset)
            for partition, shows, offset in list(places)[:MOST_EVIDENCE]
        ),
        evidence_count=len(partitions),
        rows=(rows,),
        next=(
            *(_ask_for_policy(context, topic) if is_start else ()),
            NextStep(
                f"Look for {files} {topic}-{first} on this broker (in its other data directories too) and on the "
                f"others that have the partition; make a report of a replica that has {it}"
            ),
            context.see("List where the logs begin and end", rows),
            context.ask_kafka("Ask which brokers have the partitions", "kafka-topics", "--describe", "--topic", topic),
            NextStep(
                f"Until that is clear, let no broker without {it} become leader of the partition: its coordinator "
                f"would continue {'without any record of it' if is_gone else 'with the remaining records'}"
            ),
        ),
        measured={"missing_offsets": case["missing_sum"], "logs": len(partitions)},
        thresholds=context.limits_of(f"{_KIND}.silent_for"),
    )


def _ask_for_policy(context: RuleContext, topic: str) -> Iterator[NextStep]:
    """The step that shows whether a broker deleted the beginning, if the topic's config is not in the source."""
    if ("topic", topic) not in cluster_settings(context).configs:
        what = (
            f"Ask for the cleanup.policy of {topic}: if it contains delete, brokers delete its records; "
            "set it to compact then"
        )
        yield context.ask_kafka(
            what, "kafka-configs", "--describe", "--entity-type", "topics", *option("--entity-name", topic)
        )


_GONE_TITLE: Final = "a log of a coordinator is missing"
_WHERE: Final = {"start": ("log_start_offset>0",), "end": (), "log": ()}
_START: Final = (
    "{logs} lacks its beginning, {missing} in all. A broker deletes records at the start of a log of this topic "
    "only while its cleanup.policy contains delete, and a cleaner keeps the name of the first file: either the "
    "topic had that policy, or files of the log are gone. {groups}The records in them are unknown, and groups that "
    "have written nothing since are not in this report."
)
_END: Final = (
    "{logs} lacks its end: {missing} that it had, as other files of the broker show. {groups}Their later "
    "records are unknown, so the report does not conclude that a group has done nothing since; groups whose "
    "only records are in the missing part are not in the report."
)
_GONE: Final = (
    "There is no folder {logs}. The log had {missing}, as other files of the broker show. {groups}What else it "
    "had is unknown, so its groups, share state or transactions are not in this report."
)
_COPIED: Final = (
    "{logs} ends {missing} before the offset that the broker wrote down a little later, as in a copy that was made "
    "while the broker wrote. {groups}What they did in the meantime is unknown."
)
_START_UNSURE: Final = "only some of the files may have been copied, or records of the topic were once deleted by age"
_END_UNSURE: Final = (
    "only some of the files may have been copied, or the log was copied long before the others, or a power failure "
    "lost records"
)
_GONE_UNSURE: Final = "the folder may not have been copied"
_COPIED_UNSURE: Final = "the last file may also have been cut"
_WORDS: Final = {
    "start": (_START, _START_UNSURE),
    "end": (_END, _END_UNSURE),
    "log": (_GONE, _GONE_UNSURE),
    "copied": (_COPIED, _COPIED_UNSURE),
}
"""By missing part of the log, the problem and why it is not certain."""

RULE = ReportRule(
    kind=_KIND,
    title="a log lacks its beginning or its end",
    about="""\
Logs of `__consumer_offsets` and `__transaction_state` that do not begin at offset 0 (if a config causes that, it is
`coordinator_topic_deletes`; a cleaner does not), and logs of all coordinators that once ended later. Other files of
the broker show it. The command ends with status 1.
""",
    tables=("log_ends", "groups"),
    levels={
        Level.HIGH: "the files show it, and the broker had stopped, or wrote the later end `silent_for` after "
        "the last record",
        Level.NOTE: "it may have been copied while the broker wrote",
    },
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("log_ends", (f"topic={OFFSETS}",)),
    thresholds=(
        Threshold(
            "silent_for",
            "duration",
            "2h",
            "time from the last record of a log until the broker wrote a later offset",
            "copying a directory takes minutes, rarely hours",
        ),
    ),
)

RULES = (RULE,)
