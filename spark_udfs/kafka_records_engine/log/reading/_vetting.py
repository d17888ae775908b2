"""Decides which entries of a log can be trusted: those with a correct CRC and a plausible offset.

The CRC of an entry does not cover its offset, so only the neighbouring entries and files show whether the offset is
right:

- A file contains fewer than 2^31 offsets, from the one in its name up to the name of the next file of the log. So a
  jump of 2^31 or more is detected even in the last batch of a log, where a smaller jump looks like a gap left by a
  cleaner.
- Offsets grow from batch to batch. If they decrease, the batch that does not fit between its neighbours is wrong. If
  both would fit, the batch whose offset jumps ahead is wrong. If offsets decrease and continue to grow from there, no
  single batch is wrong: the problem is reported, and the records are returned with their offsets.
- A batch that is in two files of the log is returned once, without a finding (`_overlaps`).

Both readers and the search for transaction markers get entries from this module, so that they agree.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from kafka_records_engine.findings import Finding, OnFinding, in_file
from kafka_records_engine.log.files.opened import OpenLog, SegmentFile
from kafka_records_engine.log.files.ranges import OffsetRange
from kafka_records_engine.log.format.batches import LARGEST_OFFSET, BatchHead, read_head
from kafka_records_engine.log.reading._faults import disorder, refused, wrong_crc
from kafka_records_engine.log.reading._heads import Heads
from kafka_records_engine.log.reading._overlaps import Overlaps
from kafka_records_engine.log.reading._resync import SPAN, offset_bounds
from kafka_records_engine.log.reading._scanning import Chunk, read_chunks
from kafka_records_engine.numpy_types import FLAGS, INT64

_MOST_AHEAD: Final = 4
"""The maximum number of chunks in memory while the two entries after the last one of a chunk are looked up."""


@dataclass(frozen=True, slots=True)
class Vetted:
    """A chunk with the indexes of its usable entries. Findings about unusable entries, and about unusual but usable
    ones, are keyed by the index of the entry."""

    chunk: Chunk
    heads: Heads
    usable: INT64
    findings: dict[int, Finding]
    repeated: INT64 = field(default_factory=lambda: np.zeros(0, np.int64))
    """Indexes of sound entries that an earlier file already delivered."""

    def head(self, at: int) -> BatchHead:
        """The header of the entry with index `at`."""
        start = int(self.chunk.entries[at])
        return read_head(self.chunk.data, start, self.chunk.position + start)


def placed(log: OpenLog) -> Iterator[tuple[SegmentFile, bool, int | None]]:
    """For each file of a log: the file, whether the log ends with it, and the offset in the next file's name."""
    for number, segment in enumerate(log.segments):
        is_last = segment is log.segments[-1] and not log.ends_early
        later = (each.base_offset for each in log.segments[number + 1 :] if each.base_offset is not None)
        limit = next((base for base in later if segment.base_offset is not None and base > segment.base_offset), None)
        yield segment, is_last, limit


def read_vetted(log: OpenLog, on_finding: OnFinding) -> Iterator[tuple[SegmentFile, Vetted]]:
    """The chunks of all files of a log, or only of those that may contain the offsets of `log.only`.

    When findings about files and about bytes between entries are reached, `on_finding` is called with them. Findings
    about an entry are part of its chunk.
    """
    before: tuple[str, int] | None = None
    overlaps = Overlaps(log.segments)
    only = log.only
    chosen = log.segments if only is None else only.files(log.segments)
    for segment, is_last, limit in placed(log):
        if segment not in chosen:
            continue
        vetting = _Vetting(segment, is_last, limit, on_finding if only is None else only.hold, overlaps)
        vetting.end = log.end
        is_first = True
        for vetted in vetting.chunks():
            if before is not None:
                vetted = _given_once(overlaps, segment, vetted, before[1])
            if is_first and len(vetted.usable):
                is_first = False
                first = int(vetted.heads.offset[vetted.usable[0]])
                if before is not None and first <= before[1]:
                    what = f"its offsets start at {first}, but {before[0]} goes up to {before[1]}"
                    consequence = "records of both files are returned"
                    on_finding(in_file(segment.path, None, None, what, consequence, "note"))
            if only is not None:
                vetted = _within(only, vetted)
                only.tell(on_finding)
            yield segment, vetted
            if only is not None and only.is_passed:
                return
        if only is not None:
            only.tell(on_finding)
        if vetting.last is not None and (before is None or vetting.last > before[1]):
            before = segment.path, vetting.last
        if limit is not None and not vetting.damaged and not log.is_part:
            vetting.report_gap(limit, on_finding, only)


def _given_once(overlaps: Overlaps, segment: SegmentFile, vetted: Vetted, up_to: int) -> Vetted:
    usable = vetted.usable
    if not len(usable) or int(vetted.heads.offset[usable].min()) > up_to:
        return vetted
    given = overlaps.were_given(segment, vetted.heads, usable, up_to)
    return replace(vetted, usable=usable[~given], repeated=usable[given])


def _within(only: OffsetRange, vetted: Vetted) -> Vetted:
    """A chunk reduced to the usable entries that may contain an offset of the range; the others count as `repeated`.

    Unusable entries concern the range, unless a usable entry lies between them and the range.
    """
    heads, usable = vetted.heads, vetted.usable
    # The header of an old message or wrapper contains only the last offset, so check the records themselves.
    new: FLAGS = ~heads.is_old[usable]
    before = new & (heads.last_offset[usable] < only.start)
    after = new & (heads.offset[usable] >= only.end)
    if before.any():
        # Findings before this chunk are about batches before the requested range.
        only.drop_held()
    if after.any():
        only.is_cut = True
        only.is_passed = bool(after[-1])
    elif not before.any():
        return vetted
    inside = ~(before | after)
    kept, left_out = usable[inside], usable[~inside]
    only.outside += int(np.maximum(heads.count[left_out], 0).sum())
    low = int(usable[before][-1]) if before.any() else -1
    high = int(usable[after][0]) if after.any() else len(heads.offset)
    findings = {at: found for at, found in vetted.findings.items() if low < at < high or at in kept}
    repeated = np.union1d(vetted.repeated, left_out)
    return replace(vetted, usable=kept, findings=findings, repeated=repeated)


class _Entry(NamedTuple):
    offset: int
    last: int

    @property
    def length(self) -> int:
        return max(self.last - self.offset + 1, 1)


class _Pending(NamedTuple):
    """A chunk, its headers, the entries that are valid in themselves, and the findings about places before the
    chunk."""

    chunk: Chunk
    heads: Heads
    right: INT64
    found_before: list[Finding]


class _Vetting:
    """Checks the entries of one file, chunk by chunk. `last` is the highest offset of a usable entry so far."""

    def __init__(
        self, segment: SegmentFile, is_last: bool, limit: int | None, on_finding: OnFinding, overlaps: Overlaps
    ) -> None:
        self.last: int | None = None
        self.damaged = False
        self.end: int | None = None
        """The offset after the end of the log, if it is known."""
        self._segment = segment
        self._is_last = is_last
        self._on_finding = on_finding
        self._limit = limit
        self._overlaps = overlaps
        self._low, self._highest = offset_bounds(segment.base_offset)
        self._high = self._highest if limit is None else min(self._highest, limit - 1)
        self._before = self._low - 1
        self._started = False

    def chunks(self) -> Iterator[Vetted]:
        found: list[Finding] = []
        chunks = read_chunks(self._segment, self._is_last, found.append)
        ahead: deque[_Pending] = deque()
        goes_on = True
        while goes_on or ahead:
            # Whether an entry is valid depends on the next two entries, so they are read before the entry's chunk is
            # returned.
            while goes_on and len(ahead) < _MOST_AHEAD and sum(len(each.right) for each in islice(ahead, 1, None)) < 2:
                pending = self._next(chunks, found)
                goes_on = pending is not None
                ahead += [pending] if pending is not None else []
            if ahead:
                here = ahead.popleft()
                self._hand_over(here.found_before)
                behind = [entry for each in ahead for entry in _entries(each.heads, each.right[:2])]
                yield self._vet(here.chunk, here.heads, here.right, behind[:2])
        self._hand_over(found)

    def report_gap(self, limit: int, on_finding: OnFinding, only: OffsetRange | None) -> None:
        """Report the offsets that are missing before the next file, which starts at `limit`, if they concern the
        range."""
        first = self._low if self.last is None else self.last + 1
        if first >= limit or not (only is None or only.has_gap(first, limit)):
            return
        which = f"offset {first}" if first == limit - 1 else f"offsets {first} to {limit - 1}"
        what = f"no file has {which}" if self.last is not None else f"it contains no batch, and no file has {which}"
        consequence = (
            "the log cleaner has removed them, or a file is missing: if that is certain, a report has a finding about "
            "it"
        )
        on_finding(in_file(self._segment.path, None, None, what, consequence, "note"))

    def _hand_over(self, found: list[Finding]) -> None:
        for finding in found:
            self.damaged = self.damaged or finding.severity == "damage"
            self._on_finding(finding)

    def _next(self, chunks: Iterator[Chunk], found: list[Finding]) -> _Pending | None:
        """The next chunk, with the findings about places before it."""
        chunk = next(chunks, None)
        if chunk is None:
            return None
        found_before = found.copy()
        found.clear()
        heads = Heads(chunk)
        if self._low > LARGEST_OFFSET:
            return _Pending(chunk, heads, np.zeros(0, np.int64), found_before)
        right = heads.is_valid & (heads.offset >= self._low) & ~heads.overflows
        if self._limit is not None:
            beyond = np.flatnonzero(right & (heads.offset > self._high) & (heads.offset <= self._highest))
            if len(beyond):
                merged = self._overlaps.also_in_later_files(self._segment, heads, beyond)
                right[beyond[~merged]] = False
        right &= heads.offset <= self._highest
        if self.end is not None:
            right &= heads.last_offset < self.end
        return _Pending(chunk, heads, np.flatnonzero(right), found_before)

    def _vet(self, chunk: Chunk, heads: Heads, right: INT64, following: list[_Entry]) -> Vetted:
        vetted = Vetted(chunk, heads, right, {})
        if len(right) < len(heads.offset):
            wrong = np.ones(len(heads.offset), np.bool_)
            wrong[right] = False
            for at in np.flatnonzero(wrong).tolist():
                vetted.findings[at] = self._wrong(vetted, at)
        if not self._is_ascending(heads.offset[right], heads.last_offset[right], following):
            refusals = self._refused(vetted, [*_entries(heads, right), *following])
            vetted = Vetted(chunk, heads, right[~np.isin(right, refusals)], vetted.findings)
        if len(vetted.usable):
            self._before = int(heads.last_offset[vetted.usable[-1]])
            self._started = True
            self.last = max(-1 if self.last is None else self.last, int(heads.last_offset[vetted.usable].max()))
        self.damaged = self.damaged or bool(vetted.findings)
        return vetted

    def _wrong(self, vetted: Vetted, at: int) -> Finding:
        head = vetted.head(at)
        path = self._segment.path
        if not vetted.heads.is_valid[at]:
            start = int(vetted.chunk.entries[at])
            return wrong_crc(path, head, vetted.chunk.data[start : start + head.size], vetted.chunk.doubts.get(at))
        base = self._segment.base_offset
        low, high = offset_bounds(base)
        if low <= head.offset <= high and head.last_offset > LARGEST_OFFSET:
            return refused(path, head, f"its last offset would be {head.last_offset}, which is too large for an offset")
        place = "in any log" if base is None else f"in a file named for offset {base}"
        if low <= head.offset <= high:
            place = f"before the file named for offset {self._limit}"
        if self.end is not None and head.last_offset >= self.end:
            place = f"in a log that ends at {self.end}"
        return refused(path, head, f"offset {head.offset} cannot be {place}")

    # -- order ---------------------------------------------------------------------------------------------------------

    def _is_ascending(self, offsets: INT64, lasts: INT64, following: list[_Entry]) -> bool:
        if not len(offsets):
            return True
        before = np.concatenate(([self._before], lasts[:-1]))
        if not bool((offsets > before).all()) or (following and following[0].offset <= lasts[-1]):
            return False
        if self._segment.base_offset is not None:
            return True
        far = offsets - before >= SPAN
        return not bool((far if self._started else far[1:]).any())

    def _refused(self, vetted: Vetted, entries: list[_Entry]) -> list[int]:
        """The indexes of entries whose offsets do not fit between their neighbours. Adds the findings about them."""
        refusals: list[int] = []
        before, started, path = self._before, self._started, self._segment.path
        for number, at in enumerate(vetted.usable.tolist()):
            entry = entries[number]
            behind = entries[number + 1] if number + 1 < len(entries) else None
            second = entries[number + 2] if number + 2 < len(entries) else None
            what = None
            if entry.offset <= before:
                if behind is not None and entry.last < behind.offset <= before:
                    vetted.findings[at] = disorder(path, vetted.head(at), before)
                else:
                    what = f"its offset is not above the previous offset {before}"
            elif behind is not None and _jumps_ahead(before, entry, behind, second):
                what = f"its offset is not below the next offset {behind.offset}"
            elif self._segment.base_offset is None and started and entry.offset - before >= SPAN:
                if behind is not None and entry.last < behind.offset < entry.last + SPAN:
                    vetted.findings[at] = disorder(path, vetted.head(at), before)
                else:
                    what = f"its offset is 2^31 or more above the previous offset {before}"
            if what is None:
                before, started = entry.last, True
            else:
                refusals.append(at)
                vetted.findings[at] = refused(path, vetted.head(at), what)
        return refusals


def _entries(heads: Heads, indexes: INT64) -> list[_Entry]:
    offsets, lasts = heads.offset[indexes].tolist(), heads.last_offset[indexes].tolist()
    return [_Entry(offset, last) for offset, last in zip(offsets, lasts, strict=True)]


def _jumps_ahead(before: int, entry: _Entry, behind: _Entry, second: _Entry | None) -> bool:
    """Whether, of two entries with overlapping offsets, `entry` has the wrong one rather than `behind`, the next
    entry."""
    if not before < behind.offset <= entry.last:
        return False
    room = behind.offset - before - 1
    if second is None:
        return room >= entry.length
    if second.offset <= entry.last:
        return True
    # Either entry may be wrong. Find out which one does not fit between its neighbours, or which one fills the gap.
    room_behind = second.offset - entry.last - 1
    if room < entry.length:
        return room_behind < behind.length
    return room == entry.length or room_behind != behind.length
