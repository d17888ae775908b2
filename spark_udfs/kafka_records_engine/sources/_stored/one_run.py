"""One run of `take_snapshot` over some log partitions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from kafka_records_engine.findings import DAMAGED_LOG, FORBIDDEN_LOG, Finding, OnFinding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.source_error import NotReadable
from kafka_records_engine.sources._stored.log_passes import Added, Pass, read_at_ms
from kafka_records_engine.sources._stored.snapshot_mark import read_mark
from kafka_records_engine.sources._stored.stored_names import (
    folder_of,
    gone_folder_of,
    remove_incomplete,
    set_aside,
    sync_folder,
)
from kafka_records_engine.sources._stored.stretches import StoredLog, stored_log
from kafka_records_engine.sources._stored.writing_files import join_small_files
from kafka_records_engine.sources.abilities import HasTopicId, MayHaveLostRows, has
from kafka_records_engine.sources.protocol import LogPartition
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid


@dataclass(slots=True)
class SnapshotReport:
    """What a run did, by topic, and its findings."""

    topics: dict[str, Added] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


class Run:
    """The state shared by all log partitions of a run. Several may be stored at the same time, by several threads."""

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
        """`names` are topic names by topic id; `topics` are the topics to store, in the order of the report."""
        self.started_ms = started_ms
        self._before = read_mark(root)["read"]
        self.root = root
        self.id = os.urandom(8).hex()
        self.name = source_name
        self.file_bytes = file_bytes
        self.report = SnapshotReport({topic: Added() for topic in topics})
        self.read: dict[str, Any] = {}
        self._topic_ids = {topic: topic_id for topic_id, topic in names.items()}
        self._on_finding = on_finding
        self._said: set[str] = set()
        self._lock = Lock()
        self.forbidden: list[NotReadable] = []
        """Log partitions that the user may not read."""
        self.refused: list[LogSourceError] = []
        """Why nothing was stored for other log partitions, for example OtherLog."""

    def take(self, log: LogPartition, moved: Callable[[int], None]) -> None:
        """Store what is new in one log partition. Its errors do not stop the others."""
        added = Added(partitions=1)
        folder = folder_of(self.root, log.topic, log.partition)
        for each in (folder, gone_folder_of(self.root, log.topic, log.partition)):
            remove_incomplete(each)
        try:
            stored, ended_at_ms = self._take(log, added, moved)
        except NotReadable as error:
            self.forbidden.append(error)
            self.say(Finding("damage", FORBIDDEN_LOG, str(error), "nothing of it is stored", log.topic, log.partition))
            return
        except LogSourceError as error:
            self.refused.append(error)
            self.say(Finding("damage", DAMAGED_LOG, str(error), "nothing of it is stored", log.topic, log.partition))
            return
        finally:
            with self._lock:
                self.report.topics[log.topic].add(added)
        join_small_files(stored.files, self.file_bytes)
        told = {"end": stored.end, "at_ms": read_at_ms(log), "ended_at_ms": ended_at_ms}
        self.read[f"{log.topic}-{log.partition}"] = told

    def _take(self, log: LogPartition, added: Added, moved: Callable[[int], None]) -> tuple[StoredLog, int | None]:
        before = stored_log(self.root, log.topic, log.partition)
        if not before.files and (before.surveys or before.findings):
            set_aside(gone_folder_of(self.root, log.topic, log.partition))  # surveys of records that were removed
            before = stored_log(self.root, log.topic, log.partition)
        self._keep(before)
        for file in before.files:
            if file.trouble:
                self.say(file.finding(log.topic, log.partition))
        for finding in before.findings:
            self.say(finding)
        first = Pass(self, log, before, moved, is_survey=False)
        first.run(added)
        stored = stored_log(self.root, log.topic, log.partition)
        added.grown += stored.end > before.end
        if before.files:
            added.lost += max(stored.end - before.end - first.rows, 0)
        if stored.unsurveyed() or first.has_log_start_risen or _has_lost_rows(log):
            second = Pass(self, log, stored, moved, is_survey=True)
            second.run(added)
            added.looked += 1
            stored = stored_log(self.root, log.topic, log.partition)
        return stored, first.ended_at_ms

    def _keep(self, stored: StoredLog) -> None:
        """Flush the stored files to disk: a killed run may not have done it, and this run relies on them."""
        told = self._before.get(f"{stored.topic}-{stored.partition}")
        if stored.files and (told is None or told["end"] != stored.end):
            sync_folder(folder_of(self.root, stored.topic, stored.partition))
        if stored.surveys:
            sync_folder(gone_folder_of(self.root, stored.topic, stored.partition))

    def topic_id(self, log: LogPartition) -> str | None:
        """The id of the topic of a log, as Kafka writes it; None if it is unknown."""
        told = log.topic_id if has(log, HasTopicId) else None
        if isinstance(told, bytes) and len(told) == 16 and told != ZERO_UUID:
            return str(Uuid(told))
        return self._topic_ids.get(log.topic)

    def quiet_until_ms(self, stored: StoredLog) -> int | None:
        """When an earlier run last learned that a log ends where the stored rows end."""
        told = self._before.get(f"{stored.topic}-{stored.partition}")
        return None if told is None or told["end"] != stored.end else told["ended_at_ms"]

    def say(self, finding: Finding) -> None:
        """Keep a finding; a finding that occurs twice is reported once."""
        text = str(finding)
        with self._lock:
            if text not in self._said:
                self._said.add(text)
                self.report.findings.append(finding)
                if self._on_finding is not None:
                    self._on_finding(finding)


def _has_lost_rows(log: LogPartition) -> bool:
    """Whether the source itself knows that the log has lost rows, as a snapshot does."""
    return has(log, MayHaveLostRows) and log.has_lost_rows()
