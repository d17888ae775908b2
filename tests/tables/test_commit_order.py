"""Numbers that are sorted 16 bits at a time."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_tables.coordinator.offsets.commit_order import in_effect_by_number, stable_order
from kafka_records_tables.tables import sorted_rows as module
from kafka_records_tables.tables.sorted_rows import sorted_rows


@pytest.mark.parametrize("most", [1, 5, 2**16 - 1, 2**16, 2**32 + 7, 2**62])
def test_numbers_of_any_size_are_sorted_and_equal_ones_stay_in_their_order(most: int) -> None:
    numbers = np.random.default_rng(most).integers(0, most, 500, endpoint=True) // 3
    assert stable_order(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()


def test_no_numbers_have_no_order() -> None:
    assert stable_order(np.zeros(0, np.int64)).tolist() == []


def test_rows_that_come_backwards_are_sorted() -> None:
    places = np.array([7, 5, 3])
    order, codes = in_effect_by_number(np.array([0, 1, 0]), places, places)
    assert (order.tolist(), codes.tolist()) == ([2, 0, 1], [0, 0, 1])
    # The second took effect at a later marker than the third, which is newer.
    order, _ = in_effect_by_number(np.zeros(3, np.int64), np.array([3, 5, 3]), np.array([0, 1, 2]))
    assert order.tolist() == [2]


@pytest.mark.parametrize("seed", range(40))
def test_rows_are_sorted_as_arrow_sorts_them(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", 0)
    chance = Random(seed)
    count = chance.randrange(1, 60)
    values = {
        "text": pa.array(chance.choices(["", "a", "ä", "b\0", "ab", None], k=count), pa.string()),
        "number": pa.array(chance.choices([-5, 0, 3, 70_000, 2**40, None], k=count), pa.int64()),
        "far": pa.array(chance.choices([-(2**63), 0, 2**63 - 1], k=count), pa.int64()),
        "nothing": pa.nulls(count, pa.string()),
        "row": pa.array(range(count)),
    }
    cut = chance.randrange(count)
    rows = pa.table(values)
    rows = pa.concat_tables([rows.slice(0, cut), rows.slice(cut)])
    names = chance.sample(["text", "number", "far", "nothing"], chance.randrange(1, 5))
    assert sorted_rows(rows, names).equals(rows.sort_by([(name, "ascending") for name in names]))
