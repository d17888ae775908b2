"""Reads log segment files as DataFrames; the workers read the files.

The driver only finds the log partitions and sends one row for each to the workers, which must have the same paths. One
task reads a log partition, because the marker that ends a transaction may be in a later file. The task lists the files
itself, because a live broker may replace them after the driver has listed them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pickle import dumps, loads
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import BinaryType, StructField, StructType

from kafka_records_engine import arguments
from kafka_records_engine.findings import Finding, members_of
from kafka_records_engine.log.reading.segment_files import (
    FoundLog,
    SegmentCounts,
    find_logs,
    read_partition,
    scan,
)
from kafka_records_engine.spark.mapping import map_batches
from kafka_records_engine.spark.modes import FAILFAST, PERMISSIVE, Mode, checked_mode
from kafka_records_engine.spark.raw import RAW_SCHEMA
from kafka_records_engine.spark.spark_types import spark_schema
from kafka_records_engine.spark.workers import check_workers
from kafka_records_runtime.errors import KafkaRecordsError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


PathOrLog = str | PathLike[str] | FoundLog

_LISTING: Final = StructType([StructField("log", BinaryType())])

_REPORT: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("file", pa.string()),
        ("base_offset", pa.int64()),
        ("log_start", pa.int64()),
        ("bytes", pa.int64()),
        ("batches", pa.int64()),
        ("records", pa.int64()),
        ("control_batches", pa.int64()),
        ("transactional_batches", pa.int64()),
        ("first_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("missing_offsets", pa.int64()),
        ("codecs", pa.map_(pa.string(), pa.int64())),
        ("formats", pa.map_(pa.int32(), pa.int64())),
        ("damaged", pa.bool_()),
        (
            "findings",
            pa.list_(
                pa.struct(
                    [
                        ("severity", pa.string()),
                        ("position", pa.int64()),
                        ("base_offset", pa.int64()),
                        ("records", pa.int64()),
                        ("bytes", pa.int64()),
                        ("message", pa.string()),
                    ]
                )
            ),
        ),
    ]
)


REPORT_SCHEMA: Final = spark_schema(_REPORT)
"""The schema of `segment_report`: one row per file. `findings` has an element per finding. Its `severity` is `damage`
or `note`, and its `message` is one line that names file, byte position and batch offset. `damaged` says whether there
is any damage."""


class DamagedLog(KafkaRecordsError, ValueError):
    """A query ended under FAILFAST at the first damage in a segment file (`finding`); the text says how to continue
    despite the damage."""

    def __init__(self, finding: str) -> None:
        super().__init__(finding)
        self.finding = finding

    def __str__(self) -> str:
        return f'{self.finding}; mode="PERMISSIVE" continues after damage, and segment_report lists all of it'


def read_segments(
    spark: SparkSession,
    paths: PathOrLog | Sequence[PathOrLog],
    topic: str | None = None,
    mode: str = FAILFAST,
    below_log_start: bool = False,
) -> DataFrame:
    """Read log segment files into raw rows.

    Parameters
    ----------
    spark
        The session.
    paths
        One or more data directories of a broker, partition folders (`<topic>-<partition>`) or `.log` files, on a file
        system shared by driver and workers; or log partitions returned by `log.reading.segment_files.find_logs`. Their
        files are listed each time they are read.
    topic
        Leaves out other topics.
    mode
        `FAILFAST` ends the query at the first damage (a wrong CRC, a truncated batch, an unknown codec, a file that is
        not a log segment), naming file, byte position and batch offset. `PERMISSIVE` continues with the next batch or
        file; `segment_report` lists what is lost. Zeros of a pre-allocated file and an append that a crash truncated at
        the end of a log are not damage.
    below_log_start
        Also read records below the raised start of a log (the broker's `log-start-offset-checkpoint`), which a broker
        no longer serves.

    Returns
    -------
    DataFrame
        Rows of `kafka_records_engine.spark.raw.RAW_SCHEMA`, including control records. Each use reads the files again,
        so persist it if it is used often.

    Raises
    ------
    LogSourceError
        Immediately, if paths do not exist or contain no log.
    TypeError
        Immediately, for anything that is not a path, and for other arguments of the wrong type.
    WorkerPython
        Immediately, if local workers would run a Python without this package.
    DamagedLog
        In a worker, under FAILFAST.

    Examples
    --------
    >>> raw = read_segments(spark, "/var/lib/kafka/data", topic="__consumer_offsets")
    >>> raw.groupBy("partition").count().show()
    """
    arguments.flag("below_log_start", below_log_start)
    reader = SegmentReader(checked_mode(mode, (FAILFAST, PERMISSIVE)), below_log_start)
    return map_batches(_listing(spark, paths, topic), _LISTING, reader, RAW_SCHEMA)


def segment_report(spark: SparkSession, paths: PathOrLog | Sequence[PathOrLog], topic: str | None = None) -> DataFrame:
    """The contents of log segment files and their problems: one row of `REPORT_SCHEMA` per file.

    `spark`, `paths` and `topic` are as in `read_segments`. Every file is read to its end. Damage does not raise an
    error, because the report lists it.
    """
    return map_batches(_listing(spark, paths, topic), _LISTING, report_batches, REPORT_SCHEMA)


def _listing(spark: SparkSession, paths: PathOrLog | Sequence[PathOrLog], topic: str | None) -> DataFrame:
    arguments.session("spark", spark)
    if topic is not None:
        arguments.text("topic", topic)
    check_workers(spark)
    rows = [(dumps(log),) for log in _found(paths, topic)]
    listing = spark.createDataFrame(rows, _LISTING)
    return listing.repartition(max(len(rows), 1))


def _found(paths: PathOrLog | Sequence[PathOrLog], topic: str | None) -> list[FoundLog]:
    sources = [paths] if isinstance(paths, str | PathLike | FoundLog) else paths
    if not isinstance(sources, Iterable):
        raise TypeError(f"paths must be one path or several, not {paths!r}")
    found: list[FoundLog] = []
    places: list[str] = []
    for source in sources:
        if isinstance(source, FoundLog):
            found.append(source)
        elif isinstance(source, str | PathLike):
            places.append(str(source))
        else:
            raise TypeError(f"paths contains {source!r}, which is not a path")
    if places or not found:
        found += find_logs(places, topic)
    return [log for log in found if topic in (None, log.topic)]


def _logs(batches: Iterator[pa.RecordBatch]) -> Iterator[FoundLog]:
    for batch in batches:
        for pickled in batch.column("log").to_pylist():
            yield loads(pickled)


@dataclass(frozen=True)
class SegmentReader:
    """The part of `read_segments` that runs in workers. It gets log partitions and returns raw rows."""

    mode: Mode
    below_log_start: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for log in _logs(batches):
            yield from self.rows(log)

    def rows(self, log: FoundLog) -> Iterator[pa.RecordBatch]:
        """The raw rows of one log partition."""
        return read_partition(log, below_log_start=self.below_log_start, on_finding=self._on_finding)

    def _on_finding(self, finding: Finding) -> None:
        if self.mode == FAILFAST and finding.severity == "damage":
            raise DamagedLog(str(finding))


def report_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The part of `segment_report` that runs in workers."""
    for log in _logs(batches):
        rows = [_report_row(log, stats) for stats in scan(log)]
        yield pa.RecordBatch.from_pylist(rows, schema=_REPORT)


def _report_row(log: FoundLog, stats: SegmentCounts) -> dict[str, Any]:
    counted = (
        "file",
        "base_offset",
        "log_start",
        "bytes",
        "batches",
        "records",
        "control_batches",
        "transactional_batches",
        "first_offset",
        "last_offset",
        "missing_offsets",
    )
    return {
        "topic": log.topic,
        "partition": log.partition,
        **{name: getattr(stats, name) for name in counted},
        "codecs": sorted(stats.codecs.items()),
        "formats": sorted(stats.magics.items()),
        "damaged": any(finding.severity == "damage" for finding in stats.findings),
        "findings": [{**members_of(finding), "message": str(finding)} for finding in stats.findings],
    }
