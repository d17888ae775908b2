"""The data that Connect and the sticky assignors write, compared with what Kafka's own classes read from it.

`tests/data/vectors/client-protocols.jsonl` has bytes that these classes wrote (`tools/WriteClientProtocols.java`), and
damaged copies, each with what they read from it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_records.registry import message_class
from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.messages.json_form import to_json
from kafka_records_runtime.records.framing import newer_as_highest
from kafka_records_runtime.wire.walker import decode

VECTORS: Final = Path(__file__).resolve().parents[1] / "data" / "vectors" / "client-protocols.jsonl"

Line = dict[str, Any]

AGREED: Final = {
    # The counts of lines that are read by both, refused by both, and read only by Kafka: from version 1 on, bytes may
    # end before `revoked`.
    "ConnectProtocolAssignment": (100, 43, 1),
    "ConnectProtocolSubscription": (108, 36, 0),
    "CooperativeStickyAssignorUserData": (38, 10, 0),
    "StickyAssignorUserData": (66, 30, 0),
}


@pytest.fixture(scope="module")
def lines() -> list[Line]:
    return [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("message", AGREED)
def test_what_kafka_reads(lines: list[Line], message: str) -> None:
    schema = message_class(message).CODEC.schema
    count: Counter[str] = Counter()
    for line in of(lines, message):
        read_as = newer_as_highest(schema, line["version"])
        try:
            value, _ = decode(schema, _message(line), read_as, lenient=True, allow_trailing=True)
        except DecodeError:
            count["refused" if line["json"] is None else "read by Kafka"] += 1
            continue
        assert to_json(schema, value, read_as) == line["json"]
        count["read"] += 1
    assert (count["read"], count["refused"], count["read by Kafka"]) == AGREED[message]


@pytest.mark.parametrize("message", AGREED)
def test_bytes_that_kafka_wrote_come_back(lines: list[Line], message: str) -> None:
    kind = message_class(message)
    written = of(lines, message)[::4]  # the next three are damaged
    for line in written:
        data = _message(line)
        assert kind.decode(data, line["version"]).encode(line["version"]) == data
    assert {line["version"] for line in written} == set(range(kind.CODEC.schema.versions[1] + 1))


def of(lines: list[Line], message: str) -> list[Line]:
    return [line for line in lines if line["message"] == message]


def _message(line: Line) -> bytes:
    """The bytes after the version that precedes the protocol of Connect."""
    data = bytes.fromhex(line["hex"])
    return data[2:] if line["message"].startswith("Connect") else data
