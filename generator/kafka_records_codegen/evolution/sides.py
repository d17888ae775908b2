"""One side of a message comparison: the resolved fields, and the places in the spec that define them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kafka_records_codegen.evolution.changes import SpecPlace
from kafka_records_codegen.evolution.spec_sets import SpecSet
from kafka_records_codegen.model.messages import Field, Message
from kafka_records_codegen.model.resolve import SpecFile
from kafka_records_codegen.spec.attributes import FieldSpec, MessageSpec
from kafka_records_codegen.spec.element import Element
from kafka_records_runtime.schema.layout import StructLayout, Value, message_layout


@dataclass(frozen=True)
class SidedField:
    """A field as resolved in the model and as written in the file."""

    field: Field
    spec: FieldSpec


@dataclass(frozen=True)
class FieldInBytes:
    """A field in a version, and its layout in that version."""

    sided: SidedField
    value: Value
    is_tagged: bool

    @property
    def name(self) -> str:
        return self.sided.field.name

    @property
    def tag(self) -> int:
        assert self.sided.field.tag is not None
        return self.sided.field.tag


@dataclass(frozen=True)
class Side:
    """A message on one side. `message` is None if the message is retired and so has only a spec."""

    specs: SpecSet
    file: SpecFile
    message: Message | None

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def spec(self) -> MessageSpec:
        return self.file.spec

    @property
    def made(self) -> Message:
        """The message, which must not be retired."""
        assert self.message is not None
        return self.message

    def place(self, element: Element | None = None, attribute: str = "") -> SpecPlace:
        """Where an element of the spec sets an attribute or, if it does not set it, where the element starts."""
        chosen = self.spec if element is None else element
        member = chosen.node.members.get(attribute)
        position = chosen.node.position if member is None else member.value.position
        path = chosen.path if member is None else chosen.path_to(attribute)
        return SpecPlace(self.specs.files[self.file.path], position.line, position.column, path or "$")

    def fields(self, struct: str) -> tuple[SidedField, ...]:
        """The fields of the struct with this name in the spec."""
        return self._fields[struct]

    @cached_property
    def _fields(self) -> dict[str, tuple[SidedField, ...]]:
        return {
            struct.name: tuple(map(SidedField, struct.fields, self.file.structs[struct.name].fields))
            for struct in self.made.structs
        }

    def layout(self, version: int) -> StructLayout:
        return message_layout(self.made.schema, version)

    def in_bytes(self, layout: StructLayout) -> Iterator[FieldInBytes]:
        """The fields that a struct has in the versions of `layout`, in spec order."""
        for sided, each in zip(self.fields(layout.name), layout.fields, strict=True):
            if each.value is not None:
                yield FieldInBytes(sided, each.value, each.tagged)


def by_name(fields: Iterable[FieldInBytes]) -> dict[str, FieldInBytes]:
    return {field.name: field for field in fields}
