"""The worked example of docs/columns-inside.md: what the engine does with three rows, written down while it does it.

python -m tests.columns.worked_example    # prints the blocks of the page
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records.schemas.transaction_state import TRANSACTION_LOG_VALUE
from kafka_records_engine.columns import decode_column
from kafka_records_engine.columns._cursor import Cursor
from kafka_records_engine.columns._elements import Elements, ElementWalk
from kafka_records_engine.columns._interfaces import Content, Plan, Step
from kafka_records_engine.columns._plans import StructPlan, message_plan
from kafka_records_engine.columns._slots import ElementVectors, Slot
from kafka_records_engine.columns._steps import Compact
from kafka_records_engine.columns._tags import TagSection
from kafka_records_engine.log.reading.segment_files import read_partition
from tests.columns.reference import engine_limits
from tests.log.logs import captured_logs

VERSION = 1
LOG = ("kafka-4.3", "__transaction_state", 0)
OFFSETS = (0, 2, 7)
"""The offsets of values with no, one and two topics in their transaction."""


def rows() -> pa.Array:
    """Three values of a captured topic, as the broker wrote them, in one buffer."""
    capture, topic, partition = LOG
    (log,) = (
        log
        for log in captured_logs()
        if f"/{capture}/" in str(log.folder) and (log.topic, log.partition) == (topic, partition)
    )
    found = {
        offset: value
        for batch in read_partition(log)
        for offset, value in zip(*(batch.column(name).to_pylist() for name in ("offset", "value")), strict=True)
    }
    return pa.array([found[offset] for offset in OFFSETS], pa.binary())


# -- the plan ---------------------------------------------------------------------------------------


def plan_lines(plan: Plan, depth: int = 0) -> Iterator[str]:
    assert isinstance(plan, StructPlan)
    for step in plan.steps:
        content: Any = step._content if isinstance(step, Compact) else None
        label = type(step).__name__ + (f" + {type(content).__name__}" if content else "")
        yield f"{'    ' * depth}{label:<21} {_fields(step, content)}".rstrip()
        if isinstance(content, Elements):
            element = content._element
            if element.packed is not None:
                slot = element.packed.slot
                assert slot is not None
                yield f"{'    ' * (depth + 1)}packed: items of {element.packed.size} bytes, slot {slot.name!r}"
            else:
                yield from plan_lines(element, depth + 1)
        if depth:
            yield from (f"{'    ' * depth}  slot {slot.name!r}, {slot.kind}" for slot in step.slots)


def _fields(step: Any, content: Content | None) -> str:
    if content is not None:
        held: Any = content
        return f"{held._name}{', may be null' if held._nullable else ''}"
    if isinstance(step, TagSection):
        return ", ".join(f"{tag}: {known.name}" for tag, known in step._known.items()) or "no known tag"
    return ", ".join(step._builders)


# -- what happens -----------------------------------------------------------------------------------


class Seen:
    """What the engine did, as lines of text."""

    def __init__(self) -> None:
        self.moves: list[str] = []
        self.levels: list[str] = []


def _vector(values: Any) -> str:
    return "[" + ", ".join(str(value) for value in np.asarray(values).tolist()) + "]"


def _slot_lines(vectors: dict[Slot, Any], indent: str) -> Iterator[str]:
    for slot, vector in vectors.items():
        yield f"{indent}{slot.name:<26} {_vector(vector)}"


@contextmanager
def _watched(seen: Seen) -> Iterator[None]:
    """Record everything that the engine does. Arrays are read level by level, even for few rows."""
    plan = message_plan(TRANSACTION_LOG_VALUE, VERSION, unknown_tags=False)
    assert isinstance(plan, StructPlan)
    scan, add = ElementWalk._scan, ElementVectors.add

    class Watched:
        """A step of the message that records the position of the cursor before and after it."""

        def __init__(self, step: Step, number: int) -> None:
            self._step, self._number = step, number
            self.slots = step.slots

        def read(self, cursor: Cursor, members: dict[str, Any]) -> None:
            before = cursor.pos
            self._step.read(cursor, members)
            seen.moves.append(f"step {self._number}  pos {_vector(before)} -> {_vector(cursor.pos)}")

    def watched_scan(walk: ElementWalk, elements: Cursor, owners: Any, level: Any) -> None:
        seen.levels.append(f"level {level}: rows {_vector(owners)}, pos {_vector(elements.pos)}")
        scan(walk, elements, owners, level)
        seen.levels.append(f"         moved to {_vector(elements.pos)}")

    def watched_add(gathered: ElementVectors, owners: Any, level: Any, notes: Any) -> None:
        seen.levels.extend(_slot_lines(notes, "    "))
        add(gathered, owners, level, notes)

    with pytest.MonkeyPatch.context() as patch, engine_limits(few=0):
        patch.setattr(plan, "steps", [Watched(step, number) for number, step in enumerate(plan.steps, 1)])
        patch.setattr(ElementWalk, "_scan", watched_scan)
        patch.setattr(ElementVectors, "add", watched_add)
        yield


def blocks() -> dict[str, str]:
    """The blocks of the page, by name."""
    column = rows()
    seen = Seen()
    with _watched(seen):
        found = decode_column(TRANSACTION_LOG_VALUE, column)
    assert not found.errors
    assert found.values.equals(decode_column(TRANSACTION_LOG_VALUE, column).values)
    offsets = np.frombuffer(column.buffers()[1], np.int32, len(column) + 1)
    plan = message_plan(TRANSACTION_LOG_VALUE, VERSION, unknown_tags=False)
    return {
        "rows": "\n".join(_rows(column.to_pylist(), offsets.tolist())),
        "plan": "\n".join(plan_lines(plan)),
        "levels": "\n".join(seen.levels),
        "broken": "\n".join(_broken(column)),
    }


def _broken(column: pa.Array) -> Iterator[str]:
    """The same rows; the second one ends inside the name of its topic."""
    values = column.to_pylist()
    cut = pa.array([values[0], values[1][:30], values[2]], pa.binary())
    seen = Seen()
    with _watched(seen):
        found = decode_column(TRANSACTION_LOG_VALUE, cut)
    yield from seen.moves
    yield from (f"row {row}: {error}" for row, error in found.errors.items())


def _rows(data: Sequence[bytes], offsets: Sequence[int]) -> Iterator[str]:
    for row, value in enumerate(data):
        yield f"row {row}  bytes {offsets[row]} to {offsets[row + 1]}"
        for at in range(0, len(value), 40):
            yield f"       {value[at : at + 40].hex()}"


if __name__ == "__main__":
    for name, text in blocks().items():
        print(f"-- {name}\n{text}\n")
