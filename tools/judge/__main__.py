"""Compare the tables with Kafka's coordinator classes on random histories. See `--help`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools.broker import MissingPrerequisite
from tools.java_compiler import CompileError
from tools.judge.compared_disappearances import precision_and_recall
from tools.judge.coordinators import CoordinatorsError, program
from tools.judge.ledger import Compared, Ledger
from tools.judge.rounds import Verdict, verdicts
from tools.judge.stopping import Stop

_EPILOG = """\
The history of a seed is what a group coordinator and a share coordinator of Kafka wrote while random clients called
them: the same in every run. Coordinators that loaded it up to some records, and once more as a log cleaner leaves it,
answer questions; the tables over the same records have to say the same: in the order of the log, in any order with
some records twice, and as of the time of a record.

A seed also draws which features its history has, so that rare ones meet (tools/judge/java/Feature.java). A difference
names them; --features takes the names, so that a history can be tried again with fewer. How often they meet is counted
by python -m tools.judge.swarm.

Some of the cleaned logs no coordinator of Kafka can load; those are counted and not compared. Each log is loaded once
more with records lost: of that it is compared whether a coordinator loads it (`checks, records lost`).

Prints a paragraph for each of the first 20 differences, then what was compared of each table and which rules about what
the log cannot tell it needed (tools/judge/answers.py has them), then one line on all of it. The files of a history with
differences stay in the folder of --keep, and all differences in its differences.txt; tests/data/README.md says what is
in them.

With --ledger a run goes on where an earlier one ended: the file has the seeds that made no difference and what was
compared of them, so that the last lines are about all of these. It is written every ten seconds, and when the run ends
or is told to (SIGINT, SIGTERM). It counts for nothing once a source of the tables or of the judge has changed, or the
release of Kafka.

exit status: 0 no difference, 1 differences, 2 Java, Maven, a compiler or Kafka's classes failed,
             128 and the number of the signal after SIGINT and SIGTERM

examples:
  python -m tools.judge 1-1000           the first thousand seeds
  python -m tools.judge 17 --keep /tmp   one history, kept if it differs
  python -m tools.judge 2000-12000 --ledger build/judge.json
  python -m tools.judge 17 --features consumer_groups,static_members
"""

_SECONDS_BETWEEN_LINES = 10
_PRINTED = 20
_DIFFERENCES = "differences.txt"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.judge",
        description="Compare the tables with Kafka's coordinator classes on random histories.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "seeds", nargs="+", type=_seeds, metavar="SEEDS", help="numbers from 0 on, or ranges such as 1-100"
    )
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="number of processes (default: one per core)",
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="folder for histories that differ (default: a new folder)"
    )
    parser.add_argument(
        "--ledger", type=Path, metavar="FILE", help="leave out the seeds in this file, and add those of this run"
    )
    parser.add_argument(
        "--features",
        default="",
        metavar="NAMES",
        help="what may happen in the histories, instead of what a seed draws",
    )
    asked = parser.parse_args(arguments)
    if asked.ledger and asked.features:
        parser.error("a ledger is of histories whose features are drawn: leave out --features or --ledger")
    ledger = Ledger(asked.ledger)
    seeds = ledger.left_of(seed for given in asked.seeds for seed in given)
    keep = asked.keep or Path(tempfile.mkdtemp(prefix="judge-"))
    keep.mkdir(parents=True, exist_ok=True)
    try:
        return _run(seeds, max(1, min(asked.workers, len(seeds))), keep, ledger, asked.features)
    except (MissingPrerequisite, FetchError, CompileError, CoordinatorsError) as error:
        _tell(str(error))
        return 2
    finally:
        if not asked.keep and not any(keep.iterdir()):
            keep.rmdir()


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    if not first.isdecimal() or (last and not last.isdecimal()) or text.endswith("-"):
        raise argparse.ArgumentTypeError(f"not a seed and no range of seeds: {text}")
    return range(int(first), int(last or first) + 1)


def _run(seeds: list[int], workers: int, keep: Path, ledger: Ledger, features: str) -> int:
    start = time.monotonic()
    earlier, judged = len(ledger), 0
    differing, found = Compared(), 0
    with Stop() as stop:
        try:
            for verdict in _reported(
                verdicts(seeds, workers, keep, program(_tell), features), len(seeds), ledger, stop
            ):
                judged += 1
                if not verdict.differences:
                    ledger.add(verdict.seed, verdict.compared)
                    continue
                differing.add(verdict.compared)
                for difference in verdict.differences[: max(0, _PRINTED - found)]:
                    print(difference, flush=True)
                with (keep / _DIFFERENCES).open("a", encoding="utf-8") as file:
                    file.writelines(f"{difference}\n" for difference in verdict.differences)
                found += len(verdict.differences)
        except BrokenProcessPool:
            # A signal to all processes of a group ends the others at once.
            if stop.signal is None:
                raise
        finally:
            ledger.write()
    minutes = (time.monotonic() - start) / 60
    if found > _PRINTED:
        print(f"… and {found - _PRINTED} differences more")
    if found:
        print(f"The histories that differ are in {keep}, all differences in {keep / _DIFFERENCES}")
    differing.add(ledger.compared)
    print(*differing.lines(), sep="\n")
    for table in ("disappearances", "share_disappearances"):
        for line in precision_and_recall(differing.of(table).noted):
            print(f"{table}, {line}")
    print(_summary(judged, earlier, differing.counts, found, minutes))
    if stop.signal:
        _tell(f"Stopped by {stop.signal.name}: {len(seeds) - judged} seeds were not judged")
        return 128 + stop.signal
    return 1 if found else 0


def _summary(seeds: int, earlier: int, counts: Counter[str], found: int, minutes: float) -> str:
    before = f" and {earlier} of earlier runs" if earlier else ""
    return (
        f"{seeds} seeds{before}, {counts['logs']} logs, {counts['moments']} moments, {counts['answers']} answers, "
        f"{counts['refused']} cleaned logs that Kafka does not load; {found} differences; "
        f"{minutes:.1f} minutes, {seeds / minutes:.0f} seeds a minute"
    )


def _reported(found: Iterable[Verdict], count: int, ledger: Ledger, stop: Stop) -> Iterator[Verdict]:
    """Reports progress now and then, and writes the ledger; ends early on request."""
    start = told = time.monotonic()
    differing = 0
    for number, verdict in enumerate(found, start=1):
        yield verdict
        differing += bool(verdict.differences)
        now = time.monotonic()
        if stop.signal:
            # Write it before waiting for the other processes, because the sender of the signal may not wait for long.
            ledger.write()
            return
        if now - told >= _SECONDS_BETWEEN_LINES:
            told = now
            ledger.write()
            rate = number / (now - start) * 60
            left = (count - number) / rate
            _tell(f"{number} of {count} seeds, {rate:.0f} a minute, {differing} differ, some {left:.0f} minutes to go")


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
