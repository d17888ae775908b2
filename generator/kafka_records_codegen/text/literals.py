"""Values of the model as Python source."""

from __future__ import annotations

import math

from kafka_records_codegen.model.messages import Field, Message
from kafka_records_runtime.schema import EMPTY_STRUCT
from kafka_records_runtime.uuids import ZERO_UUID, Uuid


def literal(message: Message, field: Field) -> str:
    """The default as the source of an expression."""
    return value_literal(message, field, field.default)


def value_literal(message: Message, field: Field, value: object) -> str:
    if value is EMPTY_STRUCT:
        return f"{message.struct(field.base).python_name}()"
    if isinstance(value, Uuid):
        return "ZERO_UUID" if value == ZERO_UUID else f"Uuid({bytes(value)!r})"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)
