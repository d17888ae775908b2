"""A column of a table, as declared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    `type` is `string`, `bool`, `binary`, `int8`, `int16`, `int32`, `int64`, `float64`, `timestamp` (an instant in UTC,
    in microseconds), `list<T>` or `struct<name: T, …>`. Any column may be null.
    """

    name: str
    type: str
    about: str
    """A description in one line: the meaning, the unit, and when the value is null."""
    words: tuple[str, ...] = ()
    """The possible values, if known. A value may also be several of them joined by ` or `."""
    stopping: tuple[str, ...] = ()
    """Values about records that a coordinator does not load. They count as damage, like findings about such records."""
