"""Reads tar archives. Members of an uncompressed archive are read as ranges of it. Members of a compressed archive are
unpacked in order.

A compressed tar is read once, as a stream.
"""

from __future__ import annotations

import io
import lzma
import posixpath
import tarfile
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.log.files._archive_bytes import (
    BUFFER,
    MOST_UNPACKED,
    PIECE,
    ArchiveBytes,
    SharedFile,
    UnpackedFile,
    member_at,
)
from kafka_records_engine.log.files._archive_contents import (
    MOST_MEMBERS,
    ArchiveMember,
    Contents,
    TooMuch,
    is_read,
    label,
)
from kafka_records_engine.log.files.opened import LogFile
from kafka_records_runtime.errors import plural

_MOST_AT_ONCE: Final = 64 << 20
"""The maximum size of a header in an archive."""


@contextmanager
def _opened(stream: Any) -> Iterator[Any]:
    """The open tar archive. `tarfile` reads its first header immediately."""
    with _named_errors("the first header"):
        opened = tarfile.open(fileobj=stream, mode="r:")  # noqa: SIM115
    with opened:
        yield opened


@contextmanager
def _named_errors(what: str) -> Iterator[None]:
    """Turns errors that `tarfile` does not catch (invalid numbers in a header, too many headers for one member) into
    its own."""
    try:
        yield
    except (ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise tarfile.ReadError(f"{what} cannot be read: {error}") from None


def _members(opened: Any) -> Iterator[tarfile.TarInfo]:
    """The members of a tar that are read, and links to them, each as soon as its header was read."""
    heads = iter(opened)
    for number in count(1):
        with _named_errors(f"the header of member {number}"):
            member = next(heads, None)
        opened.members.clear()
        if member is None:
            return
        if number > MOST_MEMBERS:
            raise TooMuch(f"the archive has more than {plural(MOST_MEMBERS, 'member')}")
        if member.size < 0:
            raise tarfile.ReadError(f"member {number} claims to have {member.size} bytes")
        yield member


def read_tar(file: LogFile, version: Hashable) -> Contents:
    """The members of an uncompressed tar archive, with their positions."""
    contents = Contents()
    read_at = SharedFile(file).read_at
    stream: Any = _Limited(io.BufferedReader(ArchiveBytes(read_at, file.size), BUFFER), file.size)
    with _opened(stream) as opened:
        for member in _members(opened):
            path = label(member.name)
            if _add_other(contents, path, member, version) or not is_read(path):
                continue
            where = version, member.offset
            if member.sparse is None:
                contents.add(path, member_at(path, member.size, where, read_at, member.offset_data, member.mtime))
            else:
                spool = UnpackedFile(contents)
                start = spool.taken(opened.extractfile(member), member.size)
                contents.add(path, member_at(path, member.size, where, spool.read_at, start, member.mtime))
        _check_end(opened, stream)
    return contents


def read_compressed_tar(file: LogFile, codec: str, version: Hashable) -> Contents:
    """The members of a compressed tar archive. Its log files are unpacked in stream order."""
    contents = Contents(is_unpacked=True)
    spool = UnpackedFile(contents)
    file.seek(0)
    stream: Any = _Forward(_decompressed(file, codec))
    with _opened(stream) as opened:
        for member in _members(opened):
            path = label(member.name)
            if not _add_other(contents, path, member, version) and is_read(path):
                start = spool.taken(opened.extractfile(member), member.size)
                contents.add(
                    path, member_at(path, member.size, (version, member.offset), spool.read_at, start, member.mtime)
                )
        _check_end(opened, stream)
        stream.drain()
    return contents


def _check_end(opened: tarfile.TarFile, stream: Any) -> None:
    """Raise ReadError unless the archive ends here, because `tarfile` mistakes an unreadable header for the end."""
    at = opened.offset
    stream.seek(at)
    if stream.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
        raise tarfile.ReadError(f"no member begins at byte {at}")


def _add_other(contents: Contents, path: str, member: tarfile.TarInfo, version: Hashable) -> bool:
    """Add a member that is not a regular file. Returns False if it is a regular file."""
    if member.isdir():
        contents.add_folder(path)
        return True
    if member.isreg():
        return False
    if is_read(path):
        target = None
        if member.islnk():
            linked = label(member.linkname)
            target = contents.folders.get(posixpath.dirname(linked), {}).get(posixpath.basename(linked))
        name = posixpath.basename(path)
        if isinstance(target, ArchiveMember):
            contents.add(path, ArchiveMember(name, target.size, target.version, target.open))
        else:
            contents.add(path, ArchiveMember(name, 0, (version, member.offset), None))
    return True


def _check_head(size: int) -> None:
    """Refuse to read a header that is too large."""
    if size > _MOST_AT_ONCE:
        raise TooMuch(f"one of its headers claims to have {size} bytes")
    if size < 0:
        raise tarfile.ReadError(f"one of its headers claims to have {size} bytes")


class _Limited:
    """A file for `tarfile` that rejects oversized headers and positions outside the file."""

    def __init__(self, file: Any, size: int) -> None:
        self._file = file
        self._size = size

    def read(self, size: int = -1) -> bytes:
        _check_head(size)
        data: bytes = self._file.read(size)
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        if not 0 <= position <= self._size:
            raise tarfile.ReadError("unexpected end of data" if position > 0 else f"the archive has no byte {position}")
        at: int = self._file.seek(position, whence)
        return at

    def tell(self) -> int:
        at: int = self._file.tell()
        return at


class _Forward:
    """A stream for `tarfile` that can seek forward, and back by at most a block."""

    _BACK: Final = 512

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._at = 0
        self._tail = b""
        self._again = b""

    def read(self, size: int = -1) -> bytes:
        _check_head(size)
        parts = [self._again[:size]]
        self._again = self._again[size:]
        left = size - len(parts[0])
        while left > 0 and (part := self._stream.read(min(left, PIECE))):
            parts.append(part)
            left -= len(part)
        data = b"".join(parts)
        self._at += len(data)
        self._tail = (self._tail + data[-self._BACK :])[-self._BACK :]
        return data

    def seek(self, position: int, whence: int = 0) -> int:
        if position < self._at:
            back = self._at - position
            if back > len(self._tail):
                raise tarfile.ReadError("members of the archive overlap")
            self._again = self._tail[-back:] + self._again
            self._tail, self._at = self._tail[:-back], position
        while self._at < position and self.read(min(position - self._at, PIECE)):
            pass
        return self._at

    def tell(self) -> int:
        return self._at

    def drain(self) -> None:
        """Read to the end, because only there does a compressed stream show whether it is complete."""
        total = 0
        while data := self.read(PIECE):
            total += len(data)
            if total > MOST_UNPACKED:
                raise TooMuch(f"more than {MOST_UNPACKED >> 30} GiB follow the last member")


def _decompressed(file: LogFile, codec: str) -> Any:
    raw = io.BufferedReader(ArchiveBytes(SharedFile(file).read_at, file.size), PIECE)
    if codec == "xz":
        return lzma.LZMAFile(raw)
    return pa.CompressedInputStream(pa.PythonFile(raw, "r"), codec)
