"""Log segments written for a test: batches of magic 2, by KIP-98."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from struct import pack

import google_crc32c

KeyValue = tuple[bytes | None, bytes | None]

ATTRIBUTES_AT = 22
"""The low byte of the attributes, whose three lowest bits are the codec."""


def batch(base_offset: int, records: Sequence[KeyValue], attributes: int = 0, producer_id: int = -1) -> bytes:
    """A batch whose records have consecutive offsets and the timestamp 1000."""
    body = b"".join(_record(delta, key, value) for delta, (key, value) in enumerate(records))
    head = pack(">hiqqqhii", attributes, len(records) - 1, 1000, 1000, producer_id, 0, -1, len(records))
    checked = head + body
    crc = google_crc32c.value(checked)
    return pack(">qiiBI", base_offset, 9 + len(checked), 0, 2, crc) + checked


def _record(delta: int, key: bytes | None, value: bytes | None) -> bytes:
    body = b"\0" + _varint(0) + _varint(delta) + _sized(key) + _sized(value) + _varint(0)
    return _varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 63)
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def write_segment(directory: Path, *batches: bytes, folder: str = "__consumer_offsets-0") -> Path:
    """The file `<directory>/<folder>/00000000000000000000.log`."""
    path = directory / folder / "00000000000000000000.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(batches))
    return path


def commit(group: str, offset: int) -> KeyValue:
    """A committed offset (type 1, value version 3) of a group for partition 0 of the topic t."""
    key = b"\0\x01" + _text(group) + _text("t") + pack(">i", 0)
    return key, b"\0\x03" + pack(">qi", offset, -1) + _text("") + pack(">q", 1000)


def _text(text: str) -> bytes:
    encoded = text.encode()
    return pack(">h", len(encoded)) + encoded
