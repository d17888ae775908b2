"""Partitions without a leader: the reader waits for them, then names them, and reads the others."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import UNREACHABLE_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources._brokers import patience
from kafka_records_engine.sources._brokers.cluster import LATEST, Cluster, Topic, UnknownOffset
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.live import LiveBrokers
from kafka_records_engine.sources.protocol import Context
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_tables.commands.main import main
from tests.sources.snapshot_logs import LiveLog
from tests.tables.topic import Topic as MadeTopic

CONFIG = ClientConfig(patience_ms=200)
NO_LEADER = UnknownOffset("it has no leader")


class _Coordinator:
    """Partition 0 has a leader; partition 1 gets one after `later` requests, partition 2 never."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, partitions: int, later: int = 3) -> None:
        self._partitions, self._later = partitions, later
        self.questions = 0
        monkeypatch.setattr(Cluster, "topic", lambda cluster, name: self._topic(name))
        monkeypatch.setattr(
            Cluster, "offsets", lambda cluster, topic, which, timestamp: self._offsets(which, timestamp)
        )

    def _topic(self, name: str) -> Topic:
        self.questions += 1
        leaders = [5, 6 if self.questions > self._later else -1, -1][: self._partitions]
        return Topic(name, b"x" * 16, dict(enumerate(leaders)))

    def _offsets(self, partitions: Any, timestamp: int) -> dict[int, int | UnknownOffset]:
        led = [0] if self.questions <= self._later else [0, 1]
        end = 40 if timestamp == LATEST else 7
        return {each: end if each in led else NO_LEADER for each in partitions}


def bounds(logs: list[BrokerPartition]) -> list[tuple[int, int, int, str | None]]:
    return [(log.partition, log.start, log.end, log.trouble) for log in logs]


def test_a_leader_that_comes_in_time_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    _Coordinator(monkeypatch, 2)
    assert bounds(LiveBrokers("b:1", ClientConfig(patience_ms=20_000)).partitions("t")) == [
        (0, 7, 40, None),
        (1, 7, 40, None),
    ]


def test_a_partition_without_a_leader_is_damage_and_the_others_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    _Coordinator(monkeypatch, 3)
    *led, log = LiveBrokers("b:1", ClientConfig(patience_ms=1000)).partitions("t")
    assert bounds(led) == [(0, 7, 40, None), (1, 7, 40, None)]
    assert bounds([log]) == [(2, 0, 0, "it has no leader, for 1 s")]
    assert log.high_watermark is None
    context = Context("t", 2)
    assert list(log.batches(context, ["key"])) == []
    (found,) = context.findings
    assert str(found) == "b:1 t-2: it has no leader, for 1 s (nothing of it is read)"
    assert (found.severity, found.reason, found.topic, found.partition) == ("damage", UNREACHABLE_LOG, "t", 2)
    assert (context.log.holes, context.log.start) == ([-1], None)


def test_who_has_waited_for_it_does_not_wait_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = _Coordinator(monkeypatch, 3)
    live = LiveBrokers("b:1", CONFIG)
    live.partitions("t")
    before = asked.questions
    assert [log.trouble for log in live.partitions("t")] == [None, None, "it has no leader"]
    assert asked.questions == before + 1


def test_a_topic_without_any_leader_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    _Coordinator(monkeypatch, 2, later=1000)
    monkeypatch.setattr(Cluster, "offsets", lambda cluster, topic, which, timestamp: dict.fromkeys(which, NO_LEADER))
    for _ in range(2):
        with pytest.raises(LogSourceError, match=r"^b:1: t-0: it has no leader, for 0\.2 s$"):
            LiveBrokers("b:1", CONFIG).partitions("t")


def test_who_waits_is_told_for_what(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    _Coordinator(monkeypatch, 3)
    LiveBrokers("b:1", CONFIG).partitions("t")
    assert caplog.messages == []
    monkeypatch.setattr(patience, "NOTE_AFTER", 0.05)
    with caplog.at_level(logging.WARNING):
        LiveBrokers("b:1", CONFIG).partitions("t")
    assert caplog.messages == ["t-2: it has no leader; trying again for up to 0.2 s"]


def test_the_command_reads_the_others_and_ends_with_status_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = _Coordinator(monkeypatch, 3)
    empty = {0: 7, 1: 7}  # partitions with a leader and no record
    monkeypatch.setattr(
        Cluster,
        "offsets",
        lambda cluster, topic, which, when: {each: empty.get(each, NO_LEADER) for each in which},
    )
    monkeypatch.setattr(Cluster, "topics", lambda cluster: {"__consumer_offsets": Uuid(b"x" * 16)})
    monkeypatch.setattr(Cluster, "hidden", lambda cluster, names: [])
    config = tmp_path / "client.properties"
    config.write_text("default.api.timeout.ms=200\n")
    told = "b:1 __consumer_offsets-2: it has no leader, for 0.2 s (nothing of it is read)"
    for command in (("dump",), ("table", "groups", "--processes", "1")):
        assert main([*command, "--bootstrap", "b:1", "--command-config", str(config)]) == 1
        said = capsys.readouterr().err.splitlines()
        assert told in said, command
        assert said[-1].startswith("1 damaged place in the logs: ")
    assert asked.questions > 2


def test_a_snapshot_keeps_what_it_has_of_a_partition_without_a_leader(tmp_path: Path) -> None:
    topic = MadeTopic()
    for number in range(3):
        topic.commit("g", number)

    class Source:
        name = "the test"

        def __init__(self, *logs: Any) -> None:
            self._logs = logs

        def topics(self) -> list[str]:
            return ["__consumer_offsets"]

        def partitions(self, topic: str) -> list[Any]:
            return [*self._logs]

    led = LiveLog(topic.table(), "__consumer_offsets", cleaned_up_to=0, high_watermark=3)
    away = BrokerPartition((("b", 1),), CONFIG, led.topic, bytes(16), 0, 0, 0, trouble="it has no leader")
    told: list[Finding] = []
    for log in (led, away, away, led):
        take_snapshot(Source(log), tmp_path / "kept", on_finding=told.append)
    assert [str(found) for found in told] == ["b:1 __consumer_offsets-0: it has no leader (nothing of it is read)"] * 2
    (kept,) = Snapshot(tmp_path / "kept").partitions(led.topic)
    context = Context(kept.topic, 0)
    assert [each for batch in kept.batches(context, ["offset"]) for each in batch["offset"].to_pylist()] == [0, 1, 2]
    assert [each for each in context.findings if each.severity == "damage"] == []
