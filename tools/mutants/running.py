"""Runs mutants one after another, each in a forked child."""

from __future__ import annotations

import gc
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tools.mutants.drawing import Mutant
from tools.mutants.installing import caches, install
from tools.mutants.nets import Log, caught, net_of

Killer = Literal["histories", "tests", "judge", "time", "crash"]

_CPU_SECONDS: Final = 40
_QUICK_CPU_SECONDS: Final = 12
"""The limit of processor time for a mutant. The longest run that ends takes half of it."""
_SECONDS: Final = 900
"""The limit by the clock, for a mutant that waits."""
_MEMORY: Final = 12 << 30


@dataclass(frozen=True)
class Outcome:
    """The outcome of a mutant's run."""

    killer: Killer | None
    how: str
    """The first difference, or the test that failed; empty for a survivor."""


def outcome_of(mutant: Mutant, logs: Sequence[Log], *, is_quick: bool = False) -> Outcome:
    """Run a mutant in a child, which has a copy of the parent's modules and logs. If it does not end in time, run it
    once more."""
    found = _outcome(mutant, logs, is_quick)
    return _outcome(mutant, logs, is_quick) if found.killer == "time" else found


def _outcome(mutant: Mutant, logs: Sequence[Log], is_quick: bool) -> Outcome:
    caches()
    limit = _QUICK_CPU_SECONDS if is_quick else _CPU_SECONDS
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _run_child(writing, limit, lambda: _caught(mutant, logs, is_quick))
    os.close(writing)
    deadline = time.monotonic() + _SECONDS
    try:
        with os.fdopen(reading, "rb") as pipe:
            text = _read(pipe.fileno(), deadline)
    finally:
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if text:
        killer, how = json.loads(text)
        return Outcome(killer, how)
    if time.monotonic() >= deadline or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Outcome("time", f"no end after {limit} s of processor time")
    if os.WIFEXITED(status):
        raise RuntimeError(f"A mutant could not be tried: {mutant.path}:{mutant.line}, {mutant.operator}: see above")
    return Outcome("crash", f"signal {os.WTERMSIG(status)} ends the process")


def _read(pipe: int, deadline: float) -> bytes:
    text = b""
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([pipe], [], [], left)
        if ready:
            part = os.read(pipe, 65536)
            if not part:
                break
            text += part
    return text


def _run_child(pipe: int, limit: int, run: Callable[[], tuple[str | None, str]]) -> None:
    """Run it, write the outcome to the pipe, and end this process."""
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        found = run()
        os.write(pipe, json.dumps(found).encode())
        status = 0
    except BaseException:
        # The test code failed, not a table. This does not kill the mutant.
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)


def _caught(mutant: Mutant, logs: Sequence[Log], is_quick: bool) -> tuple[str | None, str]:
    # Garbage collection would touch, and therefore copy, all memory of the parent.
    gc.disable()
    install(mutant)
    killer, how = caught(net_of(mutant.path), logs, is_quick=is_quick)
    return killer, how[:500]
