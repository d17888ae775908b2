"""Results as a table for people."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any, Final, TextIO

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from kafka_records_cli.jsontext import json_text

_NARROWEST: Final = 12
"""No column of text is folded into fewer cells than this: a row that would need it is printed as a block."""

_PADDING: Final = 3


def write_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], out: TextIO) -> None:
    """Print the rows under their column names.

    On a terminal wide values are folded; when even that leaves columns too narrow to read, every row becomes a block of
    `column  value` lines. Elsewhere lines are as long as it takes, without any escape sequences.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    is_number = [_holds_numbers([row[at] for row in cells]) for at in range(len(columns))]
    if not out.isatty():
        _write_plainly(_table(columns, cells, is_number), _width(columns, cells), out)
        return
    console = Console(file=out)
    headers = [_folded(name, width) for name, width in zip(columns, _widths(cells, len(columns)), strict=True)]
    if _least_width(headers, cells, is_number) <= console.width:
        console.print(_table(headers, cells, is_number))
        return
    for number, row in enumerate(cells, 1):
        console.rule(f"{number} of {len(cells)}", align="left", style="dim")
        console.print(_block(columns, row))


class _Cell(str):
    """The text of a value, and whether it stands for a number, a text or null."""

    style: str = "text"


def _cell(value: Any) -> _Cell:
    if value is None:
        style, text = "null", "null"
    elif isinstance(value, str):
        style, text = "text", value if value.isprintable() else "".join(map(_printable, value))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        style, text = "number", str(value)
    else:
        style, text = "text", _structure(value)
    cell = _Cell(text)
    cell.style = style
    return cell


def _structure(value: Any) -> str:
    if isinstance(value, dict) and all(isinstance(item, int) for item in value.values()):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    return json_text(value)


def _holds_numbers(column: list[_Cell]) -> bool:
    """Whether to align a column to the right: some value is a number, and every other one is null."""
    styles = {cell.style for cell in column}
    return "number" in styles and styles <= {"number", "null"}


def _printable(character: str) -> str:
    """Line breaks would break the table, escape sequences and marks that turn the direction of text could hide what is
    there."""
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def _text(cell: _Cell) -> Text:
    return Text(cell, style="dim" if cell.style == "null" else "")


def _table(columns: Sequence[str], cells: list[list[_Cell]], is_number: list[bool]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name, right in zip(columns, is_number, strict=True):
        table.add_column(
            Text(name), justify="right" if right else "left", overflow="fold", no_wrap=right, header_style="bold"
        )
    for row in cells:
        table.add_row(*map(_text, row))
    return table


def _block(columns: Sequence[str], row: list[_Cell]) -> Table:
    block = Table.grid(padding=(0, 2))
    block.add_column(style="bold", no_wrap=True)
    block.add_column(overflow="fold")
    for name, cell in zip(columns, row, strict=True):
        block.add_row(Text(name), _text(cell))
    return block


def _folded(name: str, width: int) -> str:
    """A column name on as many lines as it takes to be no wider than its values, broken after underscores."""
    lines = [""]
    for part in re.findall(r"[^_]*_|[^_]+", name):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _widths(cells: list[list[_Cell]], columns: int) -> list[int]:
    return [max((cell_len(row[at]) for row in cells), default=0) for at in range(columns)]


def _header_width(header: str) -> int:
    return max(map(cell_len, header.split("\n")))


def _width(columns: Sequence[str], cells: list[list[_Cell]]) -> int:
    """Of the table with every value on one line."""
    widths = zip(map(cell_len, columns), _widths(cells, len(columns)), strict=True)
    return sum(map(max, widths)) + _PADDING * len(columns)


def _least_width(headers: Sequence[str], cells: list[list[_Cell]], is_number: list[bool]) -> int:
    """Of the table with every value folded as far as it may be."""
    widths = zip(headers, _widths(cells, len(headers)), is_number, strict=True)
    return sum(
        max(width if right else min(width, _NARROWEST), _header_width(header)) + _PADDING
        for header, width, right in widths
    )


def _write_plainly(table: Table, width: int, out: TextIO) -> None:
    held = io.StringIO()
    Console(file=held, width=width, color_system=None, force_terminal=False, _environ={}).print(table)
    out.writelines(f"{line.rstrip()}\n" for line in held.getvalue().split("\n")[:-1])
