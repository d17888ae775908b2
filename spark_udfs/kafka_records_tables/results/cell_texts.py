"""Converts Arrow columns to columns of text, mostly without a Python object for each value.

All columns are large_string, because the texts of a batch can exceed the 2 GiB of a string column.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Final, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_runtime.text.json_text import json_text

TEXT: Final = pa.large_string()

_MOST_ROWS: Final = 32 * 1024
_MOST_BYTES: Final = 16 * 1024 * 1024

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_SECOND: Final = -62135596800
"""0001-01-01T00:00:00Z."""
_LAST_SECOND: Final = 253402300799
"""9999-12-31T23:59:59Z."""

_JSON_SPECIAL: Final = r'[\x00-\x1f"\\]'


def small_slices(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in slices whose texts use little memory at a time."""
    for batch in batches:
        rows = _MOST_ROWS
        if batch.nbytes > _MOST_BYTES:
            rows = max(min(rows, batch.num_rows * _MOST_BYTES // batch.nbytes), 1)
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def write_lines(lines: pa.LargeStringArray, out: TextIO) -> None:
    """Write texts one after another. They include line ends."""
    if not len(lines):
        return
    _, offsets, data = lines.buffers()
    numbers = memoryview(offsets).cast("q")
    first, last = numbers[lines.offset], numbers[lines.offset + len(lines)]
    if first == last:
        return
    text = data.slice(first, last - first)
    raw = getattr(out, "buffer", None)
    if raw is not None and out.encoding.lower() in ("utf-8", "utf8"):
        out.flush()
        raw.write(text)
    else:
        out.write(str(memoryview(text), "utf-8"))


def joined(parts: Iterable[pa.LargeStringArray | str]) -> pa.LargeStringArray:
    """Concatenate columns of text, and texts that are the same in every row. The result is null in rows where a column
    is null."""
    scalars = [pa.scalar(part, TEXT) if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*scalars, pa.scalar("", TEXT))


def replaced(
    column: pa.LargeStringArray, where: pa.BooleanArray, make: Callable[[str], str], source: pa.Array | None = None
) -> pa.LargeStringArray:
    """`column`, but in the rows selected by `where`, the result of `make` for the texts of `source` (by default
    `column`)."""
    where = where.fill_null(False)
    if not pc.any(where).as_py():
        return column
    texts = (column if source is None else source).filter(where).to_pylist()
    return pc.replace_with_mask(column, where, pa.array(map(make, texts), TEXT))


# -- values as plain text ----------------------------------------------------------------------------------------------


def plain_texts(column: pa.Array) -> pa.LargeStringArray:
    """Values as text, null for null.

    A time is ISO 8601 in UTC, with three fractional digits if they suffice, and null outside the years 1 to 9999. Bytes
    are base64. Lists, structs and maps are JSON.
    """
    column = _stored(column)
    kind = column.type
    if pa.types.is_timestamp(kind):
        return _moments(column)
    if _is_text(kind) or _is_number(kind) or pa.types.is_decimal(kind) or pa.types.is_date(kind):
        return column.cast(TEXT)
    if pa.types.is_null(kind):
        return pa.nulls(len(column), TEXT)
    if _is_binary(kind):
        return pa.array((None if each is None else b64encode(each).decode() for each in column.to_pylist()), TEXT)
    if pa.types.is_floating(kind):
        return pa.array((None if each is None else json_text(each) for each in column.to_pylist()), TEXT)
    if pa.types.is_nested(kind):
        return pc.if_else(column.is_valid(), json_texts(column), pa.scalar(None, TEXT))
    return pa.array((None if each is None else str(each) for each in column.to_pylist()), TEXT)


def _stored(column: pa.Array) -> pa.Array:
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _moments(column: pa.Array) -> pa.LargeStringArray:
    unit = column.type.unit
    per_second = _PER_SECOND[unit]
    numbers = column.cast(pa.int64())
    lowest, highest = _FIRST_SECOND * per_second, _LAST_SECOND * per_second + per_second - 1
    if unit != "ns":  # nanoseconds can express times only up to the year 2262
        inside = pc.and_(pc.greater_equal(numbers, lowest), pc.less_equal(numbers, highest))
        numbers = pc.if_else(inside, numbers, pa.scalar(None, pa.int64()))
    if unit == "s":
        numbers, unit = pc.multiply(numbers, 1000), "ms"
    text = numbers.cast(pa.timestamp(unit)).cast(TEXT)
    if unit in ("us", "ns"):
        per_millisecond = per_second // 1000
        values = numbers.fill_null(0).to_numpy(zero_copy_only=False)
        whole = pa.array(values // per_millisecond, pa.timestamp("ms")).cast(TEXT)
        text = pc.if_else(pc.and_(numbers.is_valid(), pa.array(values % per_millisecond == 0)), whole, text)
    return joined([pc.binary_replace_slice(text, 10, 11, "T"), "Z"])


# -- values as JSON ----------------------------------------------------------------------------------------------------


def json_texts(column: pa.Array) -> pa.LargeStringArray:
    """Values as JSON, with exactly the same characters as `json_text` writes; `null` for null."""
    column = _stored(column)
    kind = column.type
    if pa.types.is_struct(kind):
        made = json_objects([field.name for field in kind], column.flatten(), len(column))
        made = pc.if_else(column.is_valid(), made, pa.scalar(None, TEXT))
    elif pa.types.is_map(kind):
        made = _json_map(column)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        made = joined(["[", joined_items(column, json_texts(column.flatten()), ","), "]"])
    elif _is_number(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        made = plain_texts(column)
    elif _is_text(kind):
        made = _quoted(column.cast(TEXT))
    else:
        made = joined(['"', plain_texts(column), '"'])
    return made.fill_null("null")


def json_objects(names: list[str], columns: list[pa.Array], rows: int, end: str = "") -> pa.LargeStringArray:
    """One JSON object per row, followed by `end`."""
    if not columns:
        return pa.repeat(pa.scalar(f"{{}}{end}", TEXT), rows)
    parts: list[pa.LargeStringArray | str] = []
    for name, column in zip(names, columns, strict=True):
        parts += [f"{',' if parts else '{'}{json_text(name)}:", json_texts(column)]
    return joined([*parts, f"}}{end}"])


def _quoted(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    special = pc.match_substring_regex(texts, _JSON_SPECIAL)
    return replaced(joined(['"', texts, '"']), special, json_text, texts)


def _json_map(column: pa.MapArray) -> pa.LargeStringArray:
    lists = map_lists(column)
    keys, items = lists.flatten().flatten()
    pairs = joined([_quoted(plain_texts(keys)), ":", json_texts(items)])
    return joined(["{", joined_items(lists, pairs, ","), "}"])


def map_lists(column: pa.MapArray) -> pa.ListArray:
    """A map as a list of keys and values, because Arrow has more functions for lists than for maps."""
    kind = column.type
    pair = pa.struct([pa.field("key", kind.key_type, nullable=False), pa.field("value", kind.item_type)])
    return column.cast(pa.list_(pair))


def joined_items(column: pa.Array, items: pa.LargeStringArray, between: str) -> pa.LargeStringArray:
    """For each list in `column`, its joined items; null for null. The texts of all items are in `items`."""
    lists = pa.LargeListArray.from_arrays(_offsets(column), items)
    text = pc.binary_join(lists, pa.scalar(between, TEXT))
    return pc.if_else(column.is_valid(), text, pa.scalar(None, TEXT))


def _offsets(column: pa.Array) -> pa.Int64Array:
    """The index where each list of `column` starts in the result of `flatten`, which omits the content of null
    lists."""
    lengths = pc.list_value_length(column).fill_null(0).cast(pa.int64())
    offsets = np.zeros(len(column) + 1, np.int64)
    np.cumsum(lengths.to_numpy(zero_copy_only=False), out=offsets[1:])
    return pa.array(offsets)
