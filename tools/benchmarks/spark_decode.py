#!/usr/bin/env python3
"""Time decoding of committed offsets in Spark, from Parquet, without output, compared with alternatives. See
`--help`."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from pyspark.sql import DataFrame, SparkSession  # noqa: E402
from pyspark.sql import functions as F  # noqa: E402, N812 (the name everybody gives it)

from kafka_records_codegen.evolution.kafka_releases import FetchError, cache_folder  # noqa: E402
from tools.benchmarks._figures import machine, pair, positive, table, three_digits, versions  # noqa: E402
from tools.benchmarks._java_udf import udf_jars  # noqa: E402
from tools.benchmarks._offset_commits import Mix, offset_commits  # noqa: E402
from tools.benchmarks._spark_contenders import CONTENDERS, Contender, register_java_udf  # noqa: E402
from tools.benchmarks._spark_runs import Timing, local_session, measure_in_turn  # noqa: E402
from tools.benchmarks._spark_steps import STEPS, Step, measure_steps, steps_table  # noqa: E402
from tools.java_compiler import CompileError  # noqa: E402

_EPILOG = f"""\
The contenders are {", ".join(CONTENDERS)}.

Two cores, local[2]. The rows are OffsetCommit records with all raw coordinates, half of their values in version 3 and
half in version 4; they are made once and stay in the cache folder ($KAFKA_RECORDS_CACHE). Every query reads them
from Parquet and writes to Spark's `noop` sink, which takes every column of every row.

Before anything is timed, all decoders give the same first rows, one by one, and the same checksum over all rows that
they are timed on. Then rounds go over all contenders in turn, so that a busy moment of the machine meets all of them.
Functions per row get fewer rows (--udf-rows); their rate is what counts. The Java UDF needs Maven, once, and a JDK;
without them it is left out, and that is said.

The table shows million rows per second by the clock, processor time (of the JVM and of all workers) per row, and the
rate divided by that of the scan, identity, ours, java and the two functions per row; cells are best / median over the
rounds.

--steps times, one by one, what may bring decode_records closer to an identity: how many rows are in a batch, which
columns go to Python, which shape comes back, and settings of Spark.

examples:
  tools/benchmarks/spark_decode.py                                      everything, in about a quarter of an hour
  tools/benchmarks/spark_decode.py --rows 1000000 --contenders identity,ours,java
  tools/benchmarks/spark_decode.py --set spark.sql.execution.arrow.maxBytesPerBatch=2147483647
  tools/benchmarks/spark_decode.py --steps --rows 2000000               the variations
  tools/benchmarks/spark_decode.py --steps batch,coordinates            those with one of these texts in their name
  tools/benchmarks/spark_decode.py --json spark.json                    all figures, in seconds, also into a file
"""

_DISTRIBUTIONS = ("kafka-records", "pyspark", "pyarrow", "numpy")
_COMPARED = ("scan", "identity", "ours", "java", "row udf", "arrow row udf")

GOALS = {
    ("ours", "identity"): 0.8,
    ("ours", "row udf"): 4.0,
    ("jvm", "scan"): 0.75,
    ("jvm", "java"): 1.4,
    ("jvm", "ours"): 4.0,
}
"""The goal of a contender compared with another one, as a ratio of rates."""


class Disagreement(Exception):
    """Two decoders return different rows. The text names them."""


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ---------------------------------------------------------------------------------------------------------- agreement


def check_agreement(contenders: Sequence[Contender], raw: DataFrame, rows: int) -> None:
    """Compare the results of all decoders for the first `rows` rows. Raises Disagreement."""
    expected: list[Any] = []
    for contender in contenders:
        found = contender.decoded(raw).where(F.col("offset") < rows).orderBy("offset").collect()
        if len(found) != rows:
            raise Disagreement(f"{contender.name} gives {len(found)} rows instead of {rows}")
        for row, other in zip(found, expected, strict=False):
            if row != other:
                raise Disagreement(f"{contender.name} gives {row}, {contenders[0].name} gives {other}")
        expected = expected or found


def checksum(contender: Contender, raw: DataFrame) -> tuple[int, int]:
    """The number of rows, and a checksum that changes with nearly any change of a value."""
    decoded = contender.decoded(raw)
    found = decoded.agg(F.count(F.lit(1)), F.bit_xor(F.xxhash64(*decoded.columns))).first()
    assert found is not None
    return found[0], found[1]


def check_checksums(contenders: Sequence[Contender], raw: DataFrame, rows: int) -> None:
    """Compare all decoders over all rows. Raises Disagreement."""
    expected: tuple[int, int] | None = None
    for contender in contenders:
        found = checksum(contender, raw)
        tell(f"checksum over {found[0]} rows: {found[1] & (1 << 64) - 1:016x} {contender.name}")
        if found[0] != rows:
            raise Disagreement(f"{contender.name} gives {found[0]} rows instead of {rows}")
        expected = expected or found
        if found != expected:
            raise Disagreement(f"{contender.name} and {contenders[0].name} give different rows")


# ------------------------------------------------------------------------------------------------------------- timing


def with_java(contenders: Sequence[Contender], scratch: Path) -> tuple[list[Contender], list[Path]]:
    """The contenders that can take part, and the jars with which Spark must be started for them."""
    java = CONTENDERS["java"]
    if java not in contenders:
        return [*contenders], []
    try:
        return [*contenders], udf_jars(scratch, tell)
    except (FetchError, CompileError) as error:
        tell(f"java is not timed: {error}")
        return [contender for contender in contenders if contender != java], []


@dataclass(frozen=True)
class Rows:
    """Raw rows: all of them, and a smaller number for functions that are called for each row."""

    spark: SparkSession
    folder: Path
    mix: Mix
    total: int
    few: int

    def of(self, contender: Contender) -> tuple[DataFrame, int]:
        count = self.few if contender.is_slow else self.total
        return self.read(count), count

    def read(self, count: int) -> DataFrame:
        return self.spark.read.parquet(*map(str, offset_commits(self.folder, count, self.mix)))


def run_contenders(rows: Rows, chosen: Sequence[Contender], rounds: int, sample: int) -> list[Timing]:
    """Time the contenders. Raises Disagreement if they return different rows."""
    decoders = [contender for contender in chosen if contender.structs]
    check_agreement(decoders, rows.read(rows.few), min(sample, rows.few))
    for is_slow in (False, True):
        equals = [each for each in decoders if each.is_slow == is_slow]
        if equals:
            reference = [each for each in decoders if not each.is_slow][:1] if is_slow else []
            raw, count = rows.of(equals[0])
            check_checksums([*reference, *equals], raw, count)
    timings = []
    for contender in chosen:
        raw, count = rows.of(contender)
        timings.append(Timing(contender.name, count, partial(contender.build, raw)))
    measure_in_turn(rows.spark, timings, rounds, tell)
    return timings


def ratios(timings: Sequence[Timing], other: str) -> dict[str, tuple[float, float]]:
    """The rates of all contenders divided by that of one of them: best and median. Empty if that one was not timed."""
    for rival in timings:
        if rival.name == other:
            best, middle = rival.rates
            return {timing.name: (timing.rates[0] / best, timing.rates[1] / middle) for timing in timings}
    return {}


def contenders_table(timings: Sequence[Timing]) -> str:
    compared = {other: found for other in _COMPARED if (found := ratios(timings, other))}
    lines = [["", "rows", "million rows/s", "processor µs/row", *(f"÷ {other}" for other in compared)]]
    for timing in timings:
        cells = [timing.name, str(timing.rows), pair(timing.rates, 1e-6), pair(timing.costs, 1e6)]
        lines.append([*cells, *(pair(found[timing.name]) for found in compared.values())])
    return table(lines)


def verdicts(timings: Sequence[Timing]) -> list[str]:
    """A line for each goal whose contenders were measured."""
    lines = []
    for (name, other), goal in GOALS.items():
        if (reached := ratios(timings, other).get(name)) is not None:
            verdict = "met" if reached[0] >= goal else "missed"
            lines.append(f"{name} ÷ {other}: {three_digits(reached[0])}, goal {goal:g} {verdict}")
    return lines


# ------------------------------------------------------------------------------------------------------------ command


def as_json(timings: Sequence[Timing]) -> dict[str, Any]:
    """All figures, in seconds."""
    return {
        "machine": machine(),
        "versions": versions(_DISTRIBUTIONS),
        "rows": [
            {
                "name": timing.name,
                "rows": timing.rows,
                "settings": dict(timing.settings),
                "clock": [round(seconds, 4) for seconds in timing.clock],
                "processor": [round(seconds, 2) for seconds in timing.processor],
            }
            for timing in timings
        ],
    }


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text} is not NAME=VALUE")
    return name, value


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Time decoding of committed offsets in Spark, from Parquet, without output, compared with other "
        "ways.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rows", type=positive(int), default=8_000_000, help="rows to decode (default: %(default)s)")
    parser.add_argument(
        "--udf-rows", type=positive(int), default=400_000, help="rows for functions per row (default: %(default)s)"
    )
    parser.add_argument("--rounds", type=positive(int), default=3, help="measurements of each (default: %(default)s)")
    parser.add_argument(
        "--sample", type=positive(int), default=10_000, help="rows to compare one by one (default: %(default)s)"
    )
    parser.add_argument("--v4", type=float, default=0.5, metavar="SHARE", help="values in version 4 (default: 0.5)")
    parser.add_argument(
        "--contenders", type=_names, metavar="NAME[,NAME…]", default=list(CONTENDERS), help="by default all"
    )
    parser.add_argument("--steps", nargs="?", const="", metavar="TEXT[,TEXT…]", help="time variations instead")
    parser.add_argument("--batch-rows", type=positive(int), metavar="N", help="rows in a batch (default: Spark's)")
    parser.add_argument(
        "--set", type=_setting, action="append", default=[], metavar="NAME=VALUE", help="a setting of the Spark session"
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the rows are kept (default: the cache folder)")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure to this file as well")
    options = parser.parse_args(arguments)
    for name in options.contenders:
        if name not in CONTENDERS:
            parser.error(f"no contender is called {name!r}; there are {', '.join(CONTENDERS)}")
    if options.steps is not None and not _chosen_steps(options.steps):
        parser.error(
            f"no step has {options.steps!r} in its name; there are\n  " + "\n  ".join(each.name for each in STEPS)
        )
    return options


def _chosen_steps(texts: str) -> list[Step]:
    return [step for step in STEPS if any(text in step.name for text in _names(texts))]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if decoders return different rows."""
    options = _arguments(arguments)
    settings = dict(options.set)
    if options.batch_rows:
        settings["spark.sql.execution.arrow.maxRecordsPerBatch"] = str(options.batch_rows)
    try:
        timings, text = (_time_contenders if options.steps is None else _time_steps)(options, settings)
    except Disagreement as error:
        tell(str(error))
        return 1
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(_DISTRIBUTIONS).items()))
    print(f"local[2], best / median of {options.rounds} rounds" + "".join(f", {n}={v}" for n, v in settings.items()))
    print(f"\n{text}")
    if options.json:
        options.json.write_text(json.dumps(as_json(timings), indent=1) + "\n", encoding="utf-8")
    return 0


def _time_contenders(options: argparse.Namespace, settings: Mapping[str, str]) -> tuple[list[Timing], str]:
    with tempfile.TemporaryDirectory() as scratch:
        chosen, jars = with_java([CONTENDERS[name] for name in options.contenders], Path(scratch))
        with local_session(jars, settings) as spark:
            if jars:
                register_java_udf(spark)
            timings = run_contenders(_rows(options, spark), chosen, options.rounds, options.sample)
    notes = [f"{contender.name}: {contender.note}" for contender in chosen]
    return timings, "\n".join([contenders_table(timings), "", *verdicts(timings), "", *notes])


def _time_steps(options: argparse.Namespace, settings: Mapping[str, str]) -> tuple[list[Timing], str]:
    chosen = _chosen_steps(options.steps)
    sessions: dict[tuple[tuple[str, str], ...], list[Step]] = {}
    for step in chosen:
        sessions.setdefault(tuple(step.session.items()), []).append(step)
    measured = []
    for own, steps in sessions.items():
        with local_session(settings={**settings, **dict(own)}) as spark:
            raw = _rows(options, spark).read(options.rows)
            measured += measure_steps(spark, raw, steps, options.rounds, tell)
    return [timing for each in measured for timing in (each.identity, each.decoder)], steps_table(measured)


def _rows(options: argparse.Namespace, spark: SparkSession) -> Rows:
    folder = options.data or cache_folder() / "benchmarks"
    return Rows(spark, folder, Mix(options.v4), options.rows, min(options.udf_rows, options.rows))


if __name__ == "__main__":
    sys.exit(main())
