"""One run of `kafka-records report`, which writes the report to the output and counts to standard error."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from kafka_records_engine.findings import OUTSIDE_LOG
from kafka_records_engine.log.files.source_error import LacksColumns
from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable
from kafka_records_tables.commands.engine_run import SparkSettings, check_java_for, session_of, told_in_words
from kafka_records_tables.commands.given_source import GivenSource
from kafka_records_tables.commands.totals import RecordTotals
from kafka_records_tables.commands.written_output import Output, check_output, replacing, terminal_width
from kafka_records_tables.console.endings import DAMAGE, FOUND, OK, CommandError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.standard_error import say
from kafka_records_tables.engines.absent_groups import absence_of
from kafka_records_tables.engines.checked_request import requests_of
from kafka_records_tables.engines.with_state import source_with_state
from kafka_records_tables.near_names import did_you_mean
from kafka_records_tables.read import Engine, stream_answer
from kafka_records_tables.report.making import report_of
from kafka_records_tables.report.report_diff import DiffError, earlier_report
from kafka_records_tables.report.report_text import in_short, write_report_text
from kafka_records_tables.report.rule_context import partitions_shown
from kafka_records_tables.tables import TABLES

if TYPE_CHECKING:
    from kafka_records_engine.log.files.source_error import LogSourceError
    from kafka_records_engine.sources import Source
    from kafka_records_engine.sources.question import Question
    from kafka_records_tables.report.levels import FailOn
    from kafka_records_tables.report.making import NamedSource
    from kafka_records_tables.report.report_parts import Report
    from kafka_records_tables.tables.declaration import Table


@dataclass(frozen=True)
class ReportTask:
    """The settings of one run; see `kafka_records_tables.report.making.read_report`."""

    question: Question
    given: GivenSource
    named: NamedSource
    format: str
    """`text`, `json`, `openmetrics`, or `html`, which needs a file."""
    path: Path | None = None
    """A file; None means standard output."""
    overwrite: bool = False
    topics: tuple[str, ...] = ()
    thresholds: Mapping[str, Any] = field(default_factory=dict)
    processes: int | None = None
    spark: SparkSettings | None = None
    state: str | None = None
    """The directory of --state."""
    with_tables: bool = True
    with_details: bool = False
    """Whether the text contains all findings with all details."""
    diff: Path | None = None
    """The JSON document of an earlier report to compare with."""
    fail_on: FailOn | None = None
    """The findings for which the exit status is FOUND."""


class ReportRun:
    """Writes the report that a task describes."""

    def __init__(self, task: ReportTask) -> None:
        self._task = task

    def run(self) -> int:
        """Write the report and return the exit status. Raises a CommandError if there is no report."""
        task = self._task
        check_java_for(task.spark)
        check_output(Output(task.format, task.path, overwrite=task.overwrite), task.given.paths)
        try:
            report = self._read()
        except DiffError as error:
            raise CommandError(f"--diff: {error}") from None
        no_groups, no_topics = self._absent_groups(report), self._absent_topics(report)
        # If no row is about the requested groups or topics, a report without findings would suggest that all is well.
        # If logs are damaged, the rows may have been lost.
        if report.is_complete and (no_topics or (no_groups and len(no_groups) == len(task.question.groups or ()))):
            raise CommandError("; ".join((*no_groups, *no_topics)))
        self._write(report)
        self._sum_up(report, (*no_groups, *no_topics))
        watched = () if task.fail_on is None else report.to_fail_on(task.fail_on)
        if watched:
            say(f"{plural(len(watched), 'finding')} for --fail-on {task.fail_on}")
        if not report.is_complete:
            return DAMAGE
        return FOUND if watched else OK

    def _source(self) -> Source:
        return self._task.given.source()

    def _read(self) -> Report:
        task = self._task
        with (
            told_in_words(self._with_hint),
            ByteProgress("report") as progress,
            session_of(task.spark, progress) as session,
            source_with_state(task.question, self._source(), task.state, progress.moved) as source,
        ):
            earlier = None if task.diff is None else earlier_report(task.diff)
            if earlier is not None:
                earlier.check_selection(task.question.groups, task.topics)
            engine = Engine(task.processes, session, progress.moved)
            return report_of(task.question, source, task.named, engine, task.thresholds, task.topics, earlier)

    def _write(self, report: Report) -> None:
        task = self._task
        if task.path is None:
            _write_text(report, task, sys.stdout)
            sys.stdout.flush()
            return
        if task.format == "html":
            from kafka_records_tables.report.page import write_page

            with replacing(task.path) as part:
                write_page(report, part)
            return
        with (
            replacing(task.path) as part,
            open(part, "w", encoding="utf-8", errors="backslashreplace", newline="") as out,
        ):
            _write_text(report, task, out)

    def _sum_up(self, report: Report, absent: Iterable[str]) -> None:
        if self._task.path is not None:
            say(in_short(report))
        if report.diff is not None and (self._task.path is not None or self._task.format != "text"):
            for note in report.diff.notes:
                say(f"note: {note}")
        for what in absent:
            say(f"note: {what}")
        for log in report.incomplete_logs():
            say(f"rows are missing: {log.title}: {', '.join(log.topics)} ({partitions_shown(log.partitions)})")
        names_by_reason: defaultdict[str, list[str]] = defaultdict(list)
        for name, why in report.missing.items():
            names_by_reason[why].append(name)
        for why, names in names_by_reason.items():
            say(f"note: without the table{'s' if len(names) > 1 else ''} {', '.join(names)}: {why}")
        # The text report lists all these findings itself.
        for finding in report.reading if self._task.format != "text" else ():
            if finding.reason == OUTSIDE_LOG:
                say(f"note: {finding}")
        totals = RecordTotals(report.counts, has_files=self._task.given.has_files)
        say(f"read {totals.read()}")

    def _with_hint(self, error: LogSourceError) -> str:
        """The text of an error. If files do not name their topic, it does not suggest the option for the topic, which
        reports do not have."""
        text, asks, _ = str(error).partition("; say which topic it holds")
        folders = [path for path in self._task.given.paths if Path(path).is_dir()]
        if isinstance(error, LacksColumns) and folders and not self._task.given.saved.is_told:
            return (
                f"{printable(folders[0])}: there are no logs here (folders <topic>-<partition> with .log files), and "
                f"its other files are not saved rows: give a broker's data directory; {text}"
            )
        if not asks:
            return text
        return f"{text}: {'put it into such a folder' if 'this file' in error.detail else 'give it such a name'}"

    def _absent_groups(self, report: Report) -> list[str]:
        """For each requested group without any row, a sentence with similar names."""
        task = self._task
        there = _values(report, lambda table: table.group)
        unknown = [group for group in task.question.groups or () if group not in there]
        if unknown and task.given.has_files and task.spark is None:
            there = self._names("groups", "group_id")
        return [f"{absence_of(group)}{did_you_mean(group, there)}" for group in unknown]

    def _absent_topics(self, report: Report) -> list[str]:
        """A sentence with similar names if no row is about a requested topic; otherwise empty."""
        asked = self._task.topics
        if not asked or _values(report, lambda table: "topic" if "topic" in table.schema.names else None):
            return []
        can_tell = len(asked) == 1 and self._task.given.has_files and self._task.spark is None
        near = did_you_mean(asked[0], self._names("current_offsets", "topic")) if can_tell else ""
        return [f"no row is about a topic that matches {' or '.join(map(repr, asked))}{near}"]

    def _names(self, table: str, column: str) -> set[str]:
        """The names in a column of a table for all groups. The table is read again for this."""
        (question,) = (each.question for each in requests_of(self._task.question) if each.table.name == table)
        with stream_answer(replace(question, groups=None), self._source(), Engine()) as rows:
            return {name for batch in rows for name in batch.column(column).unique().to_pylist()}


def _values(report: Report, column_of: Callable[[Table], str | None]) -> set[str]:
    """The values of one column, from each table that has it."""
    found: set[str] = set()
    for name, rows in report.tables.items():
        column = column_of(TABLES[name])
        if column is not None:
            found.update(pc.unique(rows[column]).drop_null().to_pylist())
    return found


def _write_text(report: Report, task: ReportTask, out: Any) -> None:
    if task.format == "openmetrics":
        from kafka_records_tables.report.report_metrics import write_report_metrics

        write_report_metrics(report, out, time.time())
    elif task.format == "json":
        from kafka_records_tables.report.report_json import write_report_json

        write_report_json(report, out, with_tables=task.with_tables)
    else:
        write_report_text(report, out, terminal_width(out), with_details=task.with_details)
