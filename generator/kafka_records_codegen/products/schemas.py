"""Compact schemas: one module per folder, importing the runtime only."""

from __future__ import annotations

from typing import Any

from kafka_records_codegen.model.messages import Field, Folder, Message, Model
from kafka_records_codegen.model.naming import upper_snake_case
from kafka_records_codegen.text import literals
from kafka_records_codegen.text.page import Package, docstring, folder_path, header, render, sources
from kafka_records_runtime.schema import EMPTY_STRUCT, FORMAT, natural_default


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
    schemas = [_schema(message) for message in folder.messages]
    used = [text for schema in schemas for struct in schema["structs"] for f in struct["fields"] for text in f]
    imports = ["FieldSchema", "MessageSchema", "StructSchema"]
    if any("EMPTY_STRUCT" in text for text in used):
        imports.append("EMPTY_STRUCT")
    if folder.records:
        imports.append("RecordSchema")
    exported = [schema["constant"] for schema in schemas] + (["RECORDS"] if folder.records else [])
    return render(
        "schemas.py.jinja",
        header=header(package, sources(folder)),
        docstring=docstring(f"Schemas of {folder.path or 'the messages at the top of the specs'}."),
        imports=sorted(imports),
        uuid_names=[name for name in ("ZERO_UUID", "Uuid") if any(f"{name}" in text for text in used)],
        exported=sorted(exported),
        format=FORMAT,
        schemas=schemas,
        records=[
            {
                "type": record.type,
                "name": record.name,
                "key": upper_snake_case(record.key.name),
                "value": upper_snake_case(record.value.name),
            }
            for record in folder.records
        ],
    )


def _schema(message: Message) -> dict[str, Any]:
    return {
        "constant": upper_snake_case(message.name),
        "name": message.name,
        "versions": message.versions.pair,
        "flexible": message.flexible.pair,
        "structs": [
            {"name": struct.name, "fields": [_field(message, field) for field in struct.fields]}
            for struct in message.structs
        ],
    }


def _field(message: Message, field: Field) -> list[str]:
    """The arguments of the FieldSchema, those at their defaults left out."""
    arguments = [repr(field.python_name), repr(field.json_name), repr(field.type), repr(field.versions.pair)]
    for name, value in (("nullable", field.nullable.pair), ("flexible", field.flexible.pair)):
        if value is not None:
            arguments.append(f"{name}={value!r}")
    if field.tagged:
        arguments += [f"tag={field.tag}", f"tagged={field.tagged.pair!r}"]
    natural = natural_default(field.type)
    if field.default != natural or type(field.default) is not type(natural):
        text = "EMPTY_STRUCT" if field.default is EMPTY_STRUCT else literals.literal(message, field)
        arguments.append(f"default={text}")
    if field.ignorable:
        arguments.append("ignorable=True")
    return arguments
