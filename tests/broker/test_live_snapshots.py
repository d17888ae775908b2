"""Snapshots of a broker that cleans its logs as soon as possible, and removes tombstones and markers at once.

With `--as-of` the moment of a snapshot, the answer is always that of the broker at that time. Without a moment, it is
the last answer of the broker.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from kafka_records_engine.findings import Finding
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Source
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_tables import read_table
from tests.broker.clients import Offsets, annotated, commit, create_topics, wait_for_coordinators
from tests.broker.test_live_directory import RESTLESS
from tests.kafka_needed import skipped_without_kafka
from tests.sources.snapshot_logs import rows_of
from tools.broker import Broker

pytestmark = pytest.mark.broker

TOPIC = "__consumer_offsets"
ROUNDS = 4
GROUPS = [f"group-{number}" for number in range(6)]


@pytest.fixture(scope="module")
def cleaning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("cleaning"), settings=RESTLESS)
    with skipped_without_kafka():
        broker.start()
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def client(cleaning: Broker) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=cleaning.bootstrap)) as client:
        wait_for_coordinators(client)
        create_topics(client, orders=2)
        yield client


@dataclass(frozen=True)
class Taken:
    """An answer of the broker, and a time at which nothing more had happened."""

    at_ms: int
    offsets: dict[str, Offsets]


def answered(client: KafkaAdminClient, groups: list[str]) -> dict[str, Offsets]:
    return {
        group: {(place.topic, place.partition): found.offset for place, found in offsets.items()}
        for group, offsets in client.list_group_offsets(groups).items()
        if offsets
    }


def read(root: Path, **options: Any) -> tuple[dict[str, Offsets], tuple[Finding, ...]]:
    result = read_table("current_offsets", root, **options)
    offsets: dict[str, dict[tuple[str, int], int]] = {}
    for row in result.table.to_pylist():
        offsets.setdefault(row["group_id"], {})[row["topic"], row["partition"]] = row["offset"]
    return dict(offsets), result.findings


def work(broker: Broker, client: KafkaAdminClient, number: int) -> None:
    """Overwrite commits, commit and abort transactions, and delete a group."""
    for round_ in range(8):
        for group in GROUPS:
            commit(client, group, {("orders", 0): 100 * number + round_, ("orders", 1): number})
    commit(client, f"gone-{number}", {("orders", 0): number})
    if number:
        client.delete_groups([f"gone-{number - 1}"])
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="payer")) as producer:
        producer.init_transactions()
        for ends in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            offset = 1000 * number + (ends == producer.abort_transaction)
            producer.send_offsets_to_transaction(annotated({("orders", 0): offset}), "paying")
            ends()


def wait_for_the_cleaner(broker: Broker, client: KafkaAdminClient) -> None:
    """Wait until segments are rolled, which needs a new record, and cleaned."""
    for turn in range(6):
        time.sleep(0.2)
        for group in GROUPS:
            commit(client, group, {("orders", 1): turn})


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["brokers", "files"])
def test_last_tuesday(kind: str, cleaning: Broker, client: KafkaAdminClient, tmp_path: Path) -> None:
    taken: list[Taken] = []
    looked = 0
    groups = [*GROUPS, "paying", *(f"gone-{number}" for number in range(ROUNDS))]
    for number in range(ROUNDS):
        work(cleaning, client, number)
        wait_for_the_cleaner(cleaning, client)
        offsets = answered(client, groups)
        time.sleep(0.01)
        at_ms = time.time_ns() // 1_000_000
        time.sleep(0.01)
        source: Source = LiveBrokers(cleaning.bootstrap) if kind == "brokers" else Segments(cleaning.data)
        report = take_snapshot(source, tmp_path, [TOPIC])
        assert [found for found in report.findings if found.severity == "damage"] == []
        looked += report.topics[TOPIC].looked
        assert answered(client, groups) == offsets
        assert read(tmp_path) == (offsets, ())
        taken.append(Taken(at_ms, offsets))

    for each in taken:
        offsets, findings = read(tmp_path, as_of=each.at_ms)
        # Files may be an old copy, so there may be a note.
        assert findings == () or kind == "files"
        assert offsets == each.offsets

    # Otherwise the broker has removed nothing, and this test would prove nothing.
    assert len({str(each.offsets) for each in taken}) == ROUNDS
    assert looked
    stored = sum(len(rows_of(log)) for log in Snapshot(tmp_path).partitions(TOPIC))
    left = sum(len(rows_of(log)) for log in Segments(cleaning.data).partitions(TOPIC))
    print(f"{stored} records are stored, {left} are left; {looked} logs were looked at")
    assert left < stored


def test_a_topic_that_is_recreated_is_refused(cleaning: Broker, client: KafkaAdminClient, tmp_path: Path) -> None:
    create_topics(client, short=1)
    with closing(KafkaProducer(bootstrap_servers=cleaning.bootstrap)) as producer:
        for number in range(5):
            producer.send("short", key=b"k", value=b"%d" % number).get(10)
        take_snapshot(LiveBrokers(cleaning.bootstrap), tmp_path, ["short"])
        client.delete_topics(["short"])
        deadline = time.monotonic() + 30
        while "short" in LiveBrokers(cleaning.bootstrap).topics():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        create_topics(client, short=1)
        for number in range(9):
            producer.send("short", key=b"k", value=b"%d" % number).get(10)

    report = take_snapshot(LiveBrokers(cleaning.bootstrap), tmp_path, ["short"])

    (found,) = report.findings
    assert found.severity == "damage"
    assert "the topic was deleted and recreated" in found.what
    (log,) = Snapshot(tmp_path).partitions("short")
    assert rows_of(log)["value"].to_pylist() == [b"%d" % number for number in range(5)]
