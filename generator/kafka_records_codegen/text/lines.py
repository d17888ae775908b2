"""Collects source lines with their indentation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Lines:
    """Collects lines. `with lines.block("if x:")` indents the lines added inside the block."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._indent = 0

    def add(self, text: str) -> None:
        self._lines.append("    " * self._indent + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.add(head)
        self._indent += 1
        yield
        self._indent -= 1

    def text(self) -> str:
        return "\n".join(self._lines)
