"""The arguments of a `table` command that prints the rows of a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_records_tables.report.command_lines import instant
from kafka_records_tables.report.report_parts import USUAL_PACKAGE
from kafka_records_tables.table_options import value_of
from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.declaration import RETENTION
from kafka_records_tables.tables.words.check_words import PARTITIONS

if TYPE_CHECKING:
    from kafka_records_tables.report.report_parts import ReportRequest


def table_words(request: ReportRequest, name: str) -> list[str]:
    """The words of the command that prints a table as this report has read it, without conditions: the source, the
    time, how to treat records with unknown transactions, the package and, for tables with these options, the retention
    and the partition counts."""
    words = ["kafka-records", "table", name, *request.source_arguments]
    if request.as_of:
        words += ["--as-of", instant(request.at_timestamp_ms)]
    if request.assume is not None:
        words += ["--assume", request.assume]
    words += package_words(request)
    if RETENTION in TABLES[name].options and request.retention_ms != value_of(RETENTION, RETENTION.default):
        words += ["--retention", f"PT{request.retention_ms // 1000}S"]
    if PARTITIONS in TABLES[name].options and request.partitions:
        words += ["--partitions", ",".join(f"{topic}={number}" for topic, number in request.partitions.items())]
    return words


def package_words(request: ReportRequest) -> list[str]:
    """The --package option of a command, with the package of the records; empty for the default package."""
    return ["--package", request.package] if request.package != USUAL_PACKAGE else []
