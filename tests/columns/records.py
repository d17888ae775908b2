"""Records as columns compared with records as rows (`tests.row_reader.RowReader`)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kafka_records_engine.columns import RecordColumns, record_arrow_type
from kafka_records_runtime.schema import RecordSchema
from tests.columns.reference import assert_sound, bits, said
from tests.row_reader import DecodedRow, RowReader


def records_of(folder: str) -> dict[int, RecordSchema]:
    """The record types of a topic."""
    found: dict[int, RecordSchema] = importlib.import_module(f"kafka_records.schemas.{folder}").RECORDS
    return found


def read_rows(
    schemas: Mapping[int, RecordSchema],
    keys: Iterable[bytes | None],
    values: Iterable[bytes | None],
    unknown_tags: bool,
    is_record: Iterable[bool] | None = None,
) -> list[DecodedRow | None]:
    """Every record, read separately; None for rows that are skipped."""
    reader = RowReader(schemas, unknown_tags)
    rows: list[DecodedRow | None] = [reader.read(key, value) for key, value in zip(keys, values, strict=True)]
    if is_record is None:
        return rows
    return [row if looked_at else None for row, looked_at in zip(rows, is_record, strict=True)]


def assert_records(
    found: RecordColumns, schemas: Mapping[int, RecordSchema], rows: Sequence[DecodedRow | None], unknown_tags: bool
) -> None:
    """Check that `found` has the same result for every record as the row reader."""
    blank = DecodedRow()
    seen = [blank if row is None else row for row in rows]
    assert _where(found.record_type, found.has_type) == [row.record_type for row in seen]
    assert _where(found.value_version, found.has_version) == [row.value_version for row in seen]
    assert found.is_known.tolist() == [row.known for row in seen]
    assert found.key_bytes_left.tolist() == [row.key_bytes_left for row in seen]
    assert found.value_bytes_left.tolist() == [row.value_bytes_left for row in seen]
    assert found.has_unknown_tags.tolist() == [row.has_unknown_tags for row in seen]
    assert said(found.errors) == said({place: row.error for place, row in enumerate(seen) if row.error is not None})
    assert found.leniencies == {place: row.leniencies for place, row in enumerate(seen) if row.leniencies}
    assert found.records.keys() == {row.record_type for row in seen if row.known}
    for number, column in found.records.items():
        assert_sound(column, record_arrow_type(schemas[number], unknown_tags))
        assert bits(column.to_pylist()) == bits([_pair(row, number, unknown_tags) for row in seen])


def _where(vector: Any, known: Any) -> list[int | None]:
    assert (vector.dtype, known.dtype) == (np.int16, np.bool_)
    return [number if has else None for number, has in zip(vector.tolist(), known.tolist(), strict=True)]


def _pair(row: DecodedRow, number: int, unknown_tags: bool) -> dict[str, Any] | None:
    if row.record_type != number or row.key is None:
        return None
    return {"key": _plain(row.key, unknown_tags), "value": _plain(row.value, unknown_tags)}


def _plain(value: Any, unknown_tags: bool) -> Any:
    """A tree of `RowReader` in the form of `to_pylist`: lists, no member that the column does not have."""
    if isinstance(value, dict):
        return {
            name: _plain(held, unknown_tags)
            for name, held in value.items()
            if unknown_tags or name != "unknown_tagged_fields"
        }
    return [_plain(item, unknown_tags) for item in value] if isinstance(value, list | tuple) else value
