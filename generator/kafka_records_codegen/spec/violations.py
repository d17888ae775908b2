"""What is wrong with spec files, and where: every violation of every file is collected and shown at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.printable import printable

_WIDTH: Final = 120
"""Longest piece of a source line that an excerpt shows."""


@dataclass(frozen=True, order=True)
class Position:
    """A place in a text: line and column (in characters), both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Violation:
    """One thing that is wrong: where it stands, its JSON path (`fields[2].type`), and what it is.

    `line` is 0 when a folder as a whole is meant; then `path` and `excerpt` are empty.
    """

    file: str
    line: int
    column: int
    path: str
    message: str
    excerpt: str = ""

    def __str__(self) -> str:
        file, message = printable(self.file), printable(self.message)
        if not self.line:
            return f"{file}: {message}"
        text = f"{file}:{self.line}:{self.column}: {printable(self.path)}: {message}"
        return f"{text}\n{self.excerpt}" if self.excerpt else text


class SpecErrors(KafkaRecordsError):
    """Specs that cannot be used. `violations` holds all that was found, sorted by file, line and column."""

    def __init__(self, violations: Iterable[Violation]) -> None:
        self.violations = tuple(sorted(violations, key=lambda it: (it.file, it.line, it.column, it.path, it.message)))
        super().__init__(self.violations)

    def __str__(self) -> str:
        return "\n".join(str(violation) for violation in self.violations)


@dataclass(frozen=True)
class Source:
    """A spec file as text, with the violations found in it so far. `name` is what messages call the file.

    In the older dialect of `loader.load`, what Kafka wrote before 4.0 and would refuse today is no violation.
    """

    name: str
    text: str
    older_dialect: bool = False
    violations: list[Violation] = field(default_factory=list)

    def report(self, position: Position, path: str, message: str) -> None:
        excerpt = self._excerpt(position)
        self.violations.append(Violation(self.name, position.line, position.column, path or "$", message, excerpt))

    def _excerpt(self, position: Position) -> str:
        """The line of `position`, cut if it is long, and a caret below the column."""
        lines = self.text.split("\n")
        line = lines[position.line - 1].rstrip("\r") if position.line <= len(lines) else ""
        at = position.column - 1
        if len(line) > _WIDTH:
            start = max(0, min(at - _WIDTH // 2, len(line) - _WIDTH))
            line, at = line[start : start + _WIDTH], at - start
        shown = "".join(char if char.isprintable() or char == "\t" else "\N{REPLACEMENT CHARACTER}" for char in line)
        indent = "".join("\t" if char == "\t" else " " for char in line[:at])
        return f"    {shown}\n    {indent}^"
