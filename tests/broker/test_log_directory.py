"""`kafka-records dump` on the data directory of a running broker, compared with the broker's own answers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient
from kafka.errors import NoError

from tests.broker.clients import annotated, commit, create_topics
from tests.cli.running import run
from tools.broker import Broker

pytestmark = pytest.mark.broker

OFFSET_COMMIT = 1

Place = tuple[str, str, int]
Commit = tuple[int, str]
Change = tuple[Place, Commit | None]


@pytest.fixture(scope="module")
def groups(broker: Broker, admin: KafkaAdminClient) -> list[str]:
    """Groups with offsets that were committed again, deleted, committed in transactions, or aborted."""
    create_topics(admin, events=3)
    names = [f"reader-{number}" for number in range(6)]
    for number, name in enumerate(names):
        for offset in range(5):
            commit(admin, name, {("events", index): 100 * number + 10 * index + offset for index in range(3)}, "Grüße")
    deleted = admin.delete_group_offsets(names[0], [TopicPartition("events", 1)])
    assert set(deleted.values()) == {NoError}
    assert admin.delete_groups([names[1]])[names[1]] == "OK"
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="log-directory")
    with closing(producer):
        producer.init_transactions()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(annotated({("events", 0): 1000, ("events", 1): 1001}), names[2])
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send_offsets_to_transaction(annotated({("events", 2): 2000}), names[2])
        producer.send_offsets_to_transaction(annotated({("events", 0): 2001}), names[3])
        producer.abort_transaction()
    return names


def offset_commits(records: Iterable[dict[str, Any]]) -> dict[Place, Commit]:
    """Offset and metadata by group, topic and partition, replayed as the broker does: transactions count at the end."""
    committed: dict[Place, Commit] = {}
    waiting: dict[tuple[int, int], list[Change]] = defaultdict(list)

    def apply(changes: Iterable[Change]) -> None:
        for place, value in changes:
            if value is None:
                committed.pop(place, None)
            else:
                committed[place] = value

    for record in records:
        producer = record["partition"], record["producer_id"]
        if record["control"]:
            changes = waiting.pop(producer, [])
            apply(changes if record["control"] == "commit" else ())
        elif record["record_type"] == OFFSET_COMMIT:
            key, value = record["key"]["data"], record["value"]
            change = (
                (key["group"], key["topic"], key["partition"]),
                value and (value["data"]["offset"], value["data"]["metadata"]),
            )
            if record["is_transactional"]:
                waiting[producer].append(change)
            else:
                apply([change])
    return committed


def test_the_log_holds_what_the_broker_answers(broker: Broker, admin: KafkaAdminClient, groups: list[str]) -> None:
    dumped = run("dump", str(broker.data), "--topic", "__consumer_offsets")
    assert dumped.status == 0, dumped.err
    records = [json.loads(line) for line in dumped.lines]
    assert [record for record in records if record["error"]] == []
    in_log = {place: value for place, value in offset_commits(records).items() if place[0] in groups}

    answered = {
        (group, place.topic, place.partition): (found.offset, found.metadata)
        for group, offsets in admin.list_group_offsets(groups).items()
        for place, found in offsets.items()
    }
    assert in_log == answered
    assert in_log == {
        **{
            (name, "events", index): (100 * number + 10 * index + 4, "Grüße")
            for number, name in enumerate(groups)
            if number != 1
            for index in range(3)
            if (number, index) != (0, 1)
        },
        (groups[2], "events", 0): (1000, ""),
        (groups[2], "events", 1): (1001, ""),
    }
    # The groups are in several partitions of the topic, and transactions ended both ways.
    assert len({record["partition"] for record in records if record["record_type"] == OFFSET_COMMIT}) > 1
    assert {record["control"] for record in records} == {None, "commit", "abort"}
