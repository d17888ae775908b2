"""Records what a program does with files below a folder, step by step, and computes what a disk may have after a power
failure.

Only the guarantees of POSIX apply: after `fsync` of a file its bytes are on disk, after `fsync` of a folder its names
are. Everything else may be lost or not, independently for each name; bytes that were not synced may be missing,
truncated, or zeros. Only a rename is atomic.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

ROOT_NODE: Final = 0
_ALL_CHOICES: Final = 4
"""If at most this many steps were not synced, all subsets of them are tried; otherwise those that differ little from
all or none, and the first ones."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `node` identifies a file or a folder by a number that is used only once."""

    what: str
    """`make` and `remove` a name in `folder`, `move` a name to `to`, `write` all bytes of a file, `sync` a node."""
    node: int
    folder: int = -1
    name: str = ""
    to: str = ""
    is_folder: bool = False
    content: bytes = b""


Before = Callable[[int, str], None]
"""Called before each step with its number and kind. If it raises, the step raises the same."""


class Recorder:
    """Records what this process does below `root`, an existing folder, with the functions that a store uses.

    Bytes are compared before each step, because Arrow writes them without Python. A change of names that no recorded
    function made raises AssertionError.
    """

    def __init__(self, root: Path, before: Before | None = None) -> None:
        self.root = root
        self.steps: list[Step] = []
        self.count = 0
        self.before = before
        self._names: dict[int, dict[str, int]] = {ROOT_NODE: {}}
        self._inodes = {_inode(root): ROOT_NODE}
        self._files: dict[int, bytes] = {}
        self._next = 1
        self._lock = threading.RLock()
        assert not any(root.iterdir())

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record everything within the context."""
        with pytest.MonkeyPatch.context() as patched:
            for name in ("fsync", "mkdir", "unlink", "remove", "rmdir", "replace", "rename"):
                patched.setattr(os, name, self._watched(name, getattr(os, name)))
            patched.setattr(pa, "OSFile", self._opening(pa.OSFile))
            yield
        self._look()

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _watched(self, name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def watched(first: Any, second: Any = None, *rest: Any, **more: Any) -> Any:
            asked = (first,) if second is None else (first, second, *rest)
            where = _path_of(first, more.get("dir_fd"))
            if not f"{where}/".startswith(f"{self.root}/"):
                return do(*asked, **more)
            with self._lock:
                self._look()
                self._begin(name)
                if name == "fsync":
                    do(*asked, **more)
                    node = self._inodes.get(_inode(Path(f"/proc/self/fd/{first}")))
                    if node is not None:  # it was not removed in the meantime
                        self.steps.append(Step("sync", node))
                    return None
                if name == "mkdir":
                    done = do(*asked, **more)
                    self._look()
                    return done
                done = do(*asked, **more)
                folder, leaf = self._place(where)
                node = self._names[folder][leaf]
                del self._names[folder][leaf]
                if name in ("replace", "rename"):
                    to_folder, to = self._place(_path_of(second, None))
                    assert to_folder == folder
                    self._names[folder][to] = node
                    self.steps.append(Step("move", node, folder, leaf, to))
                else:
                    self.steps.append(Step("remove", node, folder, leaf))
                    self._files.pop(node, None)
                self._inodes = {inode: known for inode, known in self._inodes.items() if self._is_there(known)}
                return done

        return watched

    def _opening(self, do: Callable[..., Any]) -> Callable[..., Any]:
        def opening(path: Any, mode: str = "r") -> Any:
            if "w" in mode and str(path).startswith(f"{self.root}/"):
                with self._lock:
                    self._look()
                    self._begin("open")
            return do(path, mode)

        return opening

    def _begin(self, name: str) -> None:
        self.count += 1
        if self.before is not None:
            self.before(self.count, name)
            self._look()

    # -- what is there -------------------------------------------------------------------------------------------------

    def _is_there(self, node: int) -> bool:
        return node == ROOT_NODE or any(node in names.values() for names in self._names.values())

    def _place(self, path: str) -> tuple[int, str]:
        above, leaf = os.path.split(os.path.relpath(path, self.root))
        node = ROOT_NODE
        for part in Path(above).parts:
            node = self._names[node][part]
        return node, leaf

    def _look(self, folder: int = ROOT_NODE, path: Path | None = None) -> None:
        path = path or self.root
        known = self._names[folder]
        there = sorted(os.listdir(path))
        assert set(known) <= set(there), f"{set(known) - set(there)} went from {path} unseen"
        for name in there:
            each = path / name
            is_folder = each.is_dir()
            if name not in known:
                known[name] = self._inodes[_inode(each)] = node = self._next
                self._next += 1
                self.steps.append(Step("make", node, folder, name, is_folder=is_folder))
                if is_folder:
                    self._names[node] = {}
                else:
                    self._files[node] = b""
            if is_folder:
                self._look(known[name], each)
                continue
            content = each.read_bytes()
            if content != self._files[known[name]]:
                self._files[known[name]] = content
                self.steps.append(Step("write", known[name], content=content))


def _inode(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _path_of(given: Any, folder: int | None) -> str:
    if isinstance(given, int):
        return os.path.realpath(f"/proc/self/fd/{given}")
    name = os.fspath(given)
    return os.path.join(os.path.realpath(f"/proc/self/fd/{folder}"), name) if folder is not None else name


# -- disks -------------------------------------------------------------------------------------------------------------

Tree = dict[str, bytes | None]
"""Bytes of files by their paths; None for folders."""


@dataclass
class _Disk:
    names: dict[int, dict[str, int]] = field(default_factory=lambda: {ROOT_NODE: {}})
    """The synced names of each folder."""
    synced: dict[int, bytes] = field(default_factory=dict)
    written: dict[int, bytes] = field(default_factory=dict)
    pending: list[Step] = field(default_factory=list)
    """Changes of names that were not synced."""

    def take(self, step: Step) -> None:
        if step.what == "write":
            self.written[step.node] = step.content
        elif step.what != "sync":
            self.pending.append(step)
            if step.what == "make" and step.is_folder:
                self.names[step.node] = {}
        elif step.node in self.names:
            for each in self.pending:
                if each.folder == step.node:
                    _change(self.names[each.folder], each)
            self.pending = [each for each in self.pending if each.folder != step.node]
        else:
            self.synced[step.node] = self.written.get(step.node, b"")

    def trees(self) -> Iterator[Tree]:
        for chosen in _choices(self.pending):
            names = {folder: dict(known) for folder, known in self.names.items()}
            for step in chosen:
                _change(names[step.folder], step)
            for harm in (_lost, _cut, _zeros, _all):
                tree: Tree = {}
                self._walk(names, ROOT_NODE, "", harm, tree)
                yield tree

    def _walk(
        self, names: dict[int, dict[str, int]], folder: int, path: str, harm: Callable[..., bytes], tree: Tree
    ) -> None:
        for name, node in names[folder].items():
            below = f"{path}{name}"
            if node in names:
                tree[below] = None
                self._walk(names, node, f"{below}/", harm, tree)
                continue
            synced, written = self.synced.get(node, b""), self.written.get(node, b"")
            tree[below] = synced if synced == written else harm(synced, written)


def _change(names: dict[str, int], step: Step) -> None:
    if step.what == "make":
        names[step.name] = step.node
        return
    if names.get(step.name) == step.node:
        del names[step.name]
    if step.what == "move":
        names[step.to] = step.node


def _lost(synced: bytes, _: bytes) -> bytes:
    return synced


def _cut(_: bytes, written: bytes) -> bytes:
    return written[: len(written) // 2]


def _zeros(_: bytes, written: bytes) -> bytes:
    return bytes(len(written))


def _all(_: bytes, written: bytes) -> bytes:
    return written


def _choices(steps: Sequence[Step]) -> Iterator[Sequence[Step]]:
    count = len(steps)
    if count <= _ALL_CHOICES:
        for size in range(count + 1):
            yield from combinations(steps, size)
        return
    yield ()
    yield steps
    for at in range(count):
        yield steps[:at]
        yield [steps[at]]
        yield [*steps[:at], *steps[at + 1 :]]


def after_power_failure(steps: Sequence[Step], ends: Sequence[int] = ()) -> Iterator[tuple[int, Tree]]:
    """What a disk may have if the power fails after a number of steps. Each state comes once between two of `ends`: a
    state that was right before a run ended may lack something after it."""
    disk, seen = _Disk(), set[int]()
    for number in range(len(steps) + 1):
        if number:
            disk.take(steps[number - 1])
        if number in ends:
            seen.clear()
        for tree in disk.trees():
            key = hash(frozenset(tree.items()))
            if key not in seen:
                seen.add(key)
                yield number, tree


def after_all(steps: Sequence[Step]) -> list[Tree]:
    """What a disk may have if the power fails after all steps, each state once."""
    count = len(steps)
    return [tree for number, tree in after_power_failure(steps, [count]) if number == count]


def lay(tree: Tree, root: Path) -> Path:
    """Write the content of a disk to a new folder."""
    root.mkdir()
    for path, content in sorted(tree.items()):
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
    return root
