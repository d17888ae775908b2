"""Rows next to those with the same key: the same as Arrow's join."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from kafka_records_tables.engines.shared_columns import SharedColumns
from kafka_records_tables.tables.lagging.matching import has_match, with_columns

KEY = ["topic", "partition"]


def rows_of(random: Random, count: int, *, once: bool) -> pa.Table:
    """Rows with a key of which each part may be null, and a value."""
    keys = [(random.choice(["a", "b", "ä", None]), random.choice([0, 1, 2, -1, None])) for _ in range(count)]
    keys = list(dict.fromkeys(keys)) if once else keys
    schema = pa.schema([("topic", pa.string()), ("partition", pa.int32()), (f"value_{once}", pa.string())])
    found = pa.Table.from_pylist(
        [{"topic": topic, "partition": number, f"value_{once}": str(at)} for at, (topic, number) in enumerate(keys)],
        schema,
    )
    half = len(found) // 2
    return pa.concat_tables([found.slice(0, half), found.slice(half)]) if random.random() < 0.5 else found


def as_sorted(rows: pa.Table) -> list[str]:
    return sorted(map(repr, rows.to_pylist()))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("once", [True, False])
def test_as_arrow_joins(seed: int, once: bool) -> None:
    random = Random(seed)
    own = rows_of(random, random.choice([0, 1, 30]), once=False)
    others = rows_of(random, random.choice([0, 1, 20]), once=once).rename_columns([*KEY, "other"])
    found = with_columns(own, others, KEY)
    assert found.column_names == [*own.column_names, "other"]
    assert as_sorted(found) == as_sorted(own.join(others, KEY))
    if once:
        assert found.select(own.column_names).equals(own)  # in their order
    assert own.filter(has_match(own, others, KEY)).num_rows == own.join(others, KEY, join_type="left semi").num_rows


def test_columns_that_are_equal_have_the_same_memory() -> None:
    names = pa.chunked_array([[str(at) for at in range(20_000)]])
    again = pa.chunked_array([[str(at) for at in range(20_000)]])
    numbers = pa.chunked_array([range(20_000)])
    columns = SharedColumns()
    columns.shared(pa.table({"group_id": names, "lag": numbers}))
    found = columns.shared(pa.table({"topic": again, "lost": pa.chunked_array([range(1, 20_001)])}))
    assert found.column_names == ["topic", "lost"]
    assert found["topic"].chunk(0).buffers()[2].address == names.chunk(0).buffers()[2].address
    assert found["lost"].to_pylist() == list(range(1, 20_001))
