"""Reads record sets as brokers send them: bytes of a log that start with the batch that contains a requested offset.

A record set is a piece of a segment file, and usually ends in the middle of a batch. The same code reads it as reads
files (entries, checksums, offsets, blocks), so damage and control records are detected. If a batch at the end of a
piece cannot be judged yet, it is left for the next piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BytesIO
from typing import Any, Final, cast

import numpy as np

from kafka_records_engine.findings import Finding, OnFinding
from kafka_records_engine.log.files.discovery import METADATA_TOPIC
from kafka_records_engine.log.files.opened import LogFile, OpenLog, SegmentFile
from kafka_records_engine.log.reading._blocks import BlockReader
from kafka_records_engine.log.reading._heads import Heads
from kafka_records_engine.log.reading._resync import BatchSearch
from kafka_records_engine.log.reading._scanning import PAD, Chunk, entries_of, nonsense_at, right_crcs
from kafka_records_engine.log.reading._suspects import Suspects
from kafka_records_engine.log.reading._transaction_index import Holes, OnHole
from kafka_records_engine.log.reading._vetting import Vetted
from kafka_records_engine.log.reading.raw_rows import RowColumns

_KEPT: Final = 1000
"""The maximum number of batches to remember because of a finding about them."""


class _Held(BytesIO):
    """Bytes in memory, with the attributes of a FrozenFile that log readers use."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.size = self.furthest = len(data)


class RecordSets:
    """Turns the record sets of one log partition, in the order of their offsets, into rows.

    Parameters
    ----------
    columns
        Names of columns of RAW_SCHEMA.
    on_finding
        Called with the damage in the bytes. The `file` of a finding is the `place` argument of `take`.
    on_hole
        As for `reading.read_partition`.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        columns: Sequence[str] | None,
        on_finding: OnFinding,
        on_hole: OnHole,
    ) -> None:
        self._topic, self._partition = topic, partition
        self._made = RowColumns(topic, partition, 0, columns, None)
        self._on_finding = on_finding
        self._last = -1
        self._holes = Holes(on_hole)
        self._told: dict[tuple[int | None, int], int] = {}
        """Recent findings: for each batch, the record set in which the finding was made."""
        self._number = self._news = self._repeats = 0

    def add_hole(self, after: int) -> None:
        """Record that there are unread records after this offset."""
        self._holes.seen(after)
        self._holes.add_hole()

    def take(self, data: bytes, place: str, position: int, log_end: int) -> Taken:
        """The content of a record set that was fetched at the offset `position` of a log.

        `log_end` is the high watermark in the same response. Batches without a gap between them may extend beyond it,
        because a broker notes the high watermark before it reads the records (`Partition.readRecords`).
        """
        self._number += 1
        self._news = self._repeats = 0
        taken = self._sound(data, place, position, log_end)
        if taken is None:
            taken = self._careful(data, place, position, max(log_end, _end_of_run(data, position)))
        return taken

    # -- nothing wrong -------------------------------------------------------------------------------------------------

    def _sound(self, data: bytes, place: str, position: int, log_end: int) -> Taken | None:
        """The content if there is nothing unusual about it, which is nearly always the case; otherwise None."""
        whole = data + bytes(PAD)
        entries, end = entries_of(whole, 0, len(data))
        if not len(entries) or nonsense_at(whole, end, len(data)) is not None:
            return None
        right = right_crcs(whole, entries, end)
        if not right.all():
            return None
        sizes = np.diff(entries, append=end)
        heads = Heads(Chunk(whole, 0, entries, sizes, right, {}))
        offsets, lasts = heads.offset, heads.last_offset
        if (
            heads.overflows.any()
            or heads.is_old.any()
            or int(lasts[0]) < position
            or int(lasts[-1]) >= log_end
            or not (offsets[1:] > lasts[:-1]).all()
            or not (lasts >= offsets).all()
        ):
            return None
        count = len(entries)
        if count > 1 and int(offsets[-1]) != int(lasts[-2]) + 1:
            # No CRC covers the offset of a batch. Only later batches show whether this offset is damaged or a cleaner
            # removed the records before it. The batch is checked again as the first one of the next record set.
            count -= 1
            heads = Heads(Chunk(whole, 0, entries[:count], sizes[:count], right[:count], {}))
        chunk = Chunk(whole, 0, entries[:count], sizes[:count], right[:count], {})
        vetted = Vetted(chunk, heads, np.arange(count), {})
        self._holes.look_at(vetted)
        rest = len(data) - end if count == len(entries) else 0
        return Taken(int(lasts[count - 1]) + 1, self._rows([vetted], place), rest=rest)

    def _rows(self, chunks: list[Vetted], place: str) -> Iterator[Any]:
        reader = BlockReader(place, None, self._tell, of_quorum=self._topic == METADATA_TOPIC)
        for vetted in chunks:
            for block in reader.blocks(vetted):
                yield self._made.record_batch(block, vetted.chunk, 0)

    # -- something is odd ----------------------------------------------------------------------------------------------

    def _careful(self, data: bytes, place: str, position: int, log_end: int) -> Taken:
        kept = _without_cut(data)
        data, rest = kept, len(data) - len(kept)
        if not data:
            return Taken(None, iter(()), is_cut=True, rest=rest)
        held = SegmentFile(place, None, cast(LogFile, _Held(data)), size=len(data))
        log = OpenLog(self._topic, self._partition, (held,), is_part=True, end=log_end)
        chunks: list[Vetted] = []
        behind = None
        for _, vetted in self._holes.watched(log, self._tell):
            chunks.append(_from(vetted, position))
            if len(chunks[-1].usable):
                behind = int(vetted.heads.last_offset[chunks[-1].usable].max()) + 1
        return Taken(
            behind, self._rows(chunks, place), is_cut=behind is None and not self._news + self._repeats, rest=rest
        )

    def _tell(self, found: Finding) -> None:
        """Report a finding unless it was already reported for an earlier record set with the same batch."""
        what = found.base_offset, found.bytes
        if self._told.get(what, self._number) != self._number:
            self._repeats += 1
            return
        self._told[what] = self._number
        self._news += 1
        if len(self._told) > _KEPT:
            del self._told[next(iter(self._told))]
        self._on_finding(found)


class Taken:
    """The content of a record set.

    `rows` yields record batches. `behind` is the offset to continue from. It is None if no batch could be used;
    `is_cut` then says whether the fetch requested too few bytes. `rest` is the number of bytes after the last complete
    batch, which are the beginning of the next one.
    """

    __slots__ = ("behind", "is_cut", "rest", "rows")

    def __init__(self, behind: int | None, rows: Iterator[Any], *, is_cut: bool = False, rest: int = 0) -> None:
        self.rest = rest
        self.behind = behind
        self.rows = rows
        self.is_cut = is_cut


def _end_of_run(data: bytes, position: int) -> int:
    """The end of the sequence of batches that starts at `position`, without gaps and with correct CRCs."""
    whole = data + bytes(PAD)
    entries, end = entries_of(whole, 0, len(data))
    right = right_crcs(whole, entries, end)
    heads = Heads(Chunk(whole, 0, entries, np.diff(entries, append=end), right, {}))
    for offset, last, is_right in zip(heads.offset.tolist(), heads.last_offset.tolist(), right.tolist(), strict=True):
        if not is_right or offset > position:
            break
        position = max(position, last + 1)
    return position


def _without_cut(data: bytes) -> bytes:
    """A record set without the last batch, which the byte limit cut off; the broker sends that batch again.

    A batch whose size exceeds the remaining bytes counts as damaged rather than cut off if sound batches follow it, or
    if nothing precedes it and its bytes are not the beginning of a batch.
    """
    whole, held = data + bytes(PAD), BytesIO(data)
    suspects = Suspects(held, None, BatchSearch(held, None), is_last=True)
    _, end = entries_of(whole, 0, len(data))
    while end < len(data) and nonsense_at(whole, end, len(data)) is None:
        found = suspects.next_behind(end)
        if found is None:
            return data if not end and suspects.cut_at(end) is None else data[:end]
        _, end = entries_of(whole, found.position, len(data))
    return data


def _from(vetted: Vetted, position: int) -> Vetted:
    """Drop batches before an offset, which were already delivered. A broker that searches for an offset may start too
    early if a batch has a damaged offset."""
    usable = vetted.usable
    wanted = usable[vetted.heads.last_offset[usable] >= position]
    return Vetted(vetted.chunk, vetted.heads, wanted, vetted.findings, vetted.repeated)
