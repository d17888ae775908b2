"""Runs Spark queries, discards their rows, and measures wall-clock and processor time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from pyspark.sql import DataFrame, SparkSession

SOURCES: Final = tuple(
    str(Path(__file__).resolve().parents[2] / name) for name in ("generated", "generator", "spark_udfs", "")
)
"""The paths from which workers import the modules of the driver."""


@contextmanager
def local_session(jars: Iterable[Path] = (), settings: Mapping[str, str] | None = None) -> Iterator[SparkSession]:
    """A session on two cores, without log output or web server. It is stopped at the end."""
    # The workers run this interpreter, but do not have its module path.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(SOURCES)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ.pop("SPARK_HOME", None)
    builder = SparkSession.builder.master("local[2]").appName("kafka-records benchmark")
    chosen = {
        "spark.driver.memory": "4g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.log.level": "ERROR",
        **(settings or {}),
    }
    if paths := ",".join(jar.as_uri() for jar in jars):
        chosen["spark.jars"] = paths
    for name, value in chosen.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


@contextmanager
def configured(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Apply settings to the session while the block runs."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, former in before.items():
            if former is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, former)


def evaluate(df: DataFrame) -> None:
    """Compute every column of every row, and discard the result."""
    df.write.format("noop").mode("overwrite").save()


@dataclass
class Timing:
    """A query, and the seconds of each of its rounds: wall clock, and all processors together."""

    name: str
    rows: int
    build: Callable[[], DataFrame]
    settings: Mapping[str, str] = field(default_factory=dict)
    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    def measure(self, spark: SparkSession) -> None:
        with configured(spark, self.settings):
            query = self.build()
            busy, start = processor_seconds(), time.perf_counter()
            evaluate(query)
            self.clock.append(time.perf_counter() - start)
            self.processor.append(processor_seconds() - busy)

    def forget_first(self) -> None:
        """Drop the first round, which is a warm-up."""
        del self.clock[0], self.processor[0]

    @property
    def rates(self) -> tuple[float, float]:
        """Rows per second: the best and the median."""
        return self.rows / min(self.clock), self.rows / median(self.clock)

    @property
    def costs(self) -> tuple[float, float]:
        """Processor seconds per row: the best and the median."""
        return min(self.processor) / self.rows, median(self.processor) / self.rows


def measure_in_turn(spark: SparkSession, timings: Iterable[Timing], rounds: int, tell: Callable[[str], None]) -> None:
    """Run rounds over all queries, so that a moment of high load affects all queries."""
    chosen = list(timings)
    for number in range(1, rounds + 1):
        for timing in chosen:
            timing.measure(spark)
            tell(f"[{number}/{rounds}] {timing.name}: {timing.clock[-1]:.1f} s")


def processor_seconds() -> float:
    """The processor time that this process and all processes it started (the JVM and Spark's workers) have used so far.

    Processes that have ended count once their parent has waited for them. 0 on a system without /proc.
    """
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name of the program, in parentheses, may contain anything.
            fields = entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue  # the process has ended in the meantime
        process = int(entry.parent.name)
        children.setdefault(int(fields[1]), []).append(process)
        ticks[process] = sum(map(int, fields[11:15]))
    if not ticks:
        return 0.0
    total, pending = 0, [os.getpid()]
    while pending:
        process = pending.pop()
        total += ticks.get(process, 0)
        pending += children.get(process, ())
    return total / os.sysconf("SC_CLK_TCK")
