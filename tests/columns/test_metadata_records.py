"""Metadata records as columns, compared with the same records read one by one."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_engine.columns import _pieces, arrow_type, decode_framed, decode_record_columns
from kafka_records_engine.columns.framing_in_columns import frame_numbers, type_column
from kafka_records_runtime.records.framing import METADATA, numbers_of_frame
from kafka_records_runtime.schema import RecordSchema
from tests.ledger import CORRECTION, FRAMES, TRANSFER, ledger_package, ledger_records
from tests.row_reader import RowReader
from tests.spark.jvm.made_records import Raw

NAME = "ledger_in_columns"


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[int, RecordSchema]]:
    with ledger_package(tmp_path_factory.mktemp("ledger"), NAME):
        yield importlib.import_module(f"{NAME}.schemas.ledger").RECORDS


def column(values: list[bytes | None]) -> pa.Array:
    return pa.array(values, pa.binary())


def as_column(schema: RecordSchema, value: Any, unknown_tags: bool) -> Any:
    """A value as a column has it."""
    return pa.array([value], arrow_type(schema.value, unknown_tags)).to_pylist()[0]


@pytest.mark.parametrize(
    "most", [pytest.param(None, marks=pytest.mark.matrix), 1, pytest.param(5000, marks=pytest.mark.matrix)]
)
@pytest.mark.parametrize("unknown_tags", [False, True])
def test_columns_are_what_rows_are(
    schemas: Mapping[int, RecordSchema], monkeypatch: pytest.MonkeyPatch, unknown_tags: bool, most: int | None
) -> None:
    if most is not None:
        monkeypatch.setattr(_pieces, "MOST_BYTES", most)
    raw = ledger_records(NAME, 600 if most == 1 else 3000, seed=1)
    found = decode_record_columns(
        schemas,
        column([each.key for each in raw]),
        column([each.value for each in raw]),
        [each.control is None for each in raw],
        unknown_tags=unknown_tags,
    )
    reader = RowReader(schemas, unknown_tags)
    records = {number: array.to_pylist() for number, array in found.records.items()}
    assert set(records) == {TRANSFER, CORRECTION}
    decoded = 0
    for at, each in enumerate(raw):
        if each.control is not None:
            assert at not in found.errors
            assert not found.has_type[at]
            assert not found.is_known[at]
            continue
        row = reader.read(each.key, each.value)
        assert str(found.errors.get(at)) == str(row.error), each
        assert type(found.errors.get(at)) is type(row.error)
        assert (found.record_type[at] if found.has_type[at] else None) == row.record_type, each
        assert (found.value_version[at] if found.has_version[at] else None) == row.value_version, each
        assert found.is_known[at] == row.known
        assert found.leniencies.get(at, []) == row.leniencies
        assert found.has_unknown_tags[at] == row.has_unknown_tags
        assert found.key_bytes_left[at] == found.value_bytes_left[at] == 0
        for number, values in records.items():
            is_own = number == row.record_type and row.error is None
            expected = {"value": as_column(schemas[number], row.value, unknown_tags)} if is_own else None
            assert repr(values[at]) == repr(expected), each
        decoded += row.is_decoded
    assert decoded > len(raw) / 4


def test_one_type_alone(schemas: Mapping[int, RecordSchema]) -> None:
    raw = [each.value for each in ledger_records(NAME, 2000, seed=2) if each.key is None]
    reader = RowReader(schemas)
    for number, schema in schemas.items():
        (found,) = decode_framed(schema.value, column(raw), number)
        for at, (value, given) in enumerate(zip(found.values.to_pylist(), raw, strict=True)):
            row = reader.read(None, given)
            if given is None or row.record_type not in (None, number):
                assert (value, found.errors.get(at)) == (None, None)
            else:
                expected = as_column(schema, row.value, False)
                assert (repr(value), str(found.errors.get(at))) == (repr(expected), str(row.error))


def test_types_and_versions_without_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = [Raw(key, value) for key, value, *_ in FRAMES]
    raw += [Raw(None, b"\x01\xc8\x01\x00"), Raw(None, b"\x81\x00\x80\x00\x05"), Raw(b"k", b"\x01\x00\x00")]
    for most in (1, 1 << 20):
        monkeypatch.setattr(_pieces, "MOST_BYTES", most)
        keys, values = column([each.key for each in raw]), column([each.value for each in raw])
        expected = [(None, None) if each.key is not None else numbers_of_frame(each.value) for each in raw]
        types, versions = frame_numbers(keys, values)
        assert [*zip(types.to_pylist(), versions.to_pylist(), strict=True)] == expected
        numbers, has_type = type_column(METADATA, keys, values)
        assert numbers.dtype == np.int16
        assert numbers.tolist() == [number or 0 for number, _ in expected]
        assert has_type.tolist() == [number is not None for number, _ in expected]
    nothing = frame_numbers(column([]), column([]))
    assert [len(each) for each in nothing] == [0, 0]
