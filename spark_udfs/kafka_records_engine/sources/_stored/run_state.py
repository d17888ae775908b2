"""The state and the report of a run of `take_snapshot`, for all of its log partitions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from threading import Lock
from typing import Any

from kafka_records_engine.findings import Finding, OnFinding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.source_error import NotReadable
from kafka_records_engine.sources._stored.snapshot_mark import read_mark
from kafka_records_engine.sources._stored.stretches import StoredLog
from kafka_records_engine.sources.abilities import HasTopicId, has
from kafka_records_engine.sources.protocol import LogPartition
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid


@dataclass(slots=True)
class Added:
    """Numbers about one topic in a run: records that were added, and records that were lost."""

    partitions: int = 0
    grown: int = 0
    """The number of partitions with new rows."""
    records: int = 0
    markers: int = 0
    files: int = 0
    """The number of files written, before small files were merged."""
    lost: int = 0
    """The number of offsets that the log lost between two runs, or that had no record when they were read."""
    looked: int = 0
    """The number of partitions whose whole log was searched for more lost rows."""

    def add(self, other: Added) -> None:
        """Add the numbers of another partition."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(slots=True)
class SnapshotReport:
    """The results of a run by topic, and its findings."""

    topics: dict[str, Added] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


class RunState:
    """The state shared by all log partitions of a run. Several threads may store partitions at the same time."""

    def __init__(
        self,
        root: str,
        source_name: str,
        names: Mapping[str, str],
        file_bytes: int,
        on_finding: OnFinding | None,
        started_ms: int,
        topics: Iterable[str],
    ) -> None:
        """`names` are topic names by topic id; `topics` are the topics to store, in report order."""
        self.started_ms = started_ms
        self.before = read_mark(root)["read"]
        self.root = root
        self.id = os.urandom(8).hex()
        self.name = source_name
        self.file_bytes = file_bytes
        self.report = SnapshotReport({topic: Added() for topic in topics})
        self.read: dict[str, Any] = {}
        self._topic_ids = {topic: topic_id for topic_id, topic in names.items()}
        self._on_finding = on_finding
        self._said: set[str] = set()
        self.lock = Lock()
        self.forbidden: list[NotReadable] = []
        """Log partitions that the user may not read."""
        self.refused: list[LogSourceError] = []
        """The errors that kept other log partitions from being stored, for example OtherLog."""

    def topic_id(self, log: LogPartition) -> str | None:
        """The id of a log's topic, as Kafka writes it; None if unknown."""
        told = log.topic_id if has(log, HasTopicId) else None
        if isinstance(told, bytes) and len(told) == 16 and told != ZERO_UUID:
            return str(Uuid(told))
        return self._topic_ids.get(log.topic)

    def quiet_until_ms(self, stored: StoredLog) -> int | None:
        """The latest time at which an earlier run found that the log had no records beyond the stored rows."""
        told = self.before.get(f"{stored.topic}-{stored.partition}")
        return None if told is None or told["end"] != stored.end else told["ended_at_ms"]

    def say(self, finding: Finding) -> None:
        """Keep a finding. Repeated findings are reported once."""
        text = str(finding)
        with self.lock:
            if text not in self._said:
                self._said.add(text)
                self.report.findings.append(finding)
                if self._on_finding is not None:
                    self._on_finding(finding)
