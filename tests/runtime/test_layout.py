"""The wire layout as a value: what it says about each kind of field, which versions share one, and who agrees with
it."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_runtime.schema import FORMAT, FieldSchema, MessageSchema, Range, StructSchema
from kafka_records_runtime.schema.layout import (
    UVARINT,
    ArrayValue,
    FixedRun,
    FixedValue,
    Member,
    SizedValue,
    StructLayout,
    StructValue,
    TagsLayout,
    Value,
    message_layout,
    struct_layouts,
    versions_of,
)
from kafka_records_runtime.wire import walker
from tests.runtime.spec_schemas import all_schemas

ALL = (0, 9)


def field(name: str, type: str, versions: Range = ALL, **more: Any) -> FieldSchema:
    return FieldSchema(name, name, type, versions, **more)


def schema(*fields: FieldSchema, flexible: Range = None, structs: tuple[StructSchema, ...] = ()) -> MessageSchema:
    return MessageSchema(FORMAT, "M", ALL, flexible, (*structs, StructSchema("M", fields)))


def only_value(given: FieldSchema, version: int = 0, structs: tuple[StructSchema, ...] = ()) -> Value:
    (member,) = message_layout(schema(given, flexible=(5, 9), structs=structs), version).body
    return member.value


INNER = StructSchema("Inner", (field("x", "int32"), field("y", "int8", (1, 9))))

# type, nullable, version (5 to 9 are flexible) → value, whether its size is fixed, fewest bytes
VALUES: list[tuple[str, bool, int, Value, int | None, int]] = [
    *(
        (base, False, version, FixedValue(base), size, size)
        for base, size in (("bool", 1), ("int8", 1), ("int16", 2), ("uint16", 2), ("int32", 4), ("uint32", 4))
        for version in (0, 5)
    ),
    ("int64", False, 0, FixedValue("int64"), 8, 8),
    ("float64", False, 0, FixedValue("float64"), 8, 8),
    ("uuid", False, 5, FixedValue("uuid"), 16, 16),
    ("string", False, 0, SizedValue("string", "int16", False), None, 2),
    ("string", True, 0, SizedValue("string", "int16", True), None, 2),
    ("string", True, 5, SizedValue("string", UVARINT, True), None, 1),
    ("bytes", False, 0, SizedValue("bytes", "int32", False), None, 4),
    ("bytes", False, 5, SizedValue("bytes", UVARINT, False), None, 1),
    ("records", True, 0, SizedValue("records", "int32", True), None, 4),
    ("records", True, 5, SizedValue("records", UVARINT, True), None, 1),
    ("[]int16", False, 0, ArrayValue("int32", FixedValue("int16"), False), None, 4),
    ("[]int16", True, 5, ArrayValue(UVARINT, FixedValue("int16"), True), None, 1),
    ("[]string", True, 0, ArrayValue("int32", SizedValue("string", "int16", False), True), None, 4),
    ("[]string", False, 5, ArrayValue(UVARINT, SizedValue("string", UVARINT, False), False), None, 1),
    ("[]bytes", False, 0, ArrayValue("int32", SizedValue("bytes", "int32", False), False), None, 4),
]


@pytest.mark.parametrize(("type", "nullable", "version", "expected", "size", "smallest"), VALUES)
def test_a_field_of_each_type(
    type: str, nullable: bool, version: int, expected: Value, size: int | None, smallest: int
) -> None:
    has_length = type.startswith("[]") or type in ("string", "bytes", "records")
    given = field("a", type, nullable=ALL if nullable else None, flexible=(5, 9) if has_length else None)
    value = only_value(given, version)
    assert value == expected
    assert (value.size, value.smallest, value.nullable) == (size, smallest, nullable)


def test_a_length_may_stay_classic_in_flexible_versions() -> None:
    assert only_value(field("a", "string", flexible=None), 5) == SizedValue("string", "int16", False)


def test_a_struct_and_its_marker() -> None:
    inner = StructLayout("Inner", struct_layouts(schema(structs=(INNER,)), 1)["Inner"].fields, False)
    given = field("a", "Inner", nullable=(2, 9))
    assert only_value(given, 1, (INNER,)) == StructValue(inner, None)
    assert only_value(given, 2, (INNER,)) == StructValue(inner, "int8")
    assert (only_value(given, 1, (INNER,)).size, only_value(given, 2, (INNER,)).size) == (5, None)
    assert (only_value(given, 1, (INNER,)).smallest, only_value(given, 2, (INNER,)).smallest) == (5, 1)


def test_elements_of_an_array_of_structs_are_never_null() -> None:
    value = only_value(field("a", "[]Inner", nullable=ALL), 1, (INNER,))
    assert isinstance(value, ArrayValue)
    assert isinstance(value.element, StructValue)
    assert (value.nullable, value.element.marker, value.element.smallest) == (True, None, 5)


def test_everything_in_a_tag_is_compact() -> None:
    tagged = {"tagged": (5, 9)}
    given = schema(
        field("c", "string", (5, 9), tag=2, **tagged, nullable=(5, 9)),
        field("a", "[]bytes", (5, 9), tag=0, **tagged),
        field("b", "Inner", (5, 9), tag=1, **tagged, nullable=(6, 9)),
        flexible=(5, 9),
        structs=(INNER,),
    )
    layout = message_layout(given, 6)
    assert layout.body == ()
    assert layout.tags is not None
    assert [member.field.name for member in layout.tags.known] == ["a", "b", "c"]
    first, second, third = (member.value for member in layout.tags.known)
    assert first == ArrayValue(UVARINT, SizedValue("bytes", UVARINT, False), False)
    assert second.head == UVARINT
    assert third == SizedValue("string", UVARINT, True)
    assert [each.compact for each in layout.fields] == [True, True, True]


def test_where_a_field_stands() -> None:
    moved = field("moved", "int32", (1, 9), tag=0, tagged=(6, 9))
    late = field("late", "int8", (7, 9), tag=1, tagged=(7, 9))
    given = schema(field("always", "int64"), moved, late, flexible=(5, 9))
    assert [names(message_layout(given, version)) for version in (0, 1, 5, 6, 7)] == [
        (["always"], None, None, ["moved", "late"]),
        (["always", "moved"], None, None, ["late"]),
        (["always", "moved"], [], ["moved", "late"], ["late"]),
        (["always"], ["moved"], ["late"], ["late"]),
        (["always"], ["moved", "late"], [], []),
    ]


def names(layout: StructLayout) -> tuple[list[str], list[str] | None, list[str] | None, list[str]]:
    """Fields of the body, tagged ones, those whose tags must not come, and absent ones."""
    tags = layout.tags
    return (
        [member.field.name for member in layout.body],
        None if tags is None else [member.field.name for member in tags.known],
        None if tags is None else [each.name for each in tags.misplaced],
        [each.name for each in layout.absent],
    )


def test_runs_of_fixed_width() -> None:
    given = schema(
        field("a", "int16"),
        field("b", "uuid"),
        field("c", "string"),
        field("d", "[]int8"),
        field("e", "bool"),
        flexible=(5, 9),
    )
    a, b, c, d, e = message_layout(given, 0).body
    assert message_layout(given, 0).runs == (FixedRun((a, b), c), FixedRun((), d), FixedRun((e,), None))
    a, b, c, d, e = message_layout(given, 5).body
    assert message_layout(given, 5).runs == (
        FixedRun((a, b), c),
        FixedRun((), d),
        FixedRun((e,), TagsLayout((), ())),
    )
    assert message_layout(schema(), 0).runs == (FixedRun((), None),)


def test_sizes_of_structs() -> None:
    given = schema(field("a", "int16"), field("b", "Inner"), flexible=(5, 9), structs=(INNER,))
    sizes = [(message_layout(given, version).size, message_layout(given, version).smallest) for version in (0, 1, 5)]
    # In flexible versions both structs end in a count of tagged fields.
    assert sizes == [(6, 6), (7, 7), (None, 9)]
    assert message_layout(schema(), 0).size == 0


def test_versions_that_look_alike_are_equal_and_one_object() -> None:
    given = schema(
        field("a", "Inner"), field("b", "string", nullable=(3, 9), flexible=(5, 9)), flexible=(5, 9), structs=(INNER,)
    )
    layouts = [message_layout(given, version) for version in range(10)]
    groups = [[other for other in range(10) if layouts[other] == layout] for layout in layouts]
    assert groups == [[0], *([[1, 2]] * 2), *([[3, 4]] * 2), *([[5, 6, 7, 8, 9]] * 5)]
    assert all((one is other) == (one == other) for one in layouts for other in layouts)


def test_the_same_schema_made_twice_has_equal_layouts() -> None:
    given = field("a", "string", nullable=(1, 2))
    one, other = schema(given), schema(given)
    assert one is not other
    assert message_layout(one, 1) == message_layout(other, 1)
    assert message_layout(one, 1) != message_layout(other, 3)


def test_structs_that_double_take_no_time_that_doubles() -> None:
    """A struct of two structs of two structs …: the layouts are shared, so that comparing them stays short."""
    structs = [StructSchema("S0", (field("x", "int8"), field("y", "int8", (5, 9))))]
    for number in range(1, 60):
        inner = f"S{number - 1}"
        structs.append(StructSchema(f"S{number}", (field("a", inner), field("b", inner))))
    given = MessageSchema(FORMAT, "S59", ALL, None, tuple(structs))
    layouts = [message_layout(given, version) for version in range(10)]
    assert layouts[0].size == 2**59
    assert [layout is layouts[0] for layout in layouts] == [True] * 5 + [False] * 5


@pytest.mark.parametrize("name", sorted(all_schemas()))
def test_the_walker_reads_what_the_layout_says(name: str) -> None:
    """A message with every field at its default: its steps, in order, are those that the layout promises."""
    given = all_schemas()[name]
    for version in versions_of(given):
        layout = message_layout(given, version)
        data = walker.encode(given, walker.default_value(given), version)
        assert len(data) >= layout.smallest
        assert layout.size in (None, len(data))
        steps = [(step.path, step.type) for step in walker.walk(given, version, data)]
        assert steps == list(promised(layout, walker.default_value(given), ""))


def promised(layout: StructLayout, value: Any, prefix: str) -> Any:
    """Path and type of each step of a struct whose tagged fields are at their defaults."""
    for member in layout.body:
        yield from _promised(member, value[member.field.name], prefix + member.field.name)
    if layout.tags is not None:
        yield f"{prefix}tagged_fields", "tag count"


def _promised(member: Member, held: Any, path: str) -> Any:
    value = member.value
    if isinstance(value, FixedValue):
        yield path, value.type
    elif isinstance(value, SizedValue):
        yield path, "length"
        if held is not None:
            yield path, value.type
    elif isinstance(value, ArrayValue):
        yield path, "count"
    else:
        if value.marker is not None:
            yield path, "marker"
        if held is not None:
            yield from promised(value.layout, held, f"{path}.")
