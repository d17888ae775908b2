"""Run a program and measure it: seconds, processor seconds, and the memory of the program and of all processes that it
starts."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PROC: Final = Path("/proc")
_EVERY: Final = 0.05
_LINES_TOLD: Final = 15


class ProgramFailed(Exception):
    """A program failed while it was measured. The text has the program's output."""


@dataclass(frozen=True)
class Run:
    """One run of a program."""

    seconds: float
    processor: float
    """The seconds of all processors together."""
    memory: int | None
    """The peak memory in bytes of the program and its children. A page that several of them share is counted once
    (PSS). None if the system does not report it."""
    said: Mapping[str, Any]
    """The JSON that the program printed, if it prints JSON."""


def run_program(command: Sequence[str], *, cwd: Path, environment: Mapping[str, str], says_json: bool) -> Run:
    """Run a program to its end. Its output is discarded unless it is JSON; figures in the JSON replace ours.

    Raises ProgramFailed.
    """
    start = time.perf_counter()
    out = subprocess.PIPE if says_json else subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=cwd, env=dict(environment), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE
    )
    with _Watch(process.pid) as watch:
        said, errors = _drained(process)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        lines = errors.decode("utf-8", "replace").strip().splitlines()[-_LINES_TOLD:]
        raise ProgramFailed("\n".join([f"{' '.join(command)} ended with status {process.returncode}:", *lines]))
    found = json.loads(said.splitlines()[-1]) if says_json else {}
    processor = found.get("processor", used.ru_utime + used.ru_stime)
    return Run(found.get("seconds", seconds), processor, watch.most, found)


def _drained(process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """Everything that the process prints. `communicate` would also wait for its end, and the resource usage would be
    lost."""
    said: list[bytes] = []
    reader = threading.Thread(target=lambda: said.append(process.stdout.read() if process.stdout else b""))
    reader.start()
    assert process.stderr is not None
    errors = process.stderr.read()
    reader.join()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    return said[0], errors


class _Watch:
    """Measures the memory of a process and its descendants repeatedly."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.most: int | None = None

    def __enter__(self) -> _Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._done.wait(_EVERY):
            found = [each for pid in family(self._pid) if (each := memory_of(pid)) is not None]
            if found:
                self.most = max(self.most or 0, sum(found))


def family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit():
            try:
                # The name in brackets may contain anything. State and parent follow it.
                parent = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(folder.name))
    found = [pid]
    for each in found:
        found += children.get(each, [])
    return found


def memory_of(pid: int) -> int | None:
    """The PSS of a process in bytes; None if it is unavailable."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), None)
