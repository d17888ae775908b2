#!/usr/bin/env python3
"""Time the import of one record module, compared with a bare interpreter. Both are started in turn; best and median."""

from __future__ import annotations

import argparse
import resource
import statistics
import subprocess
import sys

_EPILOG = """examples:
  tools/benchmarks/import_time.py
  tools/benchmarks/import_time.py --rounds 40 --module kafka_records.consumer_offsets.group_metadata
"""

GOAL_MS = 50


def main() -> int:
    """Print one line for each kind of start; returns 0."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20, help="starts of each (default: %(default)s)")
    parser.add_argument(
        "--module", default="kafka_records.consumer_offsets.offset_commit", help="what to import (default: %(default)s)"
    )
    asked = parser.parse_args()
    starts = {"bare interpreter": "pass", asked.module: f"import {asked.module}"}
    taken: dict[str, list[float]] = {name: [] for name in starts}
    for _ in range(asked.rounds):
        for name, statement in starts.items():
            taken[name].append(_milliseconds(statement))
    print(f"{asked.rounds} starts each, in turn; processor time in milliseconds, best / median")
    for name, figures in taken.items():
        print(f"{name:55} {min(figures):6.1f} / {statistics.median(figures):6.1f}")
    bare, loaded = taken.values()
    extra = min(loaded) - min(bare), statistics.median(loaded) - statistics.median(bare)
    print(f"{'the import':55} {extra[0]:6.1f} / {extra[1]:6.1f}   goal: below {GOAL_MS}")
    return 0


def _milliseconds(statement: str) -> float:
    """The processor time of a new interpreter that runs `statement`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


if __name__ == "__main__":
    sys.exit(main())
