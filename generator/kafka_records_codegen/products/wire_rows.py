"""Lists the bytes of a wire layout item by item, in order, for reading hex dumps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kafka_records_runtime.schema import FIXED_SIZES
from kafka_records_runtime.schema.layout import (
    UVARINT,
    ArrayValue,
    FixedValue,
    Member,
    SizedValue,
    StructLayout,
    StructValue,
    Value,
)

TAGGED_FIELDS: Final = "tagged fields"


@dataclass(frozen=True)
class Row:
    """One item of a layout.

    `offset` is counted from the start of the message or, with a `+`, of the enclosing array element. It is empty after
    anything of variable length. `bytes` may contain an `n`, the length of the content. `path` is empty for the tagged
    fields of the message itself.
    """

    offset: str
    bytes: str
    path: str
    is_tags: bool
    encoding: str


def rows(layout: StructLayout) -> tuple[Row, ...]:
    """Every item of a message's body in that layout."""
    walk = _Walk()
    walk.struct(layout, "", _Distance(0))
    return tuple(walk.rows)


@dataclass
class _Distance:
    """The distance of the next item from the start of the message or element; None if it varies."""

    offset: int | None
    sign: str = ""

    def __str__(self) -> str:
        return "" if self.offset is None else f"{self.sign}{self.offset}"

    def advance(self, size: int | None) -> None:
        self.offset = None if size is None or self.offset is None else self.offset + size


@dataclass
class _Walk:
    rows: list[Row] = field(default_factory=list)
    seen: dict[str, str] = field(default_factory=dict)
    """The structs whose items have been listed, each with the path where they were listed."""

    def struct(self, layout: StructLayout, prefix: str, place: _Distance) -> None:
        for member in layout.body:
            self._member(member, prefix, place, "")
        if layout.tags is None:
            return
        what = (
            "count; for each a tag, a size and the content"
            if layout.tags.known
            else "count, 0 unless there are unknown ones"
        )
        self._add(place, "1+", prefix.removesuffix("."), f"varint {what}", None, is_tags=True)
        for member in layout.tags.known:
            self._member(member, prefix, _Distance(None), f"tag {member.field.tag}: ")

    def _member(self, member: Member, prefix: str, place: _Distance, label: str) -> None:
        """The items of a member. `label` names its tag, if it has one."""
        path = prefix + member.field.name
        match member.value:
            case ArrayValue() as value:
                size, text = _count(value)
                self._add(place, size, path, label + text + self._elements(value.element), None)
                self._element_rows(value.element, f"{path}[]")
            case FixedValue() | SizedValue() as value:
                size, text = _primitive(value)
                self._add(place, size, path, label + text, value.size)
            case StructValue() as value:
                self._single(value, path, place, label)

    def _single(self, value: StructValue, path: str, place: _Distance, label: str) -> None:
        inner, again = value.layout, self._again(value.layout)
        if value.marker is not None:
            null = "00" if value.marker == UVARINT else "ff"
            text = f"{label}{null} null, 01 a {inner.name} follows{again}"
            self._add(place, "1", path, text, 1)
            if not again:
                self.seen[inner.name] = path
                self.struct(inner, f"{path}.", place)
            place.advance(None)
        elif again or label or not (inner.body or inner.is_flexible):
            size = "" if inner.size is None else str(inner.size)
            self._add(place, size, path, f"{label}{inner.name}{again}", inner.size)
            if not again:
                self.seen[inner.name] = path
                self.struct(inner, f"{path}.", place)
        else:
            self.seen[inner.name] = path
            self.struct(inner, f"{path}.", place)

    def _elements(self, element: Value) -> str:
        if not isinstance(element, StructValue):
            return ""
        if not (element.layout.body or element.layout.is_flexible):
            return "; an element takes no bytes"
        return f"; elements {element.layout.name}{self._again(element.layout)}"

    def _element_rows(self, element: Value, path: str) -> None:
        if isinstance(element, FixedValue | SizedValue):
            size, text = _primitive(element)
            self._add(_Distance(0, "+"), size, path, text, None)
        elif isinstance(element, StructValue) and element.layout.name not in self.seen:
            self.seen[element.layout.name] = path
            self.struct(element.layout, f"{path}.", _Distance(0, "+"))

    def _again(self, layout: StructLayout) -> str:
        first = self.seen.get(layout.name)
        return "" if first is None else f", laid out as {first} above"

    def _add(
        self, place: _Distance, size: str, path: str, encoding: str, width: int | None, *, is_tags: bool = False
    ) -> None:
        self.rows.append(Row(str(place), size, path, is_tags, encoding))
        place.advance(width)


def _primitive(value: FixedValue | SizedValue) -> tuple[str, str]:
    """The bytes and encoding of a field, or of an array element, that is not a struct."""
    if isinstance(value, FixedValue):
        return str(value.size), value.type
    if value.length == UVARINT:
        size = "1–3 + n" if value.type == "string" else "1–5 + n"
        return size, f"compact {value.type}: varint n + 1{', 0 is null' if value.nullable else ''}"
    return (
        f"{FIXED_SIZES[value.length]} + n",
        f"{value.type}: {value.length} n{', −1 is null' if value.nullable else ''}",
    )


def _count(value: ArrayValue) -> tuple[str, str]:
    if value.count == UVARINT:
        return "1–5", f"compact array: varint count + 1{', 0 is null' if value.nullable else ''}"
    return str(FIXED_SIZES[value.count]), f"array: {value.count} count{', −1 is null' if value.nullable else ''}"


def version_list(versions: Iterable[int]) -> str:
    """Ascending versions as people write them: `0, 2–4`."""
    runs: list[tuple[int, int]] = []
    for version in versions:
        if runs and runs[-1][1] == version - 1:
            runs[-1] = (runs[-1][0], version)
        else:
            runs.append((version, version))
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in runs)
