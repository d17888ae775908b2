"""The answers of brokers about their cluster, compared with the metadata log on the disk of the same broker."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import ConfigResource, ConfigResourceType, KafkaAdminClient

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import read_table
from tests.broker.clients import commit, create_topics
from tools.broker import Broker

pytestmark = pytest.mark.broker

UNTOLD = {
    "topics": {"created_timestamp", "created_timestamp_ms"},
    "brokers": {
        *("broker_epoch", "in_controlled_shutdown", "log_dirs", "registered_timestamp", "registered_timestamp_ms"),
    },
    "features": {"changed_timestamp", "changed_timestamp_ms"},
}
"""The columns that brokers do not report."""
SET = {
    (ConfigResourceType.TOPIC, "told_orders"): {"retention.ms": "3600000", "cleanup.policy": "delete"},
    (ConfigResourceType.TOPIC, "told_kept"): {"cleanup.policy": "compact"},
    (ConfigResourceType.BROKER, "1"): {"listener.name.told.ssl.keystore.password": "hunter2"},
    (ConfigResourceType.GROUP, "told-group"): {"share.delivery.count.limit": "3"},
    (ConfigResourceType.CLIENT_METRICS, "told-metrics"): {"interval.ms": "10000"},
}


@pytest.fixture(scope="module")
def told(broker: Broker, admin: KafkaAdminClient) -> Broker:
    """The broker with topics and configs of every kind."""
    create_topics(admin, told_orders=3, told_kept=1, told_plain=1)
    for (kind, name), configs in SET.items():
        admin.alter_configs([ConfigResource(kind, name, configs)], raise_on_unknown=False)
    return broker


def rows_of(name: str, source: Any, **options: Any) -> list[dict[str, Any]]:
    result = read_table(name, source, **options)
    assert not result.findings
    rows: list[dict[str, Any]] = result.table.to_pylist()
    return rows


@pytest.mark.parametrize("name", ["topics", "partitions", "configs", "brokers", "features"])
def test_answers_are_the_rows_of_the_disk(told: Broker, name: str) -> None:
    live, disk = rows_of(name, LiveBrokers(told.bootstrap)), rows_of(name, told.data)
    untold = UNTOLD.get(name, set())
    assert len(live) >= {"topics": 3, "partitions": 5, "configs": 7, "brokers": 1, "features": 6}[name]
    assert {column for row in live for column in untold if row[column] is not None} == set()
    if name == "topics":
        disk = [row for row in disk if row["deleted_timestamp"] is None]
    if name == "brokers":  # a broker reports only the listener that gets the request, without its name
        assert [row["listeners"][0]["name"] for row in live] == [None]
        for row in (*live, *disk):
            row["listeners"] = [listener | {"name": None} for listener in row["listeners"]]

    def known(row: dict[str, Any]) -> dict[str, Any]:
        return {column: value for column, value in row.items() if column not in untold}

    assert [*map(known, live)] == [*map(known, disk)]


def test_secrets_are_never_told(told: Broker) -> None:
    for options in ({}, {"show_secrets": True}):
        (row,) = [row for row in rows_of("configs", LiveBrokers(told.bootstrap), **options) if row["is_sensitive"]]
        assert (row["name"], row["value"]) == ("listener.name.told.ssl.keystore.password", "(redacted)")


def test_there_is_no_past(told: Broker) -> None:
    with pytest.raises(LogSourceError, match="brokers know only the present state of their cluster"):
        read_table("topics", LiveBrokers(told.bootstrap), as_of="1h")


def test_how_long_topics_are_kept_is_asked(told: Broker, admin: KafkaAdminClient) -> None:
    topics = ("told_orders", "told_kept", "told_plain")
    with closing(KafkaProducer(bootstrap_servers=told.bootstrap)) as producer:
        for topic in topics:
            producer.send(topic, b"x", b"k", partition=0).get(10)
    commit(admin, "told-late", {(topic, 0): 0 for topic in topics})
    rows = read_table("lag", LiveBrokers(told.bootstrap), group="told-late", times=True).table.to_pylist()
    assert {row["topic"] for row in rows} == {*topics}
    kept = {row["topic"]: row["margin_ms"] + row["lag_ms"] for row in rows if row["margin_ms"] is not None}
    # The last of them has Kafka's default.
    assert kept == {"told_orders": 3600000, "told_plain": 7 * 24 * 3600000}
