"""A table for people."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.errors import plural
from kafka_records_runtime.printable import printable
from kafka_records_tables.report.cell_texts import TEXT, joined, small_slices, write_lines
from kafka_records_tables.report.cells import (
    can_be_cut,
    cell_texts,
    fitted,
    folded,
    holds_numbers,
    in_lines,
    styled,
    widest,
    width_of,
)

_GAP: Final = "   "
_BLOCK_GAP: Final = "  "

_NARROWEST: Final = 12
"""No column of text is cut to fewer cells than this; the last columns are left out instead."""

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

    On a terminal of `width` cells (None: it has no width) the table fits it: milliseconds of a time that stands there
    as text are dropped, long texts are cut (…), columns are left out from the right, those of `details` before all
    others, and a line below says what is missing. Where not even two columns or those of `essential` fit, every row
    becomes a block of `column  value` lines, or `column: value` on the narrowest. With `wide`, and elsewhere, nothing
    is left out and every row is one line. What is not printable is escaped.

    The texts are made twice, for their widths and to be written, and only for some thousand rows at a time.
    """
    is_styled = is_terminal and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")
    if not is_terminal or wide or width is None:
        columns = [_column(table, at, is_folded=False) for at in range(table.num_columns)]
        _write_rows(table, columns, out, is_styled)
        return
    columns = [_column(table, at, is_folded=True) for at in _shown(table)]
    unfolded = [_unfolded(column) for column in columns]
    fitting = _fitting(unfolded, width, is_whole=True) or _fitting(columns, width, details, essential)
    if fitting is None:
        _write_blocks(table, width, out, is_styled)
        return
    _write_rows(table, fitting, out, is_styled)
    missing = _missing(columns, fitting)
    if missing:
        for line in _in_words(missing, max(width, _NARROWEST)):
            out.write(f"\x1b[{_DIM}m{line}\x1b[0m\n" if is_styled else f"{line}\n")


@dataclass(frozen=True)
class _ShownColumn:
    """A column of the printed table."""

    at: int
    name: str
    header: tuple[str, ...]
    """Its name on lines."""
    is_number: bool
    least: int
    """The cells it cannot do without."""
    natural: int
    """The cells it takes when nothing is cut."""
    width: int


def _column(table: pa.Table, at: int, is_folded: bool) -> _ShownColumn:
    field = table.schema.field(at)
    values = max((widest(cell_texts(batch.column(at))) for batch in _slices(table)), default=0)
    name = printable(field.name)
    header = tuple(in_lines(re.findall(r"[^_]*_|[^_]+", name), values) if is_folded else [name])
    header_width = max(map(width_of, header))
    natural = max(values, header_width)
    least = min(natural, max(_NARROWEST, header_width)) if can_be_cut(field.type) else natural
    return _ShownColumn(at, name, header, holds_numbers(field.type), least, natural, natural)


def _unfolded(column: _ShownColumn) -> _ShownColumn:
    natural = max(column.natural, width_of(column.name))
    return replace(column, header=(column.name,), least=natural, natural=natural, width=natural)


def _slices(table: pa.Table) -> Iterable[pa.RecordBatch]:
    return small_slices(table.to_batches())


# -- what fits ---------------------------------------------------------------------------------------------------------


def _shown(table: pa.Table) -> Iterator[int]:
    """The columns but for milliseconds that a time beside them tells as well."""
    names = table.schema.names
    for at, name in enumerate(names):
        time = name.removesuffix("_ms")
        if time != name and time in names:
            column = table.column(time)
            if pa.types.is_timestamp(column.type) and column.null_count == table.column(at).null_count:
                continue
        yield at


def _fitting(
    columns: Sequence[_ShownColumn],
    room: int,
    details: Collection[str] = (),
    essential: Collection[str] = (),
    is_whole: bool = False,
) -> list[_ShownColumn] | None:
    """The columns that fit into `room`, with their widths; None when two of them do not, or not those of `essential`,
    or with `is_whole` not all."""
    kept = list(columns)
    while sum(column.least for column in kept) + len(_GAP) * (len(kept) - 1) > room:
        if is_whole or len(kept) <= min(2, len(columns)):
            return None
        able = [column for column in reversed(kept) if column.name not in essential]
        if not able:
            return None
        kept.remove(next((column for column in able if column.name in details), able[0]))
    room -= len(_GAP) * (len(kept) - 1)
    lowest, highest = 0, max((column.natural for column in kept), default=0)
    while lowest < highest:  # the widest columns are cut to the same width
        limit = (lowest + highest + 1) // 2
        if sum(_limited(column, limit) for column in kept) <= room:
            lowest = limit
        else:
            highest = limit - 1
    left = room - sum(_limited(column, lowest) for column in kept)
    fitting = []
    for column in kept:
        width = _limited(column, lowest)
        more = min(left, 1, column.natural - width)
        left -= more
        fitting.append(replace(column, width=width + more))
    return fitting


def _limited(column: _ShownColumn, limit: int) -> int:
    return max(column.least, min(column.natural, limit))


def _missing(columns: Sequence[_ShownColumn], fitting: Sequence[_ShownColumn]) -> str | None:
    shown = {column.at for column in fitting}
    left_out = [column.name for column in columns if column.at not in shown]
    is_cut = [column.name for column in fitting if column.width < column.natural]
    parts = []
    if is_cut:
        parts.append(f"long texts cut in {', '.join(is_cut)}")
    if left_out:
        parts.append(f"{plural(len(left_out), 'column')} left out: {', '.join(left_out)}")
    return f"{'; '.join(parts)}; --wide shows all" if parts else None


def _in_words(text: str, width: int) -> list[str]:
    """The text on lines of `width` cells, broken between words, and inside of those alone that are wider."""
    return in_lines((part for word in re.findall(r"\S+\s*", text) for part in _word_parts(word, width)), width)


def _word_parts(word: str, width: int) -> list[str]:
    return [word] if width_of(word.rstrip()) <= width else [*folded(word.rstrip(), width), " "]


# -- rows --------------------------------------------------------------------------------------------------------------


def _write_rows(table: pa.Table, columns: Sequence[_ShownColumn], out: TextIO, is_styled: bool) -> None:
    _write_header(columns, out, is_styled)
    for batch in _slices(table):
        cells = []
        for column in columns:
            values = batch.column(column.at)
            texts = fitted(cell_texts(values), column.width, column.is_number)
            cells.append(styled(texts, _DIM, values.is_null()) if is_styled and values.null_count else texts)
        lines = pc.utf8_rtrim(pc.binary_join_element_wise(*cells, pa.scalar(_GAP, TEXT)), " ")
        write_lines(joined([lines, "\n"]), out)


def _write_header(columns: Sequence[_ShownColumn], out: TextIO, is_styled: bool) -> None:
    height = max((len(column.header) for column in columns), default=0)
    for line in range(height):
        cells = []
        for column in columns:
            # Names stand right above their values: the empty lines come first.
            at = line - (height - len(column.header))
            text = pa.array([column.header[at] if at >= 0 else ""], TEXT)
            cells.append(fitted(text, column.width, column.is_number)[0].as_py())
        text = _GAP.join(cells).rstrip()
        out.write(f"\x1b[{_BOLD}m{text}\x1b[0m\n" if is_styled else f"{text}\n")
    out.write("─" * (sum(column.width for column in columns) + len(_GAP) * max(len(columns) - 1, 0)) + "\n")


# -- blocks ------------------------------------------------------------------------------------------------------------


def _write_blocks(table: pa.Table, width: int, out: TextIO, is_styled: bool) -> None:
    """A block of lines per row, with everything that is in it."""
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
                if room < _NARROWEST:
                    # Beside the names there is no room to read in; below them there is what the terminal has.
                    first, *more = folded(f"{name}: {text}", max(width, _NARROWEST))
                    first = first.replace(name, shown, 1) if first.startswith(name) else first
                    out.writelines(f"{line}\n" for line in (first, *more))
                    continue
                start = shown + " " * (indent - width_of(name))
                for line in folded(text, room):
                    out.write(f"{start}{_BLOCK_GAP}{line}".rstrip() + "\n")
                    start = " " * indent
