"""Lots of commits: which rows stay together, and the maximum number of waiting rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from kafka_records.consumer_offsets import encode_record
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey
from kafka_records.schemas.consumer_offsets import RECORDS
from kafka_records_engine.sources import Context
from kafka_records_tables.coordinator.offsets import commit_lots
from kafka_records_tables.coordinator.offsets.commit_lots import CommitLot, Lots
from kafka_records_tables.coordinator.records.latest import joined

LOT_ROWS = 40


def _batch(base_offsets: list[int], first: int) -> pa.RecordBatch:
    offsets = range(first, first + len(base_offsets))
    return pa.RecordBatch.from_pydict({"offset": pa.array(offsets), "base_offset": pa.array(base_offsets, pa.int64())})


def _lots(base_offsets: list[int], at_once: int) -> list[pa.RecordBatch]:
    lots = Lots()
    found: list[pa.RecordBatch] = []
    for first in range(0, len(base_offsets), at_once):
        found += lots.take(_batch(base_offsets[first : first + at_once], first))
    found += lots.rest()
    offsets = [offset for lot in found for offset in lot.column("offset").to_pylist()]
    assert offsets == list(range(len(base_offsets)))
    return found


@pytest.mark.parametrize("at_once", [1, 3, 7, 200])
def test_records_of_a_batch_stay_together(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_lots, "LOT_ROWS", LOT_ROWS)
    found = [set(lot.column("base_offset").to_pylist()) for lot in _lots([at - at % 30 for at in range(600)], at_once)]
    assert len(found) > 2
    assert sum(map(len, found)) == len(set().union(*found))


def test_rows_of_one_base_offset_are_cut_after_a_few_tries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_lots, "LOT_ROWS", LOT_ROWS)
    joins: list[int] = []

    def counted(parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        joins.append(len(parts))
        return joined(parts)

    monkeypatch.setattr(commit_lots, "joined", counted)
    sizes = [lot.num_rows for lot in _lots([0] * 1000, 1)]
    assert max(sizes) <= 4 * LOT_ROWS
    assert len(joins) <= 3 * len(sizes)


def test_bytes_that_are_carried_over_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit_lots, "LOT_BYTES", 16 * LOT_ROWS)
    # The rest of the first batch is nearly a lot by itself: one row is missing.
    lots = Lots()
    assert [lot.num_rows for lot in lots.take(_batch([0, *[1] * LOT_ROWS], 0))] == [1]
    assert [lot.num_rows for lot in lots.take(_batch([2], LOT_ROWS + 1))] == [LOT_ROWS]


def test_a_batch_ends_where_another_base_offset_begins() -> None:
    """A row without a base offset is a separate batch."""
    told: list[tuple[list[int | None], int]] = [([5], 0), ([5, 5, None], 3), ([None, 5, 5], 1), ([0, 0], 0)]
    for base_offsets, whole in told:
        rows = pa.RecordBatch.from_pydict({"base_offset": pa.array(base_offsets, pa.int64())})
        assert commit_lots._whole_batches(rows) == whole


def test_a_key_is_decoded_once_and_counted_for_each_row() -> None:
    key, _ = encode_record(OffsetCommitKey("g", "orders", 0), None)
    keys = [key.replace(b"orders", b"order\xff") + b"\x01"] * 3
    rows = {"offset": range(7, 10), "key": keys, "control": pa.nulls(3, pa.string())}
    lot = CommitLot(pa.RecordBatch.from_pydict(rows | {"base_offset": pa.array([7, 7, None])}), RECORDS)
    context = Context("__consumer_offsets")
    lot.report(context, "")
    counts = context.counts
    assert (counts.bytes_left, counts.with_bytes_left, dict(counts.leniencies)) == (3, 3, {"invalid_utf8": 3})
    assert lot.batch_offsets().tolist() == [7, 7, 9]


def test_a_pair_has_a_number_that_no_other_group_and_topic_has() -> None:
    named = [("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("a", "x")]
    keys = [encode_record(OffsetCommitKey(group, topic, at), None)[0] for at, (group, topic) in enumerate(named)]
    cut = keys[0][:-1]
    batch = pa.RecordBatch.from_pydict(
        {"offset": range(8), "key": [*keys, cut, cut], "control": pa.nulls(8, pa.string())},
    )
    pair = CommitLot(batch, RECORDS).pair.tolist()
    expected = [*named, None, None]
    assert [[one == other for one in pair] for other in pair] == [
        [one == other for one in expected] for other in expected
    ]
