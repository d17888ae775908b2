"""The lag from a broker and from its directory, compared with Kafka's own kafka-consumer-groups."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaProducer, TopicPartition
from kafka.admin import KafkaAdminClient

from kafka_records_engine.findings import READ_MOMENTS
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import read_table
from tests.broker.clients import commit, consumer_groups, create_topics
from tools.broker import Broker

pytestmark = pytest.mark.broker

Place = tuple[str, str, int]

COMMITTED = {
    "lag-billing": {("lag_orders", 0): 4, ("lag_orders", 1): 10, ("lag_open", 0): 3},
    "lag-shipping": {("lag_orders", 0): 15, ("lag_empty", 0): 0},
    "lag-late": {("lag_orders", 1): 2},
    "lag-ahead": {("lag_orders", 0): 20, ("lag_open", 0): 1},
}


GROUPS = tuple(COMMITTED)


@pytest.fixture(scope="module")
def written(broker: Broker, admin: KafkaAdminClient) -> Iterator[Broker]:
    """The broker with groups that are behind, a raised log start and an open transaction."""
    create_topics(admin, lag_orders=3, lag_open=1, lag_empty=1)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
        for number in range(30):
            producer.send("lag_orders", b"%d" % number, partition=number % 2).get(10)
    admin.delete_records({TopicPartition("lag_orders", 1): 7})
    for group, offsets in COMMITTED.items():
        commit(admin, group, offsets)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="lag-open")) as producer:
        producer.init_transactions()
        for is_last in (False, True):
            producer.begin_transaction()
            for _ in range(3):
                producer.send("lag_open", b"x").get(10)
            if not is_last:
                producer.commit_transaction()
        yield broker
        producer.abort_transaction()


@pytest.fixture(scope="module")
def behind_odd_batches(broker: Broker, admin: KafkaAdminClient) -> Broker:
    """The broker with batches that are larger than the first request, and with aborted records."""
    create_topics(admin, lag_large=3, lag_aborted=1)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, linger_ms=0)) as producer:
        for number in range(6):
            producer.send("lag_large", b"x" * 300_000, partition=number % 3).get(10)
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="lag-aborted")) as producer:
        producer.init_transactions()
        for is_aborted in (True, True, False):
            producer.begin_transaction()
            producer.send("lag_aborted", b"x").get(10)
            producer.abort_transaction() if is_aborted else producer.commit_transaction()
    commit(admin, "lag-odd", {("lag_large", 0): 0, ("lag_large", 1): 1, ("lag_large", 2): 1, ("lag_aborted", 0): 0})
    commit(admin, "lag-odd-too", {("lag_large", 0): 1, ("lag_aborted", 0): 5})
    return broker


@pytest.fixture(scope="module")
def described(written: Broker) -> dict[Place, tuple[int, int, int]]:
    """Committed offset, log end and lag of each partition, according to Kafka's tool."""
    found = {}
    groups = [word for group in GROUPS for word in ("--group", group)]
    for line in consumer_groups(written, "--describe", *groups).splitlines():
        words = line.split()
        if len(words) > 5 and words[0] != "GROUP":
            group, topic, partition, offset, end, lag = words[:6]
            found[group, topic, int(partition)] = int(offset), int(end), int(lag)
    return found


TIMES = ("unread_timestamp_ms", "known_by")


@pytest.mark.usefixtures("written")
def test_times_are_those_of_the_disk(behind_odd_batches: Broker) -> None:
    groups = (*GROUPS, "lag-odd", "lag-odd-too")
    live = LiveBrokers(behind_odd_batches.bootstrap)

    def told(source: Any, **asked: Any) -> dict[Place, tuple[Any, ...]]:
        result = read_table("lag", source, group=groups, **asked)
        assert {each.reason for each in result.findings} <= {READ_MOMENTS}
        rows = result.table.to_pylist()
        return {
            (row["group_id"], row["topic"], row["partition"]): tuple(row[name] for name in TIMES)
            for row in rows
            # The broker writes the new log start to disk once a minute.
            if row["problem"] is None and row["group_id"] != "lag-late"
        }

    on_disk = told(behind_odd_batches.data)
    found = told(live, times=True)
    assert found == on_disk
    assert found["lag-odd", "lag_aborted", 0][0] is not None
    assert found["lag-odd-too", "lag_aborted", 0] == (None, None)
    assert len({stamp for stamp, _ in found.values() if stamp is not None}) > 7
    assert set(told(live).values()) == {(None, None)}


def rows_of(source: Any) -> dict[Place, dict[str, Any]]:
    result = read_table("lag", source, group=GROUPS)
    assert [each.reason for each in result.findings] == ([READ_MOMENTS] if isinstance(source, LiveBrokers) else [])
    return {(row["group_id"], row["topic"], row["partition"]): row for row in result.table.to_pylist()}


def test_lag_is_that_of_kafkas_tool(written: Broker, described: dict[Place, tuple[int, int, int]]) -> None:
    expected = described
    assert {(group, *place): found[0] for (group, *place), found in expected.items()} == {
        (group, *place): offset for group, offsets in COMMITTED.items() for place, offset in offsets.items()
    }
    for source in (LiveBrokers(written.bootstrap), written.data):
        rows = rows_of(source)
        shown = {key: row for key, row in rows.items() if row["problem"] != "beyond_end"}
        assert {key: (row["offset"], row["end_offset"], row["lag"]) for key, row in shown.items()} == {
            key: told for key, told in expected.items() if told[2] >= 0
        }
        # The tool shows -5 for an offset beyond the end, and nothing for a partition without a commit.
        assert [key for key, told in expected.items() if told[2] < 0] == [("lag-ahead", "lag_orders", 0)]
        below = rows.pop(("lag-late", "lag_orders", 1))
        if source is not written.data:  # the broker writes the new log start to disk once a minute
            assert (below["problem"], below["lost"]) == ("below_log_start", 5)
        assert {key: row["problem"] for key, row in rows.items() if row["problem"]} == {
            ("lag-ahead", "lag_orders", 0): "beyond_end",
        }


def test_read_committed_ends_before_an_open_transaction(written: Broker) -> None:
    rows = rows_of(LiveBrokers(written.bootstrap))
    # Three records, their marker, and three of the open transaction.
    row = rows["lag-billing", "lag_open", 0]
    assert [row[name] for name in ("offset", "last_stable_offset", "end_offset", "lag", "stable_lag")] == [
        3,
        4,
        7,
        4,
        1,
    ]
    assert rows_of(written.data)["lag-billing", "lag_open", 0]["stable_lag"] is None


def test_by_group(written: Broker, described: dict[Place, tuple[int, int, int]]) -> None:
    sums: dict[str, int] = {}
    for (group, *_), (_, _, lag) in described.items():
        sums[group] = sums.get(group, 0) + max(lag, 0)
    rows = read_table("group_lag", LiveBrokers(written.bootstrap), group=GROUPS).table.to_pylist()
    assert {row["group_id"]: row["lag"] for row in rows} == sums
