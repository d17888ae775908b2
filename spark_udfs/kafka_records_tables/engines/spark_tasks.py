"""The functions that Spark's workers run. Each calls a table's function once per log partition.

Every class here is a function for `mapInArrow`. Classes over logs get one number per task, and read the log with that
number. Classes over rows get raw rows by partition and offset.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_engine.findings import Finding
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.coordinator.records.latest import Latest
from kafka_records_tables.coordinator.transactions import outside_transactions
from kafka_records_tables.engines.frames import portable
from kafka_records_tables.engines.joined_tables import read_here
from kafka_records_tables.engines.shared_reading import SharedReading
from kafka_records_tables.tables.table_reading import rows_of

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition, Source
    from kafka_records_tables.engines.log_tasks import LogTask
    from kafka_records_tables.engines.request import TableRequest

T = TypeVar("T")

FINDINGS: Final = pa.schema(
    [
        ("severity", pa.string()),
        ("reason", pa.string()),
        ("what", pa.string()),
        ("consequence", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("file", pa.string()),
        ("position", pa.int64()),
        ("base_offset", pa.int64()),
        ("record_type", pa.int16()),
        ("version", pa.int32()),
        ("path", pa.string()),
        ("byte_offset", pa.int64()),
        ("raw_key", pa.binary()),
        ("raw_value", pa.binary()),
        ("records", pa.int64()),
        ("bytes", pa.int64()),
        ("message", pa.string()),
    ]
)
"""The schema of findings, one per row: the members of `kafka_records_engine.findings.Finding`, and `message`, the one
line to print."""

FRAMES: Final = pa.schema([("kind", pa.string()), ("request", pa.int32()), ("content", pa.binary())])
"""The output of a `LogFrames` task, one frame per row: `rows` of the request with a number (an Arrow stream), `report`
(a pickled `TaskReport`) or `error` (a pickled exception)."""

_ROWS_PER_FRAME: Final = 65_536

_OF_TABLES: Final = (
    'mode "PERMISSIVE" returns the other rows, and kafka_records_tables.spark.findings or read_findings returns '
    "all findings"
)


class DamageFound(KafkaRecordsError, ValueError):
    """A query ended under FAILFAST because of damage. The text is that of the first such finding, and says what to
    do."""

    def __init__(self, finding: str, remedy: str = _OF_TABLES) -> None:
        super().__init__(finding, remedy)
        self.finding = finding
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.finding}; {self.remedy}"


class FailFast(Findings):
    """Findings of a reading that the first finding of damage ends."""

    def add(self, finding: Finding) -> None:
        """Report a finding. Raises DamageFound."""
        if finding.severity == "damage":
            raise DamageFound(str(finding))
        super().add(finding)


# -- over logs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogRows:
    """Rows of a table, with the columns `names`."""

    request: TableRequest
    logs: Sequence[LogPartition]
    names: Sequence[str]
    is_failfast: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for log in _of_numbers(batches, self.logs):
            yield from self.of(log)

    def of_view(self, source: Source) -> Iterator[pa.RecordBatch]:
        """The rows of a view. This task reads all its inputs."""
        for rows in read_here(self.request, source, FailFast if self.is_failfast else Findings):
            yield rows.select(self.names)

    def of(self, log: LogPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one log partition."""
        context = self.request.context(log.topic, log.partition, FailFast() if self.is_failfast else Findings())
        for rows in self.request.answer(log, context):
            yield rows.select(self.names)


@dataclass(frozen=True)
class LogFindings:
    """Findings of a table, with the columns FINDINGS."""

    request: TableRequest
    logs: Sequence[LogPartition]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for log in _of_numbers(batches, self.logs):
            context = self.request.context(log.topic, log.partition)
            for _ in self.request.answer(log, context):
                pass
            yield rows_of_findings(context.findings)


@dataclass(frozen=True)
class GivenFindings:
    """Findings that are already known, with the columns FINDINGS."""

    found: Sequence[Finding]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield rows_of_findings(self.found)


@dataclass(frozen=True)
class LogFrames:
    """Rows, findings and counts of one run, with the columns FRAMES.

    An exception is also returned as a frame, because if it ended the task, the driver would get only its traceback as
    text.
    """

    tasks: Sequence[LogTask]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for task in _of_numbers(batches, self.tasks):
            try:
                reading = SharedReading(task, _nobody_looks)
                for number, rows in reading.rows():
                    for start in range(0, rows.num_rows, _ROWS_PER_FRAME):
                        yield _frame("rows", stream_of(rows.slice(start, _ROWS_PER_FRAME)), number)
                yield _frame("report", pickle.dumps(reading.report()))
            except Exception as error:
                yield _frame("error", pickle.dumps(portable(error)))


def _nobody_looks(done: int) -> None:
    """Do nothing, because Spark counts the finished tasks itself."""


def _of_numbers(batches: Iterator[pa.RecordBatch], tasks: Sequence[T]) -> Iterator[T]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield tasks[number]


def _frame(kind: str, content: bytes, request: int | None = None) -> pa.RecordBatch:
    columns = [pa.array([kind]), pa.array([request], pa.int32()), pa.array([content], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=FRAMES)


def stream_of(rows: pa.RecordBatch) -> bytes:
    """A batch as an Arrow stream, which `pyarrow.ipc.open_stream` reads."""
    compression = "lz4" if pa.Codec.is_available("lz4") else None
    held = pa.BufferOutputStream()
    with pa.ipc.new_stream(held, rows.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as stream:
        stream.write_batch(rows)
    content: bytes = held.getvalue().to_pybytes()
    return content


def rows_of_findings(findings: Sequence[Finding]) -> pa.RecordBatch:
    """The findings as rows with the columns FINDINGS."""
    names = [name for name in FINDINGS.names if name != "message"]
    rows = [{**{name: getattr(each, name) for name in names}, "message": str(each)} for each in findings]
    return pa.RecordBatch.from_pylist(rows, schema=FINDINGS)


# -- over rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SortedRows:
    """Table rows with the columns `names`, from raw rows sorted by partition and offset."""

    request: TableRequest
    names: Sequence[str]
    is_failfast: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table, kind = self.request.table, FailFast if self.is_failfast else Findings
        for partition, rows in by_partition(batches):
            context = self.request.context(table.topic, partition, kind())
            for answer in rows_of(table, _each_offset_once(rows), context):
                yield answer.select(self.names)


@dataclass(frozen=True)
class SortedFindings:
    """Findings of a table, with the columns FINDINGS, from raw rows sorted by partition and offset."""

    request: TableRequest

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = self.request.table
        for partition, rows in by_partition(batches):
            context = self.request.context(table.topic, partition)
            for _ in rows_of(table, _each_offset_once(rows), context):
                pass
            yield rows_of_findings(context.findings)


@dataclass(frozen=True)
class LastOfKeys:
    """Raw rows in any order, without those that later rows make superfluous (`TableReader.last_of_key`).

    Rows that wait for the end of a transaction are kept, and so are control rows and keys without a record type. Raises
    UnknownTransactions in the same cases as the table.
    """

    request: TableRequest

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        table = self.request.table
        values: dict[int, Latest] = {}
        tombstones: dict[int, Latest] = {}
        for batch in batches:
            for partition, rows in _runs(_as_raw(batch)):
                is_tombstone = rows.column("value").is_null().to_numpy(zero_copy_only=False)
                _, has_type = prefix_column(rows.column("key"))
                if table.needs_transactions:
                    context = self.request.context(table.topic, partition)
                    settled = outside_transactions(rows, context)
                else:
                    settled = rows.column("control").is_null().to_numpy(zero_copy_only=False)
                settled = settled & has_type
                if not settled.all():
                    yield rows.filter(pa.array(~settled))
                for kept, which in ((values, settled & ~is_tombstone), (tombstones, settled & is_tombstone)):
                    if which.any():
                        latest = kept.setdefault(partition, Latest(rows.schema.names))
                        latest.add(rows if which.all() else rows.filter(pa.array(which)))
        for latest in (*values.values(), *tombstones.values()):
            yield latest.rows()


def _as_raw(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the types of raw rows, because a session may deliver large strings."""
    kinds = [RAW_SCHEMA.field(name).type for name in batch.schema.names]
    if [field.type for field in batch.schema] == kinds:
        return batch
    columns = [column.cast(kind) for column, kind in zip(batch.columns, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows, split where the partition changes."""
    if not batch.num_rows:
        return
    partitions = batch.column("partition").to_numpy()
    ends = [*(np.flatnonzero(np.diff(partitions)) + 1).tolist(), batch.num_rows]
    start = 0
    for end in ends:
        yield int(partitions[start]), batch.slice(start, end - start)
        start = end


def by_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, Iterator[pa.RecordBatch]]]:
    """Consecutive rows of each log partition, with the partition number."""
    runs: Any = (run for batch in batches for run in _runs(_as_raw(batch)))
    for partition, of_partition in groupby(runs, key=itemgetter(0)):
        yield partition, (rows for _, rows in of_partition)


def _each_offset_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one partition without repeated offsets. Rows with the same offset must be adjacent."""
    last = None
    for batch in batches:
        offsets = batch.column("offset").to_numpy()
        is_new = np.ones(len(offsets), np.bool_)
        is_new[1:] = offsets[1:] != offsets[:-1]
        is_new[0] = last is None or offsets[0] != last
        last = int(offsets[-1])
        kept = batch if is_new.all() else batch.filter(pa.array(is_new))
        if kept.num_rows:
            yield kept
