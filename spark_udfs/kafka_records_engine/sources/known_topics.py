"""Facts that a source has about the topics of its cluster, in addition to its logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from kafka_records_engine.sources.abilities import has
from kafka_records_engine.sources.log_facts import KnownTopics

if TYPE_CHECKING:
    from kafka_records_engine.sources.protocol import Source


RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
CLEANUP_POLICY: Final = "cleanup.policy"
_UNLIMITED: Final = "-1"


def retention_of(configs: Mapping[str, str | None]) -> int | None:
    """The `retention.ms` among the configs of a topic that deletes only by time, so it is neither compacted nor limited
    in size. None for other topics, and if there is no time limit."""
    retention, size = configs.get(RETENTION_MS) or "", configs.get(RETENTION_BYTES) or _UNLIMITED
    is_by_time = "compact" not in (configs.get(CLEANUP_POLICY) or "") and size == _UNLIMITED
    return int(retention) if is_by_time and retention.isdigit() else None


class TellsTopics(Protocol):
    """A source with information about the topics of its cluster, in addition to its logs."""

    def known_topics(self) -> KnownTopics:
        """The known topics. Raises LogSourceError."""


def known_topics(source: Source) -> KnownTopics:
    """The facts that a source has about topics. One method returns all of them, because brokers send them in one
    answer. Raises LogSourceError."""
    return source.known_topics() if has(source, TellsTopics) else KnownTopics()
