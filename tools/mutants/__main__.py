"""Change the coordinator's rules and see whether histories of Kafka or our tests notice. See `--help`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools.broker import ROOT, MissingPrerequisite
from tools.java_compiler import CompileError
from tools.judge.coordinators import CoordinatorsError
from tools.mutants.drawing import Mutant, draw
from tools.mutants.nets import Log, Test, measured_tests, reaches, recorded_logs
from tools.mutants.results import Kept, Result, figures, reasons, survivor_lines
from tools.mutants.running import outcome_of
from tools.trust.figures import record

_EPILOG: Final = """\
A mutant is one small wrong change of a rule: another comparison, a condition negated, a statement dropped, a constant
plus or minus 1, None for a value that is returned. Kafka's coordinator classes write random histories once, as for
make judge, and answer for them; a mutant is killed if a table differs from the answers. What survives that is tried by
the tests of tests/tables that run the changed line. Time-outs count as killed.

Killed mutants are kept in build/mutants and not tried again as long as their module is the same. Survivors are printed
unless tools/mutants/reasons.json has a reason for them.

exit status: 0 every survivor has a reason, 1 one does not, 2 a prerequisite is missing

examples:
  python -m tools.mutants --count 60
  python -m tools.mutants --count 500 --seed 26 --record
"""

_FOLDER: Final = ROOT / "build" / "mutants"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants",
        description="Change the coordinator's rules and see whether histories of Kafka or our tests notice.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=60, metavar="N", help="how many mutants (default: 60)")
    parser.add_argument("--seed", type=int, default=26, metavar="N", help="which ones (default: 26)")
    parser.add_argument("--histories", type=int, default=16, metavar="N", help="histories of Kafka (default: 16)")
    parser.add_argument("--record", action="store_true", help="write the figures into docs/trust.json")
    asked = parser.parse_args(arguments)
    # A process of its own for each mutant is enough.
    pa.set_cpu_count(1)
    try:
        drawn, possible = draw(asked.count, asked.seed)
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            logs = recorded_logs(range(1, asked.histories + 1), Path(scratch), _tell)
            tests = measured_tests(_FOLDER / "tests")
            results = _run(drawn, logs, tests, Kept(_FOLDER / f"{asked.seed}.jsonl"))
    except (MissingPrerequisite, FetchError, CompileError, CoordinatorsError, ModuleNotFoundError) as error:
        _tell(f"{error}: install the extra mutants" if isinstance(error, ModuleNotFoundError) else str(error))
        return 2
    listed = reasons()
    print(*survivor_lines(results, listed), sep="\n")
    found = figures(results, possible, asked.seed, listed)
    print(*(f"{label}: {figure}" for label, figure in found.items()), sep="\n")
    if asked.record:
        record("mutants", found)
    return int(any(each.killer is None and each.key not in listed for each in results))


def _run(drawn: Sequence[Mutant], logs: Sequence[Log], tests: Sequence[Test], kept: Kept) -> list[Result]:
    results: list[Result] = []
    run = [*(log.lines for log in logs), *(test.lines for test in tests)]
    for number, mutant in enumerate(drawn, start=1):
        result = kept.of(mutant)
        if result is None:
            start = time.monotonic()
            is_reached = any(reaches(lines, mutant) for lines in run)
            outcome = outcome_of(mutant, logs, tests)
            result = Result(
                mutant.path, mutant.line, mutant.operator, *mutant.change(), outcome.killer, outcome.how, is_reached
            )
            kept.add(mutant, result)
            killed = f"killed by {outcome.killer}" if outcome.killer else "survives"
            _tell(f"{number} of {len(drawn)}: {mutant.path}:{mutant.line} {killed}, {time.monotonic() - start:.1f} s")
        results.append(result)
    _tell(str(dict(Counter(str(result.killer) for result in results))))
    return results


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
