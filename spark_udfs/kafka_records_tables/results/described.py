"""The description of a table, as text. Imports only the standard library."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kafka_records_tables.tables import input_called

if TYPE_CHECKING:
    from kafka_records_tables.tables.declaration import Table

_NARROW: Final = 40


def described(table: Table, room: int) -> str:
    """The description of a table with its columns, options and rules, in lines of at most `room` cells."""
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
        told = f"--{option.argument}: {option.about}{default}"
        lines.append(textwrap.fill(told, room, subsequent_indent="  "))
    return (
        "\n".join(textwrap.fill(line, room, subsequent_indent="  ") for line in lines[:3])
        + "\n"
        + "\n".join([*lines[3:], "", *_rules(table.rules, room)])
        + "\n"
    )


def _rules(text: str, room: int) -> Iterator[str]:
    """The paragraphs and lists, on lines of `room` cells."""
    for number, paragraph in enumerate(text.strip().split("\n\n")):
        if number:
            yield ""
        for item in re.split(r"\n(?=- )", paragraph):
            indent = "  " if item.startswith("- ") else ""
            yield textwrap.fill(" ".join(item.split()), room, subsequent_indent=indent, break_on_hyphens=False)


def _made_of(table: Table) -> str:
    if table.inputs:
        if not table.join_keys:
            topics = dict.fromkeys(input_called(name).topic for name in table.inputs)
            of_all = ["and ends of all logs"] if "" in topics else []
            return f"topics {', '.join([topic for topic in topics if topic] + of_all)}"
        return f"joins {' and '.join(table.inputs)} by {', '.join(table.join_keys)}"
    return f"topic {table.topic}, records {', '.join(table.records)}" if table.records else "every topic, no records"
