"""A table as aligned text for people."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable
from typing import Final, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.text.printable import printable
from kafka_records_tables.results.cell_texts import TEXT, joined, small_slices, write_lines
from kafka_records_tables.results.cells import CUT, cell_texts, cut, fitted, folded, in_lines, padded, styled, width_of
from kafka_records_tables.results.fitting import NARROWEST, ShownColumn, ShownTable, fitting, missing, whole

_BLOCK_GAP: Final = "  "
_MOST_LINES: Final = 12
"""A folded text is cut after this many lines."""

_BOLD: Final = "1"
_DIM: Final = "2"


def write_text(
    table: pa.Table,
    out: TextIO,
    *,
    width: int | None,
    wide: bool,
    is_terminal: bool,
    details: Collection[str] = (),
    essential: Collection[str] = (),
) -> None:
    """Print the rows under the names of their columns.

    On a terminal of `width` cells (None: it has no width), the table is made to fit: columns are left out (`fitting`),
    long texts are folded in `essential` columns and cut (…) in others, and a line below says what is missing. If not
    even two columns or the `essential` ones fit, every row becomes a block of `column value` lines, or `column: value`
    on the narrowest terminals. With `wide`, or if the output is not a terminal, nothing is left out and every row is
    one line; a text of more than 64 cells runs over its column. Non-printable characters are escaped.

    The texts are computed twice, once for their widths and once for writing, for only a few thousand rows at a time.
    """
    is_styled = is_terminal and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    if not is_terminal or wide or width is None:
        _write_rows(table, whole(table), out, is_styled)
        return
    layout = fitting(table, width, details, essential)
    if layout is None:
        _write_blocks(table, width, out, is_styled)
        return
    is_cut = _write_rows(table, layout, out, is_styled)
    told = missing(layout, is_cut)
    if told:
        for line in _in_words(told, max(width, NARROWEST)):
            out.write(f"\x1b[{_DIM}m{line}\x1b[0m\n" if is_styled else f"{line}\n")


def _slices(table: pa.Table) -> Iterable[pa.RecordBatch]:
    return small_slices(table.to_batches())


def _in_words(text: str, width: int) -> list[str]:
    """The text on lines of `width` cells, broken between words, or inside words that are wider than a line."""
    return in_lines((part for word in re.findall(r"\S+\s*", text) for part in _word_parts(word, width)), width)


def _word_parts(word: str, width: int) -> list[str]:
    return [word] if width_of(word.rstrip()) <= width else [*folded(word.rstrip(), width), " "]


# -- rows --------------------------------------------------------------------------------------------------------------


def _write_rows(table: pa.Table, layout: ShownTable, out: TextIO, is_styled: bool) -> set[str]:
    """Write the rows. Returns the names of the columns in which a text was cut."""
    _write_header(layout, out, is_styled)
    columns = layout.columns
    is_cut = {column.name for column in columns if column.width < column.natural and not column.is_folded}
    for batch in _slices(table):
        cells, long = [], np.zeros(batch.num_rows, np.bool_)
        for column in columns:
            values = batch.column(column.at)
            plain = cell_texts(values)
            texts = fitted(plain, column.width, column.is_number, layout.cuts)
            cells.append(styled(texts, _DIM, values.is_null()) if is_styled and values.null_count else texts)
            if column.is_folded:
                # A character never has fewer bytes than terminal cells.
                long |= pc.greater(pc.binary_length(plain), column.width).to_numpy(zero_copy_only=False)
        lines = pc.utf8_rtrim(pc.binary_join_element_wise(*cells, pa.scalar(layout.gap, TEXT)), " ")
        if long.any():
            folded_rows = _folded_rows(batch.filter(pa.array(long)), layout, is_styled, is_cut)
            lines = pc.replace_with_mask(lines, pa.array(long), pa.array(folded_rows, TEXT))
        write_lines(joined([lines, "\n"]), out)
    return is_cut


def _folded_rows(batch: pa.RecordBatch, layout: ShownTable, is_styled: bool, is_cut: set[str]) -> list[str]:
    """The rows, each on as many lines as its longest folded text needs. Adds columns with more than _MOST_LINES to
    `is_cut`."""
    columns = [(column, batch.column(column.at)) for column in layout.columns]
    texts = [cell_texts(values).to_pylist() for _, values in columns]
    nulls = [values.is_null().to_pylist() for _, values in columns]
    found = []
    for row in range(batch.num_rows):
        cells = [_cell_lines(column, texts[at][row], is_cut) for at, (column, _) in enumerate(columns)]
        height = max(map(len, cells))
        lines = []
        for line in range(height):
            parts = []
            for at, (column, _) in enumerate(columns):
                part = padded(cells[at][line] if line < len(cells[at]) else "", column.width, column.is_number)
                parts.append(f"\x1b[{_DIM}m{part}\x1b[0m" if is_styled and nulls[at][row] and not line else part)
            lines.append(layout.gap.join(parts).rstrip())
        found.append("\n".join(lines))
    return found


def _cell_lines(column: ShownColumn, text: str, is_cut: set[str]) -> list[str]:
    if not column.is_folded:
        return [text if width_of(text) <= column.width else cut(text, column.width - 1) + CUT]
    lines = folded(text, column.width)
    if len(lines) > _MOST_LINES:
        is_cut.add(column.name)
        lines[_MOST_LINES - 1 :] = [cut(lines[_MOST_LINES - 1], column.width - 1) + CUT]
    return lines


def _write_header(layout: ShownTable, out: TextIO, is_styled: bool) -> None:
    columns = layout.columns
    height = max((len(column.header) for column in columns), default=0)
    for line in range(height):
        cells = []
        for column in columns:
            # Align names at the bottom, right above their values.
            at = line - (height - len(column.header))
            cells.append(padded(column.header[at] if at >= 0 else "", column.width, column.is_number))
        text = layout.gap.join(cells).rstrip()
        out.write(f"\x1b[{_BOLD}m{text}\x1b[0m\n" if is_styled else f"{text}\n")
    out.write("─" * (sum(column.width for column in columns) + len(layout.gap) * max(len(columns) - 1, 0)) + "\n")


# -- blocks ------------------------------------------------------------------------------------------------------------


def _write_blocks(table: pa.Table, width: int, out: TextIO, is_styled: bool) -> None:
    """Write a block of lines for each row, with all its values."""
    names = [printable(name) for name in table.schema.names]
    indent = max(map(width_of, names))
    room = width - indent - len(_BLOCK_GAP)
    number = 0
    for batch in _slices(table):
        columns = [cell_texts(column).to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            number += 1
            out.write(f"{f'{number} of {table.num_rows} ':─<{width}}\n")
            for name, text in zip(names, row, strict=True):
                shown = f"\x1b[{_BOLD}m{name}\x1b[0m" if is_styled else name
                if room < NARROWEST:
                    # There is no room for the text next to the names, so it gets the full width below them.
                    first, *more = folded(f"{name}: {text}", max(width, NARROWEST))
                    first = first.replace(name, shown, 1) if first.startswith(name) else first
                    out.writelines(f"{line}\n" for line in (first, *more))
                    continue
                start = shown + " " * (indent - width_of(name))
                for line in folded(text, room):
                    out.write(f"{start}{_BLOCK_GAP}{line}".rstrip() + "\n")
                    start = " " * indent
