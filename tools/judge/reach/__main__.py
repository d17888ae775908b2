"""Measure which branches of Kafka's coordinator classes the judge's histories reach. See `--help`."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools.broker import ROOT, MissingPrerequisite
from tools.java_compiler import CompileError
from tools.judge.coordinators import Coordinators, CoordinatorsError
from tools.judge.reach.jacoco import measured_program, report
from tools.judge.reach.measured import kept
from tools.judge.reach.page import page, without_reason
from tools.judge.rounds import written
from tools.kafka_releases import LATEST

RESULTS: Final = ROOT / "docs" / "judge-reach.json"
PAGE: Final = ROOT / "docs" / "judge-reach.md"

_EPILOG = """\
The judge's program runs under JaCoCo: coordinators write the histories of the seeds, load them whole, cut, cleaned and
with records lost, and answer. Nothing is compared. What the classes of the release ran through is kept in
docs/judge-reach.json, and docs/judge-reach.md is written from that for all releases that were measured;
$KAFKA_RECORDS_KAFKA names the release.

exit status: 0 there is a reason for all of replay and clean-up that is not reached, 1 not for all of it, or with
             --check the page is not what docs/judge-reach.json gives, 2 Java, Maven, a compiler or Kafka failed

examples:
  python -m tools.judge.reach 1-400
  KAFKA_RECORDS_KAFKA=4.4.0 python -m tools.judge.reach 1-400
  python -m tools.judge.reach --check
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.judge.reach",
        description="Measure which branches of Kafka's coordinator classes the judge's histories reach.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "seeds",
        nargs="?",
        type=_seeds,
        metavar="SEEDS",
        help="a range of numbers, such as 1-400; without it, only write the page",
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of processes (default: one per core)",
    )
    parser.add_argument(
        "--check", action="store_true", help="measure nothing; compare the page with the stored figures"
    )
    asked = parser.parse_args(arguments)
    results: dict[str, Any] = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if asked.check:
        if not PAGE.exists() or PAGE.read_text("utf-8") != page(results):
            _tell("docs/judge-reach.md is not what docs/judge-reach.json gives: run python -m tools.judge.reach")
            return 1
        return _told_without_reason(results)
    if asked.seeds:
        try:
            classes = measure(asked.seeds, max(1, asked.workers))
        except (MissingPrerequisite, FetchError, CompileError, CoordinatorsError) as error:
            _tell(str(error))
            return 2
        day = datetime.now(UTC).date().isoformat()
        results[LATEST] = {"first": asked.seeds[0], "last": asked.seeds[-1], "day": day, "classes": classes}
        results = dict(sorted(results.items()))
        RESULTS.write_text(json.dumps(results, separators=(",", ":")).replace('"unreached"', '\n"unreached"') + "\n")
    PAGE.write_text(page(results), encoding="utf-8")
    return _told_without_reason(results)


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    if not (first.isdecimal() and last.isdecimal() and int(first) <= int(last)):
        raise argparse.ArgumentTypeError(f"not a range of seeds, as 1-400: {text}")
    return range(int(first), int(last) + 1)


def _told_without_reason(results: dict[str, Any]) -> int:
    missing = list(without_reason(results))
    for each in missing:
        _tell(f"Not reached, and tools/judge/reach/reasons.py has no reason: {each}")
    return 1 if missing else 0


def measure(seeds: Sequence[int], workers: int) -> dict[str, Any]:
    """Measure the histories of some seeds with this number of processes. Returns the figures to store."""
    command = measured_program(_tell)
    with tempfile.TemporaryDirectory(prefix="reach-") as scratch:
        folders = [Path(scratch) / str(number) for number in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda number: _write(seeds[number::workers], folders[number], command), range(workers)))
        return kept(report(folders, _tell))


def _write(seeds: Iterable[int], folder: Path, command: list[str]) -> None:
    folder.mkdir()
    with Coordinators(folder, command) as coordinators:
        for seed in seeds:
            for _ in written(seed, coordinators):
                pass  # the coordinators have already run through everything
            for file in folder.glob("*.gz"):
                file.unlink()


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
