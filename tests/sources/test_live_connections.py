"""Connections to brokers that close them, and brokers that answer nonsense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources._brokers import cluster, pool
from kafka_records_engine.sources._brokers.cluster import Cluster, Topic
from kafka_records_engine.sources._brokers.failures import ConnectionLost
from kafka_records_engine.sources._brokers.sasl import SCRAM, Scram
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers

ADDRESS = ("b", 1)
CONFIG = ClientConfig(patience_ms=200)


class _Connection:
    """Fails for what stands in `fails`, one question after another; then it answers."""

    opened: list[_Connection]
    fails: list[bool]

    def __init__(self, host: str, port: int, config: ClientConfig) -> None:
        self.address, self.expires = f"{host}:{port}", float("inf")
        self.was_idle, self.is_idle, self.is_closed = False, True, False
        self.opened.append(self)

    def version(self, name: str) -> int:
        return 9

    def ask(self, name: str, fields: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        if self.fails and self.fails.pop(0):
            raise ConnectionLost(self.address, "it closed the connection")
        topic = {"name": "t", "topic_id": b"x" * 16, "error_code": 0, "partitions": []}
        return {"brokers": [], "topics": [topic]}

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture(name="fake")
def _fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Connection]]:
    _Connection.opened, _Connection.fails = [], []
    monkeypatch.setattr(cluster, "Connection", _Connection)
    monkeypatch.setattr(pool, "Connection", _Connection)
    yield _Connection
    pool.close_idle()


def test_a_connection_that_was_closed_while_idle_is_replaced_at_once(fake: type[_Connection]) -> None:
    Cluster([ADDRESS], CONFIG).topic("t")
    fake.fails = [True]
    assert Cluster([ADDRESS], CONFIG).topic("t").name == "t"
    assert [each.is_closed for each in fake.opened] == [True, False]
    assert Cluster([ADDRESS], CONFIG).topic("t").name == "t"
    assert len(fake.opened) == 2


def test_a_broker_that_closes_new_connections_is_asked_once(fake: type[_Connection]) -> None:
    fake.fails = [True, False]
    with pytest.raises(ConnectionLost, match="it closed the connection"):
        Cluster([ADDRESS], CONFIG).topic("t")
    assert Cluster([ADDRESS], CONFIG).topic("t").name == "t"
    fake.fails = [True, True, False]
    with pytest.raises(ConnectionLost, match="it closed the connection"):
        Cluster([ADDRESS], CONFIG).topic("t")
    assert fake.fails == [False]
    assert all(each.is_closed for each in fake.opened)


def test_a_cluster_that_has_answered_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    lost = ConnectionLost("b:1", "it closed the connection")
    answers: list[ConnectionLost | None] = [None, lost, lost, None, lost, None]

    def topic(cluster: Cluster, name: str) -> Topic:
        answer = answers.pop(0) if answers else lost
        if answer is not None:
            raise answer
        return Topic(name, b"x" * 16, {0: 1})

    monkeypatch.setattr(Cluster, "topic", topic)
    monkeypatch.setattr(Cluster, "offsets", lambda cluster, topic, missing, timestamp: {0: 5 if timestamp == -1 else 2})
    (log,) = LiveBrokers("b:1", CONFIG).partitions("t")
    assert (log.start, log.end) == (2, 5)
    assert not answers
    with pytest.raises(LogSourceError, match=r"^b:1: it closed the connection$"):
        LiveBrokers("b:1", CONFIG).partitions("t")
    answers[:] = [None]
    with pytest.raises(LogSourceError, match=r"it closed the connection, for 0\.2 s"):
        LiveBrokers("b:1", CONFIG).partitions("t")


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("i=4096", "the broker sent no salt"),
        ("s=c2FsdA==", "the broker asks for '' iterations"),
        ("s=c2FsdA==,i=many", "the broker asks for 'many' iterations"),
        ("s=c2FsdA==,i=1", "the broker asks for 1 iterations"),
        ("s=c,i=4096", "Incorrect padding|base64"),
    ],
)
def test_scram_refuses_a_first_answer_that_is_none(rest: str, why: str) -> None:
    exchange = Scram(SCRAM["SCRAM-SHA-256"], "user", "password", nonce="abc")
    exchange.first()
    with pytest.raises(ValueError, match=why):
        exchange.next(f"r=abcdef,{rest}".encode())
