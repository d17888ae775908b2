"""Share state that Kafka's `ShareCoordinatorShard` wrote; `test_histories.py` compares it with its answers."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import OUTSIDE_LOG, UNMADE_CHECKS
from kafka_records_tables import read_table
from tests.tables.histories import SHARE_NAMES, history

pytestmark = pytest.mark.slow

Row = dict[str, Any]
Key = tuple[str, str, int]


@pytest.mark.parametrize("name", SHARE_NAMES)
def test_what_the_coordinator_finds_redundant_is(name: str) -> None:
    for cut, questions in history(name).cuts.items():
        (redundant,) = [each["answer"] for each in questions if each["question"] == "last_redundant_offset"]
        if redundant is not None:
            rows = history(name).up_to(cut)
            assert _read(rows.slice(redundant)) == _read(rows)


@pytest.mark.parametrize("name", SHARE_NAMES[::3])
def test_rows_in_any_order_and_each_twice_are_the_same(name: str) -> None:
    rows = history(name).rows
    order = [*range(rows.num_rows), *range(rows.num_rows)]
    Random(name).shuffle(order)
    assert _read(rows.take(order)) == _read(rows)


def _read(rows: pa.Table, **options: Any) -> dict[Key, Row]:
    """The rows of the table by share partition; there is nothing to find, and no state is partial."""
    result = read_table("share_partitions", rows, **options)
    assert {finding.reason for finding in result.findings} <= {UNMADE_CHECKS, OUTSIDE_LOG}
    found = {(row["group_id"], row["topic_id"], row["partition"]): row for row in result.table.to_pylist()}
    assert len(found) == len(result)
    assert not any(row["is_partial"] for row in found.values())
    return found
