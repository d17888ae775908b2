"""Kafka reads the output of `tools/write_segments.py`: its dump tool prints every record, and the answers of a broker
with these files are those that the writer expects."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient

from kafka_records_engine.log.format.compression import CODECS
from tests.broker.clients import wait_for_coordinators
from tests.kafka_needed import skipped_without_kafka
from tests.variants import one_in
from tools.broker import Broker, broker_jars, java
from tools.segments.plan import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tools.write_segments import Plan, WrittenLog, write_segments

pytestmark = pytest.mark.broker

PARTITIONS = 3
EVERYTHING = {
    "commits": 75,
    "tombstones": 10,
    "group_metadata": 4,
    "group_tombstones": 3,
    "consumer_groups": 2,
    "consumer_members": 3,
    "consumer_assignments": 3,
}
MARKER = re.compile(r"endTxnMarker: (COMMIT|ABORT)")


def dumped(files: list[Path], decoder: str) -> list[str]:
    """The lines of Kafka's dump tool."""
    with skipped_without_kafka():
        program = [java(), "-cp", str(broker_jars() / "*"), "org.apache.kafka.tools.DumpLogSegments"]
    options = ["--print-data-log", decoder, "--files", ",".join(map(str, files))]
    done = subprocess.run([*program, *options], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.splitlines()


def batch_lines(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("baseOffset: ")]


def record_lines(lines: list[str]) -> list[str]:
    return [line for line in lines if line.startswith("| ")]


@pytest.mark.parametrize("codec", one_in(3, CODECS))
def test_the_dump_tool_prints_every_record(codec: str, tmp_path: Path) -> None:
    plan = Plan(
        partitions=2,
        records=4000,
        keys=300,
        mix=EVERYTHING,
        commit_versions=(1, 3, 4),
        records_per_batch=(1, 800),
        codec=codec,
        transactions=0.3,
        segment_bytes=40_000,
    )
    written = write_segments(tmp_path, plan)
    lines = dumped(written.files, "--offsets-decoder")
    batches, records = batch_lines(lines), record_lines(lines)
    assert len(batches) == written.batches
    assert all(line.endswith("isvalid: true") for line in batches)
    assert {line.split("compresscodec: ")[1].split()[0] for line in batches if "isControl: false" in line} == {codec}
    assert len(records) == written.records + written.markers
    # If its decoder cannot read a key or payload, the tool prints it as text, or stops.
    decoded = [line for line in records if ' key: {"type":"' in line and " payload: " in line]
    assert len(decoded) == written.records
    assert len([line for line in records if MARKER.search(line)]) == written.markers


def test_the_dump_tool_prints_transactional_ids(tmp_path: Path) -> None:
    written = write_segments(tmp_path, Plan(topic=TRANSACTIONS_TOPIC, partitions=2, records=500, keys=30))
    records = record_lines(dumped(written.files, "--transaction-log-decoder"))
    assert len(records) == 500
    last: dict[str, tuple[int, Any]] = {}
    for line in records:
        key, _, payload = line.partition(" key: ")[2].partition(" payload: ")
        offset = int(line.split("offset: ")[1].split()[0])
        last[json.loads(key)["data"]["transactionalId"]] = offset, payload
    there = {name: each for name, each in last.items() if each[1] != "<DELETE>"}
    truth = {row["transactional_id"]: row for row in written.truth["transactions"].to_pylist()}
    assert there.keys() == truth.keys()
    for name, (offset, payload) in there.items():
        said = json.loads(payload)["data"]
        assert offset == truth[name]["log_offset"]
        assert said["transactionLastUpdateTimestampMs"] == truth[name]["last_update_ms"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> WrittenLog:
    plan = Plan(
        partitions=PARTITIONS,
        records=9000,
        keys=800,
        keys_per_group=10,
        mix=EVERYTHING,
        codec="lz4",
        transactions=0.2,
        aborted=0.3,
        left_open=0.1,
        segment_bytes=20_000,
    )
    return write_segments(tmp_path_factory.mktemp("written"), plan)


@pytest.fixture(scope="module")
def client(written: WrittenLog, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAdminClient]:
    """A client of a broker whose offsets topic was replaced by the written one while it was down."""
    settings = {
        "offsets.topic.num.partitions": str(PARTITIONS),
        "log.cleaner.enable": "false",
        "log.retention.ms": "-1",
        "offsets.retention.minutes": "2000000000",
    }
    broker = Broker(tmp_path_factory.mktemp("broker"), settings=settings)
    with skipped_without_kafka():
        broker.start()
    try:
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        wait_for_coordinators(admin)
        admin.close()
        broker.stop()
        replace_logs(broker.data, written)
        broker.start()
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
        wait_for_coordinators(admin)
        yield admin
        admin.close()
    finally:
        broker.stop()


def replace_logs(data: Path, written: WrittenLog) -> None:
    # Without the file that marks a clean shutdown, the broker checks every batch and builds its indexes again.
    (data / ".kafka_cleanshutdown").unlink()
    for number in range(PARTITIONS):
        folder = data / f"{OFFSETS_TOPIC}-{number}"
        for file in folder.iterdir():
            if file.name != "partition.metadata":
                file.unlink()
        for file in written.partitions[number].files:
            (folder / file.name).write_bytes(file.read_bytes())


def test_the_files_hold_what_makes_it_hard(written: WrittenLog) -> None:
    assert all(len(each.files) > 1 and each.markers for each in written.partitions)
    assert Counter(written.truth["groups"]["kind"].to_pylist()).keys() == {"classic", "simple", "consumer"}
    assert written.truth["current_offsets"].num_rows < 800


def test_a_broker_lists_the_groups(written: WrittenLog, client: KafkaAdminClient) -> None:
    listed = {}
    for group in client.list_groups():
        listed[group["group_id"]] = group["group_type"], group["protocol_type"]
    kinds = {"classic": ("classic", "consumer"), "simple": ("classic", ""), "consumer": ("consumer", "consumer")}
    assert listed == {row["group"]: kinds[row["kind"]] for row in written.truth["groups"].to_pylist()}


def test_a_broker_knows_the_offsets(written: WrittenLog, client: KafkaAdminClient) -> None:
    names = sorted({row["group"] for row in written.truth["groups"].to_pylist()})
    answered = {
        (group, place.topic, place.partition): found.offset
        for group, offsets in client.list_group_offsets(names).items()
        for place, found in offsets.items()
    }
    rows = written.truth["current_offsets"].to_pylist()
    current = {(row["group"], row["topic"], row["partition"]): row["offset"] for row in rows}
    # If a group was deleted before its offsets, a broker knows the offsets, but does not return them.
    assert answered == {place: offset for place, offset in current.items() if place[0] in names}
