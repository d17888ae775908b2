"""A program that kills runs of `take_snapshot` again and again while logs grow and are cleaned.

`python -m tests.sources.killed_runs ROOT KILLS SEED [state]`. At each moment of some logs, runs that add to the
snapshot in ROOT, or read tables with it as their state, are killed (SIGKILL after a random time, or before a random
operation on files), before one run may complete. Prints as JSON how many were killed, and how many were started.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow.parquet  # noqa: F401 (so that no child has to load it)

from kafka_records_engine.sources import compaction
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table, read_tables
from tests.sources.snapshot_logs import Logs, Moment, moments

HISTORIES: Final = ("0001", "0016", "0049")
STEPS: Final = frozenset({"open", "os.mkdir", "os.remove", "os.rename", "os.listdir"})
"""The audit events of Python about operations on files."""
MOST_STEPS: Final = 150
OF_STATE: Final = ("current_offsets", "pending_offsets", "members", "assignments")
"""Tables that do not depend on cleaners."""
Take = Callable[[Path, Logs], None]
FILE_BYTES: Final = 1
"""With this size, every piece of a log is a file, so that there are many operations."""


def states(seed: str) -> list[list[Moment]]:
    """The content of the partitions at each moment; those whose history has ended stay unchanged."""
    logs = [
        list(moments(name, Random(f"{name}-{seed}"), most=9, partition=number)) for number, name in enumerate(HISTORIES)
    ]
    found: list[list[Moment]] = []
    for together in zip_longest(*logs):
        found.append([now or found[-1][number] for number, now in enumerate(together)])
    return found


def source_at(state: list[Moment]) -> Logs:
    """The logs of the brokers."""
    return Logs(tuple(moment.live() for moment in state))


def take(root: Path, source: Logs) -> None:
    """Do one run. Raises AssertionError if there is a finding."""
    report = take_snapshot(source, root, file_bytes=FILE_BYTES)
    assert report.findings == [], [str(found) for found in report.findings]


def read_with_state(root: Path, source: Logs) -> None:
    """Do one run of tables with a state, which is compacted each time. Raises AssertionError if the rows differ from
    those without a state."""
    compaction.is_due = lambda stored: bool(stored.stretches)
    found = read_tables(OF_STATE, source, state=root)
    read_table("offset_commits", source, state=root)
    expected = read_tables(OF_STATE, source)
    for name in OF_STATE:
        assert found[name].table.equals(expected[name].table), name
        assert found[name].findings == ()


def run(root: Path, source: Logs, *, take: Take, delay: float | None = None, step: int | None = None) -> int | None:
    """Do one run in a child, which is killed after a delay or before a step. Returns the signal that ended it."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if step is not None:
                _end_at(step)
            take(root, source)
            status = 0
        finally:
            os._exit(status)
    if delay is not None:
        time.sleep(delay)
        os.kill(child, signal.SIGKILL)
    _, ended = os.waitpid(child, 0)
    if os.WIFSIGNALED(ended):
        return os.WTERMSIG(ended)
    assert os.WEXITSTATUS(ended) == 0
    return None


def _end_at(step: int) -> None:
    left = step

    def hook(event: str, _: Any) -> None:
        nonlocal left
        if event in STEPS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def main(root: Path, kills: int, seed: str, take: Take = take) -> None:
    """Kill this number of runs, spread over all moments."""
    chance = Random(seed)
    together = states(seed)
    started = died = 0
    begun = time.monotonic()
    for number, state in enumerate(together):
        source = source_at(state)
        due = kills * (number + 1) // len(together)
        took = 0.2
        while died < due and started < 5 * kills:
            started += 1
            if chance.random() < 0.5:
                ended = run(root, source, take=take, delay=chance.uniform(0, took))
            else:
                ended = run(root, source, take=take, step=chance.randrange(1, MOST_STEPS))
            died += ended == signal.SIGKILL
        assert run(root, source, take=take) is None
    print(json.dumps({"started": started, "died": died, "seconds": round(time.monotonic() - begun, 1)}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], read_with_state if "state" in sys.argv[4:] else take)
