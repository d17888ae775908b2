"""Damaged snapshots, and directories with other content or none."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_tables import read_table
from tests.conftest import DATA_DIR
from tests.sources.snapshot_logs import TOPIC, Logs, all_rows, commits, files_in, findings_of, log_of
from tests.tables.topic import Topic
from tools.judge.cleaner import CleanedLog

CAPTURED = DATA_DIR / "topics" / "kafka-4.3" / "segments"
CONSUMERS = "__consumer_offsets"


# -- damage ------------------------------------------------------------------------------------------------------------


def test_damage_of_the_source_stays_known(tmp_path: Path) -> None:
    shutil.copytree(CAPTURED / "__consumer_offsets-4", tmp_path / "data" / "__consumer_offsets-4")
    damaged = tmp_path / "data" / "__consumer_offsets-4" / "00000000000000000267.log"
    content = bytearray(damaged.read_bytes())
    content[4000] ^= 0xFF
    damaged.write_bytes(content)

    report = take_snapshot(Segments(tmp_path / "data"), tmp_path / "kept")

    (told,) = [found for found in report.findings if found.severity == "damage"]
    files, kept = read_table("current_offsets", tmp_path / "data"), read_table("current_offsets", tmp_path / "kept")
    assert kept.table.equals(files.table)
    (found,) = [found for found in kept.findings if found.severity == "damage"]
    assert str(found).startswith(str(told)[:-1])
    assert re.search(r"; found when the snapshot was taken, 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\)$", str(found))
    again = take_snapshot(Segments(tmp_path / "data"), tmp_path / "kept")
    assert again.topics[CONSUMERS].records == 0


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 0x10
    path.write_bytes(content)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("harm", [_flipped, _cut, _emptied])
def test_a_damaged_file_costs_its_rows_and_no_others(harm: Callable[[Path], None], tmp_path: Path) -> None:
    topic = Topic()
    for number in range(150):
        topic.commit(os.urandom(20).hex(), number)
    take_snapshot(log_of(topic), tmp_path, file_bytes=1)
    names = files_in(tmp_path)
    assert len(names) == 3
    harm(tmp_path / f"topic={TOPIC}" / "partition=0" / names[1])

    (log,) = Snapshot(tmp_path).partitions(TOPIC)
    context = Context(TOPIC, 0)
    offsets = [
        offset for rows in log.batches(context, RAW_SCHEMA.names) for offset in rows.column("offset").to_pylist()
    ]

    assert offsets == [*range(50), *range(100, 150)]
    (found,) = context.findings
    assert found.severity == "damage"
    assert names[1] in str(found)
    assert "offsets 50 to 99 are not read" in str(found)
    assert context.log.holes == [49]
    topic.commit("later", 1)
    assert take_snapshot(log_of(topic), tmp_path).topics[TOPIC].records == 1


@pytest.mark.parametrize("harm", [_flipped, _cut, _emptied])
def test_a_damaged_last_file_is_no_other_log(harm: Callable[[Path], None], tmp_path: Path) -> None:
    topic = commits(20)
    take_snapshot(log_of(topic), tmp_path)
    harm(tmp_path / f"topic={TOPIC}" / "partition=0" / files_in(tmp_path)[0])

    report = take_snapshot(log_of(topic), tmp_path)

    assert not [found for found in report.findings if "older copy" in str(found)]
    (found,) = take_snapshot(log_of(topic, 10), tmp_path).findings[-1:]
    assert "records up to offset 19 are stored: this is an older copy" in str(found)


def test_a_run_that_ended_while_this_one_began_is_no_other_log(tmp_path: Path) -> None:
    topic = commits(20)
    take_snapshot(log_of(topic, 5), tmp_path)

    @dataclass(frozen=True)
    class Grows(Logs):
        """Just before the lock is taken, another run stores the whole log."""

        def partitions(self, topic: str) -> Any:
            return log_of(commits(20)).logs if _is_locked(tmp_path) else log_of(commits(20), 10).logs

    take_snapshot(log_of(topic), tmp_path)
    assert take_snapshot(Grows(log_of(topic).logs), tmp_path).findings == []


def _is_locked(root: Path) -> bool:
    with (root / "_lock").open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_snapshots_are_written_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LogSourceError, match=r"^s3://bucket/kept: snapshots are written only on this machine"):
        take_snapshot(log_of(commits(3)), "s3://bucket/kept")
    assert list(tmp_path.iterdir()) == []
    take_snapshot(log_of(commits(3)), (tmp_path / "kept").as_uri())
    assert len(all_rows(Snapshot(tmp_path / "kept"))) == 3
    with pytest.raises(LogSourceError, match="there is no log of topic other"):
        take_snapshot(Segments(CAPTURED), tmp_path / "none", ["other"])
    assert not (tmp_path / "none").exists()


def test_a_file_of_a_later_version_is_refused(tmp_path: Path) -> None:
    take_snapshot(log_of(commits(3)), tmp_path)
    mark = tmp_path / "_snapshot.json"
    told = json.loads(mark.read_text())
    mark.write_text(json.dumps({**told, "format": 2}))

    with pytest.raises(LogSourceError, match="this was written by a later version of kafka-records"):
        take_snapshot(log_of(commits(4)), tmp_path)


def test_a_mark_that_cannot_be_read_is_rewritten(tmp_path: Path) -> None:
    take_snapshot(log_of(commits(3)), tmp_path)
    mark = tmp_path / "_snapshot.json"
    mark.write_text("{")
    with pytest.raises(LogSourceError, match="delete it, and the next run writes it again"):
        take_snapshot(log_of(commits(4)), tmp_path)
    mark.unlink()
    with pytest.raises(LogSourceError, match="is not a snapshot"):
        Snapshot(tmp_path)

    take_snapshot(log_of(commits(4)), tmp_path)

    assert len(all_rows(Snapshot(tmp_path))) == 4


# -- the directory -----------------------------------------------------------------------------------------------------


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letters").write_text("dear")
    with pytest.raises(LogSourceError, match=r"this directory contains something else \(letters\)"):
        take_snapshot(log_of(commits(3)), tmp_path)
    with pytest.raises(LogSourceError, match="is a file, but a snapshot must be a directory"):
        take_snapshot(log_of(commits(3)), tmp_path / "letters")
    with pytest.raises(LogSourceError, match="there is no directory"):
        take_snapshot(log_of(commits(3)), tmp_path / "a" / "b")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["letters"]


def test_a_topic_with_no_name_of_kafkas_gets_no_folder(tmp_path: Path) -> None:
    rows = log_of(commits(1)).logs[0].rows
    with pytest.raises(LogSourceError, match="is not a valid topic name"):
        take_snapshot(Logs((CleanedLog(rows, "../escape", 0),)), tmp_path / "kept")
    assert not (tmp_path / "escape").exists()


def test_paths_of_snapshots_are_recognised(tmp_path: Path) -> None:
    take_snapshot(log_of(commits(3)), tmp_path)
    assert isinstance(source_of(tmp_path), Snapshot)
    assert source_of(str(tmp_path)).name == str(tmp_path)
    with pytest.raises(LogSourceError, match="snapshots cannot be read together: give one at a time"):
        source_of([tmp_path, CAPTURED])
    with pytest.raises(LogSourceError, match="there is no log of topic __transaction_state here"):
        source_of(tmp_path).partitions("__transaction_state")


def test_a_new_snapshot_is_empty_and_says_so(tmp_path: Path) -> None:
    take_snapshot(log_of(Topic()), tmp_path)
    with pytest.raises(LogSourceError, match="this snapshot contains no records yet"):
        Snapshot(tmp_path).topics()


def test_a_moment_after_the_last_run_is_noted(tmp_path: Path) -> None:
    take_snapshot(log_of(commits(3)), tmp_path)
    assert findings_of(tmp_path, as_of_ms=1_700_000_000_000, history=False) == []
    (note,) = findings_of(tmp_path, as_of_ms=32_000_000_000_000, history=False)
    assert (note.severity, note.reason) == ("note", INCOMPLETE_HISTORY)
    assert "the last run of this snapshot was at" in note.what


def test_progress_ends_at_the_size_of_the_source(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    take_snapshot(Segments(CAPTURED), tmp_path, on_progress=lambda done, total: told.append((done, total)))
    size = sum(log.size for topic in Segments(CAPTURED).topics() for log in Segments(CAPTURED).partitions(topic))
    assert told[-1] == (size, size)
    assert told == sorted(told)
