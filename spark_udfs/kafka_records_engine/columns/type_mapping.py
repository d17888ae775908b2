"""Walks over the fields of a schema, for each type system with columns (Arrow, Spark)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.schema import FieldSchema, MessageSchema, StructSchema
from kafka_records_runtime.schema.layout import UNKNOWN_TAGS

T = TypeVar("T")


class UnsupportedType(KafkaRecordsError, TypeError):
    """There is no column type for the type of a field. `path` is the field in `message_name`; `detail` says why."""

    def __init__(self, message_name: str, path: str, detail: str) -> None:
        super().__init__(message_name, path, detail)
        self.message_name = message_name
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.message_name}: {self.path} {self.detail}"


@dataclass(frozen=True)
class TypeMapping(Generic[T]):
    """Maps each part of a schema to a type in some type system, or to a conversion of values.

    `primitive` is called with a spec type, `array` with the result for its elements, and `struct` with its members
    (name, whether it can be null, and result). `tags` is the result for unknown tagged fields; None leaves them out.
    """

    primitive: Callable[[str], T]
    array: Callable[[T], T]
    struct: Callable[[list[tuple[str, bool, T]]], T]
    tags: T | None = None


def mapped(message: MessageSchema, mapping: TypeMapping[T]) -> T:
    """The result of `mapping` for `message`: every field of every version, in the order of the spec.

    Raises UnsupportedType for a field that no column can hold.
    """

    def of_struct(struct: StructSchema, path: str, above: tuple[str, ...]) -> T:
        if struct.name in above:
            raise UnsupportedType(message.name, path, f"contains the struct {struct.name}, which contains itself")
        inner = (*above, struct.name)
        prefix = f"{path}." if path else ""
        made = [(each.name, each.can_be_null, of_field(each, prefix + each.name, inner)) for each in struct.fields]
        if mapping.tags is not None and message.flexible is not None:
            made.append((UNKNOWN_TAGS, False, mapping.tags))
        return mapping.struct(made)

    def of_field(field: FieldSchema, path: str, above: tuple[str, ...]) -> T:
        if not field.is_struct:
            item = mapping.primitive(field.base)
        else:
            try:
                struct = message.struct(field.base)
            except KeyError:
                raise UnsupportedType(
                    message.name, path, f"has the type {field.base}, which has no column type"
                ) from None
            item = of_struct(struct, path, above)
        return mapping.array(item) if field.is_array else item

    return of_struct(message.root, "", ())
