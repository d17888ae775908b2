"""Typed codecs: a module per record with its key and value, a module per other message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kafka_records_codegen.model.layouts import Layout, layouts
from kafka_records_codegen.model.messages import Field, Folder, Message, Model, Struct
from kafka_records_codegen.model.naming import snake_case, upper_snake_case
from kafka_records_codegen.model.units import Unit, pages
from kafka_records_codegen.python import message_readers, names, readers, tag_readers, writers
from kafka_records_codegen.text import literals
from kafka_records_codegen.text.page import Package, docstring, header, one_line, render_in_style

_ALIASES = {
    "GiveUp": "_GiveUp",
    "Pack": "_Pack",
    "UUIDS": "_UUIDS",
    "Unpack": "_Unpack",
    "Whole": "_Whole",
    "array_packer": "_array_packer",
    "as_bytes": "_as_bytes",
    "compact_array_packer": "_compact_array_packer",
    "compact_text_unpacker": "_compact_text_unpacker",
    "long_text_unpacker": "_long_text_unpacker",
    "read_byte_strings": "_read_byte_strings",
    "read_compact_byte_strings": "_read_compact_byte_strings",
    "read_compact_strings": "_read_compact_strings",
    "read_strings": "_read_strings",
    "read_unknown_tags": "_read_unknown_tags",
    "read_uuids": "_read_uuids",
    "read_uvarint": "_read_uvarint",
    "text_array_packer": "_text_array_packer",
    "refuse_list": "_refuse_list",
    "require_list": "_require_list",
    "text_unpacker": "_text_unpacker",
    "unpacker": "_unpacker",
    "uvarint": "_uvarint",
    "whole_pair_unpacker": "_whole_pair_unpacker",
    "whole_unpacker": "_whole_unpacker",
    "write_bools": "_write_bools",
    "write_byte_strings": "_write_byte_strings",
    "write_compact_bools": "_write_compact_bools",
    "write_compact_byte_strings": "_write_compact_byte_strings",
    "write_compact_bytes": "_write_compact_bytes",
    "write_compact_numbers": "_write_compact_numbers",
    "write_compact_string": "_write_compact_string",
    "write_compact_strings": "_write_compact_strings",
    "write_compact_uuids": "_write_compact_uuids",
    "write_strings": "_write_strings",
    "write_uuids": "_write_uuids",
}
"""All that a generated codec may import from `kafka_records_runtime.codec`, besides `Codec`."""


def generate(model: Model, package: Package) -> dict[str, str]:
    """Every codec module by its path below the package."""
    files = {}
    for folder in model.folders:
        for page in pages(folder):
            for unit in page.units:
                path = f"{folder.path}/{unit.name}.py" if folder.path else f"{unit.name}.py"
                files[path] = _module(folder, unit, package, page.path)
    return files


def _module(folder: Folder, unit: Unit, package: Package, page: str) -> str:
    tables, packs = readers.Tables(), writers.Packs()
    functions = [text for message in unit.messages for text in _functions(message, tables, packs)]
    constants = _constants(tables, packs)
    classes = [_class(message, struct) for message in unit.messages for struct in message.structs]
    text = "\n".join([*functions, *constants])
    body = text + "".join(field["default"] + field["annotation"] for each in classes for field in each["fields"])
    return render_in_style(
        "codecs.py.jinja",
        header=header(package, [message.source for message in unit.messages]),
        docstring=docstring(unit.title + package.reference(page)),
        constants=constants,
        uses_struct="_Struct(" in text,
        runtime_names=_runtime_names(text),
        uuid_names=[name for name in ("ZERO_UUID", "Uuid") if name in body],
        exported=sorted(each["name"] for each in classes),
        classes=classes,
        functions=functions,
        messages=[_message(folder, message, package) for message in unit.messages],
    )


def _runtime_names(text: str) -> list[tuple[str, str]]:
    """The runtime names that the functions and constants in `text` use, and `as_bytes`, which every class uses."""
    used = {"_as_bytes", *re.findall(r"\b_\w+", text)}
    return [(name, alias) for name, alias in sorted(_ALIASES.items()) if alias in used]


def _constants(tables: readers.Tables, packs: writers.Packs) -> list[str]:
    structs = {**tables.structs, **packs.structs}
    return [
        *(f"{name}: Final = {structs[name]}" for name in sorted(structs)),
        *(f"{name}: Final[{tables.tables[name]}] = {{}}" for name in sorted(tables.tables)),
        *(f"{name}: Final[{packs.tables[name]}] = {{}}" for name in sorted(packs.tables)),
    ]


def _class(message: Message, struct: Struct) -> dict[str, Any]:
    is_message = struct is message.root
    text = message.history if is_message and message.history else f"{struct.name} of {message.name}."
    numbered = message.type in ("coordinator-key", "coordinator-value")
    return {
        "name": struct.python_name,
        "is_message": is_message,
        "is_header": is_message and message.type == "header",
        "docstring": docstring(text, 4),
        "lowest": message.versions.lowest,
        "highest": message.versions.highest,
        "number_name": None if message.api_key is None else "RECORD_TYPE" if numbered else "API_KEY",
        "number": message.api_key,
        "constant": upper_snake_case(message.name),
        "is_flexible": bool(message.flexible),
        "fields": [_field(message, field) for field in struct.fields],
    }


def _field(message: Message, field: Field) -> dict[str, str]:
    tag = f", tag {field.tag}" if field.tag is not None else ""
    return {
        "name": field.python_name,
        "annotation": names.annotation(message, field),
        "default": literals.literal(message, field),
        "comment": f"{field.name}: {field.type}, versions {field.spec_versions}{tag}",
        "about": docstring(one_line(field.about), 4),
    }


def _message(folder: Folder, message: Message, package: Package) -> dict[str, Any]:
    by_version = [Layout(message, message.root, version) for version in message.versions]
    return {
        "name": message.root.python_name,
        "function": snake_case(message.name),
        "constant": upper_snake_case(message.name),
        "schema_module": package.module("schemas", folder.path),
        "schema_constant": upper_snake_case(message.name),
        "readers": [(layout.version, names.function("read", layout)) for layout in by_version],
        "writers": [(layout.version, names.function("write", layout)) for layout in by_version],
        "classes": [(struct.name, struct.python_name) for struct in message.structs],
    }


class _Uses:
    """Which functions of which layouts the body of a message reaches."""

    def __init__(self, message: Message) -> None:
        self.single: dict[str, Layout] = {}
        self.in_array: dict[str, Layout] = {}
        self.in_classic_array: dict[str, Layout] = {}
        self.in_compact_array: dict[str, Layout] = {}
        self.with_tags: dict[str, Layout] = {}
        for layout in layouts(message, message.root):
            self._visit(layout)
            self.single[names.function("read", layout)] = layout

    def _visit(self, layout: Layout) -> None:
        if layout.is_flexible:
            self.with_tags.setdefault(names.function("read", layout, "tags"), layout.canonical())
        for field in layout.struct.fields:
            if layout.version not in field.versions or not field.is_struct:
                continue
            inner = layout.of(field)
            self._visit(inner)
            name = names.function("read", inner)
            if not field.is_array:
                self.single.setdefault(name, inner.canonical())
                continue
            self.in_array.setdefault(name, inner.canonical())
            compact = layout.version in field.tagged or layout.is_compact(field)
            arrays = self.in_compact_array if compact else self.in_classic_array
            arrays.setdefault(name, inner.canonical())


def _functions(message: Message, tables: readers.Tables, packs: writers.Packs) -> Iterator[str]:
    uses = _Uses(message)
    for layout in uses.with_tags.values():
        yield tag_readers.read_tags_function(layout, tables)
    for layout in uses.in_array.values():
        yield readers.read_array_function(layout, tables)
    for layout in uses.single.values():
        if layout.struct is message.root and message.type != "header":
            yield message_readers.read_message_function(layout, tables)
        else:
            yield readers.read_struct_function(layout, tables)
    for layout in uses.in_classic_array.values():
        yield writers.write_array_function(layout, packs, compact=False)
    for layout in uses.in_compact_array.values():
        yield writers.write_array_function(layout, packs, compact=True)
    for layout in uses.single.values():
        yield writers.write_function(layout, packs)
