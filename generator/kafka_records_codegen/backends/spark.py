"""Spark types and decode functions: one module per folder, thin over the generic functions of kafka_records_spark."""

from __future__ import annotations

from typing import Any, Final

from kafka_records_codegen.backends.page import Package, docstring, folder_path, header, render, sources
from kafka_records_codegen.backends.schemas import has_inner, with_root
from kafka_records_codegen.model import Field, Folder, Message, Model, Struct
from kafka_records_codegen.naming import snake_case, upper_snake_case
from kafka_records_runtime.spark_names import SPARK_TYPES

_SHORT: Final = {
    "BooleanType": "boolean",
    "ByteType": "tinyint",
    "ShortType": "smallint",
    "IntegerType": "int",
    "LongType": "bigint",
    "DoubleType": "double",
    "StringType": "string",
    "BinaryType": "binary",
}
"""Spark type → its name in SQL."""


def generate(model: Model, package: Package) -> dict[str, str]:
    """Every Spark module by its path below the package, and the package that holds them."""
    return {
        folder_path("spark", folder, has_inner(folder, model)): _module(folder, package) for folder in with_root(model)
    }


def _module(folder: Folder, package: Package) -> str:
    types = [_type(message) for message in folder.messages]
    text = "".join(each["struct"] for each in types)
    names = {*SPARK_TYPES.values(), "ArrayType", "StructField", "StructType"}
    functions = [_function(folder, message) for message in folder.messages]
    exported = [each["constant"] for each in types] + [f"from_{each['name']}" for each in functions]
    if folder.records:
        exported.append("decode_records")
    inner = package.module("schemas", folder.path.replace("/", "."))
    parent, _, name = inner.rstrip(".").rpartition(".")
    return render(
        "spark.py.jinja",
        header=header(package, sources(folder)),
        docstring=docstring(f"Spark types and functions of {folder.path or 'the messages at the top of the specs'}."),
        types=types,
        imports=sorted(each for each in names if f"{each}(" in text),
        schema_parent=parent,
        schema_name=name,
        exported=sorted(exported),
        functions=functions,
        records=[record.name for record in folder.records],
    )


def _type(message: Message) -> dict[str, str]:
    return {
        "constant": upper_snake_case(message.name),
        "name": message.name,
        "struct": _struct(message, message.root),
    }


def _struct(message: Message, struct: Struct) -> str:
    fields = ", ".join(
        f'StructField("{field.python_name}", {_spark(message, field)}, {is_nullable(field)})' for field in struct.fields
    )
    return f"StructType([{fields}])"


def is_nullable(field: Field) -> bool:
    """Whether the column of `field` can hold nulls."""
    return bool(field.nullable) or field.default is None


def _spark(message: Message, field: Field) -> str:
    element = _struct(message, message.struct(field.base)) if field.is_struct else f"{SPARK_TYPES[field.base]}()"
    return f"ArrayType({element}, False)" if field.is_array else element


def _short(field: Field) -> str:
    element = "struct" if field.is_struct else _SHORT[SPARK_TYPES[field.base]]
    return f"{field.python_name} {f'array<{element}>' if field.is_array else element}"


def _function(folder: Folder, message: Message) -> dict[str, Any]:
    constant = upper_snake_case(message.name)
    number = next((record.type for record in folder.records if message in (record.key, record.value)), None)
    if number is None:
        call, what = "from_message", "the message; an int16 version stands before it unless `version` is given"
    elif message.type == "coordinator-key":
        call, what = "from_key", f"record keys of type {number} (int16 type, then the key)"
    else:
        call, what = "from_value", f"record values of type {number} (int16 version, then the value)"
    return {
        "name": snake_case(message.name),
        "title": message.name,
        "what": what,
        "columns": ", ".join(_short(field) for field in message.root.fields) or "none",
        "call": call,
        "argument": f"_schemas.{constant}" if number is None else f"_schemas.RECORDS[{number}]",
        "takes_version": number is None,
    }
