"""The tables over topics that brokers wrote, compared with the answers of these brokers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_tables import read_table
from tests.cli.test_dump_agrees import DUMP_TOOL, Evidence, of_kafka

Row = dict[str, Any]
TableRows = Callable[[str, str], list[Row]]
Truth = Callable[[str], dict[str, Any]]

SETS = ("kafka-4.3", "kafka-2.8", "kafka-4.3-expiry")

DAY_MS = 86_400_000
CAPTURE_MS = 3_600_000
"""No broker ran for longer than an hour."""

PENDING = {
    "kafka-4.3": {("payment-enricher", "payments", 0), ("payment-enricher", "payments", 1)},
    "kafka-2.8": {("fare-calc-v28-gzip", "taps", 0)},
    "kafka-4.3-expiry": set(),
}
"""Partitions with a commit in a transaction that is still open, and one before it.

The broker refuses to answer about them if only stable offsets are requested. Otherwise it returns the previous offset,
which the table has. (The broker of 2.8 was not asked for stable offsets.)
"""


@pytest.mark.parametrize("name", SETS)
def test_current_offsets_are_those_the_broker_reported(table_rows: TableRows, truth: Truth, name: str) -> None:
    groups = truth(name)["groups"]
    expected = {
        (group, each["topic"], each["partition"]): (each["offset"], each["leaderEpoch"], each["metadata"])
        for group, answer in groups.items()
        for each in answer.get("offsets", [])
    }

    rows = table_rows("current_offsets", name)

    found = {
        (row["group_id"], row["topic"], row["partition"]): (row["offset"], row["leader_epoch"], row["metadata"])
        for row in rows
    }
    assert len(rows) == len(found)
    assert found == expected


@pytest.mark.parametrize("name", SETS)
def test_pending_commits_are_not_shown(table_rows: TableRows, truth: Truth, name: str) -> None:
    unstable = {
        (group, each["topic"], each["partition"])
        for group, answer in truth(name)["groups"].items()
        for each in answer.get("unstableOffsets", [])
    }
    assert unstable == (PENDING[name] if name != "kafka-2.8" else set())

    places = {(row["log_partition"], row["log_offset"]) for row in table_rows("current_offsets", name)}
    commits = table_rows("offset_commits", name)
    unsettled = [row for row in commits if row["transaction"] in ("open", "aborted")]
    assert not places & {(row["log_partition"], row["log_offset"]) for row in unsettled}
    pending = {(row["group_id"], row["topic"], row["partition"]) for row in commits if row["transaction"] == "open"}
    committed = {(row["group_id"], row["topic"], row["partition"]) for row in table_rows("current_offsets", name)}
    assert pending & committed == PENDING[name]


@pytest.mark.parametrize("name", SETS)
def test_topic_ids_are_those_of_the_cluster(table_rows: TableRows, truth: Truth, name: str) -> None:
    """Before 4.1, no commit has topic ids, and transactional commits never do."""
    ids = {topic: each.get("topicId") for topic, each in truth(name)["topics"].items()}

    named = {
        (row["topic"], row["topic_id"]) for row in table_rows("current_offsets", name) if row["topic_id"] is not None
    }

    assert {topic for topic, topic_id in named if ids[topic] != topic_id} == set()
    assert bool(named) == (name != "kafka-2.8")


@pytest.mark.parametrize("name", SETS)
def test_commit_timestamps_lie_in_the_time_of_the_capture(table_rows: TableRows, truth: Truth, name: str) -> None:
    """The brokers were started for the capture. One client of the 2.8 topic sends a commit time, a day in the past."""
    end = truth(name)["captureTimeMs"]
    for row in table_rows("current_offsets", name):
        assert row["commit_timestamp"] is not None
        assert end - DAY_MS - CAPTURE_MS <= row["commit_timestamp_ms"] <= end


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
        # The broker does not report the generation of a classic group, but it reports the epoch of every other kind.
        epoch = None if row["group_kind"] in ("classic", "simple") else row["epoch"]
        found[row["group_id"]] = (
            row["group_kind"],
            row["state"],
            epoch,
            row["protocol_type"],
            row["protocol"] or "",
            row["member_count"],
        )
    assert len(rows) == len(found)
    assert found == expected


def test_groups_of_an_old_broker(table_rows: TableRows, truth: Truth) -> None:
    """2.8 does not report the protocol type.

    It keeps no group without an offset or a member. A present coordinator lists a group whose last offset an
    administrator deleted until its next clean-up.
    """
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

    found = {
        row["group_id"]: (row["group_kind"], row["state"], row["protocol"] or "", row["member_count"]) for row in rows
    }
    assert len(rows) == len(found)
    assert found.pop("refund-checks-v09") == ("simple", "Empty", "", 0)
    assert found == expected


def test_groups_name_the_record_that_makes_them(table_rows: TableRows, topics_dir: Path) -> None:
    records = {(each.partition, each.offset): each for each in _dumped(topics_dir, "kafka-4.3", "__consumer_offsets")}

    for row in table_rows("groups", "kafka-4.3"):
        key = json.loads(f"{{{records[row['log_partition'], row['log_offset']].body}}}")["key"]
        assert key["type"] in (1, 2, 3, 11, 17)
        assert row["group_id"] in (key["data"].get("group"), key["data"].get("groupId"))


# -- every record ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SETS)
def test_commits_are_those_kafka_printed(table_rows: TableRows, topics_dir: Path, name: str) -> None:
    expected = {}
    for record, outcome in _settled(_dumped(topics_dir, name, "__consumer_offsets")):
        body = json.loads(f"{{{record.body}}}")
        if record.control is None and body["key"]["type"] in (0, 1):
            expected[record.partition, record.offset] = _commit(record, body["key"]["data"], body["value"], outcome)

    rows = table_rows("offset_commits", name)

    columns = ("group_id", "topic", "partition", "offset", "leader_epoch", "metadata", "commit_timestamp_ms")
    more = ("expire_timestamp_ms", "topic_id", "is_tombstone", "transaction", "producer_id", "log_timestamp_ms")
    found = {
        (row["log_partition"], row["log_offset"]): tuple(row[column] for column in (*columns, *more)) for row in rows
    }
    assert len(found) == len(rows)
    assert found == expected


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-2.8"])
def test_transactions_are_the_last_that_kafka_printed_of_each(
    table_rows: TableRows, topics_dir: Path, name: str
) -> None:
    expected: dict[str, tuple[Any, ...]] = {}
    for record in _dumped(topics_dir, name, "__transaction_state"):
        body = json.loads(f"{{{record.body}}}")
        key, value = body["key"]["data"]["transactionalId"], body["value"]
        expected.pop(key, None)
        if value is not None:
            expected[key] = _transaction(record, value["data"])

    rows = table_rows("transactions", name)

    assert {row["transactional_id"]: _transaction_of(row) for row in rows} == expected
    assert len(rows) == len(expected) > 3


def test_transactions_are_those_the_broker_described(table_rows: TableRows, truth: Truth) -> None:
    expected = {
        each["transactionalId"]: (
            each["producerId"],
            each["producerEpoch"],
            each["state"],
            each["transactionTimeoutMs"],
            each["transactionStartTimeMs"],
            sorted(each["topicPartitions"]),
        )
        for each in truth("kafka-4.3")["transactions"]
    }

    found = {
        row["transactional_id"]: (
            row["producer_id"],
            row["producer_epoch"],
            row["state"],
            row["timeout_ms"],
            row["start_timestamp_ms"],
            sorted(f"{each['topic']}-{number}" for each in row["partitions"] or () for number in each["partitions"]),
        )
        for row in table_rows("transactions", "kafka-4.3")
    }

    assert found == expected


def test_share_states_are_those_the_broker_read(table_rows: TableRows, truth: Truth) -> None:
    expected = {
        (state["groupId"], result["topicId"], answer["partition"]): (
            answer["stateEpoch"],
            answer["startOffset"],
            [tuple(batch.values()) for batch in answer["stateBatches"]],
        )
        for state in truth("kafka-4.3")["shareStates"]
        for result in state["readShareGroupState"]["results"]
        for answer in result["partitions"]
    }

    found = {
        (row["group_id"], row["topic_id"], row["partition"]): (
            row["state_epoch"],
            row["start_offset"],
            [
                (batch["first_offset"], batch["last_offset"], batch["delivery_state"], batch["delivery_count"])
                for batch in row["batches"]
            ],
        )
        for row in table_rows("share_partitions", "kafka-4.3")
    }

    assert found == expected
    assert sum(len(batches) for _, _, batches in found.values()) > 50


def test_topics_of_share_groups_are_those_the_broker_listed_offsets_of(table_rows: TableRows, truth: Truth) -> None:
    expected = {
        (group, each["topic"], each["partition"]): (each["startOffset"], each["leaderEpoch"])
        for group, answer in truth("kafka-4.3")["groups"].items()
        for each in answer.get("shareOffsets", [])
    }

    topics = table_rows("share_group_topics", "kafka-4.3")
    states = {
        (row["group_id"], row["topic_id"], row["partition"]): (row["start_offset"], row["leader_epoch"])
        for row in table_rows("share_partitions", "kafka-4.3")
    }

    assert {row["initialization"] for row in topics} == {"initialized"}
    assert {
        (row["group_id"], row["topic"], row["partition"]): states[row["group_id"], row["topic_id"], row["partition"]]
        for row in topics
    } == expected
    assert len(topics) == len(states) == 7


def test_a_data_directory_without_the_topic_is_refused(topics_dir: Path) -> None:
    folder = topics_dir / "kafka-4.3-expiry" / "segments"
    with pytest.raises(LogSourceError) as failure:
        read_table("transactions", folder)
    assert str(failure.value) == (
        f"{folder}: there is no log of topic __transaction_state here, only logs of __consumer_offsets"
    )


def _dumped(topics_dir: Path, name: str, topic: str) -> list[Evidence]:
    """The records of a topic as Kafka's dump tool printed them, in the order of each partition."""
    found = [record for record in of_kafka(topics_dir / name / DUMP_TOOL[name]) if record.topic == topic]
    return sorted(found, key=lambda record: (record.partition, record.offset))


def _settled(records: list[Evidence]) -> Iterator[tuple[Evidence, str]]:
    """Each record with the outcome of its transaction, according to the next marker of its producer."""
    outcomes: dict[tuple[int, int], str] = {}
    for record in reversed(records):
        producer = (record.partition, record.producer_id)
        if record.control is not None:
            outcomes[producer] = {"commit": "committed", "abort": "aborted"}[record.control]
        yield record, outcomes.get(producer, "open") if record.is_transactional else "none"


def _commit(record: Evidence, key: dict[str, Any], payload: dict[str, Any] | None, outcome: str) -> tuple[Any, ...]:
    value = {} if payload is None else payload["data"]
    return (
        key["group"],
        key["topic"],
        key["partition"],
        value.get("offset"),
        _unless(value.get("leaderEpoch"), -1),
        value.get("metadata"),
        value.get("commitTimestamp"),
        _unless(value.get("expireTimestamp"), -1),
        _unless(value.get("topicId"), "A" * 22),
        payload is None,
        outcome,
        _unless(record.producer_id, -1),
        _unless(record.timestamp, -1),
    )


def _transaction(record: Evidence, value: dict[str, Any]) -> tuple[Any, ...]:
    partitions = value["transactionPartitions"]
    return (
        value["producerId"],
        value["producerEpoch"],
        value["transactionStatus"],
        value["transactionTimeoutMs"],
        None if partitions is None else [(each["topic"], each["partitionIds"]) for each in partitions],
        _unless(value["transactionStartTimestampMs"], -1),
        value["transactionLastUpdateTimestampMs"],
        record.partition,
        record.offset,
    )


def _transaction_of(row: Row) -> tuple[Any, ...]:
    states = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")
    partitions = row["partitions"]
    return (
        row["producer_id"],
        row["producer_epoch"],
        states.index(row["state"]),
        row["timeout_ms"],
        None if partitions is None else [(each["topic"], each["partitions"]) for each in partitions],
        row["start_timestamp_ms"],
        row["last_update_timestamp_ms"],
        row["log_partition"],
        row["log_offset"],
    )


def _unless(value: Any, nothing: Any) -> Any:
    return None if value == nothing else value
