"""The sums of `activity`: the cost of an addition, and numbers that do not fit into 64 bits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from kafka_records_tables.tables.group_rows.window_sums import MOST, WindowSums

MINUTE_MS = 60_000


def test_an_addition_costs_what_it_adds_and_not_what_is_there() -> None:
    sums, many = WindowSums(MINUTE_MS), 200_000
    place = sums.places([("g", "t")])
    sums.add(place.repeat(many), np.arange(many) * MINUTE_MS, commits=np.ones(many, np.bool_))
    tracemalloc.start()
    try:
        sums.add(place, np.array([MINUTE_MS]), commits=np.array([True]), records=np.array([5]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < many
    table = sums.table()
    assert (table.num_rows, table["commits"][1].as_py(), table["records"][1].as_py()) == (many, 2, 5)


def test_windows_of_one_addition_are_added_to_those_that_are_there() -> None:
    sums = WindowSums(MINUTE_MS)
    for lot in ([0, 1, 1, 2], [2, 1, 0, 0, 0]):
        time = np.array(lot) * MINUTE_MS
        sums.add(sums.places([("g", None)] * len(lot)), time, commits=time > 0, records=np.ones(len(lot), np.int64))
    table = sums.table()
    assert table["records"].to_pylist() == [4, 3, 2]
    assert table["commits"].to_pylist() == [0, 3, 2]


@pytest.mark.parametrize("at_once", [1, 2, 3, 9])
def test_sums_that_are_too_great_stay_at_the_greatest(at_once: int) -> None:
    sums, values = WindowSums(MINUTE_MS), np.array([5, 2**63 - 2, 2**63 - 2, 2**62, 7, 2**63 - 1, 2**61, 1, 0])
    for begin in range(0, len(values), at_once):
        lot = values[begin : begin + at_once]
        sums.add(sums.places([("g", "t")] * len(lot)), np.zeros(len(lot), np.int64), interval_sum=lot)
    assert sums.table()["interval_sum"].to_pylist() == [MOST]


def test_a_sum_below_the_greatest_is_exact() -> None:
    sums, values = WindowSums(MINUTE_MS), np.array([2**61 + 1, 2**61 - 3])
    sums.add(sums.places([("g", "t")] * 2), np.zeros(2, np.int64), interval_sum=values)
    assert sums.table()["interval_sum"].to_pylist() == [MOST - 1]
