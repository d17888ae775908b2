"""Which fields a struct has on the wire at a version, and which versions look the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from struct import calcsize
from typing import Final

from kafka_records_codegen.model.messages import Field, Message, Struct

FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
"""The `struct` format of every type whose encoding has a fixed width."""

WIDTHS: Final = {name: calcsize(f">{form}") for name, form in FORMATS.items()}
"""How many bytes each of these types takes."""

PLURALS: Final = {"string": "strings", "bytes": "byte_strings", "uuid": "uuids", "bool": "bools"}
"""How the runtime's array functions name the elements that have no `struct` format to repeat."""


def width(formats: tuple[str, ...]) -> int:
    """Bytes that a run of fixed-width formats takes."""
    return calcsize(f">{''.join(formats)}")


def spell(formats: tuple[str, ...]) -> str:
    """A run of formats as part of a Python name."""
    return "".join("u" if item == "16s" else "t" if item == "?" else item for item in formats)


@dataclass(frozen=True)
class Layout:
    """One struct at one version of its message."""

    message: Message
    struct: Struct
    version: int

    @property
    def is_flexible(self) -> bool:
        return self.version in self.message.flexible

    @property
    def untagged(self) -> list[Field]:
        """Fields that stand in the body, in wire order."""
        return [f for f in self.struct.fields if self.version in f.versions and self.version not in f.tagged]

    @property
    def tagged(self) -> list[Field]:
        """Fields that stand in the tagged section, by tag."""
        found = [f for f in self.struct.fields if self.version in f.versions and self.version in f.tagged]
        return sorted(found, key=lambda f: f.tag or 0)

    @property
    def misplaced_tags(self) -> list[int]:
        """Tags of fields that this version does not have, or has in the body: no section may hold them."""
        return sorted(f.tag for f in self.struct.fields if f.tag is not None and self.version not in f.tagged)

    @property
    def absent(self) -> list[Field]:
        """Fields the version does not have."""
        return [f for f in self.struct.fields if self.version not in f.versions]

    def is_compact(self, field: Field) -> bool:
        """Whether the lengths of an untagged `field` are varints."""
        return self.version in field.flexible

    def is_nullable(self, field: Field) -> bool:
        return self.version in field.nullable

    def of(self, field: Field) -> Layout:
        """The layout of the struct that `field` holds."""
        return Layout(self.message, self.message.struct(field.base), self.version)

    def min_size(self) -> int:
        """The fewest bytes that the struct can take."""
        total = 1 if self.is_flexible else 0
        return total + sum(self._min_field(field) for field in self.untagged)

    def _min_field(self, field: Field) -> int:
        if field.is_array:
            return 1 if self.is_compact(field) else 4
        if field.is_struct:
            return 1 if self.is_nullable(field) else self.of(field).min_size()
        if field.base in WIDTHS:
            return WIDTHS[field.base]
        if self.is_compact(field):
            return 1
        return 2 if field.base == "string" else 4

    def _signature(self) -> tuple[object, ...]:
        return (self.is_flexible, *(self._field_signature(field) for field in self.struct.fields))

    def _field_signature(self, field: Field) -> tuple[object, ...]:
        if self.version not in field.versions:
            return (field.name, None)
        nested = self.of(field)._signature() if field.is_struct else ()
        tagged = self.version in field.tagged
        return (field.name, tagged, tagged or self.is_compact(field), self.is_nullable(field), nested)

    def canonical(self) -> Layout:
        """The layout of the lowest version that looks like this one: the version that names shared functions."""
        signature = self._signature()
        for version in self.message.versions:
            other = Layout(self.message, self.struct, version)
            if other._signature() == signature:
                return other
        return self


def layouts(message: Message, struct: Struct) -> Iterator[Layout]:
    """The distinct layouts of `struct`, by their lowest version."""
    for version in message.versions:
        layout = Layout(message, struct, version)
        if layout.canonical().version == version:
            yield layout
