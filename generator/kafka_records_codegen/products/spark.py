"""Generates Spark types and functions: a module per record or stored message, a thin layer over
kafka_records_engine.spark. Requests and responses have none, because they are not stored in columns.

A folder's package exports the names of its modules, and imports each module when one of its names is first used.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Final

from kafka_records_codegen.model.messages import Field, Folder, Message, Model, RecordPair, Struct
from kafka_records_codegen.model.naming import spark_names
from kafka_records_codegen.model.units import Unit
from kafka_records_codegen.products.lazy_packages import LazyPackages
from kafka_records_codegen.products.spark_examples import example
from kafka_records_codegen.text.page import Package, docstring, header, render, sources
from kafka_records_runtime.kafka.secrets import may_hold_secrets
from kafka_records_runtime.records.framing import METADATA, framed, in_frame
from kafka_records_runtime.text.casing import snake_case, upper_snake_case
from kafka_records_runtime.text.spark_names import SPARK_TYPES

SQL_TYPES: Final = {
    "BooleanType": "boolean",
    "ByteType": "tinyint",
    "ShortType": "smallint",
    "IntegerType": "int",
    "LongType": "bigint",
    "DoubleType": "double",
    "StringType": "string",
    "BinaryType": "binary",
}
"""The SQL name of each Spark type."""

_HEX_DIGITS: Final = 72
"""The number of hex digits of a message to show on one line of an example."""


def generate(model: Model, package: Package) -> dict[str, str]:
    """All Spark modules, by path below the package, and the packages that contain them."""
    return LazyPackages(
        name="spark",
        contents="Spark types and functions",
        module=_module,
        exported=_exported,
        records_module="_decode_records",
        records_text=_decode_records,
        records_exported=("decode_records",),
    ).generate(model.stored, package)


def _exported(unit: Unit) -> list[str]:
    return sorted(name for message in unit.messages for name in spark_names(message.name))


def _decode_records(folder: Folder, package: Package) -> str:
    records = folder.path or "the records at the top of the specs"
    return render(
        "spark_decode_records.py.jinja",
        header=header(package, sources(folder)),
        docstring=docstring(f"`decode_records` for the topic of {records}."),
        **_schema_module(folder, package),
        package=package.name,
        folder=folder.path,
        abouts=[(message.name, list(_abouts(message, message.root))) for message in folder.messages],
        records=[record.name for record in folder.records],
        is_metadata=folder.framing == METADATA,
        may_hold_secrets=any(_may_hold_secrets(record.value) for record in folder.records),
        # Folders are named after Kafka's own topics, without the leading underscores.
        own_topic=repr(f"__{folder.path}" if folder.path else None),
    )


def _module(folder: Folder, unit: Unit, package: Package, page: str) -> str:
    return render(
        "spark.py.jinja",
        header=header(package, [message.source for message in unit.messages]),
        docstring=docstring(f"Spark types and functions of {unit.title}{package.reference(page)}"),
        **_schema_module(folder, package),
        types=[_type(message) for message in unit.messages],
        imports=sorted({name for message in unit.messages for name in _type_names(message, message.root)}),
        exported=_exported(unit),
        functions=[_function(folder, message, package) for message in unit.messages],
    )


def _schema_module(folder: Folder, package: Package) -> dict[str, str]:
    parent, _, name = package.module("schemas", folder.path).rpartition(".")
    return {"schema_parent": parent, "schema_name": name}


def _type(message: Message) -> dict[str, str]:
    return {
        "constant": upper_snake_case(message.name),
        "name": message.name,
        "struct": _struct(message, message.root),
    }


def _struct(message: Message, struct: Struct) -> str:
    fields = ", ".join(
        f'StructField("{field.python_name}", {_spark(message, field)}, {field.can_be_null})' for field in struct.fields
    )
    return f"StructType([{fields}])"


def _type_names(message: Message, struct: Struct) -> Iterator[str]:
    """The names of the PySpark types that `_struct` writes."""
    yield "StructType"
    for field in struct.fields:
        yield "StructField"
        if field.is_array:
            yield "ArrayType"
        if field.is_struct:
            yield from _type_names(message, message.struct(field.base))
        else:
            yield SPARK_TYPES[field.base]


def _spark(message: Message, field: Field) -> str:
    element = _struct(message, message.struct(field.base)) if field.is_struct else f"{SPARK_TYPES[field.base]}()"
    return f"ArrayType({element}, False)" if field.is_array else element


def _columns(message: Message, struct: Struct, indent: str = "") -> Iterator[str]:
    """The columns of `struct`, one per line. Those inside an array or struct are indented further."""
    for field in struct.fields:
        element = "struct" if field.is_struct else SQL_TYPES[SPARK_TYPES[field.base]]
        yield f"{indent}{field.python_name} {f'array<{element}>' if field.is_array else element}"
        if field.is_struct:
            yield from _columns(message, message.struct(field.base), f"{indent}    ")


def _abouts(message: Message, struct: Struct, path: str = "") -> Iterator[tuple[str, str]]:
    """The path of each field with a description in the spec, and the description on one line, both as Python source."""
    for field in struct.fields:
        if field.about.strip():
            yield repr(f"{path}{field.python_name}"), repr(" ".join(field.about.split()))
        if field.is_struct:
            yield from _abouts(message, message.struct(field.base), f"{path}{field.python_name}.")


def _function(folder: Folder, message: Message, package: Package) -> dict[str, Any]:
    record = next((each for each in folder.records if message in each.messages), None)
    kind = "message" if record is None else "key" if message == record.key_or_none else "value"
    argument = f"_schemas.{upper_snake_case(message.name)}" if record is None else f"_schemas.RECORDS[{record.type}]"
    return {
        "name": snake_case(message.name),
        "title": message.name,
        "kind": kind,
        "argument": argument,
        "bytes": _bytes(kind, record),
        "is_metadata": record is not None and record.framing == METADATA,
        "package": package.name,
        "newer_as_highest": message.newer_as_highest,
        "may_hold_secrets": _may_hold_secrets(message),
        "highest": message.versions.highest,
        "columns": list(_columns(message, message.root)),
        "example": _example(message, record),
    }


def _may_hold_secrets(message: Message) -> bool:
    return may_hold_secrets(message.name, (field.python_name for field in message.root.fields))


def _bytes(kind: str, record: RecordPair | None) -> str:
    """What the binary column of a function contains, as the end of a sentence."""
    if record is None:
        return "messages"
    if record.framing == METADATA:
        return f"{record.name} records: frame version, api key {record.type} and version as varints, then the message"
    if kind == "key":
        return f"keys of {record.name} records: int16 type {record.type}, then the key"
    return f"values of {record.name} records (type {record.type}): int16 version, then the value"


def _example(message: Message, record: RecordPair | None) -> dict[str, Any] | None:
    """The data for the examples of both functions: the bytes with their prefix, a column, and its value."""
    made = example(message)
    if made is None:
        return None
    if record is not None and record.framing == METADATA:
        data = in_frame(record.type, made.version, made.data)
    else:
        number = record.type if record is not None and message == record.key_or_none else made.version
        data = framed(number, made.data)
    return {
        "hex": textwrap.wrap(data.hex(), _HEX_DIGITS),
        "column": made.column,
        "value": repr(made.value),
    }
