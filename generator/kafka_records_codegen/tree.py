"""Writes a generated tree, and compares an existing tree with the expected content.

The output folder belongs to the generator. A file in it is either written by this run, or was written by an earlier run
for the same tree and package (and is deleted), or belongs to somebody else (and then nothing is written).
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kafka_records_codegen._replacing import STAGING, held, replace
from kafka_records_codegen.text.mark import LONGEST, Mark
from kafka_records_runtime.errors import KafkaRecordsError, plural
from kafka_records_runtime.text.printable import printable

_LISTED: Final = 20
"""The maximum number of files to list in a message. The others are only counted."""


class UntrackedFiles(KafkaRecordsError):
    """The output folder contains files that this run must neither replace nor delete: `paths` below it, sorted.

    These are files that no run wrote, links, folders in place of a generated file, and files of other trees and
    packages. `marks` contains, by path, the mark of each file that belongs to another tree or package.
    """

    def __init__(self, out: Path, paths: tuple[str, ...], wanted: Mark, marks: Mapping[str, Mark]) -> None:
        super().__init__(out, paths, wanted, marks)
        self.out = out
        self.paths = paths
        self.wanted = wanted
        self.marks = marks

    def __str__(self) -> str:
        found = set(self.marks.values())
        if len(found) == 1 and len(self.marks) == len(self.paths):
            return (
                f"{self.out} contains the {found.pop()} ({plural(len(self.paths), 'file')}), not the {self.wanted}; "
                "nothing was written.\nChoose another --out folder, or delete those files first."
            )
        lines = [f"  {printable(str(self.out / path))}{self._whose(path)}" for path in self.paths[:_LISTED]]
        more = len(self.paths) - len(lines)
        listing = "\n".join([*lines, f"  and {more} more"] if more else lines)
        what = f"are not the {self.wanted}" if self.marks else "kafka-records-codegen did not write"
        return (
            f"{self.out} contains files that {what}; nothing was written.\n{listing}\n"
            "Choose a folder for --out that contains nothing else."
        )

    def _whose(self, path: str) -> str:
        return f" ({self.marks[path]})" if path in self.marks else ""


@dataclass(frozen=True)
class Comparison:
    """How a folder differs from its expected content. Paths are relative to it and sorted.

    `marks` says which of the `untracked` files belong to another tree or package, and to which one.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    changed: tuple[str, ...]
    untracked: tuple[str, ...]
    marks: Mapping[str, Mark]

    @property
    def is_clean(self) -> bool:
        return not (self.missing or self.extra or self.changed or self.untracked)


def compare(out: Path, files: Mapping[str, str], when_waiting: Callable[[], None] | None = None) -> Comparison:
    """Compare the folder `out` with `files`, which all start with one mark. Compiled Python is ignored.

    Links always belong to the user, wherever they lead, and so does a folder in place of a file. Like `write`, it waits
    for a run that is writing to the folder.
    """
    mark = mark_of(files)
    with held(out, to_write=False, when_waiting=when_waiting) as is_there:
        if not is_there:
            return Comparison(missing=tuple(sorted(files)), extra=(), changed=(), untracked=(), marks={})
        return _compare(out, files, mark)


def write(out: Path, files: Mapping[str, str], when_waiting: Callable[[], None] | None = None) -> Comparison:
    """Make `out` contain exactly `files`, which all start with one mark. Returns what was different before.

    Raises UntrackedFiles, without writing or deleting anything, if the folder contains anything except files with this
    mark, and OSError if something cannot be read or written. `_replacing` describes the state of `out` after such an
    error or a kill. Only one run at a time uses the folder. Others wait, and call `when_waiting` once. `Busy` is also
    an OSError.
    """
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        with held(out, to_write=True, when_waiting=when_waiting):
            mark = mark_of(files)
            before = _compare(out, files, mark)
            if before.untracked:
                raise UntrackedFiles(out, before.untracked, mark, before.marks)
            stale = [name for name in before.extra if not _is_staged(name)]
            replace(out, files, (*before.missing, *before.changed), stale)
    except BaseException:
        for folder in made:
            with suppress(OSError):
                folder.rmdir()
        raise
    return before


def mark_of(files: Mapping[str, str]) -> Mark:
    """The mark that all the `files` of a tree start with."""
    marks = {Mark.read(text[:LONGEST]) for text in files.values()}
    if len(marks) != 1 or None in marks:
        raise AssertionError(f"generated files must all start with the same mark, found {marks}")
    return next(mark for mark in marks if mark is not None)


def read_mark(path: Path) -> Mark | None:
    """The mark at the start of the file at `path`, if any."""
    with path.open("rb") as file:
        return Mark.read(file.read(LONGEST).decode("utf-8", "replace"))


def differences(out: Path, files: Mapping[str, str], found: Comparison) -> Iterator[str]:
    """A unified diff of every changed file, from its current to its expected content."""
    for name in found.changed:
        is_now = _read(out / name).decode(errors="replace").splitlines()
        yield from difflib.unified_diff(
            is_now, files[name].splitlines(), f"{name} (current)", f"{name} (as generated)", lineterm=""
        )


def _entries(folder: Path, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below `folder`, with paths that start with `prefix`; nothing if the folder does not exist."""
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


def _compare(out: Path, files: Mapping[str, str], wanted: Mark) -> Comparison:
    found = dict(_entries(out, ""))
    present = {name for name, entry in found.items() if entry.is_file(follow_symlinks=False)}
    folders = {name for name, entry in found.items() if entry.is_dir(follow_symlinks=False)}
    marks = {name: read_mark(out / name) for name in present if not _is_staged(name)}
    foreign = {name for name, mark in marks.items() if mark != wanted}
    in_the_way = (found.keys() - present - folders) | (folders & files.keys())
    return Comparison(
        missing=tuple(sorted(files.keys() - found.keys())),
        extra=tuple(sorted(present - files.keys() - foreign)),
        changed=tuple(name for name in sorted(present & files.keys()) if _read(out / name) != files[name].encode()),
        untracked=tuple(sorted(foreign | in_the_way)),
        marks={name: mark for name in sorted(foreign) if (mark := marks[name]) is not None},
    )


def _is_staged(name: str) -> bool:
    """Whether the path belongs to a file that a killed run was writing."""
    return name.startswith(f"{STAGING}/")


def _read(path: Path) -> bytes:
    return path.read_bytes()
