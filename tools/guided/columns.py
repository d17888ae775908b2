"""Columns. One byte of an input chooses the message, one its version, one what is kept. Then come rows, each after its
size."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final

from kafka_records import registry
from tests.columns.reference import check
from tools.guided.target import Target
from tools.random_messages import random_message

_CLASSES: Final = tuple(
    cls for cls in map(registry.message_class, sorted(registry.MESSAGES)) if hasattr(cls, "RECORD_TYPE")
)
_FRAMED: Final = 2
_NULL: Final = 0xFF
_MOST: Final = 40


def read(data: bytes) -> None:
    """Decode rows as a column, and compare each with the schema walker. Raises AssertionError."""
    if len(data) < 3:
        return
    cls = _CLASSES[data[0] % len(_CLASSES)]
    version = None if data[2] & _FRAMED else cls.VERSIONS[data[1] % len(cls.VERSIONS)]
    check(cls.CODEC.schema, list(_rows(data[3:])), version, bool(data[2] & 1))


def _rows(data: bytes) -> Iterator[bytes | None]:
    at = 0
    for _ in range(_MOST):
        if at >= len(data):
            return
        size = data[at]
        yield None if size == _NULL else data[at + 1 : at + 1 + size]
        at += 1 if size == _NULL else 1 + size


def described(data: bytes) -> Iterator[dict[str, Any]]:
    """The messages of an input as lines of vectors; none if each row starts with its version."""
    if len(data) < 3 or data[2] & _FRAMED:
        return
    cls = _CLASSES[data[0] % len(_CLASSES)]
    version = cls.VERSIONS[data[1] % len(cls.VERSIONS)]
    for row in _rows(data[3:]):
        if row is not None:
            yield {"message": cls.CODEC.schema.name, "version": version, "hex": row.hex()}


def _seeds() -> Iterator[bytes]:
    random = Random("columns")
    for number, cls in enumerate(_CLASSES):
        for version in cls.VERSIONS:
            rows = [random_message(cls, version, random, plain=at % 2 == 0).encode(version) for at in range(3)]
            sized = b"".join(bytes([len(row)]) + row for row in rows if len(row) < _NULL)
            yield bytes([number, version - cls.VERSIONS[0], version % 2]) + sized


TARGET: Final = Target(lambda: list(_seeds()), read)
