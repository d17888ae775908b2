"""Optional methods of sources, their own or those of a source that they wrap."""

from __future__ import annotations

from typing import Any

from kafka_records_engine.sources.abilities import HasLeader, TellsLogStarts, has, tell_transactions
from kafka_records_engine.sources.known_topics import TellsTopics, known_topics
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.missing_rights import TellsMissingRights


class Inner:
    def known_topics(self) -> KnownTopics:
        return KnownTopics({"id": "orders"})

    def log_starts(self, topics: Any) -> None:
        """The starts of logs."""


class Around:
    """Passes on methods that it does not have itself."""

    def __init__(self, inner: Inner) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def test_a_source_around_another_one_can_tell_what_that_can() -> None:
    source: Any = Around(Inner())
    assert known_topics(source).names == {"id": "orders"}
    assert has(source, TellsTopics)
    assert has(source, TellsLogStarts)
    assert not has(source, TellsMissingRights)


def test_a_log_partition_without_an_ability() -> None:
    class Silent:
        tells_transactions = False

    assert not has(Silent(), HasLeader)
    assert tell_transactions([object()])
    assert not tell_transactions([object(), Silent()])
