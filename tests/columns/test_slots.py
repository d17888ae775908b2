"""If a step and its slots do not match, reading stops: no value ends up in the place of another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_engine.columns import arrow_type, decode_column
from kafka_records_engine.columns._cursor import Cursor, RowBlock
from kafka_records_engine.columns._interfaces import Members
from kafka_records_engine.columns._plans import StructPlan, ValuePlan
from kafka_records_engine.columns._slots import ElementVectors, Scanned, Slot, SlotVectors, WrongSlots
from kafka_records_engine.columns._steps import Variable
from kafka_records_engine.columns._tags import TagSection
from kafka_records_runtime.schema import FORMAT, FieldSchema, MessageSchema, StructSchema
from tests.columns.reference import engine_limits

NAME, COUNT, OTHER = Slot("name", "i4"), Slot("count", "i8"), Slot("name", "i4")
TWO_ROWS = np.array([0, 1, 3])
"""Numbers of the first elements of two rows, which have one element and two."""


def vector(*numbers: int) -> Any:
    return np.array(numbers)


def gathered() -> ElementVectors:
    """The elements a0, b0 and then b1."""
    notes = ElementVectors(TWO_ROWS, [NAME, COUNT])
    notes.add(vector(0, 1), 0, {COUNT: vector(10, 20), NAME: vector(1, 2)})
    notes.add(vector(1), 1, {NAME: vector(3), COUNT: vector(30)})
    return notes


def scanned(notes: ElementVectors) -> Scanned:
    outer = Cursor(RowBlock(pa.py_buffer(b""), np.zeros(0, np.uint8), 2), vector(0, 0), vector(0, 0))
    return Scanned(outer, np.diff(TWO_ROWS), 3, notes.vectors, notes.order)


def test_what_is_noted_in_a_slot_is_found_in_it() -> None:
    elements = scanned(gathered())
    assert elements.vector(NAME).tolist() == [1, 2, 3]
    assert elements.vector(COUNT).tolist() == [10, 20, 30]
    assert elements.vector(NAME).dtype == np.int32
    assert elements.slices(NAME, COUNT).by_element()[1].tolist() == [10, 20, 30]


def test_notes_in_the_order_of_reading_come_back_in_the_order_of_elements() -> None:
    notes = ElementVectors(np.array([0, 2, 3]), [NAME])
    notes.add(vector(0, 1), 0, {NAME: vector(1, 3)})
    notes.add(vector(0), 1, {NAME: vector(2)})
    assert notes.vectors[NAME].tolist() == [1, 3, 2]
    assert scanned(notes).vector(NAME).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("noted", "message"),
    [
        ([NAME], "expected the slots [Slot('name', 'i4'), Slot('count', 'i8')], got [Slot('name', 'i4')]"),
        ([NAME, OTHER], "Slot('count', 'i8') has no values, only [Slot('name', 'i4'), Slot('name', 'i4')] have"),
        (
            [NAME, COUNT, OTHER],
            "expected the slots [Slot('name', 'i4'), Slot('count', 'i8')], got "
            "[Slot('name', 'i4'), Slot('count', 'i8'), Slot('name', 'i4')]",
        ),
    ],
    ids=["one is missing", "one of another plan, in place of one", "one too many"],
)
def test_a_scan_that_does_not_fill_the_slots_of_its_plan(noted: list[Slot], message: str) -> None:
    notes = ElementVectors(TWO_ROWS, [NAME, COUNT])
    with pytest.raises(WrongSlots) as failure:
        notes.add(vector(0, 1), 0, {slot: vector(1, 2) for slot in noted})
    assert str(failure.value) == message


def test_a_slot_that_nobody_filled() -> None:
    elements = scanned(gathered())
    for take in (lambda: elements.vector(OTHER), lambda: elements.slices(NAME, OTHER)):
        with pytest.raises(WrongSlots) as failure:
            take()
        assert (
            str(failure.value)
            == "Slot('name', 'i4') has no values, only [Slot('name', 'i4'), Slot('count', 'i8')] have"
        )


def test_steps_that_share_a_slot() -> None:
    step = TagSection({}, [], keeps_unknown=False)
    with pytest.raises(WrongSlots, match=r"^steps share a slot: "):
        ValuePlan([step, step], "name")


# -- steps of real plans, broken on purpose ---------------------------------------------------------

ITEM = StructSchema("Item", (FieldSchema("a", "a", "string", (0, 0)), FieldSchema("b", "b", "string", (0, 0))))


def message() -> MessageSchema:
    """A schema without a plan yet: two texts in each element of an array."""
    return MessageSchema(
        FORMAT, "Items", (0, 0), None, (ITEM, StructSchema("Items", (FieldSchema("items", "items", "[]Item", (0, 0)),)))
    )


ROWS = pa.array([bytes.fromhex("00000002 000161 000162 000163 000164"), bytes.fromhex("00000001 000165 000166")])
EXPECTED = [{"items": [{"a": "a", "b": "b"}, {"a": "c", "b": "d"}]}, {"items": [{"a": "e", "b": "f"}]}]


@pytest.mark.parametrize("few", [0, 48], ids=["by level", "by row"])
def test_a_step_that_forgets_a_slot(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with engine_limits(few):
        assert decode_column(message(), ROWS, 0).values.to_pylist() == EXPECTED
        scan = Variable.scan

        def forgetful(self: Variable, cursor: Cursor, size: int, lengths: Any, notes: SlotVectors) -> None:
            scan(self, cursor, size, lengths, notes)
            del notes[self.slots[1]]

        monkeypatch.setattr(Variable, "scan", forgetful)
        with pytest.raises(WrongSlots, match=r", got \[Slot\('a: starts', 'i4'\), Slot\('b: starts', 'i4'\)\]"):
            decode_column(message(), ROWS, 0)


def test_a_step_that_takes_from_a_slot_of_another_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    build = Variable.build

    def astray(self: Variable, elements: Scanned, members: Members) -> None:
        self._starts = Slot("a: starts", "i4")
        build(self, elements, members)

    monkeypatch.setattr(Variable, "build", astray)
    with pytest.raises(WrongSlots, match=r"^Slot\('a: starts', 'i4'\) has no values, "):
        decode_column(message(), ROWS, 0)


def test_a_struct_whose_steps_make_other_members_than_its_type_has() -> None:
    kind = arrow_type(MessageSchema(FORMAT, "Item", (0, 0), None, (ITEM,)))
    row = np.frombuffer(b"\x00\x01a", np.uint8)
    text = Variable("a", is_text=True, nullable=False)
    cursor = Cursor(RowBlock(pa.py_buffer(row), row, 1), vector(0), vector(3))

    class Text:
        """The text as a separate step."""

        slots = text.slots

        def read(self, cursor: Cursor, members: Members) -> None:
            text.read(cursor, 2, vector(1), members)

    with pytest.raises(WrongSlots) as failure:
        StructPlan([Text()], kind, {}).read(cursor)  # type: ignore[list-item]
    assert str(failure.value) == "expected the members ['a', 'b'], got ['a']"
