"""Finds batches that are in two files of a log, so that each is read only once.

The cleaner merges several files into one, which gets the name of the first. It removes the originals just before it
renames the new file (`LocalLog.replaceSegments`). A file-by-file copy of a live directory may contain both: a cleaned
file that extends into the offsets of the next file, and the next file with the same batches before cleaning. A cleaned
batch keeps its offsets, its producer and its sequence number, so it can be found in both files. A batch with a damaged
offset has no such counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.files.opened import SegmentFile
from kafka_records_engine.log.reading._heads import Heads
from kafka_records_engine.log.reading._scanning import read_chunks
from kafka_records_engine.numpy_types import FLAGS, INT64

_DELETE_HORIZON: Final = 0x40


class _Batches(NamedTuple):
    """The fields that identify batches, as vectors with an element per batch, in ascending order of offsets."""

    offset: INT64
    last_offset: INT64
    producer_id: INT64
    producer_epoch: INT64
    base_sequence: INT64
    records: INT64
    crc: INT64

    def chosen(self, indexes: INT64) -> _Batches:
        """The batches with these indexes."""
        return _Batches(*(vector[indexes] for vector in self))


class Overlaps:
    """Finds batches that are in several files of one log. A file is read only if offsets show that files overlap."""

    def __init__(self, segments: Sequence[SegmentFile]) -> None:
        self._segments = segments
        self._known: dict[SegmentFile, _Batches] = {}
        self._covered: dict[SegmentFile, int] = {}

    def also_in_later_files(self, segment: SegmentFile, heads: Heads, entries: INT64) -> FLAGS:
        """Flags for the entries of `segment` that later files also contain, because a cleaner copied them.

        The name of the next file shows that the offsets of `entries` are too high for `segment`. An entry between two
        entries that were found counts too; the caller checks its CRC.
        """
        offsets = heads.offset[entries]
        here = _batches(heads).chosen(entries)
        highest = -1
        for other in self._segments[self._segments.index(segment) + 1 :]:
            if other.base_offset is not None and other.base_offset <= offsets.max():
                common = offsets[_same(here, self._batches_of(other))]
                highest = max(highest, int(common.max())) if len(common) else highest
        found: FLAGS = offsets <= highest
        if found.any():
            covered = int(heads.last_offset[entries[found]].max())
            self._covered[segment] = max(self._covered.get(segment, -1), covered)
        return found

    def were_given(self, segment: SegmentFile, heads: Heads, entries: INT64, up_to: int) -> FLAGS:
        """Flags for the entries of `segment` that an earlier file already delivered. `up_to` is the highest delivered
        offset.

        Records that a cleaner removed from the earlier file count as delivered, because later records replace them.
        """
        earlier = self._segments[: self._segments.index(segment)]
        covered = max((self._covered.get(other, -1) for other in earlier), default=-1)
        given: FLAGS = heads.last_offset[entries] <= covered
        doubtful = np.flatnonzero(~given & (heads.offset[entries] <= up_to))
        if len(doubtful):
            here = _batches(heads).chosen(entries[doubtful])
            for other in earlier:
                there = self._batches_of(other)
                given[doubtful] |= _same(here, there) & np.isin(here.crc, there.crc)
        return given

    def _batches_of(self, segment: SegmentFile) -> _Batches:
        if segment not in self._known:
            parts = [_batches(Heads(chunk)) for chunk in read_chunks(segment, True, _ignore)]
            empty = np.zeros(0, np.int64)
            joined = _Batches(*map(np.concatenate, zip(*parts, strict=True))) if parts else _Batches(*[empty] * 7)
            self._known[segment] = joined.chosen(np.argsort(joined.offset, kind="stable"))
        return self._known[segment]


def _ignore(finding: Finding) -> None:
    """Ignore a finding, because it is reported when the records of the file are read."""


def _batches(heads: Heads) -> _Batches:
    # The cleaner's second pass marks a batch, which changes its CRC. The other fields still identify the batch.
    is_marked = (heads.attributes & _DELETE_HORIZON) != 0
    return _Batches(
        heads.offset,
        heads.last_offset,
        heads.producer_id,
        heads.producer_epoch,
        heads.base_sequence,
        np.where(is_marked, -1, heads.count),
        heads.stored_crc,
    )


def _same(here: _Batches, there: _Batches) -> FLAGS:
    """Flags for the batches of `here` that are also in `there`, possibly without records that the cleaner has since
    removed."""
    if not len(there.offset):
        return np.zeros(len(here.offset), np.bool_)
    places = np.minimum(np.searchsorted(there.offset, here.offset), len(there.offset) - 1)
    at = there.chosen(places)
    same: FLAGS = (here.offset == at.offset) & (here.last_offset == at.last_offset)
    same &= (here.producer_id == at.producer_id) & (here.producer_epoch == at.producer_epoch)
    same &= here.base_sequence == at.base_sequence
    same &= (here.crc == at.crc) | (here.records < at.records)
    return same
