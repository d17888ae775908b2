"""Files of a log as they were at one moment: opened once, read up to the size they had then.

An open file stays readable when the broker deletes it, renames it or puts another in its place. Bytes that are appended
later are not read, so that reading twice gives the same bytes twice.
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
    """A directory, a named pipe, a socket or a device, which is not a regular file."""


class ReplacedFile(OSError):
    """The path no longer refers to the file that was found."""

    def __init__(self) -> None:
        super().__init__(errno.ESTALE, "it was replaced while it was read; try again")


class Readable(Protocol):
    """Bytes to read from a position on."""

    def seek(self, position: int, whence: int = 0, /) -> int:
        """As for any file; `whence` 2 counts from the end."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as many bytes as requested, fewer only at the end. Raises OSError."""


class LogFile(Readable, Protocol):
    """An open file of a log, wherever it is: it ends where it ended when it was opened."""

    size: int
    furthest: int
    """The file was read up to this byte so far."""

    def close(self) -> None:
        """Close it. A second call does nothing."""


class FrozenFile(FileIO):
    """A regular file, read up to the size it had when it was opened; it ends earlier if it was truncated."""

    def __init__(self, path: str) -> None:
        """Open the file; a symbolic link is followed. Raises OSError, and NoRegularFile at once: no pipe is waited
        for."""
        _check_kind(os.stat(path).st_mode)
        # The path may refer to another file by now. O_NONBLOCK opens a named pipe without blocking; it is rejected
        # afterwards.
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
        """The file was read up to this byte so far."""

    def seek(self, position: int, whence: int = 0, /) -> int:
        """As for any file, with an end that is not after `size`."""
        if whence == 2:
            position, whence = position + min(self.size, os.fstat(self.fileno()).st_size), 0
        return super().seek(position, whence)

    def read(self, size: int | None = -1, /) -> bytes:
        """Read as many bytes as requested, fewer only at the end."""
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
    """The result of `opens`. If the process has too many files open, its limit is raised and `opens` is called
    again."""
    try:
        return opens()
    except OSError as error:
        if error.errno != errno.EMFILE or not _allow_more_descriptors():
            raise
    return opens()


def _allow_more_descriptors() -> bool:
    """Raise the limit of open files, which is 1024 on many machines: a log may have more files than that."""
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
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "no regular file")
        raise NoRegularFile(errno.EINVAL, f"this is {kind}, but only regular files are read")


@dataclass(eq=False, slots=True)
class SegmentFile:
    """One `.log` file of an open log. `base_offset` comes from its name; None when the name is not an offset."""

    path: str
    """In printable characters (`printable`)."""
    base_offset: int | None
    file: LogFile | None = None
    """None if it could not be opened; `trouble` says why."""
    trouble: str = ""
    size: int = 0
    """Bytes of the file at the moment of opening."""
    hole_before: bool = False
    """Whether files between this one and the one before it were not asked for, or are gone."""


@dataclass(eq=False, slots=True)
class OpenLog:
    """The log of one partition at the moment of opening: a context that closes its files."""

    topic: str
    partition: int
    segments: tuple[SegmentFile, ...]
    """In the order of their offsets."""
    log_start: int = 0
    """Records below this offset were deleted although files may still hold them (log-start-offset-checkpoint)."""
    ends_early: bool = False
    """Whether the log continues after these files: later ones were not requested, or are gone."""
    findings: tuple[Finding, ...] = ()
    """What was found while the files were opened."""
    is_part: bool = False
    """Whether only some of the files of the log were asked for."""
    end: int | None = None
    """The offset after the last record, if it is known from another source than the files."""
    only: OffsetRange | None = None
    """The requested offsets, if not all: files and batches without them are not read."""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(segment.size for segment in self.segments)

    @property
    def bytes_read(self) -> int:
        """How many bytes were read so far, for a display of progress. If markers are collected first, it is all of
        them."""
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
