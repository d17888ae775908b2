"""Computes views, whose rows are joined from rows of other tables. Either engine reads the inputs like any other
table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.abilities import AnswersForCoordinators, TellsRetentions, has
from kafka_records_engine.sources.collected_findings import Findings
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.log_details import TellsLogDetails
from kafka_records_engine.sources.missing_rights import AbsentTopic, MissingRight, missing_rights
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_engine.sources.unread_records import unread_records
from kafka_records_tables.engines.logs_to_read import AllLogs, logs_to_read, starts_before, with_known_topics
from kafka_records_tables.engines.query_checkpoints import CheckpointReader, inputs_to_lack
from kafka_records_tables.table_options import option_values
from kafka_records_tables.tables import input_called, inputs_of, tables_read

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition, Source
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables import Table

ReadInput = Callable[["TableRequest", Sequence["LogPartition"]], Iterator[pa.RecordBatch]]
"""A function that reads a table over some log partitions."""


@dataclass(frozen=True, slots=True)
class ViewRows:
    """The rows of a view that other views use."""

    rows: Sequence[pa.RecordBatch]
    findings: Sequence[Finding]
    """The findings of the view itself."""


def input_requests(request: TableRequest) -> dict[str, TableRequest]:
    """By name, the request of a view to each of its inputs. It has the requested groups, if only rows about these
    matter, and the view's options that the input also has. Each input has its own topic. An earlier time can be
    requested only for records, not for other facts about logs."""
    view, question = request.table, request.question
    found = {}
    not_asked = view.not_asked(question.options)
    for each in inputs_of(view):
        if each.name in not_asked:
            continue
        if question.as_of_ms is not None and each.helper == "ends" and each.name in view.optional_inputs:
            continue
        own = {option.name for option in each.options}
        given = {name: value for name, value in question.options.items() if name in own}
        values = option_values(each, {}, question.as_of_ms) | given
        groups = question.groups if each.name in view.group_inputs else None
        asked = replace(question, tables=(each.module,), values=(tuple(values.items()),), groups=groups, topic=None)
        found[each.name] = replace(request, question=asked)
    return found


def at_the_bottom(request: TableRequest) -> Iterator[TableRequest]:
    """The request itself or, for a view, the requests to the tables from which its inputs are ultimately computed."""
    if not request.table.inputs:
        yield request
    else:
        for each in input_requests(request).values():
            yield from at_the_bottom(each)


@dataclass(slots=True)
class LogsThere:
    """The logs to read for a table, or for each of the tables from which a view is ultimately computed."""

    logs: dict[str, Sequence[LogPartition]] = field(default_factory=dict)
    """The logs by table name; empty for a table with a missing topic that the view does not require."""
    lacking: list[Finding] = field(default_factory=list)
    """Why some tables have no logs: a right is missing, or no coordinator has created the topic yet."""


def logs_there(request: TableRequest, logs_of: Callable[[Table], Sequence[LogPartition]]) -> LogsThere:
    """The logs to read for a table or a view. `logs_of` returns the logs of one table, or raises LogSourceError.

    A topic that no coordinator has created yet has no logs, which is a note. Raises LogSourceError if a topic that the
    view requires is missing, or if the topics of all tables are missing.
    """
    there = LogsThere()
    missing: list[LogSourceError] = []
    optional = inputs_to_lack(request)
    for each in tables_read(request.table):
        try:
            there.logs[each.name] = logs_of(each)
        except AbsentTopic as error:
            there.logs[each.name] = ()
            there.lacking.append(error.finding())
        except LogSourceError as error:
            if each.name not in optional:
                raise
            missing.append(error)
            if isinstance(error, MissingRight):
                there.lacking.append(error.finding())
    if not there.logs:
        raise missing[0]
    if missing and request.table.needed_without_details and not _tell_details(there.logs):
        raise missing[0]
    there.lacking = list(dict.fromkeys(there.lacking))
    return there


def _tell_details(logs: Mapping[str, Sequence[LogPartition]]) -> bool:
    """Whether the source of the given logs knows more about them than their records."""
    sources = [log.source for of_table in logs.values() for log in of_table if isinstance(log, AllLogs)]
    return any(has(source, TellsLogDetails) for source in sources)


def read_view(
    request: TableRequest,
    logs: Mapping[str, Sequence[LogPartition]],
    read: ReadInput,
    found: Findings,
    *,
    source: Source,
    made: Callable[[TableRequest], ViewRows | None] | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a view. `read` reads its inputs one after another into memory. Findings of views go to `found`.
    `source` is asked for missing rights. `made` contains the rows of views already computed."""

    def rows_of(asked: TableRequest) -> Iterator[pa.RecordBatch]:
        name = asked.table.name
        if asked.table.inputs:
            there = made(asked) if made is not None and asked is not request else None
            if there is not None:
                for finding in there.findings:
                    found.report(finding)
                yield from there.rows
                return
            inputs = input_requests(asked)
            yield from joined(asked, {each: list(rows_of(inputs[each])) for each in inputs}, found, source)
            return
        if name in logs:
            yield from read(asked, logs[name])

    yield from rows_of(request)


def read_here(request: TableRequest, given: Any, kind: type[Findings]) -> Iterator[pa.RecordBatch]:
    """The rows of a view, read in this process; `kind` says what happens if a log is damaged."""

    def read(asked: TableRequest, logs: Sequence[LogPartition]) -> Iterator[pa.RecordBatch]:
        for log in logs:
            yield from asked.answer(log, asked.context(log.topic, log.partition, kind()))

    source = source_of(given)
    starts = starts_before([request.table], source)
    found: dict[str, Sequence[LogPartition]] = {}

    def logs_of(table: Table) -> Sequence[LogPartition]:
        # Two inputs with the same topic must read it up to the same end.
        if table.topic not in found:
            found[table.topic] = logs_to_read(table, source, None, starts, is_input=True)
        return found[table.topic]

    there = logs_there(request, logs_of)
    found_here = kind()
    for finding in there.lacking:
        found_here.report(finding)
    asked = CheckpointReader().with_progress(with_known_topics(request, source, found_here.report))
    yield from read_view(asked, there.logs, read, found_here, source=source)


def _rights_or_damage(source: Source, found: Findings, topics: Collection[str]) -> Sequence[MissingRight]:
    """The missing rights. If no broker answers any more, this is reported as damage, because what was read before is
    still useful."""
    try:
        return missing_rights(source, topics)
    except UnreachableBrokers as error:
        found.report(error.finding())
        return ()


def _retentions_or_damage(source: TellsRetentions, found: Findings, topics: Collection[str]) -> Mapping[str, int]:
    """The retention of topics. If brokers no longer answer, this is reported as damage."""
    try:
        return source.retentions(topics)
    except LogSourceError as error:
        place = str(error.path)
        found.report(Finding("damage", UNREACHABLE_LOG, error.detail, "the retention of topics is unknown", file=place))
        return {}


def joined(
    request: TableRequest,
    parts: Mapping[str, Iterable[pa.RecordBatch]],
    found: Findings,
    source: Source | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a view from the rows of its inputs. Its findings go to `found`; `source` is asked for missing
    rights."""
    view = request.table
    tables = {name: pa.Table.from_batches(part, input_called(name).schema) for name, part in parts.items()}
    context = request.context("", -1)
    if source is not None:
        context.log.missing_rights = partial(_rights_or_damage, source, context.findings)
        may_read = bool(request.question.options.get("times"))
        if has(source, TellsRetentions):
            context.log.retentions = partial(_retentions_or_damage, source, context.findings)
        context.log.unread = partial(unread_records, source, context, may_read=may_read)
    for rows in view.joined(tables, context):
        if source is not None and has(source, AnswersForCoordinators):
            from kafka_records_tables.tables.requested.requested_rows import with_unknown

            rows = with_unknown(view, rows)
        if request.question.groups is None or view.group is None:  # otherwise its inputs are already filtered by group
            yield rows
        else:
            groups = pa.array(request.question.groups, pa.string())
            yield rows.filter(pc.fill_null(pc.is_in(rows.column(view.group), groups), False))
    for finding in context.findings:
        found.report(finding)
