"""Topics of coordinators with configs that let brokers delete records at the start of their logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow.compute as pc

from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.report.facts.cluster_settings import cluster_settings
from kafka_records_tables.report.facts.topic_changes import changes_of
from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_tables.report.rule_context import RuleContext

_POLICY: Final = "cleanup.policy"
_LIMITS: Final = ("retention.ms", "retention.bytes")


@dataclass(frozen=True, slots=True)
class Deleting:
    """A topic of a coordinator from which records are deleted by age or size."""

    topic: str
    policy: str
    limits: Mapping[str, str]
    """The topic's own limits by name. Without them, the brokers' limits apply."""
    starts: Mapping[int, int]
    """By partition, the start of each log that no longer begins at 0."""
    set_ms: int | None
    """When the topic was changed from compaction to deletion; None if no record shows it."""
    set_offset: int | None
    """The offset of that record in the metadata log."""

    @property
    def settings(self) -> str:
        """The policy and the limits, as Kafka's tools spell them."""
        return ", ".join([f"{_POLICY}={self.policy}", *(f"{name}={value}" for name, value in self.limits.items())])


def deleting_topics(context: RuleContext) -> dict[str, Deleting]:
    """The coordinators' topics from which brokers delete records, by name."""
    found = {}
    configs = cluster_settings(context).configs
    for topic in (OFFSETS, TRANSACTIONS, SHARE_STATE):
        own = configs.get(("topic", topic), {})
        policy = own.get(_POLICY, "")
        limits = {name: own[name] for name in _LIMITS if name in own}
        if "delete" not in policy:
            continue
        # Brokers create the share state topic with this policy and without limits (`ShareCoordinatorService`).
        never = topic == SHARE_STATE or len(limits) == len(_LIMITS)
        if never and all(value.startswith("-") for value in limits.values()):
            continue
        ends = context.table("log_ends")
        begins = kept(ends, equal(ends, "topic", topic), pc.greater(ends["log_start_offset"], 0))
        starts = dict(zip(begins["partition"].to_pylist(), begins["log_start_offset"].to_pylist(), strict=True))
        changes = [each for each in changes_of(context, topic) if each["event"] == "compaction_ended"]
        last = changes[-1] if changes else {"at_timestamp_ms": None, "log_offset": None}
        found[topic] = Deleting(topic, policy, limits, starts, last["at_timestamp_ms"], last["log_offset"])
    return found
