"""Entries of a log segment: the headers of record batches and of older messages, and the records inside them.

Everything here reads one entry at a time. It is the reference for the vectorized module `_blocks`, which must return
the same records or pass the entry to this module.

Layouts: KIP-98 and `DefaultRecordBatch`, `DefaultRecord` for magic 2; KIP-31, KIP-32 and `LegacyRecord`,
`AbstractLegacyRecordBatch` for magic 0 and 1. All numbers are big-endian.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, Literal, NamedTuple

from kafka_records_engine.log.format.compression import CODECS, Decompressed, decompress
from kafka_records_engine.log.format.crc import crc32, crc32c
from kafka_records_engine.log.format.varints import VarintError, read_varint, read_varlong
from kafka_records_runtime.errors import KafkaRecordsError, plural

TimestampType = Literal["create", "log_append"]

ENTRY_HEAD: Final = 12
"""Every entry starts with an int64 offset and an int32 size, which counts the bytes after these 12."""

SMALLEST_SIZES: Final = (14, 22, 49)
"""The smallest possible size field for magic 0, 1 and 2."""

RECORDS_AT: Final = 61
"""Where the records of a magic 2 batch start, counted from the start of the entry."""

LARGEST_OFFSET: Final = (1 << 63) - 1

MESSAGES_AT: Final = (18, 26)
"""Where key and value start in a message with magic 0 and with magic 1."""

_BATCH: Final = Struct(">qiiBIhiqqqhii")
_MESSAGE: Final = Struct(">qiIBb")
_LONG: Final = Struct(">q")
_INT: Final = Struct(">i")
_MESSAGE_HEAD: Final = _MESSAGE.size


@dataclass(frozen=True, slots=True)
class BatchHead:
    """The header of one entry. A field that the format does not have is -1, as in Kafka.

    `offset` is the number at the start of the entry: the base offset of a magic 2 batch, the offset of an older
    message, and the *last* offset of an older wrapper of compressed messages. `count` is None for such a wrapper,
    because the wrapper does not contain it.
    """

    position: int
    """The byte in the file where the entry starts."""
    size: int
    """The size of the whole entry in bytes, including the first 12."""
    magic: int
    offset: int
    last_offset: int
    attributes: int
    crc: int
    count: int | None
    base_timestamp: int
    """The number to which the timestamp deltas of records are added. If attribute bit 6 is set, it is the delete
    horizon."""
    max_timestamp: int
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1

    @property
    def codec(self) -> int:
        return self.attributes & 0x07

    @property
    def codec_name(self) -> str:
        return CODECS[self.codec] if self.codec < len(CODECS) else f"codec {self.codec}"

    @property
    def timestamp_type(self) -> TimestampType | None:
        """The timestamp type; None for magic 0, which has no timestamps."""
        if self.magic == 0:
            return None
        return "log_append" if self.attributes & 0x08 else "create"

    @property
    def is_transactional(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return self.magic >= 2 and bool(self.attributes & 0x20)

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time at which the cleaner may drop the tombstones and markers of this batch; None before its
        first pass."""
        return self.base_timestamp if self.magic >= 2 and self.attributes & 0x40 else None

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record, or -1. After the largest int32, sequence numbers restart at 0."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset - self.offset) & 0x7FFFFFFF


class Header(NamedTuple):
    """A record header: its key as text (malformed UTF-8 is replaced, as in Kafka) and its value, which is bytes or
    null."""

    key: str
    value: bytes | None


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One record as Kafka's own consumer would return it. `timestamp_ms` is -1 for magic 0."""

    offset: int
    timestamp_ms: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class Span(NamedTuple):
    """The positions of a record and its fields in the record bytes of its batch. The size of a null key or
    value is -1."""

    offset: int
    timestamp_ms: int
    sequence: int
    key_at: int
    key_size: int
    value_at: int
    value_size: int
    headers_at: int
    header_count: int


class BrokenRecordsError(KafkaRecordsError, ValueError):
    """The record bytes of a batch cannot be read any further. `detail` says where and why; `at` is the index in these
    bytes where the first unread record starts."""

    def __init__(self, detail: str, at: int = 0) -> None:
        super().__init__(detail, at)
        self.detail = detail
        self.at = at

    def __str__(self) -> str:
        return self.detail


# -- heads -------------------------------------------------------------------------------------------------------------


def read_head(data: bytes, at: int, position: int) -> BatchHead:
    """Read the header of the entry at index `at` of `data`; `position` is the byte of the file where it starts.

    `data` must contain the whole entry. The magic must be 0, 1 or 2, and the size at least the smallest one of that
    magic."""
    magic = data[at + 16]
    if magic == 2:
        offset, size, epoch, _, crc, attributes, last_delta, base, most, producer, producer_epoch, sequence, count = (
            _BATCH.unpack_from(data, at)
        )
        return BatchHead(
            position=position,
            size=ENTRY_HEAD + size,
            magic=2,
            offset=offset,
            last_offset=offset + last_delta,
            attributes=attributes,
            crc=crc,
            count=count,
            base_timestamp=base,
            max_timestamp=most,
            leader_epoch=epoch,
            producer_id=producer,
            producer_epoch=producer_epoch,
            base_sequence=sequence,
        )
    offset, size, crc, _, attributes = _MESSAGE.unpack_from(data, at)
    timestamp: int = _LONG.unpack_from(data, at + _MESSAGE_HEAD)[0] if magic == 1 else -1
    return BatchHead(
        position=position,
        size=ENTRY_HEAD + size,
        magic=magic,
        offset=offset,
        last_offset=offset,
        attributes=attributes,
        crc=crc,
        count=None if attributes & 0x07 else 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
    )


def computed_crc(magic: int, entry: bytes) -> int:
    """The checksum of the bytes of a whole entry: CRC-32C from byte 21 on, or CRC-32 from byte 16 on."""
    return crc32c(entry[21:]) if magic == 2 else crc32(entry[16:])


def record_bytes(batch: BatchHead, entry: bytes) -> Decompressed:
    """The decompressed bytes of the records. If decompression fails, these are the bytes before the failure."""
    data = entry[RECORDS_AT if batch.magic == 2 else MESSAGES_AT[batch.magic] :]
    if batch.codec == 0:
        return Decompressed(data)
    if batch.codec >= len(CODECS):
        return Decompressed(b"", f"codec {batch.codec} is unknown")
    if batch.magic == 2:
        return decompress(batch.codec, data) if batch.count or data else Decompressed(b"")
    if CODECS[batch.codec] == "zstd":
        return Decompressed(b"", f"zstd cannot be in a message of magic {batch.magic}")
    try:
        *_, at, size = _key_and_value(data, 0, len(data), "the wrapper message")
    except BrokenRecordsError as error:
        return Decompressed(b"", error.detail)
    if size < 0:
        return Decompressed(b"", "the wrapper message has no value")
    return decompress(batch.codec, data[at : at + size], magic=batch.magic)


# -- records -----------------------------------------------------------------------------------------------------------


def read_records(batch: BatchHead, data: bytes) -> Iterator[RawRecord]:
    """The records in the bytes that `record_bytes` returned.

    Yields the records before the first one that cannot be parsed, and then raises BrokenRecordsError.
    """
    for span in record_spans(batch, data):
        yield RawRecord(
            offset=span.offset,
            timestamp_ms=span.timestamp_ms,
            sequence=span.sequence,
            key=None if span.key_size < 0 else data[span.key_at : span.key_at + span.key_size],
            value=None if span.value_size < 0 else data[span.value_at : span.value_at + span.value_size],
            headers=_headers(data, span.headers_at, span.header_count) if span.header_count else (),
        )


def record_spans(batch: BatchHead, data: bytes, done: int = 0, position: int = 0) -> Iterator[Span]:
    """The positions of the records in `data`. Raises BrokenRecordsError like `read_records`.

    For a magic 2 batch, the first `done` records, which end at `position`, are skipped.
    """
    if batch.magic == 2:
        return _batch_spans(batch, data, done, position)
    if batch.codec:
        return _wrapped_spans(batch, data)
    return _message_span(batch, data)


def records_end(entry: bytes, count: int) -> int | None:
    """The index at which `count` records of an uncompressed magic 2 batch end, computed only from their sizes.

    `entry` starts with the batch header. None if the records do not fit into `entry`."""
    at = RECORDS_AT
    try:
        for _ in range(count):
            size, at = read_varint(entry, at, len(entry))
            if not 0 <= size <= len(entry) - at:
                return None
            at += size
    except VarintError:
        return None
    return at


def _batch_spans(batch: BatchHead, data: bytes, done: int, position: int) -> Iterator[Span]:
    count = batch.count or 0
    if count < 0:
        raise BrokenRecordsError(f"the batch claims to have {count} records")
    log_append = batch.timestamp_type == "log_append"
    end = len(data)
    for number in range(done + 1, count + 1):
        name = f"record {number} of {count}"
        start = position
        if start == end:
            raise BrokenRecordsError(f"{name} is missing", start)
        try:
            size, position = read_varint(data, position, end)
            if size < 0 or size > end - position:
                raise BrokenRecordsError(
                    f"{name} claims to have {plural(size, 'byte')}, but {end - position} are left", start
                )
            stop = position + size
            position += 1  # Kafka does not use record attributes yet
            delta, position = read_varlong(data, position, stop)
            offset_delta, position = read_varint(data, position, stop)
            key_at, key_size = _sized(read_varint, data, position, stop, name, "key")
            value_at, value_size = _sized(read_varint, data, key_at + max(key_size, 0), stop, name, "value")
            header_count, headers_at = read_varint(data, value_at + max(value_size, 0), stop)
            position = _after_headers(data, headers_at, stop, header_count, name)
        except VarintError as error:
            raise BrokenRecordsError(f"{name} {error}", start) from error
        except BrokenRecordsError as error:
            error.at = start
            raise
        if position != stop:
            raise BrokenRecordsError(f"{name} has {plural(stop - position, 'byte')} after its last header", start)
        yield Span(
            offset=_log_offset(batch.offset + offset_delta, name, start),
            timestamp_ms=batch.max_timestamp if log_append else _int64(batch.base_timestamp + delta),
            sequence=-1 if batch.base_sequence < 0 else (batch.base_sequence + offset_delta) & 0x7FFFFFFF,
            key_at=key_at,
            key_size=key_size,
            value_at=value_at,
            value_size=value_size,
            headers_at=headers_at,
            header_count=header_count,
        )
    if position != end:
        left = plural(end - position, "byte")
        raise BrokenRecordsError(f"{left} after the last of {plural(count, 'record')}", position)


def _sized(
    read_size: Callable[[bytes, int, int], tuple[int, int]], data: bytes, position: int, stop: int, name: str, what: str
) -> tuple[int, int]:
    """The position and length of a key or value. Any negative length means null, which is returned as -1."""
    size, position = read_size(data, position, stop)
    if size > stop - position:
        raise BrokenRecordsError(f"{name} has a {what} of {plural(size, 'byte')}, but {stop - position} are left")
    return position, max(size, -1)


def _after_headers(data: bytes, position: int, stop: int, count: int, name: str) -> int:
    if count < 0:
        raise BrokenRecordsError(f"{name} claims to have {count} headers")
    for number in range(1, count + 1):
        header = f"{name}, header {number} of {count}"
        at, size = _sized(read_varint, data, position, stop, header, "key")
        if size < 0:
            raise BrokenRecordsError(f"{header} has no key")
        at, size = _sized(read_varint, data, at + size, stop, header, "value")
        position = at + max(size, 0)
    return position


def _headers(data: bytes, position: int, count: int) -> tuple[Header, ...]:
    headers = []
    for _ in range(count):
        size, at = read_varint(data, position, len(data))
        key = data[at : at + size].decode("utf-8", "replace")
        size, position = read_varint(data, at + size, len(data))
        headers.append(Header(key, None if size < 0 else data[position : position + size]))
        position += max(size, 0)
    return tuple(headers)


def _log_offset(value: int, name: str, start: int) -> int:
    """Reject a number that cannot be an offset, although Java lets it overflow."""
    if not 0 <= value <= LARGEST_OFFSET:
        raise BrokenRecordsError(f"{name} has offset {value}", start)
    return value


def _int64(value: int) -> int:
    """The number as an int64, with overflow as in Java."""
    return value if -(1 << 63) <= value < 1 << 63 else (value + (1 << 63)) % (1 << 64) - (1 << 63)


# -- records of magic 0 and 1 ------------------------------------------------------------------------------------------


def _message_span(batch: BatchHead, data: bytes) -> Iterator[Span]:
    key_at, key_size, value_at, value_size = _key_and_value(data, 0, len(data), "the message")
    yield _legacy_span(batch.offset, batch.max_timestamp, key_at, key_size, value_at, value_size)


def _legacy_span(offset: int, timestamp: int, key_at: int, key_size: int, value_at: int, value_size: int) -> Span:
    return Span(offset, timestamp, -1, key_at, key_size, value_at, value_size, 0, 0)


def _key_and_value(data: bytes, position: int, stop: int, name: str) -> tuple[int, int, int, int]:
    key_at, key_size = _sized(_read_int32, data, position, stop, name, "key")
    value_at, value_size = _sized(_read_int32, data, key_at + max(key_size, 0), stop, name, "value")
    left = stop - value_at - max(value_size, 0)
    if left:
        raise BrokenRecordsError(f"{name} has {plural(left, 'byte')} after its value")
    return key_at, key_size, value_at, value_size


def _read_int32(data: bytes, position: int, stop: int) -> tuple[int, int]:
    if stop - position < 4:
        raise BrokenRecordsError(f"a length needs 4 bytes, but {max(stop - position, 0)} are left")
    value: int = _INT.unpack_from(data, position)[0]
    return value, position + 4


def _wrapped_spans(batch: BatchHead, data: bytes) -> Iterator[Span]:
    """The messages inside a wrapper.

    With magic 0, each message contains its log offset. With magic 1, the offsets are relative to the first message, and
    the wrapper has the offset of the *last* one, so offsets are known only after the last message has been read. A
    wrapper with offset 0 was written by a version of librdkafka that did not set it; its messages have offsets starting
    at 0.
    """
    if batch.magic == 0:
        start = 0
        for number, (span, end) in enumerate(_inner_spans(batch, data), 1):
            yield span._replace(offset=_log_offset(span.offset, f"inner message {number}", start))
            start = end
        return
    last = 0
    try:
        for span, _ in _inner_spans(batch, data):
            last = span.offset
    except BrokenRecordsError as error:
        error.at = 0
        raise
    if batch.offset and batch.offset < last:
        raise BrokenRecordsError(f"the wrapper's offset is less than {last}, the offset of its last message")
    first = batch.offset - last if batch.offset else 0
    log_append = batch.timestamp_type == "log_append"
    for number, (span, _) in enumerate(_inner_spans(batch, data), 1):
        offset = _log_offset(first + span.offset, f"inner message {number}", 0)
        timestamp = batch.max_timestamp if log_append else span.timestamp_ms
        yield span._replace(offset=offset, timestamp_ms=timestamp)


def _inner_spans(batch: BatchHead, data: bytes) -> Iterator[tuple[Span, int]]:
    """The messages with the offsets that they contain, each with the index where it ends."""
    position = 0
    try:
        for span, end in _inner_messages(batch, data):
            yield span, end
            position = end
    except BrokenRecordsError as error:
        error.at = position
        raise


def _inner_messages(batch: BatchHead, data: bytes) -> Iterator[tuple[Span, int]]:
    position, end, number = 0, len(data), 0
    if not end:
        raise BrokenRecordsError("the wrapper message contains no message")
    smallest = SMALLEST_SIZES[batch.magic]
    while position < end:
        number += 1
        name = f"inner message {number}"
        if end - position < ENTRY_HEAD:
            raise BrokenRecordsError(f"{name} needs {ENTRY_HEAD} bytes for its header, but {end - position} are left")
        (size,) = _INT.unpack_from(data, position + 8)
        left = end - position - ENTRY_HEAD
        if size < smallest or size > left:
            raise BrokenRecordsError(f"{name} claims to have {plural(size, 'byte')}, but {left} are left")
        offset, _, _, magic, attributes = _MESSAGE.unpack_from(data, position)
        if magic != batch.magic:
            raise BrokenRecordsError(f"{name} has magic {magic}, but its wrapper has magic {batch.magic}")
        if attributes & 0x07:
            raise BrokenRecordsError(f"{name} is itself compressed")
        at = position + _MESSAGE_HEAD
        timestamp = -1
        if magic == 1:
            (timestamp,) = _LONG.unpack_from(data, at)
            at += 8
        position += ENTRY_HEAD + size
        yield _legacy_span(offset, timestamp, *_key_and_value(data, at, position, name)), position
