"""The schema walker: a complete, careful codec that needs only a schema.

It repeats the work of every generated fast path that fails, and its errors contain a path and a byte offset. `decode`
is strict by default: any message that it accepts re-encodes to the same bytes, except for over-long varints, explicitly
written defaults of tagged fields, and true bools other than 1. `lenient=True` accepts what Kafka's generated classes
accept, with the same values; `Leniency` lists the differences. There is one exception, so that decoding always takes
linear time: the number of zero-size elements in all arrays together is limited to the size of the input. Kafka applies
this limit to each array separately.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kafka_records_runtime.errors import TrailingBytes
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.schema.defaults import default_struct
from kafka_records_runtime.schema.layout import check_version
from kafka_records_runtime.wire.buffers import as_bytes
from kafka_records_runtime.wire.failure import ReadFailure, WriteFailure
from kafka_records_runtime.wire.leniency import Leniency
from kafka_records_runtime.wire.primitives import ByteCursor
from kafka_records_runtime.wire.readers import message_reader
from kafka_records_runtime.wire.trail import Trail, TrailStep
from kafka_records_runtime.wire.writers import message_writer

__all__ = ["TrailStep", "decode", "default_value", "encode", "walk"]


def decode(
    schema: MessageSchema,
    data: bytes,
    version: int,
    *,
    lenient: bool = False,
    classes: Mapping[str, Any] | None = None,
    allow_trailing: bool = False,
    leniencies: list[str] | None = None,
) -> tuple[Any, int]:
    """Read the message at the start of `data`. Returns the message and its size in bytes.

    A struct becomes a dict of all its members by Python name (those that the version lacks have their defaults, and
    `unknown_tagged_fields` is added if the message has flexible versions), or `classes[struct name](**members)`. Arrays
    become tuples. Bytes left over are an error unless `allow_trailing` or `lenient` is set. A lenient decode appends
    the name of each `Leniency` that was needed to `leniencies`.

    Raises UnsupportedVersion, or a DecodeError with the path and the byte.
    """
    data = as_bytes(data)
    check_version(schema, version)
    cursor = ByteCursor(data, lenient=lenient, leniencies=leniencies, classes=classes)
    try:
        value = message_reader(schema, version)(cursor)
        left = cursor.end - cursor.pos
        if left and not allow_trailing:
            cursor.concede(Leniency.TRAILING_BYTES, TrailingBytes, cursor.pos, left)
    except ReadFailure as failure:
        raise failure.located(schema, version) from None
    return value, cursor.pos


def walk(schema: MessageSchema, version: int, data: bytes, lenient: bool = False) -> Iterator[TrailStep]:
    """Yield a step for every item in the message at the start of `data`, in wire order.

    Bytes after the message are left to the caller. If the message is invalid, the steps before the error are yielded
    first, and then the DecodeError is raised.
    """
    check_version(schema, version)
    trail = Trail()
    cursor = ByteCursor(as_bytes(data), lenient=lenient, trail=trail)
    broken: ReadFailure | None = None
    try:
        message_reader(schema, version, recording=True)(cursor)
    except ReadFailure as failure:
        broken = failure
    yield from trail.steps
    if broken is not None:
        raise broken.located(schema, version)


def encode(schema: MessageSchema, value: Any, version: int) -> bytes:
    """Write `value`, a dict as returned by `decode` or an object with the same attributes, in `version`.

    Missing members of a dict have their defaults. Raises UnsupportedVersion, or an EncodeError with the path of the
    field at fault.
    """
    check_version(schema, version)
    out = bytearray()
    try:
        message_writer(schema, version)(out, value)
    except WriteFailure as failure:
        raise failure.located(schema.name, version) from None
    return bytes(out)


def default_value(schema: MessageSchema, classes: Mapping[str, Any] | None = None) -> Any:
    """The message in which every field has its default, as `decode` would return it."""
    return default_struct(schema, schema.root.name, classes)
