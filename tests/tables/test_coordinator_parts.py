"""Parts of the coordinator package alone: what a table over a small log would not show."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from kafka_records_tables.coordinator.groups.loading_groups import _as_java_maps_them
from kafka_records_tables.coordinator.offsets import commit_order
from kafka_records_tables.coordinator.offsets.commit_effects import CLOCK, NO_TIME, Clock
from kafka_records_tables.coordinator.offsets.commit_order import running_maximum

MEMBERS = [
    *("c", "b", "q", "a", "consumer-1-3f2a", "consumer-2-77b1", "rdkafka-9c", "rdkafka-9d", "sarama", "Aa", "BB"),
    *("AaBB", "BBAa", "ä", "\N{GRINNING FACE}", "", "0", "1", "12", "123", "connect-1", "connect-2"),
    *("member-with-a-long-name-0", "member-with-a-long-name-1", "z"),
]


@pytest.mark.parametrize(
    ("count", "places"),
    [
        (12, "9 10 2 3 1 4 0 8 6 5 7 11"),
        (13, "9 10 3 1 4 0 6 5 7 2 8 11 12"),
        (25, "9 10 15 4 22 8 11 12 3 18 1 0 13 6 5 7 16 2 17 19 21 20 14 23 24"),
    ],
)
def test_members_come_in_the_order_of_javas_hash_map(count: int, places: str) -> None:
    """`places` are what `java.util.HashMap.values` of Java 17 gives after putting each member with its place."""
    members = MEMBERS[:count]
    assert [members.index(each) for each in _as_java_maps_them(members)] == [int(place) for place in places.split()]


@pytest.mark.parametrize("at_once", [1, 2, 7])
def test_the_clock_is_the_latest_time_so_far(at_once: int) -> None:
    """A table as of a moment ends before the first record with a later timestamp."""
    times = pa.array([None, 5, 3, None, 9, 9, 2], pa.int64())
    rows = pa.RecordBatch.from_arrays([times], names=["timestamp_ms"])
    clock = Clock()
    added = [clock.added(rows.slice(first, at_once)) for first in range(0, rows.num_rows, at_once)]
    added.append(clock.added(rows.slice(0, 0)))
    assert pa.Table.from_batches(added)[CLOCK].to_pylist() == [NO_TIME, 5, 5, 5, 9, 9, 9]


@pytest.mark.parametrize("far", [1, 2**40, 2**60])
def test_the_largest_offset_so_far_is_that_of_a_key_alone(far: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where key and offset do not fit into one number."""
    codes, values = np.array([0, 0, 0, 1, 1, 5, 5, 5]), np.array([3, 1, 4, -2, -3, 0, 2, 1]) * far
    expected = (np.array([3, 3, 4, -2, -2, 0, 2, 2]) * far).tolist()
    assert running_maximum(codes, values).tolist() == expected
    monkeypatch.setattr(commit_order, "_MOST", 48)
    assert running_maximum(codes, values).tolist() == expected
    assert running_maximum(codes[:0], values[:0]).tolist() == []
