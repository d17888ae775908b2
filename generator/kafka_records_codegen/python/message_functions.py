"""Selects the functions that each layout of a message needs, and generates their sources."""

from __future__ import annotations

from collections.abc import Iterator

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.model.messages import Message
from kafka_records_codegen.python.inner_readers import read_array_function, read_struct_function
from kafka_records_codegen.python.message_readers import read_message_function
from kafka_records_codegen.python.names import function
from kafka_records_codegen.python.struct_writer import write_array_function, write_function
from kafka_records_codegen.python.tag_readers import read_tags_function
from kafka_records_codegen.python.uses import Uses
from kafka_records_runtime.schema.layout import UVARINT, ArrayValue, StructValue, TagsLayout


def reading_functions(message: Message, uses: Uses) -> Iterator[str]:
    """The readers of a message, and all functions they need."""
    reached = _Reached(message)
    for layout, tags in reached.with_tags.values():
        yield read_tags_function(layout, tags, uses)
    for layout in reached.in_array.values():
        yield read_array_function(layout, uses)
    for layout in reached.single.values():
        if layout.struct is message.root and message.type != "header":
            yield read_message_function(layout, uses)
        else:
            yield read_struct_function(layout, uses)


def writing_functions(message: Message, uses: Uses) -> Iterator[str]:
    """The writers of a message, and all functions they need."""
    reached = _Reached(message)
    for layout in reached.in_classic_array.values():
        yield write_array_function(layout, uses, compact=False)
    for layout in reached.in_compact_array.values():
        yield write_array_function(layout, uses, compact=True)
    for layout in reached.single.values():
        yield write_function(layout, uses)


class _Reached:
    """The functions that the body of a message uses, with their layouts, by the names of the readers."""

    def __init__(self, message: Message) -> None:
        self.single: dict[str, Layout] = {}
        self.in_array: dict[str, Layout] = {}
        self.in_classic_array: dict[str, Layout] = {}
        self.in_compact_array: dict[str, Layout] = {}
        self.with_tags: dict[str, tuple[Layout, TagsLayout]] = {}
        self._visited: set[str] = set()
        for layout in message.layouts.of_body:
            self._visit(layout)
            self.single[function("read", layout)] = layout

    def _visit(self, layout: Layout) -> None:
        name = function("read", layout)
        if name in self._visited:
            return
        self._visited.add(name)
        if layout.wire.tags is not None:
            self.with_tags[name] = layout, layout.wire.tags
        for each in layout.wire.fields:
            if isinstance(each.value, StructValue):
                inner = layout.of(each.value)
                self._visit(inner)
                self.single.setdefault(function("read", inner), inner)
            elif isinstance(each.value, ArrayValue) and isinstance(each.value.element, StructValue):
                inner = layout.of(each.value.element)
                self._visit(inner)
                self.in_array.setdefault(function("read", inner), inner)
                arrays = self.in_compact_array if each.value.count == UVARINT else self.in_classic_array
                arrays.setdefault(function("read", inner), inner)
