"""A leader that sends no records although its high watermark is further on: reported, waited for, never skipped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafka_records_engine.sources import broker_logs
from kafka_records_engine.sources._brokers.cluster import Cluster, Topic, UnknownOffset
from kafka_records_engine.sources._brokers.failures import ConnectionLost
from kafka_records_engine.sources._brokers.fetching import Fetched, Fetcher
from kafka_records_engine.sources._brokers.patience import GivenUp
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.protocol import Context

_PATIENCE = 20
"""The number of waits until the reader gives up."""


class _Leader:
    """Answers every Fetch without records; the first `throttled` answers request a pause."""

    def __init__(self, named: Sequence[int | None], throttled: int = 0) -> None:
        self._named = list(named)
        self._throttled = throttled
        self.waits: list[str] = []
        self.answers = 0
        self._position = 0

    def ask(self, position: int) -> None:
        self._position = position

    def answer(self) -> Fetched:
        self.answers += 1
        return Fetched("h:1", self._position, b"", 1000, self.answers <= self._throttled)

    def wait(self, why: str, *, broker_failed: bool = False) -> None:
        self.waits.append(why)
        if len(self.waits) > _PATIENCE:
            raise GivenUp(f"{why}, for 1 s")

    def record_named(self) -> int | None:
        return self._named.pop(0) if len(self._named) > 1 else self._named[0]

    def moved(self) -> None:
        """Nothing to forget."""

    def close(self) -> None:
        """Nothing to close."""


def read(leader: _Leader, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setattr(broker_logs, "Fetcher", lambda *given: leader)
    monkeypatch.setattr(Cluster, "topic", lambda cluster, name: Topic(name, b"x" * 16, {0: 1}))
    context = Context("t", 0)
    log = BrokerPartition((("h", 1),), ClientConfig(), "t", b"x" * 16, 0, 0, 1000)
    assert list(log.batches(context, ["offset"])) == []
    return context


def test_a_tail_that_was_cleaned_away_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = _Leader([None])
    context = read(leader, monkeypatch)
    assert [(each.severity, str(each)) for each in context.findings] == [
        (
            "note",
            "h:1 t-0: the leader has no record at offsets 0 to 999 (the log cleaner may have removed all of them)",
        )
    ]
    assert context.log.holes == []
    assert len(leader.waits) == leader.answers - 1 == 4


def test_a_record_that_is_named_and_never_sent_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    context = read(_Leader([17]), monkeypatch)
    (found,) = context.findings
    assert (found.severity, found.base_offset, found.consequence) == ("damage", 0, "offsets 0 to 999 are not read")
    assert found.file == "h:1 t-0"
    assert found.what == "no record is sent from offset 0 on, although there is one at offset 17, for 1 s"
    assert context.log.holes == [-1]


def test_answers_of_a_throttled_client_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = _Leader([None], throttled=6)
    context = read(leader, monkeypatch)
    assert [each.severity for each in context.findings] == ["note"]
    assert leader.answers == 6 + 5
    context = read(_Leader([None], throttled=1000), monkeypatch)
    assert [each.severity for each in context.findings] == ["damage"]
    assert "as the broker asks for a pause" in context.findings[0].what


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        ({0: 3, -3: 7}, 7),
        ({0: 5, -3: 3}, 5),
        ({0: 3, -3: 4}, None),
        ({0: UnknownOffset("UNSUPPORTED_FOR_MESSAGE_FORMAT"), -3: -1}, None),
    ],
)
def test_records_are_named_by_list_offsets(
    answers: dict[int, Any], named: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "offsets", lambda cluster, topic, partitions, timestamp: {0: answers[timestamp]})
    fetcher = Fetcher(Cluster([("h", 1)], ClientConfig()), Topic("t", b"x" * 16, {0: 1}), 0)
    fetcher.ask(5)
    assert fetcher.record_named() == named


def test_a_leader_that_does_not_say_which_records_it_has_is_no_leader_without_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Cluster, "offsets", lambda cluster, topic, partitions, timestamp: {0: UnknownOffset("GONE")})
    fetcher = Fetcher(Cluster([("h", 1)], ClientConfig()), Topic("t", b"x" * 16, {0: 1}), 0)
    fetcher.ask(5)
    with pytest.raises(ConnectionLost, match="GONE"):
        fetcher.record_named()
