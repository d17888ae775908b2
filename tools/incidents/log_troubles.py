"""Trouble with the logs of the coordinators themselves."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from examples import offset_admin
from kafka_records.rpc.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_records.rpc.offset_commit_response import OffsetCommitResponse
from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_tables.topics import OFFSETS
from tools.broker import HOST, Broker, BrokerError
from tools.incidents.kinds import kind
from tools.incidents.scene import Scene, now
from tools.incidents.truth import Truth, incident

_PARTITIONS: Final = 100
_SMALL_SEGMENTS: Final = {"offsets.topic.segment.bytes": "1048576", "log.cleaner.backoff.ms": "1000"}


class _Committer:
    """Commits increasing offsets of a topic for groups without members, as fast as the broker accepts them."""

    def __init__(self, scene: Scene, topic: str, groups: Sequence[str]) -> None:
        self._port, self._topic, self._groups = scene.broker.port, topic, groups
        self._offset = 0

    def commit(self, rounds: int) -> None:
        """Commit `rounds` times for each group and partition."""
        for group in self._groups:
            with closing(offset_admin.coordinator(HOST, self._port, group)) as connection:
                for number in range(self._offset + 1, self._offset + rounds + 1):
                    places = tuple(OffsetCommitRequestPartition(each, number) for each in range(_PARTITIONS))
                    topics = (OffsetCommitRequestTopic(self._topic, partitions=places),)
                    request = OffsetCommitRequest(group_id=group, topics=topics)
                    connection.ask(request, OffsetCommitResponse.decode, at_most=9)
        self._offset += rounds

    def repeat(self, rounds: int) -> None:
        """Commit the same offsets `rounds` times. A cleaner would keep only the last commit."""
        for group in self._groups:
            with closing(offset_admin.coordinator(HOST, self._port, group)) as connection:
                for _ in range(rounds):
                    places = tuple(
                        OffsetCommitRequestPartition(each, self._offset, committed_metadata="m" * 100)
                        for each in range(_PARTITIONS)
                    )
                    topics = (OffsetCommitRequestTopic(self._topic, partitions=places),)
                    request = OffsetCommitRequest(group_id=group, topics=topics)
                    connection.ask(request, OffsetCommitResponse.decode, at_most=9)


def _two_groups(scene: Scene) -> list[str]:
    """Names of groups in different partitions of the offsets topic."""
    first = second = scene.names.group()
    while partition_for(second, 4) == partition_for(first, 4):
        second = scene.names.group()
    return [first, second]


def _committed(scene: Scene) -> tuple[_Committer, list[str], str]:
    """Two groups whose commits filled several segments of their logs."""
    scene.surround(3)
    topic, groups = scene.topic(_PARTITIONS), _two_groups(scene)
    scene.fill(topic, 450 * _PARTITIONS, _PARTITIONS)
    committer = _Committer(scene, topic, groups)
    committer.commit(scene.random.randint(150, 180))
    return committer, groups, topic


def _newest_file(scene: Scene, partition: int) -> Path:
    return sorted(scene.broker.folder.rglob(f"{OFFSETS}-{partition}/*.log"))[-1]


@kind("cleaner_fails", "a batch of __consumer_offsets is damaged on the disk: the cleaner fails there", _SMALL_SEGMENTS)
def cleaner_fails(scene: Scene) -> Truth:
    """Other logs are cleaned as before; this one is `uncleanable` until the broker restarts."""
    committer, groups, topic = _committed(scene)
    scene.wait(4, 6)
    partition = partition_for(groups[0], 4)
    with _newest_file(scene, partition).open("r+b") as log:
        log.seek(8)
        second = 12 + int.from_bytes(log.read(4), "big")
        log.seek(second + 8)
        log.write((3).to_bytes(4, "big"))
    since = now()
    committer.commit(200)
    scene.wait(128, 140)
    committer.commit(1)
    truth = incident("cleaner_fails", groups[:1], [OFFSETS])
    truth.planted = f"The size of a batch of {OFFSETS}-{partition} was overwritten on the disk while the broker ran."
    truth.partitions = [f"{OFFSETS}-{partition}"]
    truth.since, truth.since_margin_ms = since, 20_000
    truth.scale = {"logs": 1}
    truth.conclusion = "Let another replica lead, delete the damaged folder, have it fetched again; restart the broker."
    truth.proof = "cleaner-offset-checkpoint stays before the damaged batch, while other logs are cleaned later"
    truth.named = [f"{OFFSETS}-{partition}", "clean"]
    truth.cause = ["cleaner failed|uncleanable|damage"]
    truth.first_step = ["replica|fetched|clean"]
    truth.never_say("segment file is missing", "no file is missing: what is gone was cleaned")
    truth.details = {"topic": topic}
    return truth


@kind(
    "cleaner_off",
    "log.cleaner.enable is false: no log is compacted",
    {**_SMALL_SEGMENTS, "log.cleaner.enable": "false"},
)
def cleaner_off(scene: Scene) -> Truth:
    """`__consumer_offsets` grows with every commit."""
    committer, groups, topic = _committed(scene)
    since = now()
    committer.commit(200)
    scene.wait(128, 140)
    committer.commit(1)
    logs = {partition_for(each, 4) for each in groups}
    truth = incident("cleaner_off", groups, [OFFSETS])
    truth.planted = "The cleaner of the broker is switched off."
    truth.partitions = [f"{OFFSETS}-{each}" for each in sorted(logs)]
    truth.since, truth.since_margin_ms = since, 40_000
    truth.scale = {"logs": len(logs)}
    truth.conclusion = "Set log.cleaner.enable to true and restart the broker."
    truth.proof = "there are several closed files, and no log has an entry in cleaner-offset-checkpoint"
    truth.named = [OFFSETS, "clean"]
    truth.cause = ["log\\.cleaner\\.enable|no cleaner|threads are dead"]
    truth.first_step = ["log\\.cleaner|cleaner"]
    truth.details = {"topic": topic}
    return truth


class _Throttle:
    """Limits a broker to a small part of a processor, as a container does, while it loads a log."""

    def __init__(self, broker: Broker, log: str) -> None:
        self._broker, self._log = broker, log
        self._from = broker.log.stat().st_size
        self.loaded_ms = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until the log is loaded. Raises BrokerError if it takes longer."""
        self._thread.join(seconds)
        if not self.loaded_ms:
            raise BrokerError(f"{self._log} was not loaded within {seconds:g} s")

    def _said(self) -> str:
        with self._broker.log.open("rb") as log:
            log.seek(self._from)
            return log.read().decode("utf-8", "replace")

    def _run(self) -> None:
        begins, ends = (f"{word} of metadata from {self._log} " for word in ("loading", "Finished loading"))
        while f"Scheduling {begins}" not in self._said():
            time.sleep(0.01)
        while ends not in self._said():
            if (pid := self._broker.pid) is not None:
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.5)
                os.kill(pid, signal.SIGCONT)
            time.sleep(0.02)
        self.loaded_ms = now()


@kind(
    "slow_load",
    "no cleaner has run: a coordinator reads a large log after a restart, with little processor time",
    {"offsets.topic.segment.bytes": "8388608", "log.cleaner.enable": "false"},
)
def slow_load(scene: Scene) -> Truth:
    """Groups of other logs continue; groups of this log can neither join nor commit meanwhile."""
    scene.surround(4)
    topic, groups = scene.topic(_PARTITIONS), _two_groups(scene)[:1]
    scene.fill(topic, 450 * _PARTITIONS, _PARTITIONS)
    committer = _Committer(scene, topic, groups)
    committer.commit(1)
    committer.repeat(scene.random.randint(1600, 2000))
    partition = partition_for(groups[0], 4)
    scene.wait(8, 12)
    since = now()
    scene.broker.stop()
    throttle = _Throttle(scene.broker, f"{OFFSETS}-{partition}")
    scene.broker.start()
    throttle.wait(180)
    lasted = throttle.loaded_ms
    scene.wait(14, 18)
    committer.commit(1)
    truth = incident("slow_load", groups, [OFFSETS])
    truth.planted = f"The broker was restarted with a large {OFFSETS}-{partition}, and got a twentieth of a processor."
    truth.partitions = [f"{OFFSETS}-{partition}"]
    truth.since, truth.since_margin_ms, truth.going_on = since, 15_000, False
    truth.conclusion = "Switch the cleaner on, so that a coordinator has less to read after the next restart."
    truth.proof = "the broker's log has the time of the load; the log has many closed files that no cleaner has touched"
    truth.named = [f"{OFFSETS}-{partition}", "load"]
    truth.cause = ["to read the log", "disk or processor"]
    truth.first_step = ["clean"]
    truth.never_say("damage|segment file is missing", "nothing is damaged or missing")
    truth.details = {"topic": topic, "loaded": lasted, "keeps_log": True}
    return truth
