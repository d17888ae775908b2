"""Reads local files. Nothing is cached between calls, and only the properties that the caller needs are looked up."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kafka_records_engine.log.files.opened import FrozenFile, ReplacedFile, with_descriptors

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from kafka_records_engine.log.files.places import PlaceKind


class LocalEntry:
    """An entry of a local folder."""

    def __init__(self, entry: os.DirEntry[str]) -> None:
        self._entry = entry
        self.name = entry.name

    @property
    def kind(self) -> PlaceKind:
        """The kind of the entry; for a symbolic link, the kind of its target."""
        if self._entry.is_file():
            return "file"
        return "folder" if self._entry.is_dir() else "other"

    @property
    def size(self) -> int:
        """Size in bytes, looked up at each call."""
        return self._entry.stat().st_size

    @cached_property
    def version(self) -> int:
        """The inode number. An open file remains the same even if another file gets its name."""
        return self._entry.inode()


@dataclass(frozen=True, slots=True)
class LocalFiles:
    """The file system of this machine; see `places.Files`."""

    is_local = True
    is_archive = False
    stays_here = False

    def normal(self, path: str) -> str:
        """The path as `pathlib` writes it."""
        return str(Path(path))

    def kind(self, path: str) -> PlaceKind | None:
        """See `places.Files.kind`."""
        try:
            mode = os.stat(path).st_mode
        except ValueError:  # the path contains a NUL byte
            return None
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                raise
            return "other" if os.path.islink(path) else None
        if stat.S_ISREG(mode):
            return "file"
        return "folder" if stat.S_ISDIR(mode) else "other"

    def listed(self, path: str) -> Sequence[LocalEntry]:
        """See `places.Files.listed`."""
        with with_descriptors(lambda: os.scandir(path or ".")) as entries:
            return [LocalEntry(entry) for entry in entries]

    def size(self, path: str) -> int:
        """See `places.Files.size`."""
        return os.stat(path).st_size

    def version(self, path: str) -> Hashable:
        """See `places.Files.version`."""
        return _version(os.stat(path))

    def written_ms(self, path: str) -> int:
        """See `places.Files.written_ms`."""
        return os.stat(path).st_mtime_ns // 1_000_000

    def opened(self, path: str, version: Hashable = None) -> FrozenFile:
        """See `places.Files.opened`. Raises NoRegularFile for anything that is not a regular file."""
        file = FrozenFile(path)
        if version is not None and _version(os.fstat(file.fileno())) != version:
            file.close()
            raise ReplacedFile
        return file

    def child(self, path: str, name: str) -> str:
        """See `places.Files.child`."""
        return os.path.join("" if path == "." else path, name)

    def parent(self, path: str) -> str:
        """See `places.Files.parent`."""
        return str(Path(path).parent)

    def resolved(self, path: str) -> str:
        """The absolute path without symbolic links."""
        return os.path.realpath(path)

    def for_arrow(self, path: str) -> tuple[FileSystem, str]:
        """See `places.Files.for_arrow`."""
        from pyarrow.fs import LocalFileSystem

        return LocalFileSystem(), os.path.abspath(path)

    def shown(self, path: str) -> str:
        """The path, unchanged."""
        return path


def _version(status: os.stat_result) -> Hashable:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


LOCAL: Final = LocalFiles()
