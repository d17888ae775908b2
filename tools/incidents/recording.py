"""Stores the part of a broker's data directory that a report reads as a small archive."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

DATA: Final = "data"
ARCHIVE: Final = "data.tar.xz"
LIVE: Final = "live.json"
"""The report on the running broker."""

_LEFT_OUT: Final = (".lock", ".kafka_cleanshutdown")


def keep_directory(data: Path, folder: Path) -> int:
    """Copy the data directory of a stopped broker into `folder`/data, and pack it; returns the number of packed
    bytes."""
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


def keep_log(log: Path, folder: Path) -> None:
    """Copy what a broker logged about the loads of its coordinators into `folder`."""
    lines = [each for each in log.read_bytes().splitlines(keepends=True) if b" loading of metadata " in each]
    (folder / log.name).write_bytes(b"".join(lines))


def keep_live_report(bootstrap: str, folder: Path, arguments: Sequence[str]) -> None:
    """Write the report on a running broker, as JSON, into `folder`. Raises CalledProcessError if there is none."""
    output = folder / LIVE
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "kafka_records_tables.commands.main", "report", "--bootstrap", bootstrap]
    command += ["--format", "json", "--no-tables", "--output", str(output), *arguments]
    ended = subprocess.run(command, check=False, stderr=subprocess.PIPE, text=True)
    # Status 1: rows are missing, for example because the incident damaged a log.
    if ended.returncode not in (0, 1):
        raise subprocess.CalledProcessError(ended.returncode, command, stderr=ended.stderr)


def unpack(folder: Path, into: Path) -> Path:
    """The data directory of a recording, with the broker's log next to it. If the recording only has an archive, it is
    unpacked into `into`."""
    if (folder / DATA).is_dir():
        return folder / DATA
    into.mkdir(parents=True, exist_ok=True)
    for log in folder.glob("*.log"):
        shutil.copy(log, into.parent)
    with tarfile.open(folder / ARCHIVE) as packed:
        packed.extractall(into, filter="data")
    return into


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
