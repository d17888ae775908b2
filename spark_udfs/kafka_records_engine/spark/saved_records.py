"""Implements `read_records`, with which workers read and decode saved rows themselves, so that only decoded rows are
sent to the JVM.

`spark.read.parquet` and `decode_records` send every row to Python and back. Here, a task gets the name of a part of a
file, reads its columns in Python, and sends only decoded rows to the JVM.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import LongType, StructField, StructType

from kafka_records_engine.columns.framing_in_columns import type_column
from kafka_records_engine.findings import Finding
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.numpy_types import INT16
from kafka_records_engine.sources.saved_rows import FilePart, SavedRows
from kafka_records_engine.spark._secrets import hides_secrets
from kafka_records_engine.spark.decode import (
    Abouts,
    BatchDecoder,
    chosen_coordinates,
    chosen_records,
    decoded_schema,
)
from kafka_records_engine.spark.mapping import map_batches
from kafka_records_engine.spark.modes import FAILFAST, PERMISSIVE, Mode, checked_mode
from kafka_records_engine.spark.segments import DamagedLog
from kafka_records_engine.spark.workers import check_workers, is_connect
from kafka_records_runtime.records.framing import framing_of
from kafka_records_runtime.schema import RecordSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log: Final = logging.getLogger(__name__)
_NUMBERS: Final = StructType([StructField("id", LongType(), False)])
_MOST_OF_A_TASK: Final = 128 * 1024 * 1024
_LEAST_OF_A_TASK: Final = 4 * 1024 * 1024
"""The minimum number of file bytes for a task, as in Spark's own readers (spark.sql.files.maxPartitionBytes,
openCostInBytes)."""
_USUAL_CORES: Final = 16
"""The number of cores to assume if it cannot be queried."""
_PLACE: Final = ("topic", "partition", "offset")


def read_records(
    spark: SparkSession,
    paths: str | PathLike[str] | Sequence[str | PathLike[str]] | SavedRows,
    schemas: Mapping[int, RecordSchema],
    records: Iterable[str] | None = None,
    mode: str = PERMISSIVE,
    unknown_tags: bool = False,
    coordinates: Iterable[str] | None = None,
    abouts: Abouts | None = None,
    *,
    topic: str,
    show_secrets: bool = False,
) -> DataFrame:
    """Decode saved records of one topic in the workers. Rows are in no particular order.

    Returns the same rows as `decode_records(as_raw_rows(spark.read.parquet(…)), schemas, …)`, without sending raw rows
    from the JVM to Python. Rows are not filtered before they are read, except by their topic.

    Parameters
    ----------
    spark
        The session.
    paths
        Files or folders on a file system shared by driver and workers, as for `SavedRows`; or a `SavedRows`, which
        defines how columns are named and how strings encode bytes.
    schemas, records, mode, unknown_tags, coordinates, abouts, show_secrets
        As in `decode_records`, but the mode must be PERMISSIVE or FAILFAST.
    topic
        The topic. Rows of other topics are dropped; rows without a topic are assumed to belong to it.

    Returns
    -------
    DataFrame
        The result of `decode_records`. The driver inspects the files immediately, and every query reads them again.

    Raises
    ------
    LogSourceError
        Immediately, if paths do not exist, contain no rows or lack a column; in a worker, for unreadable rows.
    UnknownRecord, ColumnClash, UnsupportedType, ValueError, TypeError, WorkerPython
        Immediately, as in `decode_records`.
    UndecodableRecord, DamagedLog
        In a worker, under FAILFAST: for a record, or for a string that does not encode bytes. PERMISSIVE drops such a
        row and logs it in the task; `kafka_records_tables.read_table` says which row.

    Examples
    --------
    >>> from kafka_records.schemas.consumer_offsets import RECORDS
    >>> commits = read_records(spark, "saved", RECORDS, ["OffsetCommit"], topic="__consumer_offsets")
    >>> commits.select("offset", "offset_commit.key.group", "offset_commit.value.offset")
    DataFrame[offset: bigint, group: string, offset: bigint]
    """
    known = checked_mode(mode, (FAILFAST, PERMISSIVE))
    reader = RecordReader.of(schemas, records, known, unknown_tags, coordinates, topic, show_secrets)
    check_workers(spark)
    source = paths if isinstance(paths, SavedRows) else SavedRows(paths, topic)
    cores = _USUAL_CORES if is_connect(spark) else spark.sparkContext.defaultParallelism
    tasks = packed(source.parts(), cores)
    numbers = spark.range(0, len(tasks), 1, max(len(tasks), 1))
    return map_batches(numbers, _NUMBERS, RecordTasks(reader, tasks), reader.schema(abouts))


def packed(parts: Sequence[FilePart], cores: int) -> tuple[tuple[FilePart, ...], ...]:
    """Group parts of files by the task that reads them. Tasks are few enough to start quickly, but enough to keep all
    cores busy."""
    total = sum(part.size for part in parts)
    most = min(_MOST_OF_A_TASK, max(_LEAST_OF_A_TASK, total // max(cores, 1)))
    tasks: list[list[FilePart]] = []
    size = 0
    for part in parts:
        if not tasks or size + part.size > most:
            tasks.append([])
            size = 0
        tasks[-1].append(part)
        size += part.size
    return tuple(map(tuple, tasks))


@dataclass(frozen=True)
class RecordReader:
    """Reads parts of files and decodes their rows."""

    schemas: Mapping[int, RecordSchema]
    names: tuple[str, ...] | None
    """The requested records by name; None for all records, including control records and other types."""
    mode: Mode
    unknown_tags: bool
    coordinates: tuple[str, ...]
    topic: str
    hides: bool
    """Whether records may contain secrets that must be hidden."""

    @classmethod
    def of(
        cls,
        schemas: Mapping[int, RecordSchema],
        records: Iterable[str] | None,
        mode: Mode,
        unknown_tags: bool,
        coordinates: Iterable[str] | None,
        topic: str,
        show_secrets: bool = False,
    ) -> RecordReader:
        """Create a reader for these arguments. For invalid arguments, raises the errors of `decode_records`."""
        chosen = chosen_records(schemas, records)
        names = None if records is None else tuple(schema.name for schema in chosen.values())
        hides = hides_secrets(schemas, show_secrets)
        return cls(chosen, names, mode, unknown_tags, chosen_coordinates(coordinates), topic, hides)

    def schema(self, abouts: Abouts | None = None) -> StructType:
        """The columns of the result. Raises ColumnClash."""
        return decoded_schema(self.schemas.values(), self.unknown_tags, self.coordinates, abouts)

    def of_part(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        """The decoded rows of a part of a file."""
        decoder = BatchDecoder(self.schemas, self.mode, self.unknown_tags, self.coordinates, hides=self.hides)
        return decoder(self._raw(part))

    def _raw(self, part: FilePart) -> Iterator[pa.RecordBatch]:
        needed = {*self.coordinates, "key", "value", "control", "topic", *(_PLACE if self.mode == FAILFAST else ())}
        names = [name for name in RAW_SCHEMA.names if name in needed]
        types = np.array([*self.schemas], np.int16)
        for rows in part.batches(names, self._tell):
            kept = pc.equal(rows.column("topic"), self.topic)
            if self.names is not None:
                kept = pc.and_(kept, self._wanted(rows, types))
            if not pc.all(kept).as_py():
                rows = rows.filter(kept)
            if rows.num_rows:
                yield rows

    def _wanted(self, rows: pa.RecordBatch, types: INT16) -> pa.BooleanArray:
        """Flags for records of these types and records without a type, but not for control records."""
        numbers, has_type = type_column(framing_of(self.schemas), rows.column("key"), rows.column("value"))
        return pc.and_(pa.array(np.isin(numbers, types) | ~has_type), rows.column("control").is_null())

    def _tell(self, finding: Finding) -> None:
        if self.mode == FAILFAST:
            raise DamagedLog(str(finding))
        _log.warning("%s", finding)


@dataclass(frozen=True)
class RecordTasks:
    """The part of `read_records` that runs in workers. It gets the number of a task and returns its decoded rows."""

    reader: RecordReader
    tasks: Sequence[Sequence[FilePart]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for part in self.tasks[number]:
                    yield from self.reader.of_part(part)
