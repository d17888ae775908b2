"""Reads files by byte ranges, on any file system."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

_LEAST: Final = 256 * 1024


class RangeFile:
    """A file of `size` bytes that is read with `read_at(position, size)`, which returns fewer bytes at the end of the
    file.

    Small reads are combined: each request is for at least `least` bytes, and one block is cached.
    """

    def __init__(
        self,
        read_at: Callable[[int, int], bytes],
        size: int,
        least: int = _LEAST,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        self.size = size
        self.furthest = 0
        """The file has been read up to this byte."""
        self._read_at = read_at
        self._least = least
        self._on_close = on_close
        self._position = 0
        self._block = (0, b"")

    def seek(self, position: int, whence: int = 0, /) -> int:
        """Move to a position, as in any file object."""
        if whence:
            position += self._position if whence == 1 else self.size
        self._position = max(position, 0)
        return self._position

    def tell(self) -> int:
        """The position of the next byte to be read."""
        return self._position

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as many bytes as requested, or fewer at the end of the file. Raises OSError."""
        left = max(self.size - self._position, 0)
        wanted = left if size is None or size < 0 else min(size, left)
        data = self._bytes_at(self._position, wanted) if wanted else b""
        self._position += len(data)
        self.furthest = max(self.furthest, self._position)
        return data

    def _bytes_at(self, position: int, size: int) -> bytes:
        start, block = self._block
        if start <= position and position + size <= start + len(block):
            return block[position - start : position - start + size]
        if size >= self._least:
            return self._read_at(position, size)
        block = self._read_at(position, min(self._least, self.size - position))
        self._block = position, block
        return block[:size]

    def close(self) -> None:
        """Close the file. A second call does nothing."""
        self._block = 0, b""
        close, self._on_close = self._on_close, None
        if close is not None:
            close()
