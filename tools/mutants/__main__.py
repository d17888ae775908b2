"""Change the coordinator's rules, and check whether histories of Kafka or our tests detect it. See `--help`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from kafka_records_codegen.evolution.kafka_releases import FetchError
from tools.broker import ROOT, MissingPrerequisite
from tools.java_compiler import CompileError
from tools.judge.coordinators import CoordinatorsError
from tools.mutants.drawing import Mutant, draw, modules
from tools.mutants.nets import Log, caught, judged_logs, net_of_all, recorded_logs
from tools.mutants.results import Kept, Result, figures, reasons, survivor_lines
from tools.mutants.running import outcome_of
from tools.trust.figures import record

_EPILOG: Final = """\
A mutant is one small wrong change of a rule: another comparison, a condition negated, a statement dropped, a constant
plus or minus 1, None for a value that is returned. Each is tried in a forked process by the nets of its module
(tools/mutants/nets.py), the cheapest first: tables over logs that Kafka's coordinator classes wrote, compared with what
they answer; our own tests; some of the logs read in every way. The first net that notices a mutant kills it. Mutants
that do not end in time are run again; if they still do not end, they count as killed.

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
        description="Change the coordinator's rules, and check whether histories of Kafka or our tests detect it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--count", type=int, default=60, metavar="N", help="number of mutants (default: 60)")
    parser.add_argument("--seed", type=int, default=26, metavar="N", help="seed of the draw (default: 26)")
    parser.add_argument(
        "--histories", type=int, default=8, metavar="N", help="number of histories that the judge writes (default: 8)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="only recorded histories and short tests: a first run, without Java"
    )
    parser.add_argument("--record", action="store_true", help="write the figures into docs/trust.json")
    asked = parser.parse_args(arguments)
    # Each mutant already has a separate process.
    pa.set_cpu_count(1)
    try:
        drawn, possible = draw(asked.count, asked.seed)
        with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
            logs = recorded_logs()
            if not asked.quick:
                logs += judged_logs(range(1, asked.histories + 1), Path(scratch), _tell)
            # The nets must pass without a mutant. This also imports everything that the processes of mutants need.
            killer, how = caught(net_of_all(modules()), logs, is_quick=asked.quick)
            if killer is not None:
                _tell(f"Not run: without a mutant, {killer} fail: {how}")
                return 2
            results = _run(drawn, asked.count, logs, Kept(_FOLDER / f"{asked.seed}.jsonl"), is_quick=asked.quick)
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


def _run(drawn: Iterable[Mutant], count: int, logs: Sequence[Log], kept: Kept, *, is_quick: bool) -> list[Result]:
    results: list[Result] = []
    for number, mutant in enumerate(drawn, start=1):
        result = kept.of(mutant)
        if result is None:
            start = time.monotonic()
            outcome = outcome_of(mutant, logs, is_quick=is_quick)
            result = Result(mutant.path, mutant.line, mutant.operator, *mutant.change(), outcome.killer, outcome.how)
            kept.add(mutant, result)
            killed = f"killed by {outcome.killer}" if outcome.killer else "survives"
            _tell(f"{number} of {count}: {mutant.path}:{mutant.line} {killed}, {time.monotonic() - start:.1f} s")
        results.append(result)
    _tell(str(dict(Counter(str(result.killer) for result in results))))
    return results


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
