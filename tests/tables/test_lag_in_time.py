"""Lag in addition to offsets: the records that are left to read, since when, and the owners of their partitions."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records.cluster_metadata import encode_record as encode_metadata
from kafka_records.cluster_metadata.config_record import ConfigRecord
from kafka_records.cluster_metadata.topic_record import TopicRecord
from kafka_records.consumer_offsets import encode_record
from kafka_records.consumer_offsets.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kafka_records.consumer_protocol.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_records_engine.findings import DAMAGED_LOG
from kafka_records_engine.log.files.discovery import find_logs
from kafka_records_engine.log.reading.segment_files import read_log
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables import read_table
from kafka_records_tables.tables import assigned_partitions
from tests.log.logs import DATA, batch, record
from tests.tables.consumed import START_MS, Brokers, Commit, told
from tests.tables.topic import Topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIMED = DATA / "timed" / "data"

Row = dict[str, Any]
Key = tuple[str, str, int]


def lines(name: str) -> list[Row]:
    return [json.loads(line) for line in (DATA / "timed" / name).read_text("utf-8").splitlines()]


def by_key(rows: list[Row]) -> dict[Key, Row]:
    return {(row["group_id"], row["topic"], row["partition"]): row for row in rows}


@pytest.fixture(scope="module")
def rows() -> dict[Key, Row]:
    result = read_table("lag", TIMED)
    assert result.findings == ()
    return by_key(result.table.to_pylist())


# -- a broker's disk ---------------------------------------------------------------------------------------------------


def test_records_and_times_are_those_that_were_produced(rows: dict[Key, Row]) -> None:
    known = {(log.topic, log.partition): log for log in find_logs([TIMED])}
    expected = [row for row in lines("lag.jsonl") if row["kind"] == "group"]
    assert len(expected) == 44
    for each in expected:
        row = rows[each["group"], each["topic"], each["partition"]]
        assert row["offset"] == each["committed"]
        assert row["unread"] == each["committed_records_left"]
        first = each["first_committed_left"]
        if first is None:
            assert (row["unread_timestamp_ms"], row["unread_timestamp"], row["known_by"]) == (None, None, None)
            assert row["lag_ms"] is None
        elif row["known_by"] == "record":
            assert row["unread_timestamp_ms"] == first["timestamp_ms"]
        else:
            records = {at.record.offset: at for at in read_log(known[each["topic"], each["partition"]])}
            of_batch = records[records[first["offset"]].batch.offset].record
            assert (row["known_by"], row["unread_timestamp_ms"]) == ("batch", of_batch.timestamp_ms)
        # Without open transactions and aborted ones all data records are unread.
        if each["last_stable"] == each["end"]:
            assert row["held_back"] == 0


def test_what_an_open_transaction_holds_back(rows: dict[Key, Row]) -> None:
    row = rows["co-past-marker", "timed.txn", 1]
    assert (row["lag"], row["unread"], row["held_back"], row["unread_timestamp_ms"]) == (10, 0, 10, None)


def test_the_time_since_then(rows: dict[Key, Row]) -> None:
    now = time.time() * 1000
    for row in rows.values():
        if row["unread_timestamp_ms"] is not None:
            assert 0 <= now - row["unread_timestamp_ms"] - row["lag_ms"] < 600_000
        assert row["margin_ms"] is None


def test_owners_are_those_that_the_broker_told(rows: dict[Key, Row]) -> None:
    groups = [each for each in lines("group_members.jsonl") if each["type"] != "Share"]
    owners = {
        (group["group"], *place.rsplit("-", 1)): member
        for group in groups
        for member in group["members"]
        for place in member["partitions"]
    }
    assert len(owners) == 36
    for (group, topic, partition), row in rows.items():
        member = owners.get((group, topic, str(partition)))
        if member is None:
            assert (row["member_id"], row["client_id"], row["client_host"]) == (None, None, None)
        else:
            assert (row["member_id"], row["client_id"]) == (member["member"], member["client"])
            assert row["client_host"] == "/127.0.0.1"
            assert row["has_left"] is False


def test_groups_that_have_left(rows: dict[Key, Row]) -> None:
    """Groups whose consumers have left. Offsets that were set by hand, for groups without consumers, have no owner."""
    assert {key[0] for key, row in rows.items() if row["has_left"]} == {"cl-left", "co-left"}
    alone = {key[0] for key, row in rows.items() if row["has_left"] is None}
    assert alone == {"half", "copied", "orphan", "late", "tx-workers"}


def test_margin(tmp_path: Path) -> None:
    """The margin is known for topics that delete only by time, and whose own retention is in the metadata log."""
    configs = {
        "timed.plain": {"retention.ms": "3600000"},
        "timed.txn": {"retention.ms": "3600000", "cleanup.policy": "compact,delete"},
        "timed.batches": {"retention.ms": "3600000", "retention.bytes": "1000"},
    }
    values = []
    for number, (topic, own) in enumerate(configs.items(), 1):
        values.append(encode_metadata(None, TopicRecord(topic, Uuid(bytes([*[0] * 15, number]))))[1])
        values += [encode_metadata(None, ConfigRecord(2, topic, name, value))[1] for name, value in own.items()]
    folder = tmp_path / "__cluster_metadata-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(
        batch(b"".join(record(at, None, value) for at, value in enumerate(values)), len(values))
    )
    found = by_key(read_table("lag", [str(TIMED), str(tmp_path)]).table.to_pylist())
    assert {key[1] for key, row in found.items() if row["margin_ms"] is not None} == {"timed.plain"}
    for row in found.values():
        if row["margin_ms"] is not None:
            assert row["margin_ms"] == 3_600_000 - row["lag_ms"]
    assert found["cl-done", "timed.plain", 0]["margin_ms"] is None


def test_several_workers_tell_the_same(rows: dict[Key, Row]) -> None:
    found = by_key(read_table("lag", TIMED, processes=2).table.to_pylist())
    assert without_now(found) == without_now(rows)


@pytest.mark.spark
def test_spark_tells_the_same(spark: SparkSession, rows: dict[Key, Row]) -> None:
    found = by_key(read_table("lag", TIMED, spark=spark).table.to_pylist())
    assert without_now(found) == without_now(rows)


def without_now(rows: dict[Key, Row]) -> dict[Key, Row]:
    return {key: {name: each for name, each in row.items() if name != "lag_ms"} for key, row in rows.items()}


def test_an_archive_of_the_disk_tells_the_same(rows: dict[Key, Row], tmp_path: Path) -> None:
    path = shutil.make_archive(str(tmp_path / "disk"), "gztar", TIMED)
    result = read_table("lag", path)
    assert result.findings == ()
    assert without_now(by_key(result.table.to_pylist())) == without_now(rows)


def test_one_group_alone(rows: dict[Key, Row]) -> None:
    found = by_key(read_table("lag", TIMED, group="co-near").table.to_pylist())
    assert without_now(found) == without_now({key: row for key, row in rows.items() if key[0] == "co-near"})


# -- if nobody can tell ---------------------------------------------------------------------------------------------


def test_damage_is_found_and_leaves_null(tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(TIMED, data)
    path = data / "timed.jitter-0" / f"{0:020}.log"
    log = bytearray(path.read_bytes())
    third = 2 * (len(log) // 3)
    log[third : third + 4_000] = b"\xff" * 4_000
    path.write_bytes(log)
    result = read_table("lag", data)
    (finding,) = [each for each in result.findings if each.reason == DAMAGED_LOG]
    assert (finding.topic, finding.partition) == ("timed.jitter", 0)
    assert finding.consequence == "the records that are left to read are not counted"
    row = by_key(result.table.to_pylist())["copied", "timed.jitter", 0]
    assert (row["lag"], row["unread"], row["held_back"]) == (495, None, None)
    assert row["unread_timestamp_ms"] == 1795440441338  # the batch is before the damage


def test_a_log_that_is_cut_in_its_last_batch(tmp_path: Path) -> None:
    """Offsets that a group has committed in that batch are not beyond the end: the log was longer."""
    data = tmp_path / "data"
    shutil.copytree(TIMED, data)
    path = max((data / "timed.plain-0").glob("*.log"))
    path.write_bytes(path.read_bytes()[:-20])
    found = read_table("lag", data)
    (finding,) = found.findings
    assert (finding.severity, finding.topic, finding.partition) == ("note", "timed.plain", 0)
    assert finding.what == "an append that was cut short"
    problems = {
        key[0]: row["problem"] for key, row in by_key(found.table.to_pylist()).items() if key[1:] == ("timed.plain", 0)
    }
    assert problems["cl-done"] == "end_unknown"
    assert "beyond_end" not in problems.values()
    states = by_key(read_table("progress", data).table.to_pylist())
    assert states["cl-done", "timed.plain", 0]["reason"] == "end_unknown"


def test_both_tables_say_since_when(rows: dict[Key, Row]) -> None:
    for key, row in by_key(read_table("progress", TIMED).table.to_pylist()).items():
        assert row["unread_timestamp_ms"] == rows[key]["unread_timestamp_ms"]


def test_running_brokers_do_not_tell() -> None:
    source = Brokers(
        [Commit("g", "orders", 0, 4), Commit("g", "orders", 1, 9)],
        {("orders", 0): told(0, 9), ("orders", 1): told(0, 9)},
    )
    behind, done = read_table("lag", source).table.to_pylist()
    assert [behind[name] for name in ("lag", "unread", "held_back", "unread_timestamp_ms", "lag_ms")] == [
        5,
        *[None] * 4,
    ]
    assert [done[name] for name in ("lag", "unread", "held_back", "unread_timestamp_ms", "lag_ms")] == [
        0,
        0,
        0,
        None,
        None,
    ]


# -- who has left ------------------------------------------------------------------------------------------------------


def group_record(group: str, topics: list[str] | None, protocol_type: str = "consumer") -> tuple[bytes, bytes]:
    """A classic group with one member that subscribes to some topics, or without a member."""
    members: tuple[MemberMetadata, ...] = ()
    if topics is not None:
        data = b"\x00\x00" + ConsumerProtocolSubscription(topics=tuple(topics)).encode(0)
        members = (MemberMetadata("m-1", None, "client", "/10.0.0.1", 60_000, 30_000, data, b""),)
    leader = "m-1" if members else None
    value = GroupMetadataValue(protocol_type, 1, "range" if members else None, leader, START_MS, members)
    key, encoded = encode_record(GroupMetadataKey(group), value, 3)
    assert encoded is not None
    return key, encoded


@pytest.mark.parametrize(
    ("topics", "protocol_type", "has_left"),
    [
        (["orders"], "consumer", None),
        (["others"], "consumer", True),
        ([], "consumer", True),
        (None, "consumer", True),
        (None, "", None),
        (["others"], "connect", None),
    ],
    ids=["subscribed", "another topic", "no topic", "no member", "simple", "no consumers"],
)
def test_who_has_left(topics: list[str] | None, protocol_type: str, has_left: bool | None) -> None:
    written = Topic()
    written.add_bytes(*Commit("g", "orders", 0, 4).record, partition=0)
    written.add_bytes(*group_record("g", topics, protocol_type), partition=0)
    (row,) = read_table(assigned_partitions.TABLE, written.table()).table.to_pylist() or [None]
    assert (row is not None and row["has_left"]) == bool(has_left)
