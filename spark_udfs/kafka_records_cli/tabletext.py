"""Results as a table for people."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

from rich import box
from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kafka_records_cli.jsontext import json_text
from kafka_records_runtime.printable import printable

_NARROWEST: Final = 12
"""No column of text is folded into fewer cells than this: a row that would need it is printed as a block."""

_LONGEST_PIECE: Final = 32
"""Longer pieces of a text are cut when they have to be, wherever that is."""

_PIECE: Final = re.compile(r"[^\s_./:,;=-]*(?:[\s_./:,;=-]+|$)")
"""What stays on one line as long as possible: up to the next blank or mark."""

_PADDING: Final = 3

_BLOCK_GAP: Final = 2


def write_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    """Print the rows under their column names.

    On a terminal wide values are folded, behind blanks and marks such as `-` and `_`; when that does not make them
    narrow enough, every row becomes a block of `column  value` lines. Elsewhere lines are as long as it takes, without
    any escape sequences.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    is_number = [_holds_numbers([row[at] for row in cells]) for at in range(len(columns))]
    if not out.isatty():
        _write_plainly(_table(columns, cells, is_number), _width(columns, cells), out)
        return
    console = Console(file=out)
    headers = [_folded_header(name, width) for name, width in zip(columns, _widths(cells, len(columns)), strict=True)]
    widths = _fitting(headers, cells, is_number, console.width)
    if widths is not None:
        folded = [[_folded(cell, width) for cell, width in zip(row, widths, strict=True)] for row in cells]
        console.print(_table(headers, folded, is_number))
        return
    room = max(console.width - max(map(cell_len, columns)) - _BLOCK_GAP, 1)
    for number, row in enumerate(cells, 1):
        console.rule(f"{number} of {len(cells)}", align="left", style="dim")
        console.print(_block(columns, [_folded(cell, room) for cell in row]))


class _Cell(str):
    """The text of a value, and whether it stands for a number, a text or null."""

    style: str = "text"


def _cell(value: Any) -> _Cell:
    if value is None:
        style, text = "null", "null"
    elif isinstance(value, str):
        style, text = "text", printable(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        style, text = "number", str(value)
    else:
        style, text = "text", _structure(value)
    return _styled(text, style)


def _styled(text: str, style: str) -> _Cell:
    cell = _Cell(text)
    cell.style = style
    return cell


def _structure(value: Any) -> str:
    if isinstance(value, dict) and all(isinstance(item, int) for item in value.values()):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return printable(json_text(value))


def _holds_numbers(column: list[_Cell]) -> bool:
    """Whether to align a column to the right: some value is a number, and every other one is null."""
    styles = {cell.style for cell in column}
    return "number" in styles and styles <= {"number", "null"}


def _text(cell: _Cell) -> Text:
    return Text(cell, style="dim" if cell.style == "null" else "")


def _table(columns: Sequence[str], cells: list[list[_Cell]], is_number: list[bool]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, right in zip(columns, is_number, strict=True):
        table.add_column(
            Text(name), justify="right" if right else "left", overflow="fold", no_wrap=True, header_style="bold"
        )
    for row in cells:
        table.add_row(*map(_text, row))
    return table


def _block(columns: Sequence[str], row: list[_Cell]) -> Table:
    block = Table.grid(padding=(0, _BLOCK_GAP))
    block.add_column(style="bold", no_wrap=True)
    block.add_column(overflow="fold", no_wrap=True)
    for name, cell in zip(columns, row, strict=True):
        block.add_row(Text(name), _text(cell))
    return block


def _folded_header(name: str, width: int) -> str:
    """A column name on as many lines as it takes to be no wider than its values, broken after underscores."""
    return "\n".join(_lines(re.findall(r"[^_]*_|[^_]+", name), width))


def _folded(cell: _Cell, width: int) -> _Cell:
    """The cell on lines of `width` cells at most."""
    if cell_len(cell) <= width:
        return cell
    pieces = [part for piece in _pieces(cell) for part in _cut(piece, width)]
    return _styled("\n".join(_lines(pieces, width)), cell.style)


def _pieces(cell: _Cell) -> list[str]:
    return [piece for piece in _PIECE.findall(cell) if piece]


def _cut(piece: str, width: int) -> list[str]:
    return [piece] if cell_len(piece.rstrip()) <= width else chop_cells(piece, width)


def _lines(pieces: Iterable[str], width: int) -> list[str]:
    """The pieces on lines that are no wider than `width` unless a single piece is; blanks at their ends fall away."""
    lines = [""]
    for piece in pieces:
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return [line.rstrip() for line in lines]


def _widths(cells: list[list[_Cell]], columns: int) -> list[int]:
    return [max((cell_len(row[at]) for row in cells), default=0) for at in range(columns)]


def _header_width(header: str) -> int:
    return max(map(cell_len, header.split("\n")))


def _width(columns: Sequence[str], cells: list[list[_Cell]]) -> int:
    """Of the table with every value on one line."""
    widths = zip(map(cell_len, columns), _widths(cells, len(columns)), strict=True)
    return sum(map(max, widths)) + _PADDING * len(columns)


def _fitting(headers: Sequence[str], cells: list[list[_Cell]], is_number: list[bool], room: int) -> list[int] | None:
    """The widths of columns that fit into `room`, the widest ones folded first; None when they would get too narrow."""
    natural = [
        max(width, _header_width(header)) for header, width in zip(headers, _widths(cells, len(headers)), strict=True)
    ]
    least = [
        (
            width
            if right
            else min(width, max(_header_width(header), _NARROWEST, _longest_piece([row[at] for row in cells])))
        )
        for at, (header, width, right) in enumerate(zip(headers, natural, is_number, strict=True))
    ]
    room -= _PADDING * (len(headers) - 1)
    if sum(least) > room:
        return None
    widths = natural
    while sum(widths) > room:
        widest = max((at for at in range(len(widths)) if widths[at] > least[at]), key=lambda at: widths[at])
        widths[widest] -= 1
    return widths


def _longest_piece(column: list[_Cell]) -> int:
    longest = max((cell_len(piece.rstrip()) for cell in column for piece in _pieces(cell)), default=0)
    return min(longest, _LONGEST_PIECE)


def _write_plainly(table: Table, width: int, out: TextIO) -> None:
    held = io.StringIO()
    Console(file=held, width=width, color_system=None, force_terminal=False, _environ={}).print(table)
    out.writelines(f"{line.rstrip()}\n" for line in held.getvalue().split("\n")[:-1])
