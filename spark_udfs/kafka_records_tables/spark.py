"""Tables in Spark: over log segment files, over DataFrames of raw rows, over streams of them, and in SQL.

from kafka_records_tables.spark import current_offsets, read_table, register

register(spark)
spark.read.format("kafka-records").option("table", "groups").load("/var/lib/kafka/data").show()
current_offsets(spark.read.parquet("saved")).where("group_id = 'billing'").show()
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from kafka_records_engine import arguments
from kafka_records_engine.spark.jvm import checked_engine
from kafka_records_engine.spark.mapping import map_batches
from kafka_records_engine.spark.modes import FAILFAST, PERMISSIVE, checked_mode
from kafka_records_tables.engines.checked_request import chosen_columns, of_records, request_of, table_called
from kafka_records_tables.engines.joined_tables import input_requests
from kafka_records_tables.engines.spark_frames import FINDINGS_SCHEMA, findings_of, frame_of, together
from kafka_records_tables.engines.spark_rows import in_log_order
from kafka_records_tables.engines.spark_schema import schema_of
from kafka_records_tables.engines.spark_tasks import (
    SortedFindings,
    SortedRows,
)
from kafka_records_tables.engines.spark_views import joined_findings, joined_frames
from kafka_records_tables.table_options import value_of
from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.declaration import DELETE_RETENTION, USUAL_DELETE_RETENTION, can_go_on

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables.declaration import Table

__all__ = [
    "FINDINGS_SCHEMA",
    "changes",
    "current_offsets",
    "findings",
    "groups",
    "merged",
    "offset_commits",
    "read_findings",
    "read_table",
    "register",
    "table",
    "transactions",
]

_ALLOWED = (FAILFAST, PERMISSIVE)


# -- over a DataFrame of raw rows -------------------------------------------------------------------------------------


def table(
    raw: DataFrame,
    name: str | Table,
    *,
    group: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: Literal["committed"] | None = None,
    mode: str = FAILFAST,
    package: str = "kafka_records",
    **options: Any,
) -> DataFrame:
    """A table over raw rows.

    Parameters
    ----------
    raw
        Rows of `kafka_records_engine.spark.raw.RAW_SCHEMA` in any order. Duplicates are allowed, and rows of other
        topics are ignored. Saved rows must include control rows, which determine the outcome of transactions, and must
        not include rows below a raised log start; `read_segments` omits those.
    name
        The name of a table (`kafka_records_tables.TABLES`), or a declaration of your own.
    group
        Return only rows about this group or these groups (for `transactions`: transactional ids).
    columns
        The names of the columns to return, in this order. The default is all columns.
    as_of
        The time that the answer is about: an aware datetime, milliseconds since 1970, or a string as for the command
        (`2026-01-31T12:00`, `2h` ago). The log is read up to the first record with a later timestamp. This requires all
        rows of the topic.
    assume
        How to treat records if their source does not say which are transactional: `committed`. By default, a table that
        depends on transactions rejects such rows.
    mode
        `FAILFAST` ends the query at the first damage, which the error names. `PERMISSIVE` returns the unaffected rows;
        `findings` lists the damage.
    package
        The generated package with the schemas of the records.
    **options
        The options of this table, as in `kafka_records_tables.read_table`.

    Returns
    -------
    DataFrame
        The rows of the table, in no particular order. The comment of each column explains it.

    Raises
    ------
    UnknownTable, UnknownColumn, UnknownOption, ValueError, TypeError
        At once, for invalid arguments.
    StreamGiven
        At once, for a streaming DataFrame; use `changes` instead.
    MissingColumn
        At once (under Spark Connect, as a Spark error when the query runs), if the rows are not raw rows; `as_raw_rows`
        can convert some of them.
    WorkerPython
        At once, if local workers would run a Python without this package.
    DamageFound
        In a worker, under FAILFAST.
    UnknownTransactions
        For rows without transaction and producer, unless `assume` says how to treat them: at once if `as_raw_rows`
        found no such columns (except under Spark Connect), or in a worker for a row with nulls in them.

    Notes
    -----
    Each partition of the topic is handled by one task, which needs memory for the state that the partition's
    coordinator keeps.

    Examples
    --------
    >>> table(spark.read.parquet("saved"), "groups", group="billing").select("state", "member_count").show()
    """
    request = request_of(of_records(name), group=group, as_of=as_of, assume=assume, package=package, options=options)
    names = chosen_columns(request.table, columns)
    return _rows_of(raw, request, names, is_failfast=checked_mode(mode, _ALLOWED) == FAILFAST)


def _rows_of(raw: DataFrame, request: TableRequest, names: Sequence[str], *, is_failfast: bool) -> DataFrame:
    if request.table.inputs:
        return joined_frames(_inputs_of_rows(raw, request, is_failfast=is_failfast), request, names)
    rows, given = in_log_order(raw, request)
    return map_batches(rows, given, SortedRows(request, names, is_failfast), schema_of(request.table, names))


def _inputs_of_rows(raw: DataFrame, request: TableRequest, *, is_failfast: bool) -> dict[str, DataFrame]:
    """The rows of a view's inputs."""
    return {
        name: _rows_of(raw, asked, asked.table.names, is_failfast=is_failfast)
        for name, asked in input_requests(request).items()
        if asked.table.helper != "ends"
    }


def current_offsets(raw: DataFrame, **options: Any) -> DataFrame:
    """The committed offset of every group, topic and partition: `table(raw, "current_offsets", **options)`.

    Examples
    --------
    >>> from kafka_records_engine.spark.segments import read_segments
    >>> raw = read_segments(spark, "/var/lib/kafka/data", topic="__consumer_offsets")
    >>> current_offsets(raw, group="payments-settlement").select("topic", "partition", "offset").show()
    """
    return table(raw, "current_offsets", **options)


def groups(raw: DataFrame, **options: Any) -> DataFrame:
    """Every group with its kind, its logged state and its epoch: `table(raw, "groups", **options)`."""
    return table(raw, "groups", **options)


def offset_commits(raw: DataFrame, **options: Any) -> DataFrame:
    """Every commit and every deletion of an offset: `table(raw, "offset_commits", **options)`."""
    return table(raw, "offset_commits", **options)


def transactions(raw: DataFrame, **options: Any) -> DataFrame:
    """Every transactional id with its producer and the state of its last transaction:
    `table(raw, "transactions", **options)`."""
    return table(raw, "transactions", **options)


def findings(
    raw: DataFrame,
    name: str | Table,
    *,
    group: str | Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: Literal["committed"] | None = None,
    package: str = "kafka_records",
    **options: Any,
) -> DataFrame:
    """The findings about a table: unusable records, and where an answer ends.

    This is a second query that reads `raw` and computes the table again, because a DataFrame has only rows. So `raw`
    must be the same both times. (For files, `kafka_records_tables.read_table(…, spark=spark)` returns rows and findings
    from one run.) The arguments are those of `table`. The rows have `FINDINGS_SCHEMA`. The severity is `damage` if
    something is or may be missing from the table, and `note` otherwise.
    """
    request = request_of(of_records(name), group=group, as_of=as_of, assume=assume, package=package, options=options)
    return _findings_of(raw, request)


def _findings_of(raw: DataFrame, request: TableRequest) -> DataFrame:
    if request.table.inputs:
        found = [_findings_of(raw, asked) for asked in input_requests(request).values() if asked.table.helper != "ends"]
        if not request.table.join_keys:
            found.append(joined_findings(_inputs_of_rows(raw, request, is_failfast=False), request))
        return together(found)
    rows, given = in_log_order(raw, request)
    return map_batches(rows, given, SortedFindings(request), FINDINGS_SCHEMA)


# -- over a stream of raw rows ----------------------------------------------------------------------------------------


def changes(
    raw: DataFrame,
    name: str | Table,
    *,
    group: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    assume: Literal["committed"] | None = None,
    mode: str = FAILFAST,
    delete_retention: str | int | timedelta = USUAL_DELETE_RETENTION,
    package: str = "kafka_records",
    **options: Any,
) -> DataFrame:
    """The changes in a table that each micro-batch of a stream of raw rows causes.

    Parameters
    ----------
    raw
        A streaming DataFrame with rows of `kafka_records_engine.spark.raw.RAW_SCHEMA`, including control rows, from the
        start of the log. Each log partition must be in order from one micro-batch to the next, as returned by
        `readStream` with `format("kafka-records")`. Within a micro-batch, rows may be in any order.
    name
        The name of a table with one row per record (`offset_commits`), of a table in which only the last record of a
        key matters (`current_offsets`, `groups`, `members`, …), or `regressions` or `disappearances`.
    columns
        The names of the table's columns to return. The default is all of them, which `merged` requires.
    mode
        `FAILFAST` ends the query at the first damage, or at a row below the offset up to which its log partition was
        read. `PERMISSIVE` returns the unaffected rows and drops such a row.
    delete_retention
        The `delete.retention.ms` of the topic. If a query resumes after a longer pause and finds offsets missing, it
        has lost tombstones and markers. `FAILFAST` ends it; under `PERMISSIVE`, commits that waited for their markers
        are `unknown` from then on, and rows deleted in the meantime remain. If the source does not show transactions
        (`read_kafka`), such a loss cannot be detected, and there is no check.
    group, assume, package, **options
        As in `table`.

    Returns
    -------
    DataFrame
        A streaming DataFrame for the output mode `append`. `change` is `upsert` (the row is new or has changed) or
        `delete` (the row is gone; its last values are given). `as_of_offset` is the offset after the last record of the
        log partition that the table has seen. The columns of the table follow. Applied in order, the changes of all
        micro-batches so far give exactly the rows of `table` over all raw rows so far, with one exception:
        `disappearances` is less certain about the last tombstones until it is known what follows them.

    Raises
    ------
    UnknownTable, UnknownColumn, UnknownOption, ValueError, TypeError
        At once, for invalid arguments and for tables that need more of a log than can be kept.
    NoStream
        At once, for a DataFrame that is not streaming.
    OtherQuestion
        In a worker, if the checkpoint belongs to another query.
    MissingColumn, WorkerPython, DamageFound, UnknownTransactions, OutOfOrder, RecordsLost
        As for `table`; the last two are raised in a worker, under FAILFAST.

    Notes
    -----
    State is kept per log partition. It contains the raw rows that still matter: the last value and the last tombstone
    of each key (except for members, offsets and groups that are gone for good), and the records of open transactions. A
    commit in an open transaction waits there for its marker: `offset_commits` returns it first as `open`, and again
    once its outcome is known. For `disappearances`, the state is what the table has in memory; its size depends on the
    number of existing offsets, groups and members.

    Examples
    --------
    >>> brokers = spark.readStream.format("kafka-records").option("bootstrap", "broker-1:9092")
    >>> raw = brokers.option("topic", "__consumer_offsets").load()
    >>> query = changes(raw, "current_offsets").writeStream.format("delta").option("checkpointLocation", "/data/cp")
    >>> query.start("/data/changes_of_offsets")
    """
    from kafka_records_tables.engines.spark_changes import changed_rows

    request = request_of(of_records(name), group=group, assume=assume, package=package, options=options)
    names = chosen_columns(request.table, columns)
    if not can_go_on(request.table):
        known = ", ".join(each.name for each in TABLES.values() if can_go_on(each))
        raise ValueError(
            f"{request.table.name} cannot be computed from its changes, because it needs more of a log than can "
            f"be kept: save the raw rows and call table on them, or request one of {known}"
        )
    arguments.frame("raw", raw)
    retention_ms = value_of(DELETE_RETENTION, delete_retention)
    return changed_rows(raw, request, names, checked_mode(mode, _ALLOWED) == FAILFAST, retention_ms)


def merged(told: DataFrame, name: str | Table, before: DataFrame | None = None) -> DataFrame:
    """The rows of a table after some changes.

    Parameters
    ----------
    told
        Rows of `changes` with all columns, not streaming: the rows of one micro-batch (`foreachBatch`), or all rows in
        a sink. They may be in any order, and duplicates are allowed.
    name
        The table.
    before
        The rows of the table before the changes; None if there were none.

    Returns
    -------
    DataFrame
        The rows of the table.

    Examples
    --------
    >>> merged(spark.read.parquet("/data/changes_of_offsets"), "current_offsets").where("group_id = 'billing'").show()
    """
    from kafka_records_tables.engines.spark_changes import merged_rows

    arguments.frame("told", told)
    if before is not None:
        arguments.frame("before", before)
    return merged_rows(told, table_called(name), before)


# -- over logs --------------------------------------------------------------------------------------------------------


def read_table(
    spark: SparkSession,
    name: str | Table,
    source: Any,
    *,
    topic: str | None = None,
    group: str | Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: Literal["committed"] | None = None,
    mode: str = FAILFAST,
    package: str = "kafka_records",
    **options: Any,
) -> DataFrame:
    """A table over any source, read by the workers with one task per log partition.

    Returns the same rows as `spark.read.format("kafka-records")`, but without a Python Data Source, so it also works
    before Spark 4.0.

    Parameters
    ----------
    spark
        The session.
    source
        One or more paths: data directories of a broker, partition folders, `.log` files, on a file system shared by
        driver and workers. Or anything else that `kafka_records_tables.read_table` accepts.
    topic
        The topic of files that do not name one. The default is the topic of the table.
    name, group, columns, as_of, assume, mode, package, **options
        As in `table`.

    Returns
    -------
    DataFrame
        As in `table`. The driver lists the partitions now, and every query reads their files again.

    Raises
    ------
    LogSourceError
        At once, if paths do not exist or have no log of the topic; in a worker, for files that it cannot access.
    """
    request = request_of(name, group=group, as_of=as_of, assume=assume, topic=topic, package=package, options=options)
    names = chosen_columns(request.table, columns)
    is_failfast = checked_mode(mode, _ALLOWED) == FAILFAST
    arguments.session("spark", spark)
    return frame_of(spark, request, source, names, is_failfast=is_failfast)


def read_findings(
    spark: SparkSession,
    name: str | Table,
    source: Any,
    *,
    topic: str | None = None,
    group: str | Sequence[str] | None = None,
    as_of: datetime | int | str | None = None,
    assume: Literal["committed"] | None = None,
    package: str = "kafka_records",
    **options: Any,
) -> DataFrame:
    """The findings about the rows of `read_table`, as rows of `FINDINGS_SCHEMA`. It reads the files again."""
    request = request_of(name, group=group, as_of=as_of, assume=assume, topic=topic, package=package, options=options)
    arguments.session("spark", spark)
    return findings_of(spark, request, source)


# -- SQL --------------------------------------------------------------------------------------------------------------


def register(
    spark: SparkSession, package: str = "kafka_records", engine: Literal["jvm", "python"] | None = None
) -> tuple[str, ...]:
    """Register tables and column functions in a session, for `format("kafka-records")` and for SQL.

    Parameters
    ----------
    spark
        The session.
    package
        The generated package whose column functions to register in SQL.
    engine
        `jvm`: JVM functions, the default if this installation has their jar. They are in a catalog of the session, so
        their names are qualified: `kafka_records.from_offset_commit_value(value)`. From then on, `decode_records` and
        the column functions of the session use them. `python`: Python functions, without a catalog.

    Returns
    -------
    tuple of str
        The names of the functions that SQL can now call. Functions such as `from_offset_commit_value(value)` take the
        data; functions that take a version in Python also take it here (`to_offset_commit_value(struct, version)`). The
        JVM also has a function for each record, `kafka_records.from_offset_commit(key, value)`, which returns null for
        other records, and a function for each topic, `kafka_records.decode_consumer_offsets(key, value)`, which does
        the same as `decode_records`. Python functions have plain names and use the default modes; they require Spark
        4.1. `record_type(key)` and `value_version(value)` are plain SQL and always available.

    Raises
    ------
    NoJvmFunctions
        For `engine="jvm"`, if these functions are not available.
    UnsupportedSpark
        Before PySpark 4.0, which lacks Python Data Sources; use `read_table` for the same rows. `engine="jvm"` still
        registers the functions there, but not the source, `record_type` and `value_version`.

    Notes
    -----
    Options of the source: `table` (raw rows if omitted), `topic`, `group` (one, or a JSON array), `columns` (separated
    by commas), `asOf` (ISO 8601, milliseconds since 1970, `2h` ago), `mode` (`FAILFAST`, `PERMISSIVE`), `assume`
    (`committed`), `package`, `bytesPerTask` (splits partitions; for raw rows and tables with one row per record), and
    the options of the table, by name. For running brokers: `bootstrap`, `commandConfig` (a properties file), `timeout`
    (`30s`), `kafka.` followed by a property name, `startingOffsets`, `endingOffsets`, and for streams
    `maxOffsetsPerTrigger` and `failOnDataLoss`. For decoded records of saved rows: `records` and `coordinates` (names
    separated by commas). Nothing is pushed down. To avoid reading rows, use an option, because WHERE applies only
    afterwards.

    Examples
    --------
    >>> names = register(spark)
    >>> spark.read.format("kafka-records").option("table", "groups").load("/var/lib/kafka/data").show()
    >>> options = "table 'current_offsets', path '/var/lib/kafka/data'"
    >>> spark.sql(f"CREATE TEMPORARY VIEW offsets USING `kafka-records` OPTIONS ({options})")
    >>> spark.sql("SELECT topic, partition, offset FROM offsets WHERE group_id = 'billing'").show()
    """
    from kafka_records_tables.engines.spark_sql import is_before_4, register_functions, register_source

    if engine != "jvm" or not is_before_4():
        register_source(spark)
    return register_functions(spark, package, checked_engine(engine))
