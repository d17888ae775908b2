"""The last record of each key, compared with a dict, for rows in any order."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_tables.coordinator.records import latest
from kafka_records_tables.coordinator.records.latest import LAST_VALUE, Latest

KEYS = [None, b"", b"a", b"b", b"ab", b"c" * 40]
COLUMNS = ("offset", "key", "value", "file", LAST_VALUE)


def rows_of(random: Random, count: int) -> list[dict[str, Any]]:
    return [
        {
            "offset": offset,
            "key": random.choice(KEYS),
            "value": None if random.random() < 0.3 else b"%d" % offset,
            "file": f"{offset // 50}.log",
        }
        for offset in range(count)
    ]


def batch_of(rows: list[dict[str, Any]]) -> pa.RecordBatch:
    columns = {
        "offset": pa.array([row["offset"] for row in rows], pa.int64()),
        "key": pa.array([row["key"] for row in rows], pa.binary()),
        "value": pa.array([row["value"] for row in rows], pa.binary()),
        "file": pa.array([row["file"] for row in rows]).dictionary_encode(),
    }
    return pa.RecordBatch.from_pydict(columns)


def expected(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    last: dict[bytes | None, dict[str, Any]] = {}
    values: dict[bytes | None, int] = {}
    for row in sorted(rows, key=lambda row: row["offset"]):
        last[row["key"]] = row
        if row["value"] is not None:
            values[row["key"]] = row["offset"]
    kept = sorted(last.values(), key=lambda row: row["offset"])
    return [{**row, LAST_VALUE: values.get(row["key"], -1)} for row in kept]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("in_order", [True, False])
def test_the_last_of_each_key(seed: int, in_order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest, "LOT_ROWS", 40)  # squeezed again and again
    random = Random(seed)
    rows = rows_of(random, 300)
    if not in_order:
        random.shuffle(rows)
    kept = Latest(COLUMNS)
    left = list(rows)
    while left:
        count = random.randint(0, 30)
        kept.add(batch_of(left[:count]))
        left = left[count:]
    found = kept.rows()
    assert found is not None
    found.validate(full=True)
    assert found.select(COLUMNS).to_pylist() == expected(rows)


def test_rows_of_one_batch_come_in_any_order() -> None:
    kept = Latest(COLUMNS)
    kept.add(batch_of([{"offset": at, "key": b"a", "value": b"", "file": "0.log"} for at in (1, 3, 2)]))
    found = kept.rows()
    assert found is not None
    assert found.column("offset").to_pylist() == [3]


def test_nothing_is_left_of_nothing() -> None:
    kept = Latest(COLUMNS)
    kept.add(batch_of([]))
    assert kept.rows() is None
