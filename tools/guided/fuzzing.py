"""Runs of a target: guided by atheris, in a separate process because the fuzzer ends its process; or with random
changes."""

from __future__ import annotations

import importlib
import os
import resource
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

from tools.guided.target import PACKAGES, ROOT, target

_FOUND: Final = "found"
_SENT: Final = "sent"
_MOST_INPUT: Final = 8192
_HANGS_AFTER: Final = 120
"""The maximum seconds for one input, on a machine that does other things too."""


@dataclass(frozen=True)
class Ran:
    """The result of a run of a target."""

    inputs: int
    processor_seconds: float
    corpus: int
    """The number of inputs in the corpus. Each reaches a branch that the others do not."""
    found: str | None
    """The failure, with the input in hex."""


def run(name: str, seconds: float, corpus: Path, *, seed: int = 1) -> Ran:
    """Run atheris for this long. The corpus is a folder with inputs; runs add to it."""
    corpus.mkdir(parents=True, exist_ok=True)
    before = children_seconds()
    command = [sys.executable, "-m", "tools.guided.fuzzing", name, str(seconds), str(corpus), str(seed)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    spent = children_seconds() - before
    folder = corpus.parent / f"{corpus.name}-run"
    sent = int((folder / _SENT).read_text()) if (folder / _SENT).exists() else 0
    found = (folder / _FOUND).read_text() if (folder / _FOUND).exists() else None
    if done.returncode and found is None:
        crashes = [f"\n{each.name}: {each.read_bytes().hex()}" for each in folder.glob("*-*")]
        found = f"{name}: the process ended with status {done.returncode}{''.join(crashes)}\n{done.stderr[-3000:]}"
    return Ran(sent, spent, sum(1 for _ in corpus.iterdir()), found)


def blind(name: str, seconds: float) -> Ran:
    """Send random changes of the seeds, the same in every run."""
    from tools.hostile import mutated  # imported here, so that `_guide` can import and instrument the same modules

    made, random, sent, data = target(name), Random(name), 0, b""
    seeds = list(made.seeds())
    started = time.process_time()
    end = time.monotonic() + seconds
    try:
        while sent < len(seeds) or time.monotonic() < end:
            data = seeds[sent] if sent < len(seeds) else mutated(random.choice(seeds), random)
            sent += 1
            made.read(data)
    except Exception as error:
        return Ran(sent, time.process_time() - started, len(seeds), _told(name, data, error))
    return Ran(sent, time.process_time() - started, len(seeds), None)


def _told(name: str, data: bytes, error: BaseException) -> str:
    trace = "".join(traceback.format_exception(error)[-6:])
    return f"{trace}\npython -m tools.guided --target {name} --input {data.hex()}"


def children_seconds() -> float:
    """The processor seconds of the processes that this one started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _guide(name: str, seconds: float, corpus: Path, seed: int) -> None:
    """Never returns: libFuzzer ends the process."""
    atheris: Any = importlib.import_module("atheris")
    folder = corpus.parent / f"{corpus.name}-run"
    folder.mkdir(exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    with atheris.instrument_imports(include=list(PACKAGES[name])):
        made = target(name)
        seeds = list(made.seeds())  # this imports messages that are imported on demand
    sent = 0

    def one(data: bytes) -> None:
        nonlocal sent
        sent += 1
        if sent % 20 == 0:
            (folder / _SENT).write_text(str(sent))
        try:
            made.read(data)
        except Exception as error:
            (folder / _SENT).write_text(str(sent))
            (folder / _FOUND).write_text(_told(name, data, error))
            os._exit(1)

    for number, data in enumerate(seeds):
        (corpus / f"seed-{number:04}").write_bytes(data)
    options = [
        f"-max_total_time={max(1, round(seconds))}",
        f"-max_len={_MOST_INPUT}",
        f"-timeout={_HANGS_AFTER}",
        "-rss_limit_mb=3000",
        f"-seed={seed}",
        f"-artifact_prefix={folder}/",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


if __name__ == "__main__":
    _guide(sys.argv[1], float(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
