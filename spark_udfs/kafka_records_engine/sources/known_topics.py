"""What a source knows of the topics of its cluster, beside the logs that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from kafka_records_engine.sources.abilities import has

if TYPE_CHECKING:
    from kafka_records_engine.sources.protocol import Source


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """Empty where the source cannot tell."""

    names: Mapping[str, str] = field(default_factory=dict)
    """By the ids of the topics, as Kafka writes them (22 characters)."""
    partition_counts: Mapping[str, int] = field(default_factory=dict)
    """How many partitions the topics have in their cluster, by their names."""
    asked_ms: int | None = field(default=None, compare=False)
    """When brokers were asked, in milliseconds since 1970; None for what is stored."""


class TellsTopics(Protocol):
    """A source that knows topics of its cluster beside the logs that it holds."""

    def known_topics(self) -> KnownTopics:
        """What it knows. Raises LogSourceError."""


def known_topics(source: Source) -> KnownTopics:
    """What a source knows of topics, asked once: brokers tell all of it by one request. Raises LogSourceError."""
    return source.known_topics() if has(source, TellsTopics) else KnownTopics()
