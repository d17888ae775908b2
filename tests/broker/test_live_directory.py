"""Reading the data directory of a broker that rolls, cleans, renames and deletes its files all the time.

The result of a read must be the state of the broker at some moment between two of its answers: no group is missing, no
offset is older than the previous answer or newer than the next one, and nothing counts as damaged.

KAFKA_RECORDS_LIVE_SECONDS is the duration (default 12).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from examples import offset_admin
from kafka_records.consumer_offsets import decode_record
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.rpc.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_records.rpc.offset_commit_response import OffsetCommitResponse
from kafka_records_engine.findings import Finding
from kafka_records_engine.log.reading.segment_files import find_logs, read_partition
from kafka_records_tables import read_table
from tests.broker.clients import annotated, commit, create_topics, wait_for_coordinators
from tests.kafka_needed import skipped_without_kafka
from tools.broker import HOST, Broker

pytestmark = pytest.mark.broker

SECONDS = float(os.environ.get("KAFKA_RECORDS_LIVE_SECONDS", "12"))
FEWEST_READS = 30
PARTITIONS = 4

RESTLESS = {
    # A segment lives for this long, and is cleaned, merged with others and deleted as soon as it is closed.
    "log.roll.ms": "100",
    "log.cleaner.backoff.ms": "1",
    "log.cleaner.min.cleanable.ratio": "0.0001",
    "log.cleaner.max.compaction.lag.ms": "1",
    "log.cleaner.delete.retention.ms": "0",
    "log.segment.delete.delay.ms": "0",
    "log.retention.check.interval.ms": "100",
}

Place = tuple[str, int]
"""A group and a partition of the one topic it has offsets for."""

Offsets = dict[Place, int]


@pytest.fixture(scope="module")
def restless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("restless"), settings=RESTLESS)
    with skipped_without_kafka():
        broker.start()
    try:
        yield broker
    finally:
        broker.stop()


@pytest.fixture(scope="module")
def client(restless: Broker) -> Iterator[KafkaAdminClient]:
    with closing(KafkaAdminClient(bootstrap_servers=restless.bootstrap)) as client:
        wait_for_coordinators(client)
        create_topics(client, events=PARTITIONS)
        yield client


@dataclass
class Writers:
    """Commits increasing offsets in threads, until it is stopped."""

    broker: Broker
    busy: list[str] = field(default_factory=lambda: [f"busy-{number}" for number in range(12)])
    quiet: list[str] = field(default_factory=lambda: [f"quiet-{number}" for number in range(12)])
    """Groups that commit only once; cleaners copy their commits from file to file."""
    transactional: str = "transactional"
    commits: int = 0
    failures: list[BaseException] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def groups(self) -> list[str]:
        return [*self.busy, *self.quiet, self.transactional]

    def run(self, client: KafkaAdminClient) -> list[threading.Thread]:
        for group in self.groups:
            commit(client, group, {("events", index): 1 for index in range(PARTITIONS)}, "first")
        jobs: list[Callable[[], None]] = [lambda: self._commit(0), lambda: self._commit(1), self._transact]
        threads = [threading.Thread(target=self._guarded, args=(job,), daemon=True) for job in jobs]
        for thread in threads:
            thread.start()
        return threads

    def _guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:
            self.failures.append(error)

    def _commit(self, which: int) -> None:
        groups = self.busy[which::2]
        with closing(offset_admin.coordinator(HOST, self.broker.port, groups[0])) as connection:
            offset = 1
            while not self.stopped.is_set():
                offset += 1
                for group in groups:
                    partitions = tuple(OffsetCommitRequestPartition(index, offset) for index in range(PARTITIONS))
                    topics = (OffsetCommitRequestTopic("events", partitions=partitions),)
                    request = OffsetCommitRequest(group_id=group, topics=topics)
                    answer = connection.ask(request, OffsetCommitResponse.decode, at_most=9)
                    assert {each.error_code for topic in answer.topics for each in topic.partitions} == {0}
                    self.commits += 1

    def _transact(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self.broker.bootstrap, transactional_id="live")
        with closing(producer):
            producer.init_transactions()
            offset = 1
            while not self.stopped.is_set():
                offset += 1
                producer.begin_transaction()
                places = {("events", index): offset for index in range(PARTITIONS)}
                producer.send_offsets_to_transaction(annotated(places), self.transactional)
                if offset % 3:
                    producer.commit_transaction()
                else:
                    producer.abort_transaction()
                self.commits += 1


@pytest.fixture
def writers(restless: Broker, client: KafkaAdminClient) -> Iterator[Writers]:
    writers = Writers(restless)
    threads = writers.run(client)
    yield writers
    writers.stopped.set()
    for thread in threads:
        thread.join(30)


def answered(client: KafkaAdminClient, groups: list[str]) -> Offsets:
    """The committed offsets of the groups, according to the broker."""
    return {
        (group, place.partition): found.offset
        for group, offsets in client.list_group_offsets(groups).items()
        for place, found in offsets.items()
    }


def committed(data: Path, findings: list[Finding]) -> Offsets:
    """The same from the log, record by record. Transactions are resolved by their markers, as in a coordinator."""
    offsets: Offsets = {}
    for log in find_logs([data], "__consumer_offsets"):
        latest: dict[bytes, tuple[int, bytes]] = {}
        pending: dict[int, list[tuple[bytes, int, bytes]]] = {}
        columns = ("key", "value", "offset", "producer_id", "transaction", "control")
        for rows in read_partition(log, settle=False, columns=columns, on_finding=findings.append):
            for key, value, offset, producer, transaction, control in zip(
                *(column.to_pylist() for column in rows.columns), strict=True
            ):
                if control:
                    for waiting in pending.pop(producer, []) if control == "commit" else []:
                        latest[waiting[0]] = max(latest.get(waiting[0], (-1, b"")), waiting[1:])
                    pending.pop(producer, None)
                elif transaction == "pending":
                    pending.setdefault(producer, []).append((key, offset, value))
                else:
                    latest[key] = offset, value
        for key, (_, value) in latest.items():
            record = decode_record(key, value)
            if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue):
                offsets[record.key.group, record.key.partition] = record.value.offset
    return offsets


def as_a_table(data: Path, findings: list[Finding]) -> Offsets:
    """The same with the tables that users read. Every group with an offset must be listed."""
    offsets = read_table("current_offsets", data)
    groups = read_table("groups", data)
    findings += [found for result in (offsets, groups) for found in result.findings if found.severity == "damage"]
    found = {(row["group_id"], row["partition"]): row["offset"] for row in offsets.table.to_pylist()}
    assert {group for group, _ in found} <= set(groups.table["group_id"].to_pylist())
    return found


@pytest.mark.matrix
def test_every_read_is_a_moment_of_the_broker(restless: Broker, client: KafkaAdminClient, writers: Writers) -> None:
    findings: list[Finding] = []
    seen: set[tuple[str, int]] = set()
    reads = 0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline or reads < FEWEST_READS:
        before = answered(client, writers.groups)
        read = (committed, as_a_table)[reads % 2]
        found = read(restless.data, findings)
        after = answered(client, writers.groups)
        assert before.keys() == after.keys() == found.keys()
        wrong = {
            place: (before[place], found[place], after[place])
            for place in found
            if not before[place] <= found[place] <= after[place]
        }
        assert wrong == {}, f"in read {reads}, {read.__name__}"
        assert [str(finding) for finding in findings if finding.severity == "damage"] == []
        for log in find_logs([restless.data], "__consumer_offsets"):
            seen |= {(entry.name, entry.inode()) for entry in os.scandir(log.folder) if entry.name.endswith(".log")}
        reads += 1
    assert writers.failures == []
    print(f"{reads} reads, {writers.commits} commits, {len(seen)} files, {len(findings)} notes")
    # Otherwise the broker changed its files too rarely for this test.
    assert len(seen) > reads
