"""Brokers as a source: they have the same raw rows and tables as their segment files, and reading leaves no trace."""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from kafka_records_engine.findings import Finding
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._brokers import connection
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context, LogPartition
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_tables import TABLES, read_table, read_tables
from kafka_records_tables.commands.main import main
from tests.broker.clients import annotated, commit, create_topics
from tests.kafka_needed import skipped_without_kafka
from tests.tables.names import USUAL
from tools.broker import HOST, Broker, broker_jars, free_ports, java
from tools.segments.plan import Plan
from tools.serving import serving
from tools.write_segments import write_segments

pytestmark = pytest.mark.broker

TOPICS = Path(__file__).resolve().parents[1] / "data" / "topics"
INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")


@dataclass(frozen=True)
class Served:
    """A broker that serves captured segments."""

    segments: Path
    live: LiveBrokers

    def captured(self, topic: str) -> list[Any]:
        topics = {folder.name.rpartition("-")[0] for folder in self.segments.iterdir() if folder.is_dir()}
        return [*Segments(self.segments).partitions(topic)] if topic in topics else []


# `make test` reads files of 2.8, and a fetch returns the same batches.
@pytest.fixture(scope="module", params=["kafka-4.3", pytest.param("kafka-2.8", marks=pytest.mark.matrix)])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    segments = TOPICS / request.param / "segments"
    with skipped_without_kafka(), serving(segments, folder=tmp_path_factory.mktemp("served")) as broker:
        yield Served(segments, LiveBrokers(broker.bootstrap))


def raw_rows(log: LogPartition) -> tuple[pa.Table, list[Finding]]:
    context = Context(log.topic, log.partition)
    rows = pa.Table.from_batches(list(log.batches(context, RAW_SCHEMA.names)), RAW_SCHEMA)
    return rows, [*context.findings]


def test_raw_rows_are_those_of_the_segments(served: Served) -> None:
    names = [topic for topic in INTERNAL if served.captured(topic)]
    assert set(names) <= set(served.live.topics())
    for topic in names:
        live = {log.partition: log for log in served.live.partitions(topic)}
        for log in served.captured(topic):
            expected, found_in_files = raw_rows(log)
            rows, found = raw_rows(live[log.partition])
            assert [each for each in found + found_in_files if each.severity == "damage"] == []
            # The coordinator may have appended to this log after loading it.
            appended = rows.num_rows - expected.num_rows
            assert rows.slice(0, expected.num_rows).equals(expected), log
            if appended:
                assert rows["offset"][expected.num_rows].as_py() > expected["offset"][-1].as_py()


def test_a_range_is_fetched_from_its_start_to_its_end(served: Served) -> None:
    for topic in INTERNAL:
        for log in served.live.partitions(topic) if topic in served.live.topics() else []:
            whole, _ = raw_rows(log)
            offsets = whole["offset"].to_pylist()
            for start, end in ((3, 20), (0, 7), (11, None), (None, 9), (-5, 1 << 40)):
                context = Context(log.topic, log.partition)
                rows = pa.Table.from_batches(list(log.batches(context, RAW_SCHEMA.names, start, end)), RAW_SCHEMA)
                first = start if start is not None else 0
                behind = end if end is not None else log.end
                assert rows["offset"].to_pylist() == [each for each in offsets if first <= each < behind]
                assert context.log.start == log.start
                assert context.log.holes == ([end - 1] if end is not None and max(log.start, end) < log.end else [])


class AsCaptured:
    """The brokers' logs up to the ends of the captured logs."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def partitions(self, topic: str) -> list[BrokerPartition]:
        ends = {}
        for log in self._served.captured(topic):
            offsets = raw_rows(log)[0]["offset"]
            ends[log.partition] = offsets[-1].as_py() + 1 if len(offsets) else 0
        return [
            replace(log, end=max(log.start, ends[log.partition]))
            for log in self._served.live.partitions(topic)
            if log.partition in ends
        ]


def _processes(table: str) -> int:
    """The number of processes: several for one table of each helper, because starting them takes a second of processor
    time."""
    return 2 if table in USUAL else 1


def test_tables_are_those_of_the_segments(served: Served) -> None:
    names = [name for name, table in TABLES.items() if served.captured(table.topic)]
    by_files = read_tables(names, served.segments)
    found = [*read_tables(names, AsCaptured(served)).items()]
    found += [(name, read_table(name, AsCaptured(served), processes=2)) for name in USUAL if name in names]
    for name, live in found:
        assert live.table.equals(by_files[name].table), name
        assert live.counts.records == by_files[name].counts.records
    assert sum(live.table.num_rows for _, live in found)


@pytest.fixture(scope="module")
def clients(broker: Broker, admin: KafkaAdminClient) -> dict[str, dict[tuple[str, int], int]]:
    """Groups with offsets in two topics. One commits in transactions, of which the last is aborted."""
    create_topics(admin, live_a=3, live_b=2)
    wanted = {f"live-{number}": {("live_a", number % 3): 10 + number, ("live_b", 1): number} for number in range(40)}
    for group, offsets in wanted.items():
        commit(admin, group, offsets, "note")
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="live-txn")) as producer:
        producer.init_transactions()
        for offset, is_committed in ((5, True), (6, True), (7, False)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(annotated({("live_a", 0): offset}), "live-txn")
            producer.commit_transaction() if is_committed else producer.abort_transaction()
    return wanted | {"live-txn": {("live_a", 0): 6}}


def current_offsets(broker: Broker) -> dict[str, dict[tuple[str, int], int]]:
    found: dict[str, dict[tuple[str, int], int]] = {}
    result = read_table("current_offsets", LiveBrokers(broker.bootstrap))
    assert not result.findings
    for row in result.table.to_pylist():
        if row["group_id"].startswith("live-"):
            found.setdefault(row["group_id"], {})[row["topic"], row["partition"]] = row["offset"]
    return found


def test_answers_are_the_brokers(
    broker: Broker, admin: KafkaAdminClient, clients: dict[str, dict[tuple[str, int], int]]
) -> None:
    answered = {
        group: {(place.topic, place.partition): found.offset for place, found in offsets.items()}
        for group, offsets in admin.list_group_offsets(list(clients)).items()
    }
    assert answered == clients
    assert current_offsets(broker) == answered


def ends_of(broker: Broker, topics: list[str]) -> dict[TopicPartition, int]:
    """The ends of logs, according to another client."""
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap)) as consumer:
        places = [
            TopicPartition(topic, each) for topic in topics for each in consumer.partitions_for_topic(topic) or ()
        ]
        return dict(consumer.end_offsets(places))


@pytest.mark.usefixtures("clients")
def test_reading_leaves_no_trace(broker: Broker, admin: KafkaAdminClient) -> None:
    live = LiveBrokers(broker.bootstrap)
    topics = live.topics()
    groups = sorted(str(group) for group in admin.list_groups())
    ends = ends_of(broker, topics)
    assert sum(ends.values()) > 0
    for name, table in TABLES.items():
        if table.topic in topics:
            read_table(name, live, processes=_processes(name))
    with pytest.raises(ValueError, match="there is no topic __share_group_state_of_nobody"):
        live.partitions("__share_group_state_of_nobody")
    assert ends_of(broker, live.topics()) == ends
    assert sorted(str(group) for group in admin.list_groups()) == groups
    assert live.topics() == topics


def test_an_empty_log_has_no_rows(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, live_empty=1)
    (log,) = LiveBrokers([broker.bootstrap]).partitions("live_empty")
    assert (log.start, log.end, log.size) == (0, 0, 0)
    assert raw_rows(log)[0].num_rows == 0


def test_a_moved_log_start_is_told(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, live_moved=1)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
        for number in range(20):
            producer.send("live_moved", b"%d" % number).get(10)
    (log,) = LiveBrokers(broker.bootstrap).partitions("live_moved")
    admin.delete_records({TopicPartition("live_moved", 0): 12})
    rows, found = raw_rows(log)
    assert rows["offset"].to_pylist() == list(range(12, 20))
    assert [str(each) for each in found] == [
        f"{broker.bootstrap} live_moved-0: offsets 0 to 11 are deleted while the log was read: it starts at 12 now "
        "(the response does not contain them)"
    ]


def test_a_topic_that_was_recreated_is_another_one(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, live_again=1)
    (log,) = LiveBrokers(broker.bootstrap).partitions("live_again")
    admin.delete_topics(["live_again"])
    create_topics(admin, live_again=1)
    with pytest.raises(ValueError, match="topic live_again was deleted and recreated since its logs were found"):
        raw_rows(replace(log, end=1))


@pytest.mark.parametrize("damage", ["crc", pytest.param("offset", marks=pytest.mark.matrix)])
def test_damage_is_told_and_read_past(damage: str, tmp_path: Path) -> None:
    """Exactly the batches are left out that the reader of files leaves out."""
    segments = tmp_path / "segments"
    plan = Plan(partitions=2, records=20_000, keys=500, transactions=0.2, segment_bytes=400_000, damage={damage: 8})
    write_segments(segments, plan, processes=1)
    with skipped_without_kafka(), serving(segments, folder=tmp_path / "broker", as_they_are=True) as broker:
        config = ClientConfig(fetch_bytes=50_000, patience_ms=3000)
        logs = {log.partition: log for log in LiveBrokers(broker.bootstrap, config).partitions(INTERNAL[0])}
        for file in Segments(segments).partitions(INTERNAL[0]):
            expected, found_in_files = raw_rows(file)
            rows, found = raw_rows(replace(logs[file.partition], end=expected["offset"][-1].as_py() + 1))
            assert rows.equals(expected)
            damaged = sorted(each.base_offset or 0 for each in found_in_files if each.severity == "damage")
            assert damaged
            assert sorted(each.base_offset or 0 for each in found if each.severity == "damage") == damaged


@pytest.mark.matrix
def test_a_damaged_size_in_the_last_batch_costs_its_partition_only(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, live_cut=2)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
        for number in range(10):
            producer.send("live_cut", b"value", partition=number % 2).get(10)
    logs = LiveBrokers(broker.bootstrap, ClientConfig(patience_ms=20_000)).partitions("live_cut")
    (path,) = broker.folder.glob("**/live_cut-0/00000000000000000000.log")
    data = path.read_bytes()
    size = len(data) // 5
    for claimed in (1_000_000_000, 0x7FFFFF00):
        with path.open("r+b") as file:
            file.seek(len(data) - size + 8)
            file.write(struct.pack(">i", claimed))
        rows, found = raw_rows(logs[0])
        assert rows["offset"].to_pylist() == [0, 1, 2, 3]
        assert [(each.severity, each.base_offset) for each in found] == [("damage", 4)]
        assert raw_rows(logs[1])[0]["offset"].to_pylist() == [0, 1, 2, 3, 4]
        place = ["--bootstrap", broker.bootstrap, "--topic", "live_cut", "--package", "kafka_records.consumer_offsets"]
        assert main(["counts", *place]) == 1
    with path.open("r+b") as file:
        file.write(data)


def test_what_nobody_can_give_is_damage(broker: Broker, admin: KafkaAdminClient) -> None:
    """A result is never silently incomplete: the offsets that were not read are named."""
    create_topics(admin, live_gone=1)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
        producer.send("live_gone", b"here").get(10)
    config = ClientConfig(patience_ms=500)
    (log,) = LiveBrokers(broker.bootstrap, config).partitions("live_gone")
    rows, found = raw_rows(replace(log, end=5))
    assert rows["offset"].to_pylist() == [0]
    assert [(each.severity, each.base_offset, each.consequence) for each in found] == [
        ("damage", 1, "offsets 1 to 4 are not read")
    ]
    assert "the log ends at 1 now, and ended at 5 before, for 0.5 s" in found[0].what
    (port,) = free_ports(1)
    rows, found = raw_rows(replace(log, bootstrap=((HOST, port),)))
    assert rows.num_rows == 0
    assert [str(each) for each in found] == [
        f"{HOST}:{port} live_gone-0: batch at offset 0: no broker can be reached at this address: Connection refused, "
        "for 0.5 s (offset 0 is not read)"
    ]


@pytest.mark.matrix
def test_a_broker_that_asks_for_pauses_gets_them(broker: Broker, admin: KafkaAdminClient) -> None:
    create_topics(admin, live_slow=1)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
        for _ in range(40):
            producer.send("live_slow", bytes(10_000))
        producer.flush()
    set_quota = [
        *(java(), "-cp", str(broker_jars() / "*"), "kafka.admin.ConfigCommand"),
        *("--bootstrap-server", broker.bootstrap, "--alter", "--add-config", "consumer_byte_rate=25000"),
        *("--entity-type", "clients", "--entity-name", "kafka-records-slow"),
    ]
    subprocess.run(set_quota, check=True, capture_output=True)
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        time.sleep(seconds)

    config = ClientConfig(client_id="kafka-records-slow", fetch_bytes=50_000)
    (log,) = LiveBrokers(broker.bootstrap, config).partitions("live_slow")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "pause", pause)
        rows, found = raw_rows(log)
    assert rows.num_rows == 40
    assert found == []
    assert sum(waits) > 0.1
