"""Open transactions of all topics in files that a broker was writing, compared with its answers and those of Kafka's
tool."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from kafka_records_engine.log.files.local_files import LOCAL
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.reading.open_producers import DamagedSnapshot, open_producers, read_snapshot
from kafka_records_engine.log.reading.segment_files import find_logs, open_log
from kafka_records_tables import read_table, read_tables
from kafka_records_tables.report.making import read_report
from tests.cli.running import run
from tests.log.logs import batch, record, write_log
from tests.tables.consumed import Commit
from tests.tables.topic import Topic

CAPTURED = Path(__file__).parents[1] / "data" / "open_transactions"
NAME = "open_transactions"


def _rows(source: Any, **asked: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = read_table(NAME, source, **asked).table.to_pylist()
    return rows


def _described() -> set[tuple[int, int, int]]:
    """Producer, last timestamp and first offset of what `kafka-transactions describe-producers` calls open."""
    lines = (CAPTURED / "describe-producers.txt").read_text(encoding="utf-8").splitlines()
    cells = [line.split() for line in lines if not line.startswith("ProducerId")]
    return {(int(each[0]), int(each[4]), int(each[5])) for each in cells if each[5] != "None"}


def test_files_tell_what_the_leader_told() -> None:
    rows = _rows(CAPTURED)
    assert {(row["producer_id"], row["last_timestamp_ms"], row["first_offset"]) for row in rows} == _described()
    assert {(row["transactional_id"], row["topic"], row["partition"]) for row in rows} == {
        ("shop", "orders", 0),
        ("gone", "payments", 0),
        ("live", "orders", 0),
        ("live", "orders", 1),
    }


def test_what_no_coordinator_will_end_hangs() -> None:
    """`kafka-transactions find-hanging` found that of `shop`; that of `gone` was too young for it."""
    by_place = {(row["transactional_id"], row["partition"]): row for row in _rows(CAPTURED)}
    assert {key for key, row in by_place.items() if row["hanging_rule"] == "no_entry"} == {("shop", 0), ("gone", 0)}
    shop, live = by_place["shop", 0], by_place["live", 0]
    assert (shop["state"], shop["since_timestamp_ms"], shop["is_hanging"]) == ("CompleteCommit", 1795556131520, True)
    assert (shop["last_stable_offset"], shop["held_back"]) == (5, 7)
    assert (live["state"], live["last_stable_offset"], live["held_back"]) == ("Ongoing", 5, 0)


def test_without_the_topic_of_transactions_nobody_knows_whether_a_young_one_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("orders-0", "payments-0"):
        shutil.copytree(CAPTURED / name, tmp_path / name)
    monkeypatch.setattr(time, "time", lambda: 1795559736.0)
    names = ("producer_id", "transactional_id", "is_hanging", "hanging_rule")
    assert [tuple(row[name] for name in names) for row in _rows(tmp_path)] == [
        (1, None, True, "timeout"),
        (2, None, None, None),
        (4, None, None, None),
    ]


def test_another_moment_is_told_by_records_alone() -> None:
    rows = _rows(CAPTURED, as_of=1795559735000)
    assert [(row["transactional_id"], row["topic"], row["is_hanging"]) for row in rows] == [("live", None, False)]


def test_several_tables_at_once() -> None:
    found = read_tables([NAME, "log_ends"], CAPTURED)
    assert found[NAME].table.equals(read_table(NAME, CAPTURED).table)


def _open_in(folder: Path, name: str) -> tuple[list[tuple[int, int]], str | None]:
    (log,) = find_logs([folder / name])
    with open_log(log) as opened:
        found = open_producers(opened, log.place)
    return [(each.producer_id, each.first_offset) for each in found.producers], found.trouble


@pytest.mark.parametrize("deleted", [("*.snapshot",), ("00000000000000000011.snapshot",), ()])
def test_older_snapshots_and_none_lead_to_the_same(tmp_path: Path, deleted: tuple[str, ...]) -> None:
    shutil.copytree(CAPTURED / "orders-0", tmp_path / "orders-0")
    for pattern in deleted:
        for path in (tmp_path / "orders-0").glob(pattern):
            path.unlink()
    assert _open_in(tmp_path, "orders-0") == ([(1, 5), (4, 11)], None)


def test_a_damaged_snapshot_is_passed_over_and_told(tmp_path: Path) -> None:
    shutil.copytree(CAPTURED / "orders-0", tmp_path / "orders-0")
    path = tmp_path / "orders-0" / "00000000000000000011.snapshot"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert _open_in(tmp_path, "orders-0") == ([(1, 5), (4, 11)], "the CRC of the producer snapshot is wrong")
    (finding,) = [each for each in read_table(NAME, tmp_path).findings if each.file == str(path)]
    assert (finding.severity, finding.topic, finding.partition) == ("damage", "orders", 0)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0\1", "the producer snapshot has 2 bytes, but needs at least 10"),
        (b"\0\2" + bytes(8), "the producer snapshot has version 2, but only 1 is supported"),
        (
            b"\0\1" + bytes(7) + b"\2" + bytes(60),
            "the producer snapshot ends at byte 70, but its 2 entries end at byte 102",
        ),
        (b"\0\1" + bytes(8), "the CRC of the producer snapshot is wrong"),
    ],
)
def test_what_is_no_snapshot_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "00000000000000000011.snapshot"
    path.write_bytes(data)
    with pytest.raises(DamagedSnapshot) as refused:
        read_snapshot(Place(LOCAL, str(path)))
    assert str(refused.value) == why


def test_records_whose_outcome_is_told_without_a_marker_are_not_open() -> None:
    topic = Topic()
    topic.commit("g", 1, transaction="committed", producer=1)
    topic.commit("g", 2, transaction="aborted", producer=2)
    topic.commit("g", 3)
    (row,) = read_table("log_files", topic.table()).table.to_pylist()
    assert row["open_transaction_offset"] is None
    topic.commit("g", 4, transaction="open", producer=3)
    (row,) = read_table("log_files", topic.table()).table.to_pylist()
    assert row["open_transaction_offset"] == 3


def test_a_damaged_file_of_many_logs_is_told_once(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "payments-0"):
        shutil.copytree(CAPTURED / name, tmp_path / name)
    (tmp_path / "log-start-offset-checkpoint").write_text("x")
    (finding,) = read_table("log_ends", tmp_path).findings
    assert finding.what == "not an offset checkpoint of version 0: line 1 is 'x'"


def test_a_report_names_the_command_that_shows_what_is_damaged(tmp_path: Path) -> None:
    shutil.copytree(CAPTURED, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "orders-0" / "00000000000000000011.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    ran = run("report", str(tmp_path), "--details")
    assert "the producer snapshot ends at byte 147, but its 3 entries end at byte 148" in " ".join(ran.out.split())
    assert f"kafka-records table open_transactions {tmp_path}\n" in ran.out


def test_a_report_names_the_groups_that_wait_for_its_end(tmp_path: Path) -> None:
    shutil.copytree(CAPTURED, tmp_path, dirs_exist_ok=True)
    first, *_ = read_table(NAME, tmp_path).table.filter(pc.field("held_back") > 0).to_pylist()
    topic, partition, offset = (first[name] for name in ("topic", "partition", "first_offset"))
    at_ms = first["last_timestamp_ms"]
    commits = [Commit("waits", topic, partition, offset, at_ms=at_ms), Commit("before", topic, partition, offset - 2)]
    content = batch(b"".join(record(at, *commit.record) for at, commit in enumerate(commits)), len(commits))
    write_log(tmp_path, {0: content}, "__consumer_offsets-0")
    problems = [each.problem for each in read_report(tmp_path).findings if each.kind == "transaction_open"]
    waits = f'"waits" has read up to it in "{topic}" (partition {partition}). With isolation.level=read_committed, it'
    assert [waits in problem for problem in problems].count(True) == 1
    assert not any('"before"' in problem for problem in problems)
