"""Generates compact schemas: a module per record or message, which imports only the runtime.

A folder's package exports the names of its modules, and imports each module when one of its names is first used.
"""

from __future__ import annotations

from typing import Any

from kafka_records_codegen.model.messages import Folder, Message, Model, RecordPair
from kafka_records_codegen.model.naming import module_name
from kafka_records_codegen.model.units import Unit
from kafka_records_codegen.products.lazy_packages import LazyPackages
from kafka_records_codegen.text import literals
from kafka_records_codegen.text.page import Package, docstring, header, render, sources
from kafka_records_runtime.records.framing import METADATA
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema, natural_default
from kafka_records_runtime.text.casing import upper_snake_case


def generate(model: Model, package: Package) -> dict[str, str]:
    """All schema modules, by path below the package, and the packages that contain them."""
    return LazyPackages(
        name="schemas",
        contents="Schemas",
        module=_module,
        exported=_constants,
        records_module="_records",
        records_text=_records,
        records_exported=("RECORDS", "RETIRED_TYPES"),
    ).generate(model, package)


def _constants(unit: Unit) -> list[str]:
    return sorted(upper_snake_case(message.name) for message in unit.messages)


def _records(folder: Folder, package: Package) -> str:
    records = folder.path or "the records at the top of the specs"
    return render(
        "schema_records.py.jinja",
        header=header(package, sources(folder)),
        docstring=docstring(f"The record types of {records}."),
        package=package.module("schemas", folder.path),
        is_metadata=folder.framing == METADATA,
        records=[
            {
                "type": record.type,
                "name": record.name,
                "module": module_name(record.name),
                "messages": [upper_snake_case(message.name) for message in record.messages],
                "arguments": _record_arguments(record),
            }
            for record in folder.records
        ],
        retired_types=[(retired.type, repr(retired.name), repr(retired.why)) for retired in folder.retired_types],
    )


def _record_arguments(record: RecordPair) -> str:
    """The arguments of a RecordSchema after the name."""
    value = upper_snake_case(record.value.name)
    return (
        f'None, {value}, "{METADATA}"'
        if record.key_or_none is None
        else f"{upper_snake_case(record.key.name)}, {value}"
    )


def _module(_: Folder, unit: Unit, package: Package, page: str) -> str:
    fields = [field for message in unit.messages for struct in message.schema.structs for field in struct.fields]
    written = [field for field in fields if _has_own_default(field)]
    names = ["FieldSchema", "MessageSchema", "StructSchema"] if fields else ["MessageSchema", "StructSchema"]
    if any(field.default is EMPTY_STRUCT for field in written):
        names.append("EMPTY_STRUCT")
    return render(
        "schemas.py.jinja",
        header=header(package, [message.source for message in unit.messages]),
        docstring=docstring(f"Schemas of {unit.title}{package.reference(page)}"),
        imports=literals.in_import_order(names),
        uuid_names=literals.in_import_order(literals.uuid_names(written)),
        exported=_constants(unit),
        schemas=[_schema(message) for message in unit.messages],
    )


def _schema(message: Message) -> dict[str, Any]:
    """The source of `message.schema`, from which layouts are also derived."""
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
    """The arguments of the FieldSchema, without those that have their defaults."""
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
    """Whether the default differs from that of the type."""
    natural = natural_default(field.type)
    return field.default != natural or type(field.default) is not type(natural)
