"""A cluster's settings from its metadata log, for rules that would otherwise have to assume values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

_TOPIC, _BROKER, _GROUP = "topic", "broker", "group"
_ALL_BROKERS: Final = ""
_RETENTION_MS, _CLEANUP = "retention.ms", "cleanup.policy"


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    """A cluster's settings. A setting is None if no record has it; it is then in a broker's properties file, or has
    Kafka's default."""

    configs: Mapping[tuple[str, str], Mapping[str, str]]
    """The values of settings by name, for each resource type and name, without secrets."""

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """The settings in rows of the table `configs`."""
        configs: dict[tuple[str, str], dict[str, str]] = {}
        for each in rows:
            if each["value"] is not None and not each["is_sensitive"]:
                configs.setdefault((each["resource_type"], each["resource_name"]), {})[each["name"]] = each["value"]
        return cls(configs)

    def topic_setting(self, topic: str, name: str) -> str | None:
        """A config of a topic (`retention.ms`): its own, or the value set for all brokers (`log.retention.ms`)."""
        own = self.configs.get((_TOPIC, topic), {}).get(name)
        return self._of_all_brokers(f"log.{name}") if own is None else own

    def topic_number(self, topic: str, name: str) -> int | None:
        """A config of a topic as a number: a count, bytes or milliseconds."""
        return _number(self.topic_setting(topic, name))

    def group_setting(self, group: str, name: str) -> str | None:
        """A config of a group (`share.delivery.count.limit`): its own, or the value set for all brokers
        (`group.share.delivery.count.limit`)."""
        own = self.configs.get((_GROUP, group), {}).get(name)
        return self._of_all_brokers(f"group.{name}") if own is None else own

    def group_limit(self, group: str, name: str) -> int | None:
        """A config of a group as a number: a count, bytes or milliseconds."""
        return _number(self.group_setting(group, name))

    def retention_ms(self, topic: str) -> int | None:
        """How long the records of a topic are kept; None if unknown or unlimited."""
        return self.topic_number(topic, _RETENTION_MS)

    def is_compacted(self, topic: str) -> bool | None:
        """Whether a topic is compacted; None if unknown."""
        policy = self.topic_setting(topic, _CLEANUP)
        return None if policy is None else "compact" in policy

    def _of_all_brokers(self, name: str) -> str | None:
        """The value set for all brokers; None if any broker has its own."""
        found = self.configs.get((_BROKER, _ALL_BROKERS), {}).get(name)
        differ = any(kind == _BROKER and of and name in told for (kind, of), told in self.configs.items())
        return None if differ else found


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdigit() else None
