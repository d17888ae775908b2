"""Rows that wait for markers: those that are superseded may be dropped, without an effect on any table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.sources import Context
from kafka_records_tables import read_table
from kafka_records_tables.coordinator import transactions as transactions_settled
from tests.tables.topic import OFFSETS_TOPIC, Topic
from tools.judge.cleaner import CleanedLog

SETTLING = ("current_offsets", "expirations", "regressions")


class InLots(CleanedLog):
    """A log whose rows are returned one by one, some with a hole after them."""

    def __init__(self, rows: pa.Table, holes: tuple[int, ...] = ()) -> None:
        super().__init__(rows, OFFSETS_TOPIC, 0)
        self.holes = holes

    def batches(self, context: Any, columns: Any, start: Any = None, end: Any = None) -> Iterator[pa.RecordBatch]:
        """See `protocol.LogPartition.batches`."""
        for batch in super().batches(context, columns, start, end):
            for at in range(batch.num_rows):
                row = batch.slice(at, 1)
                yield row
                if (offset := row.column("offset")[0].as_py()) in self.holes:
                    context.log.add_hole(offset)


def compare(name: str, log: InLots, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The rows of a table, the same whether waiting rows are dropped or not."""
    usual = read_table(name, log)
    with monkeypatch.context() as patched:
        patched.setattr(transactions_settled, "_MOST_PENDING", 1)
        squeezed = read_table(name, log)
    assert squeezed.table.to_pylist() == usual.table.to_pylist()
    assert squeezed.findings == usual.findings
    rows: list[dict[str, Any]] = usual.table.to_pylist()
    return rows


def test_an_aborted_commit_does_not_write_over_a_committed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a source without control rows, which has the outcomes of transactions."""
    topic = Topic()
    for group in "gh":
        topic.commit(group, 1, transaction="committed")
        topic.commit(group, 2, transaction="aborted")
        topic.commit(group, 3, transaction="open")
    topic.commit("g", 4, transaction="committed")
    rows = compare("current_offsets", InLots(topic.table()), monkeypatch)
    assert [(row["group_id"], row["offset"]) for row in rows] == [("g", 4), ("h", 1)]


def test_commits_of_several_transactions_are_compared_each(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic()
    for offset in (10, 20, 5):
        topic.commit("g", offset, transaction="committed")
    rows = compare("regressions", InLots(topic.table()), monkeypatch)
    assert [(row["from_offset"], row["to_offset"]) for row in rows] == [(20, 5)]


def test_an_aborted_commit_does_not_write_over_one_whose_marker_a_hole_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Topic()
    hole_after = topic.commit("g", 1, transaction="open")
    topic.commit("g", 2, transaction="open")
    topic.commit("h", 1, transaction="open")
    topic.marker("abort")
    assert compare("current_offsets", InLots(topic.table(), (hole_after,)), monkeypatch) == []
    (finding,) = read_table("current_offsets", InLots(topic.table(), (hole_after,))).findings
    assert (finding.reason, finding.offset) == ("UndecidedTransaction", hole_after)


@pytest.mark.parametrize("has_markers", [True, False])
@pytest.mark.parametrize("name", SETTLING)
def test_tables_of_logs_at_random(name: str, has_markers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(f"{name} {has_markers}")
    words = ["open"] if has_markers else ["committed", "aborted", "open", "unknown"]
    for _ in range(3):
        topic, holes = Topic(), []
        for _ in range(40):
            what, producer = chance.random(), chance.choice([7, 8])
            if what < 0.1 and has_markers:
                topic.marker(chance.choice(["commit", "abort"]), producer=producer)
            elif what < 0.15:
                topic.commit(chance.choice("gh"), None)
            else:
                topic.commit(
                    chance.choice("gh"), chance.randrange(9), transaction=chance.choice(words), producer=producer
                )
            if chance.random() < 0.03:
                holes.append(len(topic.rows) - 1)
        compare(name, InLots(topic.table(), tuple(holes)), monkeypatch)


def test_what_is_written_over_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """So memory use depends on the number of keys."""
    topic = Topic()
    for offset in range(50):
        topic.commit("g", offset, transaction="open")
    monkeypatch.setattr(transactions_settled, "_MOST_PENDING", 1)
    settling = transactions_settled.TransactionResolver(
        Context(OFFSETS_TOPIC, 0), tombstones_at_once=True, last_of_key=True
    )
    for batch in topic.table().to_batches(max_chunksize=1):
        assert list(settling.take(batch)) == []
        assert sum(waiting.rows.num_rows for waiting in settling._pending) <= 2
    (left,) = settling.rest()
    assert left.rows.column("offset").to_pylist() == [49]
