"""Open transactions in partitions whose logs are not in the source, as a cause of offsets that do not move."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka_records_tables.report.incident_rule import PossibleCause
from kafka_records_tables.report.report_parts import Evidence
from kafka_records_tables.report.rule import Question, Verdict
from kafka_records_tables.report.rule_context import RuleContext, listed, moment, places_shown
from kafka_records_tables.topics import TRANSACTIONS

NAME: Final = "transaction_holds_back"
CAUSE: Final = PossibleCause(
    NAME,
    "an open transaction holds the records back from consumers with `isolation.level=read_committed`",
    "for: a transaction began in all these partitions before their records waited; only if their logs are not in the "
    "source, otherwise see `transaction_open`",
)
QUESTION: Final = Question(
    NAME,
    "application_hangs",
    "Does the group read with isolation.level=read_committed, and is the transaction still open?",
)


def weigh_transactions(context: RuleContext, places: Iterable[Mapping[str, Any]]) -> Verdict | None:
    """Weighs whether open transactions hold back the records of partitions that stopped (rows of `progress`), by the
    entries of the transactions; None if they do not, or if the log of a partition shows it."""
    since = {(each["topic"], each["partition"]): each["since_timestamp_ms"] or context.at_ms for each in places}
    if any(each["end_offset"] is not None for each in places):
        return None
    held, open_ids, evidence = set(), [], []
    for each in context.table("open_transactions").to_pylist():
        began = each["since_timestamp_ms"]
        entry = {(of["topic"], number) for of in each["partitions"] or () for number in of["partitions"]}
        here = {place for place in entry & since.keys() if began is not None and began <= since[place]}
        if here and each["transactional_id"] not in open_ids:
            open_ids.append(each["transactional_id"])
            what = f"a transaction of it has been open in {places_shown(sorted(here))} since {moment(began)}"
            evidence.append(Evidence(f"{each['transactional_id']}: {what}", TRANSACTIONS, None, None, began))
        held |= here
    if held != since.keys():
        return None
    one = len(open_ids) == 1
    topics = ", ".join(sorted({topic for topic, _ in since}))
    return Verdict(
        f"{'A transaction' if one else 'Transactions'} of {listed(open_ids)} may hold the records back: consumers with "
        f"isolation.level=read_committed wait until {'it has' if one else 'they have'} ended.",
        evidence_for=tuple(evidence),
        lacked=(f"the log of {topics}, which shows where open transactions begin",),
        steps=tuple(
            context.ask_kafka(
                f"Ask the coordinator whether the transaction of {listed([each])} is still open",
                "kafka-transactions",
                "describe",
                "--transactional-id",
                each,
            )
            for each in open_ids[:1]
        ),
    )
