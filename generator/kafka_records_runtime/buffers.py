"""Decoding accepts bytes, and buffers that can safely be copied to bytes."""

from __future__ import annotations


def as_bytes(data: object) -> bytes:
    """`data` itself when it is `bytes`, a copy of a `bytearray` or `memoryview`, a TypeError otherwise.

    Other buffers would change the types of decoded values, and `bytes(3)` would invent three zero bytes.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"decode takes bytes, bytearray or memoryview, not {type(data).__name__}")
