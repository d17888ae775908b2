"""Rows, findings and texts as HTML for notebooks, without scripts, requests or style sheets. Texts are escaped.

A notebook may remove elements and attributes that it does not trust, so the content does not depend on styles. It uses
the notebook's colours, light or dark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable
from kafka_records_tables.results.cells import CUT, NULL, cell_texts, holds_numbers
from kafka_records_tables.results.finding_lines import finding_lines
from kafka_records_tables.results.fitting import telling_columns

if TYPE_CHECKING:
    from kafka_records_engine.findings import Finding

MOST_ROWS: Final = 20
"""The maximum number of rows of a table that a notebook shows."""
LONGEST_CELL: Final = 80
"""The maximum number of characters in a cell."""
LONGEST_LINE: Final = 600
"""The maximum number of characters in a line about a finding."""
MOST_FINDINGS: Final = 10
"""The maximum number of findings of one kind to show on separate lines."""

_TEXT: Final = "text-align:left;white-space:nowrap"
_NUMBER: Final = "text-align:right;white-space:nowrap"


def text_html(text: str, longest: int = LONGEST_LINE) -> str:
    """Any text as HTML. Non-printable characters are escaped, long texts are cut, and the text is isolated from its
    neighbours, because right-to-left letters would change their order."""
    return f"<bdi>{escape(_cut(printable(text[: longest + 1]), longest))}</bdi>"


def rows_html(table: pa.Table, most: int = MOST_ROWS) -> str:
    """The first rows of a table, in a frame that scrolls if they are wide, with a line below about what is not shown.

    All columns are shown, except milliseconds that are also shown as a time. The title of a column name is the column's
    comment.
    """
    columns = list(telling_columns(table))
    head = table.slice(0, most)
    fields = [table.schema.field(at) for at in columns]
    header = "".join(_header(field) for field in fields)
    cut: list[str] = []
    cells = [_cells(head.column(at), field, cut) for at, field in zip(columns, fields, strict=True)]
    lines = "".join(f"<tr>{''.join(row)}</tr>\n" for row in zip(*cells, strict=True))
    notes = [f"{len(head)} of {plural(len(table), 'row')}"] if len(head) < len(table) else []
    notes += [f"long texts cut in {', '.join(map(escape, cut))}"] if cut else []
    rows = f"<table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{lines}</tbody></table>"
    return f'<div style="overflow-x:auto">{rows}</div>' + (
        f"<p>{'; '.join(notes)}: <code>.table</code> has all</p>" if notes else ""
    )


def _header(field: pa.Field) -> str:
    about = (field.metadata or {}).get(b"comment", b"").decode()
    style = _NUMBER if holds_numbers(field.type) else _TEXT
    return f'<th scope="col" style="{style}" title="{escape(about)}">{escape(printable(field.name))}</th>'


def _cells(column: pa.ChunkedArray, field: pa.Field, cut: list[str]) -> list[str]:
    """The cells of one column. Adds the column's name to `cut` if a text is too long."""
    values = column.combine_chunks()
    if pa.types.is_string(field.type):
        # A string may have a million characters, of which only the first need to be made printable.
        values = pc.utf8_slice_codeunits(values, 0, LONGEST_CELL + 1)
    found = []
    texts: Sequence[str] = cell_texts(values).to_pylist()
    for text, is_null in zip(texts, values.is_null().to_pylist(), strict=True):
        if len(text) > LONGEST_CELL and field.name not in cut:
            cut.append(field.name)
        if is_null:
            found.append(f'<td style="{_TEXT};opacity:0.5">{NULL}</td>')
        elif holds_numbers(field.type):
            found.append(f'<td style="{_NUMBER}">{text}</td>')
        else:
            found.append(f'<td style="{_TEXT}"><bdi>{escape(_cut(text, LONGEST_CELL))}</bdi></td>')
    return found


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[:longest] + CUT


def findings_html(findings: Iterable[Finding]) -> str:
    """The findings of a reading, one per line, worded as in the command; empty if there are none."""
    way = ".findings has all of them"
    lines = [f"<li>{text_html(line)}</li>\n" for line in finding_lines(findings, way, MOST_FINDINGS)]
    return f"<ul>\n{''.join(lines)}</ul>" if lines else ""
