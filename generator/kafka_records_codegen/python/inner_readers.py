"""Generates functions that decode structs inside messages, one by one and in arrays."""

from __future__ import annotations

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.python.names import function
from kafka_records_codegen.python.statements import construction, give_up_if
from kafka_records_codegen.python.struct_reader import StructReader
from kafka_records_codegen.python.uses import Uses
from kafka_records_codegen.text.lines import Lines


def read_struct_function(layout: Layout, uses: Uses) -> str:
    """The source of a function `(data, pos) -> (value, position after it)`."""
    lines = Lines()
    name = uses.struct_class(layout.struct)
    with lines.block(f"def {function('read', layout)}(data: bytes, pos: int) -> tuple[{name}, int]:"):
        reader = StructReader(layout, lines, uses)
        reader.read()
        lines.add(f"return {construction(layout, uses)}, {reader.end}")
    return lines.text()


def read_array_function(layout: Layout, uses: Uses) -> str:
    """The source of a function `(data, pos, count) -> (tuple of values, position after them)`, which gives up if there
    are too few bytes left for the count."""
    lines = Lines()
    name = uses.struct_class(layout.struct)
    head = f"def {function('read', layout, 'array')}(data: bytes, pos: int, count: int)"
    with lines.block(f"{head} -> tuple[tuple[{name}, ...], int]:"):
        smallest = layout.wire.smallest
        if not smallest:
            # The limit on zero-size elements applies to all arrays of a message together, so only the general reader
            # can count them.
            give_up_if("count", lines, uses)
            lines.add("return (), pos")
            return lines.text()
        give_up_if(f"count < 0 or count * {smallest} > len(data) - pos", lines, uses)
        lines.add(f"items: list[{name}] = []")
        lines.add("append = items.append")
        with lines.block("for _ in range(count):"):
            reader = StructReader(layout, lines, uses)
            reader.read()
            reader.settle()
            lines.add(f"append({construction(layout, uses)})")
        lines.add("return tuple(items), pos")
    return lines.text()
