"""A hanging transaction on a real broker is found next to an active one, and the abort command ends only the hanging
one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_tables import abort_transaction, read_table
from tests.broker.clients import create_topics
from tests.broker.hanging import Hanging, hang, verify_transactions
from tests.cli.running import run
from tools.broker import Broker

pytestmark = pytest.mark.broker

TOPIC = "hanging_orders"


@pytest.fixture(scope="module")
def left(broker: Broker, admin: KafkaAdminClient) -> Iterator[Hanging]:
    """A hanging transaction, followed by one that its producer has open."""
    create_topics(admin, **{TOPIC: 2})
    verify_transactions(admin, False)
    with closing(
        KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id="at-work", linger_ms=0)
    ) as producer:
        producer.init_transactions()
        made = hang(broker.bootstrap, TOPIC, 0, "left-alone", int(time.time() * 1000))
        producer.begin_transaction()
        for partition in range(2):
            producer.send(TOPIC, b"in the air", partition=partition).get(10)
        yield made
        producer.abort_transaction()
    verify_transactions(admin, True)


def _rows(broker: Broker) -> dict[tuple[str, int], dict[str, Any]]:
    found = read_table("open_transactions", LiveBrokers(broker.bootstrap))
    return {
        (row["transactional_id"], row["partition"]): row for row in found.table.to_pylist() if row["topic"] == TOPIC
    }


def _is_found(broker: Broker, left: Hanging) -> None:
    rows = _rows(broker)
    assert {key: row["hanging_rule"] for key, row in rows.items()} == {
        ("left-alone", 0): "no_entry",
        ("at-work", 0): None,
        ("at-work", 1): None,
    }
    hanging = rows["left-alone", 0]
    names = ("producer_id", "first_offset", "last_stable_offset", "since_timestamp_ms", "held_back")
    assert tuple(hanging[name] for name in names) == (
        left.producer_id,
        left.first_offset,
        left.first_offset,
        left.timestamp_ms,
        3,
    )


def _what_a_live_producer_owns_is_refused(broker: Broker) -> None:
    for partition in range(2):
        offset = _rows(broker)["at-work", partition]["first_offset"]
        found = abort_transaction(LiveBrokers(broker.bootstrap), TOPIC, partition, start_offset=offset, execute=True)
        assert found.refusal is not None
        assert found.refusal.startswith("transactional id at-work owns it (Ongoing): its producer ends it, or ")
        assert not found.is_aborted
    at = ("abort-transaction", "--bootstrap", broker.bootstrap, "--topic", f"{TOPIC}:1", "--execute", "--yes")
    ran = run(*at, "--start-offset", str(offset))
    assert ran.status == 1
    assert "  refused: transactional id at-work owns it" in ran.out
    assert set(_rows(broker)) == {("left-alone", 0), ("at-work", 0), ("at-work", 1)}


def test_it_is_found_live_and_abort_ends_it_and_nothing_else(broker: Broker, left: Hanging) -> None:
    _is_found(broker, left)
    _what_a_live_producer_owns_is_refused(broker)
    at = ("abort-transaction", "--bootstrap", broker.bootstrap, "--topic", f"{TOPIC}:0")
    named = ("--start-offset", str(left.first_offset))
    dry = run(*at, *named)
    assert (dry.status, "what it needs: the right ALTER on the cluster" in dry.out) == (0, True)
    before = _rows(broker)
    assert ("left-alone", 0) in before

    ran = run(*at, *named, "--execute", "--yes")

    stable = before["at-work", 0]["first_offset"]
    assert ran.status == 0
    assert ran.out.endswith(f"  aborted: consumers of committed records read up to offset {stable} now\n")
    after = _rows(broker)
    assert set(after) == {("at-work", 0), ("at-work", 1)}
    for key, row in after.items():
        assert (row["first_offset"], row["state"]) == (before[key]["first_offset"], "Ongoing")
    assert after["at-work", 0]["last_stable_offset"] == stable
    again = run(*at, *named, "--execute", "--yes")
    assert again.status == 2
    assert f"no transaction at offset {left.first_offset} is open" in again.err
