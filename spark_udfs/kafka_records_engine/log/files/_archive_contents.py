"""What an archive holds: its members and folders by their paths, which are labels and never names of files."""

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
"""Names of files that are read: those of logs, and those of saved rows. Others are not unpacked."""

CUT_SHORT: Final = (tarfile.TarError, zipfile.BadZipFile, EOFError, lzma.LZMAError, zlib.error, struct.error)


class TooMuch(Exception):
    """An archive that claims or contains more than this package reads."""


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file in an archive."""

    name: str
    size: int
    version: Hashable
    open: Callable[[], LogFile] | None
    """None for anything but a regular file."""
    written_ms: int | None = None

    @property
    def kind(self) -> PlaceKind:
        """Whether a path is a file."""
        return "other" if self.open is None else "file"


@dataclass(slots=True)
class Contents:
    """The content of an archive, as it was when it was opened. Members keep it alive, and its open files."""

    folders: dict[str, dict[str, ArchiveMember | ListedEntry]] = field(default_factory=lambda: {"": {}})
    unpacked: int = 0
    is_unpacked: bool = False
    """Whether it was unpacked to be read, so that another reader has to unpack it again."""

    def add(self, path: str, member: ArchiveMember) -> None:
        """Add a file. If two have the same name, the later one counts, as when an archive is unpacked."""
        folder = posixpath.dirname(path)
        self.add_folder(folder)
        self.folders[folder][member.name] = member

    def add_folder(self, path: str) -> None:
        """Add a folder, and those it is in."""
        if path not in self.folders:
            self.folders[path] = {}
            above = posixpath.dirname(path)
            self.add_folder(above)
            name = posixpath.basename(path)
            self.folders[above][name] = ListedEntry(name, "folder")


def label(name: str) -> str:
    """The path in an archive that a name stands for: never absolute, and never above the archive."""
    return posixpath.normpath(f"/{name}").lstrip("/")


def is_read(path: str) -> bool:
    return path.endswith(_KEPT_NAMES) or _SAVED_NAMES.fullmatch(path) is not None
