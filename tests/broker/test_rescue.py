"""The steps of docs/rescue.md: a coordinator cannot load its log; its offsets are saved from files and from brokers,
and restored with `delete-offsets --restore` and with Kafka's own tool."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from kafka import KafkaProducer
from kafka.admin import KafkaAdminClient

from kafka_records_tables import read_table
from tests.broker.clients import commit, consumer_groups, create_topics, wait_for_coordinators, wait_until
from tests.cli.running import run
from tests.cli.segment_bytes import batch
from tests.cli.segment_bytes import commit as record
from tools.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.matrix]

ODD = 'odd, "group"'
COMMITTED = {("billing", "orders", 0): 5, ("billing", "orders", 1): 7, (ODD, "returns", 0): 3}
NOTE = 'billed to "5",\nthen stopped'
NOT_LOADED = "Failed to load metadata from __consumer_offsets-"


EXECUTED = ("--execute", "--yes")


def offsets_in(folder: Path) -> dict[tuple[str, str, int], int]:
    rows = read_table("current_offsets", folder).table.to_pylist()
    return {(row["group_id"], row["topic"], row["partition"]): row["offset"] for row in rows}


def test_offsets_of_a_coordinator_that_no_longer_loads(tmp_path: Path) -> None:
    with (
        Broker(tmp_path / "broker") as broker,
        closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin,
    ):
        wait_for_coordinators(admin)
        create_topics(admin, orders=2, returns=1)
        with closing(KafkaProducer(bootstrap_servers=broker.bootstrap)) as producer:
            for place in [("orders", 0), ("orders", 1), ("returns", 0)] * 10:
                producer.send(place[0], b"x", partition=place[1])
            producer.flush()
        commit(admin, "billing", {("orders", 0): 5, ("orders", 1): 7}, NOTE)
        commit(admin, ODD, {("returns", 0): 3})
    assert offsets_in(broker.data) == COMMITTED

    rows = read_table("current_offsets", broker.data, group="billing").table.to_pylist()
    [partition] = {row["log_partition"] for row in rows}
    every_row = read_table("current_offsets", broker.data).table.to_pylist()
    in_partition = {row["group_id"] for row in every_row if row["log_partition"] == partition}
    folder = broker.data / f"__consumer_offsets-{partition}"
    key, value = record("from a newer broker", 1)
    assert value is not None
    unknown = batch(max(row["log_offset"] for row in rows) + 1, [(key, b"\0\x63" + value[2:])])
    with open(max(folder.glob("*.log")), "ab") as segment:
        segment.write(unknown)
    with Broker(tmp_path / "broker") as broker:
        wait_until(lambda: NOT_LOADED in broker.log.read_text(encoding="utf-8"), "the coordinator has loaded")
        rows_of_it = tmp_path / "offsets.jsonl"
        only = ("--where", f"log_partition={partition}", "--format", "json", "--output", str(rows_of_it))
        ran = run("table", "current_offsets", "--bootstrap", broker.bootstrap, *only)
        assert (ran.status, "OffsetCommitValue has no version 99" in ran.err) == (1, True)
    saved_rows = [json.loads(line) for line in rows_of_it.read_text(encoding="utf-8").splitlines()]
    assert {row["group_id"] for row in saved_rows} == in_partition
    assert [row["offset"] for row in saved_rows if row["group_id"] == "billing"] == [5, 7]

    saved = tmp_path / "offsets.csv"
    ran = run("table", "current_offsets", str(broker.data), "--format", "reset-offsets", "--output", str(saved))
    assert ran.status == 1
    assert "OffsetCommitValue has no version 99" in ran.err

    folder.rename(tmp_path / folder.name)
    with Broker(tmp_path / "broker") as broker:
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
            wait_for_coordinators(admin)
        restored = run("delete-offsets", "--restore", str(rows_of_it), "--bootstrap", broker.bootstrap, *EXECUTED)
        assert restored.status == 0, restored.out
        again = read_table("current_offsets", broker.data, group="billing").table.to_pylist()
        assert [(row["offset"], row["metadata"]) for row in again] == [(5, NOTE), (7, NOTE)]
        groups = [each for group in ("billing", ODD) for each in ("--group", group)]
        consumer_groups(broker, "--reset-offsets", "--from-file", str(saved), *groups, "--execute")
        assert offsets_in(broker.data) == COMMITTED
