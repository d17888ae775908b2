"""Interfaces of objects that read many values at a time: the step, the content after a length, and the plan.

A step has two ways of reading. `read` is for rows: it moves a cursor over the bytes of the step and creates arrays
immediately. `scan` and `build` are for elements of arrays: `scan` moves a cursor and notes positions and values in
vectors, and `build` creates arrays from the notes. They are separate because elements are scanned level by level (the
first of every row, then the second), but their arrays are all created at once.

`skip` moves like `scan` and notes nothing. `hop` moves over the bytes of a single element in plain Python, which is
faster than vectors with a few entries. It raises Broken, or the errors of indexing.

All these methods agree on the position of every value. Only `hop` does not check the order of tags, because the bytes
that it skips are scanned or read later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from kafka_records_engine.columns._cursor import Cursor
from kafka_records_engine.columns._slots import Scanned, Slot, SlotVectors
from kafka_records_engine.numpy_types import INT64

Members = dict[str, pa.Array]
"""By field name, the arrays that the steps of a plan build."""


class Broken(Exception):
    """Bytes that do not match the schema."""


class Step(Protocol):
    """A part of a value that is read at once: adjacent fields, a field with its length, a nested struct, the tagged
    fields.

    A step owns its `slots`: `scan` fills each of them in `notes`, and `build` uses nothing else from `scanned`. `read`
    and `build` put an array for each field of the step into `members`.
    """

    @property
    def slots(self) -> Sequence[Slot]: ...

    def scan(self, cursor: Cursor, notes: SlotVectors) -> None: ...

    def build(self, scanned: Scanned, members: Members) -> None: ...

    def read(self, cursor: Cursor, members: Members) -> None: ...

    def skip(self, cursor: Cursor) -> None: ...

    def hop(self, data: Any, pos: int, end: int) -> int: ...


class Content(Protocol):
    """The content after a length: text, bytes or the elements of an array. A length below zero means null.

    The methods are those of a step. `size` and `lengths` come from the previous step: the number of bytes from the
    position of the cursor to the content, and the length of each element's content. `longest` is the highest length in
    the compact form; a length of fixed width cannot be higher.
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
    """Elements that all have `size` bytes. The plan reads them from `slot`, as items of that size. `slot` is None if
    `size` is 0."""

    size: int
    slot: Slot | None


class Plan(Protocol):
    """Describes how to read one value: a message, an array element, a nested struct or a tagged field.

    Each method calls the same method of all steps, in order; `read` and `build` return the array of the value. `packed`
    is not None if the value has a fixed width, because its bytes can then be noted without a scan.
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
