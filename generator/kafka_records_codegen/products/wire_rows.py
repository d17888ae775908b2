"""The bytes of a layout, item by item in wire order, as a reader of a hex dump wants them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kafka_records_codegen.model.layouts import WIDTHS, Layout
from kafka_records_codegen.model.messages import Field

TAGGED_FIELDS: Final = "tagged fields"


@dataclass(frozen=True)
class Row:
    """One item. `offset` counts from the start of the message or, with a `+`, of the array's element around the item;
    it is empty behind anything whose length varies. `bytes` may hold an `n`, the length of the content. `path` is
    empty for the tagged section of the message itself."""

    offset: str
    bytes: str
    path: str
    is_tags: bool
    encoding: str


def rows(layout: Layout) -> tuple[Row, ...]:
    """Every item of a message's body in that layout."""
    walk = _Walk()
    walk.struct(layout, "", _Place(0))
    return tuple(walk.rows)


def fixed_size(layout: Layout) -> int | None:
    """The number of bytes of a struct that has the same in every message, else `None`."""
    total = 0
    for each in layout.untagged:
        size = None if each.is_array else WIDTHS.get(each.base)
        if each.is_struct and not each.is_array and not layout.is_nullable(each):
            size = fixed_size(layout.of(each))
        if size is None:
            return None
        total += size
    return None if layout.is_flexible else total


@dataclass
class _Place:
    """How far the items are from the start of the message or element; `None` when that varies."""

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
    """The structs whose items have been listed, with the path they were listed under."""

    def struct(self, layout: Layout, prefix: str, place: _Place) -> None:
        for each in layout.untagged:
            self._field(layout, each, prefix, place)
        if not layout.is_flexible:
            return
        what = (
            "count; for each a tag, a size and the content"
            if layout.tagged
            else "count, 0 unless there are unknown ones"
        )
        self._add(place, "1+", prefix.removesuffix("."), f"varint {what}", None, is_tags=True)
        for each in layout.tagged:
            self._field(layout, each, prefix, _Place(None))

    def _field(self, layout: Layout, each: Field, prefix: str, place: _Place) -> None:
        path = prefix + each.python_name
        tagged = layout.version in each.tagged
        label = f"tag {each.tag}: " if tagged else ""
        compact = tagged or layout.is_compact(each)
        nullable = layout.is_nullable(each)
        if each.is_array:
            size, text = _count(compact, nullable)
            self._add(place, size, path, label + text + self._elements(layout, each), None)
            self._element_rows(layout, each, f"{path}[]", compact)
        elif not each.is_struct:
            size, text = _primitive(each.base, compact, nullable)
            self._add(place, size, path, label + text, WIDTHS.get(each.base))
        else:
            self._single(layout, each, path, place, label)

    def _single(self, layout: Layout, each: Field, path: str, place: _Place, label: str) -> None:
        inner = layout.of(each)
        again = self._again(each)
        if layout.is_nullable(each):
            null = "00" if label else "ff"
            text = f"{label}{null} null, 01 a {each.base} follows{again}"
            self._add(place, "1", path, text, 1)
            if not again:
                self.seen[each.base] = path
                self.struct(inner, f"{path}.", place)
            place.advance(None)
        elif again or label or not (inner.untagged or inner.is_flexible):
            size = fixed_size(inner)
            self._add(place, "" if size is None else str(size), path, f"{label}{each.base}{again}", size)
            if not again:
                self.seen[each.base] = path
                self.struct(inner, f"{path}.", place)
        else:
            self.seen[each.base] = path
            self.struct(inner, f"{path}.", place)

    def _elements(self, layout: Layout, each: Field) -> str:
        if not each.is_struct:
            return ""
        inner = layout.of(each)
        if not (inner.untagged or inner.is_flexible):
            return "; an element takes no bytes"
        return f"; elements {each.base}{self._again(each)}"

    def _element_rows(self, layout: Layout, each: Field, path: str, compact: bool) -> None:
        if not each.is_struct:
            size, text = _primitive(each.base, compact, nullable=False)
            self._add(_Place(0, "+"), size, path, text, None)
        elif each.base not in self.seen:
            self.seen[each.base] = path
            self.struct(layout.of(each), f"{path}.", _Place(0, "+"))

    def _again(self, each: Field) -> str:
        first = self.seen.get(each.base)
        return "" if first is None else f", laid out as {first} above"

    def _add(
        self, place: _Place, size: str, path: str, encoding: str, width: int | None, *, is_tags: bool = False
    ) -> None:
        self.rows.append(Row(str(place), size, path, is_tags, encoding))
        place.advance(width)


def _primitive(base: str, compact: bool, nullable: bool) -> tuple[str, str]:
    """Bytes and encoding of a field, or of an array's element, that is no struct."""
    if base in WIDTHS:
        return str(WIDTHS[base]), base
    if compact:
        size = "1–3 + n" if base == "string" else "1–5 + n"
        return size, f"compact {base}: varint n + 1{', 0 is null' if nullable else ''}"
    width = 2 if base == "string" else 4
    return f"{width} + n", f"{base}: int{8 * width} n{', −1 is null' if nullable else ''}"


def _count(compact: bool, nullable: bool) -> tuple[str, str]:
    if compact:
        return "1–5", f"compact array: varint count + 1{', 0 is null' if nullable else ''}"
    return "4", f"array: int32 count{', −1 is null' if nullable else ''}"


def version_list(versions: Iterator[int]) -> str:
    """Ascending versions as people write them: `0, 2–4`."""
    runs: list[tuple[int, int]] = []
    for version in versions:
        if runs and runs[-1][1] == version - 1:
            runs[-1] = (runs[-1][0], version)
        else:
            runs.append((version, version))
    return ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in runs)
