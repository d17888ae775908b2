"""A range of offsets of an open log: which files and batches have to be read for it, and which not."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from kafka_records_engine.findings import Finding, OnFinding


class _Named(Protocol):
    """A file of a log; `base_offset` comes from its name, and is None when the name is not an offset."""

    @property
    def base_offset(self) -> int | None: ...


F = TypeVar("F", bound=_Named)


@dataclass(slots=True)
class OffsetRange:
    """The offsets from `start` up to `end`, which is not one of them. Belongs to one open log and is read once."""

    start: int
    end: int
    outside: int = 0
    """Records in batches that were looked at and hold none of these offsets, by the counts in their heads."""
    is_cut: bool = False
    """Whether the log has batches or files after the range, as far as it was read."""
    is_passed: bool = False
    """Whether no further batch can be in the range: a later batch was found, and all batches were in order."""
    _held: list[Finding] = field(default_factory=list)

    def files(self, segments: Sequence[F]) -> Sequence[F]:
        """Those files of a log that may hold one of the offsets.

        Files that overlap, because a cleaner merged them, may both hold some: the later one is taken, whose records are
        the same and perhaps some more, which the cleaner had removed.
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
        """Whether offsets that are missing from `first` on, up to `behind`, concern the range."""
        return behind > self.start and first < self.end

    def hold(self, finding: Finding) -> None:
        """Keep a finding about a place between batches until the batches after it tell whether it concerns the
        range."""
        self._held.append(finding)

    def drop_held(self) -> None:
        """Drop the kept findings: they are about a place before the range."""
        self._held.clear()

    def tell(self, on_finding: OnFinding) -> None:
        """Report the kept findings."""
        for finding in self._held:
            on_finding(finding)
        self._held.clear()
