"""Problems in spec files, and where they are. The violations of all files are collected and shown together.

A warning has the same form. It is about something that Kafka's generator accepts but that is probably a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.text.printable import printable

_WIDTH: Final = 120
"""The maximum length of the part of a source line that an excerpt shows."""


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: line and column (in characters), both starting at 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Violation:
    """One violation or, with `is_warning`, a possible mistake: its place, its JSON path (`fields[2].type`), and the
    problem.

    If the problem concerns a whole folder, `line` is 0, and `path` and `excerpt` are empty.
    """

    file: str
    line: int
    column: int
    path: str
    message: str
    excerpt: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        file, message = printable(self.file), printable(self.message)
        if not self.line:
            return f"{file}: {message}"
        kind = "warning: " if self.is_warning else ""
        text = f"{file}:{self.line}:{self.column}: {kind}{printable(self.path)}: {message}"
        return f"{text}\n{self.excerpt}" if self.excerpt else text


class SpecErrors(KafkaRecordsError):
    """The specs are unusable. `violations` and `warnings` contain all problems, by file, line and column."""

    def __init__(self, violations: Iterable[Violation], warnings: Iterable[Violation] = ()) -> None:
        self.violations = in_order(violations)
        self.warnings = in_order(warnings)
        super().__init__(self.violations, self.warnings)

    def __str__(self) -> str:
        return "\n".join(str(violation) for violation in in_order([*self.violations, *self.warnings]))


def in_order(violations: Iterable[Violation]) -> tuple[Violation, ...]:
    """The violations by file, line and column."""
    return tuple(sorted(violations, key=lambda it: (it.file, it.line, it.column, it.path, it.message)))


@dataclass(frozen=True)
class SpecText:
    """A spec file as text, with the violations and warnings found in it so far. `name` is the file's name in messages.

    In the older dialect of `loader.load`, constructs that Kafka accepted before 4.0 and rejects today are not
    violations. `unreadable` are the places of values that are not JSON; nothing more is reported about them.
    """

    name: str
    text: str
    older_dialect: bool = False
    violations: list[Violation] = field(default_factory=list)
    warnings: list[Violation] = field(default_factory=list)
    unreadable: set[Position] = field(default_factory=set)

    def report(self, position: Position, path: str, message: str) -> None:
        if position not in self.unreadable:
            self.violations.append(self._at(position, path, message))

    def warn(self, position: Position, path: str, message: str) -> None:
        self.warnings.append(replace(self._at(position, path, message), is_warning=True))

    def _at(self, position: Position, path: str, message: str) -> Violation:
        excerpt = self._excerpt(position)
        return Violation(self.name, position.line, position.column, path or "$", message, excerpt)

    def _excerpt(self, position: Position) -> str:
        """The line of `position`, shortened if it is long, with a caret below the column."""
        lines = self.text.split("\n")
        line = lines[position.line - 1].rstrip("\r") if position.line <= len(lines) else ""
        at = position.column - 1
        if len(line) > _WIDTH:
            start = max(0, min(at - _WIDTH // 2, len(line) - _WIDTH))
            line, at = line[start : start + _WIDTH], at - start
        shown = "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in line)
        indent = "".join("\t" if char == "\t" else " " for char in line[:at])
        return f"    {shown}\n    {indent}^"
