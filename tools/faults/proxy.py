"""A proxy between clients and one broker, which disturbs the traffic at random, given a seed."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence
from contextlib import suppress
from math import inf
from random import Random
from typing import Final, NamedTuple

from kafka_records_engine.sources._brokers.requests_sent import METADATA
from tools.broker import HOST
from tools.faults.kinds import (
    ANSWERS,
    BEFORE_ASKING,
    BEFORE_CONNECTING,
    OLD,
    Answer,
    End,
    Send,
    Sleep,
    Step,
    exchanges,
    kinds_for,
)

_REMEMBERED: Final = 60
_RESET: Final = struct.pack("ii", 1, 0)
_PAUSE: Final = 0.02
_SELDOM: Final = 0.15
"""The factor by which connections and requests are disturbed less often than answers."""
_OLDEST: Final = 1.0
"""The maximum age of an earlier answer in seconds: a broker's copy of the cluster metadata may be this old."""


class Faults:
    """Draws the next fault, and counts faults.

    The seed determines the faults. Which answer a fault affects depends on the order in which threads run.
    """

    def __init__(self, seed: int, limit: float) -> None:
        """`limit` is how many seconds the client waits for an answer."""
        self.rate = 0.0
        """The share of answers that are disturbed."""
        self.limit = limit
        self.counts: Counter[str] = Counter()
        self.recent: deque[str] = deque(maxlen=_REMEMBERED)
        self._random = Random(seed)
        self._lock = threading.Lock()

    def drawn(self, kinds: Sequence[str], weight: float = 1.0) -> tuple[str, Random] | None:
        """One of these kinds, and a random source for its details; None for no fault."""
        with self._lock:
            if self._random.random() >= self.rate * weight:
                return None
            return self._random.choice(kinds), Random(self._random.random())

    def note(self, kind: str, about: str) -> None:
        """Count a fault."""
        with self._lock:
            self.counts[kind] += 1
            self.recent.append(f"{time.monotonic():.2f} {kind}: {about}")


class _Asked(NamedTuple):
    key: int
    version: int
    question: bytes
    """The request without its correlation id."""


class Proxy:
    """Listens on the port `outer` and passes connections on to the port `inner`."""

    def __init__(self, faults: Faults, outer: int, inner: int) -> None:
        self._faults, self._inner = faults, inner
        self._is_closed = False
        self._open: set[socket.socket] = set()
        self._old: dict[bytes, tuple[float, bytes]] = {}
        self._server = socket.create_server((HOST, outer))
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def close(self) -> None:
        """Close the listener and all connections."""
        self._is_closed = True
        _shut_down(self._server)
        self._accepting.join()
        self._server.close()
        for each in list(self._open):
            _shut_down(each)

    def _accept(self) -> None:
        with suppress(OSError):
            while not self._is_closed:
                client, _ = self._server.accept()
                threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        self._open.add(client)
        try:
            if self._faults.drawn([BEFORE_CONNECTING], _SELDOM) is not None:
                self._faults.note(BEFORE_CONNECTING, f"port {self._inner}")
                return
            with suppress(OSError), socket.create_connection((HOST, self._inner), 5) as broker:
                broker.settimeout(None)
                self._pass_on(client, broker)
        finally:
            self._open.discard(client)
            client.close()

    def _pass_on(self, client: socket.socket, broker: socket.socket) -> None:
        asked: deque[_Asked] = deque()
        answering = threading.Thread(target=self._answer, args=(client, broker, asked), daemon=True)
        answering.start()
        try:
            while (request := _frame(client)) is not None:
                key, version = struct.unpack_from(">hh", request)
                if self._faults.drawn([BEFORE_ASKING], _SELDOM) is not None:
                    self._faults.note(BEFORE_ASKING, _name(key))
                    return
                asked.append(_Asked(key, version, request[:4] + request[8:]))
                broker.sendall(struct.pack(">i", len(request)) + request)
        finally:
            _hang_up(client)
            _shut_down(broker)
            answering.join()

    def _answer(self, client: socket.socket, broker: socket.socket, asked: deque[_Asked]) -> None:
        with suppress(OSError):
            while (data := _frame(broker)) is not None:
                about = asked.popleft()
                if not all(_done(step, client) for step in self._steps(about, data)):
                    break
        _hang_up(client)
        _shut_down(broker)

    def _steps(self, asked: _Asked, data: bytes) -> list[Step]:
        answer = Answer(exchanges().get(asked.key), asked.version, data)
        old = self._older(asked, data) if answer.name == METADATA else None
        drawn = self._faults.drawn(kinds_for(answer, has_old=old is not None))
        if drawn is None:
            return [Send(answer.framed)]
        kind, random = drawn
        self._faults.note(kind, f"{_name(asked.key)} of port {self._inner}, {len(data)} bytes")
        if kind == OLD and old is not None:
            return [Send(Answer(answer.api, answer.version, data[:4] + old[4:]).framed)]
        return ANSWERS[kind](answer, self._faults.limit, random)

    def _older(self, asked: _Asked, data: bytes) -> bytes | None:
        """An earlier answer to the same request."""
        now = time.monotonic()
        then, old = self._old.get(asked.question, (0.0, b""))
        if now - then <= _OLDEST:
            return old
        self._old[asked.question] = now, data
        return None


def _done(step: Step, client: socket.socket) -> bool:
    """Carry out a step. Returns False if the connection ends with it."""
    if isinstance(step, Send):
        client.sendall(step.data)
        return True
    if isinstance(step, End):
        if step.is_reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        return False
    until = time.monotonic() + (step.seconds if isinstance(step, Sleep) else inf)
    while time.monotonic() < until:
        if not _is_there(client):
            return False
        time.sleep(_PAUSE)
    return True


def _is_there(client: socket.socket) -> bool:
    try:
        return client.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def _name(key: int) -> str:
    known = exchanges().get(key)
    return f"request {key}" if known is None else known.api.name


def _frame(stream: socket.socket) -> bytes | None:
    """The next request or answer; None at the end of the stream."""
    head = _exactly(stream, 4)
    return None if head is None else _exactly(stream, struct.unpack(">i", head)[0])


def _exactly(stream: socket.socket, size: int) -> bytes | None:
    data = bytearray()
    with suppress(OSError):
        while len(data) < size:
            piece = stream.recv(size - len(data))
            if not piece:
                return None
            data += piece
        return bytes(data)
    return None


def _shut_down(stream: socket.socket) -> None:
    with suppress(OSError):
        stream.shutdown(socket.SHUT_RDWR)


def _hang_up(client: socket.socket) -> None:
    """End the connection. If it will be reset, this only wakes its thread: the reset is sent when the socket is
    closed."""
    with suppress(OSError):
        is_reset = client.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(_RESET)) == _RESET
        client.shutdown(socket.SHUT_RD if is_reset else socket.SHUT_RDWR)
