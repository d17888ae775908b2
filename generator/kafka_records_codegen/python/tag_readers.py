"""Generates functions that decode the tagged fields of a struct."""

from __future__ import annotations

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.python.formats import FORMATS
from kafka_records_codegen.python.names import function, local
from kafka_records_codegen.python.statements import give_up_if, make_uuids
from kafka_records_codegen.python.struct_reader import StructReader
from kafka_records_codegen.python.uses import Uses
from kafka_records_codegen.text.lines import Lines
from kafka_records_runtime.schema.layout import ArrayValue, FixedValue, Member, SizedValue, StructValue, TagsLayout


def read_tags_function(layout: Layout, tags: TagsLayout, uses: Uses) -> str:
    """The source of a function `(data, pos, number of tags) -> (known tagged fields…, unknown ones, position after
    them)`.
    """
    return _TagsReader(layout, tags, uses).function()


class _TagsReader:
    def __init__(self, layout: Layout, tags: TagsLayout, uses: Uses) -> None:
        self._layout = layout
        self._known = tags.known
        self._misplaced = sorted(field.tag for field in tags.misplaced if field.tag is not None)
        self._uses = uses
        self._lines = Lines()

    def function(self) -> str:
        lines, uses = self._lines, self._uses
        head = f"def {function('read', self._layout, 'tags')}(data: bytes, pos: int, count: int)"
        known = [uses.any_type for _ in self._known]
        result = ", ".join([*known, "tuple[tuple[int, bytes], ...]", "int"])
        with lines.block(f"{head} -> tuple[{result}]:"):
            if not self._known and not self._misplaced:
                lines.add(f"return {uses.runtime_name('read_unknown_tags')}(data, pos, count)")
                return lines.text()
            for member in self._known:
                default = uses.literal(self._layout, member.field)
                lines.add(f"{local(member.field)}: {uses.any_type} = {default}")
            lines.add("unknown: tuple[tuple[int, bytes], ...] = ()")
            lines.add("last = -1")
            self._give_up_if("count > 127")
            with lines.block("for _ in range(count):"):
                self._one_tag()
            names = [local(member.field) for member in self._known]
            lines.add(f"return {', '.join([*names, 'unknown', 'pos'])}")
        return lines.text()

    def _give_up_if(self, condition: str) -> None:
        give_up_if(condition, self._lines, self._uses)

    def _one_tag(self) -> None:
        self._tag_and_size()
        if self._misplaced:
            self._give_up_if(" or ".join(f"tag == {tag}" for tag in self._misplaced))
        for number, member in enumerate(self._known):
            with self._lines.block(f"{'elif' if number else 'if'} tag == {member.field.tag}:"):
                self._payload(member)
        if self._known:
            with self._lines.block("else:"):
                self._keep()
            self._give_up_if("pos != end")
        else:
            self._keep()

    def _tag_and_size(self) -> None:
        """Read a tag and its size. Tags must be ascending, and their payloads must be inside the data."""
        lines = self._lines
        read_uvarint = self._uses.runtime_name("read_uvarint")
        lines.add("tag = data[pos]")
        lines.add("size = data[pos + 1]")
        lines.add("pos += 2")
        with lines.block("if tag > 127 or size > 127:"):
            lines.add(f"tag, pos = {read_uvarint}(data, pos - 2)")
            lines.add(f"size, pos = {read_uvarint}(data, pos)")
        lines.add("end = pos + size")
        self._give_up_if("tag <= last or end > len(data)")
        lines.add("last = tag")

    def _keep(self) -> None:
        """Keep a tag that has no field."""
        self._lines.add("unknown += ((tag, data[pos:end]),)")
        self._lines.add("pos = end")

    def _payload(self, member: Member) -> None:
        """Read the payload of a known tag."""
        match member.value:
            case FixedValue() as value:
                name = local(member.field)
                self._lines.add(f"({name},) = {self._uses.unpack((FORMATS[value.type],))}(data, pos)")
                make_uuids([member], self._lines, self._uses)
                self._lines.add(f"pos += {value.size}")
            case StructValue() as value:
                self._struct(member, value)
            case SizedValue() | ArrayValue() as value:
                self._read_length()
                if value.nullable:
                    with self._lines.block("if n == 0:"):
                        self._lines.add(f"{local(member.field)} = None")
                    with self._lines.block("else:"):
                        self._content(member, value)
                else:
                    self._content(member, value)

    def _read_length(self) -> None:
        self._lines.add(f"n, pos = {self._uses.runtime_name('read_uvarint')}(data, pos)")

    def _struct(self, member: Member, value: StructValue) -> None:
        name, lines = local(member.field), self._lines
        read = f"{name}, pos = {function('read', self._layout.of(value))}(data, pos)"
        if not value.nullable:
            lines.add(read)
            return
        self._read_length()
        with lines.block("if n == 1:"):
            lines.add(read)
        with lines.block("elif n == 0:"):
            lines.add(f"{name} = None")
        with lines.block("else:"):
            lines.add(self._uses.give_up)

    def _content(self, member: Member, value: SizedValue | ArrayValue) -> None:
        """Read the content after a compact length, which is in `n`."""
        name = local(member.field)
        if isinstance(value, ArrayValue):
            StructReader(self._layout, self._lines, self._uses).elements(member.field, value, "n - 1")
            return
        limit = " or n > 32768" if value.type == "string" else ""
        self._give_up_if(f"n < 1{limit} or pos + n - 1 > len(data)")
        decode = ".decode()" if value.type == "string" else ""
        self._lines.add(f"{name} = data[pos : pos + n - 1]{decode}")
        self._lines.add("pos += n - 1")
