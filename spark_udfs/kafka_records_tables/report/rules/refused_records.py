"""Records that brokers no longer accept because a size limit was lowered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka_records_tables.report.command_lines import condition_of, option
from kafka_records_tables.report.facts import config_changes, last_batches
from kafka_records_tables.report.incident_rule import Incident, PossibleCause, incident_rule
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, NextStep, ReportFinding, Rows
from kafka_records_tables.report.rule import Threshold, Verdict
from kafka_records_tables.report.rule_context import MOST_EVIDENCE, RuleContext, counted, length, moment, shown
from kafka_records_tables.topics import METADATA

KIND: Final = "large_records_refused"
_CAUSE, _OTHERWISE = "limit_lowered", "sent_no_more"
_OF_TOPIC, _OF_BROKERS = "max.message.bytes", "message.max.bytes"
_DEFAULT: Final = 1_048_588
"""The default of `message.max.bytes` (`ServerLogConfigs.MAX_MESSAGE_SIZE`)."""
_APPLIED_MS: Final = 2_000
"""Brokers apply a config change at most this long after its record."""


@dataclass(frozen=True, slots=True)
class _Lowered:
    """A limit that was lowered."""

    topic: str
    name: str
    limit: int
    before: int
    at_ms: int
    log_offset: int


@dataclass(slots=True)
class _Sizes:
    """The batches of a topic around a change."""

    since_ms: int | None = None
    """The time of the first batch that was read."""
    large: int = 0
    """The number of batches above the limit before the change."""
    large_of_one: int = 0
    """The number of those with one record, which a producer cannot split."""
    largest: int = 0
    last: tuple[int, int, int] | None = None
    """Time, partition and offset of the last one."""
    large_after: int = 0
    after: int = 0
    """The number of all batches after the change."""


def _find(context: RuleContext) -> list[Incident]:
    if not context.is_stored:
        return []
    return [found for each in _lowered(context) if (found := _judged(context, each)) is not None]


def _lowered(context: RuleContext) -> Iterator[_Lowered]:
    """For each topic, the last change that lowered its limit, if it still applies."""
    rows = context.look(config_changes.TABLE).to_pylist()
    own = _limits([each for each in rows if each["resource_type"] == config_changes.TOPIC], _OF_TOPIC)
    of_brokers = _limits([each for each in rows if each["resource_name"] == ""], _OF_BROKERS).get("", [])
    of_all = (of_brokers[-1][1] if of_brokers else None) or _DEFAULT
    for topic, changes in own.items():
        row, value, former = changes[-1]
        yield from _if_lowered(topic, _OF_TOPIC, row, value or of_all, former or of_all)
    if of_brokers:
        row, value, former = of_brokers[-1]
        topics = sorted({each for each in context.table("log_ends")["topic"].to_pylist() if each[:2] != "__"})
        for topic in topics:
            if topic not in own or own[topic][-1][1] is None:
                yield from _if_lowered(topic, _OF_BROKERS, row, value or _DEFAULT, former or _DEFAULT)


def _if_lowered(topic: str, name: str, row: Mapping[str, Any], limit: int, before: int) -> Iterator[_Lowered]:
    if limit < before and row["at_timestamp_ms"] is not None:
        yield _Lowered(topic, name, limit, before, row["at_timestamp_ms"], row["log_offset"])


_Change = tuple[Mapping[str, Any], int | None, int | None]


def _limits(rows: list[dict[str, Any]], name: str) -> dict[str, list[_Change]]:
    """By topic or broker, the changes of a limit, each with its value and the previous one."""
    found: dict[str, list[_Change]] = {}
    for each in rows:
        if each["name"] == name:
            values = (int(text) if (text := each[key]) and text.isdigit() else None for key in ("value", "before"))
            found.setdefault(each["resource_name"], []).append((each, next(values), next(values)))
    return found


def _judged(context: RuleContext, change: _Lowered) -> Incident | None:
    sizes = _sizes(context, change)
    after_ms = context.at_ms - change.at_ms - _APPLIED_MS
    if sizes.since_ms is None or not sizes.large_of_one or sizes.large_after or not sizes.after or after_ms <= 0:
        return None
    # A producer splits batches that are too large, so batches of several records prove little.
    large = sizes.large if 2 * sizes.large_of_one >= sizes.large else sizes.large_of_one
    per_ms = large / max(change.at_ms - sizes.since_ms, 1)
    expected = round(per_ms * (context.at_ms - change.at_ms))
    if expected < context.limit(f"{KIND}.expected"):
        return None
    return _incident(context, change, sizes, large, expected)


def _sizes(context: RuleContext, change: _Lowered) -> _Sizes:
    found = _Sizes()
    for row in context.look(last_batches.TABLE, topic=change.topic).to_pylist():
        batches = row["batches"] or ()
        # If not all batches before the change were read, the time of the first one counts.
        first = next((each["timestamp_ms"] for each in batches if each["timestamp_ms"] >= 0), None)
        if first is not None:
            found.since_ms = first if found.since_ms is None else max(found.since_ms, first)
        for each in batches:
            is_large = each["bytes"] > change.limit
            if each["timestamp_ms"] < change.at_ms:
                found.large += is_large
                found.large_of_one += is_large and each["records"] == 1
                if is_large:
                    found.largest = max(found.largest, each["bytes"])
                    place = each["timestamp_ms"], row["partition"], each["offset"]
                    found.last = place if found.last is None else max(found.last, place)
            elif each["timestamp_ms"] > change.at_ms + _APPLIED_MS:
                found.after += 1
                found.large_after += is_large
    return found


def _incident(context: RuleContext, change: _Lowered, sizes: _Sizes, large: int, expected: int) -> Incident:
    topic = shown(change.topic)
    at = moment(change.at_ms)
    whose = f"the topic {topic}" if change.name == _OF_TOPIC else "all brokers"
    changed = Evidence(
        f"{change.name} of {whose} has been {change.limit} since {at}; before, it was {change.before}",
        METADATA,
        0,
        change.log_offset,
        change.at_ms,
    )
    assert sizes.last is not None
    assert sizes.since_ms is not None
    last_ms, partition, offset = sizes.last
    last = Evidence(
        f"the last batch of {topic} with more than {change.limit} bytes", change.topic, partition, offset, last_ms
    )
    before_ms = change.at_ms - sizes.since_ms
    none = Evidence(
        f"more than {change.limit} bytes came {sizes.large} times in the {length(before_ms)} before, and never in the "
        f"{length(context.at_ms - change.at_ms)} since, in which {sizes.after} smaller batches came"
    )
    finding = ReportFinding(
        kind=KIND,
        level=Level.HIGH,
        title=RULE.title,
        problem=(
            f"{change.name} of {whose} was lowered from "
            f"{change.before} to {change.limit} at {at}. Before, {topic} got batches of up to {sizes.largest} bytes: "
            f"{large} above this limit in {length(before_ms)}. Since then none has come, while smaller ones still come."
        ),
        impact=(
            "Brokers reject larger batches with RecordTooLargeException (MESSAGE_TOO_LARGE): at the earlier rate, "
            f"about {counted(expected, 'record')}. A rejected request leaves no record, so it is unknown how many "
            "there were, and whether producers keep or drop them."
        ),
        topics=(change.topic,),
        since_timestamp_ms=change.at_ms,
        is_going_on=True,
        scale={"large_batches_before": large, "records_possibly_refused": expected},
        evidence=(changed, last)[:MOST_EVIDENCE],
        evidence_count=2,
        rows=(
            Rows("configs", (condition_of("resource_name", change.topic),)),
            Rows("log_ends", (condition_of("topic", change.topic),)),
        ),
        next=_steps(context, change, sizes),
        measured={"limit_bytes": change.limit, "largest_bytes": sizes.largest, "expected": expected},
        thresholds=context.limits_of(f"{KIND}.expected"),
    )
    lowered = Verdict(
        f"Brokers reject what is larger than the new {change.name}={change.limit}.",
        evidence_for=(changed, none),
    )
    otherwise = Verdict(
        "The producers have sent no large records since, by chance or because their limits were lowered too "
        "(max.request.size, batch.size).",
        evidence_against=(Evidence(f"the last large batch came {length(change.at_ms - last_ms)} before the change"),),
    )
    return Incident(finding, expected, {_CAUSE: lowered, _OTHERWISE: otherwise})


def _steps(context: RuleContext, change: _Lowered, sizes: _Sizes) -> tuple[NextStep, ...]:
    is_own = change.name == _OF_TOPIC
    entity = (
        ("--entity-type", "topics", *option("--entity-name", change.topic))
        if is_own
        else ("--entity-type", "brokers", "--entity-default")
    )
    return (
        context.ask_kafka(
            f"Remove the limit, or set it above {sizes.largest} bytes, if {shown(change.topic)} is to have such "
            "records. Then have the source send the rejected records again; consumers need nothing",
            "kafka-configs",
            *("--alter", *entity, "--delete-config", change.name),
        ),
        NextStep(
            "Look for RecordTooLargeException in the logs of the producers, and count what they dropped: "
            "record-error-total of kafka.producer:type=producer-metrics"
        ),
        context.see("See the configs", Rows("configs", (condition_of("resource_name", change.topic),))),
    )


RULE = incident_rule(
    kind=KIND,
    title="large records no longer arrive since a limit was lowered",
    about="""\
Topics for which `max.message.bytes` was lowered, or `message.max.bytes` of all brokers. No larger batches were written
since, although `expected` would have come at the earlier rate. The metadata log and files of the topic are needed; the
last 16 MiB of each log are read.""",
    tables=("log_ends",),
    levels={Level.HIGH: "always"},
    find=_find,
    listing=Rows("configs", (f"name={_OF_TOPIC}",)),
    causes=(
        PossibleCause(
            _CAUSE,
            "brokers reject what is larger than the new limit",
            "",
        ),
        PossibleCause(
            _OTHERWISE,
            "producers have sent no large records since",
            "",
        ),
    ),
    thresholds=(
        Threshold(
            "expected",
            "count",
            5,
            "large batches that should have come since the change, at the rate of before",
            "if records come at random, none of five comes in one case of 150",
        ),
    ),
)

RULES = (RULE,)
