"""Open and hanging transactions, and what they hold back."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.coordinator.rules.open_on_purpose import NO_TIMEOUT_MS, has_timeout
from kafka_records_tables.report.case_columns import (
    equal,
    kept,
    level_by,
    looked_up,
    numbers,
    ranked,
    true_where,
    with_columns,
)
from kafka_records_tables.report.command_lines import condition_of, instant
from kafka_records_tables.report.facts.known_logs import incomplete_partitions
from kafka_records_tables.report.facts.usual_values import STOP
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Hypothesis, Question, ReportRule, Threshold
from kafka_records_tables.report.rule_context import (
    MOST_EVIDENCE,
    RuleContext,
    counted,
    length,
    listed,
    moment,
    of_group,
    places_shown,
    shown,
)
from kafka_records_tables.report.rules.transaction_readers import (
    LEAST_STOP,
    is_left,
    stopped,
    unread,
    usual_transactions,
    waiting_at,
    who_waits,
    why_open,
)
from kafka_records_tables.topics import OFFSETS, TRANSACTIONS

_MARGIN_MS: Final = 5 * 60 * 1000
"""The time that Kafka allows a transaction beyond its timeout before it counts as late (`open_transactions`)."""

_ON_PURPOSE: Final = ", with no timeout because its producer takes part in a two-phase commit"


def _open(context: RuleContext) -> pa.Table:
    """The open transactions with `age_ms`, whether and by which rule each hangs (`is_late`, `is_left`), `held`,
    `level`, and `coordinator` (the partition with its record)."""
    rows = context.table("open_transactions")
    rows = rows.filter(pc.less_equal(pc.fill_null(rows["since_timestamp_ms"], 0), context.at_ms))
    age = context.at_ms - numbers(rows, "since_timestamp_ms", context.at_ms)
    # Without --as-of, the table computes ages up to now, but a stored log must be judged as of its last record.
    is_long = true_where(pc.is_null(rows["since_timestamp_ms"])) | (age >= context.limit("transaction_open.open_after"))
    rows, age = kept(rows, is_long), age[is_long]
    timeout = numbers(rows, "timeout_ms", 2**62 - _MARGIN_MS)
    is_late = (age > timeout + _MARGIN_MS) & (timeout != NO_TIMEOUT_MS)
    is_left = true_where(equal(rows, "hanging_rule", "no_entry")) & (
        age >= context.limit("transaction_open.settled_after")
    )
    coordinator = looked_up(
        rows["transactional_id"], context.table("transactions"), "transactional_id", "log_partition"
    )
    absent = incomplete_partitions(context, TRANSACTIONS) if is_left.any() else []
    if absent:
        # The record of the transaction may be in a missing log.
        is_left &= true_where(pc.invert(pc.is_in(coordinator, pa.array(absent, pa.int32())))) & true_where(
            pc.is_valid(coordinator)
        )
    holds = pc.fill_null(pc.list_value_length(rows["holds_back"]), 0)
    held = np.asarray(holds.to_numpy(), np.int64)
    hangs = is_late | is_left
    levels = level_by(
        (hangs & (held > 0) & (age >= context.limit("transaction_open.critical_after")), Level.CRITICAL),
        (hangs, Level.HIGH),
        default=Level.NOTE,
    )
    rows = with_columns(
        rows, age_ms=age, is_late=is_late, is_left=is_left, held=pa.array(held), coordinator=coordinator
    )
    return ranked(rows, levels, age)


def _causes(context: RuleContext) -> list[list[dict[str, Any]]]:
    """The open transactions by owner, the oldest first."""
    # The table has one row for each log in which a transaction is open.
    transactions: dict[Any, dict[str, Any]] = {}
    for each in context.once(_open).sort_by([("rank", "descending")]).to_pylist():
        key = each["transactional_id"], each["producer_id"], each["hanging_rule"]
        known = transactions.setdefault(key, each)
        known.setdefault("logs", []).append((each["topic"], each["partition"], each["first_offset"]))
        if each["held_back"]:
            known.setdefault("blocks", []).append((each["topic"], each["partition"], each["last_stable_offset"]))
        if known is not each:
            known["holds_back"] = [*(known["holds_back"] or ()), *(each["holds_back"] or ())]
            known["level"] = max(known["level"], each["level"])
    causes: dict[Any, list[dict[str, Any]]] = {}
    for each in transactions.values():
        each["stopped"] = () if each["is_late"] or each["is_left"] else stopped(context, each)
        if each["stopped"]:
            each["level"] = int(Level.HIGH if usual_transactions(context, each) else Level.MODERATE)
        causes.setdefault(_cause(each), []).append(each)
    return list(causes.values())


def _cause(transaction: dict[str, Any]) -> tuple[str, Any]:
    """The owner of an open transaction: an application, identified by the group whose offsets it commits, or a
    coordinator that does not end a late transaction."""
    held, has_entry = transaction["holds_back"] or [], transaction["hanging_rule"] != "no_entry"
    if transaction["is_late"] and has_entry:
        return "late", transaction["coordinator"]
    word = "left" if transaction["is_left"] or transaction["is_late"] else "open"
    return word, (held[0]["group_id"], None) if held else (None, transaction["producer_id"])


def _cases(context: RuleContext) -> pa.Table:
    causes = context.once(_causes)
    topics = [
        sorted(
            {place["topic"] for each in cause for place in (*(each["partitions"] or ()), *(each["holds_back"] or ()))}
        )
        for cause in causes
    ]
    ids = [[each["transactional_id"] for each in cause if each["transactional_id"]] for cause in causes]
    cases = pa.table(
        {
            "at": range(len(causes)),
            "topic_list": pa.array(topics, pa.list_(pa.string())),
            "transactional_id_list": pa.array(ids, pa.list_(pa.string())),
        }
    )
    return ranked(
        cases, [max(each["level"] for each in cause) for cause in causes], [each[0]["rank"] for each in causes]
    )


def _tell(context: RuleContext, case: dict[str, Any]) -> ReportFinding:
    cause = context.once(_causes)[case["at"]]
    oldest = cause[0]
    held = [{**each, "producer_id": one["producer_id"]} for one in cause for each in one["holds_back"] or []]
    groups = tuple(dict.fromkeys(each["group_id"] for each in held))
    topics = tuple(sorted({each["topic"] for each in held}))
    ids = tuple(dict.fromkeys(one["transactional_id"] for one in cause if one["transactional_id"] is not None))
    times = _written_at(context, [one["producer_id"] for one in cause])
    word, place = _cause(oldest)
    hangs = word != "open"
    is_one = len(cause) == 1
    of_producer = condition_of("producer_id", oldest["producer_id"])
    by_rule = {"late": ("hanging_rule=timeout",), "left": ("hanging_rule=no_entry",), "open": ()}[word]
    rows = Rows("open_transactions", (of_producer,) if is_one else by_rule)
    # The rows that show the cause come first, because a later report identifies the finding by them.
    own = Rows("transactions", (f"log_partition={place}",)) if word == "late" and place is not None else rows
    waits = (Rows("pending_offsets", of_group(groups[0])),) if groups else ()
    told = (own, rows, *waits) if word == "late" or not waits else (*waits, rows)
    who = f"of {listed(ids)}" if ids else "of no known transactional id"
    producers = ", ".join(str(one["producer_id"]) for one in cause[:3])
    opened = f"{length(oldest['age_ms'])}{_why(context, oldest) if is_one else _why_all(cause)}."
    effect = f" {_effect(context, held, 'It holds' if is_one else 'They hold')}" if held else ""
    at_it = waiting_at(context, cause)
    if at_it:
        effect += f" {who_waits(at_it)}"
    halted = tuple(dict.fromkeys(group for one in cause for group in one["stopped"]))
    if halted:
        effect += (
            f" {listed(halted)} {'has' if len(halted) == 1 else 'have'} committed nothing there for at least {STOP} "
            "times the longest interval between commits before, as far as this log shows."
        )
    past = f" These files do not show whether {'it has' if is_one else 'they have'} ended since."
    is_sure = hangs and not (word == "left" and not context.is_stored)
    return ReportFinding(
        kind="transaction_open",
        level=Level(case["level"]),
        title=(
            (RULE.title if is_one else "transactions hang")
            if hangs
            else (
                f"{'a transaction was' if is_one else 'transactions were'} left open, and readers are blocked"
                if is_left(context, cause)
                else f"{_counted(cause)} open" + (", and groups have stopped because of it" if halted else "")
            )
        ),
        problem=(
            f"A transaction {who} (producer id {producers}) has been open for {opened}"
            if is_one
            else f"{len(cause)} transactions {who} (producer ids {producers}{' …' if len(cause) > 3 else ''}) have been"
            f" open, the oldest for {opened}"
        )
        + ("" if oldest["timeout_ms"] != NO_TIMEOUT_MS else _ON_PURPOSE)
        + f"{effect}{past if context.is_stored and not hangs else ''}",
        impact=(
            f"If isolation.level is read_committed, {listed(halted)} {'reads' if len(halted) == 1 else 'read'} "
            f"nothing in these partitions until {'it ends' if is_one else 'they end'}{_at_the_latest(cause)}."
            if halted
            else ""
        ),
        consequence="work_stopped" if halted else "none",
        scale={"records_waiting": unread(context, at_it, halted)} if halted else {},
        group_ids=tuple(dict.fromkeys((*groups, *halted))),
        topics=topics or tuple(sorted({topic for group, topic, _ in at_it if group in halted})),
        partitions=tuple(sorted({each["partition"] for each in held})) if len(topics) == 1 else (),
        transactional_ids=ids,
        since_timestamp_ms=oldest["since_timestamp_ms"],
        until_timestamp_ms=(None if hangs or halted or not has_timeout(oldest["timeout_ms"]) else _ends(oldest)),
        confidence="high" if is_sure or not hangs else "medium",
        why_not_sure=(
            None
            if is_sure or not hangs
            else "topics are read one after another, so a transaction that ends in between seems to have no entry"
        ),
        evidence=tuple(
            Evidence(
                f"commit of {each['group_id']} for {each['topic']}-{each['partition']} that waits",
                OFFSETS,
                each["log_partition"],
                each["log_offset"],
                times.get((each["producer_id"], each["group_id"], each["topic"], each["partition"])),
            )
            for each in held[:MOST_EVIDENCE]
        ),
        evidence_count=len(held),
        rows=tuple(dict.fromkeys(told)),
        next=(
            _steps(context, cause, rows)
            if hangs
            else (*_ask_producer(context, cause, halted), _seen(context, cause, rows))
        ),
        measured={
            "open_ms": oldest["age_ms"],
            "transactions": len(cause),
            "offsets_held_back": len(held),
            "groups_waiting": len({group for group, *_ in at_it}),
            "timeout_ms": oldest["timeout_ms"],
        },
        thresholds=context.limits_of(
            *(f"transaction_open.{each.name}" for each in RULE.thresholds), *((LEAST_STOP,) if halted else ())
        ),
    )


def _at_the_latest(cause: list[dict[str, Any]]) -> str:
    """When the coordinator will end the transactions, if all of them have a timeout."""
    if not all(has_timeout(each["timeout_ms"]) for each in cause):
        return ""
    return f", at the latest after {'its timeout' if len(cause) == 1 else 'their timeouts'}"


def _counted(cause: list[dict[str, Any]]) -> str:
    return "a transaction is" if len(cause) == 1 else "transactions are"


def _why_all(cause: list[dict[str, Any]]) -> str:
    """Why several transactions count as hanging."""
    word, place = _cause(cause[0])
    if word == "open":
        return ""
    if word == "left":
        return f": their {_written(cause)} have no end in the log, and nothing will end them"
    return (
        f", all longer than their timeouts. All belong to the coordinator of __transaction_state-{place}, which should"
        " abort them: it is not running, or its markers do not arrive"
    )


def _written(cause: list[dict[str, Any]]) -> str:
    """The records that transactions have written, by topic."""
    topics = {topic for each in cause for topic, _, _ in each["logs"]}
    return "commits" if topics <= {OFFSETS, None} else "records" if OFFSETS not in topics else "records and commits"


def _why(context: RuleContext, case: dict[str, Any]) -> str:
    """Why a transaction counts as hanging: because of its timeout, or because it is not open for any transactional
    id."""
    if case["hanging_rule"] != "no_entry":
        return f", longer than its timeout of {length(case['timeout_ms'])}" if case["is_late"] else ""
    if not (case["is_left"] or case["is_late"]):
        return ""
    if case["transactional_id"] is None:
        return f": its {_written([case])} have no end in the log, and nothing will end it"
    entries = context.table("transactions")
    entries = kept(entries, equal(entries, "transactional_id", case["transactional_id"]))
    updated = pc.max(entries["last_update_timestamp_ms"]).as_py()
    since, began = "" if updated is None else f" since {moment(updated)}", case["since_timestamp_ms"]
    late = "were written later" if None not in (updated, began) and began > updated else "have no end in the log"
    return (
        f": its coordinator has it as {case['state']}{since}, and its {_written([case])} "
        f"{late}{'' if began is None else f' ({moment(began)})'}. So nothing will end it"
    )


def _effect(context: RuleContext, held: list[dict[str, Any]], holds: str) -> str:
    """Sentences about partitions of groups, and the cleaner, which wait for these transactions."""
    rows = context.table("current_offsets")
    groups = list(dict.fromkeys(each["group_id"] for each in held))
    names = rows.select(["group_id", "topic", "partition"])
    names = kept(names, equal(names, "group_id", *groups))
    known = {tuple(each.values()) for each in names.to_pylist()}
    waiting = {(each["group_id"], each["topic"], each["partition"]) for each in held}
    where = places_shown((each["topic"], each["partition"]) for each in held)
    first = min(held, key=lambda each: (each["log_partition"], each["log_offset"]))
    return (
        f"{holds} back the offsets of {len(waiting)} of {counted(len(known | waiting), 'partition')} of "
        f"{listed(groups)}: {where}. A consumer that starts there waits for stable offsets and consumes nothing, and "
        f"no cleaner gets past {OFFSETS}-{first['log_partition']} offset {first['log_offset']}."
    )


def _written_at(context: RuleContext, producers: list[int]) -> dict[tuple[int, str, str, int], int | None]:
    """The time of the first pending commit, by producer, group, topic and partition."""
    rows = context.table("pending_offsets")
    rows = kept(rows, equal(rows, "producer_id", *producers))
    return {
        (each["producer_id"], each["group_id"], each["topic"], each["partition"]): each["since_timestamp_ms"]
        for each in rows.to_pylist()
    }


def _ends(case: dict[str, Any]) -> int:
    return int(case["since_timestamp_ms"] + case["timeout_ms"])


def _seen(context: RuleContext, cause: list[dict[str, Any]], rows: Rows) -> NextStep:
    """The step of looking at the rows. For a copy, its time has to be passed to `open_transactions`. For a time other
    than now, that table contains only what `__transaction_state` and `__consumer_offsets` show, so no time is passed
    for transactions that only snapshots show."""
    by_records = all(each["hanging_rule"] != "no_entry" or each["holds_back"] for each in cause)
    has_moment = by_records and context.is_stored and not context.request.as_of
    return context.see("List what is held back", rows, *(("--as-of", instant(context.at_ms)) if has_moment else ()))


def _ask_producer(context: RuleContext, cause: list[dict[str, Any]], halted: tuple[str, ...]) -> list[NextStep]:
    """Steps for a transaction that may still end by itself while groups wait for it."""
    name = cause[0]["transactional_id"]
    if not halted or name is None:
        return []
    alive = NextStep(
        f"Look whether the producer with the transactional id {shown(name)} is alive. If it is gone, start it again "
        "with this id: that aborts the transaction at once"
    )
    return [
        *(() if is_left(context, cause) else (alive,)),
        context.ask_kafka(
            "Ask the coordinator when it began, and for its timeout",
            "kafka-transactions",
            "describe",
            "--transactional-id",
            name,
        ),
        *_steps(context, cause, Rows("open_transactions"))[1:],
    ]


def _steps(context: RuleContext, cause: list[dict[str, Any]], rows: Rows) -> tuple[NextStep, ...]:
    found = _seen(context, cause, rows)
    starts: list[tuple[str, int, int]] = []
    for one in cause:
        of_logs = {(topic, partition): offset for topic, partition, offset in one["logs"] if offset is not None}
        for each in one["holds_back"] or []:
            of_logs.setdefault((OFFSETS, each["log_partition"]), each["log_offset"])
        starts += [(*place, offset) for place, offset in of_logs.items()]
    if not starts:
        describe = ("describe", "--transactional-id", cause[0]["transactional_id"] or "")
        return (found, context.ask_kafka("Ask its coordinator", "kafka-transactions", *describe))
    topic, partition, offset = starts[0]
    place = ("--topic", topic, "--partition", str(partition))
    asked = context.ask_kafka(
        "Ask the leader of the partition which producers are in a transaction there: it reports the offset at which "
        "each one starts",
        "kafka-transactions",
        "describe-producers",
        *place,
    )
    what = "its offsets are discarded" if topic == OFFSETS else "consumers of committed records skip its records"
    others = len(starts) - 1
    more = f" (the same for {others} more, each with its own partition and start offset)" if others else ""
    sentence = f"If its application has certainly ended, abort it: {what}, and everything that waits continues"
    if _cause(cause[0])[0] == "left":
        words = ("--topic", f"{topic}:{partition}", "--start-offset", str(offset))
        dry = f"{sentence}. Without --execute this only says what it would do{more}"
        return (found, asked, context.ask_records(dry, "abort-transaction", *words))
    by_kafka = ("abort", *place, "--start-offset", str(offset))
    abort = context.ask_kafka(sentence + more, "kafka-transactions", *by_kafka)
    return (found, asked, abort)


RULE = ReportRule(
    kind="transaction_open",
    title="a transaction hangs",
    about="""\
Open transactions. A transaction hangs when it is open for longer than its timeout and five minutes, or when no
transactional id has it (KIP-664). Groups whose committed offset is at its beginning are named: with `read_committed`
they get nothing until it ends. A group with members has stopped there after twice the longest interval between its
commits, and at least `group_stands_still.after`.

Transactions with the same cause are one finding.""",
    tables=("open_transactions", "pending_offsets", "transactions", "current_offsets", "lag", "groups", "log_ends"),
    levels={
        Level.CRITICAL: "it hangs, has been open for `critical_after`, and holds back offsets",
        Level.HIGH: (
            "it hangs; or a group has stopped at it, and it has been open for `times_usual` times the longest earlier "
            "one"
        ),
        Level.MODERATE: "it does not hang yet, but a group has stopped at it",
        Level.NOTE: "it has been open for `open_after`",
    },
    cases=_cases,
    tell=_tell,
    listing=lambda _: Rows("open_transactions"),
    thresholds=(
        Threshold(
            "open_after",
            "duration",
            "10s",
            "a transaction that is open for a shorter time is not a finding",
            "Kafka Streams ends one every 100 ms (commit.interval.ms with exactly_once_v2), and has a "
            "transaction.timeout.ms of 10 s",
            "settled_after",
        ),
        Threshold(
            "settled_after",
            "duration",
            "5m",
            "age at which a transaction without an entry counts as hanging",
            "topics are read one after another, and it may end in between",
            "critical_after",
        ),
        Threshold(
            "critical_after",
            "duration",
            "24h",
            "how long a transaction must hold back offsets to be critical",
            "the offsets topic grows without being cleaned, and the next restart of the group fails",
        ),
        Threshold(
            "times_usual",
            "count",
            20,
            "age of a transaction, as a multiple of the longest earlier one of its transactional id, from which it "
            "counts as left open",
            "an application seldom does twenty times as much in one transaction",
        ),
    ),
    causes=(
        Hypothesis(
            "producer_died",
            "the producer died in the transaction",
            "for: earlier transactions of its id were much shorter",
            lambda context, case: why_open(context, context.once(_causes)[case["at"]], True),
        ),
        Hypothesis(
            "producer_hangs",
            "the producer hangs in the transaction",
            "the same; no record shows whether it still runs",
            lambda context, case: why_open(context, context.once(_causes)[case["at"]], False),
        ),
    ),
    questions=(
        Question(
            "producer_hangs",
            "producer_died",
            "Does the process with this transactional id still run? If it does, take a stack dump of it, then restart "
            "it; if not, start it again with the same id: that aborts the transaction at once",
        ),
    ),
)

RULES = (RULE,)
