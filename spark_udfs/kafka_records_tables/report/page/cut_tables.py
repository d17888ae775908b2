"""Decides which rows of large tables a page leaves out, so that the file is small enough to send and opens quickly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.query import topic_columns
from kafka_records_tables.report.command_lines import command_line, option
from kafka_records_tables.report.page.packed_columns import Dictionaries, packed_table
from kafka_records_tables.report.report_parts import Omission, Report, ReportRequest
from kafka_records_tables.report.table_words import table_words
from kafka_records_tables.tables import TABLES

MOST_BYTES: Final = 14_000_000
"""The limit for all packed tables of a page: with scripts and findings the file stays under 15 MB."""

_MEASURED_ROWS: Final = 40_000
"""The number of rows from which a table's size is estimated. Smaller tables are packed whole."""

_SPARE: Final = 0.97
"""The share of the estimated space to use. Because rows differ in size, a smaller share makes a second cut rarely
necessary."""

_WEIGHTS: Final = {"current_offsets": 6.0, "groups": 6.0, "group_lag": 3.0}
"""The tables that readers want most, with their shares of the space. Every other table gets one share."""


def command_words(request: ReportRequest, name: str) -> list[str]:
    """The words of the command that prints a table of this report; conditions can be added."""
    words = table_words(request, name)
    for group in request.groups or ():
        words += option("--group", group)
    if topic_columns(TABLES[name]):
        words += [word for pattern in request.topic_filter for word in option("--topic-filter", pattern)]
    return words


class CutTables:
    """The tables of a report, cut so that they take at most `most_bytes` of the page.

    Large tables lose their last rows; small ones stay complete. Rows about groups that findings name are kept first.
    """

    def __init__(self, report: Report, most_bytes: int = MOST_BYTES) -> None:
        self._named = {group for finding in report.findings for group in finding.group_ids}
        self._whole = dict(report.tables)
        # Estimate the length of a row from the first rows, so that rows left out are never packed.
        self._pack({name: table.slice(0, _MEASURED_ROWS) for name, table in self._whole.items()}, whole_texts=True)
        rows = {name: table.num_rows for name, table in self._whole.items()}
        if max(rows.values(), default=0) > _MEASURED_ROWS:
            sizes = {name: len(self.packed[name][1]) * max(rows[name] / _MEASURED_ROWS, 1) for name in rows}
            self._pack(self._cut(sizes, most_bytes) if sum(sizes.values()) > self._room(most_bytes) else self._whole)
        room = most_bytes
        while sum(self._sizes().values()) > self._room(most_bytes) and any(
            each.num_rows for each in self.tables.values()
        ):
            sizes = {
                name: size * rows[name] / max(self.tables[name].num_rows, 1) for name, size in self._sizes().items()
            }
            self._pack(self._cut(sizes, room))
            room = room * 4 // 5
        self.omissions = tuple(_omissions(report.request, self._whole, self.tables))

    def _pack(self, kept: Mapping[str, pa.Table], *, whole_texts: bool = False) -> None:
        self.tables = kept
        self.dictionaries = Dictionaries(self._whole if whole_texts else kept)
        self.packed = {name: packed_table(table, self.dictionaries) for name, table in kept.items()}
        self.texts = self.dictionaries.packed()

    def _sizes(self) -> dict[str, int]:
        return {name: len(content) for name, (_, content) in self.packed.items()}

    def _room(self, most_bytes: int) -> int:
        """The number of bytes that are left for rows. Dictionaries shrink with the rows, so there is slightly more
        space after a cut."""
        return most_bytes - sum(map(len, self.texts.values()))

    def _cut(self, sizes: Mapping[str, float], most_bytes: int) -> dict[str, pa.Table]:
        """The tables, each with as many rows as fit; `sizes` are the bytes that all rows of each would take."""
        shares = _shares(sizes, max(self._room(most_bytes), most_bytes / 4))
        return {
            name: (
                _first_rows(table, name, self._named, int(table.num_rows * shares[name] / max(sizes[name], 1) * _SPARE))
                if shares[name] < sizes[name]
                else table
            )
            for name, table in self._whole.items()
        }


def _shares(sizes: Mapping[str, float], room: float) -> dict[str, float]:
    """The number of bytes for each table. A small table gets all it needs; the rest is divided among the others by
    their weights."""
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
