"""Reading three brokers that are killed and started again while clients commit.

Every offset that is read is between the one acknowledged before the read and the one sent last before its end. Nothing
is missing, and no read ends with damage. KAFKA_RECORDS_LIVE_SECONDS is the duration. If it is set, every broker is
killed in turn, including the only controller. Otherwise the controller is not killed, and the test ends after 25
seconds.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from examples import offset_admin
from kafka_records.rpc.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_records.rpc.offset_commit_response import OffsetCommitResponse
from kafka_records_engine.sources._brokers import fetching
from kafka_records_engine.sources._brokers.cluster import Cluster
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from kafka_records_tables import read_table
from tests.broker.clients import wait_until
from tests.kafka_needed import skipped_without_kafka
from tools.broker import HOST
from tools.faults.cluster import ProxiedBroker, three_brokers
from tools.faults.run import EQUAL, Run

pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")]

IS_LONG = "KAFKA_RECORDS_LIVE_SECONDS" in os.environ
SECONDS = float(os.environ.get("KAFKA_RECORDS_LIVE_SECONDS", "25"))
GROUPS = [f"restless-{number}" for number in range(12)]
PARTITIONS = 4
AWAY = 120
"""The maximum seconds until a killed broker has caught up, even on a busy machine."""

Offsets = dict[str, int]


@contextmanager
def three_running(folder: Path) -> Iterator[list[ProxiedBroker]]:
    """Three running brokers with the topic `events`."""
    made = three_brokers(folder)
    try:
        with skipped_without_kafka():
            for broker in made:
                broker.start()
        with closing(KafkaAdminClient(bootstrap_servers=[broker.bootstrap for broker in made])) as admin:
            shape = {"num_partitions": PARTITIONS, "replication_factor": 3}
            admin.create_topics({"events": shape}, wait_for_metadata=True)
        yield made
    finally:
        for broker in reversed(made):
            broker.kill()


def commit(port: int, group: str, offset: int) -> bool:
    """Commit an offset for each partition of `events`. Returns whether the coordinator accepted all of them."""
    with closing(offset_admin.coordinator(HOST, port, group)) as connection:
        partitions = tuple(OffsetCommitRequestPartition(index, offset) for index in range(PARTITIONS))
        topics = (OffsetCommitRequestTopic("events", partitions=partitions),)
        request = OffsetCommitRequest(group_id=group, topics=topics)
        answer = connection.ask(request, OffsetCommitResponse.decode, at_most=9)
        return not any(each.error_code for topic in answer.topics for each in topic.partitions)


@dataclass
class Writers:
    """Commits increasing offsets for every group, whichever brokers are alive."""

    ports: list[int]
    sent: Offsets = field(default_factory=lambda: dict.fromkeys(GROUPS, 0))
    acknowledged: Offsets = field(default_factory=lambda: dict.fromkeys(GROUPS, 0))
    stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> list[threading.Thread]:
        threads = [threading.Thread(target=self._commit, args=(GROUPS[which::2],), daemon=True) for which in range(2)]
        for thread in threads:
            thread.start()
        return threads

    def stop(self, threads: list[threading.Thread]) -> None:
        self.stopped.set()
        for thread in threads:
            thread.join(120)
        # If a broker dies during a connection attempt, the example leaves its socket to the garbage collector.
        gc.collect()

    def _commit(self, groups: list[str]) -> None:
        while not self.stopped.is_set():
            for group in groups:
                if not self.stopped.is_set():
                    self.sent[group] += 1
                    with suppress(OSError, ValueError, offset_admin.BrokerRefused):
                        if commit(random.choice(self.ports), group, self.sent[group]):
                            self.acknowledged[group] = self.sent[group]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[ProxiedBroker]]:
    """Three running brokers with the topic `events`, for which every group has committed once."""
    with three_running(tmp_path_factory.mktemp("three")) as made:
        first = Writers([broker.port for broker in made])
        threads = first.start()
        wait_until(lambda: all(first.acknowledged.values()), "not every group has committed", AWAY)
        first.stop(threads)
        yield made


def read(bootstrap: str, config: ClientConfig) -> dict[str, set[int]]:
    result = read_table("current_offsets", LiveBrokers(bootstrap, config), processes=1)
    assert [str(found) for found in result.findings if found.severity == "damage"] == []
    found: dict[str, set[int]] = {}
    for row in result.table.to_pylist():
        found.setdefault(row["group_id"], set()).add(row["offset"])
    return found


def answered(ports: list[int]) -> dict[str, set[int]]:
    """The committed offsets of the groups, according to the brokers."""
    found: dict[str, set[int]] = {}

    def is_answered() -> bool:
        for group in set(GROUPS) - found.keys():
            with (
                suppress(OSError, ValueError, offset_admin.BrokerRefused),
                closing(offset_admin.coordinator(HOST, random.choice(ports), group)) as connection,
            ):
                found[group] = {*offset_admin.committed(connection, group).values()}
        return found.keys() == set(GROUPS)

    wait_until(is_answered, "the coordinators do not answer", AWAY)
    return found


@dataclass
class Reader:
    """Reads continuously, and compares the result with the offsets of the writers."""

    bootstrap: str
    writers: Writers
    reads: int = 0
    failures: list[BaseException] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def start(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        # Every second read asks the brokers of one rack instead of the leaders.
        configs = [ClientConfig(), ClientConfig(client_rack="rack-1")]
        try:
            while not self.stopped.is_set():
                self._read(configs[self.reads % 2])
                self.reads += 1
        except BaseException as error:
            self.failures.append(error)

    def _read(self, config: ClientConfig) -> None:
        before = dict(self.writers.acknowledged)
        found = read(self.bootstrap, config)
        after = dict(self.writers.sent)
        assert found.keys() == set(GROUPS)
        wrong = {
            group: (before[group], offsets, after[group])
            for group, offsets in found.items()
            if not all(before[group] <= offset <= after[group] for offset in offsets)
        }
        assert wrong == {}, f"in read {self.reads}"


@pytest.mark.matrix  # `make live` runs it for minutes
def test_brokers_that_die_and_come_back(brokers: list[ProxiedBroker]) -> None:
    bootstrap = ",".join(broker.bootstrap for broker in brokers)
    writers = Writers([broker.port for broker in brokers])
    reader = Reader(bootstrap, writers)
    threads = writers.start()
    kills: dict[str, int] = {}
    try:
        wait_until(lambda: all(writers.acknowledged.values()), "not every group has committed", AWAY)
        threads.append(reader.start())
        deadline = time.monotonic() + SECONDS
        # A broker ends with the thread that started it, so this thread starts it.
        for broker in brokers[0 if IS_LONG else 1 :] * 1000:
            time.sleep(3)
            broker.kill()
            kills[broker.folder.name] = kills.get(broker.folder.name, 0) + 1
            time.sleep(7)
            broker.start()
            if time.monotonic() > deadline or reader.failures:
                break
    finally:
        reader.stopped.set()
        threads[-1].join(120)
        writers.stop(threads)
    assert reader.failures == []
    assert reader.reads > sum(kills.values())
    print(f"{reader.reads} reads, kills by broker {kills}, {sum(writers.acknowledged.values())} commits")
    assert read(bootstrap, ClientConfig()) == answered([broker.port for broker in brokers])


@pytest.mark.matrix
def test_leaders_are_spared(brokers: list[ProxiedBroker]) -> None:
    """Every partition is read from the broker in the rack of the client, although others lead."""
    bootstrap = ",".join(broker.bootstrap for broker in brokers)
    original = fetching.Fetcher._received
    asked: dict[str, int] = {}

    def received(self: fetching.Fetcher) -> object:
        found = original(self)
        if isinstance(found, fetching.Fetched):
            asked[found.address] = asked.get(found.address, 0) + len(found.data)
        return found

    def is_spared() -> bool:
        asked.clear()
        logs = LiveBrokers(bootstrap, {"client.rack": "rack-3"}).partitions("__consumer_offsets")
        rows = [batch.num_rows for log in logs for batch in log.batches(Context(log.topic, log.partition), ["key"])]
        return sum(rows) > 0 and asked.keys() == {brokers[2].bootstrap}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fetching.Fetcher, "_received", received)
        # A broker that was down has to catch up first.
        wait_until(is_spared, "other brokers were asked, or none", AWAY)


@pytest.mark.matrix
def test_reads_through_a_proxy_that_disturbs_them_are_the_log_or_say_what_happened(
    brokers: list[ProxiedBroker], tmp_path: Path
) -> None:
    """`make faults` reads for longer."""
    outcome = Run(brokers, tmp_path, seed=random.randrange(1 << 32)).run(3, readers=2)
    assert outcome.differences == []
    assert outcome.answers[EQUAL] >= 8
    assert outcome.faults.total() > 5
    assert outcome.moves


@pytest.mark.slow
@pytest.mark.matrix
def test_a_partition_whose_only_broker_is_dead_is_named_and_the_others_are_read(brokers: list[ProxiedBroker]) -> None:
    living, dead = brokers[0].bootstrap, brokers[2]
    everybody = [broker.bootstrap for broker in brokers]
    with (
        closing(KafkaAdminClient(bootstrap_servers=everybody)) as admin,
        closing(KafkaProducer(bootstrap_servers=everybody, linger_ms=0)) as producer,
    ):
        admin.create_topics({"alone": {"assignments": {0: [1], 1: [2], 2: [3]}}}, wait_for_metadata=True)
        for partition in range(3):
            producer.send("alone", b"%d" % partition, partition=partition).get(10)

    def values(config: ClientConfig) -> tuple[list[list[bytes]], list[str]]:
        rows, findings = [], []
        for log in LiveBrokers(living, config).partitions("alone"):
            context = Context(log.topic, log.partition)
            rows.append([each for batch in log.batches(context, ["value"]) for each in batch["value"].to_pylist()])
            findings += [str(each) for each in context.findings]
        return rows, findings

    def is_leaderless() -> bool:
        return Cluster([(HOST, brokers[0].port)], ClientConfig()).topic("alone").leaders[2] == -1

    dead.kill()
    try:
        wait_until(is_leaderless, "the partition of a dead broker has a leader", AWAY)
        assert values(ClientConfig(patience_ms=2000)) == (
            [[b"0"], [b"1"], []],
            [f"{living} alone-2: it has no leader, for 2 s (nothing of it is read)"],
        )
    finally:
        dead.start()
    assert values(ClientConfig()) == ([[b"0"], [b"1"], [b"2"]], [])
