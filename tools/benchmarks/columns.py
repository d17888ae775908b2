#!/usr/bin/env python3
"""Time decoding into columns on one core, compared with decoding the same bytes row by row. See `--help`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from tools.benchmarks._column_batches import Batch, Case, cases  # noqa: E402
from tools.benchmarks._column_contenders import CONTENDERS, Decoder  # noqa: E402
from tools.benchmarks._column_proof import REFERENCE, proven, proven_reference  # noqa: E402
from tools.benchmarks._figures import chosen_cases, machine, pair, positive, table, versions  # noqa: E402
from tools.benchmarks._timing import ContenderError, Timing, figures, ratios, take_turns  # noqa: E402

OURS: Final = "columns"
_OTHERS: Final = [name for name in CONTENDERS if name != OURS]
_DISTRIBUTIONS: Final = ("kafka-records", "numpy", "pyarrow", "msgspec", "kio")

_NOTES: Final = "\n".join(f"  {name:<14}  {contender.note}" for name, contender in CONTENDERS.items())

_EPILOG: Final = f"""\
Each case is one batch of encoded rows: keys with the record type and values with the version in front, as they are
on a topic, or values alone. It is decoded by

{_NOTES}

Mind what a contender gives: "rows" ends with Python objects, which still have to become columns; its ratio is the
lowest price of row decoding and not that of a table. Row decoders start from lists of Python bytes, which are made
before the clock starts; uuids stay bytes in "rows", "rows → Arrow" and "kio → Arrow", and are spelled as text by the
others. Batches without broken rows go through plain comprehensions; with broken ones, every row is guarded, and the
schema walker words the errors of all but kio. Where kio ships no class it gets dataclasses of the form that its own
generator gives a spec.

Before a batch is timed, the objects of "rows" must write its bytes again and fail on the broken rows only, and
everybody else must give the same values; who does not is reported and not timed. Then rounds go over all contenders
in turn, so that a busy moment of the machine meets all of them; what counts is the processor time of this thread. The
garbage collector stays on, a result is dropped within the measured time, and the same bytes come again and again.

The table shows the time of "columns" in nanoseconds per row and, for everybody else, their time divided by it: above
1, columns are faster. Cells are best / median over the rounds; goals are for the best.

examples:
  tools/benchmarks/columns.py                                 everything, in a few minutes
  tools/benchmarks/columns.py --only GroupMetadata,Share      cases with one of these in their name
  tools/benchmarks/columns.py --batch-rows 1000 --rounds 51   small batches, more carefully
  tools/benchmarks/columns.py --json columns.json             all figures, in nanoseconds per row, also into a file
"""


@dataclass(frozen=True)
class Row:
    """One line of the table: a batch, timed for every contender that returned the right values."""

    case: Case
    rows: int
    size: int
    timings: tuple[Timing, ...]

    def ratios(self, contender: str) -> tuple[float, float] | None:
        """Best and median relative to `columns`; None if the contender was not timed."""
        return ratios(self.timings, contender, OURS)

    def cells(self) -> list[str]:
        ours = pair(figures(self.timings, OURS), 1e9 / self.rows)
        others = [pair(self.ratios(name)) for name in _OTHERS]
        return [self.case.name, str(self.rows), f"{self.size / self.rows:.0f}", ours, *others, self._goals()]

    def _goals(self) -> str:
        return ", ".join(f"{name} {goal:g} {self._verdict(name, goal)}" for name, goal in self.case.goals.items())

    def _verdict(self, contender: str, goal: float) -> str:
        reached = self.ratios(contender)
        return "-" if reached is None else "met" if reached[0] >= goal else "missed"

    def as_json(self) -> dict[str, Any]:
        return {
            "case": self.case.name,
            "rows": self.rows,
            "bytes": self.size,
            "goals": dict(self.case.goals),
            "nanoseconds_per_row": {each.contender: _nanoseconds(each, self.rows) for each in self.timings},
        }


def _nanoseconds(timing: Timing, rows: int) -> list[float]:
    return [round(seconds * 1e9 / rows, 2) for seconds in timing.rounds]


# ------------------------------------------------------------------------------------------------------------- timing


def proven_decoders(name: str, batch: Batch, report: Callable[[str], None]) -> dict[str, Decoder]:
    """The decoders of the contenders that can read the batch; `report` gets a line for each other contender."""
    try:
        reference, expected = proven_reference(CONTENDERS[REFERENCE], batch)
    except ContenderError as refused:
        report(f"nobody is timed on {name}: {REFERENCE} {refused}")
        return {}
    decoders = {}
    for contender, how in CONTENDERS.items():
        try:
            decoders[contender] = reference if contender == REFERENCE else proven(how, batch, expected)
        except ContenderError as refused:
            report(f"{contender} is not timed on {name}: {refused}")
    return decoders


def run_case(case: Case, rounds: int, seconds: float, report: Callable[[str], None]) -> Row:
    """Time one case."""
    batch = case.make()
    decoders = proven_decoders(case.name, batch, report)
    timings = [Timing(name, each.decode, each.argument) for name, each in decoders.items()]
    take_turns(timings, rounds, seconds)
    return Row(case, len(batch.values), batch.size, tuple(timings))


# ------------------------------------------------------------------------------------------------------------- output


def cases_table(rows: Sequence[Row]) -> str:
    """The cases as text."""
    heads = ["batch", "rows", "bytes per row", f"{OURS} (ns)", *(f"{name} ÷" for name in _OTHERS), "goals"]
    return table([heads, *(row.cells() for row in rows)])


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    """All figures, in nanoseconds per row."""
    return {
        "machine": machine(),
        "versions": versions(_DISTRIBUTIONS),
        "contenders": {name: contender.note for name, contender in CONTENDERS.items()},
        "batches": [row.as_json() for row in rows],
    }


# ------------------------------------------------------------------------------------------------------------ command


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Decode batches of encoded records into columns and, with other libraries, row by row.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--batch-rows", type=positive(int), default=10_000, help="rows of a batch (default: 10000)")
    parser.add_argument("--rounds", type=positive(int), default=15, help="measurements of each function (default: 15)")
    parser.add_argument(
        "--seconds", type=positive(float), default=0.03, help="length of one measurement, at least (default: 0.03)"
    )
    parser.add_argument("--only", metavar="TEXT[,TEXT…]", default="", help="cases whose name contains one of the texts")
    parser.add_argument("--json", metavar="PATH", type=Path, help="write every figure to this file as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    options = _arguments(arguments)
    chosen = chosen_cases(cases(options.batch_rows), options.only)
    if not chosen:
        return 2
    rows = tuple(_run(case, f"[{number}/{len(chosen)}]", options) for number, case in enumerate(chosen, 1))
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(_DISTRIBUTIONS).items()))
    print(f"best / median of {options.rounds} rounds, per row; right of columns: ", end="")
    print(f"their time ÷ that of columns, above 1 columns are faster\n\n{cases_table(rows)}\n")
    print("\n".join(f"{name}: {contender.note}" for name, contender in CONTENDERS.items()))
    if options.json:
        options.json.write_text(json.dumps(as_json(rows), indent=1) + "\n", encoding="utf-8")
    return 0


def _run(case: Case, progress: str, options: argparse.Namespace) -> Row:
    _say(f"{progress} {case.name}")
    return run_case(case, options.rounds, options.seconds, _say)


def _say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
