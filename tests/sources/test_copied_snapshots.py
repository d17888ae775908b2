"""Snapshots that were copied, one into another by a run, or files by hand."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, UNREAD_LOG
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.question import Question
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from tests.sources.saved_files import segments, table_of

TOPIC = "__consumer_offsets"
DAY = 24 * 3_600_000


def test_a_snapshot_of_a_snapshot_is_as_old_as_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, taken_ms = tmp_path / "first", tmp_path / "second", 1_800_000_000_000

    def take(source: Segments | Snapshot, root: Path, at_ms: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: at_ms * 1_000_000)
        take_snapshot(source, root, [TOPIC])

    def notes(as_of_ms: int) -> list[str]:
        log = Snapshot(second).partitions(TOPIC)[0]
        context = Context(log.topic, log.partition, Question(as_of_ms=as_of_ms), history=False)
        assert list(log.batches(context, ["offset"]))
        return [each.what for each in context.findings if each.reason == INCOMPLETE_HISTORY]

    take(Segments(segments("kafka-4.3")), first, taken_ms)
    take(Snapshot(first), second, taken_ms + 7 * DAY)
    assert notes(taken_ms) == []
    assert notes(taken_ms + DAY) == ["the last run of this snapshot was at 2027-01-15T08:00:00Z"]
    # A run of the first snapshot that finds nothing new still adds information, and so does the next run of the second.
    take(Segments(segments("kafka-4.3")), first, taken_ms + 2 * DAY)
    take(Snapshot(first), second, taken_ms + 9 * DAY)
    assert notes(taken_ms + DAY) == []
    assert notes(taken_ms + 3 * DAY) == ["the last run of this snapshot was at 2027-01-17T08:00:00Z"]


def test_files_that_no_run_has_written_are_named(tmp_path: Path) -> None:
    take_snapshot(Segments(segments("kafka-4.3")), tmp_path, [TOPIC])
    log = Snapshot(tmp_path).partitions(TOPIC)[0]
    whole = table_of(log)[0]
    folder = tmp_path / f"topic={TOPIC}" / f"partition={log.partition}"
    file = next(folder.glob("*.parquet"))
    shutil.copy(file, folder / "copy of it.parquet")
    for name in ("notes.txt", "1-2.parquet", "z\x1b.csv", ".hidden", "_SUCCESS"):
        (folder / name).write_text("")
    log, *_ = Snapshot(tmp_path).partitions(TOPIC)
    found, context = table_of(log)
    assert found.equals(whole)
    (note,) = context.findings
    assert (note.severity, note.reason, note.file) == ("note", UNREAD_LOG, str(folder))
    assert note.what == (
        "1-2.parquet, copy of it.parquet, notes.txt and 1 more: in the folder of a snapshot, but without a name "
        "of its files"
    )
