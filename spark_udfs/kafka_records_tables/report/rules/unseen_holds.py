"""Open transactions in partitions whose logs are not in the source, as a cause of offsets that do not move."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, listed, moment, places_shown, shown
from kafka_records_tables.topics import TRANSACTIONS

NAME: Final = "transaction_holds_back"
CAUSE: Final = PossibleCause(
    NAME,
    "an open transaction holds the records back from consumers with `isolation.level=read_committed`",
    "for: one began in all these partitions before; only if their logs are not in the source, otherwise see "
    "`transaction_open`",
)
QUESTION: Final = Question(
    NAME,
    "application_hangs",
    "Does the group read with isolation.level=read_committed, and is the transaction still open?",
)
_MOST_STEPS: Final = 3


def weigh_transactions(context: RuleContext, places: Sequence[Mapping[str, Any]]) -> Verdict | None:
    """Judges from transaction records whether open transactions hold back partitions that stopped (rows of `progress`);
    None if they do not, or if the log of a partition shows it."""
    since = {(each["topic"], each["partition"]): each["since_timestamp_ms"] or context.at_ms for each in places}
    if not since or any(each["end_offset"] is not None for each in places):
        return None
    held = set()
    evidence: dict[str, Evidence] = {}
    for each in context.table("open_transactions").to_pylist():
        began, name = each["since_timestamp_ms"], each["transactional_id"]
        entry = {(of["topic"], number) for of in each["partitions"] or () for number in of["partitions"]}
        here = {place for place in entry & since.keys() if began is not None and began <= since[place]}
        if here and name not in evidence:
            writes = f"a transaction of {shown(name)} that writes to {places_shown(sorted(here))} began"
            evidence[name] = Evidence(f"{writes} at {moment(began)}", TRANSACTIONS, None, None, began)
        held |= here
    if held != since.keys():
        return None
    one = len(evidence) == 1
    topics = ", ".join(sorted({topic for topic, _ in since}))
    return Verdict(
        f"{'A transaction' if one else 'Transactions'} of {listed([*evidence])} may hold the records back: consumers "
        f"with isolation.level=read_committed wait until {'it has' if one else 'they have'} ended.",
        evidence_for=tuple(evidence.values()),
        lacked=(f"the log of {topics}, which shows where open transactions begin",),
        steps=tuple(
            context.ask_kafka(
                f"Ask the coordinator whether the transaction of {shown(name)} is still open",
                "kafka-transactions",
                "describe",
                "--transactional-id",
                name,
            )
            for name in [*evidence][:_MOST_STEPS]
        ),
    )
