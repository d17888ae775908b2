"""A column of a table, as declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    `type` is `string`, `bool`, `binary`, `int8`, `int16`, `int32`, `int64`, `float64`, `timestamp` (an instant,
    microseconds in UTC), `list<T>` or `struct<name: T, …>`. Any column may be null.
    """

    name: str
    type: str
    about: str
    """A description in one line: the meaning, the unit, and when the value is null."""
    words: tuple[str, ...] = ()
    """The values that it can have, if they are known; a value may also be several of them joined by ` or `."""
    stopping: tuple[str, ...] = ()
    """The words for records that a coordinator does not load. They count as damage, like findings about such
    records."""
