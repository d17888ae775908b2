"""Builds Arrow arrays from the buffers of a batch; each buffer is checked before it is used.

Strings are returned as bytes, as for JSON and CSV, because the code that interprets a column reports rows that are not
UTF-8.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from struct import Struct
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.sources._saved.arrow_layout import ArrowColumn
from kafka_records_engine.sources._saved.arrow_messages import ArrowMessage, ReadBody
from kafka_records_engine.sources._saved.flatbuffers import FlatTable

_PAIR: Final = Struct("<qq")
_COUNT: Final = Struct("<q")
_CODECS: Final = ("lz4", "zstd")
_NOT_COMPRESSED: Final = -1
_PIECE: Final = 16 * 1024 * 1024
_MOST_ROWS: Final = (1 << 31) - 1

_AS_BYTES: Final[Mapping[Any, Any]] = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}

ArrowDictionaries = Mapping[int, Any]
"""The values of each dictionary, by dictionary number."""


def rows_of(message: ArrowMessage) -> int:
    """The number of rows according to the metadata of a batch. Raises pa.ArrowInvalid."""
    return _rows(message.header)


def batch_of(
    message: ArrowMessage, columns: Sequence[ArrowColumn], names: Collection[str], dictionaries: ArrowDictionaries
) -> Any:
    """A record batch of the given columns, in the order of the names. Raises pa.ArrowException if its parts do not
    match."""
    arrays = _Batch(message.header, message.body_size, message.read, dictionaries).arrays(columns, names)
    if not names:
        return pa.record_batch([pa.nulls(rows_of(message))], names=[""]).select([])
    return pa.record_batch([arrays[name] for name in names], names=list(names))


def dictionary_of(message: ArrowMessage, values: Mapping[int, ArrowColumn]) -> tuple[int, bool, Any]:
    """The number of a dictionary, whether the values are appended to existing ones, and the values, or None if no
    requested column needs the dictionary. Raises pa.ArrowException."""
    number, is_delta, data = message.header.number(0, "q"), bool(message.header.number(2, "?")), message.header.table(1)
    if data is None:
        raise pa.ArrowInvalid("a dictionary has no values")
    if number not in values:
        return number, is_delta, None
    column = values[number]
    return number, is_delta, _Batch(data, message.body_size, message.read, {}).arrays([column], None)[column.name]


def _rows(header: FlatTable) -> int:
    rows = header.number(0, "q")
    if not 0 <= rows <= _MOST_ROWS:
        raise pa.ArrowInvalid(f"a batch claims to have {rows} rows")
    return rows


class _Batch:
    """The nodes and buffers of a batch; the columns consume them one after another."""

    def __init__(self, header: FlatTable, size: int, read: ReadBody, dictionaries: ArrowDictionaries) -> None:
        self._rows = _rows(header)
        self._nodes = iter(header.structs(1, _PAIR))
        places = header.structs(2, _PAIR)
        self._places = iter(places)
        self._variadic = iter(header.structs(4, _COUNT))
        self._read, self._dictionaries = read, dictionaries
        compression = header.table(3)
        self._codec = None if compression is None else _codec(compression)
        last = 0
        for start, length in places:
            if length == 0:
                continue
            if length < 0 or start < last or start % 8 or start + length > size:
                raise pa.ArrowInvalid(
                    f"a buffer of {length} bytes at {start} does not fit in its batch of {size} bytes"
                )
            last = start + length

    def arrays(self, columns: Sequence[ArrowColumn], names: Collection[str] | None) -> dict[str, Any]:
        """The columns with these names, or all columns."""
        found: dict[str, Any] = {}
        for column in columns:
            if names is not None and column.name not in names:
                self._pass_over(column)
                continue
            if column.name in found:
                raise pa.ArrowInvalid(f"two columns are called {column.name!r}")
            found[column.name] = self._array(column)
            found[column.name].validate(full=True)
        return found

    def _pass_over(self, column: ArrowColumn) -> None:
        self._node()
        for _ in self._places_of(column):
            pass
        for child in column.children:
            self._pass_over(child)

    def _array(self, column: ArrowColumn) -> Any:
        if not column.is_read:
            raise pa.ArrowInvalid(f"the column {column.name!r} has a type that is not supported")
        rows, nulls = self._node()
        buffers = [self._buffer(*place) for place in self._places_of(column)]
        if rows != self._rows or not 0 <= nulls <= rows:
            raise pa.ArrowInvalid(
                f"the column {column.name!r} has {rows} rows, {nulls} of them null, but the batch has {self._rows}"
            )
        if nulls and buffers and not len(buffers[0]):
            raise pa.ArrowInvalid(f"the column {column.name!r} has nulls but no bitmap of their positions")
        if buffers and not nulls:
            buffers[0] = None
        kind: Any = column.type
        if column.values is not None and column.dictionary is not None:
            indices = pa.Array.from_buffers(kind.index_type, rows, buffers)
            none = pa.nulls(0, _AS_BYTES.get(column.values.type, column.values.type))
            return pa.DictionaryArray.from_arrays(indices, self._dictionaries.get(column.dictionary, none))
        if pa.types.is_null(kind):
            return pa.nulls(rows)
        if pa.types.is_struct(kind):
            members = self._members(column)
            kind = pa.struct([(name, array.type) for name, array in members.items()])
            return pa.Array.from_buffers(kind, rows, buffers, children=list(members.values()))
        return pa.Array.from_buffers(_AS_BYTES.get(kind, kind), rows, buffers)

    def _members(self, column: ArrowColumn) -> dict[str, Any]:
        names = {field.name for field in column.type}
        members = {}
        for child in column.children:
            if child.name in names:
                members[child.name] = self._array(child)
            else:
                self._pass_over(child)
        return members

    def _node(self) -> tuple[int, int]:
        node = next(self._nodes, None)
        if node is None:
            raise pa.ArrowInvalid("a batch has fewer columns than the schema")
        return int(node[0]), int(node[1])

    def _places_of(self, column: ArrowColumn) -> Iterator[tuple[int, int]]:
        count = column.buffers
        if column.has_variadic:
            count += next(self._variadic, (0,))[0]
        for _ in range(count):
            place = next(self._places, None)
            if place is None:
                raise pa.ArrowInvalid("a batch has fewer buffers than its columns need")
            yield int(place[0]), int(place[1])

    def _buffer(self, start: int, length: int) -> Any:
        data = self._read(start, length) if length else b""
        if len(data) < length:
            raise pa.ArrowInvalid("the file ends in the middle of a batch: it was cut short")
        if self._codec is None or not length:
            return pa.py_buffer(data)
        if length < _COUNT.size:
            raise pa.ArrowInvalid(f"a compressed buffer has {length} bytes, too few to state its size")
        (size,) = _COUNT.unpack_from(data)
        packed = pa.py_buffer(data).slice(_COUNT.size)
        return packed if size == _NOT_COMPRESSED else pa.py_buffer(_unpacked(packed, size, self._codec))


def _codec(compression: FlatTable) -> str:
    number, method = compression.number(0, "b"), compression.number(1, "b")
    if method or not 0 <= number < len(_CODECS):
        raise pa.ArrowInvalid(f"a batch has an unknown compression (codec {number}, method {method})")
    return _CODECS[number]


def _unpacked(packed: Any, size: int, codec: str) -> bytes:
    """The `size` bytes of a compressed buffer. A wrong size is detected before memory is allocated for it. pyarrow's
    own function would leave uninitialized memory after the actual bytes."""
    parts: list[bytes] = []
    left = size
    with pa.CompressedInputStream(pa.BufferReader(packed), codec) as stream:
        while left > 0 and (part := bytes(stream.read(min(left, _PIECE)))):
            parts.append(part)
            left -= len(part)
        if left or stream.read(1):
            raise pa.ArrowInvalid(f"a compressed buffer does not contain the {size} bytes that it claims")
    return parts[0] if len(parts) == 1 else b"".join(parts)
