"""The tables over topics that brokers wrote equal what those brokers answered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_tables import TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

pytestmark = pytest.mark.spark

Captured = Callable[[str], "DataFrame"]
TableRows = Callable[[str, str], "list[Row]"]
Truth = Callable[[str], dict[str, Any]]

SETS = ("kafka-4.3", "kafka-2.8", "kafka-4.3-expiry")

DAY_MS = 86_400_000
CAPTURE_MS = 3_600_000
"""No broker ran for longer than an hour."""

PENDING = {
    "kafka-4.3": {("payment-enricher", "payments", 0), ("payment-enricher", "payments", 1)},
    "kafka-2.8": set(),
    "kafka-4.3-expiry": set(),
}
"""Partitions with a commit in a transaction that is still open. The broker refuses to answer for them when it is asked
for stable offsets only; asked plainly it gives the commit before, which is what the table has. (The 2.8 topic has one
too, but for a partition without a commit before it, which is listed nowhere.)"""


@pytest.mark.parametrize("name", SETS)
def test_current_offsets_are_those_the_broker_reported(table_rows: TableRows, truth: Truth, name: str) -> None:
    groups = truth(name)["groups"]
    expected = {
        (group, each["topic"], each["partition"]): (each["offset"], each["leaderEpoch"], each["metadata"])
        for group, answer in groups.items()
        for each in answer.get("offsets", [])
    }

    rows = table_rows("current_offsets", name)

    found = {(row.group_id, row.topic, row.partition): (row.offset, row.leader_epoch, row.metadata) for row in rows}
    assert len(rows) == len(found)
    assert found == expected


@pytest.mark.parametrize("name", SETS)
def test_pending_commits_are_not_shown(captured: Captured, table_rows: TableRows, truth: Truth, name: str) -> None:
    unstable = {
        (group, each["topic"], each["partition"])
        for group, answer in truth(name)["groups"].items()
        for each in answer.get("unstableOffsets", [])
    }
    assert unstable == PENDING[name]

    places = {(row.log_partition, row.log_offset) for row in table_rows("current_offsets", name)}
    unsettled = captured(name).where("topic = '__consumer_offsets' and transaction in ('open', 'aborted')").collect()

    assert not places & {(row.partition, row.offset) for row in unsettled}


@pytest.mark.parametrize("name", SETS)
def test_topic_ids_are_those_of_the_cluster(table_rows: TableRows, truth: Truth, name: str) -> None:
    """Nothing before 4.1 names them, and no transactional commit does."""
    ids = {topic: each.get("topicId") for topic, each in truth(name)["topics"].items()}

    named = {(row.topic, row.topic_id) for row in table_rows("current_offsets", name) if row.topic_id is not None}

    assert {topic for topic, topic_id in named if ids[topic] != topic_id} == set()
    assert bool(named) == (name != "kafka-2.8")


@pytest.mark.parametrize("name", SETS)
def test_commit_timestamps_lie_in_the_time_of_the_capture(table_rows: TableRows, truth: Truth, name: str) -> None:
    """The brokers were started for the capture. One client of the 2.8 topic names a time of its own, a day back."""
    end = truth(name)["captureTimeMs"]
    for row in table_rows("current_offsets", name):
        assert row.commit_timestamp is not None
        assert end - DAY_MS - CAPTURE_MS <= row.commit_timestamp_ms <= end


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-4.3-expiry"])
def test_groups_are_those_the_broker_described(table_rows: TableRows, truth: Truth, name: str) -> None:
    expected = {}
    for group, answer in truth(name)["groups"].items():
        described = answer["describe"]
        expected[group] = (
            "simple" if answer["simple"] else answer["type"].lower(),
            described["groupState"],
            described.get("groupEpoch"),
            answer["protocolType"],
            described.get("protocolData", ""),
            len(described["members"]),
        )

    rows = table_rows("groups", name)

    found = {}
    for row in rows:
        # The broker does not tell the generation of a classic group, but the epoch of every other kind.
        epoch = None if row.group_kind in ("classic", "simple") else row.epoch
        found[row.group_id] = (
            row.group_kind,
            row.state,
            epoch,
            row.protocol_type,
            row.protocol or "",
            row.member_count,
        )
    assert len(rows) == len(found)
    assert found == expected


def test_groups_of_an_old_broker(table_rows: TableRows, truth: Truth) -> None:
    """2.8 does not report the protocol type; its one group that lost all offsets to an admin is gone here and there."""
    expected = {
        group: (
            "simple" if answer["simple"] else "classic",
            answer["state"],
            answer["partitionAssignor"],
            len(answer["members"]),
        )
        for group, answer in truth("kafka-2.8")["groups"].items()
    }

    rows = table_rows("groups", "kafka-2.8")

    found = {row.group_id: (row.group_kind, row.state, row.protocol or "", row.member_count) for row in rows}
    assert len(rows) == len(found)
    assert found == expected
    assert "refund-checks-v09" not in found


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_deciding_record_decodes_without_remark(captured: Captured, name: str, table: str) -> None:
    assert TABLES[table].remarks(captured(name)).collect() == []


def test_groups_name_the_record_that_makes_them(captured: Captured, table_rows: TableRows) -> None:
    raw = captured("kafka-4.3")
    places = {row.group_id: (row.log_partition, row.log_offset) for row in table_rows("groups", "kafka-4.3")}
    keys = {
        (row.partition, row.offset): (int.from_bytes(row.key[:2], "big"), row.key[4:].decode())
        for row in raw.where("topic = '__consumer_offsets' and control is null").collect()
    }

    for group, place in places.items():
        record_type, rest = keys[place]
        assert record_type in (1, 2, 3, 11, 17)
        assert rest.startswith(group)
