"""How long a topic keeps records, which config sets that, and when it was changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts import config_changes
from kafka_records_tables.report.facts.cluster_settings import cluster_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kafka_records_tables.report.rule_context import RuleContext

OF_TOPIC: Final = "retention.ms"
OF_BROKERS: Final = "log.retention.ms"
_FOR_EVER: Final = 2**63 - 1
"""The retention in place of -1, which means no limit."""


@dataclass(frozen=True, slots=True)
class RetentionChange:
    """A change of how long a topic keeps records."""

    name: str
    """The name of the changed config: `OF_TOPIC`, or `OF_BROKERS` if the topic has no value of its own."""
    value: str | None
    """Its new value; None if it was removed."""
    value_before: str | None
    """Its old value; None if it was not set."""
    ms: int | None
    """How long the topic keeps records after the change; None if a broker's properties file or Kafka's default
    decides."""
    before_ms: int | None
    """How long it kept records before the change."""
    at_ms: int | None
    """The time of the change; None if only a checkpoint shows it."""
    log_offset: int


def where_set(context: RuleContext, topic: str) -> str:
    """Names, in words, the config that sets the retention of a topic: its own, unless only the brokers' value is
    known."""
    own = cluster_settings(context).configs.get((config_changes.TOPIC, topic), {})
    is_known = cluster_settings(context).topic_setting(topic, OF_TOPIC) is not None
    return f"{OF_BROKERS} of all brokers" if is_known and OF_TOPIC not in own else OF_TOPIC


def retention_changes(context: RuleContext, topic: str) -> list[RetentionChange]:
    """The changes in the order of the metadata log; empty if they do not lead to the present value, because a topic
    with this name was deleted in between."""
    if cluster_settings(context).topic_setting(topic, OF_TOPIC) is None:
        return []
    kinds = (config_changes.TOPIC, topic, OF_TOPIC), (config_changes.BROKER, "", OF_BROKERS)
    by_config = context.once(_rows_by_config)
    values: dict[str, str | None] = {}
    found: list[RetentionChange] = []
    for _, row in sorted((each for kind in kinds for each in by_config.get(kind, ())), key=lambda each: each[0]):
        before = _in_force(values)
        values[row["name"]] = row["value"]
        now = _in_force(values)
        if now != before:
            place = row["at_timestamp_ms"], row["log_offset"]
            found.append(RetentionChange(row["name"], row["value"], row["before"], _ms(now), _ms(before), *place))
    is_whole = not found or _in_force(values) == cluster_settings(context).topic_setting(topic, OF_TOPIC)
    return found if is_whole else []


def retention_at(changes: Sequence[RetentionChange], at_ms: int, present_ms: int | None) -> int | None:
    """How long a topic kept records at some time; None if no record shows it."""
    if not changes:
        return present_ms
    earlier = [each for each in changes if each.at_ms is None or each.at_ms <= at_ms]
    return earlier[-1].ms if earlier else changes[0].before_ms


def _rows_by_config(context: RuleContext) -> dict[tuple[str, str, str], list[tuple[int, dict[str, Any]]]]:
    """The changes of retention by resource and name, each with its position in the metadata log. A cluster may have
    many topics, so the rows are read only once."""
    rows = context.look(config_changes.TABLE)
    found: dict[tuple[str, str, str], list[tuple[int, dict[str, Any]]]] = {}
    for number, row in enumerate(kept(rows, equal(rows, "name", OF_TOPIC, OF_BROKERS)).to_pylist()):
        kind = row["resource_type"], row["resource_name"], row["name"]
        found.setdefault(kind, []).append((number, row))
    return found


def _in_force(values: dict[str, str | None]) -> str | None:
    own = values.get(OF_TOPIC)
    return values.get(OF_BROKERS) if own is None else own


def _ms(text: str | None) -> int | None:
    return _FOR_EVER if text == "-1" else int(text) if text is not None and text.isdigit() else None
