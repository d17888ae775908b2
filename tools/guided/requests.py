"""Answers of brokers: the answers of a correct broker are changed, one after another.

For each answer, a byte of the input is the number of changes. A change has two bytes for its place, and one for its
effect: another byte there, or the end of the answer.
"""

from __future__ import annotations

import struct
from functools import cache
from itertools import pairwise
from typing import Any, Final
from unittest.mock import patch

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers import connection, patience, pool
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.group_requests import GroupRequests
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from tests.sources.fake_broker import TOPIC, FakeBroker, records
from tools.guided.target import Target

_CONFIG: Final = ClientConfig(request_timeout_ms=5, connect_timeout_ms=5, patience_ms=5)
_MOST_ANSWERS: Final = 200
_END: Final = 0xFF


class _Honest(FakeBroker):
    """A broker whose answers are requested directly, without a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.close()
        self.end, self.records = 3, records
        self.sent = b""

    def _send(self, connection: Any, data: bytes) -> None:
        self.sent = data

    def answer_to(self, request: bytes) -> bytes:
        """The answer with its size field."""
        self._answer(None, request)  # type: ignore[arg-type]
        return self.sent


class _Answers:
    """The rest of an input."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at, self.count = data, 0, 0

    def changed(self, answer: bytes) -> bytes:
        """An answer with the next changes."""
        self.count += 1
        if self.count > _MOST_ANSWERS:
            return b""
        out = bytearray(answer)
        for _ in range(self._next(1)[0] & 15):
            place, byte = struct.unpack(">HB", self._next(3))
            place %= len(out) + 1
            if byte == _END:
                return bytes(out[:place])
            out[place : place + 1] = bytes([byte])
        return bytes(out)

    def _next(self, size: int) -> bytes:
        found = self.data[self.at : self.at + size].ljust(size, b"\0")
        self.at += size
        return found


class _Wire:
    """Replaces a transport, and answers each request at once."""

    answers: _Answers
    broker: _Honest

    def __init__(self, host: str, port: int, config: ClientConfig, until: float) -> None:
        self.received, self._left = 0, b""

    def close(self) -> None:
        """Does nothing, because nothing is open."""

    def send(self, message: bytes, until: float) -> None:
        """Get the answer."""
        self._left += self.answers.changed(self.broker.answer_to(message))

    def receive(self, size: int, until: float) -> bytes:
        """The next bytes of the answer."""
        if size > len(self._left):
            raise ConnectionResetError("closed")
        found, self._left = self._left[:size], self._left[size:]
        self.received += size
        return found

    def silence(self, milliseconds: int) -> Exception:
        """Must not be called."""
        raise AssertionError


def _read_logs() -> None:
    source = LiveBrokers(_Wire.broker.address, _CONFIG)
    for log in source.partitions(TOPIC)[:4]:
        offsets: list[int] = []
        context = Context(log.topic, log.partition)
        for rows in log.batches(context, ["offset", "key", "value"]):
            rows.validate(full=True)
            offsets += rows.column("offset").to_pylist()
        assert all(one < other for one, other in pairwise(offsets)), offsets
        assert all(log.start <= each < log.end for each in offsets), (log, offsets)
        assert all(str(each).isprintable() for each in context.findings)


def _read_groups() -> None:
    groups = GroupRequests(_Wire.broker.address, _CONFIG)
    listed = groups.groups()
    groups.describe({group: each.kind for group, each in listed.items()})
    groups.fetch(dict.fromkeys(listed))


def read(data: bytes) -> None:
    """Read a log, or groups, of a broker with these answers. Raises AssertionError, or any error that an answer must
    not cause."""
    if not data:
        return
    _Wire.answers, _Wire.broker = _Answers(data[1:]), _broker()
    pool.close_idle()
    with (
        patch.object(connection, "Transport", _Wire),
        patch.object(connection, "pause", _no_pause),
        patch.object(patience, "pause", _no_pause),
    ):
        try:
            (_read_groups if data[0] & 1 else _read_logs)()
        except LogSourceError as error:
            if not str(error).isprintable():
                raise ValueError(f"a message with control characters: {str(error)!r}") from error
        finally:
            pool.close_idle()


def _no_pause(seconds: float) -> None:
    """Do not pause."""


@cache
def _broker() -> _Honest:
    broker = _Honest()
    broker.answers["ListGroups"] = lambda asked: {
        "error_code": 0,
        "groups": [{"group_id": each, "protocol_type": "", "group_state": "Empty"} for each in ("a", "b")],
    }
    return broker


def _seeds() -> list[bytes]:
    changed = [bytes([kind]) + bytes(number) + b"\x01\x00\x08\x07" for kind in (0, 1) for number in range(8)]
    return [b"\0", b"\1", *changed]


TARGET: Final = Target(_seeds, read)
