"""`read_table` and `stream_table`: a table over any source, read by processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from kafka_records_engine.sources.given import source_of
from kafka_records_tables.engines import local
from kafka_records_tables.engines.question import OnProgress, Question
from kafka_records_tables.names import UnknownColumn, UnknownTable, near
from kafka_records_tables.report.result import Result, Stream
from kafka_records_tables.tables import TABLES, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_records_tables.engines.local import Told


def read_table(
    table: str | Table,
    source: Any,
    *,
    group: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    as_of: datetime | int | None = None,
    untold: Literal["committed"] | None = None,
    topic: str | None = None,
    package: str = "kafka_records",
    processes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """A table over a source, all of it in memory.

    Parameters
    ----------
    table
        The name of a table (`kafka_records_tables.TABLES`), or a declaration of your own.
    source
        A path or several: data directories of a broker, partition folders, `.log` files. Or raw rows: a
        `pyarrow.Table`, a Polars or pandas frame, whatever has `__arrow_c_stream__`. Or a
        `kafka_records_engine.sources.Source`.
    group
        Only what is about this group, or these (for `transactions`: transactional ids).
    columns
        The names of the columns to return, in this order; all by default.
    as_of
        Answer as at this moment, an aware datetime or milliseconds since 1970: the log up to the first record with a
        later timestamp. Where a cleaner took away what was known then, a finding says from which time on the answer is
        complete.
    untold
        What records count as whose source does not tell of transactions: `committed`. By default tables that depend on
        it refuse such a source.
    topic
        The topic that files or rows hold which do not say so; the topic of the table by default.
    package
        The generated package whose schemas say what the records hold.
    processes
        How many processes read; 1 reads in this one. By default a process per core where there is enough to read.
    spark
        A session whose workers read instead, one task per partition of the log; they have to see the same files.
    on_progress
        Called with the bytes that were read so far, and with those there are.

    Returns
    -------
    Result
        `.table`, a `pyarrow.Table` sorted by the columns that name its rows; `.findings`; `.counts`. It hands out an
        Arrow stream (`__arrow_c_stream__`), so that DuckDB and Polars take it as it is; `.table.to_pandas()` is for
        pandas 2.

    Raises
    ------
    UnknownTable, UnknownColumn
        For a name that is none.
    LogSourceError
        For a source that is not there or holds no log of the topic.
    UntoldTransactions
        For records whose source does not tell of transactions, unless `untold` says what they count as.
    WorkerEnded
        When a process ends before its work is done.
    SparkFailed
        When Spark does not finish.

    Examples
    --------
    >>> result = read_table("current_offsets", "/var/lib/kafka/data", group="billing")
    >>> result.table.select(["topic", "partition", "offset"]).to_pylist()
    """
    stream = stream_table(
        table,
        source,
        group=group,
        as_of=as_of,
        untold=untold,
        topic=topic,
        package=package,
        processes=processes,
        spark=spark,
        on_progress=on_progress,
    )
    chosen = chosen_columns(stream.declaration, columns)
    with stream:
        rows = pa.Table.from_batches(list(stream), schema=stream.schema)
    rows = rows.sort_by([(name, "ascending") for name in stream.declaration.sort])
    return Result(stream.declaration, rows.select(chosen), stream.findings, stream.counts)


def stream_table(
    table: str | Table,
    source: Any,
    *,
    group: str | Sequence[str] | None = None,
    as_of: datetime | int | None = None,
    untold: Literal["committed"] | None = None,
    topic: str | None = None,
    package: str = "kafka_records",
    processes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: OnProgress | None = None,
) -> Stream:
    """The same rows as `read_table`, as they come and in no particular order, for answers too large to hold."""
    question = question_of(table, group=group, as_of=as_of, untold=untold, package=package)
    declaration = question.table
    logs = source_of(source, topic or declaration.topic).partitions(declaration.topic)

    def start(told: Told) -> Iterator[pa.RecordBatch]:
        if spark is not None:
            from kafka_records_tables.engines.spark import run

            return run(spark, question, logs, told, on_progress=on_progress)
        return local.run(question, logs, told, processes=processes, on_progress=on_progress)

    return Stream(declaration, declaration.schema, start)


def table_called(table: str | Table) -> Table:
    """The declaration of a table. Raises UnknownTable."""
    if isinstance(table, Table):
        return table
    if table not in TABLES:
        raise UnknownTable(f"no table is called {table!r}; {near(table, TABLES)}")
    return TABLES[table]


def question_of(
    table: str | Table,
    *,
    group: str | Sequence[str] | None = None,
    as_of: datetime | int | None = None,
    untold: str | None = None,
    package: str = "kafka_records",
) -> Question:
    """What `read_table` asks of each log partition. Raises UnknownTable and ValueError."""
    groups = None if group is None else (group,) if isinstance(group, str) else tuple(group)
    if groups is not None and not all(isinstance(each, str) for each in groups):
        raise TypeError(f"group is a text or several, not {group!r}")
    module = _checked_module(table_called(table))
    return Question(module, _milliseconds(as_of), _checked_untold(untold), groups, _checked_package(package))


def chosen_columns(table: Table, columns: Sequence[str] | None) -> list[str]:
    """The columns to return. Raises UnknownColumn."""
    if columns is None:
        return list(table.names)
    if isinstance(columns, str):
        raise TypeError(f"columns is a list of names: write [{columns!r}]")
    if not columns:
        raise ValueError(f"no column is asked for; {table.name} has {', '.join(table.names)}")
    for name in columns:
        if name not in table.names:
            raise UnknownColumn(f"{table.name} has no column {name!r}; {near(name, table.names)}")
        if list(columns).count(name) > 1:
            raise ValueError(f"the column {name} is asked for twice")
    return list(columns)


def _checked_module(table: Table) -> str:
    """Where the declaration stands. Other processes look for it there, so it has to be the one that stands there."""
    try:
        found = getattr(import_module(table.module), "TABLE", None)
    except ImportError:
        found = None
    if found is not table:
        raise ValueError(
            f"the table {table.name} is not TABLE of the module {table.module}: a table of your own is a module that "
            "can be imported, with its declaration in TABLE and its function in rows"
        )
    module: str = table.module
    return module


def _checked_package(package: str) -> str:
    if find_spec(package) is None:
        raise ValueError(
            f"there is no package {package!r}: package is one that kafka-records-codegen has made, and its directory "
            "belongs into PYTHONPATH"
        )
    return package


def _milliseconds(as_of: datetime | int | None) -> int | None:
    if isinstance(as_of, datetime):
        if as_of.tzinfo is None:
            raise ValueError(f"as_of={as_of.isoformat()} has no time zone: write datetime(…, tzinfo=UTC)")
        return int(as_of.timestamp() * 1000)
    if as_of is not None and (isinstance(as_of, bool) or not isinstance(as_of, int)):
        raise TypeError(f"as_of is a datetime with a time zone or milliseconds since 1970, not {as_of!r}")
    return as_of


def _checked_untold(untold: str | None) -> str | None:
    if untold not in (None, "committed"):
        raise ValueError(f'untold is "committed" or None, not {untold!r}')
    return untold
