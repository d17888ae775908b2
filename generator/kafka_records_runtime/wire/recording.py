"""Wraps readers so that they record each item they read in the trail of their cursor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kafka_records_runtime.wire.primitives import ByteCursor
from kafka_records_runtime.wire.trail import Trail

T = TypeVar("T")

Reader = Callable[[ByteCursor], T]


def noted(reader: Reader[T], type: str) -> Reader[T]:
    """Wrap `reader` so that it also records a step of `type` for the bytes it reads."""

    def read(cursor: ByteCursor) -> T:
        start = cursor.pos
        value = reader(cursor)
        _trail(cursor).add(start, cursor.pos - start, type, value)
        return value

    return read


def named(reader: Reader[T], name: str) -> Reader[T]:
    """Wrap `reader` so that `name` is part of the path while it reads."""

    def read(cursor: ByteCursor) -> T:
        parts = _trail(cursor).parts
        parts.append(name)
        value = reader(cursor)
        parts.pop()
        return value

    return read


def numbered(reader: Reader[T]) -> Reader[T]:
    """Wrap the `reader` of an array element so that its index is part of the path while it reads."""

    def read(cursor: ByteCursor) -> T:
        trail = _trail(cursor)
        trail.parts.append(f"[{trail.next_index()}]")
        value = reader(cursor)
        trail.parts.pop()
        return value

    return read


def counting(reader: Reader[T]) -> Reader[T]:
    """Wrap the `reader` of an array whose elements are `numbered`."""

    def read(cursor: ByteCursor) -> T:
        trail = _trail(cursor)
        trail.enter_array()
        value = reader(cursor)
        trail.leave_array()
        return value

    return read


def _trail(cursor: ByteCursor) -> Trail:
    trail = cursor.trail
    assert trail is not None, "readers built with `recording` need a cursor with a trail"
    return trail
