"""Views: rows of some tables, joined. What is joined is read like any table, by either engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.sources import Context
from kafka_records_engine.sources.given import source_of
from kafka_records_tables.engines.logs_to_read import logs_to_read
from kafka_records_tables.tables import TABLES

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.engines.request import OnProgress, TableRequest
    from kafka_records_tables.tables import Table

ReadInput = Callable[["TableRequest", Sequence["LogPartition"], "OnProgress | None"], Iterator[pa.RecordBatch]]
"""Reads a table over some log partitions."""


def inputs_of(view: Table) -> list[Table]:
    """The tables whose rows a view joins."""
    return [TABLES[name] for name in view.inputs]


def input_requests(request: TableRequest) -> dict[str, TableRequest]:
    """What a view asks of each of its inputs. It chooses groups when all is joined, for inputs may name others."""
    return {each.name: replace(request, module=each.module, groups=None) for each in inputs_of(request.table)}


def input_logs(view: Table, given: Any) -> dict[str, Sequence[LogPartition]]:
    """What has to be read for each input. Raises LogSourceError if the topic of one is not there."""
    source = source_of(given)
    return {each.name: logs_to_read(each, source) for each in inputs_of(view)}


def read_view(
    request: TableRequest,
    logs: Mapping[str, Sequence[LogPartition]],
    read: ReadInput,
    on_progress: OnProgress | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a view, all inputs of which are read one after the other by `read` and held in memory."""
    total = sum(log.size for of_input in logs.values() for log in of_input)
    parts, before = {}, 0
    for name, asked in input_requests(request).items():
        moved = None if on_progress is None else partial(_moved, on_progress, before, total)
        parts[name] = list(read(asked, logs[name], moved))
        before += sum(log.size for log in logs[name])
    yield from joined(request, parts)


def _moved(on_progress: OnProgress, before: int, total: int, done: int, _: int) -> None:
    on_progress(before + done, total)


def read_here(request: TableRequest, given: Any, kind: type[Context]) -> Iterator[pa.RecordBatch]:
    """The rows of a view, read in this process; `kind` says what damage does."""

    def read(asked: TableRequest, logs: Sequence[LogPartition], _: OnProgress | None) -> Iterator[pa.RecordBatch]:
        for log in logs:
            yield from asked.answer(log, asked.context(log.topic, log.partition, kind))

    yield from read_view(request, input_logs(request.table, given), read)


def joined(request: TableRequest, parts: Mapping[str, Iterable[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """The rows of a view out of those of its inputs."""
    view = request.table
    tables = {name: pa.Table.from_batches(part, TABLES[name].schema) for name, part in parts.items()}
    for rows in view.joined(tables, request.context("", -1)):
        if request.groups is None or view.group is None:
            yield rows
        else:
            groups = pa.array(request.groups, pa.string())
            yield rows.filter(pc.fill_null(pc.is_in(rows.column(view.group), groups), False))
