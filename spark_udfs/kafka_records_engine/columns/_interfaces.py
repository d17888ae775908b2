"""What a step, the content after a length, and a plan do: the ways to read many values at a time.

There are two ways through a step. `read` is for rows: it moves a cursor over the bytes of the step and makes arrays at
once. `scan` and `build` are for elements of arrays: `scan` moves a cursor and notes in vectors where and what
everything is, `build` makes arrays of the notes. They are apart because elements are scanned level by level, the first
of every row, then the second, while their arrays are made in one go.

`skip` moves like `scan` and notes nothing. `hop` moves over the bytes of a single element in plain Python, which is
quicker than vectors with a few entries; it raises Broken, or what indexing raises.

All of them agree on where everything lies. `hop` alone does not look at the order of tags: what it hops over is scanned
or read afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from kafka_records_engine.columns._cursor import Cursor
from kafka_records_engine.columns._slots import Scanned, Slot, SlotVectors
from kafka_records_engine.numpy_types import INT64

Members = dict[str, pa.Array]
"""The arrays that the steps of a plan build, by field name."""


class Broken(Exception):
    """Bytes that do not match the schema."""


class Step(Protocol):
    """What is read in one go: adjacent fields, a field with its length, a nested struct, the tagged fields.

    `slots` are the step's own: `scan` fills each of them in `notes`, and `build` takes nothing else from `scanned`.
    `read` and `build` put an array for each field of the step into `members`.
    """

    @property
    def slots(self) -> Sequence[Slot]: ...

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None: ...

    def build(self, scanned: Scanned, members: Members) -> None: ...

    def read(self, cursor: Cursor, members: Members) -> None: ...

    def skip(self, cursor: Cursor) -> None: ...

    def hop(self, data: Any, pos: int, end: int) -> int: ...


class Content(Protocol):
    """What follows a length: text, bytes or the elements of an array. A length below zero means null.

    The methods are those of a step. `size` and `lengths` are what the step before it found: the bytes from the position
    of the cursor to the content, and the length of the content of each element. `longest` is the highest length in the
    compact form; a length of fixed width cannot be higher.
    """

    @property
    def longest(self) -> int: ...

    @property
    def slots(self) -> Sequence[Slot]: ...

    def scan(self, cursor: Cursor, size: int, lengths: INT64, notes: SlotVectors) -> None: ...

    def build(self, scanned: Scanned, members: Members) -> None: ...

    def read(self, cursor: Cursor, size: int, lengths: INT64, members: Members) -> None: ...

    def skip(self, cursor: Cursor, size: int, lengths: INT64) -> None: ...

    def hop(self, data: Any, pos: int, end: int, length: int) -> int: ...


class Packed(NamedTuple):
    """Elements that all take `size` bytes: items of that size, which the plan takes from `slot` (None: from nowhere,
    since the elements have no bytes)."""

    size: int
    slot: Slot | None


class Plan(Protocol):
    """How one value is read: a whole message, the element of an array, a nested struct, a tagged field.

    The methods are those of its steps, one after the other; `read` and `build` return the array of the value. `packed`
    is given if the value is of fixed width: its bytes can then be noted without a scan.
    """

    @property
    def slots(self) -> Sequence[Slot]: ...

    @property
    def packed(self) -> Packed | None: ...

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None: ...

    def build(self, scanned: Scanned) -> pa.Array: ...

    def read(self, cursor: Cursor) -> pa.Array: ...

    def skip(self, cursor: Cursor) -> None: ...

    def hop(self, data: Any, pos: int, end: int) -> int: ...
