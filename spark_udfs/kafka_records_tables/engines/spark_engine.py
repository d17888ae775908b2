"""Computes tables with Spark, in one task per log partition. It runs the same function as the local engine, with the
same results."""

from __future__ import annotations

import logging
import pickle
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import LongType, StructField, StructType

from kafka_records_engine.spark.mapping import BatchFunction, map_batches
from kafka_records_engine.spark.spark_types import spark_schema
from kafka_records_engine.spark.workers import check_workers, is_connect
from kafka_records_tables.engines.spark_failures import SparkFailed, memory_ran_out
from kafka_records_tables.engines.spark_tasks import FRAMES, LogFrames
from kafka_records_tables.engines.spread_tasks import spread_by

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_records_tables.engines.log_tasks import LogTask, RunReports
    from kafka_records_tables.engines.request import OnProgress

_NUMBERS: Final = StructType([StructField("id", LongType(), False)])

_LOOK_EVERY: Final = 0.25
"""The number of seconds between two checks of how many tasks are done."""


def run(
    spark: SparkSession,
    tasks: Sequence[LogTask],
    reports: RunReports,
    *,
    on_progress: OnProgress | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of some tables over some log partitions, each with the index of its table, in no particular order, as
    returned by `engines.local.run`.

    The workers must see the same files. One job returns rows, findings and counts through the driver's memory.
    `kafka_records_tables.spark.read_table` returns a DataFrame instead, whose rows stay with the workers.

    Parameters
    ----------
    spark
        A session of classic Spark or of Spark Connect.
    tasks
        The log partitions to read, and the tables to compute.
    reports
        Receives the findings and counts.
    on_progress
        Called with the number of bytes read so far and the total number. The bytes of a log partition are counted once
        its task is done.

    Raises
    ------
    SparkFailed
        If Spark does not finish. If a worker or the JVM ended, the message names memory as a possible cause.
    Exception
        Any error of a table, from any task.
    """
    ordered = spread_by(tasks, lambda task: task.log)
    if not ordered:
        return
    frames = over_logs(spark, len(ordered), LogFrames(tuple(ordered)), spark_schema(FRAMES))
    try:
        with _no_noise(), _watched(spark, [task.log.size for task in ordered], on_progress):
            collected = frames.collect()
    except Exception as error:
        if isinstance(error, PySparkException) or memory_ran_out(error):
            raise SparkFailed(error) from error
        raise
    for row in collected:
        kind, content = row["kind"], bytes(row["content"])
        if kind == "rows":
            for batch in pa.ipc.open_stream(content):
                yield row["request"], batch
        elif kind == "report":
            reports.add(pickle.loads(content))
        else:
            raise pickle.loads(content)


def over_logs(spark: SparkSession, count: int, function: BatchFunction, returned: StructType) -> DataFrame:
    """The results of `function` for each number below `count`, each in a separate task."""
    check_workers(spark)
    return map_batches(spark.range(0, count, 1, max(count, 1)), _NUMBERS, function, returned)


@contextmanager
def _no_noise() -> Iterator[None]:
    """Keep Py4J from logging a traceback when Ctrl-C interrupts one of its calls."""

    def is_wanted(record: logging.LogRecord) -> bool:
        return not record.getMessage().startswith("KeyboardInterrupt while sending command")

    logging.getLogger().addFilter(is_wanted)
    try:
        yield
    finally:
        logging.getLogger().removeFilter(is_wanted)


@contextmanager
def _watched(spark: SparkSession, sizes: Sequence[int], on_progress: OnProgress | None) -> Iterator[None]:
    """Reports progress while a job runs. Spark reports how many tasks are done, and starts the largest first."""
    if on_progress is None or is_connect(spark):
        yield
        return
    context = spark.sparkContext
    group = f"kafka-records {uuid4()}"
    context.setJobGroup(group, "kafka-records", interruptOnCancel=True)
    done, total = threading.Event(), sum(sizes)

    def watch() -> None:
        while not done.wait(_LOOK_EVERY):
            on_progress(sum(sizes[: _tasks_done(context, group)]), total)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
        done.set()
        watcher.join()
        on_progress(total, total)
    finally:
        done.set()
        context._jsc.clearJobGroup()  # PySpark has no public method for this


def _tasks_done(context: Any, group: str) -> int:
    tracker = context.statusTracker()
    done = 0
    for job in tracker.getJobIdsForGroup(group):
        info = tracker.getJobInfo(job)
        for stage in info.stageIds if info is not None else ():
            about = tracker.getStageInfo(stage)
            done += about.numCompletedTasks if about is not None else 0
    return done
