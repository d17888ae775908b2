"""An engine's work on one log partition: reading it once for some tables, and reporting findings and counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_records_engine.findings import Finding, merged_findings, sorted_findings
from kafka_records_engine.sources import Counts

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.engines.request import TableRequest


@dataclass(frozen=True, slots=True)
class LogTask:
    """The work on one log partition. Picklable."""

    log: LogPartition
    requests: tuple[tuple[int, TableRequest], ...]
    """The requests, each with its number in the run."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """The findings and counts of one log partition, without the rows. Picklable."""

    topic: str
    partition: int
    reading: Sequence[Finding]
    """The findings made while reading, without those of tables."""
    counts: Counts
    """What was read, counted once. The numbers of records and markers are those of the table that read the most."""
    of_tables: Sequence[tuple[int, Sequence[Finding], Counts]]
    """By request number, the report that each table would have if it were read alone."""


@dataclass(slots=True)
class RunReport:
    """The findings and counts of a run, without rows; complete after the last row."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def add(self, findings: Sequence[Finding], counts: Counts) -> None:
        """Add findings and counts of one log partition. A finding about a whole data directory occurs for each of its
        partitions, but is kept once."""
        known = {(found.file, found.what) for found in self.findings if found.is_about_file}
        new = [found for found in findings if not found.is_about_file or (found.file, found.what) not in known]
        if new:
            self.findings = sorted_findings([*self.findings, *new])
        self.counts.add(counts)


class RunReports:
    """The reports of all tables of a run."""

    def __init__(self) -> None:
        self._logs: defaultdict[tuple[str, int], list[TaskReport]] = defaultdict(list)

    def add(self, report: TaskReport) -> None:
        """Add the report about one log partition."""
        self._logs[report.topic, report.partition].append(report)

    def of(self, numbers: Collection[int]) -> RunReport:
        """The findings and counts for the tables of these requests. What several tables share for the same log
        partition is included once."""
        return _once_per_log(
            [(found, counts) for each in reports for number, found, counts in each.of_tables if number in numbers]
            for reports in self._logs.values()
        )

    @property
    def reading(self) -> RunReport:
        """The findings and counts of reading. Each reading is included once; tables with different needs have separate
        readings."""
        return _once_per_log([(each.reading, each.counts) for each in reports] for reports in self._logs.values())


def _once_per_log(logs: Iterable[Sequence[tuple[Sequence[Finding], Counts]]]) -> RunReport:
    whole = RunReport()
    for of_log in logs:
        read = Counts()
        for _, counts in of_log:
            read.widen(counts)
        whole.add(merged_findings(findings for findings, _ in of_log), read)
    return whole
