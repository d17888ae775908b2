"""The program that these tests submit: it decodes a captured topic on the workers and writes down what came of it.

    job.py REPORT SEGMENTS STEP...

Steps, done in this order: `set:NAME=VALUE` (a property; those before any other step belong to the session's start),
`pyfile:PATH`, `archive:PATH`, `decode`, and `rows:PATH`, which decodes a folder of Parquet files with raw rows in the
JVM. The report is a JSON list with an element per decoding: what was decoded, for `decode` the worker it ran in, or the
text of its failure. It is alone, as a user's script does: nothing of the tests is on its path.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def started(properties: list[str]) -> SparkSession:
    builder = SparkSession.builder.appName("kafka-records on a cluster")
    for name, _, value in (item.partition("=") for item in properties):
        builder = builder.config(name, value)
    return builder.getOrCreate()


def send(spark: SparkSession, kind: str, path: str) -> None:
    if type(spark).__module__.startswith("pyspark.sql.connect."):
        spark.addArtifacts(path, pyfile=kind == "pyfile", archive=kind == "archive")
    elif kind == "pyfile":
        spark.sparkContext.addPyFile(path)
    else:
        spark.sparkContext.addArchive(path)


def decoded(spark: SparkSession, segments: str) -> DataFrame:
    # The driver of a job has the package, installed or from the wheel, but only once --py-files are on its path.
    from kafka_records.spark.consumer_offsets import decode_records
    from kafka_records_engine.spark.segments import read_segments

    return decode_records(read_segments(spark, segments, topic="__consumer_offsets"))


def decoded_in_jvm(spark: SparkSession, folder: str) -> DataFrame:
    from kafka_records.spark.consumer_offsets import decode_records

    return decode_records(spark.read.parquet(folder), engine="jvm")


def contents(rows: DataFrame) -> dict[str, Any]:
    """Records by type, and every decoded commit, in the form of `expected_contents`."""
    found = (
        rows.where("error is null")
        .selectExpr(
            "record_type",
            "offset_commit.value is not null",
            "partition",
            "offset",
            "offset_commit.key.group",
            "offset_commit.key.topic",
            "offset_commit.key.partition as of_partition",
            "offset_commit.value.offset as committed",
        )
        .collect()
    )
    return {
        "counts": Counter(str(row[0]) for row in found),
        "commits": sorted([*row[2:]] for row in found if row[1]),
    }


def worker(spark: SparkSession) -> dict[str, Any]:
    """A description of the worker that has just decoded. It is reused, because there is only one core."""

    # This function is local, so that it is pickled by value: workers do not have this file.
    def describe(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import importlib
        import json
        import os
        import sys

        loaded = sorted(sys.modules)
        failures = {}
        for name in ("msgspec", "pandas", "google_crc32c"):
            try:
                importlib.import_module(name)
            except ImportError as error:
                failures[name] = str(error)
        package = importlib.import_module("kafka_records_engine")
        facts = {
            "python": sys.executable,
            "prefix": sys.prefix,
            "folder": os.getcwd(),
            "package": package.__file__,
            "loaded": loaded,
            "failures": failures,
        }
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"facts": [json.dumps(facts)]})

    (row,) = spark.range(1, numPartitions=1).mapInArrow(describe, "facts string").collect()
    facts: dict[str, Any] = json.loads(row.facts)
    return facts


def main(report: str, segments: str, *steps: str) -> None:
    first = next((at for at, step in enumerate(steps) if not step.startswith("set:")), len(steps))
    spark = started([step.removeprefix("set:") for step in steps[:first]])
    outcomes: list[dict[str, Any]] = []
    for step in steps[first:]:
        kind, _, argument = step.partition(":")
        try:
            if kind == "decode":
                outcomes.append({"contents": contents(decoded(spark, segments)), "worker": worker(spark)})
            elif kind == "rows":
                outcomes.append({"contents": contents(decoded_in_jvm(spark, argument))})
            elif kind == "set":
                name, _, value = argument.partition("=")
                spark.conf.set(name, value)
            else:
                send(spark, kind, argument)
        except Exception as failure:  # an error of Spark, py4j or a worker; the test expects one of them
            outcomes.append({"failure": str(failure)})
    Path(report).write_text(json.dumps(outcomes), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
