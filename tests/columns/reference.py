"""Compares columns with rows: the result of the schema walker for every row, and a comparison that misses nothing."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_engine.columns import Columns, _assembly, arrow_type, decode_column
from kafka_records_runtime.errors import (
    DecodeError,
    FramingError,
    KafkaRecordsError,
    MissingValueVersion,
    UnsupportedVersion,
)
from kafka_records_runtime.schema import MessageSchema
from kafka_records_runtime.wire import walker

UNKNOWN_TAGS = "unknown_tagged_fields"


# -- the walker's word ------------------------------------------------------------------------------


@dataclass
class Row:
    """The result of the walker for a row, in the form of a column."""

    value: Any = None
    left: int = 0
    has_unknown_tags: bool = False
    error: KafkaRecordsError | None = None
    leniencies: list[str] = field(default_factory=list)


def read_row(message: MessageSchema, data: bytes | None, version: int | None, unknown_tags: bool, framed: bool) -> Row:
    """A row, read separately; `framed` rows start with their version, others are at `version` (None: a null row)."""
    row = Row()
    if data is None or not (framed or version is not None):
        return row
    try:
        if framed:
            if len(data) < 2:
                raise MissingValueVersion(len(data))
            (version,), data = struct.unpack(">h", data[:2]), data[2:]
        assert version is not None
        value, used = walker.decode(
            message, data, version, lenient=True, allow_trailing=True, leniencies=row.leniencies
        )
    except (DecodeError, FramingError, UnsupportedVersion) as error:
        row.error = error
    else:
        row.value = as_column(message, message.root.name, value, unknown_tags)
        row.left = len(data) - used
        row.has_unknown_tags = has_unknown_tags(value)
    return row


def has_unknown_tags(value: Any) -> bool:
    """Whether there is an unknown tagged field in a tree from the walker."""
    if isinstance(value, dict):
        return any(bool(held) if name == UNKNOWN_TAGS else has_unknown_tags(held) for name, held in value.items())
    return isinstance(value, tuple) and any(has_unknown_tags(item) for item in value)


def as_column(message: MessageSchema, name: str, value: Any, unknown_tags: bool) -> Any:
    """A struct of the walker in the form of `to_pylist` of a column."""
    row = {
        field.name: _member(message, field.type, value[field.name], unknown_tags)
        for field in message.struct(name).fields
    }
    if unknown_tags and message.flexible is not None:
        row[UNKNOWN_TAGS] = [{"tag": tag, "data": data} for tag, data in value[UNKNOWN_TAGS]]
    return row


def _member(message: MessageSchema, type: str, value: Any, unknown_tags: bool) -> Any:
    if value is None:
        return None
    if type.startswith("[]"):
        return [_member(message, type[2:], item, unknown_tags) for item in value]
    if type == "uuid":
        return str(value)
    return as_column(message, type, value, unknown_tags) if isinstance(value, dict) else value


# -- comparing --------------------------------------------------------------------------------------


def bits(value: Any) -> Any:
    """The same tree with doubles as their bits, so that NaN equals NaN and -0.0 is not 0.0."""
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, dict):
        return {name: bits(held) for name, held in value.items()}
    return [bits(item) for item in value] if isinstance(value, list) else value


def said(errors: dict[int, Any]) -> dict[int, tuple[str, str]]:
    """The errors by row: class and complete text."""
    return {row: (type(error).__name__, str(error)) for row, error in errors.items()}


def assert_sound(array: pa.Array, kind: pa.DataType) -> None:
    """The array is valid Arrow, of exactly this type, and holds no null if the type allows none."""
    array.validate(full=True)
    assert array.type.equals(kind, check_metadata=True)
    assert str(array.type) == str(kind)  # the names of list items must be equal too, and `equals` ignores them
    _assert_nulls_allowed(array, array.type)


def _assert_nulls_allowed(array: pa.Array, kind: pa.DataType, path: str = "") -> None:
    if pa.types.is_struct(kind):
        for place, member in enumerate(kind):
            inside = array.field(place)
            assert member.nullable or inside.null_count == 0, f"{path}.{member.name} has nulls"
            _assert_nulls_allowed(inside, member.type, f"{path}.{member.name}")
    elif pa.types.is_list(kind):
        assert kind.value_field.nullable or array.values.null_count == 0, f"{path}[] has nulls"
        _assert_nulls_allowed(array.values, kind.value_type, f"{path}[]")


def assert_columns(found: Columns, message: MessageSchema, rows: Sequence[Row], unknown_tags: bool) -> None:
    """Check that `found` has the same result for every row as the walker."""
    assert_sound(found.values, arrow_type(message, unknown_tags))
    assert bits(found.values.to_pylist()) == bits([row.value for row in rows])
    assert found.bytes_left.dtype == np.int64
    assert found.has_unknown_tags.dtype == np.bool_
    assert found.bytes_left.tolist() == [row.left for row in rows]
    assert found.has_unknown_tags.tolist() == [row.has_unknown_tags for row in rows]
    assert said(found.errors) == said({place: row.error for place, row in enumerate(rows) if row.error is not None})
    assert found.leniencies == {place: row.leniencies for place, row in enumerate(rows) if row.leniencies}


def check(
    message: MessageSchema,
    data: Sequence[bytes | None],
    version: int | Sequence[int | None] | None,
    unknown_tags: bool,
    column: Any = None,
) -> Columns:
    """Decode rows as a column, and compare every row; `column` has the same rows in another layout."""
    framed = version is None
    versions = [version] * len(data) if version is None or isinstance(version, int) else version
    rows = [read_row(message, each, at, unknown_tags, framed) for each, at in zip(data, versions, strict=True)]
    given = version if version is None or isinstance(version, int) else pa.array(version, pa.int16())
    column = pa.array(data, pa.binary()) if column is None else column
    found = decode_column(message, column, given, unknown_tags=unknown_tags)
    assert_columns(found, message, rows, unknown_tags)
    return found


# -- which way rows went ----------------------------------------------------------------------------


@contextmanager
def counted_walks() -> Iterator[list[int]]:
    """A list that gets the number of every row that is left to the walker. Otherwise the walker would hide a broken
    engine, because all results would still be right."""
    walked: list[int] = []
    walk = _assembly.RowAssembly._walk

    def counting(self: Any, spans: Any, row: int, version: int, skip: int) -> None:
        walked.append(row)
        walk(self, spans, row, version, skip)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_assembly.RowAssembly, "_walk", counting)
        yield walked


@contextmanager
def engine_limits(few: int | None = None, block: int | None = None) -> Iterator[None]:
    """Other limits: rows below which arrays are read row by row, and bytes that are decoded or walked together."""
    with pytest.MonkeyPatch.context() as patch:
        if few is not None:
            patch.setattr("kafka_records_engine.columns._elements.FEW", few)
        if block is not None:
            patch.setattr("kafka_records_engine.columns._assembly.BLOCK", block)
            # Use half of the limit for elements, so that blocks are cut there too.
            patch.setattr("kafka_records_engine.columns._elements.CACHED", max(block // 2, 1))
        yield
