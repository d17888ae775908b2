#!/usr/bin/env python3
"""Time `lag` of a running broker with a state directory: the first run, and runs after which nothing has changed.

The broker serves the commits of many groups from files that are written for this. Two things are timed: `read_table` in
this process, by the clock; and a whole run of the command, by its processor time, which includes the start of Python
and the output, but not the broker. The command prints twenty rows, or writes metrics to a file. First runs and later
runs of the command take turns. They are compared with the time that Python takes to start and to load numpy and pyarrow
alone. See `--help`.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from kafka_records_codegen.evolution.kafka_releases import FetchError  # noqa: E402
from kafka_records_engine.sources.live import LiveBrokers  # noqa: E402
from kafka_records_tables import read_table  # noqa: E402
from tools.benchmarks._figures import machine, table  # noqa: E402
from tools.benchmarks.lag_times import parser_of, write_directory  # noqa: E402
from tools.broker import BrokerError  # noqa: E402
from tools.serving import serving  # noqa: E402

GOAL: Final = 0.05
_SETTLING_SECONDS: Final = 20
"""Time for coordinators to load their logs."""
_BATCHES: Final = 5
"""The number of batches in each partition of a topic."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if answers differ, the goal is missed or there is no broker."""
    asked = parser_of(__doc__).parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="state-") as temporary:
        folder = Path(temporary)
        write_directory(folder / "data", asked.groups, asked.offsets, asked.partitions, _BATCHES)
        try:
            with serving(folder / "data", folder=folder / "broker") as broker:
                time.sleep(_SETTLING_SECONDS)
                return _measure(broker.bootstrap, folder, asked)
        except (BrokerError, FetchError) as failed:
            print(failed, file=sys.stderr)
            return 1


def _measure(bootstrap: str, folder: Path, asked: argparse.Namespace) -> int:
    def read(state: Path | None) -> Any:
        return read_table("lag", LiveBrokers(bootstrap), state=state)

    without, expected = _timed(lambda: read(None))
    first, found = _timed(lambda: read(folder / "state"))
    again = []
    for _ in range(asked.rounds):
        seconds, kept = _timed(lambda: read(folder / "state"))
        again.append(seconds)
        if not (kept.table.equals(expected.table) and found.table.equals(expected.table)):
            print("the answers differ", file=sys.stderr)
            return 1
    if expected.table.num_rows != asked.offsets:
        print(f"{expected.table.num_rows} rows", file=sys.stderr)
        return 1
    size = sum(file.stat().st_size for file in (folder / "state").rglob("*") if file.is_file())
    commands = [_of_command(bootstrap, folder / "of-the-command", words, asked.rounds) for words in _output(folder)]
    ratios = [min(again) / first, *(ratio for ratio, _ in commands)]
    rows = [
        ("", "without state", "first run", "nothing new, best / median", "ratio"),
        ("read_table", f"{without:.2f} s", f"{first:.2f} s", _best(again), f"{ratios[0]:.3f}"),
        *(row for _, row in commands),
        ("Python, numpy and pyarrow alone", "", "", _best([_used(_loaded) for _ in range(asked.rounds)]), ""),
    ]
    print(machine())
    print(f"{asked.groups} groups, {asked.offsets} offsets, {asked.partitions} partitions, {size / 1e6:.0f} MB kept\n")
    print(table(rows))
    verdict = "met" if max(ratios) <= GOAL else "missed"
    print(f"\ntime against that of the first run: at most {max(ratios):.3f}, goal {GOAL}: {verdict}")
    print(f"read_table against a run without state: {min(again) / without:.3f}")
    return 0 if max(ratios) <= GOAL else 1


def _best(seconds: Sequence[float]) -> str:
    return f"{min(seconds):.3f} / {median(seconds):.3f} s"


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = run()
    return time.perf_counter() - started, found


def _used(run: Callable[[], Any]) -> float:
    """The processor time of the programs that `run` starts, in seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _output(folder: Path) -> list[list[str]]:
    metrics = ["--sort=-lag", "--output", str(folder / "lag.prom"), "--overwrite"]
    return [["--sort=-lag", "--limit", "20"], metrics]


def _of_command(
    bootstrap: str, state: Path, words: list[str], rounds: int
) -> tuple[float, tuple[str, str, str, str, str]]:
    """The ratio of a later run of the command to a first run, and a row about it. The runs take turns."""
    first, again = [], []

    def run() -> None:
        _program("-m", "kafka_records_tables.commands.main", "table", "lag", "--bootstrap", bootstrap, *words,
                 "--state", str(state))  # fmt: skip

    for _ in range(rounds):
        shutil.rmtree(state, ignore_errors=True)
        first.append(_used(run))
        again.append(_used(run))
    shown = " ".join(word if "/" not in word else Path(word).name for word in words)
    ratio = min(again) / min(first)
    return ratio, (f"the command, {shown}", "", _best(first), _best(again), f"{ratio:.3f}")


def _loaded() -> None:
    _program("-c", "import numpy, pyarrow.compute")


def _program(*words: str) -> None:
    """Run Python with compiled modules, as in an installed package."""
    places = os.pathsep.join(place for place in sys.path if place)
    compiled = Path(tempfile.gettempdir()) / "kafka-records-bytecode"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": places, "PYTHONPYCACHEPREFIX": str(compiled)}
    subprocess.run([sys.executable, *words], check=True, capture_output=True, env=environment)


if __name__ == "__main__":
    sys.exit(main())
