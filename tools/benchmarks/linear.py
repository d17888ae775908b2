#!/usr/bin/env python3
"""Time decoding of committed offsets for increasing numbers of rows: into columns without Spark, and in Spark. See
`--help`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

import pyarrow.parquet as pq  # noqa: E402
from pyspark.sql import SparkSession  # noqa: E402

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey  # noqa: E402
from kafka_records.schemas.consumer_offsets import RECORDS  # noqa: E402
from kafka_records_codegen.evolution.kafka_releases import cache_folder  # noqa: E402
from kafka_records_engine.columns import decode_record_columns  # noqa: E402
from kafka_records_runtime.text.installing import install_command  # noqa: E402
from tools.benchmarks._figures import machine, positive, table, three_digits, versions  # noqa: E402
from tools.benchmarks._offset_commits import Mix, offset_commits  # noqa: E402
from tools.benchmarks._spark_contenders import ours  # noqa: E402
from tools.benchmarks._spark_runs import configured, evaluate, local_session  # noqa: E402

_EPILOG = """\
The rows are those of spark_decode.py. The engine decodes them on one core, a batch after the other; reading the files
is not counted, and its time is processor time of this thread. Spark reads the files itself, on two cores, and its time
is by the clock; a query over few rows is mostly start. Rounds go over all sizes; the best counts.

The last column is how many times longer each takes than the size above, against how many times more rows that is: 1
is linear.

examples:
  tools/benchmarks/linear.py                                    10^5 to 10^7 rows, in about ten minutes
  tools/benchmarks/linear.py --rows 100000,400000 --rounds 2    other sizes
  tools/benchmarks/linear.py --plot docs/img/linear.svg         draw the table, too; SVG, PNG, PDF by its ending
"""

_DISTRIBUTIONS: Final = ("kafka-records", "pyspark", "pyarrow", "numpy")
_TYPE: Final = OffsetCommitKey.RECORD_TYPE
_SCHEMAS: Final = {_TYPE: RECORDS[_TYPE]}
_FILE_BATCH: Final = 10_000


@dataclass
class Curve:
    """A way to decode, with the seconds of every round by number of rows."""

    name: str
    rounds: dict[int, list[float]] = field(default_factory=dict)

    def add(self, rows: int, seconds: float) -> None:
        self.rounds.setdefault(rows, []).append(seconds)

    def best(self, rows: int) -> float:
        return min(self.rounds[rows])

    def growth(self, rows: int, fewer: int) -> float:
        """The ratio of the times for `rows` and `fewer` rows, divided by the ratio of the rows. 1 means linear."""
        return self.best(rows) / self.best(fewer) / (rows / fewer)


class WrongRows(Exception):
    """The engine did not decode all rows. The text has the numbers."""


def engine_seconds(files: Sequence[Path], batch_rows: int) -> float:
    """Decode the key and value columns of `files`. Raises WrongRows if a row is missing."""
    seconds = 0.0
    rows = decoded = 0
    for keys, values in _batches(files, batch_rows):
        start = time.thread_time()
        found = decode_record_columns(_SCHEMAS, keys, values)
        seconds += time.thread_time() - start
        rows += len(keys)
        decoded += int(found.is_known.sum()) - len(found.errors)
    if decoded != rows:
        raise WrongRows(f"{decoded} of {rows} rows were decoded")
    return seconds


def _batches(files: Sequence[Path], batch_rows: int) -> Iterator[tuple[Any, Any]]:
    for file in files:
        for batch in pq.ParquetFile(file).iter_batches(batch_rows, columns=["key", "value"]):
            yield batch.column("key"), batch.column("value")


def measure_engine(files: Mapping[int, Sequence[Path]], rounds: int, batch_rows: int) -> Curve:
    """Measure all sizes, `rounds` times. Raises WrongRows."""
    line = Curve("engine, one core")
    for number in range(1, rounds + 1):
        for rows, paths in files.items():
            line.add(rows, engine_seconds(paths, batch_rows))
            tell(f"[{number}/{rounds}] {line.name}, {rows} rows: {line.rounds[rows][-1]:.2f} s")
    return line


def measure_spark(spark: SparkSession, files: Mapping[int, Sequence[Path]], rounds: int, batch_rows: int) -> Curve:
    """Measure all sizes, `rounds` times, after a query over the smallest size that is not timed."""
    line = Curve("Spark, local[2]")
    with configured(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": str(batch_rows)}):
        raw = {rows: spark.read.parquet(*map(str, paths)) for rows, paths in files.items()}
        evaluate(ours(raw[min(raw)]))
        for number in range(1, rounds + 1):
            for rows, df in raw.items():
                start = time.perf_counter()
                evaluate(ours(df))
                line.add(rows, time.perf_counter() - start)
                tell(f"[{number}/{rounds}] {line.name}, {rows} rows: {line.rounds[rows][-1]:.2f} s")
    return line


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


# ------------------------------------------------------------------------------------------------------------- output


def lines_table(lines: Sequence[Curve], sizes: Sequence[int]) -> str:
    cells = [["rows", *(head for line in lines for head in (f"{line.name}: s", "µs/row", "growth ÷ rows"))]]
    for fewer, rows in zip((None, *sizes), sizes, strict=False):
        row = [f"{rows:,}"]
        for line in lines:
            growth = "-" if fewer is None else three_digits(line.growth(rows, fewer))
            row += [three_digits(line.best(rows)), three_digits(line.best(rows) / rows * 1e6), growth]
        cells.append(row)
    return table(cells)


def draw(lines: Sequence[Curve], sizes: Sequence[int], path: Path) -> None:
    """Plot seconds over rows, both logarithmic. A line of slope 1 means linear time."""
    import matplotlib

    matplotlib.use("Agg")
    # So that the same figures produce the same bytes.
    matplotlib.rcParams["svg.hashsalt"] = "linear"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
    for line, marker in zip(lines, "os", strict=False):
        seconds = [line.best(rows) for rows in sizes]
        (drawn,) = axes.loglog(sizes, seconds, marker=marker, label=line.name)
        slope = [seconds[-1] * rows / sizes[-1] for rows in sizes]
        axes.loglog(sizes, slope, linestyle=":", linewidth=1, color=drawn.get_color())
    axes.set_xlabel("rows: committed offsets, key and value")
    axes.set_ylabel("seconds, best; dotted: exactly linear")
    axes.grid(which="both", alpha=0.25)
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata: dict[str, Any] = {"Date": None} if path.suffix == ".svg" else {}
    figure.savefig(path, dpi=150, metadata=metadata)
    pyplot.close(figure)


def as_json(lines: Sequence[Curve]) -> dict[str, Any]:
    """All figures, in seconds."""
    return {
        "machine": machine(),
        "versions": versions(_DISTRIBUTIONS),
        "lines": {
            line.name: {str(rows): [round(each, 4) for each in seconds] for rows, seconds in line.rounds.items()}
            for line in lines
        },
    }


# ------------------------------------------------------------------------------------------------------------ command


def _sizes(text: str) -> list[int]:
    return sorted({int(positive(int)(number)) for number in text.split(",")})


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--rows", type=_sizes, default="100000,300000,1000000,3000000,10000000", metavar="N[,N…]", help="sizes"
    )
    parser.add_argument("--rounds", type=positive(int), default=3, help="measurements of each (default: %(default)s)")
    parser.add_argument(
        "--batch-rows", type=positive(int), default=_FILE_BATCH, help="rows in a batch (default: %(default)s)"
    )
    parser.add_argument("--engine-only", action="store_true", help="leave Spark out")
    parser.add_argument("--data", type=Path, metavar="DIR", help="where the rows are kept (default: the cache folder)")
    parser.add_argument("--plot", type=Path, metavar="PATH", help="draw into this file; needs matplotlib")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write every figure to this file as well")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status: 1 if rows are not decoded."""
    options = _arguments(arguments)
    if options.plot and find_spec("matplotlib") is None:
        tell(
            f"--plot needs matplotlib, which is not installed: {install_command('bench')}"
        )  # check this before minutes are spent on measurements
        return 2
    folder = options.data or cache_folder() / "benchmarks"
    files = {rows: offset_commits(folder, rows, Mix()) for rows in options.rows}
    try:
        lines = [measure_engine(files, options.rounds, options.batch_rows)]
    except WrongRows as error:
        tell(str(error))
        return 1
    if not options.engine_only:
        with local_session() as spark:
            lines.append(measure_spark(spark, files, options.rounds, options.batch_rows))
    print(machine())
    print(", ".join(f"{name} {number}" for name, number in versions(_DISTRIBUTIONS).items()))
    print(f"best of {options.rounds} rounds, batches of {options.batch_rows} rows\n")
    print(lines_table(lines, options.rows))
    if options.json:
        options.json.write_text(json.dumps(as_json(lines), indent=1) + "\n", encoding="utf-8")
    if options.plot:
        draw(lines, options.rows, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
