"""What generated codecs have in common: tables for their fast paths, and `Codec`, which falls back to the schema
walker.

A generated reader or writer is straight-line code for one layout. It gives up on anything unusual by raising an
exception of any type. `Codec` then repeats the work with the schema walker, which either returns the value or raises an
error that says what is wrong and where. So the fast path needs no error handling and no field paths. The fast path is
wrong only if it returns a value when the walker raises an error or returns a different value. Differential tests search
for such cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.wire.buffers import as_bytes as as_bytes
from kafka_records_runtime.wire.string_limit import MAX_STRING

if TYPE_CHECKING:
    from kafka_records_runtime.schema import MessageSchema

M = TypeVar("M")

Unpack = Callable[..., tuple[Any, ...]]
Whole = tuple[Unpack, int]
"""A function that reads messages of one size, and the required length of the last string in such a message."""

Pack = Callable[..., bytes]

_CACHED_LENGTHS: Final = 4096
"""Tables cache an entry for each length below this. Longer lengths are rare, and their entries are built each time."""

_CACHED_SIZES: Final = 512
_CACHED_PER_SIZE: Final = 32
"""The size limit of tables with two numbers as keys. Without it, unusual input could fill a table with pairs that never
recur."""


_unpack_h: Final = Struct(">h").unpack_from
_unpack_i: Final = Struct(">i").unpack_from
_pack_h: Final = Struct(">h").pack
_pack_i: Final = Struct(">i").pack


class GiveUp(Exception):
    """A fast path raises this exception to leave the work to the schema walker. It never reaches callers."""


def unpacker(table: dict[int, Unpack], layout: str, key: int, length: int) -> Unpack:
    """The unpack function for `layout` with a repeat count of `length`, cached in `table` under `key`.

    `layout` contains one `{}` for the count. Gives up if the length is negative, because positions must never move
    backwards.
    """
    if length < 0:
        raise GiveUp
    unpack = Struct(layout.format(length)).unpack_from
    if length < _CACHED_LENGTHS:
        table[key] = unpack
    return unpack


def text_unpacker(table: dict[int, Unpack], layout: str, key: int, length: int) -> Unpack:
    """Like `unpacker`, for strings, which Kafka limits to 32767 bytes."""
    if length > MAX_STRING:
        raise GiveUp
    return unpacker(table, layout, key, length)


def long_text_unpacker(table: dict[int, Unpack], layout: str, length: int) -> Unpack:
    """Like `text_unpacker`, for a length that is only known after the lookup in the table."""
    return table.get(length) or text_unpacker(table, layout, length, length)


def compact_text_unpacker(table: dict[int, Unpack], layout: str, first_byte: int) -> Unpack:
    """The unpack function for a compact string and the fields around it, cached under the first byte of its length.

    `layout` contains one `{}` for the length and the string. The function returns the length as in the varint, plus the
    number of varint bytes after the first, so callers always advance by the same amount.
    """
    if first_byte == 0:
        raise GiveUp
    before, behind = layout.split("{}")
    if first_byte < 128:
        unpack: Unpack = Struct(f"{before}B{first_byte - 1}s{behind}").unpack_from
    else:
        unpack = _long_compact_text_unpacker(before, behind)
    table[first_byte] = unpack
    return unpack


def _long_compact_text_unpacker(before: str, behind: str) -> Unpack:
    start = Struct(before).size
    index = len(Struct(before).unpack(bytes(start)))
    by_width: dict[int, dict[int, Unpack]] = {}

    def unpack(data: bytes, pos: int = 0) -> tuple[Any, ...]:
        length, end = read_uvarint(data, pos + start)
        width = end - pos - start
        table = by_width.setdefault(width, {})
        values = list(long_text_unpacker(table, f"{before}{width}s{{}}s{behind}", length - 1)(data, pos))
        values[index] = length + width - 1
        return tuple(values)

    return unpack


def whole_unpacker(table: dict[int, Whole], layout: str, size: int, fixed: int) -> Whole:
    """The function that reads a message of `size` bytes with one string in it, cached in `table` under the size.

    `layout` contains one `{}` for the length of the string; everything around it has `fixed` bytes.
    """
    rest = size - fixed
    if rest < 0:
        raise GiveUp
    whole = Struct(layout.format(rest)).unpack, rest
    if size < _CACHED_LENGTHS:
        table[size] = whole
    return whole


def whole_pair_unpacker(table: dict[int, dict[int, Whole]], layout: str, size: int, fixed: int, length: int) -> Whole:
    """Like `whole_unpacker` for two strings, of which the first has `length` bytes; cached under both numbers."""
    rest = size - fixed - length
    if rest < 0 or length > MAX_STRING:
        raise GiveUp
    whole = Struct(layout.format(length, rest)).unpack, rest
    if size < _CACHED_SIZES:
        known = table.setdefault(size, {})
        if len(known) < _CACHED_PER_SIZE:
            known[length] = whole
    return whole


def array_packer(table: dict[int, Pack], form: str, count: int) -> Pack:
    """The pack function for an int32 count and that many numbers, cached in `table`."""
    pack = Struct(f">i{count}{form}").pack
    if count < _CACHED_LENGTHS:
        table[count] = pack
    return pack


def compact_array_packer(table: dict[int, Pack], form: str, count: int) -> Pack:
    """The pack function for an array of `count` numbers with a compact count."""
    head = uvarint(count + 1)
    if len(head) == 1:
        pack: Pack = Struct(f">B{count}{form}").pack
    else:
        numbers = Struct(f">{count}{form}").pack

        def pack(_: int, *items: float) -> bytes:
            return head + numbers(*items)

    if count < _CACHED_LENGTHS:
        table[count] = pack
    return pack


def text_array_packer(table: dict[int, dict[int, Pack]], form: str, length: int, count: int) -> Pack:
    """The pack function for a string with an int16 length, an int32 count and that many numbers.

    It is cached in `table` under the length and the count.
    """
    pack = Struct(f">h{length}si{count}{form}").pack
    if length < _CACHED_SIZES:
        known = table.setdefault(length, {})
        if len(known) < _CACHED_PER_SIZE:
            known[count] = pack
    return pack


def read_uvarint(data: bytes, pos: int) -> tuple[int, int]:
    """The unsigned varint at `pos`, and the position after it. Gives up if it has more than five bytes or 31 bits."""
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 28:
            raise GiveUp
    if value > 0x7FFFFFFE:  # tags and lengths must be less than 2³¹ − 1
        raise GiveUp
    return value, pos


def _uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


SHORT_UVARINTS: Final = tuple(_uvarint(value) for value in range(1024))


def uvarint(value: int) -> bytes:
    """`value` (0 to 2³¹ - 1) as an unsigned varint."""
    if value < 1024:
        return SHORT_UVARINTS[value]
    return _uvarint(value)


class _Uuids(dict[bytes, Uuid]):
    """Caches the `Uuid` for 16 bytes, because topic ids repeat and creating the value costs as much as reading it."""

    def __missing__(self, raw: bytes) -> Uuid:
        value = Uuid(raw)
        if len(self) < _CACHED_LENGTHS:
            self[raw] = value
        return value


UUIDS: Final = _Uuids()


def read_unknown_tags(data: bytes, pos: int, count: int) -> tuple[tuple[tuple[int, bytes], ...], int]:
    """Read `count` tagged fields that are unknown in this version, as (tag, payload)."""
    if count > 127:
        raise GiveUp
    found = []
    last = -1
    for _ in range(count):
        tag, pos = read_uvarint(data, pos)
        size, pos = read_uvarint(data, pos)
        end = pos + size
        if tag <= last or end > len(data):
            raise GiveUp
        last = tag
        found.append((tag, data[pos:end]))
        pos = end
    return tuple(found), pos


def _check_count(data: bytes, pos: int, count: int, min_size: int) -> None:
    if count < 0 or count * min_size > len(data) - pos:
        raise GiveUp


def _part(data: bytes, pos: int, length: int) -> tuple[bytes, int]:
    end = pos + length
    if length < 0 or end > len(data):
        raise GiveUp
    return data[pos:end], end


def read_strings(data: bytes, pos: int, count: int) -> tuple[tuple[str, ...], int]:
    """Read `count` strings with int16 lengths."""
    _check_count(data, pos, count, 2)
    items = []
    for _ in range(count):
        (length,) = _unpack_h(data, pos)
        raw, pos = _part(data, pos + 2, length)
        items.append(raw.decode())
    return tuple(items), pos


def read_compact_strings(data: bytes, pos: int, count: int) -> tuple[tuple[str, ...], int]:
    """Read `count` strings with varint lengths."""
    _check_count(data, pos, count, 1)
    items = []
    for _ in range(count):
        length = data[pos]
        pos += 1
        if length > 127:
            length, pos = read_uvarint(data, pos - 1)
            if length > MAX_STRING + 1:
                raise GiveUp
        raw, pos = _part(data, pos, length - 1)
        items.append(raw.decode())
    return tuple(items), pos


def read_byte_strings(data: bytes, pos: int, count: int) -> tuple[tuple[bytes, ...], int]:
    """Read `count` byte strings with int32 lengths."""
    _check_count(data, pos, count, 4)
    items = []
    for _ in range(count):
        (length,) = _unpack_i(data, pos)
        raw, pos = _part(data, pos + 4, length)
        items.append(raw)
    return tuple(items), pos


def read_compact_byte_strings(data: bytes, pos: int, count: int) -> tuple[tuple[bytes, ...], int]:
    """Read `count` byte strings with varint lengths."""
    _check_count(data, pos, count, 1)
    items = []
    for _ in range(count):
        length, pos = read_uvarint(data, pos)
        raw, pos = _part(data, pos, length - 1)
        items.append(raw)
    return tuple(items), pos


def read_uuids(data: bytes, pos: int, count: int) -> tuple[tuple[Uuid, ...], int]:
    """Read `count` uuids of 16 bytes each."""
    _check_count(data, pos, count, 16)
    end = pos + 16 * count
    return tuple(UUIDS[data[at : at + 16]] for at in range(pos, end, 16)), end


def require_list(items: object) -> None:
    """Give up unless the value is a list, because a string or a dict could be mistaken for a sequence of items."""
    if type(items) is not list:
        raise GiveUp


def refuse_list(items: object) -> None:
    """Give up on a list. An empty list does not equal the default of a tagged field, an empty tuple. The walker treats
    both as equal, so it decides."""
    if type(items) is list:
        raise GiveUp


def _count(items: Sequence[object]) -> int:
    if type(items) is not tuple:
        require_list(items)
    return len(items)


def write_compact_numbers(table: dict[int, Pack], form: str, items: Sequence[float]) -> bytes:
    """Write a varint count and numbers of one fixed-width type."""
    count = _count(items)
    pack = table.get(count) or compact_array_packer(table, form, count)
    return pack(count + 1, *items)


def _bools(items: Sequence[bool]) -> bytes:
    if any(item is not True and item is not False for item in items):
        raise GiveUp
    return bytes(items)


def write_bools(items: Sequence[bool]) -> bytes:
    """Write an int32 count and one byte for each item."""
    return _pack_i(_count(items)) + _bools(items)


def write_compact_bools(items: Sequence[bool]) -> bytes:
    """Write a varint count and one byte for each item."""
    return uvarint(_count(items) + 1) + _bools(items)


def _uuids(items: Sequence[bytes]) -> bytes:
    if any(type(item) is not Uuid for item in items):
        raise GiveUp
    return b"".join(items)


def write_uuids(items: Sequence[bytes]) -> bytes:
    """Write an int32 count and 16 bytes for each item."""
    return _pack_i(_count(items)) + _uuids(items)


def write_compact_uuids(items: Sequence[bytes]) -> bytes:
    """Write a varint count and 16 bytes for each item."""
    return uvarint(_count(items) + 1) + _uuids(items)


def write_compact_string(text: str) -> bytes:
    """Write a varint length and the text in UTF-8."""
    raw = text.encode()
    if len(raw) > MAX_STRING:
        raise GiveUp
    return uvarint(len(raw) + 1) + raw


def write_compact_bytes(raw: bytes) -> bytes:
    """Write a varint length and the bytes."""
    if type(raw) is not bytes:
        raise GiveUp
    return uvarint(len(raw) + 1) + raw


def write_strings(items: Sequence[str]) -> bytes:
    """Write an int32 count and strings with int16 lengths."""
    parts = [_pack_i(_count(items))]
    for item in items:
        raw = item.encode()
        parts += (_pack_h(len(raw)), raw)
    return b"".join(parts)


def write_compact_strings(items: Sequence[str]) -> bytes:
    """Write a varint count and strings with varint lengths."""
    return uvarint(_count(items) + 1) + b"".join([write_compact_string(item) for item in items])


def write_byte_strings(items: Sequence[bytes]) -> bytes:
    """Write an int32 count and byte strings with int32 lengths."""
    parts = [_pack_i(_count(items))]
    for item in items:
        if type(item) is not bytes:
            raise GiveUp
        parts += (_pack_i(len(item)), item)
    return b"".join(parts)


def write_compact_byte_strings(items: Sequence[bytes]) -> bytes:
    """Write a varint count and byte strings with varint lengths."""
    return uvarint(_count(items) + 1) + b"".join([write_compact_bytes(item) for item in items])


class Codec(Generic[M]):
    """The complete codec of one message, used when the fast paths of its generated class fail.

    `schema` loads the message's schema, which is imported when an error or a JSON conversion first needs it. `classes`
    maps struct names in the spec to generated classes. `readers` and `writers` are the tables in which `decode` and
    `encode` of the class look up the fast path for a version: `bytes -> message` and `message -> bytes`, or for a
    header `(bytes, position) -> (message, position after it)`. Such a function may be replaced. If it is missing or
    raises an exception, the methods below do the work.
    """

    __slots__ = ("_load", "classes", "readers", "writers")

    def __init__(
        self,
        schema: Callable[[], MessageSchema],
        classes: Mapping[str, type],
        readers: dict[int, Any],
        writers: dict[int, Any],
    ) -> None:
        self._load = schema
        self.classes = classes
        self.readers = readers
        self.writers = writers

    @property
    def schema(self) -> MessageSchema:
        """The schema of the message."""
        return self._load()

    def decode(self, data: bytes, version: int) -> M:
        """The message in `data`. Raises a DecodeError that says why it cannot be read."""
        from kafka_records_runtime.wire import walker

        value, _ = walker.decode(self.schema, data, version, classes=self.classes)
        return value  # type: ignore[no-any-return]

    def decode_prefix(self, data: bytes, version: int) -> tuple[M, int]:
        """The message at the start of `data`, and its size in bytes."""
        from kafka_records_runtime.wire import walker

        return walker.decode(self.schema, data, version, classes=self.classes, allow_trailing=True)

    def decode_lenient(self, data: bytes, version: int, leniencies: list[str]) -> tuple[M, int]:
        """Like `decode_prefix`, but accepts everything that Kafka accepts, and appends the name of each leniency that
        was needed."""
        from kafka_records_runtime.wire import walker

        return walker.decode(
            self.schema,
            data,
            version,
            classes=self.classes,
            allow_trailing=True,
            lenient=True,
            leniencies=leniencies,
        )

    def encode(self, message: M, version: int) -> bytes:
        """The bytes of `message`. Raises an EncodeError that names the field at fault."""
        from kafka_records_runtime.wire import walker

        return walker.encode(self.schema, message, version)

    def to_json(self, message: M, version: int, *, lossy: bool = False) -> dict[str, Any]:
        """`message` in the JSON form of `version`. With `lossy`, the result is exactly what Kafka's JSON converter
        prints."""
        from kafka_records_runtime.messages import json_form

        return json_form.to_json(self.schema, message, version, lossy=lossy)

    def from_json(self, data: Mapping[str, Any], version: int) -> M:
        """The message in `data`, which is in the JSON form of `version`."""
        from kafka_records_runtime.messages import json_form

        return json_form.from_json(self.schema, data, version, classes=self.classes)  # type: ignore[no-any-return]
