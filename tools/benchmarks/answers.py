#!/usr/bin/env python3
"""Time the tables: compared with reading alone and with Kafka's dump tool, in Spark, and over logs of increasing size.
See `--help`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from kafka_records_codegen.evolution.kafka_releases import FetchError  # noqa: E402
from tools.benchmarks._answers_cases import (  # noqa: E402
    CASES,
    HEADS,
    Case,
    Judged,
    Logs,
    NotEnoughSpace,
    Sizes,
    Work,
    WrongAnswer,
    environment,
    make_case,
)
from tools.benchmarks._figures import machine, positive, table, versions  # noqa: E402
from tools.benchmarks._processes import ProgramFailed, Run, run_program  # noqa: E402
from tools.broker import MissingPrerequisite  # noqa: E402
from tools.segments.plan import PlanError  # noqa: E402
from tools.write_segments import shares  # noqa: E402

_DISTRIBUTIONS: Final = ("kafka-records", "numpy", "pyarrow", "pyspark")

_EPILOG: Final = """\
The cases:
  command          `kafka-records table …` of a captured topic, four of the tables, against `kafka-records dump` of it,
                   and the whole report as a page
  current_offsets  the table by the local engine, against the bare segment reader; and its memory
  groups           likewise
  spark            both tables by Spark on two cores, without its start, against the local engine
  dump-tool        segments to Arrow columns, against Kafka's own dump tool (without its start) on the same files
  columns          committed offsets decoded in columns, against our row codecs; columns.py has the rest
  growth           current_offsets over ever larger logs with as many keys: seconds and memory
  tables           every table over a log with records of every kind, against the bare segment reader; seconds and
                   memory over a hundredth of it, a tenth and all
  report           the tables of a report out of one reading, over the same log, against the bare segment reader of all
                   topics, and against the same tables one by one

Everything that is read was written by tools/write_segments.py, but for the captured topic, and lies in eight
partitions; two processes read it. Answers have to be what the writer says, or the run ends. Programs take turns, so
that a busy moment of the machine meets all of them. Cells are best / median over the rounds, goals are for the best.
"By processor" is the same ratio of the seconds that all processors together worked, which a busy machine disturbs
less. Memory is that of a program and all it starts, shared pages counted once (PSS), looked at twenty times per second.

examples:
  tools/benchmarks/answers.py                                        everything, in some twenty minutes
  tools/benchmarks/answers.py --only current_offsets,groups          some of the cases
  tools/benchmarks/answers.py --only growth --largest 10 --rounds 1  0.1 to 10 GB; needs 15 GB of disk
  tools/benchmarks/answers.py --only tables --rounds 2               in some ten minutes
  tools/benchmarks/answers.py --only report --records 2000000        in some ten minutes
  tools/benchmarks/answers.py --only groups --mix commits=97,group_metadata=2,consumer_members=1
  tools/benchmarks/answers.py --records 1000000 --keys 20000 --dump-records 100000 --json answers.json
"""


def take_turns(works: Sequence[Work], rounds: int) -> dict[str, list[Run]]:
    """Run every program once per round. Raises ProgramFailed, WrongAnswer."""
    runs: dict[str, list[Run]] = {work.name: [] for work in works}
    for number in range(1, rounds + 1):
        for work in works:
            run = run_program(work.command, cwd=ROOT, environment=environment(), says_json=work.says_json)
            work.check(run)
            runs[work.name].append(run)
            tell(f"[{number}/{rounds}] {work.name}: {run.seconds:.2f} s")
    return runs


def measure(cases: Sequence[Case], rounds: int) -> tuple[dict[str, list[Run]], list[Judged]]:
    """Run the programs of the cases, each once per round. Returns the runs by program, and the goals with their
    figures."""
    works = {work.name: work for case in cases for work in case.works}
    runs = take_turns(list(works.values()), rounds)
    return runs, [judged for case in cases for judged in case.judged(runs)]


def as_json(runs: dict[str, list[Run]], judged: Sequence[Judged]) -> dict[str, Any]:
    """All figures."""
    return {
        "machine": machine(),
        "versions": versions(_DISTRIBUTIONS),
        "goals": [asdict(each) for each in judged],
        "runs": {
            name: [{"seconds": run.seconds, "processor": run.processor, "memory": run.memory} for run in each]
            for name, each in runs.items()
        },
    }


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------------------------------------ command


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in CASES:
            raise argparse.ArgumentTypeError(f"{name!r} is no case; there are {', '.join(CASES)}")
    return names


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    number, amount = positive(int), positive(float)
    add = parser.add_argument
    add("--only", type=_names, default=list(CASES), metavar="CASE[,CASE…]", help="some of the cases")
    add("--records", type=number, default=20_000_000, metavar="N", help="of the large log (default: %(default)s)")
    add("--keys", type=number, default=200_000, metavar="N", help="of the large log (default: %(default)s)")
    add("--mix", type=shares, default={"commits": 1.0}, metavar="KIND=SHARE[,…]", help="records (default: commits)")
    add(
        "--dump-records",
        type=number,
        default=1_000_000,
        metavar="N",
        help="for the dump tool (default: %(default)s)",
    )
    add("--largest", type=amount, default=1.0, metavar="GB", help="largest log of growth (default: %(default)s)")
    add("--batch-rows", type=number, default=10_000, metavar="N", help="rows of a batch of columns (default: 10000)")
    add("--rounds", type=number, default=3, metavar="N", help="measurements of each program (default: %(default)s)")
    add(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where the logs are while this runs; made if it is missing (default: a temporary folder)",
    )
    add("--json", type=Path, metavar="PATH", help="write every figure to this file as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if something could not be measured or an answer was wrong."""
    options = _arguments(arguments)
    sizes = Sizes(options.records, options.keys, options.dump_records, options.largest, options.batch_rows)
    if options.folder:
        try:
            options.folder.mkdir(parents=True, exist_ok=True)
        except OSError as failed:
            tell(f"no logs can be written to {options.folder} ({failed.strerror}): choose another --folder")
            return 1
    with tempfile.TemporaryDirectory(prefix="answers-", dir=options.folder) as folder:
        try:
            logs = Logs(Path(folder), options.mix, tell)
            cases = [make_case(name, sizes, logs, options.rounds) for name in options.only]
            runs, judged = measure(cases, options.rounds)
        except (PlanError, NotEnoughSpace, MissingPrerequisite, FetchError, ProgramFailed, WrongAnswer) as failed:
            tell(str(failed))
            return 1
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(_DISTRIBUTIONS).items()))
    print(f"best / median of {options.rounds} rounds\n\n{table([HEADS, *(each.cells for each in judged)])}")
    if options.json:
        options.json.write_text(json.dumps(as_json(runs, judged), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
