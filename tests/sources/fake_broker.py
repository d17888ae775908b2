"""A fake broker with the answers that a test needs: real sockets and bytes, with wrong values in single fields."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Any, Final

from kafka_records.schemas.rpc import REQUEST_HEADER
from kafka_records_engine.sources._brokers.requests_sent import (
    API_VERSIONS,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    LIST_GROUPS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    exchange,
)
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.protocol import Context
from kafka_records_runtime.text.casing import snake_case
from kafka_records_runtime.wire import walker
from tests.cli.segment_bytes import batch, commit

TOPIC: Final = "__consumer_offsets"
TOPIC_ID: Final = bytes(range(16))

_VERSIONS: Final = {
    FETCH: 13,
    LIST_OFFSETS: 7,
    METADATA: 12,
    OFFSET_FETCH: 8,
    FIND_COORDINATOR: 4,
    LIST_GROUPS: 4,
    DESCRIBE_GROUPS: 5,
    SASL_HANDSHAKE: 1,
    API_VERSIONS: 3,
    SASL_AUTHENTICATE: 1,
}

_EXCHANGES: Final = {each.api.key: each for each in map(exchange, _VERSIONS)}
"""The exchanges by api key. Schemas are loaded here, so that no test waits for that."""

QUICK: Final = ClientConfig(request_timeout_ms=300, connect_timeout_ms=300, patience_ms=400)
"""A configuration with short timeouts, for brokers that do not answer."""

Answer = dict[str, Any] | bytes | None
"""The fields of an answer, or bytes to send instead of it and its size; None: no answer."""


class FakeBroker:
    """Answers as a correct broker with empty logs, except for requests in `answers`, which maps each to a function of
    its fields."""

    def __init__(self, node: int = 1) -> None:
        self.node = node
        self.brokers: Sequence[FakeBroker] = [self]
        self.leaders: Mapping[int, int] = {0: node}
        self.end = 0
        self.records: Callable[[int, int], bytes] = lambda partition, offset: b""
        self.answers: dict[str, Callable[[dict[str, Any]], Answer]] = {}
        self.asked: list[str] = []
        self.delay = 0.0
        """The delay before each answer to Fetch in seconds."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._open: list[socket.socket] = []
        self._is_closed = False
        self._accepting = threading.Thread(target=self._serve, daemon=True)
        self._accepting.start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def close(self) -> None:
        self._is_closed = True
        _shut_down(self._server)
        # A connection that was accepted a moment ago is in the list only once this thread has ended.
        self._accepting.join()
        for each in (self._server, *self._open):
            _shut_down(each)
            each.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._server.accept()
                self._open.append(connection)
                threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with suppress(OSError, struct.error):
            while True:
                size = struct.unpack(">i", _exactly(connection, 4))[0]
                self._answer(connection, _exactly(connection, size))

    def _answer(self, connection: socket.socket, data: bytes) -> None:
        key, version, correlation = struct.unpack_from(">hhi", data)
        asked = _EXCHANGES[key]
        name = asked.api.name
        self.asked.append(name)
        _, start = walker.decode(REQUEST_HEADER, data, asked.api.request_header_version(version), allow_trailing=True)
        fields, _ = walker.decode(asked.request, data[start:], version, lenient=True)
        answer = self.answers.get(name, self.answer_of(name))(fields)
        if answer is None:
            return
        if isinstance(answer, bytes):
            self._send(connection, answer)
            return
        head = struct.pack(">i", correlation) + (b"\0" if asked.api.response_header_version(version) else b"")
        body = head + walker.encode(asked.response, answer, version)
        self._send(connection, struct.pack(">i", len(body)) + body)

    def _send(self, connection: socket.socket, data: bytes) -> None:
        connection.sendall(data)

    def answer_of(self, name: str) -> Callable[[dict[str, Any]], Answer]:
        """The correct answer to a request, as a function of its fields."""
        answer: Callable[[dict[str, Any]], Answer] = getattr(self, f"_{snake_case(name)}")
        return answer

    # -- honest answers ------------------------------------------------------------------------------------------------

    def _api_versions(self, asked: dict[str, Any]) -> Answer:
        keys = [
            {"api_key": exchange(name).api.key, "min_version": 0, "max_version": newest}
            for name, newest in _VERSIONS.items()
        ]
        return {"error_code": 0, "api_keys": keys}

    def _metadata(self, asked: dict[str, Any]) -> Answer:
        names = [TOPIC] if asked["topics"] is None else [each["name"] for each in asked["topics"]]
        return self.metadata([self.topic(name) for name in names])

    def metadata(self, topics: Sequence[dict[str, Any]], host: str = "127.0.0.1") -> dict[str, Any]:
        """An answer to Metadata."""
        brokers = [{"node_id": each.node, "host": host, "port": each.port} for each in self.brokers]
        return {"brokers": brokers, "topics": topics}

    def topic(self, name: str = TOPIC) -> dict[str, Any]:
        """A topic in an answer to Metadata."""
        partitions = [{"partition_index": number, "leader_id": node} for number, node in self.leaders.items()]
        return {"error_code": 0, "name": name, "topic_id": TOPIC_ID, "partitions": partitions}

    def _list_offsets(self, asked: dict[str, Any]) -> Answer:
        return {
            "topics": [
                {
                    "name": topic["name"],
                    "partitions": [
                        {
                            "partition_index": each["partition_index"],
                            "offset": {-1: self.end, -2: 0}.get(each["timestamp"], -1),
                        }
                        for each in topic["partitions"]
                    ],
                }
                for topic in asked["topics"]
            ]
        }

    def _fetch(self, asked: dict[str, Any]) -> Answer:
        time.sleep(self.delay)
        (wanted,) = asked["topics"][0]["partitions"]
        return self.fetched(self.records(wanted["partition"], wanted["fetch_offset"]), wanted["partition"])

    def fetched(self, records: bytes, partition: int = 0, topic_id: bytes = TOPIC_ID, **more: Any) -> dict[str, Any]:
        """An answer to Fetch; `more` are members about the partition."""
        told = {"partition_index": partition, "high_watermark": self.end, "records": records, **more}
        return {"responses": [{"topic_id": topic_id, "partitions": [told]}]}

    def _sasl_handshake(self, asked: dict[str, Any]) -> Answer:
        return {"error_code": 0, "mechanisms": ["PLAIN"]}

    def _sasl_authenticate(self, asked: dict[str, Any]) -> Answer:
        return {"error_code": 0, "error_message": None, "auth_bytes": b"", "session_lifetime_ms": 0}

    def _find_coordinator(self, asked: dict[str, Any]) -> Answer:
        return {
            "coordinators": [
                {"key": key, "node_id": self.node, "host": "127.0.0.1", "port": self.port}
                for key in asked["coordinator_keys"]
            ]
        }

    def _offset_fetch(self, asked: dict[str, Any]) -> Answer:
        return {"groups": [{"group_id": each["group_id"], "topics": []} for each in asked["groups"]]}

    def _describe_groups(self, asked: dict[str, Any]) -> Answer:
        return {
            "groups": [
                {"group_id": each, "group_state": "Empty", "protocol_type": "", "protocol_data": "", "members": []}
                for each in asked["groups"]
            ]
        }

    def _list_groups(self, asked: dict[str, Any]) -> Answer:
        return {"error_code": 0, "groups": []}


class Dripping(FakeBroker):
    """Sends all answers to Fetch byte by byte."""

    def _send(self, connection: socket.socket, data: bytes) -> None:
        if self.asked[-1] != FETCH:
            connection.sendall(data)
            return
        for byte in data:
            connection.sendall(bytes([byte]))
            time.sleep(0.01)


@contextmanager
def fake_brokers(*brokers: FakeBroker) -> Iterator[list[FakeBroker]]:
    """Run some brokers as one cluster. They lead one partition each, in turn."""
    for broker in brokers:
        broker.brokers = brokers
        broker.leaders = {number: each.node for number, each in enumerate(brokers)}
    with ExitStack() as stack:
        for broker in brokers:
            stack.callback(broker.close)
        yield list(brokers)


def meet(brokers: list[FakeBroker], name: str) -> None:
    """Delay the answers to the first request of this name until all brokers have got it."""
    everybody = threading.Barrier(len(brokers))

    def answer(broker: FakeBroker, asked: dict[str, Any]) -> Any:
        if broker.asked.count(name) == 1:
            everybody.wait(10)
        return broker.answer_of(name)(asked)

    for broker in brokers:
        broker.answers[name] = partial(answer, broker)


def records(partition: int, offset: int) -> bytes:
    """A log of three batches."""
    return b"".join(batch(each, [commit(f"g{partition}", each)]) for each in range(offset, 3))


def read(log: BrokerPartition) -> tuple[list[int], Context]:
    """The offsets of a log partition, and the context with the findings."""
    context = Context(log.topic, log.partition)
    offsets = [each for rows in log.batches(context, ["offset"]) for each in rows.column("offset").to_pylist()]
    return offsets, context


@contextmanager
def within(seconds: float) -> Iterator[None]:
    started = time.monotonic()
    yield
    assert time.monotonic() - started < seconds


def silent(asked: dict[str, Any]) -> None:
    """Do not answer."""


def _shut_down(opened: socket.socket) -> None:
    with suppress(OSError):
        opened.shutdown(socket.SHUT_RDWR)


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionResetError
        data += piece
    return data
