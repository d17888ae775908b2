"""Generates the input of the JVM's Spark functions: one text with the schemas of a package's stored messages.

The Java code in `java/` reads it and derives the bytes of each version, like `kafka_records_runtime.schema.layout`. So
one jar works for every package, and your own packages need no JDK.

A line is a keyword and its values, separated by tabs:

    folder   path, framing of its records
    message  name, name in functions, lowest and highest version, versions that are flexible, key|value|record|message,
             record type, whether a newer version is read as the highest
    note     lowest and highest version, remark that errors append
    struct   name
    field    name, type, versions, versions with null, with a compact length, tag, versions with the tag, ignorable,
             default, description
    record   type, name, name of its column, key, value

`struct` and `field` lines follow their message, with the body of the message last. A default is empty (the default of
the type), `null`, or `=` and a text. A `record` is the message of a metadata record, which has no key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kafka_records_codegen.model.messages import Field, Folder, Model, RecordPair
from kafka_records_codegen.text.page import Package, one_line, origin
from kafka_records_codegen.text.visible import visible
from kafka_records_runtime.schema import EMPTY_STRUCT, Range, natural_default
from kafka_records_runtime.text.casing import snake_case

PATH: Final = "spark/jvm_schemas.txt"

_ESCAPES: Final = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def generate(model: Model, package: Package) -> dict[str, str]:
    """The text of the package, by its path below the package."""
    lines = [f"# {line}" for line in origin(package, [])]
    for folder in model.stored.folders:
        lines += map(_line, _folder(folder))
    return {PATH: "\n".join(lines) + "\n"}


def _line(values: Iterable[object]) -> str:
    return "\t".join(visible(str(value).translate(_ESCAPES)) for value in values)


def _folder(folder: Folder) -> Iterator[tuple[object, ...]]:
    yield "folder", folder.path, folder.framing or ""
    kinds = {record.key.name: ("key", record.type) for record in folder.records if record.key_or_none is not None}
    kinds |= {
        record.value.name: ("record" if record.key_or_none is None else "value", record.type)
        for record in folder.records
    }
    for message in folder.messages:
        kind, number = kinds.get(message.name, ("message", ""))
        versions = message.versions.pair or (0, -1)
        head = (message.name, snake_case(message.name), *versions, _range(message.flexible.pair))
        yield "message", *head, kind, number, int(message.newer_as_highest)
        for note in message.schema.notes:
            yield "note", *note
        for struct in message.structs:
            yield "struct", struct.name
            for field in struct.fields:
                yield _field(field)
    for record in folder.records:
        yield "record", record.type, record.name, snake_case(record.name), *_messages(record)


def _messages(record: RecordPair) -> tuple[str, str]:
    return "" if record.key_or_none is None else record.key.name, record.value.name


def _field(field: Field) -> tuple[object, ...]:
    schema = field.schema
    return (
        "field",
        schema.name,
        schema.type,
        _range(schema.versions),
        _range(schema.nullable),
        _range(schema.flexible),
        "" if schema.tag is None else schema.tag,
        _range(schema.tagged),
        int(schema.ignorable),
        _default(schema.type, schema.default),
        one_line(field.about),
    )


def _range(versions: Range) -> str:
    return "" if versions is None else f"{versions[0]}-{versions[1]}"


def _default(type: str, value: object) -> str:
    natural = natural_default(type)
    if value is None:
        return "null"
    if value is EMPTY_STRUCT or (value == natural and str(value) == str(natural)):
        return ""
    return f"={value}"
