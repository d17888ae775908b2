"""What a source knows of the topics of its cluster, beside the logs that it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from kafka_records_engine.sources.abilities import has
from kafka_records_engine.sources.log_facts import KnownTopics

if TYPE_CHECKING:
    from kafka_records_engine.sources.protocol import Source


class TellsTopics(Protocol):
    """A source that knows topics of its cluster beside the logs that it holds."""

    def known_topics(self) -> KnownTopics:
        """What it knows. Raises LogSourceError."""


def known_topics(source: Source) -> KnownTopics:
    """What a source knows of topics, asked once: brokers tell all of it by one request. Raises LogSourceError."""
    return source.known_topics() if has(source, TellsTopics) else KnownTopics()
