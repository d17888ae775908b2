"""A range of offsets of a log that is open: which files and batches have to be looked at for it, and which not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from kafka_records_engine.findings import Finding, OnFinding

if TYPE_CHECKING:
    from kafka_records_engine.log._vetting import Vetted
    from kafka_records_engine.log.opened import SegmentFile
    from kafka_records_engine.numpy_types import FLAGS


@dataclass(slots=True)
class OffsetRange:
    """The offsets from `start` up to `end`, which is not one of them. Belongs to one open log and is read once."""

    start: int
    end: int
    outside: int = 0
    """Records in batches that were looked at and hold none of these offsets, by the counts in their heads."""
    is_cut: bool = False
    """Whether the log has batches or files behind the range, as far as it was read."""
    is_passed: bool = False
    """Whether no batch of the range can follow: one that lies behind it was met, and none in disorder."""
    _held: list[Finding] = field(default_factory=list)

    def files(self, segments: Sequence[SegmentFile]) -> Sequence[SegmentFile]:
        """Those files of a log that may hold one of the offsets.

        Files that overlap, because a cleaner merged them, may both hold some: the later one is taken, whose records are
        the same and perhaps some more, which the cleaner had removed.
        """
        bases = [segment.base_offset for segment in segments]
        begun = [number for number, base in enumerate(bases) if base is not None and base <= self.start]
        first = begun[-1] if begun else 0
        if None in bases:
            # Nobody knows where files lie whose names are no offsets.
            return segments
        behind = next((number for number, base in enumerate(bases) if base is not None and base >= self.end), None)
        self.is_cut = behind is not None
        return segments[first : max(len(bases) if behind is None else behind, first)]

    def has_gap(self, first: int, behind: int) -> bool:
        """Whether offsets that are missing from `first` on, up to `behind`, concern the range."""
        return behind > self.start and first < self.end

    def hold(self, finding: Finding) -> None:
        """Keep a finding about a place between batches until the batches behind it tell whether it concerns the
        range."""
        self._held.append(finding)

    def tell(self, on_finding: OnFinding) -> None:
        """Hand over what was kept."""
        for finding in self._held:
            on_finding(finding)
        self._held.clear()

    def within(self, vetted: Vetted) -> Vetted:
        """A chunk with only those usable entries that may hold one of the offsets; the others count as `repeated`.

        Entries that cannot be used concern the range unless one that can be used lies between them and the range.
        """
        heads, usable = vetted.heads, vetted.usable
        # The head of an old message or wrapper tells its last offset only: its records decide.
        new: FLAGS = ~heads.is_old[usable]
        before = new & (heads.last_offset[usable] < self.start)
        behind = new & (heads.offset[usable] >= self.end)
        if before.any():
            # What was found before this chunk stands before a batch that lies before the range.
            self._held.clear()
        if behind.any():
            self.is_cut = True
            self.is_passed = bool(behind[-1])
        elif not before.any():
            return vetted
        inside = ~(before | behind)
        kept, left_out = usable[inside], usable[~inside]
        self.outside += int(np.maximum(heads.count[left_out], 0).sum())
        low = int(usable[before][-1]) if before.any() else -1
        high = int(usable[behind][0]) if behind.any() else len(heads.offset)
        findings = {at: found for at, found in vetted.findings.items() if low < at < high or at in kept}
        repeated = np.union1d(vetted.repeated, left_out)
        return replace(vetted, usable=kept, findings=findings, repeated=repeated)
