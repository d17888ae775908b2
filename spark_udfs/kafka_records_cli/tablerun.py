"""One run of `kafka-records table`: rows to the output, findings to standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.errors import PySparkException

from kafka_records_arrow.segments import LogPartition
from kafka_records_cli.failures import DAMAGE, OK, CommandError
from kafka_records_cli.output import write_result
from kafka_records_cli.places import places_of
from kafka_records_cli.progress import SparkProgress
from kafka_records_cli.reporting import FileReport, say
from kafka_records_cli.session import first_line, local_session
from kafka_records_cli.sparkrows import plain_rows
from kafka_records_runtime.errors import plural
from kafka_records_spark.modes import PERMISSIVE
from kafka_records_spark.segments import read_segments, segment_report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kafka_records_tables import Table


class TableRun:
    """Builds `table` from `sources`, whose partitions are `logs`."""

    def __init__(
        self, table: Table, logs: Sequence[LogPartition], sources: Sequence[str], options: argparse.Namespace
    ) -> None:
        self._table = table
        self._logs = logs
        self._sources = sources
        self._options = options
        self._rows = 0

    def run(self, settings: Mapping[str, str]) -> int:
        """Returns the exit status. Raises a CommandError when Spark does not start or does not finish."""
        try:
            with SparkProgress() as progress, local_session(settings) as session:
                return self._run(session, progress)
        except PySparkException as error:
            raise CommandError(f"Spark did not finish: {first_line(error)}") from error

    def _run(self, session: SparkSession, progress: SparkProgress) -> int:
        progress.watch(session, self._table.name)
        raw = read_segments(session, self._sources, topic=self._table.topic, mode=PERMISSIVE)
        # Tables read their input more than once and must see the same every time, also when a broker is writing.
        raw = raw.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            result = self._table.build(raw).orderBy(*self._table.order)
            write_result(self._options, result.columns, self._counted(plain_rows(result), progress))
            undecodable = self._table.undecodable(raw).orderBy("log_partition", "log_offset").collect()
        finally:
            raw.unpersist()
        files = segment_report(session, self._sources, topic=self._table.topic).collect()
        progress.stop()
        self._say_undecodable(undecodable)
        return max(self._say_files(files), DAMAGE if undecodable else OK)

    def _counted(self, rows: Iterator[Sequence[Any]], progress: SparkProgress) -> Iterator[Sequence[Any]]:
        for row in rows:
            if not self._rows and self._options.output is None and sys.stdout.isatty():
                progress.stop()  # two writers on one terminal would overwrite each other
            self._rows += 1
            yield row

    def _say_undecodable(self, rows: Sequence[Any]) -> None:
        places = {
            log.partition: places_of(log, [row["log_offset"] for row in rows if row["log_partition"] == log.partition])
            for log in self._logs
        }
        for row in rows:
            place = places[row["log_partition"]].get(row["log_offset"])
            start = f"{self._table.topic}-{row['log_partition']}" if place is None else str(place)
            say(f"{start}: record at offset {row['log_offset']}: {row['error']['message']} (not used)")

    def _say_files(self, files: Sequence[Any]) -> int:
        report = FileReport()
        for file in sorted(files, key=lambda row: (row["partition"], row["file"])):
            for problem in file["problems"]:
                is_note = problem["severity"] == "note"
                report.found(problem["message"], is_note, problem["records"], problem["bytes"])
        records = sum(file["records"] for file in files)
        say(
            f"{plural(self._rows, 'row')} from {plural(records, 'record')}, transaction markers included, "
            f"in {plural(len(files), 'file')} of {plural(len(self._logs), 'partition')}"
        )
        report.summary()
        return report.status
