"""Builds plans, which read many rows at once, from the wire layout of messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from kafka_records_engine.columns._arrow_types import UNKNOWN_TAGS_TYPE, arrow_type
from kafka_records_engine.columns._cursor import Cursor
from kafka_records_engine.columns._elements import Elements
from kafka_records_engine.columns._interfaces import Content, Members, Packed, Plan, Step
from kafka_records_engine.columns._slots import Scanned, SlotVectors, WrongSlots, own_slots
from kafka_records_engine.columns._steps import Compact, Fixed, Nested, Nullable, Variable
from kafka_records_engine.columns._tags import KnownTag, TagSection
from kafka_records_engine.columns.arrow_arrays import Constant, structs
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.schema import EMPTY_STRUCT, FieldSchema, MessageSchema
from kafka_records_runtime.schema.layout import (
    UNKNOWN_TAGS,
    UVARINT,
    ArrayValue,
    FixedValue,
    SizedValue,
    StructLayout,
    StructValue,
    TagsLayout,
    Value,
    message_layout,
    plan,
)


def message_plan(message: MessageSchema, version: int, unknown_tags: bool) -> Plan:
    """The plan that reads `message` in `version`, which the message must have. It is built once and cached with the
    schema."""
    key = "columns with unknown tags" if unknown_tags else "columns"
    return plan(message, (key, version), lambda: _Planner(message, version, unknown_tags).message())


class _StepPlan(ABC):
    """Steps in wire order. A subclass turns their results into a value."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.slots = own_slots(step.slots for step in steps)
        self.packed = _packed(steps)

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None:
        for step in self.steps:
            step.scan(cursor, notes)

    def build(self, scanned: Scanned) -> pa.Array:
        members: Members = {}
        for step in self.steps:
            step.build(scanned, members)
        return self._value(members, len(scanned))

    def read(self, cursor: Cursor) -> pa.Array:
        members: Members = {}
        for step in self.steps:
            step.read(cursor, members)
        return self._value(members, len(cursor))

    def skip(self, cursor: Cursor) -> None:
        for step in self.steps:
            step.skip(cursor)

    def hop(self, data: Any, pos: int, end: int) -> int:
        for step in self.steps:
            pos = step.hop(data, pos, end)
        return pos

    @abstractmethod
    def _value(self, members: Members, count: int) -> pa.Array: ...


def _packed(steps: Sequence[Step]) -> Packed | None:
    if not steps:
        return Packed(0, None)
    first, *others = steps
    return first.packed if isinstance(first, Fixed) and not others else None


class ValuePlan(_StepPlan):
    """A plan for a value that is not a struct, or for a nullable struct. Its only member is called `name`."""

    def __init__(self, steps: Sequence[Step], name: str) -> None:
        super().__init__(steps)
        self._name = name

    def _value(self, members: Members, count: int) -> pa.Array:
        return members[self._name]


class StructPlan(_StepPlan):
    """A plan for a struct. `constants` are the members that this version does not have."""

    def __init__(self, steps: Sequence[Step], kind: pa.StructType, constants: Mapping[str, Constant]) -> None:
        super().__init__(steps)
        self._kind = kind
        self._names = [each.name for each in kind]
        self._constants = constants

    def _value(self, members: Members, count: int) -> pa.Array:
        for name, constant in self._constants.items():
            members[name] = constant.times(count)
        if len(members) != len(self._names):
            raise WrongSlots(f"expected the members {self._names}, got {[*members]}")
        return structs(self._kind, [members[name] for name in self._names], count)


class _Planner:
    def __init__(self, message: MessageSchema, version: int, unknown_tags: bool) -> None:
        self._message = message
        # call this first, because it rejects a struct that contains itself
        self._type = arrow_type(message, unknown_tags)
        self._layout = message_layout(message, version)
        self._keeps_tags = unknown_tags and message.flexible is not None

    def message(self) -> Plan:
        return self._struct(self._layout, self._type)

    def _struct(self, layout: StructLayout, kind: pa.StructType) -> StructPlan:
        steps: list[Step] = []
        for run in layout.runs:
            fixed = [(member.field.name, member.value) for member in run.fixed]
            behind = run.behind
            if isinstance(behind, TagsLayout):
                steps += [*self._fixed(fixed), self._tags(behind, kind)]
            elif behind is None:
                steps += self._fixed(fixed)
            else:
                name = behind.field.name
                steps += self._steps(fixed, name, behind.value, kind.field(name).type)
        constants = {field.name: self._default(field, kind.field(field.name).type) for field in layout.absent}
        if self._keeps_tags and layout.tags is None:
            constants[UNKNOWN_TAGS] = Constant(UNKNOWN_TAGS_TYPE, [])
        return StructPlan(steps, kind, constants)

    def _single(self, name: str, value: Value, kind: pa.DataType) -> Plan:
        """The plan for a single value: a tagged field or an array element."""
        if isinstance(value, StructValue) and not value.nullable:
            return self._struct(value.layout, kind)
        if isinstance(value, FixedValue):
            return ValuePlan([*self._fixed([(name, value)])], name)
        return ValuePlan([*self._steps([], name, value, kind)], name)

    def _fixed(self, fields: Sequence[tuple[str, Value]]) -> Iterator[Step]:
        if fields:
            yield Fixed(_types(fields))

    def _steps(self, fixed: Sequence[tuple[str, Value]], name: str, value: Value, kind: pa.DataType) -> Iterator[Step]:
        """The steps for fields of fixed width and for the next field, `name`, whose `value` is of another kind."""
        if isinstance(value, SizedValue | ArrayValue):
            content = self._content(name, value, kind)
            if value.head == UVARINT:
                yield from self._fixed(fixed)
                yield Compact(content)
            else:
                yield Fixed(_types(fixed), value.head, content)
        elif isinstance(value, StructValue):
            yield from self._fixed(fixed)
            inner = self._struct(value.layout, kind)
            # In a tagged field, an unsigned varint of 0 means null.
            yield Nullable(name, inner, 0 if value.head == UVARINT else -1) if value.nullable else Nested(name, inner)

    def _content(self, name: str, value: SizedValue | ArrayValue, kind: pa.DataType) -> Content:
        if isinstance(value, SizedValue):
            return Variable(name, value.type == "string", value.nullable)
        element = self._single(name, value.element, kind.value_type)
        return Elements(name, kind, element, value.element.smallest, value.nullable)

    def _tags(self, tags: TagsLayout, kind: pa.StructType) -> TagSection:
        known = {}
        for field, value in ((member.field, member.value) for member in tags.known):
            type = kind.field(field.name).type
            assert field.tag is not None
            known[field.tag] = KnownTag(field.name, self._single(field.name, value, type), self._default(field, type))
        misplaced = [field.tag for field in tags.misplaced if field.tag is not None]
        return TagSection(known, misplaced, self._keeps_tags)

    def _default(self, field: FieldSchema, kind: pa.DataType) -> Constant:
        return Constant(kind, self._plain_default(field))

    def _plain_default(self, field: FieldSchema) -> Any:
        """The default of a field, in the form used in columns."""
        if field.default is EMPTY_STRUCT:
            members = {each.name: self._plain_default(each) for each in self._message.struct(field.base).fields}
            return {**members, UNKNOWN_TAGS: []} if self._keeps_tags else members
        if isinstance(field.default, Uuid):
            return str(field.default)
        return list(field.default) if isinstance(field.default, tuple) else field.default


def _types(fields: Sequence[tuple[str, Value]]) -> list[tuple[str, str]]:
    return [(name, value.type) for name, value in fields if isinstance(value, FixedValue)]
