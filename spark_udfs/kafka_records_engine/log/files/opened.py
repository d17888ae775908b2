"""The files of a log at one point in time. Each file is opened once and read up to the size it had then.

An open file remains readable after the broker deletes, renames or replaces it. Bytes appended later are not read, so
reading twice returns the same bytes.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from types import TracebackType
from typing import Final, Protocol, Self, TypeVar

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files.ranges import OffsetRange

T = TypeVar("T")

_SPARE_DESCRIPTORS: Final = 256
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


class NoRegularFile(OSError):
    """A path does not lead to a regular file, but to a directory, a named pipe, a socket or a device."""


class ReplacedFile(OSError):
    """The path no longer refers to the file that was found."""

    def __init__(self) -> None:
        super().__init__(errno.ESTALE, "it was replaced while it was read; try again")


class Readable(Protocol):
    """A file object that supports `seek` and `read`."""

    def seek(self, position: int, whence: int = 0, /) -> int:
        """Move to a position, as in any file object; with `whence` 2 it counts from the end."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as many bytes as requested, or fewer at the end. Raises OSError."""


class LogFile(Readable, Protocol):
    """An open file of a log on any file system. Bytes appended after it was opened are not part of it."""

    size: int
    furthest: int
    """The number of bytes of the file, from its start, that have been covered by reads."""

    def close(self) -> None:
        """Close the file. A second call does nothing."""


class FrozenFile(FileIO):
    """A regular file that is read up to its size at opening, or less if it was truncated since."""

    def __init__(self, path: str) -> None:
        """Open the file, following symbolic links. Raises OSError, and NoRegularFile immediately, without waiting for a
        named pipe."""
        _check_kind(os.stat(path).st_mode)
        # By now, the path may refer to another file. O_NONBLOCK opens a named pipe without blocking; the pipe is
        # rejected afterwards.
        descriptor = _descriptor(path)
        try:
            status = os.fstat(descriptor)
            _check_kind(status.st_mode)
        except BaseException:
            os.close(descriptor)
            raise
        super().__init__(descriptor, "rb")
        self.size = status.st_size
        self.furthest = 0
        """The file has been read up to this byte."""

    def seek(self, position: int, whence: int = 0, /) -> int:
        """Move to a position, as in any file object. The end is at `size`, or earlier if the file was truncated."""
        if whence == 2:
            position, whence = position + min(self.size, os.fstat(self.fileno()).st_size), 0
        return super().seek(position, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        """Read the requested number of bytes, or fewer at the end of the file."""
        left = max(self.size - self.tell(), 0)
        wanted = left if size is None or size < 0 else min(size, left)
        parts = []
        while wanted and (part := super().read(wanted)):
            parts.append(part)
            wanted -= len(part)
        self.furthest = max(self.furthest, self.tell())
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _descriptor(path: str) -> int:
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    return with_descriptors(lambda: os.open(path, flags))


def with_descriptors(opens: Callable[[], T]) -> T:
    """The result of `opens`. If the process has too many open files, its limit is raised and `opens` is called
    again."""
    try:
        return opens()
    except OSError as error:
        if error.errno != errno.EMFILE or not _allow_more_descriptors():
            raise
    return opens()


def _allow_more_descriptors() -> bool:
    """Raise the limit for open files. It is 1024 on many machines, and a log may have more files than that."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * soft + _SPARE_DESCRIPTORS
    wanted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if wanted <= soft:
        return False
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return False
    return True


def _check_kind(mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "not a regular file")
        raise NoRegularFile(errno.EINVAL, f"this is {kind}, but only regular files are read")


@dataclass(eq=False, slots=True)
class SegmentFile:
    """One `.log` file of an open log. `base_offset` comes from its name; None if the name is not an offset."""

    path: str
    """The path, with unprintable characters replaced (`printable`)."""
    base_offset: int | None
    file: LogFile | None = None
    """The open file. None if it could not be opened; `trouble` says why."""
    trouble: str = ""
    size: int = 0
    """Size of the file in bytes when it was opened."""
    hole_before: bool = False
    """Whether files between this one and the previous one are missing or were not requested."""


@dataclass(eq=False, slots=True)
class OpenLog:
    """The log of one partition at the time of opening. Used as a context manager, it closes its files."""

    topic: str
    partition: int
    segments: tuple[SegmentFile, ...]
    """The files in offset order."""
    log_start: int = 0
    """Records below this offset were deleted although files may still hold them (log-start-offset-checkpoint)."""
    ends_early: bool = False
    """Whether the log continues after these files, because later ones are missing or were not requested."""
    findings: tuple[Finding, ...] = ()
    """Problems found while opening the files."""
    is_part: bool = False
    """Whether only some files of the log were requested."""
    end: int | None = None
    """The offset after the last record, if something other than the files shows it."""
    only: OffsetRange | None = None
    """The requested offsets; None means all. Files and batches without such offsets are not read."""

    @property
    def size(self) -> int:
        """The total size of all files in bytes."""
        return sum(segment.size for segment in self.segments)

    @property
    def bytes_read(self) -> int:
        """The number of bytes read so far, for a progress display. If transaction markers are collected first, it
        equals the total size of all files from the start."""
        return sum(segment.file.furthest for segment in self.segments if segment.file)

    def close(self) -> None:
        """Close the files. A second call does nothing."""
        for segment in self.segments:
            if segment.file:
                segment.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
