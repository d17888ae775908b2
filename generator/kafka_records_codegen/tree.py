"""Writing a generated tree, and comparing one with what it should be.

The output folder belongs to the generator: whatever it holds is either made by this run, made by an earlier run and
then deleted, or somebody's own, and then nothing is written at all.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kafka_records_codegen.text.page import MARK
from kafka_records_runtime.errors import KafkaRecordsError

_MARK_WITHIN = 500


class UntrackedFiles(KafkaRecordsError):
    """The output folder holds what the generator did not write: files, links, folders at the place of a file."""

    def __init__(self, out: Path, paths: tuple[str, ...]) -> None:
        super().__init__(out, paths)
        self.out = out
        self.paths = paths

    def __str__(self) -> str:
        listing = "\n".join(f"  {self.out / path}" for path in self.paths)
        return (
            f"{self.out} holds files that kafka-records-codegen did not write; nothing was written.\n{listing}\n"
            "Move them elsewhere or choose another --out folder."
        )


@dataclass(frozen=True)
class Comparison:
    """How a folder differs from what it should hold; paths are relative to it and sorted."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    changed: tuple[str, ...]
    untracked: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        return not (self.missing or self.extra or self.changed or self.untracked)


def compare(out: Path, files: Mapping[str, str]) -> Comparison:
    """Compare the folder `out` with `files`. Compiled Python aside, everything in it counts.

    Links are nobody's but the user's, wherever they lead; so is a folder at the place of a file.
    """
    found = dict(_entries(out, ""))
    present = {name for name, entry in found.items() if entry.is_file(follow_symlinks=False)}
    folders = {name for name, entry in found.items() if entry.is_dir(follow_symlinks=False)}
    foreign = {name for name in present if not _is_ours(out / name)}
    in_the_way = (found.keys() - present - folders) | (folders & files.keys())
    return Comparison(
        missing=tuple(sorted(files.keys() - found.keys())),
        extra=tuple(sorted(present - files.keys() - foreign)),
        changed=tuple(name for name in sorted(present & files.keys()) if _read(out / name) != files[name].encode()),
        untracked=tuple(sorted(foreign | in_the_way)),
    )


def write(out: Path, files: Mapping[str, str]) -> Comparison:
    """Make `out` hold exactly `files`; return what was different before.

    Raises UntrackedFiles, with nothing written or deleted, when the folder holds anything the generator never wrote,
    and OSError for what cannot be read or written.
    """
    before = compare(out, files)
    if before.untracked:
        raise UntrackedFiles(out, before.untracked)
    for name in before.extra:
        (out / name).unlink()
    for name in (*before.missing, *before.changed):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(files[name].encode())
    _remove_empty_folders(out)
    return before


def differences(out: Path, files: Mapping[str, str], found: Comparison) -> Iterator[str]:
    """A unified diff of every changed file, from what is there to what should be."""
    for name in found.changed:
        is_now = _read(out / name).decode(errors="replace").splitlines()
        yield from difflib.unified_diff(
            is_now, files[name].splitlines(), f"{name} (as it is)", f"{name} (as generated)", lineterm=""
        )


def _entries(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """All that is below `folder`, by its path behind `prefix`; nothing if there is no such folder."""
    try:
        with os.scandir(folder) as scanned:
            entries = list(scanned)
    except FileNotFoundError:
        return
    for entry in entries:
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder and entry.name == "__pycache__":
            continue
        yield prefix + entry.name, entry
        if is_folder:
            yield from _entries(folder / entry.name, f"{prefix}{entry.name}/")


def _read(path: Path) -> bytes:
    return path.read_bytes()


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return MARK.encode() in file.read(_MARK_WITHIN)


def _remove_empty_folders(out: Path) -> None:
    for path in sorted((path for path in out.rglob("*") if path.is_dir()), reverse=True):
        inside = [item for item in path.iterdir() if item.name != "__pycache__"]
        if path.name != "__pycache__" and not inside:
            for compiled in path.glob("__pycache__/*"):
                compiled.unlink()
            for cache in path.glob("__pycache__"):
                cache.rmdir()
            path.rmdir()
