"""Converts the input of decoding to bytes. Accepts bytes, and buffers that can safely be copied."""

from __future__ import annotations


def as_bytes(data: object) -> bytes:
    """Return `data` itself if it is `bytes`, or a copy of a `bytearray` or `memoryview`. Raises TypeError otherwise.

    Other buffers would change the types of decoded values, and `bytes(3)` would create three zero bytes.
    """
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"decode takes bytes, bytearray or memoryview, not {type(data).__name__}")
