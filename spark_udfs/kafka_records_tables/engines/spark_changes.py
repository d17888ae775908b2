"""Computes in Structured Streaming how each micro-batch of raw rows changes the rows of a table.

`applyInPandasWithState`, available since PySpark 3.5, passes the state of one log partition from batch to batch.
Because pandas would turn nullable integers into floats, rows and state are passed as Arrow streams, one packet of rows
per binary cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.spark.mapping import map_batches
from kafka_records_engine.spark.spark_types import spark_schema
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.coordinator.records.latest import joined
from kafka_records_tables.engines.incremental import AS_OF_OFFSET, CHANGE, UPSERT, IncrementalTable, LogState, NewRows
from kafka_records_tables.engines.seen_offsets import IS_TOLD, SEEN, seen_of
from kafka_records_tables.engines.spark_rows import IS_NEEDED, all_rows, is_stream
from kafka_records_tables.engines.spark_schema import schema_of
from kafka_records_tables.engines.spark_tasks import FailFast, LastOfKeys, by_partition, stream_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables.declaration import Table

_PACKETS: Final = StructType(
    [StructField("partition", IntegerType()), StructField("rows", BinaryType()), StructField("seen", BinaryType())]
)
"""Packets of either raw rows or the offsets that were seen (`seen_offsets.SEEN`); the other column is null."""

_STATE: Final = StructType(
    [
        StructField("asked", StringType()),
        StructField("read_to", LongType()),
        StructField("since_ms", LongType()),
        StructField("written_ms", LongType()),
        StructField("rows", BinaryType()),
    ]
)
_CHANGES: Final = StructType([StructField("rows", BinaryType())])

_COMMENTS: Final = {
    CHANGE: "upsert: the row is new or has changed; delete: it no longer exists",
    AS_OF_OFFSET: "offset after the last record of the log partition that was read",
}
CHANGE_COLUMNS: Final = pa.schema(
    [
        pa.field(CHANGE, pa.string(), metadata={"comment": _COMMENTS[CHANGE]}),
        pa.field(AS_OF_OFFSET, pa.int64(), metadata={"comment": _COMMENTS[AS_OF_OFFSET]}),
    ]
)
"""The columns that precede the columns of the table."""

_ROWS_PER_PACKET: Final = 65_536

_BEFORE_ALL: Final = -1


class NoStream(KafkaRecordsError, TypeError):
    """Changes of a `table` were requested for a DataFrame that is not streaming."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"changes of {self.table} need a streaming DataFrame of raw rows (spark.readStream), but this one is "
            f'not: kafka_records_tables.spark.table(raw, "{self.table}") returns the rows'
        )


class OtherQuestion(KafkaRecordsError, ValueError):
    """The state in a checkpoint does not belong to the request `asked`."""

    def __init__(self, kept: str, asked: str) -> None:
        super().__init__(kept, asked)
        self.kept = kept
        self.asked = asked

    def __str__(self) -> str:
        return (
            f"the checkpoint has the state of {self.kept}, but the query asks for {self.asked}: give the query a new "
            f"checkpointLocation, so that it reads the log from its start"
        )


def changed_rows(
    raw: DataFrame, request: TableRequest, names: Sequence[str], is_failfast: bool, delete_retention_ms: int
) -> DataFrame:
    """CHANGE_COLUMNS and the columns `names` of each row that a micro-batch changes. Raises NoStream immediately."""
    table = request.table
    if not is_stream(raw):
        raise NoStream(table.name)
    rows, columns = all_rows(raw, request)
    packets = map_batches(rows, columns, Packets(request), _PACKETS)
    kind = FailFast if is_failfast else Findings
    going_on = IncrementalTable(request, kind, is_lenient=not is_failfast, delete_retention_ms=delete_retention_ms)
    told = packets.groupBy("partition").applyInPandasWithState(
        StateOfLog(going_on), _CHANGES, _STATE, "append", GroupStateTimeout.NoTimeout
    )
    returned = StructType([*spark_schema(CHANGE_COLUMNS), *schema_of(table, names)])
    return map_batches(told, _CHANGES, Unpacked(tuple(returned.names)), returned)


def merged_rows(told: DataFrame, table: Table, before: DataFrame | None) -> DataFrame:
    """The rows of a table after some changes: the last change of each row."""
    names = [CHANGE, AS_OF_OFFSET, *table.names]
    rows = told.select(*names)
    if before is not None:
        known = before.withColumns({CHANGE: F.lit(UPSERT), AS_OF_OFFSET: F.lit(_BEFORE_ALL)})
        rows = rows.unionByName(known.select(*names))
    last = F.max_by(F.struct(CHANGE, *table.names), F.col(AS_OF_OFFSET)).alias("last")
    kept = rows.groupBy(*table.identity).agg(last).where(F.col(f"last.{CHANGE}") == UPSERT)
    return kept.select(*(F.col(f"last.{name}").alias(name) for name in table.names))


@dataclass(frozen=True)
class Packets:
    """Raw rows in packets, each from one log partition, without rows that the table does not need, followed by the
    offsets of all rows. The input rows are those of `all_rows`."""

    request: TableRequest

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen: dict[int, list[pa.RecordBatch]] = {}
        rows = self._needed(batches, seen)
        if self.request.table.reader.last_of_key:
            rows = LastOfKeys(self.request)(rows)
        for batch in rows:
            for partition, part in _by_number(batch):
                yield _packet(partition, rows=stream_of(part.drop_columns(["partition"])))
        for partition, parts in seen.items():
            yield _packet(partition, seen=stream_of(joined(parts)))

    def _needed(
        self, batches: Iterator[pa.RecordBatch], seen: dict[int, list[pa.RecordBatch]]
    ) -> Iterator[pa.RecordBatch]:
        names = columns_of(self.request)
        for batch in batches:
            is_needed = batch.column(IS_NEEDED)
            numbers = batch.column("partition").to_numpy()
            places = batch.select(["offset", "timestamp_ms", IS_TOLD])
            for partition in np.unique(numbers).tolist():
                seen.setdefault(partition, []).append(seen_of(places.filter(pa.array(numbers == partition))))
            if (needed := batch.filter(is_needed).select(names)).num_rows:
                yield needed


def columns_of(request: TableRequest) -> list[str]:
    """The columns of raw rows that a table keeps."""
    names = {"partition", "offset", "key", "value", "control", *request.table.reads}
    return [name for name in RAW_SCHEMA.names if name in names]


def _by_number(batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each log partition, with the partition number."""
    order = np.argsort(batch.column("partition").to_numpy(), kind="stable")
    for partition, rows in by_partition(iter([batch.take(pa.array(order))])):
        for part in rows:
            yield partition, part


def _packet(partition: int, *, rows: bytes | None = None, seen: bytes | None = None) -> pa.RecordBatch:
    cells = {"rows": pa.array([rows], pa.binary()), "seen": pa.array([seen], pa.binary())}
    return pa.RecordBatch.from_pydict({"partition": pa.array([partition], pa.int32()), **cells})


@dataclass(frozen=True)
class StateOfLog:
    """Continues a log partition where the previous batch stopped, for `applyInPandasWithState`."""

    going_on: IncrementalTable

    def __call__(self, key: tuple[int], frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
        found: dict[str, list[pa.RecordBatch]] = {"rows": [], "seen": []}
        for frame in frames:
            for name, batches in found.items():
                batches += [rows for cell in frame[name] if cell is not None for rows in _batches(cell)]
        names = [name for name in columns_of(self.going_on.request) if name != "partition"]
        columns = pa.schema([RAW_SCHEMA.field(name) for name in names])
        asked = _asked(self.going_on.request, names)
        came = NewRows(
            pa.Table.from_batches(found["rows"]) if found["rows"] else columns.empty_table(),
            pa.Table.from_batches(found["seen"], SEEN),
            state.getCurrentProcessingTimeMs(),
        )
        now, told = self.going_on.step(int(key[0]), self._kept(state, asked), came)
        state.update((asked, now.read_to, now.since_ms, now.written_ms, stream_of(now.rows)))
        for start in range(0, told.num_rows, _ROWS_PER_PACKET):
            yield pa.table({"rows": [stream_of(told.slice(start, _ROWS_PER_PACKET))]}).to_pandas()

    def _kept(self, state: GroupState, asked: str) -> LogState | None:
        kept = state.getOption
        if kept is None:
            return None
        asked_then, read_to, since_ms, written_ms, content = kept
        if asked_then != asked:
            raise OtherQuestion(asked_then, asked)
        (rows,) = _batches(content)
        return LogState(int(read_to), rows, int(since_ms), int(written_ms))


def _asked(request: TableRequest, columns: Sequence[str]) -> str:
    """A text that identifies what the kept rows are for. It consists of names, because it is compared with the text of
    another version of this package."""
    question = request.question
    said: list[tuple[str, Any]] = [("table", request.table.name), ("form", request.table.reader.form_of_kept)]
    said += [("group", question.groups), ("assume", question.assume)]
    said += [("package", question.package), *question.options.items(), ("columns", ",".join(columns))]
    return " ".join(f"{name}={value!r}" for name, value in said if value is not None)


@dataclass(frozen=True)
class Unpacked:
    """The rows of packets, with the columns `names`."""

    names: tuple[str, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for cell in batch.column("rows"):
                for rows in _batches(cell.as_buffer()):
                    yield rows.select(self.names)


def _batches(content: Any) -> list[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = list(pa.ipc.open_stream(content))
    return batches
