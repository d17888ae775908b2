#!/usr/bin/env python3
"""Archives of the classes that brokers and Spark load, so that each start of them takes half the time. See `--help`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[1]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))  # Python puts the folder of a script on its path, not the root

from kafka_records_codegen.evolution.kafka_releases import FetchError, cache_folder  # noqa: E402

_EPILOG = """\
An archive is a file of Java's class-data sharing in the cache folder: for one release and one Java, and made once. A
JVM that finds other jars or is another Java ignores it.

exit status: 0, even if none can be made: tests run without
"""

_JVM: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

_SPARK_PROGRAM: Final = """\
from pyspark.sql import SparkSession
settings = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2", "spark.log.level": "ERROR"}
builder = SparkSession.builder.master("local[1]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.createDataFrame([(1, "a", b"x")], "number int, text string, bytes binary")
rows.createOrReplaceTempView("rows")
spark.sql("SELECT text, count(*), max(number) FROM rows GROUP BY text ORDER BY text").collect()
rows.mapInArrow(lambda batches: batches, rows.schema).collect()
spark.stop()
"""


def archive_options(what: str, release: str, java: str | None) -> list[str]:
    """The options with which a JVM loads its classes from the archive; empty if there is none."""
    archive = _place(what, release, java) if java else None
    if archive is None or not archive.is_file():
        return []
    # Otherwise a JVM would print to standard output why it cannot use an archive.
    return [f"-XX:SharedArchiveFile={archive}", "-Xlog:disable"]


def spark_options(java: str | None) -> list[str]:
    """The same as `archive_options`, for the driver of the installed PySpark."""
    try:
        found = archive_options("spark", version("pyspark"), java)
    except PackageNotFoundError:
        return []
    # Spark's scripts read their options from one variable, and split it at spaces.
    return [] if " " in "".join(found) else found


def _place(what: str, release: str, java: str) -> Path:
    program = Path(java).resolve()
    # Two builds of one Java may be installed at the same path, one after the other.
    return cache_folder() / "class_archives" / f"{what}-{release}-{int(program.stat().st_mtime)}.jsa"


def make(what: str, release: str, java: str, run: Callable[[], None]) -> bool:
    """Make an archive of the classes that a JVM loads, if it is missing; `run` starts and ends that JVM. Returns
    whether it was made."""
    place = _place(what, release, java)
    if place.is_file():
        return False
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as scratch:
        made = Path(scratch) / place.name
        os.environ["JDK_JAVA_OPTIONS"] = f"{_JVM} -XX:ArchiveClassesAtExit={made}"
        try:
            run()
        finally:
            del os.environ["JDK_JAVA_OPTIONS"]
        made.replace(place)
    return True


def _run_broker() -> None:
    from tools.broker import Broker

    with Broker():
        pass


def _run_spark() -> None:
    # The JVM has the same outputs and ends after Python. So when the outputs are closed, both have ended.
    subprocess.run([sys.executable, "-c", _SPARK_PROGRAM], capture_output=True, text=True, check=True)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="tools/class_archives.py",
        description="Make the archives that are missing.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.parse_args(arguments)
    from tools.broker import BrokerError, broker_jars, java
    from tools.kafka_releases import LATEST

    os.environ.pop("SPARK_HOME", None)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    try:
        program = java()
        broker_jars(print)
        makers = {"broker": (LATEST, _run_broker), "spark": (version("pyspark"), _run_spark)}
        for what, (release, run) in makers.items():
            if make(what, release, program, run):
                print(f"{_place(what, release, program)}: made")
    except (FetchError, BrokerError, subprocess.CalledProcessError, OSError) as error:
        print(f"No archive of classes, so brokers and Spark start as slowly as without: {error}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
