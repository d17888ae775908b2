"""What can be deleted now, compared with what coordinators and administrators deleted; and records that cannot be
read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records.consumer_offsets import decode_record
from kafka_records_tables import read_table
from kafka_records_tables.coordinator.rules.deletion_rules import DELETE_ANSWERS
from tests.tables.histories import NAMES, history
from tests.tables.test_expirations import classic, subscription
from tests.tables.topic import Topic

Row = dict[str, Any]

_OFFSET = b"\x00\x01"


def deletable(rows: Any, **options: Any) -> dict[tuple[str, str | None], Row]:
    """By group and topic; the topic of a group is None."""
    found = read_table("deletable_offsets", rows, **options).table.to_pylist()
    assert len({(row["group_id"], row["topic"], row["partition"]) for row in found}) == len(found)
    return {(row["group_id"], row["topic"]): row for row in found}


def told(row: Row) -> tuple[bool | None, str, str | None]:
    return row["is_deletable"], row["reason"], row["error"]


def _key(record: Row) -> Any:
    return decode_record(bytes.fromhex(record["key"]), None).key


# -- Kafka's answers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES[::6])
def test_what_administrators_deleted_could_be_deleted(name: str) -> None:
    """Running coordinators deleted these. Their tombstones must be those that the rows over the log before them
    predict, for a group all of its offsets. (`make judge` asks loaded coordinators about everything.)"""
    whole = history(name)
    batches: dict[int, list[Row]] = {}
    for record in whole.records:
        why = whole.why[record["offset"]].get("why")
        if why in ("offset_deleted", "group_deleted"):
            batches.setdefault(record["batch"], []).append(record)
    for batch, records in list(batches.items())[:4]:
        found = read_table("deletable_offsets", whole.up_to(batch - 1)).table.to_pylist()
        rows = {(row["group_id"], row["topic"], row["partition"]): row for row in found}
        for record in records:
            key = _key(record)
            if record["key"][:4] == _OFFSET.hex():
                assert rows[key.group, key.topic, key.partition]["is_deletable"], record
            else:
                group = getattr(key, "group", None) or key.group_id
                assert rows[group, None, None]["is_deletable"], record
                gone = {
                    (old.group, old.topic, old.partition)
                    for old in (_key(each) for each in records if each["key"][:4] == _OFFSET.hex())
                }
                own = {place for place in rows if place[0] == group and place[1] is not None}
                assert {place for place in gone if place[0] == group} == own
                assert rows[group, None, None]["offset_count"] <= len(own)


def test_the_histories_meet_every_reason_that_a_whole_log_may_have() -> None:
    met: dict[str, tuple[Any, Any]] = {}
    for name in NAMES[::8]:
        for cut in history(name).cuts:
            for row in read_table("deletable_offsets", history(name).up_to(cut)).table.to_pylist():
                met[row["reason"]] = row["is_deletable"], row["error"]
                if row["kind"] == "offset":
                    assert (row["offset"] is None) <= row["is_pending"]
    assert set(met) == set(DELETE_ANSWERS) - {"share_group", "no_group", "unreadable_subscription", "unreadable"}
    assert met == {reason: tuple(DELETE_ANSWERS[reason]) for reason in met}


def test_a_captured_topic_has_a_row_per_offset_and_group(topics_dir: Path) -> None:
    segments = topics_dir / "kafka-4.3" / "segments"
    rows = read_table("deletable_offsets", segments).table.to_pylist()
    places = ("group_id", "topic", "partition", "offset", "leader_epoch", "metadata", "commit_timestamp_ms", "topic_id")
    offsets = [tuple(row[name] for name in places) for row in rows if row["kind"] == "offset"]
    current = read_table("current_offsets", segments).table.to_pylist()
    assert sorted(offsets, key=str) == sorted((tuple(row[name] for name in places) for row in current), key=str)
    groups = {row["group_id"]: row for row in rows if row["kind"] == "group"}
    assert groups.keys() == set(read_table("groups", segments).table["group_id"].to_pylist())
    for group, row in groups.items():
        own = [each for each in current if each["group_id"] == group]
        assert row["offset_count"] == len(own)
        assert row["commit_timestamp_ms"] == max((each["commit_timestamp_ms"] for each in own), default=None)


# -- what no history holds ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol_type", "data", "expected"),
    [
        ("consumer", subscription("orders"), (False, "subscribed", "GROUP_SUBSCRIBED_TO_TOPIC")),
        ("consumer", subscription("returns", version=99) + b"of a later version", (True, "not_subscribed", None)),
        ("consumer", b"", (False, "unreadable_subscription", "GROUP_SUBSCRIBED_TO_TOPIC")),
        ("connect", subscription("returns"), (False, "members", "NON_EMPTY_GROUP")),
        ("", subscription("returns"), (False, "members", "NON_EMPTY_GROUP")),
    ],
)
def test_members_of_a_classic_group(protocol_type: str, data: bytes, expected: tuple[Any, ...]) -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.commit("waits", 1, transaction="pending")
    for group in ("g", "waits"):
        classic(topic, group, protocol_type=protocol_type, subscriptions=[data])

    found = deletable(topic.table())

    assert told(found["g", "orders"]) == told(found["waits", "orders"]) == expected
    assert told(found["g", None]) == (False, "members", "NON_EMPTY_GROUP")


def test_groups_without_members_without_a_group_and_without_a_name() -> None:
    topic = Topic()
    for group in ("empty", "simple", "gone", ""):
        topic.commit(group, 1)
    classic(topic, "empty")
    topic.add("GroupMetadata", {"group": "gone"}, None)

    found = {key: told(row) for key, row in deletable(topic.table()).items()}

    assert found == {
        ("empty", "orders"): (True, "no_members", None),
        ("empty", None): (True, "no_members", None),
        ("simple", "orders"): (True, "simple_group", None),
        ("simple", None): (True, "simple_group", None),
        ("gone", "orders"): (False, "no_group", "GROUP_ID_NOT_FOUND"),
        ("", "orders"): (False, "no_name", "INVALID_GROUP_ID"),
        ("", None): (True, "simple_group", None),
    }


def test_what_an_open_transaction_commits_is_marked() -> None:
    """Also if there is no older commit: a broker also deletes pending offsets."""
    topic = Topic()
    topic.commit("older", 1)
    for group in ("older", "new"):
        topic.commit(group, 2, transaction="pending")
    topic.commit("plain", 3)

    found = deletable(topic.table())

    assert {key: (row["offset"], row["is_pending"], row["is_deletable"]) for key, row in found.items()} == {
        ("older", "orders"): (1, True, True),
        ("older", None): (None, True, True),
        ("new", "orders"): (None, True, True),
        ("new", None): (None, True, True),
        ("plain", "orders"): (3, False, True),
        ("plain", None): (None, False, True),
    }
    assert {group: row["offset_count"] for (group, name), row in found.items() if name is None} == {
        "older": 1,
        "new": 0,
        "plain": 1,
    }


def test_nobody_can_tell_about_what_cannot_be_read() -> None:
    topic = Topic()
    topic.commit("g", 1)
    topic.add_bytes(topic.rows[0][5], b"\x00\x04\x00")
    topic.commit("h", 1)
    topic.add_bytes(b"\x00\x02\x00\x01h", b"\x00\x03\x00")

    result = read_table("deletable_offsets", topic.table())
    found = {(row["group_id"], row["topic"]): told(row) for row in result.table.to_pylist()}

    assert found.pop(("g", None)) == (True, "simple_group", None)
    assert set(found) == {("g", "orders"), ("h", "orders"), ("h", None)}
    assert set(found.values()) == {(None, "unreadable", None)}
    assert [finding.severity for finding in result.findings] == ["damage", "damage"]


def test_hostile_names_stay_data() -> None:
    topic = Topic()
    name = "g\x1b[31m\n'; DROP TABLE--\u202e"
    topic.commit(name, 1)
    assert told(deletable(topic.table())[name, "orders"]) == (True, "simple_group", None)
