"""The wire layout of a message: the bytes of one of its versions, in order.

Only `struct_layouts` derives it, from the compact schema and once per version. The schema walker, the generator's
readers, writers and pages, the JSON conversion and the columns all use the objects defined here. Two versions have the
same wire format if and only if their layouts are equal.

This module does not read or write bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final, TypeAlias, TypeVar

from kafka_records_runtime.errors import UnsupportedVersion
from kafka_records_runtime.schema import FIXED_SIZES, FieldSchema, MessageSchema, StructSchema, covers

UNKNOWN_TAGS: Final = "unknown_tagged_fields"
"""The member of a struct with the tags that its schema does not define: a tuple of (tag, bytes) in wire order."""

UVARINT: Final = "uvarint"
"""The type of the length of compact values and of values inside a tag: an unsigned varint."""

P = TypeVar("P")


# -- values -------------------------------------------------------------------------------------- `head` is the type of
# the length, count or marker before a value: int8, int16, int32 or uvarint; None if there is none. `size` is the number
# of bytes of every such value, or None if it varies; `smallest` is the minimum number of bytes.


@dataclass(frozen=True)
class FixedValue:
    """A number, a bool or a uuid."""

    type: str

    head: ClassVar[None] = None
    nullable: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return FIXED_SIZES[self.type]

    @property
    def smallest(self) -> int:
        return self.size


@dataclass(frozen=True)
class SizedValue:
    """A string, bytes or records: a length followed by that many bytes. Null has the length -1, or 0 if the length is
    compact."""

    type: str
    length: str
    nullable: bool

    size: ClassVar[None] = None

    @property
    def head(self) -> str:
        return self.length

    @property
    def smallest(self) -> int:
        return FIXED_SIZES.get(self.length, 1)


@dataclass(frozen=True)
class ArrayValue:
    """A count followed by that many elements, none of which may be null. Null has the count -1, or 0 if the count is
    compact."""

    count: str
    element: Value
    nullable: bool

    size: ClassVar[None] = None

    @property
    def head(self) -> str:
        return self.count

    @property
    def smallest(self) -> int:
        return FIXED_SIZES.get(self.count, 1)


@dataclass(frozen=True)
class StructValue:
    """A struct. If it is nullable, a marker precedes it: 1 for a struct; for null, -1 as an int8 or, inside a tag, 0 as
    a uvarint."""

    layout: StructLayout
    marker: str | None = None

    @property
    def head(self) -> str | None:
        return self.marker

    @property
    def nullable(self) -> bool:
        return self.marker is not None

    @property
    def size(self) -> int | None:
        return self.layout.size if self.marker is None else None

    @property
    def smallest(self) -> int:
        return self.layout.smallest if self.marker is None else 1


Value: TypeAlias = FixedValue | SizedValue | ArrayValue | StructValue


# -- structs -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FieldLayout:
    """A field of a struct in one version. `value` is None if the version does not have the field."""

    field: FieldSchema
    value: Value | None
    tagged: bool = False

    @property
    def present(self) -> bool:
        return self.value is not None

    @property
    def nullable(self) -> bool:
        return self.value is not None and self.value.nullable

    @property
    def compact(self) -> bool:
        """Whether the length or count of the field is compact."""
        return self.value is not None and self.value.head == UVARINT


@dataclass(frozen=True)
class Member:
    """A field that exists in the version, and its layout."""

    field: FieldSchema
    value: Value


@dataclass(frozen=True)
class TagsLayout:
    """The end of a struct in a flexible version: a count, and for each tagged field its tag, its size and its value.

    `known` are the fields that may occur here, by ascending tag. `misplaced` are the fields whose tags must not occur
    here, because the version lacks the field or has it before the section.
    """

    known: tuple[Member, ...]
    misplaced: tuple[FieldSchema, ...]

    head: ClassVar[str] = UVARINT


@dataclass(frozen=True)
class FixedRun:
    """Adjacent fixed-width members, and what follows them: a member of another kind, the tagged fields, or nothing."""

    fixed: tuple[Member, ...]
    behind: Member | TagsLayout | None


@dataclass(frozen=True)
class StructLayout:
    """A struct, or the body of a message, in the versions in which it has the same layout. `fields` are in declared
    order."""

    name: str
    fields: tuple[FieldLayout, ...]
    is_flexible: bool

    @cached_property
    def body(self) -> tuple[Member, ...]:
        """The untagged members in wire order."""
        return tuple(Member(each.field, each.value) for each in self.fields if each.value and not each.tagged)

    @cached_property
    def tags(self) -> TagsLayout | None:
        """The section of tagged fields; None if there is none."""
        if not self.is_flexible:
            return None
        known = [Member(each.field, each.value) for each in self.fields if each.value and each.tagged]
        return TagsLayout(
            tuple(sorted(known, key=lambda member: member.field.tag or 0)),
            tuple(each.field for each in self.fields if each.field.tag is not None and not each.tagged),
        )

    @cached_property
    def absent(self) -> tuple[FieldSchema, ...]:
        """The fields that do not exist in this version."""
        return tuple(each.field for each in self.fields if each.value is None)

    @cached_property
    def runs(self) -> tuple[FixedRun, ...]:
        """All runs in wire order. Only the last run may be followed by tagged fields or nothing."""
        return tuple(self._runs())

    def _runs(self) -> Iterator[FixedRun]:
        fixed: list[Member] = []
        for member in self.body:
            if isinstance(member.value, FixedValue):
                fixed.append(member)
            else:
                yield FixedRun(tuple(fixed), member)
                fixed = []
        yield FixedRun(tuple(fixed), self.tags)

    @cached_property
    def size(self) -> int | None:
        """The size of the struct in bytes; None if it varies."""
        sizes = [member.value.size for member in self.body]
        return None if self.is_flexible or None in sizes else sum(size or 0 for size in sizes)

    @cached_property
    def smallest(self) -> int:
        """The minimum size of the struct in bytes."""
        return int(self.is_flexible) + sum(member.value.smallest for member in self.body)


# -- the derivation ------------------------------------------------------------------------------


def struct_layouts(schema: MessageSchema, version: int) -> Mapping[str, StructLayout]:
    """The layouts of all structs of a message, including its body, by name in the spec.

    The message must have the version. Equal layouts of several versions are the same object.
    """
    return plan(schema, ("layouts", version), lambda: _Derivation(schema, version).all())


def message_layout(schema: MessageSchema, version: int) -> StructLayout:
    """The layout of the body of a message. The message must have the version."""
    return struct_layouts(schema, version)[schema.root.name]


class _Derivation:
    def __init__(self, schema: MessageSchema, version: int) -> None:
        self._schema = schema
        self._version = version
        self._made: dict[str, StructLayout] = {}
        self._of_other_versions: dict[str, list[StructLayout]] = plan(schema, ("distinct layouts", 0), dict)

    def all(self) -> Mapping[str, StructLayout]:
        return {struct.name: self._struct(struct) for struct in self._schema.structs}

    def _struct(self, struct: StructSchema) -> StructLayout:
        made = self._made.get(struct.name)
        if made is None:
            fields = tuple(self._field(field) for field in struct.fields)
            made = StructLayout(struct.name, fields, self._schema.is_flexible(self._version))
            known = self._of_other_versions.setdefault(struct.name, [])
            # Nested structs are already shared, so only the top level needs to be compared.
            equal = next((other for other in known if other == made), None)
            if equal is None:
                known.append(made)
            self._made[struct.name] = made = equal or made
        return made

    def _field(self, field: FieldSchema) -> FieldLayout:
        version = self._version
        if not covers(field.versions, version):
            return FieldLayout(field, None)
        tagged = field.tag is not None and covers(field.tagged, version)
        compact = tagged or covers(field.flexible, version)
        nullable = covers(field.nullable, version)
        if field.is_array:
            value: Value = ArrayValue(UVARINT if compact else "int32", self._single(field, compact), nullable)
        else:
            value = self._single(field, compact, nullable, tagged)
        return FieldLayout(field, value, tagged)

    def _single(self, field: FieldSchema, compact: bool, nullable: bool = False, tagged: bool = False) -> Value:
        """The layout of the field or, for an array, of an element."""
        base = field.base
        if field.is_struct:
            marker = UVARINT if tagged else "int8"
            return StructValue(self._struct(self._schema.struct(base)), marker if nullable else None)
        if base in FIXED_SIZES:
            return FixedValue(base)
        return SizedValue(base, UVARINT if compact else "int16" if base == "string" else "int32", nullable)


# -- versions ------------------------------------------------------------------------------------


def versions_of(schema: MessageSchema) -> range:
    """The versions of a message."""
    return range(0) if schema.versions is None else range(schema.versions[0], schema.versions[1] + 1)


def check_version(schema: MessageSchema, version: int) -> None:
    """Raise UnsupportedVersion if the message does not have `version`, or TypeError if `version` is not an int."""
    if not isinstance(version, int):
        raise TypeError(f"a version must be an int, not {type(version).__name__}")
    if not covers(schema.versions, version):
        raise UnsupportedVersion(schema.name, version, versions_of(schema))


def plan(schema: MessageSchema, key: tuple[str, int], build: Callable[[], P]) -> P:
    """The result of `build`, computed once per schema and `key`."""
    made = schema.plans.get(key)
    if made is None:
        made = schema.plans[key] = build()
    return made  # type: ignore[return-value]
