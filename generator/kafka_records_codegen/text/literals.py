"""Converts values of the model to Python source."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kafka_records_codegen.model.messages import Message
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema


def literal(message: Message, field: FieldSchema) -> str:
    """The default value of a field as a Python expression."""
    value = field.default
    if value is EMPTY_STRUCT:
        return f"{message.struct(field.base).python_name}()"
    if isinstance(value, Uuid):
        return "ZERO_UUID" if value == ZERO_UUID else f"Uuid({bytes(value)!r})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def uuid_names(fields: Iterable[FieldSchema]) -> set[str]:
    """The names from `kafka_records_runtime.kafka.uuids` that the literals of these fields use."""
    found = [field.default for field in fields if isinstance(field.default, Uuid)]
    return {"ZERO_UUID" if value == ZERO_UUID else "Uuid" for value in found}


def in_import_order(names: Iterable[str]) -> list[str]:
    """The names from one module in the order of an import statement, constants first."""
    return sorted(names, key=lambda name: (not name.isupper(), name))
