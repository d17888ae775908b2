"""Statements and expressions shared by decoding functions."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.python.names import local
from kafka_records_codegen.python.uses import Uses
from kafka_records_codegen.text.lines import Lines
from kafka_records_runtime.schema.layout import FieldLayout, FixedValue, Member, SizedValue, Value


def is_plain_string(value: Value | None) -> bool:
    """Whether the value is a string that cannot be null. Such strings remain bytes until the object is built."""
    return isinstance(value, SizedValue) and value.type == "string" and not value.nullable


def construction(layout: Layout, uses: Uses, *, with_tags: bool = True) -> str:
    """The expression that builds the object from the local variables."""
    arguments = [_argument(each, with_tags) for each in layout.wire.fields]
    if layout.message.flexible:
        arguments.append("unknown" if layout.wire.is_flexible and with_tags else None)
    while arguments and arguments[-1] is None:
        arguments.pop()
    # The last argument is for unknown tags. It does not belong to a field, and is never None.
    sources = [
        argument or uses.literal(layout, layout.wire.fields[place].field) for place, argument in enumerate(arguments)
    ]
    return f"{uses.struct_class(layout.struct)}({', '.join(sources)})"


def _argument(each: FieldLayout, with_tags: bool) -> str | None:
    """The expression for a field; None if the field has its default."""
    if not each.present or (each.tagged and not with_tags):
        return None
    if not each.tagged and is_plain_string(each.value):
        return f"{local(each.field)}.decode()"
    return local(each.field)


def unpacking(names: list[str]) -> str:
    """The left side of an assignment from a tuple."""
    return f"({names[0]},)" if len(names) == 1 else ", ".join(names)


def make_uuids(members: Iterable[Member], lines: Lines, uses: Uses) -> None:
    """Write statements that convert the 16 bytes of each uuid to its value."""
    for member in members:
        if member.value == FixedValue("uuid"):
            lines.add(f"{local(member.field)} = {uses.runtime_name('UUIDS')}[{local(member.field)}]")


def read_by_table(lines: Lines, names: str, entry: str, otherwise: str, arguments: str = "") -> None:
    """Write statements that assign `names` from a table entry. A missing entry is created. With `arguments`, the entry
    is called.

    Plain dicts and direct calls are the fastest way to do this in Python.
    """
    call = f"({arguments})" if arguments else ""
    with lines.block("try:"):
        lines.add(f"{names} = {entry}{call}")
    with lines.block("except KeyError:"):
        lines.add(f"{names} = {otherwise}{call}")


def give_up_if(condition: str, lines: Lines, uses: Uses) -> None:
    """Write a statement that gives up if `condition` is true, so that the schema walker reads the message instead."""
    with lines.block(f"if {condition}:"):
        lines.add(uses.give_up)
