"""The content of an entry, followed from its head on: keys and values record by record, or the frames of its codec.

No CRC covers the size of an entry, and where it is wrong two questions remain that its content answers. Is a batch that
starts further on the value of one of its records, as when somebody saved a log in a log? And are the last bytes of a
file an append that was cut short, so the beginning of a batch and not all of it? What is damaged gives neither: its
records break off, or they are all there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from struct import Struct
from typing import Final, NamedTuple

from kafka_records_engine.log.files.opened import Readable
from kafka_records_engine.log.format.batches import (
    ENTRY_HEAD,
    MESSAGES_AT,
    RECORDS_AT,
    SMALLEST_SIZES,
    BatchHead,
    read_head,
)
from kafka_records_engine.log.format.compression import decompress
from kafka_records_engine.log.format.stream_ends import CutError, Extent, ExtentState, Window, stream_extent

_TO_MAGIC: Final = 17
_SMALLEST_RECORD: Final = 7
"""Bytes of a record without key, value and headers, its size included."""
_CODEC_AT: Final = 22
"""The byte of a batch that has the codec in its lowest bits."""
_FAR: Final = 1 << 62
_BIG_INT: Final = Struct(">i")
_MOST_DECODED: Final = 64 * 1024 * 1024
"""Of a snappy stream that has no end of its own, at most N bytes are decompressed to count its records."""


class _Record(NamedTuple):
    end: int
    """Where it ends; if it `is_cut` that may be an estimate, which is not too high."""
    delta: int | None
    """Its offset, counted from that of the batch; None if these bytes are missing."""
    fields: tuple[tuple[int, int], ...]
    """Where key and value start and end, if the whole record fits them."""
    is_cut: bool = False


class _BrokenError(Exception):
    """No record can have these bytes."""


class EntryContent:
    """Follows the content of the entry at byte `start` of a file up to byte `end`, and not one byte further."""

    def __init__(self, file: Readable, start: int, end: int, spend: Callable[[int], bool]) -> None:
        """`spend` is told how many bytes were followed; if it returns False, the rest counts as broken."""
        self.start = start
        self._file = file
        self._window = Window(file, end)
        self._spend = spend
        self._extent: Extent | None = None
        self._counted: Extent | None = None
        """How far as many records go as the head counts, once they are passed."""
        self._range = (-1, -1)
        self._least_end = start
        """The entry cannot end before this byte, by its records."""
        self._may_go_on = True
        """Whether the numbers in the head allow that records are missing."""
        self._ranges = self._followed()

    def covers(self, start: int, end: int) -> bool | None:
        """Whether the bytes from `start` to `end` are part of one value, one key or the compressed records; None if the
        content breaks off before them. The number of records in the head does not matter. Calls have to ask about later
        and later bytes."""
        while self._range[1] < end:
            found = next(self._ranges, None)
            if found is None:
                assert self._extent is not None
                ends_before = self._extent.state == "whole" or self._extent.end == start
                return False if ends_before else None
            self._range = found
        return True if self._range[0] <= start else None

    def extent(self) -> Extent:
        """The end of the records that the header counts."""
        while self._counted is None and self._extent is None:
            self._range = next(self._ranges, self._range)
        found = self._counted or self._extent
        assert found is not None
        return found

    def is_beginning(self) -> bool:
        """Whether the bytes are the beginning of an entry of the size that its head says, and not all of it."""
        if self.extent().state != "cut" or not self._may_go_on:
            return False
        head = self._window.take(self.start, _TO_MAGIC)
        if len(head) < ENTRY_HEAD:
            return True
        size = int(_BIG_INT.unpack_from(head, 8)[0])
        magic = head[-1] if len(head) == _TO_MAGIC else 0
        if magic > 2 or size < SMALLEST_SIZES[magic]:
            return False
        return max(self._least_end, self._window.end + 1) <= self.start + ENTRY_HEAD + size

    # -- the head ------------------------------------------------------------------------------------------------------

    def _followed(self) -> Iterator[tuple[int, int]]:
        """Where the parts of the content start and end, each of which can hold anything."""
        head = self._window.take(self.start, RECORDS_AT)
        if len(head) < _TO_MAGIC:
            self._extent = Extent(self._window.end, "cut")
            return
        magic = head[_TO_MAGIC - 1]
        if magic < 2:
            yield from self._message(head, magic)
            return
        if len(head) < RECORDS_AT:
            self._extent = Extent(self._window.end, "cut")
            return
        # A different magic may be damage. Then the content parses as records of a batch, or breaks off early.
        batch = read_head(head[: _TO_MAGIC - 1] + b"\x02" + head[_TO_MAGIC:], 0, self.start)
        if batch.codec:
            yield from self._stream(batch)
        else:
            yield from self._records(batch)

    # -- records of magic 2 --------------------------------------------------------------------------------------------

    def _records(self, batch: BatchHead) -> Iterator[tuple[int, int]]:
        at, last, count = self.start + RECORDS_AT, -1, batch.count or 0
        done = 0
        while self._extent is None:
            if done == count:
                self._counted = Extent(at, "whole")
            try:
                record = self._record(at) if at < self._window.end else _Record(at, None, (), is_cut=True)
                if (record.delta is not None and record.delta <= last) or not self._spend(record.end - at):
                    raise _BrokenError
            except _BrokenError:
                self._extent = Extent(at, "broken")
                return
            if record.is_cut:
                self._check_rest(batch, record, at, last, count - done)
                self._extent = Extent(self._window.end, "cut")
            else:
                at, last, done = record.end, last + 1 if record.delta is None else record.delta, done + 1
            yield from record.fields

    def _check_rest(self, batch: BatchHead, record: _Record, at: int, last: int, left: int) -> None:
        """Note what follows from `left` records, the first of which is cut at `record`, after one with offset delta
        `last`."""
        deltas = batch.last_offset - batch.offset
        delta = last + 1 if record.delta is None else record.delta
        self._least_end = max(record.end, at + _SMALLEST_RECORD) + (left - 1) * _SMALLEST_RECORD
        self._may_go_on = delta + left - 1 <= deltas and (batch.count or 0) <= deltas + 1

    def _record(self, at: int) -> _Record:
        """The record at byte `at`. Raises _BrokenError."""
        stop, delta = at, None
        fields: tuple[tuple[int, int], ...] = ()
        try:
            size, here = self._number(at, _FAR)
            if size < _SMALLEST_RECORD - 1:
                raise _BrokenError
            stop = here + size
            _, here = self._number(here + 1, stop, 10)
            delta, here = self._number(here, stop)
            key_size, key_at = self._number(here, stop)
            key_end = key_at + max(key_size, 0)
            value_size, value_at = self._number(key_end, stop)
            value_end = value_at + max(value_size, 0)
            if value_end >= stop:
                raise _BrokenError
            fields = (key_at, key_end), (value_at, value_end)
            here = self._behind_headers(value_end, stop)
        except CutError:
            # A truncated record without its headers is accepted only if its value fills it exactly.
            fields = fields if fields and fields[1][1] + 1 == stop else ()
            return _Record(stop, delta, fields, is_cut=True)
        if here != stop or delta is None:
            raise _BrokenError
        return _Record(stop, delta, fields)

    def _behind_headers(self, at: int, stop: int) -> int:
        count, at = self._number(at, stop)
        if count < 0:
            raise _BrokenError
        for _ in range(count):
            size, at = self._number(at, stop)
            if size < 0:
                raise _BrokenError
            size, at = self._number(at + size, stop)
            at += max(size, 0)
        return at

    def _number(self, at: int, stop: int, longest: int = 5) -> tuple[int, int]:
        """The zigzag varint at `at`, and where it ends. Raises _BrokenError if it does not end before `stop`, and
        CutError."""
        value = 0
        for number in range(longest):
            if at + number >= stop:
                raise _BrokenError
            byte = self._window.byte(at + number)
            value |= (byte & 0x7F) << 7 * number
            if byte < 0x80:
                return (value >> 1) ^ -(value & 1), at + number + 1
        raise _BrokenError

    # -- compressed records --------------------------------------------------------------------------------------------

    def _stream(self, batch: BatchHead) -> Iterator[tuple[int, int]]:
        at = self.start + RECORDS_AT
        extent = stream_extent(batch.codec, self._window, at, self._spend) if at < self._window.end else None
        if extent is None:
            self._extent = Extent(at, "cut" if batch.count else "whole")
            return
        if batch.codec == 2 and extent.state == "cut":
            extent = extent._replace(state=self._state_by_records(at))
        self._least_end = extent.end + 1
        self._extent = extent
        if extent.state == "whole":
            # A record's value may contain bytes that a codec copies verbatim. A stream without its end may be damaged
            # or not.
            yield at, extent.end

    def _state_by_records(self, at: int) -> ExtentState:
        """The state of a stream without an end of its own, by the records that come out of it."""
        size = self._window.end - at
        if size > _MOST_DECODED or not self._spend(size):
            return "broken"
        self._file.seek(at)
        found = decompress(2, self._file.read(size), limit=_MOST_DECODED)
        if found.failure is not None:
            return "cut"
        head = bytearray(self._window.take(self.start, RECORDS_AT))
        head[_CODEC_AT] &= ~0x07
        records = EntryContent(BytesIO(head + found.data), 0, len(head) + len(found.data), self._spend)
        state = records.extent().state
        return "whole" if state == "cut" and not records._may_go_on else state

    # -- older messages ------------------------------------------------------------------------------------------------

    def _message(self, head: bytes, magic: int) -> Iterator[tuple[int, int]]:
        at = self.start + MESSAGES_AT[magic]
        ranges: list[tuple[int, int]] = []
        claimed = ENTRY_HEAD + int(_BIG_INT.unpack_from(head, 8)[0])
        least = MESSAGES_AT[magic] + 8
        try:
            for _ in ("key", "value"):
                size = max(int(_BIG_INT.unpack(self._window.exactly(at, 4))[0]), 0)
                ranges.append((at + 4, at + 4 + size))
                least += size
                self._least_end = self.start + least
                at += 4 + size
        except CutError:
            self._extent = Extent(self._window.end, "cut")
            return
        # Key and value fill a message exactly: if its size says otherwise, one of the three is damaged.
        self._may_go_on = least == claimed
        self._extent = Extent(at, "whole") if at <= self._window.end else Extent(self._window.end, "cut")
        if self._may_go_on:
            yield from ranges
