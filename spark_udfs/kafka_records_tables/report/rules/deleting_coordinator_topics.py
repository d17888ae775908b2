"""Topics of coordinators with configs that let a broker delete records that coordinators need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts.deleting_topics import Deleting, deleting_topics
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Folds, Verdict
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted, listed
from kafka_records_tables.report.rules.broken_logs import logs_shown
from kafka_records_tables.tables.words.check_words import STATE_UNNAMED
from kafka_records_tables.topics import METADATA, OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

KIND: Final = "coordinator_topic_deletes"
_HAS: Final = {
    OFFSETS: "the offsets and the metadata of groups",
    TRANSACTIONS: "the state of transactional ids",
    SHARE_STATE: "the positions of share groups",
}
_EFFECT: Final = {
    OFFSETS: "groups that have written nothing since then begin again as auto.offset.reset says",
    TRANSACTIONS: "transactional ids that were not used since then are unknown, and their open transactions stay open",
    SHARE_STATE: "share groups begin again where share.auto.offset.reset says",
}


def _find(context: RuleContext) -> list[Incident]:
    return [_incident(context, each) for each in context.once(deleting_topics).values()]


def _incident(context: RuleContext, each: Deleting) -> Incident:
    topic, starts = each.topic, each.starts
    missing = sum(starts.values())
    groups = _without_metadata(context) if topic == OFFSETS and starts else ()
    cause = Evidence(
        f"{topic} has {each.settings}",
        *((METADATA, 0, each.set_offset, each.set_ms) if each.set_offset is not None else ()),
    )
    gone = (
        f" {logs_shown(topic, sorted(starts))} no longer has its first {counted(missing, 'offset')}."
        if starts
        else " All of its logs still begin at offset 0."
    )
    lost = f" The share groups {listed(groups)} have state, but no metadata any more." if groups else ""
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH,
        title=RULE.title,
        problem=(
            f"{topic} has {each.settings}, so brokers delete its older records although these are the only copy of "
            f"{_HAS[topic]}.{gone}{lost}"
        ),
        impact=(
            "A coordinator keeps them in memory until a broker restarts or a leader moves. After that, "
            f"{_EFFECT[topic]}."
        ),
        group_ids=groups,
        topics=(topic,),
        partitions=tuple(sorted(starts)),
        since_timestamp_ms=each.set_ms,
        since_note=None if each.set_ms is not None else "no record shows when the config was set",
        is_going_on=True,
        scale={"offsets_deleted": missing, "partitions": len(starts)},
        evidence=(
            cause,
            *(Evidence(f"{topic}-{at} begins at {start}", topic, at, start) for at, start in sorted(starts.items())),
        )[:MOST_EVIDENCE],
        evidence_count=1 + len(starts),
        rows=(Rows("configs", (condition_of("resource_name", topic),)), _rows(topic)),
        next=(_repair(context, each), *_save(context, topic), context.see("List where its logs begin", _rows(topic))),
        measured={"offsets_deleted": missing},
    )
    verdict = Verdict(
        f"Somebody set {each.settings} for {topic}.",
        evidence_for=(cause,),
        is_certain=True,
    )
    return Incident(finding, missing, {"config_deletes": verdict})


def _rows(topic: str) -> Rows:
    return Rows("log_ends", (condition_of("topic", topic),))


def _repair(context: RuleContext, each: Deleting) -> NextStep:
    """The command that stops brokers from deleting more records."""
    limits = ("--delete-config", ",".join(each.limits)) if each.limits and each.topic != SHARE_STATE else ()
    # Brokers create the share state topic with this policy and without a limit.
    to = "retention.ms=-1,retention.bytes=-1" if each.topic == SHARE_STATE else "cleanup.policy=compact"
    return context.ask_kafka(
        f"Set {to} for {each.topic} at once",
        "kafka-configs",
        "--alter",
        "--entity-type",
        "topics",
        *option("--entity-name", each.topic),
        "--add-config",
        to,
        *limits,
    )


def _save(context: RuleContext, topic: str) -> tuple[NextStep, ...]:
    if topic != OFFSETS:
        return (
            NextStep(f"Restart no broker that leads a partition of {topic} until its state has been written again"),
        )
    return (
        context.ask_kafka(
            "Restart no broker before the offsets of each quiet group are written again: the coordinator still has "
            "them in memory. Save them, and write them with --reset-offsets --to-offset while the group has no members",
            "kafka-consumer-groups",
            "--describe",
            "--all-groups",
            "--offsets",
        ),
    )


def _without_metadata(context: RuleContext) -> tuple[str, ...]:
    """Share groups with state but without any record of their group."""
    rows: Sequence[dict[str, Any]] = kept(
        context.table("checks"), equal(context.table("checks"), "check", STATE_UNNAMED)
    ).to_pylist()
    return tuple(dict.fromkeys(each["group_id"] for each in rows if each["group_id"] is not None))


RULE = incident_rule(
    kind=KIND,
    title="a topic of a coordinator deletes its records",
    about="""\
`__consumer_offsets` or `__transaction_state` with `delete` in `cleanup.policy`, or `__share_group_state` with a limit
in `retention.ms` or `retention.bytes`, as the metadata log or a running broker shows. A broker then deletes the only
copy of offsets or state.""",
    tables=("log_ends", "checks"),
    levels={Level.HIGH: "always"},
    find=_find,
    listing=Rows("configs", ("resource_type=topic",)),
    causes=(
        PossibleCause(
            "config_deletes",
            "somebody changed the configs of the topic",
            "certain: the configs are in the metadata log",
        ),
    ),
    folds=(Folds("share_state_left"),),
)

RULES = (RULE,)
