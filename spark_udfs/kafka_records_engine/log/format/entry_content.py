"""Parses the content of an entry after its header: keys and values record by record, or the frames of its codec.

No CRC covers the size of an entry. If that size is wrong, the content of the entry still answers two questions. Does a
batch that starts later belong to the value of one of the entry's records (because a log was stored in a log)? Are the
last bytes of a file a truncated append, that is, only the beginning of a batch? For damaged content, both answers are
no: its records either cannot be parsed or are all there.
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
"""The size in bytes, including the size field, of a record without key, value and headers."""
_CODEC_AT: Final = 22
"""The byte of a batch that contains the codec in its lowest bits."""
_FAR: Final = 1 << 62
_BIG_INT: Final = Struct(">i")
_MOST_DECODED: Final = 64 * 1024 * 1024
"""The maximum number of bytes to decompress in order to count the records of a snappy stream, which has no end
marker."""


class _Record(NamedTuple):
    end: int
    """The byte at which the record ends. If the record `is_cut`, this may be an estimate that is never too high."""
    delta: int | None
    """The offset of the record minus that of the batch; None if these bytes are missing."""
    fields: tuple[tuple[int, int], ...]
    """Start and end of key and value, if they fit into the record."""
    is_cut: bool = False


class _BrokenError(Exception):
    """The bytes are not a valid record."""


class EntryContent:
    """Parses the content of the entry that starts at byte `start` of a file, and never reads beyond byte `end`."""

    def __init__(self, file: Readable, start: int, end: int, spend: Callable[[int], bool]) -> None:
        """`spend` is called with the number of bytes that were parsed. If it returns False, the rest of the entry
        counts as broken."""
        self.start = start
        self._file = file
        self._window = Window(file, end)
        self._spend = spend
        self._extent: Extent | None = None
        self._counted: Extent | None = None
        """The extent of the number of records in the header, once they are parsed."""
        self._range = (-1, -1)
        self._least_end = start
        """According to its records, the entry cannot end before this byte."""
        self._may_go_on = True
        """Whether records may be missing, according to the numbers in the header."""
        self._ranges = self._followed()

    def covers(self, start: int, end: int) -> bool | None:
        """Whether the bytes from `start` to `end` are part of a single value or key, or of the compressed records. None
        if the content cannot be parsed that far. The record count in the header does not matter. Each call must be
        about later bytes than the previous one."""
        while self._range[1] < end:
            found = next(self._ranges, None)
            if found is None:
                assert self._extent is not None
                ends_before = self._extent.state == "whole" or self._extent.end == start
                return False if ends_before else None
            self._range = found
        return True if self._range[0] <= start else None

    def extent(self) -> Extent:
        """The extent of the number of records in the header."""
        while self._counted is None and self._extent is None:
            self._range = next(self._ranges, self._range)
        found = self._counted or self._extent
        assert found is not None
        return found

    def is_beginning(self) -> bool:
        """Whether the bytes are the beginning, and only the beginning, of an entry of the size in its header."""
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
        """The start and end of each part of the content that can contain arbitrary bytes."""
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
        # A magic other than 2 may be a damaged 2. If so, the content can be parsed as records of a batch; otherwise,
        # parsing fails early.
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
        """Note what follows from the `left` missing records. The first of them is truncated (`record`); the last offset
        delta before it is `last`."""
        deltas = batch.last_offset - batch.offset
        delta = last + 1 if record.delta is None else record.delta
        self._least_end = max(record.end, at + _SMALLEST_RECORD) + (left - 1) * _SMALLEST_RECORD
        self._may_go_on = delta + left - 1 <= deltas and (batch.count or 0) <= deltas + 1

    def _record(self, at: int) -> _Record:
        """Parse the record at byte `at`. Raises _BrokenError."""
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
            # A truncated record without its headers is accepted only if it ends exactly with its value.
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
        """The zigzag varint at `at`, and the position after it. Raises _BrokenError if it does not end before `stop`,
        or CutError if the file ends first."""
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
            # A value in the compressed records may contain a verbatim copy of a batch. A stream without its end may be
            # damaged.
            yield at, extent.end

    def _state_by_records(self, at: int) -> ExtentState:
        """The state of a stream without an end marker, judged by the records that can be read from it."""
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
        # A message ends exactly with its value. If its size does not match those of key and value, one of the three is
        # damaged.
        self._may_go_on = least == claimed
        self._extent = Extent(at, "whole") if at <= self._window.end else Extent(self._window.end, "cut")
        if self._may_go_on:
            yield from ranges
