"""Open and hanging transactions, and what they hold back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.report_parts import Evidence, Level, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import ReportRule, Threshold

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_tables.report.sight import Sight

_TOPIC: Final = "__consumer_offsets"
_MARGIN_MS: Final = 5 * 60 * 1000
"""After which Kafka counts a transaction as late, on top of its time-out (`open_transactions`)."""


def _cases(sight: Sight) -> pa.Table:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from kafka_records_tables.report.case_columns import equal, level_by, numbers, ranked, true_where, with_columns

    rows = sight.table("open_transactions")
    rows = rows.filter(pc.less_equal(pc.fill_null(rows["since_timestamp_ms"], 0), sight.at_ms))
    age = sight.at_ms - numbers(rows, "since_timestamp_ms", sight.at_ms)
    # The table counts up to now where nobody names a moment; what is stored is told as of its last record.
    is_late = age > numbers(rows, "timeout_ms", 2**62 - _MARGIN_MS) + _MARGIN_MS
    is_left = true_where(equal(rows, "hanging_rule", "no_entry")) & (
        age >= sight.limit("transaction_open.settled_after")
    )
    holds = pc.fill_null(pc.list_value_length(rows["holds_back"]), 0)
    held = np.asarray(holds.to_numpy(), np.int64)
    hangs = is_late | is_left
    levels = level_by(
        (hangs & (held > 0) & (age >= sight.limit("transaction_open.critical_after")), Level.CRITICAL),
        (hangs, Level.HIGH),
        default=Level.NOTE,
    )
    rows = with_columns(rows, age_ms=age, is_late=is_late, is_left=is_left, held=pa.array(held))
    return ranked(rows, levels, age)


def _tell(sight: Sight, case: dict[str, Any]) -> ReportFinding:
    from kafka_records_tables.report.command_lines import condition_of
    from kafka_records_tables.report.sight import MOST_EVIDENCE, length, shown

    transactional_id, producer = case["transactional_id"], case["producer_id"]
    held = case["holds_back"] or []
    groups = tuple(dict.fromkeys(each["group_id"] for each in held))
    topics = tuple(sorted({each["topic"] for each in held}))
    times = _written_at(sight, producer)
    of_producer = condition_of("producer_id", producer)
    rows = Rows("open_transactions", (of_producer,))
    hangs = case["is_late"] or case["is_left"]
    who = f"of {shown(transactional_id)}" if transactional_id is not None else "that no transactional id answers for"
    effect = f" {_effect(sight, held)}" if held else ""
    past = " Whether it has ended since, these files do not tell." if sight.is_stored and not hangs else ""
    is_sure = hangs and not (case["is_left"] and not sight.is_stored)
    return ReportFinding(
        kind="transaction_open",
        level=Level(case["level"]),
        title=RULE.title if hangs else "a transaction is open",
        what=f"A transaction {who} (producer id {producer}) has been open for {length(case['age_ms'])}"
        f"{_why(sight, case)}.{effect}{past}",
        group_ids=groups,
        topics=topics,
        partitions=tuple(sorted({each["partition"] for each in held})) if len(topics) == 1 else (),
        transactional_ids=() if transactional_id is None else (transactional_id,),
        since_timestamp_ms=case["since_timestamp_ms"],
        until_timestamp_ms=None if hangs or case["timeout_ms"] is None else _ends(case),
        confidence="high" if is_sure or not hangs else "medium",
        why_not_sure=(
            None
            if is_sure or not hangs
            else "one topic is read after the other: a transaction that ends in between seems to have no entry"
        ),
        evidence=tuple(
            Evidence(
                f"commit of {each['group_id']} for {each['topic']}-{each['partition']} that waits",
                _TOPIC,
                each["log_partition"],
                each["log_offset"],
                times.get((each["group_id"], each["topic"], each["partition"])),
            )
            for each in held[:MOST_EVIDENCE]
        ),
        evidence_count=len(held),
        rows=(rows, *([Rows("pending_offsets", (of_producer,))] if held else ())),
        next=_steps(sight, case, rows) if hangs else (sight.see("See what it holds back", rows, *_as_of(sight)),),
        measured={"open_ms": case["age_ms"], "offsets_held_back": len(held), "timeout_ms": case["timeout_ms"]},
        thresholds=sight.limits_of("transaction_open.settled_after", "transaction_open.critical_after"),
    )


def _why(sight: Sight, case: dict[str, Any]) -> str:
    """Why it counts as one that hangs: by its time-out, or because no transactional id has it open."""
    import pyarrow.compute as pc

    from kafka_records_tables.report.case_columns import equal, kept
    from kafka_records_tables.report.sight import length, moment

    if case["hanging_rule"] != "no_entry":
        return f", longer than its time-out of {length(case['timeout_ms'])}" if case["is_late"] else ""
    if not (case["is_left"] or case["is_late"]):
        return ""
    if case["transactional_id"] is None:
        return ": its commits stand in the log without an end, and nobody will end it"
    entries = sight.table("transactions")
    entries = kept(entries, equal(entries, "transactional_id", case["transactional_id"]))
    updated = pc.max(entries["last_update_timestamp_ms"]).as_py()
    since, began = "" if updated is None else f" since {moment(updated)}", case["since_timestamp_ms"]
    late = "were written later" if None not in (updated, began) and began > updated else "have no end in the log"
    return (
        f": its coordinator has it as {case['state']}{since}, and its commits {late}"
        f"{'' if began is None else f' ({moment(began)})'}. So nobody will end it"
    )


def _effect(sight: Sight, held: list[dict[str, Any]]) -> str:
    """What waits for it, as sentences: partitions of groups, and the cleaner."""
    from kafka_records_tables.report.case_columns import equal, kept
    from kafka_records_tables.report.sight import counted, listed, places_shown

    rows = sight.table("current_offsets")
    groups = list(dict.fromkeys(each["group_id"] for each in held))
    names = rows.select(["group_id", "topic", "partition"])
    names = kept(names, equal(names, "group_id", *groups))
    known = {tuple(each.values()) for each in names.to_pylist()}
    waiting = {(each["group_id"], each["topic"], each["partition"]) for each in held}
    where = places_shown((each["topic"], each["partition"]) for each in held)
    first = min(held, key=lambda each: (each["log_partition"], each["log_offset"]))
    return (
        f"It holds back the offsets of {len(waiting)} of {counted(len(known | waiting), 'partition')} of "
        f"{listed(groups)}: {where}. A consumer that starts there waits for stable offsets and"
        f" consumes nothing, and no cleaner takes what stands behind {_TOPIC}-{first['log_partition']} offset"
        f" {first['log_offset']}."
    )


def _written_at(sight: Sight, producer: int) -> dict[tuple[str, str, int], int | None]:
    """When the first of the pending commits of a producer was written, by group, topic and partition."""
    from kafka_records_tables.report.case_columns import equal, kept

    rows = sight.table("pending_offsets")
    rows = kept(rows, equal(rows, "producer_id", producer))
    return {
        (each["group_id"], each["topic"], each["partition"]): each["since_timestamp_ms"] for each in rows.to_pylist()
    }


def _ends(case: dict[str, Any]) -> int:
    return int(case["since_timestamp_ms"] + case["timeout_ms"])


def _as_of(sight: Sight) -> tuple[str, ...]:
    """The moment of a copy, which `open_transactions` wants to be told."""
    return ("--as-of", str(sight.at_ms)) if sight.is_stored and not sight.request.as_of else ()


def _steps(sight: Sight, case: dict[str, Any], rows: Rows) -> tuple[NextStep, ...]:
    partition = next((str(each["log_partition"]) for each in case["holds_back"] or []), None)
    found = sight.see("See what it holds back", rows, *_as_of(sight))
    if partition is None:
        describe = ("describe", "--transactional-id", case["transactional_id"] or "")
        return (found, sight.ask_kafka("Ask its coordinator", "kafka-transactions", *describe))
    place = ("--topic", _TOPIC, "--partition", partition)
    asked = sight.ask_kafka(
        "Ask the leader of the partition which producers are in a transaction there: it tells the offset at which this "
        "one starts",
        "kafka-transactions",
        "describe-producers",
        *place,
    )
    start = min(each["log_offset"] for each in case["holds_back"] if str(each["log_partition"]) == partition)
    abort = sight.ask_kafka(
        "When its application is certainly gone, abort it: its offsets are dropped, and whatever waits goes on",
        "kafka-transactions",
        "abort",
        *place,
        "--start-offset",
        str(start),
    )
    return (found, asked, abort)


RULE = ReportRule(
    kind="transaction_open",
    title="a transaction hangs",
    about="""\
Open transactions, from `open_transactions`. One hangs when it is open for longer than its time-out and five
minutes, or when no transactional id answers for it (KIP-664). In a copy of a log the moment that counts is that of
the last record, and not the present, so a transaction that had just begun then is a note.""",
    tables=("open_transactions", "pending_offsets", "transactions", "current_offsets"),
    levels={
        Level.CRITICAL: "it hangs, has been open for `critical_after`, and holds back offsets",
        Level.HIGH: "it hangs",
        Level.NOTE: "it is open, as every transaction is for a while",
    },
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("open_transactions"),
    thresholds=(
        Threshold(
            "settled_after",
            "duration",
            "5m",
            "a transaction without an entry is taken for one that hangs when it is this old",
            "topics are read one after the other, and what ends in between looks like it",
            "critical_after",
        ),
        Threshold(
            "critical_after",
            "duration",
            "24h",
            "a transaction that holds back offsets for so long",
            "the offsets topic grows without being cleaned, and the next restart of the group fails",
        ),
    ),
)

RULES = (RULE,)
