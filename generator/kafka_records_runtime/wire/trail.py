"""Records what a walk reads: one step for each item, in wire order."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka_records_runtime.wire.failure import join_path

TAG_SECTION: Final = "tagged_fields"
"""The name in paths for the section of tagged fields at the end of a struct."""


class TrailStep(NamedTuple):
    """The `length` bytes at `offset`, and their meaning.

    `type` is a spec type (`int32`, `string`, ...) or a name for bytes that are not a value themselves: `length`,
    `count`, `marker`, `tag count`, `tag`, `tag size`, `tag marker`, `unknown tag`. A step of type `leniency` has no
    bytes; it names what the lenient walk has just accepted. `value` is the meaning of the bytes; a length or count of
    -1 means null. `depth` is 0 for members of the message body, and one more for each enclosing struct.
    """

    path: str
    offset: int
    length: int
    type: str
    value: Any
    depth: int


class Trail:
    """The steps recorded so far, and the path of the current item."""

    def __init__(self) -> None:
        self.steps: list[TrailStep] = []
        self.parts: list[str] = []
        self._counters: list[int] = []

    def add(self, offset: int, length: int, type: str, value: object) -> None:
        depth = sum(not part.startswith("[") for part in self.parts) - 1
        self.steps.append(TrailStep(join_path(self.parts), offset, length, type, value, depth))

    def enter_array(self) -> None:
        self._counters.append(0)

    def leave_array(self) -> None:
        self._counters.pop()

    def next_index(self) -> int:
        index = self._counters[-1]
        self._counters[-1] = index + 1
        return index
