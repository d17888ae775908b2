"""The metadata log that a controller sends, compared with the log on its disk."""

from __future__ import annotations

import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import KafkaAdminClient, NewTopic

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._brokers import connection
from kafka_records_engine.sources.controllers import fetch_metadata_log
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_runtime.kafka.error_codes import ErrorCode
from kafka_records_tables import read_table
from tests.broker.clients import create_topics
from tests.cli.running import run
from tools.broker import HOST, Broker, free_ports

pytestmark = pytest.mark.broker

TABLES = ("topics", "partitions", "configs", "brokers", "features")


def same_rows(fetched: Path, disk: Path) -> None:
    for name in TABLES:
        found, expected = read_table(name, fetched), read_table(name, disk)
        assert found.table.num_rows > 0
        assert found.table.equals(expected.table), name
        assert [*found.findings] == []


def test_the_log_is_that_of_the_disk(broker: Broker, admin: KafkaAdminClient, tmp_path: Path) -> None:
    create_topics(admin, fetched_kept=3, fetched_gone=1)
    admin.delete_topics(["fetched_gone"])
    target = tmp_path / "metadata"
    done = run("fetch-metadata", "--bootstrap-controller", broker.controller, "--output", str(target))
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"{target}: ")
    assert target.stat().st_mode & 0o077 == 0
    # The log on disk may be longer by now: a controller writes a record every half second.
    log = Path("__cluster_metadata-0", f"{0:020}.log")
    fetched = (target / log).read_bytes()
    assert (broker.data / log).read_bytes().startswith(fetched)
    same_rows(target, broker.data)
    gone = {row["topic"] for row in read_table("topics", target).table.to_pylist() if row["deleted_timestamp"]}
    assert "fetched_gone" in gone
    with pytest.raises(LogSourceError, match="this is not an empty directory: give a new one"):
        fetch_metadata_log(broker.controller, target)


def test_what_cannot_be_fetched(broker: Broker, tmp_path: Path) -> None:
    (port,) = free_ports(1)
    with pytest.raises(UnreachableBrokers, match="Connection refused"):
        fetch_metadata_log(f"{HOST}:{port}", tmp_path / "none", timeout=0.5)
    done = run("fetch-metadata", "--bootstrap-controller", broker.bootstrap, "--output", str(tmp_path / "none"))
    assert done.status == 2
    assert f"{broker.bootstrap}: this has no metadata log for clients, so it is a broker: give the address" in done.err
    # The other address is tried.
    found = fetch_metadata_log(f"{HOST}:{port},{broker.controller}", tmp_path / "some")
    assert found.end_offset > found.start_offset == 0
    assert [each.name for each in tmp_path.iterdir()] == ["some"]


def test_a_missing_right(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"error_code": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "responses": ()}
    monkeypatch.setattr(connection.Connection, "ask", lambda *asked: refused)
    with pytest.raises(
        LogSourceError, match="this client may not read the metadata log: grant it CLUSTER_ACTION on the"
    ):
        fetch_metadata_log(broker.controller, tmp_path / "none")


def test_a_damaged_batch_is_not_kept(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = connection.Connection.ask

    def damaged(asked: Any, name: str, fields: dict[str, Any], version: int) -> dict[str, Any]:
        answer = ask(asked, name, fields, version)
        for partition in (each for topic in answer["responses"] for each in topic["partitions"]):
            if partition["records"]:
                partition["records"] = partition["records"][:70] + b"\xff" + partition["records"][71:]
        return answer

    monkeypatch.setattr(connection.Connection, "ask", damaged)
    with pytest.raises(LogSourceError, match="the batch at offset 0 is damaged"):
        fetch_metadata_log(broker.controller, tmp_path / "none")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.matrix
@pytest.mark.parametrize("release", ["3.9.1", "4.0.0", "4.3.1", "4.4.0"])
def test_a_log_whose_beginning_is_deleted(release: str, tmp_path: Path) -> None:
    """The controller takes a snapshot every two seconds, and deletes what is before it."""
    is_older = release.startswith(("3.", "4.0"))
    smallest = {"metadata.log.segment.min.bytes": "1000", "metadata.log.segment.bytes": "4000"}
    settings = {
        "metadata.log.max.record.bytes.between.snapshots": "2000",
        "metadata.log.max.snapshot.interval.ms": "2000",
        "metadata.log.segment.ms": "2000",
        "metadata.max.retention.bytes": "3000",
        "group.coordinator.rebalance.protocols": "classic,consumer",
        **(smallest if is_older else {"internal.metadata.log.segment.bytes": "4000"}),
    }
    with Broker(tmp_path / "broker", settings=settings, release=release) as broker:
        with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap)) as admin:
            for number in range(30):
                admin.create_topics([NewTopic(f"topic-{number}", 3, 1, topic_configs={"retention.ms": "3600000"})])
            admin.delete_topics(["topic-7"])
        first = broker.data / "__cluster_metadata-0" / f"{0:020}.log"
        deadline = time.monotonic() + 60
        while first.exists() and time.monotonic() < deadline:
            time.sleep(0.2)
        found = fetch_metadata_log(broker.controller, tmp_path / "metadata")
        assert found.start_offset > 0
        assert found.snapshot is not None
        same_rows(tmp_path / "metadata", broker.data)
