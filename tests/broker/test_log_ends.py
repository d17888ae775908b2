"""The starts and ends of logs, according to a broker and to its directory, compared with Kafka's own clients and
tools."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import read_table
from tests.broker.clients import commit, create_topics, wait_for_coordinators
from tests.kafka_needed import skipped_without_kafka
from tools.broker import HOST, Broker, broker_jars, free_ports, java

pytestmark = pytest.mark.broker

Place = tuple[str, int]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with a topic whose log start was raised, one with an open transaction, and an empty one."""
    broker = Broker(tmp_path_factory.mktemp("ends"))
    with skipped_without_kafka():
        broker.start()
    try:
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
            wait_for_coordinators(admin)
            create_topics(admin, raised=2, open=1, empty=3)
            commit(admin, "group", {("raised", 0): 5})
            with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
                for number in range(30):
                    producer.send("raised", b"%d" % number, partition=number % 2).get(10)
            admin.delete_records({TopicPartition("raised", 1): 7})
            with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="open")) as producer:
                producer.init_transactions()
                producer.begin_transaction()
                producer.send("open", b"committed").get(10)
                producer.commit_transaction()
                producer.begin_transaction()
                producer.send("open", b"in the air").get(10)
                producer.send("open", b"too").get(10)
                yield broker
                producer.abort_transaction()
    finally:
        broker.stop()


def rows_of(source: Any, **options: Any) -> dict[Place, dict[str, Any]]:
    result = read_table("log_ends", source, **options)
    assert result.findings == ()
    return {(row["topic"], row["partition"]): row for row in result.table.to_pylist()}


def consumed(broker: Broker, places: list[Place], isolation: str) -> tuple[dict[Place, int], dict[Place, int]]:
    """The starts and ends of logs, according to kafka-python."""
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap, isolation_level=isolation)) as consumer:
        partitions = [TopicPartition(*place) for place in places]
        begins, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    first, behind = ({(each.topic, each.partition): found[each] for each in partitions} for found in (begins, ends))
    return first, behind


def test_a_broker_tells_what_it_tells_its_clients(written: Broker) -> None:
    before = int(time.time() * 1000)
    rows = rows_of(LiveBrokers(written.bootstrap))
    assert {"raised", "open", "empty", "__consumer_offsets", "__transaction_state"} <= {topic for topic, _ in rows}
    starts, ends = consumed(written, [*rows], "read_uncommitted")
    _, stable = consumed(written, [*rows], "read_committed")
    for place, row in rows.items():
        assert row["log_start_offset"] == starts[place], place
        assert row["high_watermark"] == row["log_end_offset"] == ends[place], place
        assert row["last_stable_offset"] == stable[place], place
        assert before <= row["high_watermark_timestamp_ms"] <= time.time() * 1000
        assert row["place"] == written.bootstrap
    assert rows["raised", 1]["log_start_offset"] == 7
    # The marker of the first transaction is at offset 1.
    assert (rows["open", 0]["last_stable_offset"], rows["open", 0]["high_watermark"]) == (2, 4)
    assert rows["empty", 2]["log_end_offset"] == 0


def test_the_ids_are_those_that_kafka_knows(written: Broker) -> None:
    rows = rows_of(LiveBrokers(written.bootstrap))
    for (topic, partition), row in rows.items():
        text = Path(written.data, f"{topic}-{partition}", "partition.metadata").read_text()
        assert text.split() == ["version:", "0", "topic_id:", row["topic_id"]]


@pytest.mark.matrix
def test_kafkas_own_tool_tells_the_same(written: Broker) -> None:
    rows = rows_of(LiveBrokers(written.bootstrap))
    program = [java(), "-cp", str(broker_jars() / "*"), "org.apache.kafka.tools.GetOffsetShell"]
    for when, column in (("-1", "high_watermark"), ("-2", "log_start_offset")):
        asked = [*program, "--bootstrap-server", written.bootstrap, "--time", when]
        ran = subprocess.run(asked, capture_output=True, text=True, check=True, timeout=120)
        told = {}
        for line in ran.stdout.splitlines():
            topic, partition, offset = line.rsplit(":", 2)
            told[topic, int(partition)] = int(offset)
        assert told == {place: row[column] for place, row in rows.items()}


def test_the_directory_tells_the_same_without_what_only_brokers_know(written: Broker) -> None:
    live = rows_of(LiveBrokers(written.bootstrap))
    deadline = time.monotonic() + 60
    # A broker writes its high watermarks to disk every few seconds.
    while _marks(written) != {place: row["high_watermark"] for place, row in live.items()}:
        assert time.monotonic() < deadline, _marks(written)
        time.sleep(0.5)
    rows = rows_of(written.data)
    controllers = rows.pop(("__cluster_metadata", 0))  # a log that no client sees
    assert (controllers["log_start_offset"], controllers["high_watermark"]) == (0, None)
    assert rows.keys() == live.keys()
    for place, row in rows.items():
        same = ("topic_id", "log_end_offset", "high_watermark")
        assert [row[name] for name in same] == [live[place][name] for name in same], place
        assert row["last_stable_offset"] is None
        assert row["place"] == str(Path(written.data, f"{place[0]}-{place[1]}"))
        assert 0 <= time.time() * 1000 - row["high_watermark_timestamp_ms"] < 60_000


def _marks(broker: Broker) -> dict[Place, int]:
    checkpoint = Path(broker.data, "replication-offset-checkpoint")
    lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
    return {(topic, int(number)): int(offset) for topic, number, offset in map(str.split, lines)}


def test_one_topic(written: Broker) -> None:
    assert rows_of(LiveBrokers(written.bootstrap), topic="raised").keys() == {("raised", 0), ("raised", 1)}
    with pytest.raises(ValueError, match="there is no topic nobodys"):
        read_table("log_ends", LiveBrokers(written.bootstrap), topic="nobodys")


def test_no_broker() -> None:
    (port,) = free_ports(1)
    with pytest.raises(ValueError, match="no broker can be reached at this address"):
        read_table("log_ends", LiveBrokers(f"{HOST}:{port}"))
