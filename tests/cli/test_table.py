"""`table`: every format compared with the broker's own answers, damage, and refused options."""

from __future__ import annotations

import csv
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kafka_records_tables import TABLES
from tests.cli.running import run
from tests.cli.segment_bytes import batch, commit, write_segment

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
    """The groups according to the broker."""
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
        f"{len(rows)} rows from 850 records and 9 transaction markers in 30 files of 6 partitions\n",
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
    assert lines[0] == (
        f"{path}: byte 0, batch at offset 0: record at offset 1: OffsetCommitValue v3 at byte 8 after its version: "
        "leader_epoch needs 4 bytes, but 2 are left (its row is left out: an older offset would be wrong)"
    )
    assert re.fullmatch(
        rf"{re.escape(str(path))}: byte {len(first)}, batch at offset 2: wrong CRC: 0x[0-9a-f]{{8}} in the file, "
        rf"0x[0-9a-f]{{8}} computed \(1 record, {len(spoiled)} bytes skipped\)",
        lines[1],
    )
    assert lines[2] == (
        f"{path}: byte {last}, batch at offset 4: record at offset 4: the record has no key (not used: it is unknown "
        "whose offset it is)"
    )
    assert lines[3:] == [
        "1 row from 4 records and 0 transaction markers in 1 file of 1 partition",
        "2 records could not be decoded",
        f"1 damaged place in the files: 1 record known to be lost, {len(spoiled)} bytes not read",
    ]


def test_what_was_read_as_kafka_reads_it_and_what_was_left_out_is_counted(tmp_path: Path) -> None:
    old, (key, value) = commit("old", 1), commit("a", 2)
    assert key is not None
    assert value is not None
    lenient = (key.replace(b"\0\x01t", b"\0\x01\xff") + b"\0", value + b"\0\0")
    control = batch(2, [(b"\0\0\0\x02", b"\0\0")], attributes=0x20)
    write_segment(tmp_path, batch(0, [old, lenient]), control)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\n__consumer_offsets 0 1\n")
    ran = run("table", "current_offsets", str(tmp_path), "--format", "json")
    assert [(row["group_id"], row["offset"]) for row in map(json.loads, ran.lines)] == [("a", 2)]
    assert ran.status == 0
    assert ran.err.splitlines()[1:] == [
        "1 row from 1 record and 0 transaction markers in 1 file of 1 partition",
        "1 record below the raised log start left out",
        "ignored after a key or value, as in Kafka: 3 bytes in 1 record",
        "accepted as Kafka accepts it: invalid_utf8 (1)",
        "1 control record left out: they do not end a transaction",
    ]


def test_a_transaction_whose_marker_cannot_be_read_is_not_guessed(tmp_path: Path) -> None:
    """The damaged batch may have contained the end of the transaction, a commit or an abort."""
    spoiled = bytearray(batch(2, [(b"\0\0\0\0", bytes(6))], attributes=0x30, producer_id=7))
    spoiled[-1] ^= 1
    pending = batch(1, [commit("a", 2)], attributes=0x10, producer_id=7)
    path = write_segment(tmp_path, batch(0, [commit("a", 1)]), pending, bytes(spoiled), batch(3, [commit("b", 3)]))
    ran = run("table", "current_offsets", str(tmp_path), "--format", "json")
    assert [(row["group_id"], row["offset"]) for row in map(json.loads, ran.lines)] == [("b", 3)]
    assert ran.status == 1
    lines = ran.err.splitlines()
    assert lines[0] == (
        f"{path}: byte {len(batch(0, [commit('a', 1)]))}, batch at offset 1: record at offset 1: the commit of group a "
        "for t-0: it is unknown how the transaction of producer 7 ended, because its marker was not read "
        "(its row is left out: this offset or an older one may be the committed one)"
    )
    assert lines[2:4] == [
        "1 row from 3 records and 0 transaction markers in 1 file of 1 partition",
        "1 record of transactions with an unknown end",
    ]


def test_a_bare_folder_is_of_the_topic_of_the_table(tmp_path: Path) -> None:
    source = str(write_segment(tmp_path, batch(0, [commit("a", 1)]), folder="backup").parent)
    plain = run("table", "groups", source, "--format", "csv")
    assert plain.status == 0
    assert plain.out.splitlines()[1].startswith("a,simple,")
    assert run("table", "groups", "--topic", "__consumer_offsets", source, "--format", "csv") == plain


def test_another_topic_than_that_of_the_table(tmp_path: Path) -> None:
    ran = run("table", "groups", str(tmp_path), "--topic", "__transaction_state")
    assert (ran.status, ran.err.splitlines()[0]) == (
        2,
        "kafka-records table: error: --topic: the table groups is computed from __consumer_offsets, not from "
        "__transaction_state; tables about that: transactions",
    )
    ran = run("table", "groups", str(tmp_path), "--topic", "orders")
    assert ran.err.splitlines()[0] == (
        "kafka-records table: error: --topic: the table groups is computed from __consumer_offsets, not from orders"
    )


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("gone", "gone: there is no such file or directory"),
        (
            ".",
            ".: there is no log of topic __consumer_offsets here, only logs of __transaction_state; tables about that: "
            "transactions",
        ),
    ],
)
def test_nothing_to_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str) -> None:
    monkeypatch.chdir(tmp_path)
    write_segment(tmp_path, batch(0, [commit("a", 1)]), folder="__transaction_state-0")
    assert run("table", "groups", source) == (2, "", f"kafka-records: {message}\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("group", "argument NAME: no table is called 'group'; did you mean groups?"),
        (
            "leaders",
            "argument NAME: no table is called 'leaders'; there are " + ", ".join(TABLES),
        ),
    ],
)
def test_no_such_table(tmp_path: Path, name: str, message: str) -> None:
    ran = run("table", name, str(tmp_path))
    assert (ran.status, ran.err.splitlines()[0]) == (2, f"kafka-records table: error: {message}")
