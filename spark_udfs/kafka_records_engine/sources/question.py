"""A question to one or more tables as one value, which Python, Spark, the command and the report share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Question:
    """A question to one or more tables. It is small and can be pickled, and the workers of any engine get the same
    value.

    `Question()` requests only raw rows.
    """

    tables: tuple[str, ...] = ()
    """The modules in which the tables are declared, without duplicates."""
    values: tuple[tuple[tuple[str, Any], ...], ...] = ()
    """For each of `tables`, the values of all its options by name."""
    as_of_ms: int | None = None
    """The time that the answer is about, in milliseconds since 1970: the log is read up to the first record with a
    later timestamp."""
    assume: Literal["committed"] | None = None
    """How to treat records if the source does not show transactions: `committed`, or None to reject the source."""
    groups: tuple[str, ...] | None = None
    """Only rows about these groups (or transactional ids); None for all."""
    topic: str | None = None
    """The topic of files or rows that do not name one; for a table about all topics, the only topic to include."""
    package: str = "kafka_records"
    """The generated package with the schemas of the records."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The options of the only table, by name."""
        return dict(self.values[0]) if self.values else {}

    @property
    def options_of_all(self) -> Mapping[str, Any]:
        """The options of all tables, by name. Options of the same name have the same value for all tables."""
        return {name: value for values in self.values for name, value in values}

    def each(self) -> tuple[Question, ...]:
        """The same question, separately for each table."""
        return tuple(
            replace(self, tables=(table,), values=(values,))
            for table, values in zip(self.tables, self.values, strict=True)
        )

    def of_rows(self) -> Question:
        """The same question without the parts that concern only tables. It says which raw rows to read, and how."""
        return replace(self, tables=(), values=())


def together(questions: Sequence[Question]) -> Question:
    """Combine questions that differ only in their tables."""
    tables = tuple(table for each in questions for table in each.tables)
    return replace(questions[0], tables=tables, values=tuple(values for each in questions for values in each.values))
