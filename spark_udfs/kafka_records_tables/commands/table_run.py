"""One run of `kafka-records table`, which writes rows to the output, then findings and counts to standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_engine.findings import (
    ABSENT_GROUP,
    ABSENT_LOG,
    NOT_WRITTEN,
    OF_LOGS,
    READ_MOMENTS,
    UNDECIDED_TRANSACTION,
)
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.missing_rights import missing_rights
from kafka_records_runtime.errors import UnsupportedVersion, plural
from kafka_records_tables.commands.catalog import KAFKA, catalog_of
from kafka_records_tables.commands.chosen_logs import with_hint
from kafka_records_tables.commands.engine_run import SparkSettings, check_java_for, other_way, session_of, told_in_words
from kafka_records_tables.commands.given_source import GivenSource
from kafka_records_tables.commands.totals import FileTotals, RecordTotals
from kafka_records_tables.commands.written_output import (
    METRICS_FORMAT,
    MOST_SERIES,
    Output,
    check_file,
    check_output,
    is_same_file,
    refuse_source,
    replacing,
    write_batches,
    write_text_to,
)
from kafka_records_tables.console.endings import DAMAGE, FOUND, OK, CommandError
from kafka_records_tables.console.progress_bar import ByteProgress
from kafka_records_tables.console.standard_error import say
from kafka_records_tables.engines.absent_groups import absence_of
from kafka_records_tables.engines.checked_request import check_question
from kafka_records_tables.engines.package_check import misfits
from kafka_records_tables.engines.with_state import source_with_state
from kafka_records_tables.near_names import did_you_mean, has_words
from kafka_records_tables.read import Engine, stream_answer, stream_table
from kafka_records_tables.results.finding_lines import finding_json, finding_lines
from kafka_records_tables.results.offset_files import without_line_breaks
from kafka_records_tables.selection import HELD, Selection
from kafka_records_tables.table_options import option_values
from kafka_records_tables.tables import TABLES, tables_read
from kafka_records_tables.topics import METADATA

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import Counts, Source
    from kafka_records_engine.sources.question import Question
    from kafka_records_tables import Stream, Table
    from kafka_records_tables.query import Query


@dataclass(frozen=True)
class TableTask:
    """The settings of one run; see `kafka_records_tables.read.read_table`."""

    table: Table
    question: Question
    query: Query
    given: GivenSource
    output: Output
    findings: Path | None = None
    """A file for all findings as JSON lines."""
    processes: int | None = None
    spark: SparkSettings | None = None
    state: str | None = None
    """The directory of --state."""
    needs_order: bool = False
    """Whether to sort rows even if that needs much memory, because the user requested an order."""
    most_series: int = MOST_SERIES
    """The maximum number of time series in metrics."""
    may_hide_details: bool = True
    """Whether a narrow terminal may omit `Table.details`, because the user did not name columns."""


class TableRun:
    """Writes the rows that a task describes."""

    def __init__(self, task: TableTask) -> None:
        self.task = task
        self._table = task.table
        self._rows = 0
        self._about_ends: list[Finding] = []
        self._left_out: list[Finding] = []
        self.source: Any = None
        """The source that was read."""

    def run(self) -> int:
        """Write the rows and return the exit status. Raises a CommandError if there is no result."""
        _check(self.task)
        with (
            told_in_words(self._no_log),
            ByteProgress(self._table.name) as progress,
            session_of(self.task.spark, progress) as session,
            source_with_state(self.task.question, self._source(), self.task.state, progress.moved) as source,
            self._stream(progress, session, source) as stream,
        ):
            self.source = source
            lags = _Lags(self._table)
            soon = self.task.most_series if self.task.output.format == METRICS_FORMAT else 0
            selection = Selection(self._table, lags.watched(stream), self.task.query, self._most_held, soon=soon)
            self._write(selection, progress, stream)
        if not selection.is_sorted:
            size = f"{HELD >> 20} MiB"
            say(f"note: the rows are not sorted: there are more than {size} of them; --sort sorts them, in memory")
        findings = (*stream.findings, *self._about_ends, *self._left_out)
        self._say(findings)
        status = self._sum_up(findings, stream.counts, selection.matching)
        self._say_of_conditions(selection)
        self._say_without_ends(lags)
        if selection.stopping:
            say(f"{plural(selection.stopping, 'row')} about what stops a coordinator from loading")
        return FOUND if selection.stopping and status == OK else status

    def _stream(self, progress: ByteProgress, session: SparkSession | None, source: Source) -> Stream:
        task = self.task
        check_question(task.question)
        engine = Engine(task.processes, session, progress.moved)
        return stream_answer(task.question, source, engine)

    def _source(self) -> Source:
        return self.task.given.source(self.task.question.topic or self._table.topic or None)

    @property
    def _most_held(self) -> int | None:
        """How many bytes of rows to keep for sorting. A table for people is in memory anyway, and a requested order
        must be applied."""
        return None if self.task.needs_order or self.task.output.format == "table" else HELD

    def _write(self, selection: Selection, progress: ByteProgress, stream: Stream) -> None:
        table = self._table
        details = table.details if self.task.may_hide_details else ()
        rows = self._counted(selection, progress)
        if self.task.output.format == METRICS_FORMAT:
            self._write_metrics(rows, selection, stream)
            return
        if self.task.output.format == "starting-offsets":
            rows = self._with_all_partitions(rows, selection.schema)
        elif self.task.output.format == "reset-offsets":
            rows = without_line_breaks(rows, self._left_out.append)
        write_batches(self.task.output, selection.schema, rows, details, table.essential)

    def _write_metrics(self, rows: Iterable[pa.RecordBatch], selection: Selection, stream: Stream) -> None:
        from kafka_records_tables.results.open_metrics import TableMetrics

        metrics = TableMetrics(self._table.name, rows, self.task.most_series)
        if not selection.is_sorted:  # unsorted rows are counted while they are read
            for _ in rows:
                pass
        limit = self.task.query.limit
        self._rows = selection.matching if limit is None else min(limit, selection.matching)
        metrics.rows_left_out = self._rows - metrics.rows_taken
        is_complete = all(finding.severity != "damage" for finding in stream.findings)
        write_text_to(self.task.output, lambda out: metrics.write(out, is_complete=is_complete, now=time.time()))
        if metrics.rows_left_out:
            say(
                f"note: {plural(metrics.rows_left_out, 'row')} left out: the metrics have at most "
                f"{self.task.most_series} time series; --max-series allows more, --group, --topic-filter and --where "
                f"choose rows"
            )

    def _with_all_partitions(self, rows: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows, followed by a row without an offset for each other partition of their topics that the source
        knows."""
        topics: set[str] = set()
        for batch in rows:
            topics.update(batch.column("topic").unique().to_pylist())
            yield batch
        given = self.task.given
        source = given.source()
        there = {*source.topics()}
        self._about_ends += [right.finding() for right in missing_rights(source, sorted(topics - there))]
        for topic in sorted(topics & there):
            logs = stream_table("log_ends", source, topic=topic)
            for ends in logs:
                known = {name: ends.column(name) for name in ("topic", "partition")}
                yield pa.RecordBatch.from_arrays(
                    [known.get(field.name, pa.nulls(ends.num_rows, field.type)) for field in schema], schema=schema
                )
            self._about_ends += logs.findings

    def _counted(self, batches: Iterable[pa.RecordBatch], progress: ByteProgress) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not self._rows and self.task.output.path is None and sys.stdout.isatty():
                progress.stop()  # rows and progress on the same terminal would overwrite each other
            self._rows += batch.num_rows
            yield batch

    def _no_log(self, error: LogSourceError) -> str:
        if not (self.task.given.has_files and self._table.topic):
            return with_hint(error) + other_way(error, [self._table], self.task.given)
        try:
            there = {*self.task.given.source().topics()}
        except (LogSourceError, CommandError, OSError):
            return str(error)
        if self._table.topic == METADATA:
            return (
                f"{error}; every controller and broker has it in metadata.log.dir, by default the first of log.dirs: "
                f"read that, or ask running brokers with --bootstrap"
            )
        if self._table.topic in there:
            return str(error)
        others = [table.name for table in TABLES.values() if table.topic in there]
        return f"{error}; tables about that: {', '.join(others)}" if others else str(error)

    # -- what was found ------------------------------------------------------------------------------------------------

    def _say(self, findings: Sequence[Finding]) -> None:
        path = self.task.findings
        way = "--findings FILE writes all of them" if path is None else f"{path} has all of them"
        # For absent groups, another line has more details.
        moments = {*finding_lines((each for each in findings if each.reason == READ_MOMENTS), way)}
        for line in finding_lines((each for each in findings if each.reason != ABSENT_GROUP), way):
            say(line, is_of_now=line in moments)
        if path is not None:
            with replacing(path) as part, open(part, "w", encoding="utf-8") as out:
                out.writelines(map(finding_json, findings))

    def _sum_up(self, findings: Sequence[Finding], counts: Counts, matching: int) -> int:
        given = self.task.given
        files = FileTotals(place=given.place)
        records = RecordTotals(counts, has_files=given.has_files, package=self.task.question.package)
        for finding in findings:
            if finding.reason in OF_LOGS:
                files.count(finding)
            elif finding.severity == "damage" and finding.reason == UNDECIDED_TRANSACTION:
                records.undecided += 1
            elif finding.severity == "damage" and finding.reason not in (NOT_WRITTEN, ABSENT_LOG):
                records.undecodable += 1
                records.has_newer |= finding.reason == UnsupportedVersion.__name__
        if self.task.query.topics and not matching:
            patterns = ", ".join(map(repr, self.task.query.topics))
            say(f"note: no such row is about a topic that matches {patterns}")
        self._say_who_was_meant({finding.what for finding in findings if finding.reason == ABSENT_GROUP})
        rows = plural(matching, "row")
        if self._rows < matching:
            rows = f"{self._rows} of {rows}"
        is_of_records = bool(self._table.records or self._table.inputs)
        if (given.by_requests and is_of_records) or (given.bootstrap is not None and self._table.topic == METADATA):
            say(f"{rows} from answers to requests")
        else:
            say(f"{rows} from {records.read() if is_of_records else plural(counts.partitions, 'partition')}")
        records.say_decoding()
        files.say_all()
        return DAMAGE if any(finding.severity == "damage" for finding in findings) else OK

    def _say_of_conditions(self, selection: Selection) -> None:
        """Warn about conditions that may not mean what the user intended."""
        for each in self.task.query.conditions:
            words = next(column.words for column in self._table.columns if column.name == each.column)
            if words and each.operator in ("=", "!=") and not has_words(str(each.value), words):
                known = did_you_mean(str(each.value), words) or f"; there are {', '.join(words)}"
                say(f"note: this build does not know the value {each.value!r} of {each.column}{known}")
        for name, count in selection.nulls.items() if not selection.matching else ():
            if count:
                say(
                    f"note: {name} is null (unknown) in {plural(count, 'row')}, which no comparison with {name} finds: "
                    f"--where '{name} is null' shows them"
                )

    def _say_without_ends(self, lags: _Lags) -> None:
        """If no lag is known because the topics' logs are elsewhere, say what else to read."""
        if lags.are_all_unknown and self.task.given.has_files:
            say(
                "note: lag is null in every row: the logs of the topics that groups consume are not here; read the "
                "data directories of the brokers that have them, or ask running brokers with --bootstrap"
            )

    def _say_who_was_meant(self, absences: set[str]) -> None:
        """Say which of the requested groups have no rows, with similar names. A small source is read once more for
        this."""
        column, task = self._table.group, self.task
        absent = [group for group in task.question.groups or () if absence_of(group) in absences]
        if not absent:
            return
        known: set[str] = set()
        if column is not None and task.spark is None and task.given.has_files and self._size() <= _READ_AGAIN:
            with stream_answer(replace(task.question, groups=None), self._source(), Engine()) as rows:
                for batch in rows:
                    known.update(batch.column(column).unique().drop_null().to_pylist())
        shares = self._share_groups(absent)
        for group in absent:
            if group in shares:
                say(f"note: {group!r} is a share group and has no committed offsets: see the table share_partitions")
            else:
                say(f"note: {absence_of(group)}{did_you_mean(group, known)}")

    def _share_groups(self, groups: Sequence[str]) -> set[str]:
        """The groups that have share partitions, if that can be determined quickly."""
        task, table = self.task, TABLES["share_partitions"]
        source = self._source()
        if task.spark is not None or not task.given.has_files or table.topic not in source.topics():
            return set()
        if sum(log.size for log in source.partitions(table.topic)) > _READ_AGAIN:
            return set()
        values = tuple(option_values(table, {}, None).items())
        question = replace(
            task.question, tables=(table.module,), values=(values,), groups=tuple(groups), topic=None, as_of_ms=None
        )
        with stream_answer(question, source, Engine()) as rows:
            return {group for batch in rows for group in batch.column("group_id").to_pylist()}

    def _size(self) -> int:
        """The size in bytes of the logs that were read."""
        source = self._source()
        names = self.task.question.topic or self._table.topic
        topics = [names] if names else [name for name in source.topics() if name in _TOPICS]
        return sum(log.size for name in topics for log in source.partitions(name))


class _Lags:
    """Whether any lag is known, for a table with a lag."""

    def __init__(self, table: Table) -> None:
        self._is_asked = "lag" in table.names and "log_ends" in {each.name for each in tables_read(table)}
        self._rows = self._known = 0

    def watched(self, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows as they arrive."""
        for batch in rows:
            if self._is_asked:
                self._rows += batch.num_rows
                self._known += batch.num_rows - batch.column("lag").null_count
            yield batch

    @property
    def are_all_unknown(self) -> bool:
        """Whether there are rows but none has a lag."""
        return self._rows > 0 and not self._known


_READ_AGAIN: Final = 64 * 1024 * 1024
_TOPICS: Final = frozenset(table.topic for table in TABLES.values() if table.topic)


# -- before any work is done -------------------------------------------------------------------------------------------


def _check(task: TableTask) -> None:
    """Raise a CommandError for an impossible task."""
    check_java_for(task.spark)
    check_output(task.output, task.given.paths)
    if task.findings is not None:
        check_file(task.findings, "--findings", task.output.overwrite)
        if task.output.path is not None and is_same_file(task.findings, task.output.path):
            raise CommandError(f"{task.findings} is also the --output file: give --findings another file")
        refuse_source(task.findings, task.given.paths)
    _check_package(task.table, task.question.package)


def _check_package(table: Table, package: str) -> None:
    if package == KAFKA or not any(each.records for each in tables_read(table)):
        return
    own = catalog_of(package)
    if own.folder is not None:
        folders = ", ".join(sorted({each.folder for each in tables_read(table) if each.records}))
        lacks = f"write --package {own.package}, without a folder"
        raise CommandError(f"--package {package}: {table.name} needs the records of a folder {folders}: {lacks}")
    unfit = misfits(table, package)
    if unfit:
        raise CommandError(f"--package {package}: {'; '.join(unfit)}")
