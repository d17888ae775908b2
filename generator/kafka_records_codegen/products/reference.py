"""Generates reference pages in Markdown: one per record, per request with its response, and per other message, plus an
index.

The pages are a separate tree next to the package. `Package.links` says how a page links to modules and specs. A
module's docstring names its page (`Package.docs`).
"""

from __future__ import annotations

import json
import math
import posixpath
from typing import Any

from kafka_records_codegen.model.layouts import Layout
from kafka_records_codegen.model.messages import Field, Folder, Message, Model, RecordPair, Struct
from kafka_records_codegen.model.naming import spark_names
from kafka_records_codegen.model.notes import RetiredType, VersionNote
from kafka_records_codegen.model.units import Page, Unit, pages
from kafka_records_codegen.products import spark_tree
from kafka_records_codegen.products.markdown import code, comment, first_sentence, link, prose, text
from kafka_records_codegen.products.wire_rows import TAGGED_FIELDS, Row, rows, version_list
from kafka_records_codegen.spec.versions import Versions
from kafka_records_codegen.text.mark import Mark
from kafka_records_codegen.text.page import Package, fill
from kafka_records_runtime.records.framing import METADATA, frame_start, framed
from kafka_records_runtime.schema import EMPTY_STRUCT
from kafka_records_runtime.schema.layout import FieldLayout, struct_layouts
from kafka_records_runtime.text.casing import upper_snake_case

INDEX = "README.md"
"""The file that hosting services show as the folder's page."""

_PARTS = {
    "coordinator-key": "Key",
    "coordinator-value": "Value",
    "request": "Request",
    "response": "Response",
    "header": "Header",
    "metadata": "Metadata record",
    "data": "Message",
}


def generate(model: Model, package: Package) -> dict[str, str]:
    """All pages, by path below the folder of the pages."""
    files = {INDEX: _index(model, package)}
    for folder in model.folders:
        for page in pages(folder):
            view = _PageView(folder, page, package)
            files[page.path] = fill("reference.md.jinja", **view.values())
    return files


# ---- the index


def _index(model: Model, package: Package) -> str:
    return fill(
        "reference_index.md.jinja",
        header=_header(package, ["**/*.json" if any(folder.path for folder in model.folders) else "*.json"]),
        package=code(package.name),
        folders=[_index_folder(folder, package) for folder in model.folders],
        has_apis=any(message.type in ("request", "response") for message in model.messages),
    )


def _index_folder(folder: Folder, package: Package) -> dict[str, Any]:
    found = list(pages(folder))
    return {
        "title": text(folder.path) or "Messages at the top",
        "module": code(package.module(folder.path)),
        "has_records": bool(folder.records),
        "is_metadata": folder.framing == METADATA,
        "records": [_index_row(page) for page in found if page.record_type is not None],
        "retired": ", ".join(map(_retired, folder.retired_types)),
        "apis": [_index_row(page) for page in found if page.is_api],
        "others": [_index_row(page) for page in found if page.record_type is None and not page.is_api],
    }


def _index_row(page: Page) -> dict[str, Any]:
    by_type = {message.type: message for message in page.messages}
    about = by_type.get("coordinator-value", page.messages[0])
    only_response = about.type == "response"
    return {
        "number": about.api_key if page.record_type is None else page.record_type,
        "link": link(code(page.title), page.path),
        "kind": _PARTS[about.type],
        "versions": "–" if only_response else _range(about.versions),
        "flexible": _range(about.flexible),
        "response": _range(by_type["response"].versions) if "response" in by_type else "–",
        "purpose": text(first_sentence(about.history)),
    }


def _retired(retired: RetiredType) -> str:
    return f"{retired.type} {code(retired.name)} ({text(retired.why)})"


# ---- a page


class _PageView:
    """The values for the template of a page."""

    def __init__(self, folder: Folder, page: Page, package: Package) -> None:
        self._folder = folder
        self._page = page
        self._package = package
        self._links = package.links
        self._up = "../" * page.path.count("/")

    def values(self) -> dict[str, Any]:
        page = self._page
        return {
            "header": _header(self._package, [message.source for message in page.messages]),
            "title": text(page.title),
            "index": f"{self._up}{INDEX}",
            "folder": text(self._folder.path),
            "record_type": page.record_type,
            "is_metadata": page.record is not None and page.record.framing == METADATA,
            "record_type_bytes": "" if page.record is None else _start(page.record).hex(" "),
            "api_key": page.messages[0].api_key if page.record_type is None else None,
            "is_api": page.is_api,
            "facts": self._facts(),
            "messages": [self._message(message) for message in page.messages],
        }

    def _facts(self) -> list[tuple[str, str]]:
        page = self._page
        schemas = "<br>".join(self._schemas(unit) for unit in page.units)
        spark = "<br>".join(self._spark(unit) for unit in page.units if unit.is_stored)
        codecs = "<br>".join(self._codecs(unit) for unit in page.units)
        specs = ", ".join(self._to_spec(message) for message in page.messages)
        return [
            ("Codecs", codecs),
            ("Schemas", schemas),
            *([("Spark", spark)] if spark else []),
            ("Avro", ", ".join(self._avro(unit) for unit in page.units)),
            ("Specs", specs),
        ]

    def _codecs(self, unit: Unit) -> str:
        module = self._package.module(self._folder.path, unit.name)
        classes = ", ".join(code(message.root.python_name) for message in unit.messages)
        return f"{self._to_module(module, posixpath.join(self._folder.path, f'{unit.name}.py'))}: {classes}"

    def _schemas(self, unit: Unit) -> str:
        module = self._package.module("schemas", self._folder.path, unit.name)
        constants = ", ".join(code(upper_snake_case(message.name)) for message in unit.messages)
        return (
            f"{self._to_module(module, posixpath.join('schemas', self._folder.path, f'{unit.name}.py'))}: {constants}"
        )

    def _spark(self, unit: Unit) -> str:
        module = self._package.module("spark", self._folder.path, unit.name)
        names = zip(*(spark_names(message.name) for message in unit.messages), strict=True)
        listed = ", ".join(code(name) for each in names for name in each)
        return f"{self._to_module(module, posixpath.join('spark', self._folder.path, f'{unit.name}.py'))}: {listed}"

    def _avro(self, unit: Unit) -> str:
        path = posixpath.join(self._folder.path, f"{unit.name}.avsc")
        return self._to_module(path, path)

    def _to_module(self, name: str, path: str) -> str:
        label = code(name)
        return label if self._links.code is None else link(label, f"{self._up}{self._links.code}/{path}")

    def _to_spec(self, message: Message) -> str:
        label = code(message.source)
        return label if self._links.specs is None else link(label, f"{self._up}{self._links.specs}/{message.source}")

    def _message(self, message: Message) -> dict[str, Any]:
        columns = _columns(message)
        return {
            "part": _PARTS[message.type],
            "name": text(message.name),
            "history": prose(message.history),
            "versions": _versions_line(message),
            "notes": [_note(note) for note in message.notes],
            "columns": [_column_title(message, column) for column in columns],
            "structs": [_struct(message, struct, columns) for struct in _by_first_use(message)],
            "layouts": [_layout(layout) for layout in message.layouts.of_body],
            "spark": spark_tree.tree(message) if message.is_stored else None,
        }


def _start(record: RecordPair) -> bytes:
    """The bytes that identify the type of a record: at the start of its key or, for a metadata record, of its value."""
    return frame_start(record.type) if record.framing == METADATA else framed(record.type, b"")


# ---- fields by version


def _columns(message: Message) -> list[Versions]:
    """Ranges of adjacent versions with the same fields. Each range is one column of the table."""
    columns: list[Versions] = []
    before: object = None
    for version in message.versions:
        structs = struct_layouts(message.schema, version).values()
        cells = tuple(_cell(each) for struct in structs for each in struct.fields)
        now = (version in message.flexible, cells)
        if columns and now == before:
            columns[-1] = Versions(columns[-1].lowest, version)
        else:
            columns.append(Versions(version, version))
        before = now
    return columns


def _column_title(message: Message, column: Versions) -> str:
    return f"{_range(column)}<br>flexible" if column.lowest in message.flexible else _range(column)


def _cell(each: FieldLayout) -> str:
    if not each.present:
        return ""
    tag = f"tag {each.field.tag}" if each.tagged else ""
    null = "null" if each.nullable else ""
    return ", ".join(part for part in (tag, null) if part) or "✓"


def _by_first_use(message: Message) -> list[Struct]:
    """The body and all structs in it, in order of first use."""
    found: dict[str, Struct] = {}

    def visit(struct: Struct) -> None:
        found[struct.name] = struct
        for field in struct.fields:
            if field.is_struct and field.base not in found:
                visit(message.struct(field.base))

    visit(message.root)
    return list(found.values())


def _struct(message: Message, struct: Struct, columns: list[Versions]) -> dict[str, Any]:
    users = [
        f"{'' if other is message.root else f'{other.name}.'}{field.python_name}"
        for other in reversed(message.structs)
        for field in other.fields
        if field.is_struct and field.base == struct.name
    ]
    return {
        "is_root": struct is message.root,
        "name": code(struct.name),
        "class_name": "" if struct.python_name == struct.name else code(struct.python_name),
        "users": ", ".join(code(user) for user in users),
        "fields": [_field(message, struct, place, columns) for place in range(len(struct.fields))],
    }


def _field(message: Message, struct: Struct, place: int, columns: list[Versions]) -> dict[str, Any]:
    field = struct.fields[place]
    layouts = [struct_layouts(message.schema, column.lowest)[struct.name] for column in columns]
    return {
        "name": code(field.python_name),
        "json": code(field.json_name),
        "type": code(field.type),
        "cells": [_cell(layout.fields[place]) for layout in layouts],
        "default": code(_default(field)),
        "notes": ", ".join(_notes(message, field)),
        "about": text(field.about),
    }


def _default(field: Field) -> str:
    """The default as in Kafka's JSON form."""
    value = field.default
    if value is EMPTY_STRUCT:
        return "{}"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return str(value) if field.base == "uuid" else '""'
    return json.dumps(value, ensure_ascii=False)


def _notes(message: Message, field: Field) -> list[str]:
    notes = ["ignorable"] if field.ignorable else []
    if field.map_key:
        notes.append("map key")
    if field.entity_type and field.entity_type != "unknown":
        notes.append(code(field.entity_type))
    untagged = [version for version in field.versions if version in message.flexible and version not in field.tagged]
    if (field.is_array or field.base in ("string", "bytes", "records")) and any(
        version not in field.flexible for version in untagged
    ):
        notes.append("never compact")
    if not field.versions:
        notes.append(f"spec says {text(field.spec_versions)}")
    return notes


# ---- wire layouts


def _layout(layout: Layout) -> dict[str, Any]:
    wire = layout.wire
    return {
        "title": f"{'Version' if len(layout.versions) == 1 else 'Versions'} {version_list(layout.versions)}",
        "size": f"{wire.smallest} bytes or more" if wire.size is None else _bytes(wire.size),
        "rows": [
            {"offset": row.offset, "bytes": row.bytes, "item": _item(row), "encoding": row.encoding}
            for row in rows(wire)
        ],
    }


def _item(row: Row) -> str:
    if not row.is_tags:
        return code(row.path)
    return f"{code(row.path)} {TAGGED_FIELDS}" if row.path else TAGGED_FIELDS


def _bytes(size: int) -> str:
    return "1 byte" if size == 1 else f"{size} bytes"


# ---- small texts


def _range(versions: Versions) -> str:
    return str(versions).replace("-", "–") if versions else "–"


def _versions_line(message: Message) -> str:
    if not message.flexible:
        flexible = "not flexible"
    elif message.flexible == message.versions:
        flexible = "flexible"
    else:
        flexible = f"flexible: {_range(message.flexible)}"
    unstable = f" Version {message.versions.highest} is not yet stable." if message.latest_version_unstable else ""
    word = "Version" if len(message.versions) == 1 else "Versions"
    return f"{word} {_range(message.versions)}, {flexible}.{unstable}"


def _note(note: VersionNote) -> str:
    word = "Version" if len(note.versions) == 1 else "Versions"
    return f"{word} {_range(note.versions)}: {text(note.text)}."


def _header(package: Package, sources: list[str]) -> str:
    return "\n".join(
        comment(line)
        for line in (
            Mark("pages", package.name).line,
            f"Specs: {', '.join(sources)}",
            f"To regenerate: kafka-records-codegen docs --specs DIR --out DIR --package {package.name}",
        )
    )
