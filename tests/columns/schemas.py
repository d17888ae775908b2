"""Random messages of the spec language: every type, nested arrays and structs, null wherever null may be, fields that
come and go between versions, tagged fields, lengths that stay classic in flexible versions."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import (
    EMPTY_STRUCT,
    FORMAT,
    NATURAL,
    PRIMITIVES,
    FieldSchema,
    MessageSchema,
    Range,
    StructSchema,
)

_SIZED = ("string", "bytes", "records")
_DEFAULTS: dict[str, Any] = {
    "bool": True,
    "int8": -7,
    "int16": -300,
    "uint16": 65535,
    "int32": -70000,
    "uint32": 2**32 - 1,
    "int64": -(2**40),
    "float64": -2.5,
    "uuid": Uuid(bytes(range(16))),
    "string": "dé",
}
_MAX_DEPTH = 3


def rarely(draw: st.DrawFn) -> bool:
    return draw(st.integers(0, 7)) == 5


def often(draw: st.DrawFn) -> bool:
    return draw(st.integers(0, 2)) > 0


@st.composite
def schemas(draw: st.DrawFn) -> MessageSchema:
    lowest = draw(st.integers(0, 2))
    highest = lowest + draw(st.integers(0, 3))
    flexible = (draw(st.integers(lowest, highest)), highest) if often(draw) else None
    structs: list[StructSchema] = []
    fields = _fields(draw, (lowest, highest), flexible, structs, depth=0)
    return MessageSchema(FORMAT, "Random", (lowest, highest), flexible, (*structs, StructSchema("Random", fields)))


def _fields(
    draw: st.DrawFn, within: tuple[int, int], flexible: Range, structs: list[StructSchema], depth: int
) -> tuple[FieldSchema, ...]:
    count = draw(st.integers(0 if rarely(draw) else 1, 5 - depth))
    tags = iter(draw(st.permutations(range(count))))
    return tuple(_field(draw, f"f{depth}{place}", within, flexible, structs, depth, tags) for place in range(count))


def _field(
    draw: st.DrawFn,
    name: str,
    within: tuple[int, int],
    flexible: Range,
    structs: list[StructSchema],
    depth: int,
    tags: Any,
) -> FieldSchema:
    versions = _part(draw, within) if rarely(draw) or rarely(draw) else within
    tagged = _tail(draw, flexible, versions) if draw(st.integers(0, 3)) == 0 else None
    base = _base(draw, within, flexible, structs, depth)
    is_array = draw(st.booleans())
    is_sized = is_array or base in _SIZED
    may_be_null = is_sized or base not in PRIMITIVES
    nullable = draw(st.sampled_from([versions, _part(draw, versions), None])) if may_be_null else None
    return FieldSchema(
        name=name,
        json_name=name,
        type=f"[]{base}" if is_array else base,
        versions=versions,
        nullable=nullable,
        # A spec may keep classic lengths in flexible versions ("flexibleVersions": "none").
        flexible=_overlap(flexible, versions) if is_sized and not rarely(draw) else None,
        tag=next(tags) if tagged else None,
        tagged=tagged,
        # As in Kafka, only a field that may be null in all its versions is null by default.
        default=_default(draw, base, is_array, nullable == versions, bool(depth or tagged)),
    )


def _base(draw: st.DrawFn, within: tuple[int, int], flexible: Range, structs: list[StructSchema], depth: int) -> str:
    if depth == _MAX_DEPTH or draw(st.integers(0, 9)) < 6:
        return draw(st.sampled_from(sorted(PRIMITIVES)))
    name = f"Struct{depth}{len(structs)}"
    fields = _fields(draw, within, flexible, structs, depth + 1)
    structs.append(StructSchema(name, fields))
    return name


def _default(draw: st.DrawFn, base: str, is_array: bool, may_be_null: bool, may_be_left_out: bool) -> Any:
    if may_be_null and draw(st.booleans()):
        return None
    if is_array:
        return NATURAL
    if base not in PRIMITIVES:
        return EMPTY_STRUCT
    if base == "records" and may_be_left_out:
        return b""  # The default of this type is null, which could not be written.
    return _DEFAULTS.get(base, NATURAL) if draw(st.booleans()) else NATURAL


def _part(draw: st.DrawFn, within: tuple[int, int]) -> tuple[int, int]:
    lowest = draw(st.integers(*within))
    return lowest, draw(st.integers(lowest, within[1]))


def _tail(draw: st.DrawFn, left: Range, right: tuple[int, int]) -> Range:
    """The versions in which a field is tagged: the last of its versions, all of them flexible."""
    both = _overlap(left, right)
    return both and (draw(st.integers(*both)), both[1])


def _overlap(left: Range, right: tuple[int, int]) -> Range:
    if left is None:
        return None
    lowest, highest = max(left[0], right[0]), min(left[1], right[1])
    return (lowest, highest) if lowest <= highest else None
