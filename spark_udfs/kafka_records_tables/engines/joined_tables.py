"""Views: rows of some tables, joined. What is joined is read like any table, by either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.given import source_of
from kafka_records_tables.engines.logs_to_read import logs_to_read, with_known_topics
from kafka_records_tables.table_options import option_values
from kafka_records_tables.tables import input_called, inputs_of, tables_read

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.engines.request import OnProgress, TableRequest
    from kafka_records_tables.tables import Table

ReadInput = Callable[["TableRequest", Sequence["LogPartition"], "OnProgress | None"], Iterator[pa.RecordBatch]]
"""Reads a table over some log partitions."""


AskedOfInput = tuple["Table", Any, dict[str, Any]]
"""An input of a view, the groups that it is asked for, and its options."""


def asked_of_inputs(view: Table, groups: Any, options: Mapping[str, Any]) -> Iterator[AskedOfInput]:
    """The inputs of a view, each with the groups and the options of the view that it is asked for."""
    for each in inputs_of(view):
        own = {option.name for option in each.options}
        chosen = groups if each.name in view.group_inputs else None
        yield each, chosen, {name: value for name, value in options.items() if name in own}


def input_requests(request: TableRequest) -> dict[str, TableRequest]:
    """What a view asks of each of its inputs."""
    asked = asked_of_inputs(request.table, request.groups, dict(request.options))
    return {
        each.name: replace(
            request,
            module=each.module,
            groups=groups,
            options=tuple((option_values(each, {}, request.as_of_ms) | options).items()),
        )
        for each, groups, options in asked
    }


def asked_of_view(request: TableRequest, given: Any) -> tuple[TableRequest, dict[str, Sequence[LogPartition]]]:
    """What to ask, with what the source `given` knows of topics where an input uses it, and what has to be read for
    each table at the bottom of the view. Raises LogSourceError if the topic of one is not there that the view cannot do
    without."""
    source = source_of(given)
    return with_known_topics(request, source), logs_there(request.table, lambda each: logs_to_read(each, source))


def logs_there(view: Table, logs_of: Callable[[Table], Sequence[LogPartition]]) -> dict[str, Sequence[LogPartition]]:
    """What has to be read for each table at the bottom of a view, none for those it may lack whose topic the source
    does not have, so that `logs_of` raises LogSourceError. Raises it for others, and where there is nothing to read."""
    logs, missing = {}, []
    for each in tables_read(view):
        try:
            logs[each.name] = logs_of(each)
        except LogSourceError as error:
            if each.name not in view.may_lack:
                raise
            missing.append(error)
    if not logs:
        raise missing[0]
    return logs


def read_view(
    request: TableRequest,
    logs: Mapping[str, Sequence[LogPartition]],
    read: ReadInput,
    context: Context,
    on_progress: OnProgress | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a view. Its inputs are read by `read`, one after the other in their order, and held in memory. What
    views find goes to `context`."""
    sizes = {name: sum(log.size for log in of_input) for name, of_input in logs.items()}
    before = 0

    def rows_of(asked: TableRequest) -> Iterator[pa.RecordBatch]:
        nonlocal before
        name = asked.table.name
        if asked.table.inputs:
            inputs = input_requests(asked)
            yield from joined(asked, {each: list(rows_of(inputs[each])) for each in inputs}, context)
            return
        if name not in logs:
            return
        moved = None if on_progress is None else partial(_moved, on_progress, before, sum(sizes.values()))
        yield from read(asked, logs[name], moved)
        before += sizes[name]

    yield from rows_of(request)


def _moved(on_progress: OnProgress, before: int, total: int, done: int, _: int) -> None:
    on_progress(before + done, total)


def read_here(request: TableRequest, given: Any, kind: type[Context]) -> Iterator[pa.RecordBatch]:
    """The rows of a view, read in this process; `kind` says what damage does."""

    def read(asked: TableRequest, logs: Sequence[LogPartition], _: OnProgress | None) -> Iterator[pa.RecordBatch]:
        for log in logs:
            yield from asked.answer(log, asked.context(log.topic, log.partition, kind))

    yield from read_view(*asked_of_view(request, given), read, kind())


def joined(
    request: TableRequest, parts: Mapping[str, Iterable[pa.RecordBatch]], found: Context
) -> Iterator[pa.RecordBatch]:
    """The rows of a view out of those of its inputs. What it reports goes to `found`."""
    view = request.table
    tables = {name: pa.Table.from_batches(part, input_called(name).schema) for name, part in parts.items()}
    context = request.context("", -1)
    for rows in view.joined(tables, context):
        if request.groups is None or view.group is None:
            yield rows
        else:
            groups = pa.array(request.groups, pa.string())
            yield rows.filter(pc.fill_null(pc.is_in(rows.column(view.group), groups), False))
    for finding in context.findings:
        found.report(finding)
