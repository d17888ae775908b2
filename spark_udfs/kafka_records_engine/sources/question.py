"""What is asked, as one value: the same object in Python, in Spark, for the command and for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of some tables. Small and picklable: workers of any engine get this very value.

    Raw rows alone are asked for by `Question()`.
    """

    tables: tuple[str, ...] = ()
    """The modules in which the tables are declared, each once."""
    values: tuple[tuple[tuple[str, Any], ...], ...] = ()
    """For each of `tables` the values of all its options, by their names."""
    as_of_ms: int | None = None
    """Answer as at this moment (milliseconds since 1970): the log up to the first record with a later timestamp."""
    assume: Literal["committed"] | None = None
    """How to treat records if the source does not show transactions: `committed`, or None to refuse the source."""
    groups: tuple[str, ...] | None = None
    """Only rows about these groups (or transactional ids); None for all."""
    topic: str | None = None
    """The topic of files or rows that do not name one; for a table about all topics, the only topic to include."""
    package: str = "kafka_records"
    """The generated package whose schemas describe the records."""

    @property
    def options(self) -> Mapping[str, Any]:
        """What a single table is asked, by the names of its options."""
        return dict(self.values[0]) if self.values else {}

    @property
    def options_of_all(self) -> Mapping[str, Any]:
        """The question for all tables; tables with an option of the same name get the same value."""
        return {name: value for values in self.values for name, value in values}

    def each(self) -> tuple[Question, ...]:
        """The same question to each of the tables alone."""
        return tuple(
            replace(self, tables=(table,), values=(values,))
            for table, values in zip(self.tables, self.values, strict=True)
        )

    def of_rows(self) -> Question:
        """The same without what only tables are asked: which raw rows are meant, and how they are read."""
        return replace(self, tables=(), values=())


def together(questions: Sequence[Question]) -> Question:
    """Questions that differ in their tables alone, as one."""
    tables = tuple(table for each in questions for table in each.tables)
    return replace(questions[0], tables=tables, values=tuple(values for each in questions for values in each.values))
