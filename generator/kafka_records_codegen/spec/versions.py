"""A range of versions as written in Kafka's message specs: `none`, `N`, `A-B` or `A+`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Self

MAX_VERSION = 32767
"""The highest possible version, given that versions are Java shorts. `A+` ends here."""

_RANGE = re.compile(r"(?P<lowest>[0-9]{1,9})(?:(?P<open>\+)|-(?P<highest>[0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions `lowest` to `highest`, both inclusive and between 0 and 32767, or none at all.

    A range with reversed bounds is the empty range: `Versions(3, 1) == Versions.NONE`. Raises ValueError for bounds
    outside 0 to 32767.
    """

    lowest: int
    highest: int

    NONE: ClassVar[Versions]
    ALL: ClassVar[Versions]

    def __post_init__(self) -> None:
        if self.lowest > self.highest:
            object.__setattr__(self, "lowest", 0)
            object.__setattr__(self, "highest", -1)
        elif self.lowest < 0 or self.highest > MAX_VERSION:
            raise ValueError(f"versions must be between 0 and {MAX_VERSION}, got {self.lowest}-{self.highest}")

    @classmethod
    def parse(cls, text: str | None, default: Self) -> Self:
        """Read a range as written in a spec. Absent or blank text returns `default`.

        Outer blanks are ignored, inner ones are rejected, and a reversed range such as `3-1` is empty. Raises
        ValueError with a text that says what is allowed.
        """
        trimmed = "" if text is None else text.strip()
        if not trimmed:
            return default
        if trimmed == "none":
            return cls(0, -1)
        match = _RANGE.fullmatch(trimmed)
        if match is None:
            raise ValueError(f"{text!r} is not a version range; write none, a number, A-B or A+")
        lowest = int(match["lowest"])
        highest = MAX_VERSION if match["open"] else int(match["highest"] or lowest)
        if max(lowest, highest) > MAX_VERSION:
            raise ValueError(f"{text!r} is above {MAX_VERSION}, the highest possible version")
        return cls(lowest, highest)

    @property
    def is_empty(self) -> bool:
        return self.highest < 0

    @property
    def is_open(self) -> bool:
        """Whether the range extends to the highest possible version (`A+`)."""
        return self.highest == MAX_VERSION

    @property
    def pair(self) -> tuple[int, int] | None:
        """The pair `(lowest, highest)`, or None if the range is empty, as in generated schemas."""
        return None if self.is_empty else (self.lowest, self.highest)

    def contains(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    __contains__ = contains

    def contains_all(self, other: Versions) -> bool:
        """Whether every version of `other` is in this range. The empty range is in every range."""
        return other.is_empty or (self.lowest <= other.lowest and other.highest <= self.highest)

    def intersect(self, other: Versions) -> Versions:
        return Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))

    def subtract(self, other: Versions) -> tuple[Versions, ...]:
        """The versions that are not in `other`: no range, one, or two on both sides of a hole, ascending."""
        common = self.intersect(other)
        if common.is_empty:
            parts: tuple[Versions, ...] = (self,)
        else:
            below = Versions(self.lowest, common.lowest - 1)
            above = Versions(common.highest + 1, self.highest)
            parts = (below, above)
        return tuple(part for part in parts if part)

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.lowest, self.highest + 1))

    def __len__(self) -> int:
        return self.highest - self.lowest + 1

    def __bool__(self) -> bool:
        return not self.is_empty

    def __str__(self) -> str:
        if self.is_empty:
            return "none"
        if self.lowest == self.highest:
            return str(self.lowest)
        if self.is_open:
            return f"{self.lowest}+"
        return f"{self.lowest}-{self.highest}"


Versions.NONE = Versions(0, -1)
Versions.ALL = Versions(0, MAX_VERSION)
