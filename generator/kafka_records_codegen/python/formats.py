"""The notation for fixed-width values in Python's `struct` and in generated names."""

from __future__ import annotations

from typing import Final

from kafka_records_runtime.schema import FIXED_SIZES
from kafka_records_runtime.schema.layout import UVARINT, FixedValue, Value
from kafka_records_runtime.wire.primitives import INTEGERS

Formats = tuple[str, ...]

FORMATS: Final = {**{name: code for name, (code, _, _) in INTEGERS.items()}, "bool": "?", "float64": "d", "uuid": "16s"}
"""The `struct` format of every fixed-width type."""

HEADS: Final = {"int8": "b", "int16": "h", "int32": "i", UVARINT: "B"}
"""The `struct` format of a length, count or marker; for a varint, that of its first byte."""

PLURALS: Final = {"string": "strings", "bytes": "byte_strings", "uuid": "uuids", "bool": "bools"}
"""For element types without a repeatable `struct` format: what the runtime's array functions call them."""

_SIZES: Final = {"B": 1, **{form: FIXED_SIZES[name] for name, form in FORMATS.items()}}
_LETTERS: Final = {"16s": "u", "?": "t"}


def width(formats: Formats) -> int:
    """The number of bytes in a run of fixed-width formats."""
    return sum(_SIZES[form] for form in formats)


def spell(formats: Formats) -> str:
    """A run of formats as part of a Python name."""
    return "".join(_LETTERS.get(form, form) for form in formats)


def is_number(value: Value) -> bool:
    """Whether `struct` checks the type of the value, as it does for numbers but not for bools and uuids."""
    return isinstance(value, FixedValue) and value.type not in ("uuid", "bool")


def array_kind(compact: bool) -> str:
    """The word for an array in generated names."""
    return "compact_array" if compact else "array"
