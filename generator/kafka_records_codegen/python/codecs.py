"""Generates typed codecs: a module per record with its key and value, and a module per other message.

A module that would be too long contains only the classes. The functions that read and write them are then in two
private modules next to it. It imports these and passes its classes to them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from kafka_records_codegen.model.messages import Field, Folder, Message, Model, RecordPair, Struct
from kafka_records_codegen.model.units import Unit, pages
from kafka_records_codegen.python import names
from kafka_records_codegen.python.message_functions import reading_functions, writing_functions
from kafka_records_codegen.python.uses import Uses
from kafka_records_codegen.text import literals
from kafka_records_codegen.text.page import Package, docstring, header, one_line, render_in_style
from kafka_records_runtime.text.casing import snake_case, upper_snake_case

MOST_LINES: Final = 1500
"""A module with this many lines is split. Its parts may still be longer, because functions and classes are never
split."""

Verb = Literal["read", "write"]


def generate(model: Model, package: Package) -> dict[str, str]:
    """All codec modules, by path below the package."""
    files: dict[str, str] = {}
    for folder in model.folders:
        for page in pages(folder):
            for unit in page.units:
                files |= _Modules(folder, unit, package, page.path).files()
    return files


@dataclass(frozen=True)
class _Part:
    """A private module with the functions of one kind, `readers` or `writers`, and the names that the main module needs
    from it."""

    kind: str
    name: str
    module: str
    text: str
    tables: list[str]
    classes: list[str]


class _Modules:
    """The modules of a record or of another message."""

    def __init__(self, folder: Folder, unit: Unit, package: Package, page: str) -> None:
        self._folder = folder
        self._unit = unit
        self._package = package
        self._page = page
        self._header = header(package, [message.source for message in unit.messages])

    def files(self) -> dict[str, str]:
        """One module or, if that would be too long, three, by path below the package."""
        uses = Uses()
        functions = []
        for message in self._unit.messages:
            functions += [*reading_functions(message, uses), *writing_functions(message, uses)]
        whole = self._main(uses, functions, [])
        if whole.count("\n") < MOST_LINES:
            return {self._path(self._unit.name): whole}
        parts = [self._part("read"), self._part("write")]
        main = {self._path(self._unit.name): self._main(Uses(), [], parts)}
        return main | {self._path(part.name): part.text for part in parts}

    def _path(self, module: str) -> str:
        return f"{self._folder.path}/{module}.py".lstrip("/")

    def _main(self, uses: Uses, functions: list[str], parts: list[_Part]) -> str:
        messages, record = self._unit.messages, self._unit.record
        classes = [_class(message, struct) for message in messages for struct in message.structs]
        fields = [field.schema for message in messages for struct in message.structs for field in struct.fields]
        uuids = uses.uuids | literals.uuid_names(fields) | {"Uuid" for field in fields if field.base == "uuid"}
        return render_in_style(
            "codecs.py.jinja",
            header=self._header,
            docstring=docstring(self._unit.title + self._package.reference(self._page)),
            legend=uses.legend,
            constants=uses.constants,
            needs_struct=uses.needs_struct,
            runtime_names=sorted(uses.runtime | {"as_bytes"}),
            uuid_names=literals.in_import_order(uuids),
            needs_standard_uuid=any(each["has_uuid"] for each in classes),
            exported=sorted([*(each["name"] for each in classes), *([record.python_name] if record else [])]),
            classes=classes,
            record=record and _record(record),
            functions=functions,
            parts=parts,
            messages=[self._message(message) for message in messages],
        )

    def _part(self, verb: Verb) -> _Part:
        uses = Uses()
        functions_of = reading_functions if verb == "read" else writing_functions
        functions = [function for message in self._unit.messages for function in functions_of(message, uses)]
        kind = "readers" if verb == "read" else "writers"
        name = f"_{self._unit.name}_{kind}"
        about = f"The functions that {verb} the classes of `{self._unit.name}`: too many to be beside them."
        tables = [
            {"name": f"{kind.upper()}_{upper_snake_case(message.name)}", "functions": _by_version(message, verb)}
            for message in self._unit.messages
        ]
        exported = sorted(["bind", *(str(table["name"]) for table in tables)])
        text = render_in_style(
            "functions.py.jinja",
            header=self._header,
            docstring=docstring(f"{about}{self._package.reference(self._page)}"),
            main=self._package.module(self._folder.path, self._unit.name),
            classes=sorted(uses.classes),
            legend=uses.legend,
            constants=uses.constants,
            needs_struct=uses.needs_struct,
            needs_any="Any" in uses.typing,
            runtime_names=sorted(uses.runtime),
            uuid_names=literals.in_import_order(uses.uuids),
            exported=exported,
            functions=functions,
            tables=tables,
        )
        module = self._package.module(self._folder.path, name)
        return _Part(kind, name, module, text, [str(table["name"]) for table in tables], sorted(uses.classes))

    def _message(self, message: Message) -> dict[str, Any]:
        return {
            "name": message.root.python_name,
            "function": snake_case(message.name),
            "constant": upper_snake_case(message.name),
            "schema_module": self._package.module("schemas", self._folder.path, self._unit.name),
            "schema_constant": upper_snake_case(message.name),
            "readers": _by_version(message, "read"),
            "writers": _by_version(message, "write"),
            "classes": [(struct.name, struct.python_name) for struct in message.structs],
        }


def _by_version(message: Message, verb: Verb) -> list[tuple[int, str]]:
    """The functions for each version of a message."""
    return [(version, names.function(verb, message.layouts.at(version))) for version in message.versions]


def _class(message: Message, struct: Struct) -> dict[str, Any]:
    is_message = struct is message.root
    text = (message.history or f"The message {message.name}.") if is_message else f"{struct.name} of {message.name}."
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
        "has_uuid": any(field.base == "uuid" for field in struct.fields),
    }


def _record(record: RecordPair) -> dict[str, Any]:
    return {
        "class": record.python_name,
        "name": record.name,
        "type": record.type,
        "key": None if record.key_or_none is None else record.key.root.python_name,
        "value": record.value.root.python_name,
    }


def _field(message: Message, field: Field) -> dict[str, str]:
    tag = f", tag {field.tag}" if field.tag is not None else ""
    return {
        "name": field.python_name,
        "annotation": names.annotation(message, field),
        "parameter": names.parameter(message, field),
        "default": literals.literal(message, field.schema),
        "comment": f"{field.name}: {field.type}, versions {field.spec_versions}{tag}",
        "about": docstring(one_line(field.about), 4),
    }
