"""Random rows of any message, good and broken. All come from one `random.Random`, so that a seed identifies a batch."""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from kafka_records_runtime.errors import DecodeError
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.layout import ArrayValue, FieldLayout, struct_layouts
from kafka_records_runtime.wire import walker
from kafka_records_runtime.wire.primitives import INTEGERS, MAX_TAG

_TEXTS = (
    "",
    "a",
    "topic",
    "né",
    "日本語",
    "\U0001f600",
    "\x00",
    "\u07ff\u0800",
    "x" * 126,
    "x" * 127,
    "y" * 128,
    "é" * 200,
)


# -- good rows --------------------------------------------------------------------------------------


class Values:
    """Values that a version of a message can have.

    `plenty` is the approximate number of elements of a row; half of them go into the first array.
    """

    def __init__(self, random: Random, message: MessageSchema, version: int, plenty: int = 12) -> None:
        self._random = random
        self._message = message
        self._version = version
        self._left = plenty
        self._plenty = plenty

    def row(self) -> dict[str, Any]:
        """A message; members that the version does not have are left out."""
        self._left = self._plenty
        return self._struct(self._message.root.name)

    def _struct(self, name: str) -> dict[str, Any]:
        fields = struct_layouts(self._message, self._version)[name].fields
        row = {layout.field.name: self._member(layout) for layout in fields if layout.present and self._comes(layout)}
        if self._message.is_flexible(self._version) and self._random.random() < 0.3:
            row["unknown_tagged_fields"] = self._unknown_tags({layout.field.tag for layout in fields})
        return row

    def _comes(self, layout: FieldLayout) -> bool:
        return not layout.tagged or self._random.random() < 0.6

    def _member(self, layout: FieldLayout) -> Any:
        if layout.nullable and self._random.random() < 0.25:
            return None
        base = layout.field.base
        if not isinstance(layout.value, ArrayValue):
            return self._one(base)
        # A reader does not accept more elements without bytes than there are bytes after the array.
        count = min(self._count(), self._left) if layout.value.element.smallest else 0
        self._left -= count
        return tuple(self._one(base) for _ in range(count))

    def _count(self) -> int:
        if self._left > 100:
            return self._left // 2
        return self._random.choice((0, 0, 1, 1, 2, 3, self._left // 2))

    def _one(self, base: str) -> Any:
        random = self._random
        if base in INTEGERS:
            _, lowest, highest = INTEGERS[base]
            return random.choice((lowest, highest, 0, random.randint(lowest, highest)))
        if base == "bool":
            return random.random() < 0.5
        if base == "float64":
            (number,) = struct.unpack(">d", random.randbytes(8))
            return random.choice((0.0, -0.0, 1.5, float("inf"), float("nan"), number))
        if base == "uuid":
            return Uuid(random.choice((bytes(16), b"\xff" * 16, random.randbytes(16))))
        if base == "string":
            return random.choice(_TEXTS)
        if base in ("bytes", "records"):
            return random.randbytes(random.choice((0, 0, 1, 5, 127, 128)))
        return self._struct(base)

    def _unknown_tags(self, taken: set[int | None]) -> tuple[tuple[int, bytes], ...]:
        random = self._random
        count = 70 if random.random() < 0.02 else random.choice((1, 1, 2, 4))
        free = [tag for tag in range(100, 200) if tag not in taken] + [2**14, 2**21, MAX_TAG]
        return tuple((tag, random.randbytes(random.choice((0, 1, 9)))) for tag in sorted(random.sample(free, count)))


def good_row(random: Random, message: MessageSchema, version: int, plenty: int = 12) -> bytes:
    """A message in the form in which Kafka's writers would write it."""
    return walker.encode(message, Values(random, message, version, plenty).row(), version)


def huge_row(random: Random, message: MessageSchema, version: int) -> bytes:
    """A message with thousands of elements if it has arrays; otherwise with 100 000 bytes after it."""
    row = good_row(random, message, version, 4_000)
    return row if len(row) > 4_000 else row + random.randbytes(100_000)


# -- broken rows ------------------------------------------------------------------------------------

_INTS = (-1, -2, -(2**31), 2**31 - 1, 2**24, 1, 0, 128)
_VARINTS = (
    *("ffffffff07", "ffffffff0f", "8080808008", "ffffffff7f", "8080808010", "ffffffffff01", "80808080808000"),
    *("00", "01", "02", "7f", "8000", "8100", "81808000", "8180808000", "80", "ff", "ffffff7f", "fe7f"),
)
_BAD_TEXT = tuple(map(bytes.fromhex, ("ff", "c0af", "eda080", "f4908080", "e28228", "80", "c3", "f0288cbc")))


def broken_row(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    """A row with damage at any place; it may still be readable, strictly or as Kafka reads."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        row = random.choice(_DAMAGES)(random, message, version, row)
    return row


def _cut(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    return row[: random.randint(0, max(len(row) - 1, 0))]


def _flip(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    changed = bytearray(row or b"\x00")
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _insert(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    at = random.randint(0, len(row))
    what = random.choice((random.randbytes(random.randint(1, 4)), *_BAD_TEXT, *map(bytes.fromhex, _VARINTS)))
    return row[:at] + what + row[at + random.choice((0, len(what))) :]


def _noise(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    return random.randbytes(random.choice((0, 1, 3, 20, 60)))


def _trail(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    return row + random.randbytes(random.choice((1, 2, 50)))


def _repeat(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    """Repeat a few bytes, such as those of a tagged field."""
    at = random.randint(0, len(row))
    some = row[at : at + random.randint(1, 8)]
    return row[:at] + some + row[at:]


def _swap(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    """Swap two neighbouring pieces."""
    first, second, third = sorted(random.randint(0, len(row)) for _ in range(3))
    return row[:first] + row[second:third] + row[first:second] + row[third:]


def _lie(random: Random, message: MessageSchema, version: int, row: bytes) -> bytes:
    """Change a length, count, marker, tag or size, or make a text invalid UTF-8."""
    steps = []
    try:
        for step in walker.walk(message, version, row, lenient=True):
            if step.length and step.type not in INTEGERS:
                steps.append(step)
    except DecodeError:
        pass
    if not steps:
        return _noise(random, message, version, row)
    step = random.choice(steps)
    return row[: step.offset] + _other(random, step) + row[step.offset + step.length :]


def _other(random: Random, step: walker.TrailStep) -> bytes:
    if step.type in ("string", "bytes", "records", "unknown tag"):
        return (random.choice(_BAD_TEXT) + random.randbytes(step.length))[: step.length]
    if step.type in ("length", "count") and step.length in (2, 4) and random.random() < 0.7:
        number: int = random.choice((*_INTS, step.value + 1, step.value - 1))
        return (number % 2**32).to_bytes(4, "big")[-step.length :]
    if step.type == "tag" and random.random() < 0.5:
        return bytes([random.randrange(13)])
    return bytes.fromhex(random.choice(_VARINTS))


_DAMAGES = (_cut, _flip, _insert, _noise, _trail, _repeat, _swap, _lie, _lie, _lie, _lie)


# -- batches ----------------------------------------------------------------------------------------


def batch(
    random: Random, message: MessageSchema, count: int, damaged: float, huge: float = 0.3
) -> tuple[list[bytes | None], list[int | None]]:
    """`count` rows and their versions. Most rows are small; the share `damaged` is broken; some are null, empty, or
    have a version that is null or that the message does not have. The share `huge` of all batches has one huge row."""
    assert message.versions is not None
    lowest, highest = message.versions
    rows: list[bytes | None] = []
    versions: list[int | None] = []
    for _ in range(count):
        version = random.randint(lowest, highest)
        row: bytes | None = good_row(random, message, version)
        if random.random() < damaged:
            row = broken_row(random, message, version, row or b"")
        elif random.random() < 0.1:
            row = random.choice((None, b""))
        rows.append(row)
        odd = random.random()
        versions.append(None if odd < 0.02 else random.choice((-1, highest + 1, 32767)) if odd < 0.04 else version)
    if count and random.random() < huge:
        place = random.randrange(count)
        versions[place] = random.randint(lowest, highest)
        rows[place] = huge_row(random, message, versions[place] or 0)
    return rows, versions
