"""The levels of findings. Every command loads this module on startup, so it contains nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """The level of a finding: how urgent it is for an operator."""

    NOTE = 0
    """Worth knowing, but not an alarm."""
    LOW = 1
    """Look at it when you have time."""
    MODERATE = 2
    """Look at it this week."""
    HIGH = 3
    """Look at it today."""
    CRITICAL = 4
    """Data is being lost or a coordinator does not work, now or soon."""

    @property
    def word(self) -> str:
        """The name of the level in JSON and on the command line."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class FailOn:
    """The findings for which the command fails."""

    level: Level
    """The least severe level that makes the command fail."""
    only_new: bool = False
    """Only findings that are new or have become worse since the earlier report."""

    def __str__(self) -> str:
        return f"{'new:' if self.only_new else ''}{self.level.word}"
