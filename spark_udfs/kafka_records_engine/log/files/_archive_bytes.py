"""Reads the bytes of an archive's members, from a range of the archive or from an unpacked copy.

The sizes in an archive are not trusted: they are compared with the largest segment file, and with the free disk space.
"""

from __future__ import annotations

import io
import os
import posixpath
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable
from typing import Any, Final

from kafka_records_engine.log.files._archive_contents import ArchiveMember, Contents, TooMuch
from kafka_records_engine.log.files._byte_ranges import RangeFile
from kafka_records_engine.log.files.opened import LogFile

LARGEST_MEMBER: Final = 1 << 31
"""The maximum size of a segment file, given that positions in it are int32."""

MOST_UNPACKED: Final = 64 << 30
"""The maximum number of bytes that are unpacked from one archive."""

_LATEST: Final = 253402300800
"""The year 10000, in seconds since 1970."""

_ROOM_LEFT: Final = 1 << 30
PIECE: Final = 1 << 20
BUFFER: Final = 64 * 1024


class ArchiveBytes(io.RawIOBase):
    """An archive as a file object of the `io` module, which Python's archive modules need."""

    def __init__(self, read_at: Callable[[int, int], bytes], size: int) -> None:
        self._read_at = read_at
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, position: int, whence: int = 0, /) -> int:
        self._at = max(position + (0, self._at, self._size)[whence], 0)
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any, /) -> int:
        data = self._read_at(self._at, min(len(buffer), max(self._size - self._at, 0)))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class SharedFile:
    """An open archive from which many members are read. It is closed when the last member is released."""

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self._lock = threading.Lock()
        weakref.finalize(self, file.close)

    def read_at(self, position: int, size: int) -> bytes:
        with self._lock:
            self._file.seek(position)
            return self._file.read(size)


def member_at(
    path: str,
    size: int,
    version: Hashable,
    read_at: Callable[[int, int], bytes],
    start: int | Callable[[], int],
    written: float | None = None,
) -> ArchiveMember:
    """A member whose bytes are contiguous in the archive, starting at `start`. `written` is in seconds since 1970. It
    is unknown for a zip, because a zip contains local times without a time zone."""

    def part_at(position: int, wanted: int) -> bytes:
        return read_at((start if isinstance(start, int) else start()) + position, min(wanted, size - position))

    # The time in a tar header may be any number, even `nan`.
    written_ms = int(written * 1000) if written is not None and abs(written) < _LATEST else None
    return ArchiveMember(posixpath.basename(path), size, version, lambda: RangeFile(part_at, size), written_ms)


class UnpackedFile:
    """A nameless temporary file with unpacked bytes."""

    def __init__(self, contents: Contents) -> None:
        self._file = tempfile.TemporaryFile(prefix="kafka-records-")  # noqa: SIM115 (it is closed when nobody reads it)
        weakref.finalize(self, self._file.close)
        self._end = 0
        self._contents = contents

    def taken(self, stream: Any, size: int) -> int:
        """Unpack the next `size` bytes of a stream. Returns the position in the temporary file at which they start."""
        check_size(size)
        self._contents.unpacked += size
        if self._contents.unpacked > MOST_UNPACKED:
            raise TooMuch(f"its logs are larger than {MOST_UNPACKED >> 30} GiB")
        if shutil.disk_usage(tempfile.gettempdir()).free < size + _ROOM_LEFT:
            raise TooMuch(no_room())
        start, self._end = self._end, self._end + size
        self._file.seek(start)
        left = size
        while left:
            data = stream.read(min(left, PIECE))
            if not data:
                raise EOFError(f"a member has only {size - left} of its {size} bytes")
            self._file.write(data)
            left -= len(data)
        self._file.flush()
        return start

    def close(self) -> None:
        """Close the file, which frees its disk space."""
        self._file.close()
        self._contents.unpacked -= self._end

    def read_at(self, position: int, size: int) -> bytes:
        parts = []
        while size > 0 and (part := os.pread(self._file.fileno(), size, position)):
            parts.append(part)
            position, size = position + len(part), size - len(part)
        return b"".join(parts)


def check_size(size: int) -> None:
    if size > LARGEST_MEMBER:
        raise TooMuch(f"a file in it claims to have {size} bytes, more than a segment file can have")


def no_room() -> str:
    return f"there is no space to unpack it in {tempfile.gettempdir()} (set TMPDIR to another folder)"
