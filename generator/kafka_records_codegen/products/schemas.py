"""Compact schemas: one module per folder, importing the runtime only."""

from __future__ import annotations

from typing import Any

from kafka_records_codegen.model.messages import Folder, Message, Model
from kafka_records_codegen.model.naming import upper_snake_case
from kafka_records_codegen.text import literals
from kafka_records_codegen.text.page import Package, docstring, folder_path, header, render, sources
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema, natural_default


def generate(model: Model, package: Package) -> dict[str, str]:
    """Every schema module by its path below the package, and the package that holds them."""
    paths = [folder.path for folder in model.folders]
    return {
        folder_path("schemas", folder, _has_inner(folder.path, paths)): _module(folder, package)
        for folder in with_root(model)
    }


def with_root(model: Model) -> list[Folder]:
    """All folders and, when the specs have none there, an empty one for the top and for every folder in between."""
    found = {folder.path: folder for folder in model.folders}
    for path in list(found):
        parts = path.split("/")
        for depth in range(len(parts)):
            found.setdefault("/".join(parts[:depth]), Folder("/".join(parts[:depth]), (), ()))
    return [found[path] for path in sorted(found)]


def _has_inner(path: str, paths: list[str]) -> bool:
    return any(other.startswith(f"{path}/") for other in paths)


def has_inner(folder: Folder, model: Model) -> bool:
    """Whether other folders of specs lie inside `folder`."""
    return _has_inner(folder.path, [each.path for each in model.folders])


def _module(folder: Folder, package: Package) -> str:
    fields = [field for message in folder.messages for struct in message.schema.structs for field in struct.fields]
    names = ["FieldSchema", "MessageSchema", "StructSchema"]
    written = [field for field in fields if _has_own_default(field)]
    if any(field.default is EMPTY_STRUCT for field in written):
        names.append("EMPTY_STRUCT")
    if folder.records:
        names += ["RecordSchema", "RetiredType"]
    constants = [upper_snake_case(message.name) for message in folder.messages]
    return render(
        "schemas.py.jinja",
        header=header(package, sources(folder)),
        docstring=docstring(f"Schemas of {folder.path or 'the messages at the top of the specs'}."),
        imports=sorted(names),
        uuid_names=literals.in_import_order(literals.uuid_names(written)),
        exported=sorted([*constants, *(["RECORDS", "RETIRED_TYPES"] if folder.records else [])]),
        schemas=[_schema(message) for message in folder.messages],
        records=[
            {
                "type": record.type,
                "name": record.name,
                "key": upper_snake_case(record.key.name),
                "value": upper_snake_case(record.value.name),
            }
            for record in folder.records
        ],
        retired_types=[(retired.type, repr(retired.name), repr(retired.why)) for retired in folder.retired_types],
    )


def _schema(message: Message) -> dict[str, Any]:
    """`message.schema`, the very value that layouts are derived from, as source."""
    schema = message.schema
    return {
        "constant": upper_snake_case(message.name),
        "format": schema.format,
        "name": schema.name,
        "versions": schema.versions,
        "flexible": schema.flexible,
        "structs": [
            {"name": struct.name, "fields": [_arguments(message, field) for field in struct.fields]}
            for struct in schema.structs
        ],
        "notes": [repr(note) for note in schema.notes],
    }


def _arguments(message: Message, field: FieldSchema) -> list[str]:
    """The arguments of the FieldSchema, those at their defaults left out."""
    arguments = [repr(field.name), repr(field.json_name), repr(field.type), repr(field.versions)]
    for name in ("nullable", "flexible", "tag", "tagged"):
        value = getattr(field, name)
        if value is not None:
            arguments.append(f"{name}={value!r}")
    if _has_own_default(field):
        text = "EMPTY_STRUCT" if field.default is EMPTY_STRUCT else literals.literal(message, field)
        arguments.append(f"default={text}")
    if field.ignorable:
        arguments.append("ignorable=True")
    return arguments


def _has_own_default(field: FieldSchema) -> bool:
    """Whether the default is another than that of the type."""
    natural = natural_default(field.type)
    return field.default != natural or type(field.default) is not type(natural)
