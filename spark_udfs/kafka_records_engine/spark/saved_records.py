"""`read_records`: saved rows that the workers read and decode themselves, so that they cross to the JVM once.

`spark.read.parquet` and `decode_records` send every row to Python and back. Here a task gets the name of a part of a
file, reads its columns in Python, and only decoded rows go to the JVM.
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
from kafka_records_runtime.framing import framing_of
from kafka_records_runtime.schema import RecordSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_log: Final = logging.getLogger(__name__)
_NUMBERS: Final = StructType([StructField("id", LongType(), False)])
_MOST_OF_A_TASK: Final = 128 * 1024 * 1024
_LEAST_OF_A_TASK: Final = 4 * 1024 * 1024
"""Bytes of files: as Spark cuts its own (spark.sql.files.maxPartitionBytes, openCostInBytes)."""
_USUAL_CORES: Final = 16
"""Used if the number cannot be queried."""
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
    """Decode saved records of one topic, read by the workers, in no particular order.

    The same rows as `decode_records(as_raw_rows(spark.read.parquet(…)), schemas, …)`, without the way of raw rows from
    the JVM to Python. Rows are not filtered before they are read, except by their topic.

    Parameters
    ----------
    spark
        The session.
    paths
        Files or folders on a file system that driver and workers share, as `SavedRows` takes them; or a `SavedRows`,
        which says what columns are called and how texts hold bytes.
    schemas, records, mode, unknown_tags, coordinates, abouts, show_secrets
        As `decode_records` has them; modes are PERMISSIVE and FAILFAST.
    topic
        The topic; rows of others are left out, and rows that name none are taken for its.

    Returns
    -------
    DataFrame
        The result of `decode_records`. The driver looks at the files now, and every query reads them again.

    Raises
    ------
    LogSourceError
        At once, for paths that are not there, hold no rows or lack a column; in a worker, for rows that cannot be read.
    UnknownRecord, ColumnClash, UnsupportedType, ValueError, TypeError, WorkerPython
        At once, as `decode_records` does.
    UndecodableRecord, DamagedLog
        In a worker, under FAILFAST: for a record, and for a text that holds no bytes. PERMISSIVE leaves such a row out
        with a line in the log of the task; `kafka_records_tables.read_table` says which.

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
    """Parts of files, grouped by the task that reads them: few enough tasks to start quickly, and enough to keep all
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
    """Reads parts of files, and decodes their rows."""

    schemas: Mapping[int, RecordSchema]
    names: tuple[str, ...] | None
    """The records that were asked for by name; None for all, with control records and those of other types."""
    mode: Mode
    unknown_tags: bool
    coordinates: tuple[str, ...]
    topic: str
    hides: bool
    """Whether there are secrets to hide."""

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
        """Raises what `decode_records` raises for arguments that do not fit."""
        chosen = chosen_records(schemas, records)
        names = None if records is None else tuple(schema.name for schema in chosen.values())
        hides = hides_secrets(schemas, show_secrets)
        return cls(chosen, names, mode, unknown_tags, chosen_coordinates(coordinates), topic, hides)

    def schema(self, abouts: Abouts | None = None) -> StructType:
        """The columns of the rows. Raises ColumnClash."""
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
        """Records of these types, and those that hold no type; no control records."""
        numbers, has_type = type_column(framing_of(self.schemas), rows.column("key"), rows.column("value"))
        return pc.and_(pa.array(np.isin(numbers, types) | ~has_type), rows.column("control").is_null())

    def _tell(self, finding: Finding) -> None:
        if self.mode == FAILFAST:
            raise DamagedLog(str(finding))
        _log.warning("%s", finding)


@dataclass(frozen=True)
class RecordTasks:
    """What a worker runs: the number of a task in, decoded rows out."""

    reader: RecordReader
    tasks: Sequence[Sequence[FilePart]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for part in self.tasks[number]:
                    yield from self.reader.of_part(part)
