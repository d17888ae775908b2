"""Places: files and folders on this machine, in an object store or in an archive.

A place is a path and its file system; it is small and can be pickled. `Files` is the interface between the reader of
logs and a file system: it lists folders, opens files, and detects whether a file has changed.
"""

from __future__ import annotations

import errno
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from kafka_records_engine.log.files.opened import LogFile

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

PlaceKind = Literal["file", "folder", "other"]


class Entry(Protocol):
    """An entry of a folder. Reading a property of a local entry accesses the disk and may raise OSError."""

    @property
    def name(self) -> str: ...

    @property
    def kind(self) -> PlaceKind: ...

    @property
    def size(self) -> int:
        """Size in bytes; 0 if unknown."""

    @property
    def version(self) -> Hashable:
        """A value that changes if the name later refers to another file. On file systems that replace files as a whole,
        it also changes with the content."""


@dataclass(frozen=True, slots=True)
class ListedEntry:
    """An entry whose properties all come from the listing of its folder."""

    name: str
    kind: PlaceKind
    size: int = 0
    version: Hashable = None


class Files(Protocol):
    """A file system as the reader of logs sees it. It is hashable and small, and can be pickled.

    Every method may raise OSError, whose `strerror` is a sentence without secrets.
    """

    @property
    def is_local(self) -> bool:
        """Whether these are files on this machine. Such a file stays readable while it is open, even if it is
        deleted."""

    @property
    def is_archive(self) -> bool:
        """Whether these are the contents of an archive."""

    @property
    def stays_here(self) -> bool:
        """Whether other processes cannot read these files, or could do so only by repeating expensive work."""

    def kind(self, path: str) -> PlaceKind | None:
        """The kind of file at `path`; `other` for a broken link, None if nothing exists there."""

    def listed(self, path: str) -> Sequence[Entry]:
        """The entries of a folder, in any order."""

    def size(self, path: str) -> int:
        """The size of a file in bytes."""

    def version(self, path: str) -> Hashable:
        """A value that changes when the content of the file changes, as far as the file system reports changes."""

    def written_ms(self, path: str) -> int | None:
        """The time when a file was written, in milliseconds since 1970; None if unknown."""

    def opened(self, path: str, version: Hashable = None) -> LogFile:
        """Open a file; bytes appended later are not read. With a `version`, only that version is opened.

        Bytes of another version are never returned: if the file is replaced in the meantime, reading raises OSError.
        """

    def child(self, path: str, name: str) -> str:
        """The path of `name` in the folder `path`."""

    def parent(self, path: str) -> str:
        """The path of the folder that contains `path`."""

    def resolved(self, path: str) -> str:
        """The canonical form of a path, because one path may be spelled in several ways."""

    def for_arrow(self, path: str) -> tuple[FileSystem, str]:
        """The pyarrow file system and the path in it. Raises LogSourceError if pyarrow cannot read the file."""

    def shown(self, path: str) -> str:
        """The path as messages show it, without secrets."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path and the file system it belongs to. `str()` is its name in messages, without secrets."""

    files: Files
    path: str

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rpartition("/")[2]

    @property
    def kind(self) -> PlaceKind | None:
        """The kind of file; None if nothing exists there. Raises OSError."""
        return self.files.kind(self.path)

    @property
    def size(self) -> int:
        """The size of the file in bytes. Raises OSError."""
        return self.files.size(self.path)

    @property
    def written_ms(self) -> int | None:
        """The time when the file was written, in milliseconds since 1970; None if unknown. Raises OSError."""
        return self.files.written_ms(self.path)

    @property
    def parent(self) -> Place:
        """The folder that contains this place."""
        return Place(self.files, self.files.parent(self.path))

    def child(self, name: str) -> Place:
        """The entry `name` of this folder."""
        return Place(self.files, self.files.child(self.path, name))

    def resolved(self) -> Place:
        """The same place in its canonical spelling: absolute, without links."""
        return Place(self.files, self.files.resolved(self.path))

    def listed(self) -> Sequence[Entry]:
        """The entries of this folder, in any order. Raises OSError."""
        return self.files.listed(self.path)

    def opened(self, version: Hashable = None) -> LogFile:
        """The open file; see `Files.opened`. Raises OSError."""
        return self.files.opened(self.path, version)

    def read_bytes(self, most: int = 1 << 24) -> bytes:
        """The content of the file. Raises OSError, also if it has more than `most` bytes."""
        file = self.opened()
        try:
            if file.size > most:
                raise OSError(errno.EFBIG, f"the file has {file.size} bytes, but at most {most} are expected")
            return file.read()
        finally:
            file.close()

    def for_arrow(self) -> tuple[FileSystem, str]:
        """The `pyarrow.fs.FileSystem` and the path in it, for code that reads or writes with pyarrow. Raises
        LogSourceError for a place inside an archive."""
        return self.files.for_arrow(self.path)

    def __str__(self) -> str:
        return self.files.shown(self.path)
