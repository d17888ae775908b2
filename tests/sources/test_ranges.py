"""Ranges of offsets: the rows that every source returns for them, and that no more is read than necessary."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.log.reading.segment_files import FoundLog
from kafka_records_engine.sources import Context, LogPartition
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.segment_files import Segments
from tests.log.logs import CAPTURES, TOPICS, case, changed, commit, marker, write_log

Made = Callable[[FoundLog], LogPartition]


def read(
    log: LogPartition, start: int | None = None, end: int | None = None, columns: Any = RAW_SCHEMA.names
) -> tuple[pa.Table, Context]:
    context = Context(log.topic, log.partition)
    batches = list(log.batches(context, columns, start, end))
    return pa.Table.from_batches(batches, RAW_SCHEMA if columns == RAW_SCHEMA.names else None), context


def between(rows: pa.Table, start: int | None, end: int | None) -> pa.Table:
    offsets = rows["offset"]
    low = pc.greater_equal(offsets, 0 if start is None else start)
    return rows.filter(pc.and_(low, pc.less(offsets, 1 << 62 if end is None else end)))


def captured() -> list[LogPartition]:
    sources = [Segments(TOPICS / capture / "segments") for capture in CAPTURES]
    return [log for source in sources for topic in source.topics() for log in source.partitions(topic)]


def in_memory(log: LogPartition) -> LogPartition:
    rows, _ = read(log, 0)
    (found,) = ArrowRows(rows).partitions(log.topic)
    return found


@pytest.mark.parametrize("made", [lambda log: log, in_memory], ids=["segments", "Arrow"])
def test_a_range_has_the_rows_of_the_whole_that_lie_in_it(made: Callable[[LogPartition], LogPartition]) -> None:
    chance = random.Random(1)
    compared = 0
    for captured_log in captured():
        whole, _ = read(captured_log, 0)
        if not whole.num_rows:
            continue
        log = made(captured_log)
        last = whole["offset"][-1].as_py()
        for _ in range(12):
            start, end = sorted(chance.randrange(-2, last + 4) for _ in range(2))
            for asked in ((start, end), (start, None), (None, end)):
                rows, context = read(log, *asked)
                first = asked[0] if asked[0] is not None else context.log.start
                assert rows.equals(between(whole, first, asked[1])), (captured_log, asked)
                assert [found for found in context.findings if found.severity == "damage"] == []
                compared += rows.num_rows
        _, context = read(log, 0, last + 1)
        assert (context.log.holes, context.counts.outside) == ([], 0)
    assert compared > 1000


def test_a_range_that_ends_before_the_log_leaves_a_hole_for_the_marker(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0) + commit(1, 7) + commit(2) + marker(3, 7, 1)}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")
    for each in (log, in_memory(log)):
        assert read(each, 0, 3)[1].log.holes == [2]
        assert read(each, 0, 4)[1].log.holes == []
        assert read(each, 1)[1].log.holes == []


def test_only_the_files_of_a_range_are_read(tmp_path: Path) -> None:
    write_log(tmp_path, {base: commit(base) + commit(base + 1) for base in (0, 10, 20, 30)}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")
    for asked, offsets, files, left_out in (
        ((10, 20), [10, 11], [10], 0),
        ((11, 21), [11, 20], [10, 20], 2),
        ((None, 10), [0, 1], [0], 0),
        ((31, None), [31], [30], 1),
        ((40, 50), [], [30], 2),
        ((5, 10), [], [0], 2),
        ((5, 5), [], [0], 2),
    ):
        rows, context = read(log, *asked)
        assert rows["offset"].to_pylist() == offsets, asked
        size = sum(len(commit(base) + commit(base + 1)) for base in files)
        assert (context.counts.files, context.counts.bytes) == (len(files), size), asked
        assert context.counts.outside == left_out, asked
        assert (context.log.start, context.log.cleaned_up_to) == (0, 30), asked


def test_gaps_between_files_are_told_of_the_range_they_lie_in(tmp_path: Path) -> None:
    write_log(tmp_path, {0: commit(0), 5: commit(5), 9: commit(9)}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")

    def gaps(start: int | None, end: int | None) -> list[str]:
        return [found.what for found in read(log, start, end)[1].findings]

    first, second = "no file has offsets 1 to 4", "no file has offsets 6 to 8"
    assert gaps(None, None) == gaps(0, 10) == [first, second]
    assert gaps(3, 7) == [first, second]
    assert gaps(4, 6) == [first]
    assert gaps(0, 1) == gaps(9, 10) == []


def test_damage_is_told_of_the_ranges_that_it_may_lie_in(tmp_path: Path) -> None:
    broken = changed(commit(5), 66, b"\xff", crc=False)
    after_nonsense = commit(0) + commit(1) + b"nonsense of a few bytes, longer than a head" + commit(3) + commit(4)
    write_log(tmp_path, {0: after_nonsense + broken + commit(6) + commit(7)}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")

    def told(start: int, end: int) -> list[int | None]:
        context = read(log, start, end)[1]
        damage = [found.position for found in context.findings if found.severity == "damage"]
        assert bool(damage) <= bool(context.log.holes)
        return damage

    nonsense_at, broken_at = len(commit(0) + commit(1)), len(after_nonsense)
    assert told(0, 8) == [nonsense_at, broken_at]
    assert told(2, 3) == [nonsense_at]
    assert told(3, 5) == [nonsense_at, broken_at]
    assert told(4, 5) == told(5, 6) == [broken_at]
    assert told(6, 8) == [broken_at]
    assert told(7, 8) == []
    rows, context = read(log, 4, 7)
    assert rows["offset"].to_pylist() == [4, 6]
    assert context.log.holes == [4, 6]


def test_the_log_start_counts_unless_a_range_begins_before_it(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b"".join(map(commit, range(6)))}, "t-0")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 3\n")
    (log,) = Segments(tmp_path).partitions("t")

    def offsets(start: int | None, end: int | None) -> tuple[list[int], int, int | None]:
        rows, context = read(log, start, end)
        return rows["offset"].to_pylist(), context.counts.below_log_start, context.log.start

    assert offsets(None, None) == ([3, 4, 5], 3, 3)
    assert offsets(None, 5) == ([3, 4], 3, 3)
    assert offsets(1, 5) == ([1, 2, 3, 4], 0, 3)


def test_the_offset_is_read_even_where_nobody_asked_for_it(tmp_path: Path) -> None:
    write_log(tmp_path, {0: b"".join(map(commit, range(6)))}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")
    rows, _ = read(log, 2, 4, ("value", "key", "file", "position"))
    assert rows.schema.names == ["value", "key", "file", "position"]
    assert rows["key"].to_pylist() == [b"k2", b"k3"]


@pytest.mark.parametrize(
    "name", [f"magic {magic} {codec} three records" for magic in (0, 1) for codec in ("none", "gzip")]
)
def test_old_messages_are_told_apart_by_their_records(tmp_path: Path, name: str) -> None:
    """A wrapper only has its last offset."""
    data = case(name)
    write_log(tmp_path, {0: data}, "t-0")
    (log,) = Segments(tmp_path).partitions("t")
    whole, _ = read(log)
    offsets = whole["offset"].to_pylist()
    assert len(offsets) > 1
    for at in offsets:
        rows, _ = read(log, at, at + 1)
        assert rows.equals(between(whole, at, at + 1))
