"""What an engine does with one log partition: read it once for some tables, and tell what was found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka_records_engine.findings import Finding, sorted_findings
from kafka_records_engine.sources import Counts

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.engines.request import TableRequest


@dataclass(frozen=True, slots=True)
class LogTask:
    """What is asked of one log partition; picklable."""

    log: LogPartition
    requests: tuple[tuple[int, TableRequest], ...]
    """What is asked, each with its number in the run."""


@dataclass(frozen=True, slots=True)
class TaskReport:
    """What was found in one log partition, beside rows; picklable."""

    topic: str
    partition: int
    reading: Sequence[Finding]
    """What was found while reading, whatever tables made of it."""
    counts: Counts
    """What was read, once. Of records and markers the number that the table saw which read furthest."""
    of_tables: Sequence[tuple[int, Sequence[Finding], Counts]]
    """By the number of its request, what a table would say that was read by itself."""


@dataclass(slots=True)
class RunReport:
    """Findings and counts of a run, beside its rows; complete when the rows are at their end."""

    findings: list[Finding] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def add(self, findings: Sequence[Finding], counts: Counts) -> None:
        """Add findings and counts of one log partition. A finding about a whole data directory comes with each of its
        partitions, and is kept once."""
        known = {(found.file, found.what) for found in self.findings if found.is_about_file}
        new = [found for found in findings if not found.is_about_file or (found.file, found.what) not in known]
        if new:
            self.findings = sorted_findings([*self.findings, *new])
        self.counts.add(counts)


class RunReports:
    """The reports of all tables of a run; `given` are some by the numbers of their requests, to be added to."""

    def __init__(self, given: Mapping[int, RunReport] | None = None) -> None:
        self.of_tables: defaultdict[int, RunReport] = defaultdict(RunReport, given or {})
        """By the numbers of their requests."""
        self._logs: dict[tuple[str, int], tuple[dict[Finding, None], Counts]] = {}

    def add(self, report: TaskReport) -> None:
        """Add what was found in one log partition."""
        for number, findings, counts in report.of_tables:
            self.of_tables[number].add(findings, counts)
        # Tables that want different readings have one each.
        found, read = self._logs.setdefault((report.topic, report.partition), ({}, Counts()))
        found.update(dict.fromkeys(report.reading))
        read.widen(report.counts)

    @property
    def reading(self) -> RunReport:
        """What was found while reading, and what was read, once."""
        whole = RunReport()
        for findings, counts in self._logs.values():
            whole.add(list(findings), counts)
        return whole
