"""What a table says about itself, as text. Loads nothing but the standard library."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from kafka_records_tables.tables import input_called

if TYPE_CHECKING:
    from kafka_records_tables.tables.declaration import Table

_NARROW: Final = 40


def described(table: Table, room: int) -> str:
    """What a table says about itself and its columns, in lines of `room` cells."""
    lines = [
        f"{table.name}: {table.about}",
        _made_of(table),
        f"sorted by {', '.join(table.sort)}",
        "",
    ]
    names = max(len(column.name) for column in table.columns)
    kinds = max(len(column.type) for column in table.columns if len(column.type) < _NARROW)
    for column in table.columns:
        start = f"{column.name:<{names}}  {column.type:<{kinds}}  "
        indent = " " * (names + kinds + 4)
        about = textwrap.wrap(column.about, max(room - len(indent), _NARROW), break_on_hyphens=False)
        if len(start) > len(indent):
            lines.append(start.rstrip())
            start = indent
        lines.append(start + about[0])
        lines.extend(indent + line for line in about[1:])
    for option in table.options:
        default = f"; default: {option.default}" if option.default else ""
        told = f"option {option.name}: {option.about}{default}"
        lines.append(textwrap.fill(told, room, subsequent_indent="  "))
    return (
        "\n".join(textwrap.fill(line, room, subsequent_indent="  ") for line in lines[:3])
        + "\n"
        + "\n".join(lines[3:])
        + "\n"
    )


def _made_of(table: Table) -> str:
    if table.inputs:
        if not table.joined_by:
            return f"topics {', '.join(input_called(name).topic for name in table.inputs)}"
        return f"joins {' and '.join(table.inputs)} by {', '.join(table.joined_by)}"
    return f"topic {table.topic}, records {', '.join(table.records)}" if table.records else "every topic, no records"
