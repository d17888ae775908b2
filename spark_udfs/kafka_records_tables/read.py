"""`read_table`, `stream_table` and `read_tables`: tables over any source, read by processes on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from kafka_records_engine import arguments
from kafka_records_engine.sources import Counts
from kafka_records_engine.sources.abilities import KeepsAnswers, has
from kafka_records_engine.sources.missing_rights import AbsentTopic
from kafka_records_tables.engines import local
from kafka_records_tables.engines.absent_groups import AbsentGroups
from kafka_records_tables.engines.asked_coordinators import refuse_coordinators
from kafka_records_tables.engines.asked_moment import moment_notes
from kafka_records_tables.engines.checked_request import chosen_columns, question_of, requests_of, table_called
from kafka_records_tables.engines.log_tasks import LogTask, RunReports
from kafka_records_tables.engines.logs_to_read import asked_of_logs
from kafka_records_tables.engines.packed_rows import RowStore, return_memory
from kafka_records_tables.engines.repeated_groups import RepeatedGroups
from kafka_records_tables.engines.request import OnProgress
from kafka_records_tables.engines.several_tables import SeveralTables
from kafka_records_tables.engines.shared_columns import SharedColumns
from kafka_records_tables.engines.with_state import State, check_state, source_with_state
from kafka_records_tables.results.result import Result, Results, Stream
from kafka_records_tables.tables import Table
from kafka_records_tables.tables.sorted_rows import sorted_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources.question import Question
    from kafka_records_tables.engines.log_tasks import RunReport


@dataclass(frozen=True)
class Engine:
    """The engine: processes on this machine, or Spark. Raises TypeError and ValueError for invalid arguments."""

    processes: int | None = None
    spark: SparkSession | None = None
    on_progress: OnProgress | None = None

    def __post_init__(self) -> None:
        if self.processes is not None:
            arguments.count("processes", self.processes, "processes")
        if self.spark is not None:
            arguments.session("spark", self.spark)
        if self.on_progress is not None:
            arguments.function("on_progress", self.on_progress)

    def run(
        self, tasks: Sequence[LogTask], reports: RunReports, moved: OnProgress | None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of some tasks, each batch with the number of its request."""
        if self.spark is not None:
            from kafka_records_tables.engines import spark_engine

            refuse_coordinators(task.log for task in tasks)

            return spark_engine.run(self.spark, tasks, reports, on_progress=moved)
        return local.run(tasks, reports, processes=self.processes, on_progress=moved)


def read_table(
    table: str | Table,
    source: Any,
    *,
    group: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: Literal["committed"] | None = None,
    topic: str | None = None,
    package: str = "kafka_records",
    processes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: OnProgress | None = None,
    state: State | None = None,
    **options: Any,
) -> Result:
    """Read a table over a source into memory.

    Parameters
    ----------
    table
        The name of a table (`kafka_records_tables.TABLES`), or a declaration of your own.
    source
        One or more paths: data directories of a broker, partition folders, `.log` files. Or raw rows: a
        `pyarrow.Table`, a Polars or pandas frame, any object with `__arrow_c_stream__`. Or a
        `kafka_records_engine.sources.Source`.
    group
        Return only rows about this group or these groups (for `transactions`: transactional ids).
    columns
        The names of the columns to return, in this order. The default is all columns.
    as_of
        The time that the answer is about: an aware datetime, milliseconds since 1970, or a string as for the command
        (`2026-01-31T12:00`, `2h` ago). The log is read up to the first record with a later timestamp. If a cleaner has
        removed records since, a finding says from which time an answer is complete.
    assume
        How to treat records if the source does not say which are transactional: `committed`. By default, a table that
        depends on transactions rejects such a source.
    topic
        The topic of files or rows that do not name one. The default is the topic of the table. `log_ends`, which covers
        every topic by default, then covers only this one.
    package
        The generated package with the schemas of the records.
    processes
        How many processes read. With 1, this process reads. The default is one process per core, if there is enough to
        read.
    spark
        A session whose workers read instead, with one task per log partition. They must see the same files.
    on_progress
        Called with the number of bytes read so far and the total number of bytes to read.
    state
        A directory that keeps what was read, so that the next reading reads only what is new (docs/state.md). Use one
        state directory per cluster or source directory, and one reading at a time. It cannot be combined with `as_of`
        or `spark`.
    **options
        The options of this table by name (docs/tables.md). Times are aware datetimes or milliseconds since 1970;
        durations are timedeltas or milliseconds. Both can be strings (`7d`, `PT24H`).

    Returns
    -------
    Result
        Has `.table`, a `pyarrow.Table` sorted by the columns that identify its rows; `.findings`, with a note for each
        requested group without rows; and `.counts`. It has `__arrow_c_stream__`, so DuckDB and Polars accept it
        directly. With pandas 2, use `.table.to_pandas()`.

    Raises
    ------
    UnknownTable, UnknownColumn, UnknownOption
        For a name that does not exist.
    TypeError, ValueError
        For other invalid arguments, before anything is read.
    LogSourceError
        If the source does not exist or has no log of the topic, or if `state` belongs to another cluster or is in use
        by another process.
    UnknownTransactions
        If the source does not say which records are transactional and the table depends on it, unless `assume` says how
        to treat them.
    WorkerEnded
        If a process ends before its work is done.
    SparkFailed
        If Spark does not finish.

    Examples
    --------
    >>> result = read_table("current_offsets", "/var/lib/kafka/data", group="billing")
    >>> result.table.select(["topic", "partition", "offset"]).to_pylist()
    """
    chosen = chosen_columns(table_called(table), columns)
    question = question_of(
        [table], group=group, as_of=as_of, assume=assume, topic=topic, package=package, options=options
    )
    if state is not None:
        check_state(question, by_spark=spark is not None)
    engine = Engine(processes, spark, on_progress)
    with (
        source_with_state(question, source, state, on_progress) as given,
        stream_answer(question, given, engine) as stream,
    ):
        rows = _sorted(stream.declaration, list(stream))
    return Result(stream.declaration, rows.select(chosen), stream.findings, stream.counts)


def _sorted(table: Table, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    rows = pa.Table.from_batches(batches, schema=table.schema)
    return sorted_rows(rows, table.sort)


def stream_table(
    table: str | Table,
    source: Any,
    *,
    group: str | Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: Literal["committed"] | None = None,
    topic: str | None = None,
    package: str = "kafka_records",
    processes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: OnProgress | None = None,
    **options: Any,
) -> Stream:
    """Stream the rows of `read_table` in no particular order, for answers too large for memory."""
    question = question_of(
        [table], group=group, as_of=as_of, assume=assume, topic=topic, package=package, options=options
    )
    return stream_answer(question, source, Engine(processes, spark, on_progress))


def stream_answer(question: Question, source: Any, engine: Engine) -> Stream:
    """Like `stream_table`, for a request that the caller has already built."""
    (request,) = requests_of(question)
    declaration = request.table
    absent = AbsentGroups(question.groups)

    if declaration.inputs or has(source, KeepsAnswers):
        view = SeveralTables([request], source, None)

        def rows_of(report: RunReport) -> Iterator[pa.RecordBatch]:
            view.read(engine.run, engine.on_progress)
            rows, found = view.answer(declaration.name)
            report.add(found.findings, found.counts)
            yield from rows

    else:
        missing: list[Finding] = []
        try:
            asked, logs = asked_of_logs(request, source, missing.append)
        except AbsentTopic as error:
            asked, logs = request, ()
            missing.append(error.finding())

        def rows_of(report: RunReport) -> Iterator[pa.RecordBatch]:
            report.add(missing, Counts())
            tasks, reports = [LogTask(log, ((0, asked),)) for log in logs], RunReports()
            try:
                for _, rows in engine.run(tasks, reports, engine.on_progress):
                    yield rows
            finally:
                found = reports.of([0])
                report.add(found.findings, found.counts)
            report.add([*moment_notes(asked, report.counts)], Counts())

    def start(report: RunReport) -> Iterator[pa.RecordBatch]:
        repeated = RepeatedGroups(declaration)
        yield from absent.watched(declaration, repeated.watched(rows_of(report)))
        report.add([*repeated.notes(), *absent.notes(declaration.topic or None)], Counts())

    return Stream(declaration, declaration.schema, start)


def read_tables(
    tables: Sequence[str | Table],
    source: Any,
    *,
    group: str | Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: Literal["committed"] | None = None,
    topic: str | None = None,
    package: str = "kafka_records",
    processes: int | None = None,
    spark: SparkSession | None = None,
    on_progress: OnProgress | None = None,
    state: State | None = None,
    options: Mapping[str, Any] | None = None,
) -> Results:
    """Read several tables over a source into memory. Each log partition is read once for all of them.

    Each answer is the same as from `read_table`. If two views use the same table, it is also read once. A requested
    group gets a note if no row of any table is about it.

    Parameters
    ----------
    tables
        Names of tables, or declarations of your own, each once.
    source, group, as_of, assume, package, processes, spark, on_progress, state
        As for `read_table`, for all tables.
    topic
        The topic of files or rows that do not name one. The default is the topic of the tables, if all have the same.
    options
        Options of tables by name. Each option applies to every table that has it.

    Returns
    -------
    Results
        A mapping from table names, in order, to `Result`. `.missing` says, by name, why a table is missing (the source
        lacks its topic). `.reading` has the findings about the logs, each once. `.findings` has these and the findings
        of the tables. `.counts` has the counts of what was read, with each log counted once.

    Raises
    ------
    UnknownTable, UnknownOption
        For a name that does not exist, or an option that no table has.
    TypeError, ValueError
        For other invalid arguments, before anything is read. For example, a table about the present state of logs is
        rejected with `as_of`, and `log_ends` with `group`.
    LogSourceError
        If the source does not exist or has no log for any of the tables.
    Exception
        Anything that `read_table` raises for one of the tables.

    Examples
    --------
    >>> results = read_tables(["groups", "members", "lag"], "/var/lib/kafka/data")
    >>> results["groups"].table.num_rows, results.missing
    """
    if isinstance(tables, str):
        raise TypeError(f"tables is a list of tables: write [{tables!r}]")
    question = question_of(
        tables, group=group, as_of=as_of, assume=assume, topic=topic, package=package, options=options
    )
    if state is not None:
        check_state(question, by_spark=spark is not None)
    engine = Engine(processes, spark, on_progress)
    with source_with_state(question, source, state, on_progress) as given:
        return read_answers(question, given, engine)


def read_answers(question: Question, source: Any, engine: Engine) -> Results:
    """The result of `read_tables` for a request that the caller has already built."""
    requests = requests_of(question)
    declarations = [request.table for request in requests]
    several = SeveralTables(requests, source, question.topic)
    several.read(engine.run, engine.on_progress)
    absent = AbsentGroups(question.groups)
    columns, store = SharedColumns(), RowStore()
    answers = {}
    for table in declarations:
        if table.name in several.there:
            rows, report = several.answer(table.name)
            repeated = RepeatedGroups(table)
            batches = list(absent.watched(table, repeated.watched(iter(rows))))
            report.add(repeated.notes(), Counts())
            found = _sorted(table, batches)
            several.share(table.name, found)
            # Only `several` needs the rows until all tables are answered.
            answers[table.name] = table, store.packed(found.to_batches()), report
            count = found.num_rows
            del rows, batches, found
            return_memory(count)
    reading = several.reading
    for report in (reading, *(report for _, _, report in answers.values())):
        report.add(absent.notes(), Counts())
    results = {}
    # Answer the largest tables first, while little else is unpacked.
    for name in sorted(answers, key=lambda each: -answers[each][1].num_rows):
        table, packed, report = answers[name]
        found = columns.shared(pa.Table.from_batches(packed, table.schema))
        packed.clear()
        return_memory(found.num_rows)
        results[name] = Result(table, found, tuple(report.findings), report.counts)
    results = {name: results[name] for name in answers}
    return Results(results, several.missing, reading)
