"""Prepares a DataFrame of raw rows for a table: drops rows that are not needed, and sorts the others in log order.

A topic may have billions of rows, and each row sent to Python or between machines has a cost. Types and groups are
selected in the JVM. If a later record of a key makes earlier ones superfluous (`TableReader.last_of_key`), the task
that reads the rows drops the earlier ones before the shuffle. Two alternatives took longer: `max(offset)` per key in
the JVM with a join, which reads twice, and a shuffle of all rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)
from pyspark.sql.types import BooleanType, StructType

from kafka_records_engine import arguments
from kafka_records_engine.spark.decode import chosen_records
from kafka_records_engine.spark.framing_in_jvm import begins_with, has_record_type, is_unframed, prefix_bytes
from kafka_records_engine.spark.mapping import map_batches
from kafka_records_engine.spark.raw import RAW_SCHEMA, absent_columns, raw_rows
from kafka_records_engine.spark.workers import check_workers, is_connect
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.coordinator.transactions import UNKNOWN, UnknownTransactions
from kafka_records_tables.engines.seen_offsets import IS_TOLD
from kafka_records_tables.engines.spark_tasks import LastOfKeys

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from kafka_records_runtime.schema import RecordSchema
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables.declaration import Table


class StreamGiven(KafkaRecordsError, TypeError):
    """A streaming DataFrame was passed to a function that returns a whole table."""

    def __init__(self, table: str) -> None:
        super().__init__(table)
        self.table = table

    def __str__(self) -> str:
        return (
            f"{self.table} needs a log from its start, but a streaming DataFrame returns it in pieces: "
            f'kafka_records_tables.spark.changes(raw, "{self.table}") returns what each piece changes in the table; or '
            "save the raw rows of the stream, and build the table from all saved rows"
        )


_LOG_ORDER: Final = ("partition", "offset")

IS_NEEDED: Final = "is_needed"
"""The column that `all_rows` adds: whether the table needs the content of a row."""


def in_log_order(raw: DataFrame, request: TableRequest) -> tuple[DataFrame, StructType]:
    """The raw rows that a table needs, and their columns. Each partition is in a single task, sorted by offset.

    Raises StreamGiven, MissingColumn, WrongColumnType and UnknownTransactions immediately.
    """
    arguments.frame("raw", raw)
    refuse_stream(raw, request.table)
    # Only all rows together show which part of the log was cleaned, and which offset corresponds to the time `as_of`.
    needs_all = request.table.is_history or request.question.as_of_ms is not None
    rows, columns = needed_rows(raw, request, needs_all=needs_all)
    return rows.repartition("partition").sortWithinPartitions(*_LOG_ORDER), columns


def all_rows(raw: DataFrame, request: TableRequest) -> tuple[DataFrame, StructType]:
    """All raw rows of the topic of a table, in any order, with the columns that the table reads, `timestamp_ms`,
    IS_NEEDED and IS_TOLD. Rows that the table does not need are empty. Raises the errors of `needed_rows`."""
    return _with_columns(raw, request, ("timestamp_ms",), marks=True)


def needed_rows(raw: DataFrame, request: TableRequest, *, needs_all: bool) -> tuple[DataFrame, StructType]:
    """The raw rows that a table needs, in any order, and their columns. With `needs_all`, they include all rows of the
    topic, and those not needed are empty. Raises MissingColumn, WrongColumnType and UnknownTransactions immediately."""
    more = () if request.question.as_of_ms is None else ("timestamp_ms",)
    return _with_columns(raw, request, more, needs_all=needs_all)


def _with_columns(
    raw: DataFrame, request: TableRequest, more: Iterable[str], *, needs_all: bool = True, marks: bool = False
) -> tuple[DataFrame, StructType]:
    table = request.table
    check_workers(raw.sparkSession)
    names = {*_LOG_ORDER, "key", "value", "control", *table.reads, *more}
    columns = StructType([field for field in RAW_SCHEMA.fields if field.name in names])
    rows = raw_rows(raw).where(F.col("topic") == table.topic)
    if not is_connect(raw.sparkSession):
        refuse_unknown_transactions(
            table, request.question.assume, tells_transactions=not {"transaction", "producer_id"} <= absent_columns(raw)
        )
    for name in _LOG_ORDER:
        rows = rows.withColumn(name, _required(name, table))
    wanted = _is_wanted(request)
    if marks:
        rows = rows.withColumns({IS_NEEDED: wanted, IS_TOLD: _is_told()})
        columns = columns.add(IS_NEEDED, BooleanType()).add(IS_TOLD, BooleanType())
        wanted = F.col(IS_NEEDED)
    if needs_all:
        rows = rows.withColumns(
            {
                "key": F.when(wanted, F.col("key")).otherwise(prefix_bytes(F.col("key"))),
                "value": F.when(wanted, F.col("value")),
            }
        )
    else:
        rows = rows.where(wanted)
        if table.reader.last_of_key:
            rows = map_batches(rows, columns, LastOfKeys(request), columns)
    return rows.select(*columns.names), columns


def refuse_unknown_transactions(table: Table, assume: str | None, *, tells_transactions: bool) -> None:
    """Raise UnknownTransactions if a source's columns show that the table would reject the first record."""
    if table.needs_transactions and assume is None and not tells_transactions:
        raise UnknownTransactions(table.topic)


def refuse_stream(df: DataFrame, table: Table) -> None:
    """Raise StreamGiven for a streaming DataFrame."""
    if is_stream(df):
        raise StreamGiven(table.name)


def is_stream(df: DataFrame) -> bool:
    """Whether a DataFrame is streaming."""
    return _reads_stream(df) if is_connect(df.sparkSession) else df.isStreaming


def _reads_stream(df: Any) -> bool:
    """Whether a DataFrame of Spark Connect reads a stream, as far as its client knows.

    Asking the server requires a round trip, which a Declarative Pipeline rejects. The server itself rejects a stream
    that only it knows about, such as a streaming view.
    """
    from pyspark.sql.connect.plan import LogicalPlan

    plans, seen = [getattr(df, "_plan", None)], set[int]()
    while plans:
        plan = plans.pop()
        if not isinstance(plan, LogicalPlan) or id(plan) in seen:
            continue
        seen.add(id(plan))
        if getattr(plan, "_is_streaming", False):
            return True
        plans += vars(plan).values()
    return False


def _required(name: str, table: Table) -> Column:
    """The column. A row without it fails the query, whereas a plain filter would silently drop the row."""
    message = f"a row of {table.topic} has no {name}: without it the last record of a key is unknown"
    kind = RAW_SCHEMA[name].dataType.simpleString()
    return F.coalesce(F.col(name), F.raise_error(F.lit(message)).cast(kind))


def _is_told() -> Column:
    told = F.coalesce(F.col("transaction") != UNKNOWN, F.lit(False))
    return told | F.col("producer_id").isNotNull() | F.col("control").isNotNull()


def _is_wanted(request: TableRequest) -> Column:
    table = request.table
    schemas: Mapping[int, RecordSchema] = import_module(f"{request.question.package}.schemas.{table.folder}").RECORDS
    is_record = F.lit(True) if table.reader.every_type else has_record_type(chosen_records(schemas, table.records))
    if request.question.groups is not None and not table.reader.needs_all_groups:
        is_about = begins_with(
            F.col("key"), (group.encode("utf-8", "surrogatepass") for group in request.question.groups)
        )
        return F.coalesce(is_record & is_about, F.lit(False)) | F.col("control").isNotNull()
    return F.coalesce(is_record, F.lit(False)) | is_unframed() | F.col("control").isNotNull()
