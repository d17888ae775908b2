"""Determines which files and batches of an open log have to be read for a range of offsets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from kafka_records_engine.findings import Finding, OnFinding


class _Named(Protocol):
    """A file of a log. `base_offset` comes from its name; None if the name is not an offset."""

    @property
    def base_offset(self) -> int | None: ...


F = TypeVar("F", bound=_Named)


@dataclass(slots=True)
class OffsetRange:
    """The offsets from `start` to `end`, excluding `end`. An object belongs to one open log and is used for one
    reading."""

    start: int
    end: int
    outside: int = 0
    """The number of records, according to batch headers, in batches that were checked but contain none of these
    offsets."""
    is_cut: bool = False
    """Whether batches or files after the range exist, as far as the log was read."""
    is_passed: bool = False
    """Whether no further batch can be in the range, because a later batch was found and all batches were in order."""
    _held: list[Finding] = field(default_factory=list)

    def files(self, segments: Sequence[F]) -> Sequence[F]:
        """The files of a log that may contain one of the offsets.

        Two files overlap if a cleaner merged them, and then both may contain an offset. The later file is chosen,
        because it has at least the same records; the cleaner may have removed some from the other.
        """
        bases = [segment.base_offset for segment in segments]
        begun = [number for number, base in enumerate(bases) if base is not None and base <= self.start]
        first = begun[-1] if begun else 0
        if None in bases:
            # The position of a file is unknown if its name is not an offset.
            return segments
        behind = next((number for number, base in enumerate(bases) if base is not None and base >= self.end), None)
        self.is_cut = behind is not None
        return segments[first : max(len(bases) if behind is None else behind, first)]

    def has_gap(self, first: int, behind: int) -> bool:
        """Whether any of the missing offsets, from `first` up to `behind`, is in the range."""
        return behind > self.start and first < self.end

    def hold(self, finding: Finding) -> None:
        """Keep a finding about a place between batches until a later batch shows whether the place is in the range."""
        self._held.append(finding)

    def drop_held(self) -> None:
        """Discard the held findings: they are about offsets before the start of the range."""
        self._held.clear()

    def tell(self, on_finding: OnFinding) -> None:
        """Report the kept findings."""
        for finding in self._held:
            on_finding(finding)
        self._held.clear()
