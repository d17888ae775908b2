"""Messages for examples in docstrings: their bytes, and the value of one of their columns."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_records_codegen.model.messages import Message
from kafka_records_runtime.wire import walker

_SHOWN = ("bool", "int8", "int16", "uint16", "int32", "uint32", "int64", "string")
"""Types whose values look the same in Spark and Python."""


@dataclass(frozen=True)
class Example:
    """A message of the highest version: its bytes, and one of its columns with its value."""

    version: int
    data: bytes
    column: str
    value: object


def example(message: Message) -> Example | None:
    """A message in which each text is the name of its field and everything else has its default.

    None for a message without a column to show. The loader has checked that defaults can be written.
    """
    version = message.versions.highest
    present = [field for field in message.root.fields if version in field.versions and not field.tagged]
    texts = {field.python_name: field.python_name for field in present if field.type == "string"}
    shown = next((field for field in present if field.type in _SHOWN), None)
    if shown is None:
        shown = next((field for field in present if field.is_array and field.default == ()), None)
    if shown is None:
        return None
    data = walker.encode(message.schema, texts, version)
    default = [] if shown.is_array else shown.default
    return Example(version, data, shown.python_name, texts.get(shown.python_name, default))
