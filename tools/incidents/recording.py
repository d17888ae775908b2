"""Keeps the part of a broker's data directory that a report reads, as one small archive."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path
from typing import Final

DATA: Final = "data"
ARCHIVE: Final = "data.tar.xz"

_LEFT_OUT: Final = (".lock", ".kafka_cleanshutdown")


def keep_directory(data: Path, folder: Path) -> int:
    """Copy the data directory of a broker that is stopped into `folder`/data, and pack it; returns the packed bytes."""
    kept = folder / DATA
    if kept.exists():
        shutil.rmtree(kept)
    shutil.copytree(data, kept, ignore=shutil.ignore_patterns(*_LEFT_OUT, "*.deleted", "*-delete"))
    archive = folder / ARCHIVE
    with tarfile.open(archive, "w:xz", preset=9) as packed:
        for path in sorted(kept.rglob("*")):
            if path.is_file():
                packed.add(path, path.relative_to(kept).as_posix(), filter=_anonymous)
    return archive.stat().st_size


def unpack(folder: Path, into: Path) -> Path:
    """The data directory of a recording: as it is there, or unpacked into `into`."""
    if (folder / DATA).is_dir():
        return folder / DATA
    with tarfile.open(folder / ARCHIVE) as packed:
        packed.extractall(into, filter="data")
    return into


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
