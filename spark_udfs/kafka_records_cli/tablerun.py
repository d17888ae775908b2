"""One run of `kafka-records table`: rows to the output, findings to standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kafka_records_tables.survivors import UNDECIDED
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_arrow.segments import LogPartition
from kafka_records_cli.failures import CommandError
from kafka_records_cli.output import write_result
from kafka_records_cli.places import places_of
from kafka_records_cli.progress import SparkProgress
from kafka_records_cli.reporting import FileReport, RecordReport, say
from kafka_records_cli.session import first_line, local_session
from kafka_records_cli.sparkrows import plain_rows
from kafka_records_runtime.errors import plural
from kafka_records_spark.modes import PERMISSIVE
from kafka_records_spark.segments import read_segments, segment_report

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from kafka_records_tables import Table


class TableRun:
    """Builds `table` from the partitions `logs`."""

    def __init__(self, table: Table, logs: Sequence[LogPartition], options: argparse.Namespace) -> None:
        self._table = table
        self._logs = logs
        self._options = options
        self._rows = 0
        self._log_starts: dict[int, int] = {}
        self._report = RecordReport()

    def run(self, settings: Mapping[str, str]) -> int:
        """Returns the exit status. Raises a CommandError when Spark does not start or does not finish."""
        try:
            with SparkProgress() as progress, local_session(settings) as session:
                return self._run(session, progress)
        except PySparkException as error:
            raise CommandError(f"Spark did not finish: {first_line(error)}") from error

    def _run(self, session: SparkSession, progress: SparkProgress) -> int:
        progress.watch(session, self._table.name)
        # The report comes first: whatever damage it does not see was appended later.
        files = segment_report(session, self._logs).collect()
        self._log_starts = {row["partition"]: row["log_start"] for row in files if row["log_start"]}
        # Tables read their input more than once and must see the same every time, also when a broker is writing.
        records = read_segments(session, self._logs, mode=PERMISSIVE, below_log_start=True)
        records = records.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self._count(records)
            raw = records.where(~self._is_below_log_start())
            result = self._table.build(raw).orderBy(*self._table.order)
            write_result(self._options, result.columns, self._counted(plain_rows(result), progress))
            unusable = self._unusable(self._table.remarks(raw))
        finally:
            records.unpersist()
        progress.stop()
        self._say_unusable(unusable)
        return max(self._say_files(files), self._report.status)

    def _is_below_log_start(self) -> Column:
        condition = F.lit(False)
        for partition, start in self._log_starts.items():
            condition = condition | ((F.col("partition") == partition) & (F.col("offset") < start))
        return condition

    def _count(self, records: DataFrame) -> None:
        is_below, is_marker = self._is_below_log_start(), F.col("control").isNotNull()
        (counts,) = records.agg(
            F.count(F.when(is_below, 1)).alias("below"),
            F.count(F.when(~is_below & is_marker, 1)).alias("markers"),
            F.count(F.when(~is_below & ~is_marker, 1)).alias("records"),
        ).collect()
        self._report.below_log_start = counts["below"]
        self._report.markers, self._report.records = counts["markers"], counts["records"]

    def _counted(self, rows: Iterator[Sequence[Any]], progress: SparkProgress) -> Iterator[Sequence[Any]]:
        for row in rows:
            if not self._rows and self._options.output is None and sys.stdout.isatty():
                progress.stop()  # two writers on one terminal would overwrite each other
            self._rows += 1
            yield row

    def _unusable(self, remarks: DataFrame) -> list[Row]:
        """The records that could not be used, by place; the others are counted."""
        found = []
        for row in remarks.toLocalIterator():
            self._report.leniency(row["bytes_left"], row["leniencies"])
            if row["error"] is not None:
                found.append(row)
        self._report.undecided = sum(row["error"]["reason"] == UNDECIDED for row in found)
        self._report.undecodable = len(found) - self._report.undecided
        return sorted(found, key=lambda row: (row["log_partition"], row["log_offset"]))

    def _say_unusable(self, rows: Sequence[Row]) -> None:
        places = {
            log.partition: places_of(log, [row["log_offset"] for row in rows if row["log_partition"] == log.partition])
            for log in self._logs
        }
        for row in rows:
            place = places[row["log_partition"]].get(row["log_offset"])
            start = f"{self._table.topic}-{row['log_partition']}" if place is None else str(place)
            say(f"{start}: record at offset {row['log_offset']}: {row['error']['message']} ({row['consequence']})")

    def _say_files(self, files: Sequence[Row]) -> int:
        report = FileReport()
        for file in sorted(files, key=lambda row: (row["partition"], row["file"])):
            for problem in file["problems"]:
                is_note = problem["severity"] == "note"
                report.found(problem["message"], is_note, problem["records"], problem["bytes"])
        say(f"{plural(self._rows, 'row')} from {self._report.read(len(self._logs), len(files))}")
        self._report.findings()
        report.summary()
        return report.status
