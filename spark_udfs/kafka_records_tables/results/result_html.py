"""Shows the answer of a table in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from kafka_records_runtime.errors import plural
from kafka_records_tables.results.count_words import read_words
from kafka_records_tables.results.html_parts import findings_html, rows_html
from kafka_records_tables.results.time_plot import time_plot

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from kafka_records_engine.findings import Finding
    from kafka_records_engine.sources import Counts
    from kafka_records_tables.tables.declaration import Table


def result_html(declaration: Table, table: pa.Table, findings: Sequence[Finding], counts: Counts) -> str:
    """The description of the table, the times of its rows, the first rows, the findings, and how much was read."""
    is_of_records = bool(declaration.records or declaration.inputs)
    read = read_words(counts, has_files=counts.files > 0) if is_of_records else plural(counts.partitions, "partition")
    damage = sum(finding.severity == "damage" for finding in findings)
    return (
        f"<div><p><strong>{escape(declaration.name)}</strong>: {escape(declaration.about)}</p>\n"
        f"{time_plot(table)}\n{rows_html(table)}\n{findings_html(findings)}"
        f"<p>{plural(table.num_rows, 'row')} from {read}; {plural(damage, 'finding')} of damage</p></div>"
    )
