"""Writes a report as a JSON document with the schema `report.schema.json`, and reads such a document for a
comparison."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from kafka_records_runtime.text.json_text import json_text
from kafka_records_runtime.text.printable import json_printable
from kafka_records_tables.report.levels import Level
from kafka_records_tables.results.finding_lines import finding_object

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.findings import Finding as ReadingFinding
    from kafka_records_tables.report.report_parts import Report

FORMAT: Final = "kafka-records-report"
FORMAT_VERSION: Final = 3
"""Increased when programs that read documents would misread the new version. Adding members does not increase it."""

SCHEMA: Final = Path(__file__).with_name("report.schema.json")


def report_object(report: Report) -> dict[str, Any]:
    """A report without the rows of its tables, as JSON."""
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "request": plain(report.request),
        "findings": plain(report.findings),
        "numbers": plain(report.numbers),
        "missing": dict(report.missing),
        "reading": [_reading_object(each) for each in report.reading],
        "counts": plain(report.counts),
        "diff": plain(report.diff),
    }


def _reading_object(finding: ReadingFinding) -> dict[str, Any]:
    """A finding of the reading, worded as in a report."""
    words = {"what": "problem", "consequence": "impact"}
    return {words.get(name, name): value for name, value in finding_object(finding).items()}


def plain(value: Any) -> Any:
    """A value of the report as JSON. Levels become words, and members have the names of fields."""
    if isinstance(value, Level):
        return value.word
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def write_report_json(report: Report, out: TextIO, *, with_tables: bool = True) -> None:
    """Write the document. It is ASCII except for table rows, which are written as by `table --format json`, one per
    line."""
    text = json.dumps(report_object(report), indent=1)
    out.write(text.removesuffix("\n}"))
    if with_tables:
        out.write(',\n "tables": {')
        for at, (name, rows) in enumerate(report.tables.items()):
            out.write(f"{',' if at else ''}\n  {json_text(name)}: [")
            _write_rows(rows, out)
            out.write("]")
        out.write("\n }")
    out.write("\n}\n")


def _write_rows(rows: pa.Table, out: TextIO) -> None:
    from kafka_records_tables.results.cell_texts import json_objects, small_slices

    is_terminal = out.isatty()
    between = "\n"
    for batch in small_slices(rows.to_batches()):
        for line in json_objects(batch.schema.names, batch.columns, batch.num_rows).to_pylist():
            out.write(f"{between}{json_printable(line) if is_terminal else line}")
            between = ",\n"
