"""Reads a table over a source as a DataFrame, with one task per log partition. The inputs of a view are read
together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from kafka_records_engine.sources.abilities import tell_transactions
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.missing_rights import AbsentTopic
from kafka_records_engine.spark.spark_types import spark_schema
from kafka_records_tables.engines.joined_tables import input_requests, logs_there
from kafka_records_tables.engines.logs_to_read import AllLogs, asked_of_logs, logs_to_read, starts_before
from kafka_records_tables.engines.spark_engine import over_logs
from kafka_records_tables.engines.spark_rows import refuse_unknown_transactions
from kafka_records_tables.engines.spark_schema import schema_of
from kafka_records_tables.engines.spark_tasks import FINDINGS, FailFast, GivenFindings, LogFindings, LogRows
from kafka_records_tables.engines.spark_views import joined_findings, joined_frames
from kafka_records_tables.engines.spread_tasks import spread
from kafka_records_tables.tables import inputs_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import LogPartition, Source
    from kafka_records_tables.engines.request import TableRequest

FINDINGS_SCHEMA = spark_schema(FINDINGS)
"""The schema of findings, one per row: the members of `kafka_records_engine.findings.Finding`, and `message`, the one
line to print."""


def frame_of(
    spark: SparkSession, request: TableRequest, source: Any, names: Sequence[str], *, is_failfast: bool
) -> DataFrame:
    """The columns `names` of a table's rows. Raises the errors of `kafka_records_tables.spark.read_table`."""
    if request.table.inputs:
        _refuse_checkpoints(request)
        of = source_of(source)
        frames, lacking = _frames_of_inputs(spark, request, of, is_failfast=is_failfast)
        for finding in lacking if is_failfast else ():
            FailFast().report(finding)
        return joined_frames(frames, request, names, of, is_failfast=is_failfast)
    request, logs = _asked_of_logs(request, source)
    return _rows_of_logs(spark, request, logs, names, is_failfast=is_failfast)


def _frames_of_inputs(
    spark: SparkSession, request: TableRequest, source: Source, *, is_failfast: bool
) -> tuple[dict[str, DataFrame], Sequence[Finding]]:
    """The rows of a view's inputs, and the reasons why some have none. Log starts are requested first."""
    view = request.table
    starts = starts_before((each for each in inputs_of(view) if not each.inputs), source)
    inputs, lacking = _there(request, source)
    frames = {}
    for name, asked in inputs.items():
        names = asked.table.names
        if asked.table.helper == "ends":
            logs = [AllLogs(source, None, starts, is_input=True)]
            frames[name] = _rows_of_logs(spark, asked, logs, names, is_failfast=is_failfast)
        else:
            frames[name] = frame_of(spark, asked, source, names, is_failfast=is_failfast)
    return frames, lacking


def _rows_of_logs(
    spark: SparkSession, request: TableRequest, logs: Sequence[LogPartition], names: Sequence[str], *, is_failfast: bool
) -> DataFrame:
    ordered = tuple(spread(logs))
    refuse_unknown_transactions(request.table, request.question.assume, tells_transactions=tell_transactions(ordered))
    function = LogRows(request, ordered, tuple(names), is_failfast)
    return over_logs(spark, len(ordered), function, schema_of(request.table, names))


def _asked_of_logs(request: TableRequest, source: Any) -> tuple[TableRequest, Sequence[LogPartition]]:
    """The same as `asked_of_logs`, except that a topic that no coordinator has created yet has nothing to read."""
    try:
        return asked_of_logs(request, source)
    except AbsentTopic:
        return request, ()


def findings_of(spark: SparkSession, request: TableRequest, source: Any) -> DataFrame:
    """The findings about the rows of `frame_of`, with the schema FINDINGS_SCHEMA."""
    declaration = request.table
    if declaration.inputs:
        _refuse_checkpoints(request)
        of = source_of(source)
        inputs, lacking = _there(request, of)
        found = [findings_of(spark, asked, of) for asked in inputs.values()]
        if lacking:
            found.append(over_logs(spark, 1, GivenFindings(tuple(lacking)), FINDINGS_SCHEMA))
        if not declaration.join_keys or hasattr(of, "missing_rights"):
            frames, _ = _frames_of_inputs(spark, request, of, is_failfast=False)
            found.append(joined_findings(frames, request, of))
        return together(found)
    try:
        logs = spread(logs_to_read(declaration, source, request.question.topic))
    except AbsentTopic as error:
        return over_logs(spark, 1, GivenFindings((error.finding(),)), FINDINGS_SCHEMA)
    return over_logs(spark, len(logs), LogFindings(request, tuple(logs)), FINDINGS_SCHEMA)


def _refuse_checkpoints(request: TableRequest) -> None:
    """Raise an error for an option with checkpoints, because each task joins rows of some topics, and would read the
    checkpoints at a different time and on any machine."""
    for option in request.table.options:
        if option.kind == "checkpoints" and request.question.options[option.name]:
            raise ValueError(
                f"{option.name} is not for DataFrames: use kafka_records_tables.read_table(…, spark=session), which "
                "reads checkpoints once, on the driver"
            )


def _there(request: TableRequest, source: Source) -> tuple[Mapping[str, TableRequest], Sequence[Finding]]:
    """The request without the optional inputs that the source lacks, and the reasons why it lacks them."""
    inputs = input_requests(request)
    if not request.table.optional_inputs:
        return inputs, ()
    there = logs_there(request, lambda each: logs_to_read(each, source))
    left = {name: asked for name, asked in inputs.items() if asked.table.inputs or name in there.logs}
    return left, [finding for finding in there.lacking if finding.severity == "damage"]


def together(frames: Sequence[DataFrame]) -> DataFrame:
    """Combine DataFrames of findings. Inputs of a view that read the same log have the same findings, which are
    included once."""
    return reduce(lambda one, other: one.unionAll(other), frames).distinct()
