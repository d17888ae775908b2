"""The contenders of `row_codecs.py`: the ways in which libraries decode and encode a message.

A contender gets a message schema and a version, and returns two functions, `bytes -> value` and `value -> bytes`. Every
contender is called through one Python function of this module, so that this cost is the same for all.
"""

from __future__ import annotations

import io
import types
from collections.abc import Callable
from dataclasses import dataclass, field, make_dataclass
from importlib import import_module
from typing import Any

from kafka_records import registry
from kafka_records_runtime.schema import FieldSchema, MessageSchema, StructSchema, covers
from kafka_records_runtime.wire import walker


@dataclass(frozen=True)
class RowCodec:
    """The two functions of a contender and, for the report, how they were obtained."""

    decode: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]
    note: str


def ours(schema: MessageSchema, version: int) -> RowCodec:
    """The public methods of the generated class."""
    cls = registry.message_class(schema.name)
    read = cls.decode  # look it up once, as a loop over records would

    def decode(body: bytes) -> Any:
        return read(body, version)

    def encode(value: Any) -> bytes:
        return value.encode(version)  # type: ignore[no-any-return]

    return RowCodec(decode, encode, "generated classes: Cls.decode(body, version), value.encode(version)")


def schema_walker(schema: MessageSchema, version: int) -> RowCodec:
    """Our own interpreter of schemas. It shows what is gained by generating code."""

    def decode(body: bytes) -> Any:
        return walker.decode(schema, body, version)[0]

    def encode(value: Any) -> bytes:
        return walker.encode(schema, value, version)

    return RowCodec(decode, encode, "our schema walker, values as dicts")


# ---------------------------------------------------------------------------------------------------------------- kio

_KIO_SHIPPED = {
    "ConsumerProtocolAssignment": "kio.schema.consumer_protocol_assignment.v{}.data",
    "ConsumerProtocolSubscription": "kio.schema.consumer_protocol_subscription.v{}.data",
}
_KIO_TYPES = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float64": "f64"}


def kio(schema: MessageSchema, version: int) -> RowCodec:
    """The reader and the writer that kio gives for its class of the message."""
    from kio.serial import entity_reader, entity_writer

    entity = kio_class(schema, version)
    # kio has one class per version, so its caller chooses the reader. Our codecs and kafka-python choose it themselves.
    readers = {version: entity_reader(entity)}
    writers = {version: entity_writer(entity)}

    def decode(body: bytes) -> Any:
        return readers[version](body, 0)[0]

    def encode(value: Any) -> bytes:
        buffer = io.BytesIO()
        writers[version](buffer, value)
        return buffer.getvalue()

    return RowCodec(decode, encode, "entity_reader and entity_writer of its dataclasses (shipped, or made alike)")


def kio_class(schema: MessageSchema, version: int) -> Any:
    """kio's class if it has one; otherwise a class of the form that kio's own generator makes from such a spec."""
    if schema.name in _KIO_SHIPPED:
        return getattr(import_module(_KIO_SHIPPED[schema.name].format(version)), schema.name)
    return _kio_class(schema, schema.root, version)


def _kio_class(schema: MessageSchema, struct: StructSchema, version: int) -> type:
    from kio.static.constants import EntityType
    from kio.static.primitive import i16

    return make_dataclass(
        struct.name,
        [
            (each.name, _kio_type(schema, each, version), _kio_field(schema, each, version))
            for each in struct.fields
            if covers(each.versions, version)
        ],
        namespace={
            "__type__": EntityType.data if struct is schema.root else EntityType.nested,
            "__version__": i16(version),
            "__flexible__": schema.is_flexible(version),
        },
        frozen=True,
        slots=True,
        kw_only=True,
    )


def _kio_type(schema: MessageSchema, each: FieldSchema, version: int) -> Any:
    from uuid import UUID

    from kio.static import primitive

    kind: Any
    if each.is_struct:
        kind = _kio_class(schema, schema.struct(each.base), version)
    elif each.base in _KIO_TYPES:
        kind = getattr(primitive, _KIO_TYPES[each.base])
    else:
        kind = {"string": str, "bytes": bytes, "bool": bool, "uuid": UUID | None}[each.base]
    if each.is_array:
        kind = tuple[kind, ...]
    return kind | None if covers(each.nullable, version) else kind


def _kio_field(schema: MessageSchema, each: FieldSchema, version: int) -> Any:
    metadata: dict[str, Any] = {} if each.is_struct else {"kafka_type": each.base}
    if not covers(each.tagged, version):
        return field(metadata=metadata)
    default = None if each.type == "uuid" else each.default  # kio represents the zero uuid as None
    return field(metadata={**metadata, "tag": each.tag}, default=default)


# ------------------------------------------------------------------------------------------------------- kafka-python

_KAFKA_PYTHON_SHIPPED = ("ConsumerProtocolAssignment",)


def kafka_python(schema: MessageSchema, version: int) -> RowCodec:
    """kafka-python's public class for stored data: its own, or one that it builds from our spec file."""
    read = _kafka_python_class(schema).decode

    def decode(body: bytes) -> Any:
        return read(body, version=version, header=False)

    def encode(value: Any) -> bytes:
        return value.encode(version=version, header=False)  # type: ignore[no-any-return]

    return RowCodec(decode, encode, "ApiData.decode and .encode, its own class or one built from our spec")


def kafka_python_compiled(schema: MessageSchema, version: int) -> RowCodec:
    """The same class through the compiler that kafka-python uses for requests. Its public methods do not offer this."""
    from kafka.protocol.schemas.fields.codecs import EncodeBufferPool

    cls = _kafka_python_class(schema)
    flexible = cls.flexible_version_q(version)
    options = {"compact": flexible, "tagged": flexible}
    readers = {version: cls._struct.compiled_decode_from(version, data_class=cls, **options)}
    writers = {version: cls._struct.compiled_encode_into(version, **options)}

    def decode(body: bytes) -> Any:
        return readers[version](memoryview(body), 0)[0]

    def encode(value: Any) -> bytes:
        with EncodeBufferPool.acquire() as buffer:
            writers[version](value, buffer)
            return buffer.result()  # type: ignore[no-any-return]

    return RowCodec(decode, encode, "the compiler kafka-python uses for requests, applied to those classes")


def _kafka_python_class(schema: MessageSchema) -> Any:
    from kafka.protocol.api_data import ApiData
    from kafka.protocol.consumer import metadata

    if schema.name in _KAFKA_PYTHON_SHIPPED:
        return getattr(metadata, schema.name)

    def as_data(_: type, spec: dict[str, Any]) -> dict[str, Any]:
        return {**spec, "type": "data"}  # kafka-python does not know coordinator keys and values

    module = registry.MESSAGES[schema.name][0]
    return types.new_class(
        schema.name,
        (ApiData,),
        {"load_json": f"message_specs.{module.split('.')[1]}"},
        lambda body: body.update(json_patch=classmethod(as_data)),
    )


CONTENDERS: dict[str, Callable[[MessageSchema, int], RowCodec]] = {
    "ours": ours,
    "kio": kio,
    "kafka-python": kafka_python,
    "kp compiled": kafka_python_compiled,
    "walker": schema_walker,
}
"""The contenders by the header of their column. The others are compared with the first one."""
