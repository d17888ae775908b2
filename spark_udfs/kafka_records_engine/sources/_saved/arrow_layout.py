"""The columns of an Arrow file: their types, and which buffers of a batch belong to each.

The type of a column, and so its list of buffers, is only in the schema
(https://arrow.apache.org/docs/format/Columnar.html, Schema.fbs). Only types that can be converted to raw rows are read:
numbers, times, strings, bytes, and structs of these. For other columns, only the number of buffers is determined, so
that they can be skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.sources._saved.flatbuffers import FlatTable

_DEEPEST: Final = 64
_BYTES_OF_FIELD: Final = 8
"""The minimum size of a field in the metadata. A schema with more fields than fit refers to the same field
repeatedly."""

UNREAD: Final = pa.list_(pa.null())
"""Marks the type of a column that cannot be converted to raw rows."""

V4: Final = 3
V5: Final = 4
"""Versions of the metadata: since 2017 (0.8) and since 2020 (1.0)."""


@dataclass(frozen=True, slots=True)
class ArrowColumn:
    """A column, or a member of a struct column."""

    name: str
    type: Any
    """The type, as in `FileReader.fields`; UNREAD for columns that are not read."""
    buffers: int
    """The number of its own buffers, excluding those of its children."""
    has_variadic: bool
    """Whether more buffers follow; the batch contains their number."""
    children: tuple[ArrowColumn, ...]
    dictionary: int | None = None
    """The number of the dictionary that its indices refer to."""
    values: ArrowColumn | None = None
    """The type of the values in that dictionary."""

    @property
    def is_read(self) -> bool:
        """Whether the column can be converted to raw rows."""
        return self.type is not UNREAD


def columns_of(schema: FlatTable, version: int, size: int) -> tuple[ArrowColumn, ...]:
    """The columns of a schema in `size` bytes of metadata. Raises pa.ArrowInvalid."""
    if version not in (V4, V5):
        raise pa.ArrowInvalid(f"the metadata has version {version + 1}: only versions 4 and 5 are supported")
    if schema.number(0, "h"):
        raise pa.ArrowInvalid("the file is big-endian: write it again on a little-endian machine")
    return _Columns(version, size // _BYTES_OF_FIELD).of(schema.tables(1), 0)


class _Columns:
    def __init__(self, version: int, most: int) -> None:
        self._version, self._left = version, most

    def of(self, fields: Iterator[FlatTable], depth: int) -> tuple[ArrowColumn, ...]:
        return tuple(self._column(field, depth) for field in fields)

    def _column(self, field: FlatTable, depth: int) -> ArrowColumn:
        self._left -= 1
        if self._left < 0 or depth > _DEEPEST:
            raise pa.ArrowInvalid("the schema claims more nested fields than it has room for")
        name, kind, about = field.text(0) or "", field.number(2, "B"), field.table(3)
        children = self.of(field.tables(5), depth + 1)
        if about is None or kind not in _BUFFERS:
            raise pa.ArrowInvalid(f"the column {name!r} has an unknown type (number {kind})")
        column = ArrowColumn(name, _type(kind, about, children), _BUFFERS[kind], kind in _VIEWS, children)
        if kind == _UNION:
            # Before version 5, a union had a null bitmap. A dense union has offsets.
            has_nulls, is_dense = self._version < V5, about.number(0, "h") == 1
            column = ArrowColumn(name, UNREAD, 1 + has_nulls + is_dense, False, children)
        encoding = field.table(4)
        return column if encoding is None else _encoded(column, encoding)


def _encoded(values: ArrowColumn, encoding: FlatTable) -> ArrowColumn:
    index = encoding.table(1)
    index_type = pa.int32() if index is None else _INTS.get((index.number(0, "i"), bool(index.number(1, "?"))))
    if index_type is None:
        raise pa.ArrowInvalid(f"the column {values.name!r} has indices that are not whole numbers")
    # If the values of a dictionary were nested or dictionary-encoded, they would need further dictionaries.
    is_read = values.is_read and not values.children
    kind = pa.dictionary(index_type, values.type) if is_read else UNREAD
    return ArrowColumn(values.name, kind, 2, False, (), encoding.number(0, "q"), values)


_INTS: Final[Mapping[tuple[int, bool], Any]] = {
    (8, True): pa.int8(),
    (16, True): pa.int16(),
    (32, True): pa.int32(),
    (64, True): pa.int64(),
    (8, False): pa.uint8(),
    (16, False): pa.uint16(),
    (32, False): pa.uint32(),
    (64, False): pa.uint64(),
}
_UNITS: Final = ("s", "ms", "us", "ns")
_FLOATS: Final = (pa.float16(), pa.float32(), pa.float64())
_DECIMALS: Final[Mapping[int, Callable[[int, int], Any]]] = {128: pa.decimal128, 256: pa.decimal256}

_STRUCT: Final = 13
_UNION: Final = 14
_VIEWS: Final = (23, 24)
_BUFFERS: Final[Mapping[int, int]] = {
    1: 0,  # null
    **dict.fromkeys((2, 3, 6, 7, 8, 9, 10, 11, 15, 18), 2),  # fixed-width types
    **dict.fromkeys((4, 5, 19, 20), 3),  # bytes and strings
    **dict.fromkeys(_VIEWS, 2),
    **dict.fromkeys((12, 17, 21), 2),  # lists, maps
    16: 1,  # fixed-size lists
    _STRUCT: 1,
    _UNION: 1,
    22: 0,  # run ends
    **dict.fromkeys((25, 26), 3),  # views of lists
}
"""How many buffers a column has, by type number, excluding those of its children."""


def _type(kind: int, about: FlatTable, children: tuple[ArrowColumn, ...]) -> Any:
    """The type of a column; UNREAD for types that are skipped. Raises pa.ArrowInvalid for an invalid type."""
    if kind == _STRUCT:
        # If two members have the same name, a reference to it is ambiguous.
        names = [child.name for child in children]
        return pa.struct([(each.name, each.type) for each in children if each.is_read and names.count(each.name) == 1])
    made = _TYPES.get(kind)
    if made is None:
        return UNREAD
    try:
        found = made(about)
    except (IndexError, KeyError, ValueError, OverflowError) as error:
        raise pa.ArrowInvalid(f"the schema has a type that does not exist: {error}") from None
    return found


def _unit(about: FlatTable, default: int) -> str:
    number = about.number(0, "h", default)
    if number < 0:
        raise ValueError(f"unit {number}")
    return _UNITS[number]


def _float(about: FlatTable) -> Any:
    number = about.number(0, "h")
    if number < 0:
        raise ValueError(f"precision {number}")
    return _FLOATS[number]


def _decimal(about: FlatTable) -> Any:
    made = _DECIMALS.get(about.number(2, "i", 128))
    return UNREAD if made is None else made(about.number(0, "i"), about.number(1, "i"))


def _time(about: FlatTable) -> Any:
    unit, width = _unit(about, 1), about.number(1, "i", 32)
    return {32: pa.time32, 64: pa.time64}[width](unit)


def _fixed_bytes(about: FlatTable) -> Any:
    width = about.number(0, "i")
    if width < 0:
        raise ValueError(f"bytes of width {width}")
    return pa.binary(width)


_TYPES: Final[Mapping[int, Callable[[FlatTable], Any]]] = {
    1: lambda about: pa.null(),
    2: lambda about: _INTS[about.number(0, "i"), bool(about.number(1, "?"))],
    3: _float,
    4: lambda about: pa.binary(),
    5: lambda about: pa.string(),
    6: lambda about: pa.bool_(),
    7: _decimal,
    8: lambda about: pa.date64() if about.number(0, "h", 1) else pa.date32(),
    9: _time,
    10: lambda about: pa.timestamp(_unit(about, 0), about.text(1) or None),
    15: _fixed_bytes,
    18: lambda about: pa.duration(_unit(about, 1)),
    19: lambda about: pa.large_binary(),
    20: lambda about: pa.large_string(),
    23: lambda about: pa.binary_view(),
    24: lambda about: pa.string_view(),
}
"""The member-less types that can be converted to raw rows, by type number."""
