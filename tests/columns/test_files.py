"""Decoded columns as files: Parquet and IPC accept them with the declared nullability, and return them unchanged."""

from __future__ import annotations

import io
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_records import registry
from kafka_records_engine.columns import _pieces, decode_column, decode_record_columns
from kafka_records_runtime.schema import MessageSchema
from tests.columns.records import records_of
from tests.columns.reference import bits
from tests.columns.rows import batch
from tests.columns.schemas import schemas
from tests.columns.test_records import records
from tests.runtime.spec_schemas import language_schemas


def through_parquet(table: pa.Table) -> pa.Table:
    file = io.BytesIO()
    pq.write_table(table, file)
    file.seek(0)
    return pq.read_table(file)


def through_ipc(table: pa.Table) -> pa.Table:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=11)
    return pa.ipc.open_stream(sink.getvalue()).read_all()


THROUGH = pytest.mark.parametrize("through", [through_parquet, through_ipc], ids=["parquet", "ipc"])


def assert_comes_back(through: Any, column: pa.Array) -> None:
    table = pa.table({"column": column})
    read = through(table)
    assert read.schema.equals(table.schema)
    assert str(read.schema.types[0]) == str(column.type)
    assert bits(read.column("column").to_pylist()) == bits(column.to_pylist())


def has_members(message: MessageSchema) -> bool:
    """Parquet has no structs without members."""
    return all(struct.fields for struct in message.structs)


OURS = [registry.message_class(name).CODEC.schema for name in registry.MESSAGES]
MESSAGES = [*filter(has_members, [*OURS, *language_schemas().values()])]


@THROUGH
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much])
@given(
    message=st.sampled_from(MESSAGES) | schemas().filter(has_members),
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([0, 1, 40]),
    unknown_tags=st.booleans(),
)
def test_any_batch(through: Any, message: MessageSchema, seed: int, size: int, unknown_tags: bool) -> None:
    """The column has nulls of every kind: null rows, rows that failed, null structs, null members."""
    rows, versions = batch(Random(seed), message, size, damaged=0.4, huge=0)
    found = decode_column(
        message, pa.array(rows, pa.binary()), pa.array(versions, pa.int16()), unknown_tags=unknown_tags
    )
    assert_comes_back(through, found.values)
    assert_comes_back(through, found.values[size // 3 :])


@THROUGH
@pytest.mark.parametrize("most", [200, 2**31 - 1], ids=["in parts", "whole"])
@pytest.mark.parametrize("folder", ["consumer_offsets", "share_group_state", "transaction_state"])
def test_records(through: Any, folder: str, most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is a column per record type, null in most rows. A part without rows of a type has no column for it until
    parts are joined."""
    monkeypatch.setattr(_pieces, "MOST_BYTES", most)
    schemas_by_type = records_of(folder)
    keys, values = records(Random(3), schemas_by_type, 80, damaged=0.3)
    is_record = np.array([place % 7 > 0 for place in range(80)])
    found = decode_record_columns(
        schemas_by_type, pa.array(keys, pa.binary()), pa.array(values, pa.binary()), is_record, unknown_tags=True
    )
    assert found.records
    for column in found.records.values():
        assert_comes_back(through, column)


@THROUGH
def test_declared_nullability_is_what_is_written(through: Any) -> None:
    """The declaration "not null" of members is kept, also inside null structs."""
    message = registry.message_class("OffsetCommitValue").CODEC.schema
    found = decode_column(message, pa.array([None, b"\x00\x09", b"\x00\x01"]))
    assert found.values.null_count == 3
    read = through(pa.table({"column": found.values})).column("column")
    assert read.null_count == 3
    assert [member.nullable for member in read.type] == [member.nullable for member in found.values.type]
    assert not read.type.field("offset").nullable
