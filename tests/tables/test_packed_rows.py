"""Rows that are compressed while nothing uses them: they come back as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import kafka_records_tables.read as reading
from kafka_records_tables import read_tables
from kafka_records_tables.engines import several_tables
from kafka_records_tables.engines.packed_rows import RowStore
from kafka_records_tables.report.making import REPORTED

SCHEMA = pa.schema(
    [
        pa.field("group_id", pa.string(), metadata={"comment": "the group"}),
        pa.field("lag", pa.int64()),
        pa.field("key", pa.binary()),
        pa.field("is_due", pa.bool_()),
        pa.field("commit_timestamp", pa.timestamp("us", tz="UTC")),
        pa.field("batches", pa.list_(pa.field("element", pa.struct([("first_offset", pa.int64())])))),
    ],
    metadata={"table": "made up"},
)


def rows_of(count: int) -> pa.RecordBatch:
    rows = [
        {
            "group_id": f"group-{at % 7}",
            "lag": None if at % 3 else at,
            "key": bytes([at % 256]),
            "is_due": at % 2 == 0,
            "commit_timestamp": at,
            "batches": None if at % 5 else [{"first_offset": at}, None],
        }
        for at in range(count)
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def test_rows_come_back_as_they_were_and_more_than_once() -> None:
    batches = [rows_of(1000), rows_of(0), rows_of(500).slice(100, 300)]
    packed = RowStore(0).packed(batches)
    for _ in range(2):
        found = list(packed)
        assert found == batches
        assert [each.schema.equals(SCHEMA, check_metadata=True) for each in found] == [True] * 3
        for each in found:
            each.validate(full=True)
    assert packed.num_rows == 1300
    packed.clear()
    assert (list(packed), packed.num_rows) == ([], 0)


def test_only_rows_beyond_the_first_are_compressed() -> None:
    batch = rows_of(1000)
    store = RowStore(batch.nbytes)
    first, second = store.packed([batch]), store.packed([batch])
    assert [each is batch for each in first] == [True]
    assert [each is batch for each in second] == [False]
    assert list(second) == [batch]


def test_compressed_rows_take_less_memory() -> None:
    batch = rows_of(100_000)
    part = RowStore(0).part(batch)
    assert isinstance(part, bytes)
    assert len(part) < batch.nbytes / 2


def test_tables_are_the_same(topics_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = read_tables(REPORTED, topics_dir / "kafka-4.3" / "segments", processes=1)
    stores: list[RowStore] = []

    def store() -> RowStore:
        stores.append(RowStore(0))
        return stores[-1]

    monkeypatch.setattr(reading, "RowStore", store)
    monkeypatch.setattr(several_tables, "RowStore", store)
    packed = read_tables(REPORTED, topics_dir / "kafka-4.3" / "segments", processes=1)
    assert len(stores) == 2
    assert list(packed) == list(plain)
    for name in plain:
        if name != "lag":  # it has times up to now
            assert packed[name].table.equals(plain[name].table), name
            assert packed[name].findings == plain[name].findings
    times = {"lag_ms", "margin_ms"}
    both = [each["lag"].table for each in (plain, packed)]
    assert both[0].drop_columns([*times]).equals(both[1].drop_columns([*times]))
