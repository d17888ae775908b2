"""From a schema and a version to the plan by which many rows are read at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pyarrow as pa

from kafka_records_engine.columns._arrow_types import UNKNOWN_TAGS_TYPE, arrow_type
from kafka_records_engine.columns._cursor import Cursor, Vector
from kafka_records_engine.columns._elements import Elements
from kafka_records_engine.columns._steps import (
    Compact,
    Content,
    Fixed,
    Nested,
    Notes,
    Nullable,
    Plan,
    Slots,
    Step,
    Variable,
)
from kafka_records_engine.columns._tags import Known, TagSection
from kafka_records_engine.columns.arrow_arrays import Constant, structs
from kafka_records_runtime.layout import UNKNOWN_TAGS, ArrayValue, FieldLayout, plan, struct_layouts
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema, MessageSchema
from kafka_records_runtime.uuids import Uuid
from kafka_records_runtime.wire import FIXED_SIZES


def message_plan(message: MessageSchema, version: int, unknown_tags: bool) -> Plan:
    """How `message` is read at `version`, which must be one it has. Built once and kept with the schema."""
    key = "columns with unknown tags" if unknown_tags else "columns"
    return plan(message, (key, version), lambda: _Planner(message, version, unknown_tags).message())


class _Plan:
    """Steps in wire order that fill slots; what the slots become is up to the kind of value."""

    def __init__(self, steps: list[Step], slots: int, fixed_size: int | None) -> None:
        self._steps = steps
        self._slots = slots
        self.fixed_size = fixed_size
        self.notes = [note for step in steps for note in step.notes]

    def scan(self, cursor: Cursor, notes: Notes) -> None:
        for step in self._steps:
            step.scan(cursor, notes)

    def build(self, cursor: Cursor, notes: Iterator[Vector]) -> pa.Array:
        slots: Slots = [None] * self._slots
        for step in self._steps:
            step.build(cursor, notes, slots)
        return self._value(slots, len(cursor))

    def read(self, cursor: Cursor) -> pa.Array:
        slots: Slots = [None] * self._slots
        for step in self._steps:
            step.read(cursor, slots)
        return self._value(slots, len(cursor))

    def skip(self, cursor: Cursor) -> None:
        for step in self._steps:
            step.skip(cursor)

    def hop(self, data: Any, pos: int, end: int) -> int:
        for step in self._steps:
            pos = step.hop(data, pos, end)
        return pos

    def _value(self, slots: Slots, count: int) -> pa.Array:
        """The only slot: the value is no struct, or one that may be null."""
        return slots[0]


class _Struct(_Plan):
    """A struct; `constants` are the members that the version does not have."""

    def __init__(
        self, steps: list[Step], kind: pa.StructType, constants: dict[int, Constant], fixed_size: int | None
    ) -> None:
        super().__init__(steps, kind.num_fields, fixed_size)
        self._kind = kind
        self._constants = constants

    def _value(self, slots: Slots, count: int) -> pa.Array:
        for slot, constant in self._constants.items():
            slots[slot] = constant.times(count)
        return structs(self._kind, cast("list[pa.Array]", slots), count)


class _Planner:
    def __init__(self, message: MessageSchema, version: int, unknown_tags: bool) -> None:
        self._message = message
        self._version = version
        self._keeps_tags = unknown_tags and message.flexible is not None
        self._flexible = message.is_flexible(version)
        self._type = arrow_type(message, unknown_tags)

    def message(self) -> Plan:
        return self._struct(self._message.root.name, self._type)

    def _struct(self, name: str, kind: pa.StructType) -> _Struct:
        fields = struct_layouts(self._message, self._version)[name].fields
        run = _Run()
        constants: dict[int, Constant] = {}
        for slot, layout in enumerate(fields):
            if not layout.present:
                constants[slot] = self._default(layout.field, kind.field(slot).type)
            elif not layout.tagged:
                self._append(run, slot, layout, kind.field(slot).type)
        run.close()
        if not self._flexible:
            if self._keeps_tags:
                constants[len(fields)] = Constant(UNKNOWN_TAGS_TYPE, [])
            return _Struct(run.steps, kind, constants, run.fixed_size)
        return _Struct([*run.steps, self._tags(fields, kind)], kind, constants, None)

    def _tags(self, fields: tuple[FieldLayout, ...], kind: pa.StructType) -> TagSection:
        known = {}
        for slot, layout in enumerate(fields):
            if layout.tagged and layout.field.tag is not None:
                type = kind.field(slot).type
                known[layout.field.tag] = Known(slot, self._single(layout, type), self._default(layout.field, type))
        elsewhere = frozenset(each.field.tag for each in fields if not each.tagged and each.field.tag is not None)
        return TagSection(known, elsewhere, len(fields) if self._keeps_tags else None)

    def _single(self, layout: FieldLayout, kind: pa.DataType, of_array: bool = False) -> Plan:
        """The plan of one value: a tagged field or the element of an array."""
        if layout.field.is_struct and (of_array or not (layout.nullable or layout.field.is_array)):
            return self._struct(layout.field.base, kind)
        run = _Run()
        self._append(run, 0, layout, kind, of_array)
        run.close()
        return _Plan(run.steps, 1, run.fixed_size)

    def _append(self, run: _Run, slot: int, layout: FieldLayout, kind: pa.DataType, of_array: bool = False) -> None:
        """Add the steps of a field, or of an element of the array that the field is, to a run."""
        field = layout.field
        if isinstance(layout.value, ArrayValue) and not of_array:
            element = self._single(layout, kind.value_type, of_array=True)
            smallest = layout.value.element.smallest
            run.variable(layout.compact, "int32", Elements(slot, kind, element, smallest, layout.nullable))
        elif field.is_struct:
            inner = self._struct(field.base, kind)
            if layout.nullable:
                run.step(Nullable(slot, inner, 0 if layout.tagged else -1))
            else:
                run.step(Nested(slot, inner))
        elif field.base in FIXED_SIZES:
            run.fixed(slot, field.base)
        else:
            nullable = layout.nullable and not of_array
            is_text = field.base == "string"
            run.variable(layout.compact, "int16" if is_text else "int32", Variable(slot, is_text, nullable))

    def _default(self, field: FieldSchema, kind: pa.DataType) -> Constant:
        return Constant(kind, self._plain_default(field))

    def _plain_default(self, field: FieldSchema) -> Any:
        """The default of a field as columns take it."""
        if field.default is EMPTY_STRUCT:
            members = {each.name: self._plain_default(each) for each in self._message.struct(field.base).fields}
            return {**members, UNKNOWN_TAGS: []} if self._keeps_tags else members
        if isinstance(field.default, Uuid):
            return str(field.default)
        return list(field.default) if isinstance(field.default, tuple) else field.default


class _Run:
    """Steps under construction; fields of fixed width wait for what follows them."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.fixed_size: int | None = 0
        """Bytes of all steps together, None if they vary."""
        self._waiting: list[tuple[int, str]] = []

    def fixed(self, slot: int, base: str) -> None:
        self._waiting.append((slot, base))
        if self.fixed_size is not None:
            self.fixed_size += FIXED_SIZES[base]

    def variable(self, compact: bool, length: str, content: Content) -> None:
        self.fixed_size = None
        if compact:
            self.close()
            self.steps.append(Compact(content))
        else:
            self.steps.append(Fixed(self._waiting, length, content))
            self._waiting = []

    def step(self, step: Step) -> None:
        self.fixed_size = None
        self.close()
        self.steps.append(step)

    def close(self) -> None:
        """What waits becomes a step."""
        if self._waiting:
            self.steps.append(Fixed(self._waiting))
            self._waiting = []
