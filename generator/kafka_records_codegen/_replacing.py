"""Replaces the files of a folder so that an interrupted run does no harm.

New files are first written into a separate folder inside the target folder. They are renamed to their final paths only
when all of them are complete. So a full disk, a name that is too long or a killed process leaves the old files
unchanged. Between the first and the last rename, the folder contains both new and old files, each of them complete; if
a run is interrupted there, the next run fixes it. An operating system lock keeps other runs out. The lock ends with its
process.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

if sys.platform != "win32":
    import fcntl

STAGING: Final = ".kafka-records-codegen"
"""The folder into which new files are written. If a run finds it, an earlier run was killed."""

PATIENCE: Final = 60.0
"""How many seconds to wait for another run, which takes a few seconds."""

_PAUSE: Final = 0.05


_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL)
"""Error numbers of file systems that do not support locks."""


class Busy(OSError):
    """Another run has held the lock on the folder for longer than `PATIENCE`."""


@contextmanager
def held(folder: Path, *, to_write: bool, when_waiting: Callable[[], None] | None = None) -> Iterator[bool]:
    """Keep other runs out of `folder`: all of them with `to_write`, otherwise only those that write. Calls
    `when_waiting` once if it has to wait.

    Yields whether the folder exists; a missing one is created if `to_write`. A folder that does not exist cannot be
    locked, and another run may create it at any time, so use the yielded value instead of checking again. The lock is
    advisory, works between processes on one machine, and does not exist on Windows. Raises `Busy` after `PATIENCE`
    seconds.
    """
    handle = None if sys.platform == "win32" else _lock(folder, to_write, when_waiting)
    try:
        yield handle is not None if sys.platform != "win32" else folder.exists()
    finally:
        if handle is not None:
            os.close(handle)


if sys.platform != "win32":

    def _lock(folder: Path, to_write: bool, when_waiting: Callable[[], None] | None) -> int | None:
        """The folder, opened and locked; None if it does not exist."""
        kind = (fcntl.LOCK_EX if to_write else fcntl.LOCK_SH) | fcntl.LOCK_NB
        deadline = time.monotonic() + PATIENCE
        while True:
            if to_write:
                folder.mkdir(parents=True, exist_ok=True)
            try:
                handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            except FileNotFoundError:
                if to_write:
                    continue
                return None
            try:
                fcntl.flock(handle, kind)
            except OSError as error:
                if error.errno in _NO_LOCKS:
                    return handle
                os.close(handle)
                if not isinstance(error, BlockingIOError):
                    raise
            else:
                if _is_still(handle, folder):
                    return handle
                os.close(handle)
                continue  # the process that held the lock has deleted its file
            if time.monotonic() > deadline:
                text = f"another run has been writing to this folder for more than {PATIENCE:g} seconds"
                raise Busy(errno.EAGAIN, text, str(folder))
            if when_waiting is not None:
                when_waiting()
                when_waiting = None
            time.sleep(_PAUSE)


def _is_still(handle: int, folder: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), folder.stat())
    except FileNotFoundError:
        return False


def replace(folder: Path, files: Mapping[str, str], names: Sequence[str], old: Sequence[str]) -> None:
    """Write the `files` listed in `names`, by path below `folder`, and only then delete the `old` ones.

    Folders that become empty are deleted too. Raises OSError; its text says whether anything was changed.
    """
    staging = folder / STAGING
    try:
        shutil.rmtree(staging, ignore_errors=True)
        with _named("nothing was changed") as at:
            for name in names:
                _stage(staging / name, files[name].encode(), at(folder / name))
            for name in names:
                at(folder / name).parent.mkdir(parents=True, exist_ok=True)
        with _named("the folder contains new files next to old ones; another run fixes that") as at:
            for name in names:
                os.replace(staging / name, at(folder / name))
            for name in old:
                at(folder / name).unlink()
    except BaseException:
        with suppress(OSError):
            _tidy(folder)
        raise
    _tidy(folder)


def _stage(path: Path, content: bytes, target: Path) -> None:
    """Write a new file and flush it to disk. It gets the permissions of the file that it replaces."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        # Without fsync, a power failure may leave an empty file under the new name.
        os.fsync(file.fileno())
    with suppress(FileNotFoundError):
        path.chmod(stat.S_IMODE(target.stat().st_mode))


@contextmanager
def _named(consequence: str) -> Iterator[Callable[[Path], Path]]:
    """Adds the name of a file (the argument of the yielded function) and the `consequence` to errors inside the
    block."""
    target = None

    def at(path: Path) -> Path:
        nonlocal target
        target = path
        return path

    try:
        yield at
    except OSError as error:
        name = error.filename if target is None else str(target)
        raise OSError(error.errno, f"{error.strerror or error}; {consequence}", name) from error


def _tidy(folder: Path) -> None:
    """Remove the staging folder, and folders with no files except compiled Python."""
    shutil.rmtree(folder / STAGING, ignore_errors=True)
    for path in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        inside = [item for item in path.iterdir() if item.name != "__pycache__"]
        if path.name != "__pycache__" and not inside:
            for compiled in path.glob("__pycache__/*"):
                compiled.unlink()
            for cache in path.glob("__pycache__"):
                cache.rmdir()
            path.rmdir()
