"""Packs Arrow columns into bytes that deflate compresses well and a browser unpacks quickly.

Texts become numbers in a sorted dictionary that all columns with the same name share. So a group has the same number in
every table, and numbers sort like the texts. Numbers are stored as differences or as distances from the minimum,
whichever is shorter. Their bytes are grouped: first the lowest byte of all rows, then the next. `assets/unpacking.js`
reads this format.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_tables.results.cell_texts import plain_texts

_SAFE: Final = 2**51
"""The largest number that a browser represents exactly in floating point, as well as differences of such numbers.
Larger numbers are packed as texts."""

Numbers = npt.NDArray[np.int64]


def packed_text(text: str) -> bytes:
    """A text as the page stores it: UTF-8, raw deflate, base64. Bytes of a path that are not UTF-8 are escaped."""
    return packed_bytes(text.encode(errors="backslashreplace"))


def packed_bytes(content: bytes) -> bytes:
    """Bytes as the page stores them: raw deflate, base64. The page contains no text of a record in plain form."""
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return b64encode(packer.compress(content) + packer.flush())


def shown_columns(table: pa.Table) -> list[str]:
    """The columns that a page shows. If a time exists both as an instant and in milliseconds, only the latter is
    included."""
    names = set(table.column_names)
    return [name for name in table.column_names if not (name.endswith("_timestamp") and f"{name}_ms" in names)]


def kind_of(column: pa.ChunkedArray, name: str) -> str:
    """`number`, `time` (milliseconds since 1970), `flag`, `text`, `long` (numbers as texts) or `json`."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return "flag"
    if pa.types.is_integer(kind):
        least, most = pc.min_max(column).as_py().values()
        if least is not None and (least <= -_SAFE or most >= _SAFE):
            return "long"
        return "time" if name.endswith("_timestamp_ms") else "number"
    return "json" if pa.types.is_nested(kind) else "text"


class Dictionaries:
    """The texts of all columns, by column name: the `group_id` columns of all tables share one dictionary."""

    def __init__(self, tables: Mapping[str, pa.Table]) -> None:
        self._values: dict[str, pa.LargeStringArray] = {}
        columns: dict[str, list[pa.ChunkedArray]] = {}
        for table in tables.values():
            for name in shown_columns(table):
                if kind_of(table.column(name), name) in ("text", "long", "json"):
                    columns.setdefault(name, []).append(table.column(name))
        for name, parts in columns.items():
            distinct = pa.concat_arrays([_texts(pc.unique(each) if _is_text(each.type) else each) for each in parts])
            values = pc.unique(distinct).drop_null()
            self._values[name] = values.take(pc.sort_indices(values))

    def codes(self, name: str, column: pa.ChunkedArray) -> pa.Int32Array:
        """The index of each value of a column in its dictionary; null for null."""
        return pc.index_in(_texts(column), value_set=self._values[name])

    def packed(self) -> dict[str, bytes]:
        """A JSON array with the texts of each dictionary."""
        return {
            name: packed_text(json.dumps(values.to_pylist(), ensure_ascii=False, separators=(",", ":")))
            for name, values in self._values.items()
        }


def packed_table(table: pa.Table, dictionaries: Dictionaries) -> tuple[list[dict[str, Any]], bytes]:
    """A description of each column for the browser, and the concatenated bytes of all columns."""
    described: list[dict[str, Any]] = []
    content = bytearray()
    for name in shown_columns(table):
        column = table.column(name)
        kind = kind_of(column, name)
        is_text = kind in ("text", "long", "json")
        values = dictionaries.codes(name, column) if is_text else column.cast(pa.int64()).combine_chunks()
        layout, planes = _packed_numbers(values)
        described.append({"name": name, "kind": kind, "start": len(content), **layout})
        content += planes
    return described, packed_bytes(bytes(content))


def _packed_numbers(column: pa.Array) -> tuple[dict[str, Any], bytes]:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    filled: Numbers = pc.fill_null(pc.fill_null_forward(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    least = int(filled.min()) if len(filled) else 0
    distances = (filled - least).astype(np.uint64)
    differences = _unsigned(np.diff(filled, prepend=np.int64(least)))
    is_difference = _bits(differences) < _bits(distances)
    chosen = differences if is_difference else distances
    planes = (int(chosen.max()).bit_length() + 7) // 8 if len(chosen) else 0
    content = chosen.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :planes].T.tobytes()
    has_nulls = not valid.all()
    if has_nulls:
        content += np.packbits(valid, bitorder="little").tobytes()
    return {"least": least, "planes": planes, "differences": is_difference, "nulls": has_nulls}, content


def _unsigned(numbers: Numbers) -> npt.NDArray[np.uint64]:
    """Maps 0, -1, 1, -2, 2 … to 0, 1, 2, 3, 4 …, so that small numbers of either sign have small codes."""
    return ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)


def _bits(numbers: npt.NDArray[np.uint64]) -> float:
    return float(np.log2(numbers.astype(np.float64) + 1).sum())


def _texts(column: pa.ChunkedArray | pa.Array) -> pa.LargeStringArray:
    arrays = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return pa.concat_arrays([plain_texts(each) for each in arrays] or [pa.array([], pa.large_string())])


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))
