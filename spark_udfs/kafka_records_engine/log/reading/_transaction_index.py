"""Finds how the transactions in a log partition ended, and where unreadable bytes may hide their outcome.

The outcome of a transaction is decided by the next control marker of its producer in the same partition. Only the
producer id is compared (`OffsetMetadataManager.replayEndTransactionMarker`; KIP-98). The marker may be in a later file,
so a reader that needs the outcome earlier has to collect all markers first.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Final, Literal

import numpy as np

from kafka_records_engine.findings import Finding, OnFinding
from kafka_records_engine.log.files.opened import OpenLog, SegmentFile
from kafka_records_engine.log.format.batches import (
    RECORDS_AT,
    BatchHead,
    BrokenRecordsError,
    read_head,
    read_records,
    record_bytes,
)
from kafka_records_engine.log.format.control_records import ControlMarker, read_marker
from kafka_records_engine.log.reading._scanning import Chunk
from kafka_records_engine.log.reading._vetting import Vetted, read_vetted
from kafka_records_engine.numpy_types import FLAGS, INT64

Transaction = Literal["none", "committed", "aborted", "open", "unknown", "pending"]

TRANSACTIONS: Final[tuple[Transaction, ...]] = ("none", "committed", "aborted", "open", "unknown", "pending")
"""- none: the record is not part of a transaction.
- committed, aborted: its marker was read.
- open: the log ends before a marker.
- unknown: unreadable bytes, or files that were not requested, may hide the marker.
- pending: the record is part of a transaction whose outcome is in the next control record of the producer."""

OnHole = Callable[[int], None]
"""Called for each unreadable place, because a marker may be missing there. The argument is the last offset before that
place; -1 at the very start."""

_PLAIN_MARKER: Final = bytes.fromhex("20 00 00 00 08 0000 0000 0c 0000 00000000 00")
"""The only record of a marker as brokers write it, with type 0 (abort) and coordinator epoch 0."""
_PLAIN_SIZE: Final = RECORDS_AT + len(_PLAIN_MARKER)
_TYPE_AT: Final = 8
_FIXED: Final = np.array([at for at in range(len(_PLAIN_MARKER)) if at != _TYPE_AT and not 12 <= at < 16])
_FIXED_BYTES: Final = np.frombuffer(_PLAIN_MARKER, np.uint8)[_FIXED]


class Holes:
    """Observes the reading of a log, and calls `on_hole` for each unreadable place that may hide a marker."""

    def __init__(self, on_hole: OnHole) -> None:
        self._on_hole = on_hole
        self._last = -1
        self._told: int | None = None

    def add_hole(self) -> None:
        """Record that an unreadable region follows the records seen so far."""
        if self._told != self._last:
            self._told = self._last
            self._on_hole(self._last)

    def seen(self, last_offset: int) -> None:
        """Record that everything up to this offset was readable, except where a hole was added."""
        self._last = max(self._last, last_offset)

    def watched(self, log: OpenLog, on_finding: OnFinding) -> Iterator[tuple[SegmentFile, Vetted]]:
        """The chunks of all files of a log (`read_vetted`). A hole is reported before any later chunk is returned."""

        def watch(finding: Finding) -> None:
            if finding.severity == "damage":
                self.add_hole()
            on_finding(finding)

        reached = 0
        for segment, vetted in read_vetted(log, watch):
            behind = log.segments.index(segment) + 1
            if any(each.hole_before for each in log.segments[reached:behind]):
                self.add_hole()
            reached = behind
            self.look_at(vetted)
            yield segment, vetted
        if log.ends_early or any(each.hole_before for each in log.segments[reached:]):
            self.add_hole()

    def look_at(self, vetted: Vetted) -> None:
        heads = vetted.heads
        is_usable = np.zeros(len(heads.offset), np.bool_)
        is_usable[vetted.usable] = True
        is_usable[vetted.repeated] = True
        control = np.flatnonzero(heads.is_control & is_usable)
        is_plain = _are_plain(vetted, control)
        self._add_plain_markers(vetted, control[is_plain])
        behind = np.maximum.accumulate(np.where(is_usable, heads.last_offset, -1))
        odd = ~is_usable
        odd[control[~is_plain]] = True
        for at in np.flatnonzero(odd).tolist():
            if at:
                self.seen(int(behind[at - 1]))
            if not is_usable[at] or not self._read_control_batch(vetted.chunk, at):
                self.add_hole()
        self.seen(int(behind[-1]))

    def _read_control_batch(self, chunk: Chunk, at: int) -> bool:
        """Read the markers of a control batch. Returns whether it could be read to its end."""
        start = int(chunk.entries[at])
        entry = chunk.data[start : start + int(chunk.sizes[at])]
        batch = read_head(entry, 0, 0)
        content = record_bytes(batch, entry)
        decided = False
        try:
            for record in read_records(batch, content.data):
                marker = read_marker(record.key, record.value)
                # Only the first marker decides the open transaction: `CoordinatorLoaderImpl` replays markers in order.
                if not decided and marker.control is not None:
                    self._add_marker(record.offset, batch, marker)
                    decided = True
        except BrokenRecordsError:
            return False
        return content.failure is None

    def _add_marker(self, offset: int, batch: BatchHead, marker: ControlMarker) -> None:
        """Do nothing, because this class only checks whether markers can be read."""

    def _add_plain_markers(self, vetted: Vetted, entries: INT64) -> None:
        """Do nothing, like `_add_marker`, for many markers at once."""


class TransactionIndex(Holes):
    """The markers of one log partition, and the places where one may be missing.

    The first call of `state` collects the markers in a separate pass over all files of `log`. Whether a log has
    transactions is not known earlier, because the header that would show it may be damaged.
    """

    def __init__(self, log: OpenLog | None = None) -> None:
        self._not_looked_up = log
        self._markers: dict[int, list[tuple[int, Transaction]]] = {}
        self._holes: list[int] = []
        super().__init__(self._holes.append)

    def add_marker(self, offset: int, producer_id: int, ended: Transaction) -> None:
        insort(self._markers.setdefault(producer_id, []), (offset, ended))

    def state(self, producer_id: int, offset: int) -> Transaction:
        """The outcome of the transaction that the producer had open at `offset`."""
        if self._not_looked_up is not None:
            log, self._not_looked_up = self._not_looked_up, None
            for _ in self.watched(log, _ignore):
                pass
        markers = self._markers.get(producer_id, [])
        at = bisect_right(markers, offset, key=itemgetter(0))
        hole = bisect_left(self._holes, offset)
        if hole < len(self._holes) and (at == len(markers) or self._holes[hole] < markers[at][0]):
            return "unknown"
        return markers[at][1] if at < len(markers) else "open"

    def _add_marker(self, offset: int, batch: BatchHead, marker: ControlMarker) -> None:
        self.add_marker(offset, batch.producer_id, "committed" if marker.control == "commit" else "aborted")

    def _add_plain_markers(self, vetted: Vetted, entries: INT64) -> None:
        offsets, producers = vetted.heads.offset[entries].tolist(), vetted.heads.producer_id[entries].tolist()
        types = np.frombuffer(vetted.chunk.data, np.uint8)[vetted.chunk.entries[entries] + RECORDS_AT + _TYPE_AT]
        for offset, producer, is_commit in zip(offsets, producers, types.tolist(), strict=True):
            self.add_marker(offset, producer, "committed" if is_commit else "aborted")


def _ignore(finding: Finding) -> None:
    """Ignore a finding, because it is reported when the records are read."""


def _are_plain(vetted: Vetted, entries: INT64) -> FLAGS:
    """Flags for control batches that contain one marker in exactly the bytes that brokers write, so they need not be
    parsed."""
    chunk, heads = vetted.chunk, vetted.heads
    plain: FLAGS = (
        (chunk.sizes[entries] == _PLAIN_SIZE)
        & (heads.magic[entries] == 2)
        & (heads.codec[entries] == 0)
        & (heads.count[entries] == 1)
    )
    starts = chunk.entries[entries[plain]] + RECORDS_AT
    data = np.frombuffer(chunk.data, np.uint8)
    right = (data[starts[:, None] + _FIXED] == _FIXED_BYTES).all(axis=1) & (data[starts + _TYPE_AT] <= 1)
    plain[plain] = right
    return plain
