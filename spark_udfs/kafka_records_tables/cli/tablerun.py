"""One run of `kafka-records table`: rows to the output, then findings and counts to standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from kafka_records_engine.findings import DAMAGED_LOG, UNDECIDED_TRANSACTION, UNREAD_LOG
from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_runtime.errors import KafkaRecordsError, plural
from kafka_records_tables.cli.failures import DAMAGE, OK, CommandError
from kafka_records_tables.cli.output import replacing, write_batches
from kafka_records_tables.cli.progress import ByteProgress
from kafka_records_tables.cli.reporting import FileReport, RecordReport, say
from kafka_records_tables.engines.local import WorkerEnded
from kafka_records_tables.query import QueryError
from kafka_records_tables.read import stream_table
from kafka_records_tables.report.finding_lines import finding_json, finding_lines
from kafka_records_tables.selection import HELD, Selection
from kafka_records_tables.tables.transactions_settled import UntoldTransactions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import Counts
    from kafka_records_tables import Stream, Table
    from kafka_records_tables.query import Query


class TableRun:
    """Writes the rows of `table` that `query` asks for."""

    def __init__(self, table: Table, query: Query, options: argparse.Namespace) -> None:
        self._table = table
        self._query = query
        self._options = options
        self._rows = 0

    def run(self) -> int:
        """Returns the exit status. Raises a CommandError when there is no answer."""
        try:
            with (
                ByteProgress(self._table.name) as progress,
                self._session(progress) as session,
                self._stream(progress, session) as stream,
            ):
                selection = Selection(self._table, stream, self._query, self._most_held)
                self._write(selection, progress)
        except LogSourceError as error:
            raise CommandError(self._no_log(error)) from None
        except UntoldTransactions as error:
            raise CommandError(
                f"{error.topic}-{error.partition}: nobody can tell whether the record at offset {error.offset} was "
                "written in a transaction, and whether that was committed; --untold committed counts such records as "
                "committed, although some may be of aborted or open transactions"
            ) from None
        except WorkerEnded as error:
            raise CommandError(
                f"{error.what_happened}: --processes 1 reads with one process, --group NAME reads less"
            ) from None
        except (KafkaRecordsError, QueryError) as error:
            raise CommandError(str(error)) from error
        if not selection.is_sorted:
            size = f"{HELD >> 20} MiB"
            say(f"note: the rows are not sorted: there are more than {size} of them; --sort sorts them, in memory")
        self._say(stream.findings)
        return self._sum_up(stream.findings, stream.counts, selection.matching)

    @contextmanager
    def _session(self, progress: ByteProgress) -> Iterator[SparkSession | None]:
        """The session of --engine spark."""
        if self._options.engine == "local":
            yield None
            return
        from kafka_records_tables.engines.session import local_session

        progress.waiting("starting Spark")
        settings = dict(self._options.conf)
        if self._options.master is not None:
            settings["spark.master"] = self._options.master
        with local_session(settings) as session:
            yield session

    def _stream(self, progress: ByteProgress, session: SparkSession | None) -> Stream:
        options = self._options
        return stream_table(
            self._table,
            options.sources,
            group=options.group or None,
            as_of=options.as_of,
            untold=options.untold,
            package=options.package,
            processes=options.processes,
            spark=session,
            on_progress=progress.moved,
        )

    @property
    def _most_held(self) -> int | None:
        """A table for people is held in any case, and who asks for an order gets it."""
        return None if self._options.sort or self._options.format == "table" else HELD

    def _write(self, selection: Selection, progress: ByteProgress) -> None:
        table = self._table
        details = () if self._options.columns else table.details
        write_batches(self._options, selection.schema, self._counted(selection, progress), details, table.essential)

    def _counted(self, batches: Iterable[pa.RecordBatch], progress: ByteProgress) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not self._rows and self._options.output is None and sys.stdout.isatty():
                progress.stop()  # two writers on one terminal would overwrite each other
            self._rows += batch.num_rows
            yield batch

    def _no_log(self, error: LogSourceError) -> str:
        from kafka_records_engine.log.reading import find_logs
        from kafka_records_tables import TABLES

        try:
            there = {log.topic for log in find_logs(self._options.sources)}
        except (LogSourceError, OSError):
            return str(error)
        others = [table.name for table in TABLES.values() if table.topic in there - {self._table.topic}]
        return f"{error}; tables about that: {', '.join(others)}" if others else str(error)

    # -- what was found ------------------------------------------------------------------------------------------------

    def _say(self, findings: Sequence[Finding]) -> None:
        path = self._options.findings
        way = "--findings FILE writes all of them" if path is None else f"{path} has all of them"
        for line in finding_lines(findings, way):
            say(line)
        if path is not None:
            with replacing(path) as part, open(part, "w", encoding="utf-8") as out:
                out.writelines(map(finding_json, findings))

    def _sum_up(self, findings: Sequence[Finding], counts: Counts, matching: int) -> int:
        files, records = FileReport(), RecordReport()
        records.records, records.markers, records.below_log_start = (
            counts.records,
            counts.markers,
            counts.below_log_start,
        )
        records.with_bytes_left, records.bytes_left = counts.lenient_records, counts.lenient_bytes
        records.leniencies.update(counts.leniencies)
        for finding in findings:
            if finding.reason == UNREAD_LOG:
                files.control_records += finding.records
            elif finding.severity == "damage" and finding.reason == DAMAGED_LOG:
                files.damages += 1
                files.lost_records += finding.records
                files.unread_bytes += finding.bytes
            elif finding.severity == "damage" and finding.reason == UNDECIDED_TRANSACTION:
                records.undecided += 1
            elif finding.severity == "damage":
                records.undecodable += 1
        if self._options.topic_filter and not matching:
            patterns = ", ".join(map(repr, self._options.topic_filter))
            say(f"note: there is no such row about a topic that matches {patterns}")
        rows = plural(matching, "row")
        if self._rows < matching:
            rows = f"{self._rows} of {rows}"
        say(f"{rows} from {records.read(counts.partitions, counts.files)}")
        records.findings()
        files.summary()
        return DAMAGE if any(finding.severity == "damage" for finding in findings) else OK
