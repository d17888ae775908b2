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
    """One line: what it means, its unit, and when it is null."""
    words: tuple[str, ...] = ()
    """The values that it can have, if they are known; a value may also be several of them joined by ` or `."""
    stopping: tuple[str, ...] = ()
    """The words that mean that a coordinator does not load the record. They count as damage, as findings about
    such records do."""
