"""Which rows of large tables a page leaves out, so that it stays a file that can be sent and opens at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.query import topic_column
from kafka_records_tables.report.command_lines import command_line, option
from kafka_records_tables.report.page.packed_columns import Dictionaries, packed_table
from kafka_records_tables.report.report_parts import Omission, Report, ReportRequest
from kafka_records_tables.table_options import value_of
from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.declaration import RETENTION

MOST_BYTES: Final = 14_000_000
"""Of all tables in a page, packed: with scripts and findings a file stays under 15 MB."""

_WEIGHTS: Final = {"current_offsets": 6.0, "groups": 6.0, "group_lag": 3.0}
"""Which tables people come for: each gets so many shares of the room, and others one."""


def command_words(request: ReportRequest, name: str) -> list[str]:
    """The words of the command that prints a table of this report, to which conditions can be added."""
    words = ["kafka-records", "table", name, *request.source_arguments]
    table = TABLES[name]
    if request.as_of:
        words += ["--as-of", str(request.at_timestamp_ms)]
    for group in request.groups or ():
        words += option("--group", group)
    if topic_column(table) is not None:
        words += [word for pattern in request.topic_filter for word in option("--topic-filter", pattern)]
    if RETENTION in table.options and request.retention_ms != value_of(RETENTION, str(RETENTION.default)):
        words += ["--retention", f"PT{request.retention_ms // 1000}S"]
    return words


class CutTables:
    """The tables of a report as they stand in a page, in at most `most_bytes` of it.

    Large tables lose rows at their end, small ones none. Rows about groups that findings name are kept before others.
    """

    def __init__(self, report: Report, most_bytes: int = MOST_BYTES) -> None:
        named = {group for finding in report.findings for group in finding.group_ids}
        whole = dict(report.tables)
        kept = dict(whole)
        room = float(most_bytes)
        while True:
            self.tables: Mapping[str, pa.Table] = kept
            self.dictionaries = Dictionaries(kept)
            self.packed = {name: packed_table(table, self.dictionaries) for name, table in kept.items()}
            texts = self.dictionaries.packed()
            sizes = {name: len(content) for name, (_, content) in self.packed.items()}
            total = sum(sizes.values()) + sum(map(len, texts.values()))
            if total <= most_bytes or not any(table.num_rows for table in kept.values()):
                break
            # Dictionaries shrink with the rows; what they take now is the best guess of what they will take.
            room = min(room * 0.97, most_bytes - sum(map(len, texts.values())))
            shares = _shares(sizes, max(room, most_bytes / 4))
            kept = {
                name: (
                    _first_rows(table, name, named, int(table.num_rows * shares[name] / max(sizes[name], 1) * 0.98))
                    if shares[name] < sizes[name]
                    else table
                )
                for name, table in kept.items()
            }
        self.texts = texts
        self.omissions = tuple(_omissions(report.request, whole, kept))


def _shares(sizes: Mapping[str, int], room: float) -> dict[str, float]:
    """Bytes for each: all that a small one takes, and of what is left as many shares as each weighs."""
    shares: dict[str, float] = {}
    weights = {name: _WEIGHTS.get(name, 1.0) for name in sizes}
    for name in sorted(sizes, key=lambda name: sizes[name] / weights[name]):
        left = sum(weights[other] for other in sizes if other not in shares)
        shares[name] = min(float(sizes[name]), room * weights[name] / left)
        room -= shares[name]
    return shares


def _first_rows(table: pa.Table, name: str, named: set[str], most: int) -> pa.Table:
    column = TABLES[name].group
    if column is None or not named or most >= table.num_rows:
        return table.slice(0, most)
    is_named = pc.is_in(table.column(column), pa.array(sorted(named), pa.string())).to_numpy()
    rows = np.sort(np.argsort(~is_named, kind="stable")[:most])
    return table.take(pa.array(rows))


def _omissions(
    request: ReportRequest, whole: Mapping[str, pa.Table], kept: Mapping[str, pa.Table]
) -> Iterable[Omission]:
    for name, table in whole.items():
        missing = table.num_rows - kept[name].num_rows
        if missing:
            yield Omission(name, missing, command_line(command_words(request, name)))
