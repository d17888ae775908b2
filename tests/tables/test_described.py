"""Members, compared with the descriptions by brokers, and with their records in the output of Kafka's dump tool.

`test_histories.py` compares them with what coordinators described.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_records.enums import MemberState, StreamsMemberState
from tests.cli.test_dump_agrees import DUMP_TOOL, of_kafka
from tools.judge.compared_assignments import described_assignments, rows_by_group, shown_assignments
from tools.judge.compared_members import Row, described_members, members_by_group, shown_members

TableRows = Callable[[str, str], list[Row]]
Truth = Callable[[str], dict[str, Any]]


@pytest.mark.parametrize(("name", "count"), [("kafka-4.3", 24), ("kafka-4.3-expiry", 2)])
def test_members_are_those_the_broker_described(table_rows: TableRows, truth: Truth, name: str, count: int) -> None:
    rows = members_by_group(table_rows("members", name))
    members = 0
    for group, answer in truth(name)["groups"].items():
        kind = answer["type"].lower()
        expected = described_members(kind, answer["describe"])
        assert shown_members(kind, rows.pop(group, {})) == expected
        members += len(expected)
    assert rows == {}
    assert members == count


def test_members_of_an_old_broker(table_rows: TableRows, truth: Truth) -> None:
    """The Admin client of 2.8 returns the decoded assignment, and nothing of the subscription."""
    expected = {
        (group, member["memberId"]): (
            member["instanceId"],
            member["clientId"],
            member["host"],
            answer["partitionAssignor"],
            sorted(member["assignment"]),
        )
        for group, answer in truth("kafka-2.8")["groups"].items()
        for member in answer["members"]
    }

    found = {}
    for row in table_rows("members", "kafka-2.8"):
        (protocol,), opened = (row["protocols"], json.loads(row["assignment"]["opened"]))
        partitions = [
            f"{each['topic']}-{number}" for each in opened["assignedPartitions"] for number in each["partitions"]
        ]
        found[row["group_id"], row["member_id"]] = (
            row["instance_id"],
            row["client_id"],
            row["client_host"],
            protocol["name"],
            sorted(partitions),
        )

    assert found == expected
    assert len(found) == 4


@pytest.mark.parametrize(("name", "count"), [("kafka-4.3", 65), ("kafka-4.3-expiry", 6)])
def test_assignments_are_those_the_broker_described(table_rows: TableRows, truth: Truth, name: str, count: int) -> None:
    """The data directory has the names of all assigned topics."""
    rows = rows_by_group(table_rows("assignments", name))
    topics = {topic["topicId"]: topic_name for topic_name, topic in truth(name)["topics"].items()}
    parts = 0
    for group, answer in truth(name)["groups"].items():
        kind = answer["type"].lower()
        found = rows.pop(group, [])
        expected = described_assignments(kind, answer["describe"])
        assert shown_assignments(kind, found, topics) == expected
        assert {row["topic"] for row in found if row["topic_id"]} <= set(topics.values())
        parts += sum(map(len, expected.values()))
    assert rows == {}
    assert parts == count


# -- what no answer has ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-2.8"])
def test_members_are_what_their_records_say(table_rows: TableRows, topics_dir: Path, name: str) -> None:
    records = _last_records(topics_dir, name)

    for row in table_rows("members", name):
        place, timestamp, own = records[_OWN[row["group_kind"]], row["group_id"], _id_in_key(row)]
        assert (row["log_partition"], row["log_offset"], row["log_timestamp_ms"]) == (*place, timestamp)
        if row["group_kind"] == "classic":
            _check_classic(row, own)
            continue
        _, reached, current = records[_CURRENT[row["group_kind"]], row["group_id"], row["member_id"]]
        states = StreamsMemberState if row["group_kind"] == "streams" else MemberState
        assert (row["previous_member_epoch"], row["member_epoch"], row["state"], row["epoch_timestamp_ms"]) == (
            current["previousMemberEpoch"],
            current["memberEpoch"],
            states(current["state"]).label,
            reached,
        )
        assert row["rebalance_timeout_ms"] == own.get("rebalanceTimeoutMs")
        assert row["server_assignor"] == own.get("serverAssignor")
        classic = own.get("classicMemberMetadata") or {"supportedProtocols": ()}
        assert row["session_timeout_ms"] == classic.get("sessionTimeoutMs")
        told = [(each["name"], each["bytes"]) for each in row["protocols"] or ()]
        assert told == [(each["name"], b64decode(each["metadata"])) for each in classic["supportedProtocols"]]


_OWN = {"classic": 2, "consumer": 5, "share": 10, "streams": 19}
_CURRENT = {"consumer": 8, "share": 14, "streams": 22}
_Record = tuple[tuple[int, int], int, Any]


def _last_records(topics_dir: Path, name: str) -> dict[tuple[int, str, str], _Record]:
    """By type, group and member the place, timestamp and value of the last record."""
    found = [each for each in of_kafka(topics_dir / name / DUMP_TOOL[name]) if each.topic == "__consumer_offsets"]
    records: dict[tuple[int, str, str], _Record] = {}
    for record in sorted(found, key=lambda record: (record.partition, record.offset)):
        body = json.loads(f"{{{record.body}}}")
        if record.control is None and body["value"] is not None:
            key = body["key"]["data"]
            group = key.get("groupId", key.get("group"))
            place = (record.partition, record.offset)
            records[body["key"]["type"], group, key.get("memberId", "")] = (
                place,
                record.timestamp,
                body["value"]["data"],
            )
    return records


def _id_in_key(row: Row) -> str:
    """Classic groups have one record for all members."""
    return "" if row["group_kind"] == "classic" else str(row["member_id"])


def _check_classic(row: Row, value: dict[str, Any]) -> None:
    (member,) = (each for each in value["members"] if each["memberId"] == row["member_id"])
    assert row["member_epoch"] == value["generation"]
    assert row["session_timeout_ms"] == member["sessionTimeout"]
    assert row["rebalance_timeout_ms"] == member["rebalanceTimeout"]
    (told,), given = (row["protocols"], row["assignment"])
    if value["protocolType"] == "consumer" and told["opened"] is not None:
        subscription = json.loads(told["opened"])
        assert row["subscribed_topics"] == subscription["topics"]
        assert row["rack_id"] == (subscription.get("rackId") or None)
        # Kafka's dump tool prints these messages decoded.
        assert subscription == member["subscription"]
        assert json.loads(given["opened"]) == member["assignment"]
