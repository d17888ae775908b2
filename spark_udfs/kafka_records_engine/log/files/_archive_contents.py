"""The members and folders of an archive by path. Paths are only labels; no file with such a name is created."""

from __future__ import annotations

import lzma
import posixpath
import re
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Final

from kafka_records_engine.log.files.opened import LogFile
from kafka_records_engine.log.files.places import ListedEntry, PlaceKind

MOST_MEMBERS: Final = 2_000_000

_KEPT_NAMES: Final = (".log", ".log.swap", ".log.cleaned", "-checkpoint", "partition.metadata")
_SAVED_NAMES: Final = re.compile(
    r".*\.(parquet|pq|parq|arrows?|feather|ipc|avro|((json|jsonl|ndjson|csv|tsv)(\.(gz|gzip|zst|zstd|bz2|lz4))?))", re.I
)
"""Files with these names are read: files of logs and of saved rows. Others are not unpacked."""

CUT_SHORT: Final = (tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error, struct.error)


class TooMuch(Exception):
    """An archive contains, or claims to contain, more than this package reads."""


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file in an archive."""

    name: str
    size: int
    version: Hashable
    open: Callable[[], LogFile] | None
    """The function that opens the file; None for anything that is not a regular file."""
    written_ms: int | None = None

    @property
    def kind(self) -> PlaceKind:
        """`file` for a regular file, otherwise `other`."""
        return "other" if self.open is None else "file"


@dataclass(slots=True)
class Contents:
    """The content of an archive when it was opened. Members keep this object alive, and thus the open files."""

    folders: dict[str, dict[str, ArchiveMember | ListedEntry]] = field(default_factory=lambda: {"": {}})
    unpacked: int = 0
    is_unpacked: bool = False
    """Whether the archive was unpacked for reading. Another reader would have to unpack it again."""

    def add(self, path: str, member: ArchiveMember) -> None:
        """Add a file. If two files have the same path, the later one is used, as when an archive is unpacked."""
        folder = posixpath.dirname(path)
        self.add_folder(folder)
        self.folders[folder][member.name] = member

    def add_folder(self, path: str) -> None:
        """Add a folder and its parent folders."""
        if path not in self.folders:
            self.folders[path] = {}
            above = posixpath.dirname(path)
            self.add_folder(above)
            name = posixpath.basename(path)
            self.folders[above][name] = ListedEntry(name, "folder")


def label(name: str) -> str:
    """The path of a member inside the archive, derived from its name. It is never absolute and never leads outside."""
    return posixpath.normpath(f"/{name}").lstrip("/")


def is_read(path: str) -> bool:
    return path.endswith(_KEPT_NAMES) or _SAVED_NAMES.fullmatch(path) is not None
