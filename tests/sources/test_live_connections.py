"""Connections to brokers that close them, and brokers that answer nonsense."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers import cluster, connection, pool
from kafka_records_engine.sources._brokers.cluster import LATEST, Cluster, Topic, UnknownOffset
from kafka_records_engine.sources._brokers.failures import ConnectionLost
from kafka_records_engine.sources._brokers.sasl import Scram
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.client_config import SCRAM, ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_tables.commands.main import main

ADDRESS = ("b", 1)
CONFIG = ClientConfig(patience_ms=200)


class _Connection:
    """Fails with the errors in `fails`, one request after another; then it answers."""

    opened: list[_Connection]
    fails: list[bool]

    def __init__(self, host: str, port: int, config: ClientConfig, session: Session, until: float) -> None:
        self.address, self.expires = f"{host}:{port}", float("inf")
        self.was_idle, self.is_idle, self.is_closed = False, True, False
        self.opened.append(self)

    def version(self, name: str) -> int:
        return 9

    def ask(self, name: str, fields: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        if self.fails and self.fails.pop(0):
            raise ConnectionLost(self.address, "it closed the connection")
        topic = {
            "name": "t",
            "topic_id": b"x" * 16,
            "error_code": 0,
            "partitions": [],
            "topic_authorized_operations": -(1 << 31),
        }
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


def test_names_and_partitions_of_topics_are_told_by_one_answer(
    fake: type[_Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(self: _Connection, name: str, fields: dict[str, Any], version: int | None = None) -> dict[str, Any]:
        asked.append(name)
        partitions = [{"partition_index": number, "leader_id": 1} for number in range(2)]
        topics: list[tuple[str, int, list[Any]]] = [("t", 0, partitions), ("u", 0, []), ("hidden", 29, [])]
        shown = ("name", "error_code", "partitions")
        return {"brokers": [], "topics": [dict(zip(shown, each, strict=True), topic_id=each[0]) for each in topics]}

    monkeypatch.setattr(fake, "ask", ask)
    assert LiveBrokers("b:1").known_topics() == KnownTopics({"t": "t", "u": "u"}, {"t": 2, "u": 0})
    assert asked == ["Metadata"]


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
    answers: list[ConnectionLost | None] = [None, lost, None]

    def topic(cluster: Cluster, name: str) -> Topic:
        answer = answers.pop(0) if answers else lost
        if answer is not None:
            raise answer
        return Topic(name, b"x" * 16, {0: 1})

    def offsets(
        cluster: Cluster, topic: Topic, missing: Collection[int], timestamp: int
    ) -> dict[int, int | UnknownOffset]:
        if answers:  # the leader is down too
            return dict.fromkeys(missing, UnknownOffset("NOT_LEADER_OR_FOLLOWER"))
        return dict.fromkeys(missing, 5 if timestamp == LATEST else 2)

    monkeypatch.setattr(Cluster, "topic", topic)
    monkeypatch.setattr(Cluster, "offsets", offsets)
    (log,) = LiveBrokers("b:1", CONFIG).partitions("t")
    assert (log.start, log.end) == (2, 5)
    assert not answers
    with pytest.raises(LogSourceError, match=r"^b:1: it closed the connection$"):
        LiveBrokers("b:1", CONFIG).partitions("t")
    answers[:] = [None, *[lost] * 50]
    with pytest.raises(LogSourceError, match=r"it closed the connection, for 0\.2 s"):
        LiveBrokers("b:1", CONFIG).partitions("t")


@pytest.mark.parametrize(
    ("rest", "why"),
    [
        ("i=4096", "the broker sent no salt"),
        ("s=c2FsdA==", "the broker asks for '' iterations, which is not a valid number"),
        ("s=c2FsdA==,i=many", "the broker asks for 'many' iterations, which is not a valid number"),
        ("s=c2FsdA==,i=1", "the broker asks for 1 iterations, not 4096 to 10000000"),
        ("s=c,i=4096", "Incorrect padding|base64"),
    ],
)
def test_scram_refuses_a_first_answer_that_is_none(rest: str, why: str) -> None:
    exchange = Scram(SCRAM["SCRAM-SHA-256"], "user", "password", nonce="abc")
    exchange.first()
    with pytest.raises(ValueError, match=why):
        exchange.next(f"r=abcdef,{rest}".encode())


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_a_listener_that_says_nothing_is_told_and_named(
    protocol: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connection, "NOTE_AFTER", 0.1)
    config = ClientConfig(security_protocol=protocol, request_timeout_ms=300, connect_timeout_ms=300)
    with socket.create_server(("127.0.0.1", 0)) as server:
        place = f"127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(LogSourceError) as raised:
            LiveBrokers(place, config).topics()
    reason = "that expects TLS" if protocol == "PLAINTEXT" else "without TLS"
    assert str(raised.value) == (
        f"{place}: it accepts connections but has sent nothing within 300 ms: a listener {reason} "
        f"(security.protocol is {protocol} here), a broker that hangs, or something else that is not a broker"
    )
    assert caplog.messages == [f"{place}: no response for 0.1 s; still waiting"]


def test_who_waits_for_brokers_reads_it_on_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(connection, "NOTE_AFTER", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as server, tempfile.NamedTemporaryFile("w") as config:
        config.write("request.timeout.ms=400\n")
        config.flush()
        place = f"127.0.0.1:{server.getsockname()[1]}"
        assert main(["counts", "--bootstrap", place, "--command-config", config.name]) == 2
    note, error = capsys.readouterr().err.splitlines()
    assert note == f"note: {place}: no response for 0.1 s; still waiting"
    assert error.startswith(f"kafka-records: {place}: it accepts connections but has sent nothing within 400 ms: ")
