"""`table` on Spark: every format against what the broker itself answered, and damage."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import run
from tests.cli.segment_bytes import batch, commit, write_segment

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

OFFSET_COLUMNS = [
    "group_id",
    "topic",
    "topic_id",
    "partition",
    "offset",
    "leader_epoch",
    "metadata",
    "commit_timestamp",
    "commit_timestamp_ms",
    "log_partition",
    "log_offset",
]


def truth(topics_dir: Path, name: str) -> dict[str, Any]:
    """The groups as the broker told them."""
    groups: dict[str, Any] = json.loads((topics_dir / name / "truth.json").read_text("utf-8"))["groups"]
    return groups


def committed(groups: dict[str, Any]) -> list[tuple[Any, ...]]:
    return sorted(
        (group, each["topic"], each["partition"], each["offset"], each["leaderEpoch"], each["metadata"])
        for group, facts in groups.items()
        for each in facts.get("offsets", [])
    )


def test_offsets_as_json(topics_dir: Path) -> None:
    ran = run("table", "current_offsets", str(topics_dir / "kafka-4.3" / "segments"), "--format", "json")
    rows = [json.loads(line) for line in ran.lines]
    assert [
        tuple(row[name] for name in ("group_id", "topic", "partition", "offset", "leader_epoch", "metadata"))
        for row in rows
    ] == committed(truth(topics_dir, "kafka-4.3"))
    for row in rows:
        assert [*row] == OFFSET_COLUMNS
        moment = datetime.fromtimestamp(row["commit_timestamp_ms"] / 1000, UTC)
        assert row["commit_timestamp"] == moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    assert (ran.status, ran.err) == (
        0,
        f"{len(rows)} rows from 859 records, transaction markers included, in 30 files of 6 partitions\n",
    )


def test_groups_as_a_csv_file(topics_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "groups.csv"
    source = str(topics_dir / "kafka-4.3-expiry" / "segments")
    ran = run("table", "groups", source, "--format", "csv", "--output", str(path))
    assert (ran.status, ran.out) == (0, "")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert {row["group_id"]: (row["group_kind"], row["state"], row["protocol_type"]) for row in rows} == {
        name: ("simple" if group["simple"] else group["type"].lower(), group["state"], group["protocolType"])
        for name, group in truth(topics_dir, "kafka-4.3-expiry").items()
    }


def test_groups_as_a_table(topics_dir: Path) -> None:
    ran = run("table", "groups", str(topics_dir / "kafka-4.3-expiry" / "segments"))
    assert ran.lines[0].split() == [
        "group_id",
        "group_kind",
        "state",
        "epoch",
        "protocol_type",
        "protocol",
        "member_count",
        "log_partition",
        "log_offset",
    ]
    assert [line.split()[:3] for line in ran.lines[2:]] == [
        ["d-classic-live", "classic", "Stable"],
        ["e-consumer-live", "consumer", "Stable"],
    ]
    assert "\x1b" not in ran.out


def test_damage_is_told_and_the_rest_is_delivered(tmp_path: Path) -> None:
    key, value = commit("torn", 7)
    assert value is not None
    first, spoiled = batch(0, [commit("a", 1), (key, value[:12])]), bytearray(batch(2, [commit("lost", 2)]))
    spoiled[-1] ^= 1
    unframed = batch(4, [(None, b"x")])
    path = write_segment(tmp_path, first, bytes(spoiled), batch(3, [commit("a", 5)]), unframed)
    ran = run("table", "current_offsets", str(tmp_path), "--format", "json")
    assert [(row["group_id"], row["offset"]) for row in map(json.loads, ran.lines)] == [("a", 5)]
    assert ran.status == 1
    lines = ran.err.splitlines()
    last = len(first) + len(spoiled) + len(batch(3, [commit("a", 5)]))
    assert lines[:2] == [
        f"{path}: byte 0, batch at offset 0: record at offset 1: "
        "OffsetCommitValue v3 at byte 8: leader_epoch needs 4 bytes, 2 left (not used)",
        f"{path}: byte {last}, batch at offset 4: record at offset 4: the record has no key (not used)",
    ]
    assert re.fullmatch(
        rf"{re.escape(str(path))}: byte {len(first)}, batch at offset 2: wrong CRC: 0x[0-9a-f]{{8}} in the file, "
        rf"0x[0-9a-f]{{8}} computed \(1 record, {len(spoiled)} bytes skipped\)",
        lines[2],
    )
    assert lines[3:] == [
        "1 row from 4 records, transaction markers included, in 1 file of 1 partition",
        f"1 problem in the files: 1 record known to be lost, {len(spoiled)} bytes not read",
    ]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gone", "gone: there is no such file or directory"),
        (".", ".: there is no log of topic __consumer_offsets here, but of __transaction_state"),
    ],
)
def test_nothing_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_segment(tmp_path, batch(0, [commit("a", 1)]), folder="__transaction_state-0")
    assert run("table", "groups", source) == (2, "", f"kafka-records: {message}\n")


def test_no_such_table(tmp_path: Path) -> None:
    ran = run("table", "members", str(tmp_path))
    assert ran.status == 2
    assert ran.err.splitlines()[-1].startswith("kafka-records table: error: argument NAME: invalid choice: 'members'")


def test_a_setting_that_is_none_of_spark(tmp_path: Path) -> None:
    ran = run("table", "groups", str(tmp_path), "--conf", "driver.memory=4g")
    assert ran.status == 2
    assert ran.err.splitlines()[-1] == (
        "kafka-records table: error: argument --conf: 'driver.memory=4g' is not spark.SOMETHING=VALUE"
    )


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, which starts Spark itself, in a time zone far away."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-m", "kafka_records_cli", *arguments],
        env={**os.environ, "PYTHONPATH": paths, "TZ": "Pacific/Kiritimati", "SPARK_REMOTE": "sc://nowhere"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_a_session_of_its_own_keeps_quiet_and_counts_in_utc(topics_dir: Path) -> None:
    source = str(topics_dir / "kafka-4.3-expiry" / "segments")
    done = command("table", "current_offsets", source, "--format", "json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert (
        done.stderr == f"{len(rows)} rows from 88 records, transaction markers included, in 4 files of 4 partitions\n"
    )
    assert done.returncode == 0
    assert rows
    for row in rows:
        assert datetime.fromisoformat(row["commit_timestamp"]).timestamp() * 1000 == row["commit_timestamp_ms"]


def test_spark_that_does_not_start_says_why(topics_dir: Path) -> None:
    done = command("table", "groups", str(topics_dir / "kafka-4.3" / "segments"), "--conf", "spark.driver.memory=much")
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert lines[0].startswith("kafka-records: Spark did not start: ")
    assert any("-Xmxmuch" in line for line in lines)
