"""From schemas to Arrow types.

One table says what a primitive becomes; whatever is not in it is refused by name. A field is nullable where its spec
says so. Times stay int64 milliseconds, an unsigned number takes the next wider signed type (Spark has no other), and a
uuid is Kafka's 22-character text, so that it joins with what Kafka's tools print.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, cast

import pyarrow as pa

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.layout import UNKNOWN_TAGS, plan
from kafka_records_runtime.schema import FieldSchema, MessageSchema, RecordSchema, StructSchema

T = TypeVar("T")

ARROW_TYPES: Final[Mapping[str, pa.DataType]] = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
}
"""Spec type → Arrow type."""

UNKNOWN_TAGS_TYPE: Final = pa.list_(
    pa.field(
        "element",
        pa.struct([pa.field("tag", pa.int32(), nullable=False), pa.field("data", pa.binary(), nullable=False)]),
        nullable=False,
    )
)
"""Tagged fields that a schema does not define, in wire order, where they are kept."""


class UnsupportedType(KafkaRecordsError, TypeError):
    """A field (`path`, inside `message_name`) whose type has no column type, for the `reason` given."""

    def __init__(self, message_name: str, path: str, reason: str) -> None:
        super().__init__(message_name, path, reason)
        self.message_name = message_name
        self.path = path
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.message_name}: {self.path} {self.reason}"


class TooMuchForOneArray(KafkaRecordsError, ValueError):
    """Decoded rows whose text or bytes pass the 2 GiB that one Arrow array can hold."""

    def __str__(self) -> str:
        return "the decoded rows hold more than 2 GiB of text or bytes in one field: decode fewer rows at a time"


@dataclass(frozen=True)
class Target(Generic[T]):
    """How one type system, or a conversion of values, is put together. A struct is given as its fields and what was
    made of them; `tags` is what stands for unknown tagged fields, None where they are left out."""

    primitive: Callable[[str], T]
    array: Callable[[T], T]
    struct: Callable[[list[tuple[str, bool, T]]], T]
    tags: T | None = None


def build(message: MessageSchema, target: Target[T]) -> T:
    """What `target` makes of the fields of `message`: every field of every version, in the order of the spec.

    Raises UnsupportedType for a field that no column can hold.
    """

    def of_struct(struct: StructSchema, path: str, above: tuple[str, ...]) -> T:
        if struct.name in above:
            raise UnsupportedType(message.name, path, f"holds {struct.name}, which holds itself")
        inner = (*above, struct.name)
        prefix = f"{path}." if path else ""
        made = [(each.name, is_nullable(each), of_field(each, prefix + each.name, inner)) for each in struct.fields]
        if target.tags is not None and message.flexible is not None:
            made.append((UNKNOWN_TAGS, False, target.tags))
        return target.struct(made)

    def of_field(field: FieldSchema, path: str, above: tuple[str, ...]) -> T:
        if not field.is_struct:
            item = target.primitive(field.base)
        else:
            try:
                struct = message.struct(field.base)
            except KeyError:
                raise UnsupportedType(
                    message.name, path, f"has the type {field.base}, which has no column type"
                ) from None
            item = of_struct(struct, path, above)
        return target.array(item) if field.is_array else item

    return of_struct(message.root, "", ())


def is_nullable(field: FieldSchema) -> bool:
    """Whether a decoded value can be null: in some version, or because the versions without the field say null."""
    return field.nullable is not None or field.default is None


def _struct(fields: list[tuple[str, bool, pa.DataType]]) -> pa.DataType:
    return pa.struct([pa.field(name, item, nullable) for name, nullable, item in fields])


def _target(tags: pa.DataType | None) -> Target[pa.DataType]:
    return Target(
        primitive=lambda name: ARROW_TYPES[name],
        array=lambda item: pa.list_(pa.field("element", item, nullable=False)),
        struct=_struct,
        tags=tags,
    )


_PLAIN: Final = _target(None)
_WITH_TAGS: Final = _target(UNKNOWN_TAGS_TYPE)


def arrow_type(message: MessageSchema, unknown_tags: bool = False) -> pa.StructType:
    """The struct column of `message`: every field of every version, in the order of the spec.

    With `unknown_tags` every struct of a message that has flexible versions ends in `unknown_tagged_fields`
    (UNKNOWN_TAGS_TYPE). Raises UnsupportedType for a field that no column can hold.
    """
    key = "Arrow type with unknown tags" if unknown_tags else "Arrow type"
    return plan(message, (key, 0), lambda: cast(pa.StructType, build(message, _WITH_TAGS if unknown_tags else _PLAIN)))


def record_arrow_type(record: RecordSchema, unknown_tags: bool = False) -> pa.StructType:
    """The column of a record: `struct<key: …, value: …>`; either is null where there is none or it is unreadable."""
    return pa.struct([("key", arrow_type(record.key, unknown_tags)), ("value", arrow_type(record.value, unknown_tags))])
