"""Writes a report as metrics for alerts: the numbers of findings, without names of groups or topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from prometheus_client.core import GaugeMetricFamily

from kafka_records_tables.report.levels import Level
from kafka_records_tables.results.open_metrics import write_families

if TYPE_CHECKING:
    from kafka_records_tables.report.report_parts import Report


def write_report_metrics(report: Report, out: TextIO, now: float) -> None:
    """Write the number of findings by level (0 for levels without any) and by kind."""
    by_level = GaugeMetricFamily("kafka_records_findings", "Findings of the report", labels=["level"])
    for level in Level:
        by_level.add_metric([level.word], sum(finding.level is level for finding in report.findings))
    by_kind = GaugeMetricFamily(
        "kafka_records_findings_by_kind", "Findings of the report of each kind", labels=["kind", "level"]
    )
    kinds = [(finding.kind, finding.level.word) for finding in report.findings]
    for kind, word in sorted({*kinds}):
        by_kind.add_metric([kind, word], kinds.count((kind, word)))
    moment = GaugeMetricFamily("kafka_records_report_moment_timestamp_seconds", "The moment that the report is about")
    moment.add_metric([], report.request.at_timestamp_ms / 1000)
    when = GaugeMetricFamily("kafka_records_report_timestamp_seconds", "When the report was written")
    when.add_metric([], now)
    complete = GaugeMetricFamily("kafka_records_report_complete", "1: nothing is missing; 0: rows are missing")
    complete.add_metric([], int(report.is_complete))
    write_families([by_level, by_kind, moment, when, complete], out)
