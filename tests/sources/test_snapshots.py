"""Snapshots store the rows of a source unchanged, regardless of what happens to the log and to the run."""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.parquet as pq
import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources import Context
from kafka_records_engine.sources._stored.snapshot_mark import read_mark
from kafka_records_engine.sources._stored.stretches import stored_log
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.question import Question
from kafka_records_engine.sources.saved_rows import SavedRows
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_tables import read_table
from tests.conftest import DATA_DIR
from tests.sources.snapshot_logs import TOPIC, LiveLog, Logs, all_rows, commits, files_in, findings_of, log_of, rows_of
from tests.tables.topic import Topic
from tools.judge.cleaner import CleanedLog

CAPTURED = DATA_DIR / "topics" / "kafka-4.3" / "segments"
CONSUMERS = "__consumer_offsets"


# -- what is kept ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-2.8", "kafka-4.3-expiry"])
def test_the_rows_are_those_of_the_segments(name: str, tmp_path: Path) -> None:
    source = Segments(DATA_DIR / "topics" / name / "segments")
    report = take_snapshot(source, tmp_path / "kept")

    kept = Snapshot(tmp_path / "kept")
    assert kept.topics() == [topic for topic in source.topics() if report.topics[topic].records]
    for topic in kept.topics():
        assert all_rows(kept, topic) == all_rows(source, topic)
    assert sum(added.records + added.markers for added in report.topics.values()) == sum(
        len(all_rows(kept, topic)) for topic in kept.topics()
    )
    assert not [found for found in report.findings if found.severity == "damage"]


def test_names_tell_the_offsets_and_other_programs_read_the_folder(tmp_path: Path) -> None:
    take_snapshot(Segments(CAPTURED), tmp_path / "kept")

    rows = all_rows(Segments(CAPTURED), CONSUMERS)
    for partition in {row["partition"] for row in rows}:
        (name,) = files_in(tmp_path / "kept", CONSUMERS, partition)
        offsets = [row["offset"] for row in rows if row["partition"] == partition]
        assert name == f"{offsets[0]:020d}-{offsets[-1]:020d}.parquet"
    dataset = ds.dataset(tmp_path / "kept", partitioning="hive").to_table()
    assert dataset.num_rows == sum(len(all_rows(Segments(CAPTURED), topic)) for topic in Segments(CAPTURED).topics())
    assert set(dataset.column_names) == set(RAW_SCHEMA.names)
    query = f"SELECT count(*) FROM read_parquet('{tmp_path}/kept/topic=*/*/*.parquet') WHERE topic = '{CONSUMERS}'"
    assert duckdb.connect().execute(query).fetchall() == [(len(rows),)]


def test_how_a_transaction_ended_is_never_stored(tmp_path: Path) -> None:
    raw = pa.Table.from_pylist(all_rows(Segments(CAPTURED), CONSUMERS), RAW_SCHEMA)
    words = pc.if_else(pc.equal(raw["transaction"], "pending"), "committed", raw["transaction"])
    settled = raw.set_column(raw.schema.get_field_index("transaction"), "transaction", words)

    take_snapshot(ArrowRows(settled), tmp_path / "kept")

    stored = ds.dataset(tmp_path / "kept", partitioning="hive").to_table()
    records = stored.filter(pc.is_null(stored["control"]))
    assert set(records["transaction"].to_pylist()) == {"none", "pending"}
    expected = read_table("offset_commits", raw).table
    assert read_table("offset_commits", tmp_path / "kept").table.equals(expected)
    assert {"committed", "aborted"} <= set(expected["transaction"].to_pylist())


def test_a_commit_in_one_run_and_its_marker_in_the_next(tmp_path: Path) -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("g", 2, transaction="pending", producer=7)
    topic.marker("commit", producer=7)

    take_snapshot(log_of(topic, 2), tmp_path)
    assert read_table("current_offsets", tmp_path).table["offset"].to_pylist() == [1]
    take_snapshot(log_of(topic), tmp_path)
    assert read_table("current_offsets", tmp_path).table["offset"].to_pylist() == [2]


def test_an_outcome_without_its_control_record_is_damage(tmp_path: Path) -> None:
    topic = Topic()
    topic.commit("g", 2, transaction="committed", producer=7)

    report = take_snapshot(log_of(topic), tmp_path)

    (found,) = report.findings
    assert str(found) == (
        "__consumer_offsets-0: the source says how the transaction of the record at offset 0 ended, but has no "
        "control record for it (it is stored without the outcome of its transaction: take the snapshot of a source "
        "with control records)"
    )
    assert found.severity == "damage"
    assert [f.what for f in findings_of(tmp_path)] == [found.what]


def test_saved_rows_are_kept(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(all_rows(Segments(CAPTURED), CONSUMERS), RAW_SCHEMA)
    pq.write_table(rows, tmp_path / "rows.parquet")

    take_snapshot(source_of(tmp_path / "rows.parquet"), tmp_path / "kept")

    assert all_rows(Snapshot(tmp_path / "kept"), CONSUMERS) == rows.to_pylist()
    report = take_snapshot(source_of(tmp_path / "rows.parquet"), tmp_path / "kept")
    assert (report.topics[CONSUMERS].grown, report.findings) == (0, [])


def test_what_a_source_does_not_tell_is_not_made_up(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(all_rows(Segments(CAPTURED), CONSUMERS), RAW_SCHEMA)
    bare = rows.select(["topic", "partition", "offset", "timestamp_ms", "key", "value"])

    take_snapshot(ArrowRows(bare), tmp_path)

    stored = all_rows(Snapshot(tmp_path), CONSUMERS)
    assert {row["transaction"] for row in stored} == {row["producer_id"] for row in stored} == {None}
    with pytest.raises(ValueError, match="it is unknown whether the record at offset"):
        read_table("current_offsets", tmp_path)


# -- run after run -----------------------------------------------------------------------------------------------------


def test_a_run_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    topic = commits(40)
    for end in (10, 10, 25, 40):
        take_snapshot(log_of(topic, end), tmp_path)
        assert [row["offset"] for row in all_rows(Snapshot(tmp_path))] == list(range(end))
    assert all_rows(Snapshot(tmp_path)) == all_rows(log_of(topic))


def test_a_run_without_news_writes_no_file(tmp_path: Path) -> None:
    topic = commits(10)
    take_snapshot(log_of(topic), tmp_path)
    before = files_in(tmp_path)

    report = take_snapshot(log_of(topic), tmp_path)

    assert (report.topics[TOPIC].grown, report.topics[TOPIC].records, report.findings) == (0, 0, [])
    assert files_in(tmp_path) == before == ["00000000000000000000-00000000000000000009.parquet"]


def test_many_runs_leave_few_files(tmp_path: Path) -> None:
    topic = commits(200)
    written = 0
    for end in range(2, 202, 2):
        written += take_snapshot(log_of(topic, end), tmp_path).topics[TOPIC].files

    assert written == 100
    assert len(files_in(tmp_path)) <= 7
    assert all_rows(Snapshot(tmp_path)) == all_rows(log_of(topic))


def test_a_file_ends_at_the_size_that_is_asked_for(tmp_path: Path) -> None:
    topic = Topic()
    for number in range(400):
        topic.commit(os.urandom(200).hex(), number)

    report = take_snapshot(log_of(topic), tmp_path, file_bytes=1)

    # The log comes in pieces of fifty rows, and every piece is more than a byte.
    assert report.topics[TOPIC].files == len(files_in(tmp_path)) > 1
    assert all_rows(Snapshot(tmp_path)) == all_rows(log_of(topic))


def test_a_snapshot_of_a_snapshot_has_the_same_rows(tmp_path: Path) -> None:
    topic = commits(30)
    for end in (10, 30):
        take_snapshot(log_of(topic, end), tmp_path / "one")
        take_snapshot(Snapshot(tmp_path / "one"), tmp_path / "two")
    assert all_rows(Snapshot(tmp_path / "two")) == all_rows(log_of(topic))


def test_ranges_of_offsets_join_to_the_whole(tmp_path: Path) -> None:
    topic = commits(60)
    for end in (10, 35, 60):
        take_snapshot(log_of(topic, end), tmp_path)
    (log,) = Snapshot(tmp_path).partitions(TOPIC)
    for cut in (0, 1, 9, 10, 11, 34, 59, 60, 100):
        rows: list[int] = []
        ranges: tuple[tuple[int | None, int | None], ...] = ((None, cut), (cut, None))
        for begin, behind in ranges:
            context = Context(TOPIC, 0)
            for batch in log.batches(context, ["offset", "key"], begin, behind):
                assert batch.schema.names == ["offset", "key"]
                rows += batch.column("offset").to_pylist()
            assert context.log.holes == ([cut - 1] if behind is not None and cut < 60 else [])
        assert rows == list(range(60))


# -- what the log has lost ---------------------------------------------------------------------------------------------


def without(topic: Topic, *offsets: int) -> pa.Table:
    rows = topic.table()
    return rows.filter(pc.invert(pc.is_in(rows["offset"], pa.array(offsets, pa.int64()))))


def deleted_between_runs() -> tuple[Logs, Logs]:
    """A log before and after a tombstone and another record. A cleaner has removed the tombstone and the record that it
    deleted."""
    topic = Topic()
    topic.commit("gone", 1)
    topic.commit("stays", 2)
    before = log_of(topic)
    topic.commit("gone", None)
    topic.commit("new", 3)
    return before, Logs((CleanedLog(without(topic, 0, 2), TOPIC, cleaned_up_to=3),))


def test_what_was_deleted_between_runs_is_gone_though_nobody_has_read_its_tombstone(tmp_path: Path) -> None:
    before, after = deleted_between_runs()
    take_snapshot(before, tmp_path)
    report = take_snapshot(after, tmp_path)

    assert (report.topics[TOPIC].lost, report.topics[TOPIC].looked, report.findings) == (1, 1, [])
    offsets = read_table("current_offsets", tmp_path)
    assert offsets.table["group_id"].to_pylist() == ["new", "stays"]
    assert offsets.findings == ()
    # The rows have what happened, and a finding says from when on they are complete.
    history = read_table("offset_commits", tmp_path)
    assert history.table["group_id"].to_pylist() == ["gone", "new", "stays"]
    (note,) = history.findings
    assert note.consequence == "the history is complete from offset 3 on, and has gaps before"
    assert [row["offset"] for row in all_rows(Snapshot(tmp_path))] == [0, 1, 3]


def test_a_run_that_did_not_get_to_look_is_made_up_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = deleted_between_runs()
    take_snapshot(before, tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("kafka_records_engine.sources._stored.log_passes.write_survey", _fails)
        with pytest.raises(OSError, match="no room"):
            take_snapshot(after, tmp_path)

    damage = read_table("current_offsets", tmp_path).findings
    assert [found.reason for found in damage] == [INCOMPLETE_HISTORY]
    assert "no run has checked yet" in str(damage[0])
    assert damage[0].severity == "damage"

    take_snapshot(after, tmp_path)
    offsets = read_table("current_offsets", tmp_path)
    assert (offsets.table["group_id"].to_pylist(), offsets.findings) == (["new", "stays"], ())


def _fails(*_: Any) -> None:
    raise OSError(28, "no room")


def test_a_log_start_that_rises_takes_records_out_of_tables(tmp_path: Path) -> None:
    topic = Topic()
    topic.commit("old", 1)
    topic.commit("new", 2)
    take_snapshot(log_of(topic), tmp_path)
    risen = Logs((CleanedLog(without(topic, 0), TOPIC, cleaned_up_to=0, log_start=1),))

    for looked in (1, 0):
        assert take_snapshot(risen, tmp_path).topics[TOPIC].looked == looked

    assert read_table("current_offsets", tmp_path).table["group_id"].to_pylist() == ["new"]
    assert read_table("offset_commits", tmp_path).table["group_id"].to_pylist() == ["new", "old"]


def test_a_log_that_has_lost_everything_goes_on(tmp_path: Path) -> None:
    topic = commits(3)
    take_snapshot(log_of(topic), tmp_path)
    empty = Logs((CleanedLog(topic.table().slice(0, 0), TOPIC, cleaned_up_to=3, log_start=3),))

    assert take_snapshot(empty, tmp_path).findings == []

    assert read_table("current_offsets", tmp_path).table.num_rows == 0
    topic.commit("g", 9)
    take_snapshot(Logs((CleanedLog(topic.table().slice(3), TOPIC, cleaned_up_to=3, log_start=3),)), tmp_path)
    assert read_table("current_offsets", tmp_path).table["offset"].to_pylist() == [9]
    assert len(all_rows(Snapshot(tmp_path))) == 4


def _hourly(offsets: list[int]) -> pa.Table:
    """Records of one group, one per hour, as in an export of a cleaned topic."""
    topic = Topic()
    for number in range(max(offsets) + 1):
        topic.commit(f"g{number}", number)
    rows = topic.table()
    hour = pc.add(1_700_000_000_000, pc.multiply(rows["offset"], 3_600_000))
    rows = rows.set_column(rows.schema.get_field_index("timestamp_ms"), "timestamp_ms", hour)
    return rows.filter(pc.is_in(rows["offset"], pa.array(offsets, pa.int64())))


@pytest.mark.parametrize("kind", ["Arrow", "Parquet"])
def test_where_an_export_ends_says_nothing_about_the_log_now(kind: str, tmp_path: Path) -> None:
    early, late = [*range(10)], [*range(10), *range(15, 20)]
    for name, offsets in (("early", early), ("late", late)):
        rows = _hourly(offsets)
        pq.write_table(rows, tmp_path / f"{name}.parquet")
        source = source_of(rows) if kind == "Arrow" else source_of(tmp_path / f"{name}.parquet")
        for _ in range(2):
            take_snapshot(source, tmp_path / "kept")

    stretches = stored_log(str(tmp_path / "kept"), TOPIC, 0).stretches
    assert [(each.ended_at_ms, each.quiet_until_ms) for each in stretches] == [(None, None)] * 2
    # Offsets 10 to 14 were written before this moment, and cleaned away before the second export was made.
    as_of_ms = 1_700_000_000_000 + 13 * 3_600_000
    context = Context(TOPIC, 0, Question(as_of_ms=as_of_ms), history=False)
    for _ in Snapshot(tmp_path / "kept").partitions(TOPIC)[0].batches(context, RAW_SCHEMA.names):
        pass
    assert context.log.cleaned_up_to == 20
    offsets_then = read_table("current_offsets", tmp_path / "kept", as_of=as_of_ms)
    assert offsets_then.table["group_id"].to_pylist() == [f"g{number}" for number in range(10)]
    (note,) = offsets_then.findings
    assert (note.severity, note.reason) == ("note", INCOMPLETE_HISTORY)


def test_a_snapshot_is_never_read_as_plain_parquet(tmp_path: Path) -> None:
    root = tmp_path / "all" / "kept"
    root.parent.mkdir()
    for source in deleted_between_runs():
        take_snapshot(source, root)
    file = next(root.glob("topic=*/partition=0/*.parquet"))
    shutil.copy(file, tmp_path / "copied.parquet")

    said = "this belongs to a snapshot, which also contains deleted rows: give only the directory with _snapshot.json"
    for given in (
        *(root / f"topic={TOPIC}", root / f"topic={TOPIC}" / "partition=0", file, tmp_path / "copied.parquet"),
        *(root.parent, root.parent / "*", root / "topic=*"),
        SavedRows(str(root), filesystem=pyarrow.fs.LocalFileSystem()),
        SavedRows(root),
    ):
        with pytest.raises(LogSourceError, match=re.escape(said)):
            read_table("current_offsets", given, processes=1)
    assert read_table("current_offsets", root.as_uri()).table["group_id"].to_pylist() == ["new", "stays"]
    with pytest.raises(LogSourceError, match="none contains a log"):
        read_table("current_offsets", root / "*")
    packed = shutil.make_archive(str(tmp_path / "packed"), "tar", root)
    with pytest.raises(LogSourceError, match="on this machine: unpack it there"):
        read_table("current_offsets", packed)


@dataclass(frozen=True)
class BrokenOff(LiveLog):
    """A log that a broker returns only in part: from the offset `stops_at` on, there are no answers."""

    stops_at: int = 0

    def batches(self, context: Context, columns: Any, start: int | None = None, end: int | None = None) -> Any:
        yield from super().batches(context, columns, start, self.stops_at)
        context.log.holes.clear()
        found = Finding("damage", UNREACHABLE_LOG, "no broker answers", "not read", self.topic, self.partition)
        context.report(replace(found, base_offset=self.stops_at))
        context.log.add_hole(self.stops_at - 1)


@pytest.mark.parametrize("runs_then", [1, 2])
def test_a_run_that_broke_off_leaves_no_trace_when_the_next_one_goes_on(runs_then: int, tmp_path: Path) -> None:
    topic = commits(5)
    topic.commit("t", 2, transaction="pending", producer=7)
    topic.commit("g", 9)
    topic.marker("commit", producer=7)
    whole = LiveLog(topic.table(), TOPIC, 0, high_watermark=8)
    broken = BrokenOff(topic.table(), TOPIC, 0, high_watermark=8, stops_at=6)

    for _ in range(runs_then):
        (found,) = take_snapshot(Logs((broken,)), tmp_path / "broken").findings
        assert found.reason == UNREACHABLE_LOG
        assert [each.reason for each in findings_of(tmp_path / "broken")] == [UNREACHABLE_LOG]
    # The log continued, so it must not count as ending there.
    stored = stored_log(str(tmp_path / "broken"), TOPIC, 0)
    assert stored.stretches[-1].ended_at_ms is None
    assert read_mark(str(tmp_path / "broken"))["read"][f"{TOPIC}-0"]["ended_at_ms"] is None

    assert take_snapshot(Logs((whole,)), tmp_path / "broken").findings == []
    take_snapshot(Logs((whole,)), tmp_path / "whole")
    for table in ("current_offsets", "offset_commits"):
        one, other = (read_table(table, tmp_path / name, processes=1) for name in ("broken", "whole"))
        assert one.findings == other.findings == ()
        assert one.table.equals(other.table)
    assert stored_log(str(tmp_path / "broken"), TOPIC, 0).stretches[0].holes == ()


def test_what_is_still_unread_is_told_by_the_run_after(tmp_path: Path) -> None:
    topic = commits(20)
    for stop in (6, 12):
        take_snapshot(Logs((BrokenOff(topic.table(), TOPIC, 0, high_watermark=20, stops_at=stop),)), tmp_path)
    (found,) = findings_of(tmp_path)
    assert found.base_offset == 12


def test_a_range_has_the_findings_and_holes_that_lie_in_it(tmp_path: Path) -> None:
    topic = Topic()
    for number in range(6):
        topic.commit("g", number, transaction="committed", producer=number)
    for end in range(1, 7):
        take_snapshot(log_of(topic, end), tmp_path)
    (name,) = files_in(tmp_path)
    assert name.endswith("5.parquet")

    (log,) = Snapshot(tmp_path).partitions(TOPIC)
    told = []
    for first in range(6):
        context = Context(TOPIC, 0)
        list(log.batches(context, RAW_SCHEMA.names, first, first + 1))
        told.append([found.what for found in context.findings])
    assert told == [
        [
            f"the source says how the transaction of the record at offset {number} ended, but has no control record "
            f"for it"
        ]
        for number in range(6)
    ]


# -- another log -------------------------------------------------------------------------------------------------------


class Identified(Logs):
    """Logs of a topic whose id is known."""

    topic_id = "aK3dGfTcSs2cLAnzYBkzXg"

    def known_topics(self) -> KnownTopics:
        return KnownTopics({self.topic_id: TOPIC})


class MadeAnew(Identified):
    topic_id = "V1StGXR8RZ2jdHi6BmyTaA"


def test_a_topic_that_was_recreated_is_refused_by_its_id(tmp_path: Path) -> None:
    topic = commits(3)
    take_snapshot(Identified(log_of(topic).logs), tmp_path)
    assert Snapshot(tmp_path).known_topics() == Identified(log_of(topic).logs).known_topics()
    topic.commit("g", 9)

    (found,) = take_snapshot(MadeAnew(log_of(topic).logs), tmp_path).findings

    assert found.severity == "damage"
    assert str(found) == (
        f"__consumer_offsets-0: {tmp_path}: the snapshot has records of the topic with the id {Identified.topic_id}, "
        f"but __consumer_offsets now has the id {MadeAnew.topic_id}: the topic was deleted and recreated. Take "
        "a snapshot of the new topic in another directory (none of its records are stored)"
    )
    assert len(all_rows(Snapshot(tmp_path))) == 3


def test_a_log_that_ends_before_what_is_stored_is_refused(tmp_path: Path) -> None:
    take_snapshot(log_of(commits(10)), tmp_path)
    for shorter in (log_of(commits(4)), log_of(Topic())):
        (found,) = take_snapshot(shorter, tmp_path).findings
        assert found.severity == "damage"
        assert "records up to offset 9 are stored: this is an older copy of the log" in found.what
    assert len(all_rows(Snapshot(tmp_path))) == 10


def test_a_log_with_other_records_at_these_offsets_is_refused(tmp_path: Path) -> None:
    take_snapshot(log_of(commits(10)), tmp_path)

    (found,) = take_snapshot(log_of(commits(20, "others")), tmp_path).findings

    assert "the record at offset 0 of __consumer_offsets-0 differs from the stored one" in found.what
    assert len(all_rows(Snapshot(tmp_path))) == 10


def test_one_partition_that_is_refused_keeps_nobody_from_the_others(tmp_path: Path) -> None:
    first = log_of(commits(10)).logs[0]
    take_snapshot(Logs((first,)), tmp_path)
    other = replace(log_of(commits(5)).logs[0], partition=1)

    report = take_snapshot(Logs((log_of(commits(3)).logs[0], other)), tmp_path)

    assert len(report.findings) == 1
    assert [len(rows_of(log)) for log in Snapshot(tmp_path).partitions(TOPIC)] == [10, 5]
