"""Decoding functions for the tagged section of a struct."""

from __future__ import annotations

from kafka_records_codegen.model.layouts import FORMATS, WIDTHS, Layout
from kafka_records_codegen.model.messages import Field
from kafka_records_codegen.python.names import function, local
from kafka_records_codegen.python.readers import StructReader, Tables
from kafka_records_codegen.text.lines import Lines
from kafka_records_codegen.text.literals import literal


def read_tags_function(layout: Layout, tables: Tables) -> str:
    """`(data, pos, number of tags) -> (known tagged fields…, unknown ones, position behind them)`."""
    lines = Lines()
    known = layout.tagged
    head = f"def {function('read', layout, 'tags')}(data: bytes, pos: int, count: int)"
    result = ", ".join(["Any"] * len(known) + ["tuple[tuple[int, bytes], ...]", "int"])
    with lines.block(f"{head} -> tuple[{result}]:"):
        misplaced = layout.misplaced_tags
        if not known and not misplaced:
            lines.add("return _read_unknown_tags(data, pos, count)")
            return lines.text()
        for field in known:
            lines.add(f"{local(field)}: Any = {literal(layout.message, field)}")
        lines.add("unknown: tuple[tuple[int, bytes], ...] = ()")
        lines.add("last = -1")
        _give_up_if("count > 127", lines)
        with lines.block("for _ in range(count):"):
            _tag_and_size(lines)
            if misplaced:
                _give_up_if(" or ".join(f"tag == {tag}" for tag in misplaced), lines)
            for number, field in enumerate(known):
                with lines.block(f"{'elif' if number else 'if'} tag == {field.tag}:"):
                    _payload(layout, field, lines, tables)
            if known:
                with lines.block("else:"):
                    _keep(lines)
                _give_up_if("pos != end", lines)
            else:
                _keep(lines)
        lines.add(f"return {', '.join([*(local(field) for field in known), 'unknown', 'pos'])}")
    return lines.text()


def _tag_and_size(lines: Lines) -> None:
    """Tags must ascend, and their payloads must lie inside the data."""
    lines.add("tag = data[pos]")
    lines.add("size = data[pos + 1]")
    lines.add("pos += 2")
    with lines.block("if tag > 127 or size > 127:"):
        lines.add("tag, pos = _read_uvarint(data, pos - 2)")
        lines.add("size, pos = _read_uvarint(data, pos)")
    lines.add("end = pos + size")
    _give_up_if("tag <= last or end > len(data)", lines)
    lines.add("last = tag")


def _keep(lines: Lines) -> None:
    """A tag without a field."""
    lines.add("unknown += ((tag, data[pos:end]),)")
    lines.add("pos = end")


def _payload(layout: Layout, field: Field, lines: Lines, tables: Tables) -> None:
    """The payload of a known tag: lengths are compact, a nullable struct is marked by a varint."""
    name = local(field)
    if not field.is_array and field.base in FORMATS:
        lines.add(f"({name},) = {tables.fixed((FORMATS[field.base],))}(data, pos)")
        if field.base == "uuid":
            lines.add(f"{name} = _UUIDS[{name}]")
        lines.add(f"pos += {WIDTHS[field.base]}")
    elif field.is_struct and not field.is_array:
        reader = function("read", layout.of(field))
        if layout.is_nullable(field):
            lines.add("n, pos = _read_uvarint(data, pos)")
            with lines.block("if n == 1:"):
                lines.add(f"{name}, pos = {reader}(data, pos)")
            with lines.block("elif n == 0:"):
                lines.add(f"{name} = None")
            with lines.block("else:"):
                lines.add("raise _GiveUp")
        else:
            lines.add(f"{name}, pos = {reader}(data, pos)")
    else:
        lines.add("n, pos = _read_uvarint(data, pos)")
        if layout.is_nullable(field):
            with lines.block("if n == 0:"):
                lines.add(f"{name} = None")
            with lines.block("else:"):
                _compact_payload(layout, field, lines, tables)
        else:
            _compact_payload(layout, field, lines, tables)


def _compact_payload(layout: Layout, field: Field, lines: Lines, tables: Tables) -> None:
    name = local(field)
    if field.is_array:
        StructReader(layout, lines, tables).elements(field, True, "n - 1")
        return
    limit = " or n > 32768" if field.base == "string" else ""
    _give_up_if(f"n < 1{limit} or pos + n - 1 > len(data)", lines)
    decode = ".decode()" if field.base == "string" else ""
    lines.add(f"{name} = data[pos : pos + n - 1]{decode}")
    lines.add("pos += n - 1")


def _give_up_if(condition: str, lines: Lines) -> None:
    with lines.block(f"if {condition}:"):
        lines.add("raise _GiveUp")
