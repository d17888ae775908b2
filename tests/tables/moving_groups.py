"""A data directory in which groups consume topics for some hours, with synthetic times of records and commits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack

from tests.log.logs import batch, marker, record, write_log
from tests.tables.consumed import Commit, assigned_group
from tests.tables.topic import OFFSETS_TOPIC

START_MS = 1_700_000_000_000
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000
COMMIT, ABORT = 1, 0
_TRANSACTIONAL = 0x10


@dataclass
class UserTopic:
    """The only partition of a topic: batches of one record, with the time of each."""

    name: str
    end: int = 0
    parts: list[bytes] = field(default_factory=list)
    written: list[tuple[int, int]] = field(default_factory=list)
    """Offset and time of each record, including those of transactions."""
    aborted: list[bytes] = field(default_factory=list)

    def write(self, at_ms: int, *, producer: int = -1) -> int:
        """Write a record, in a transaction if it has a producer. Returns its offset."""
        attributes = 0 if producer < 0 else _TRANSACTIONAL
        body = record(0, b"k", b"v")
        self.parts.append(batch(body, 1, offset=self.end, attributes=attributes, producer_id=producer, timestamp=at_ms))
        self.written.append((self.end, at_ms))
        self.end += 1
        return self.end - 1

    def finish(self, producer: int, kind: int, first: int) -> None:
        """End the transaction of a producer that began at `first`."""
        if kind == ABORT:
            self.aborted.append(pack(">hqqqq", 0, producer, first, self.end, self.end))
        self.parts.append(marker(self.end, producer, kind))
        self.end += 1

    def at(self, times: Iterable[int]) -> UserTopic:
        """Write a record at each of some times."""
        for at_ms in times:
            self.write(at_ms)
        return self

    def read_up_to(self, at_ms: int) -> int:
        """The offset after the last record that existed at a time."""
        return max((offset + 1 for offset, when in self.written if when <= at_ms), default=0)


@dataclass
class Group:
    """The commits of a group for a topic, as (time, offset); None deletes the offset."""

    name: str
    topic: UserTopic
    commits: list[tuple[int, int | None]] = field(default_factory=list)
    topic_ids: dict[int, str] = field(default_factory=dict)
    """By the place of a commit, the id of the topic that it names."""
    log_partition: int = 0
    producer: int = -1
    """Commits are in transactions of this producer, each with its marker."""

    def follows(self, times: Iterable[int], *, late_ms: int = 0) -> Group:
        """Commit at each of some times the records that existed `late_ms` before."""
        self.commits += [(at_ms, self.topic.read_up_to(at_ms - late_ms)) for at_ms in times]
        return self


def every(step_ms: int, begin_ms: int, end_ms: int) -> range:
    """Times from `begin_ms` up to `end_ms`."""
    return range(START_MS + begin_ms, START_MS + end_ms, step_ms)


def write_cluster(
    folder: Path, topics: Sequence[UserTopic], groups: Sequence[Group], assigned: dict[str, list[str]] | None = None
) -> Path:
    """Write the data directory. By group, `assigned` are topics of which its only member has partition 0."""
    for topic in topics:
        write_log(folder, {0: b"".join(topic.parts)}, f"{topic.name}-0")
        if topic.aborted:
            (folder / f"{topic.name}-0" / f"{0:020}.txnindex").write_bytes(b"".join(topic.aborted))
    written = [
        (at_ms, group, offset, group.topic_ids.get(place))
        for group in groups
        for place, (at_ms, offset) in enumerate(group.commits)
    ]
    logs: dict[int, list[bytes]] = {}
    ends: dict[int, int] = {}

    def append(log_partition: int, make: bytes | None, key: bytes, value: bytes | None, producer: int, at: int) -> None:
        offset = ends.get(log_partition, 0)
        attributes = 0 if producer < 0 else _TRANSACTIONAL
        body = make or batch(
            record(0, key, value), 1, offset=offset, attributes=attributes, producer_id=producer, timestamp=at
        )
        logs.setdefault(log_partition, []).append(body)
        ends[log_partition] = offset + 1

    for name, places in (assigned or {}).items():
        append(0, None, *assigned_group(name, [(topic, 0) for topic in places]), -1, START_MS)
    for at_ms, group, offset, topic_id in sorted(written, key=lambda each: each[0]):
        key, value = Commit(group.name, group.topic.name, 0, offset or 0, topic_id, at_ms=at_ms).record
        told = None if offset is None else value
        append(group.log_partition, None, key, told, group.producer if offset is not None else -1, at_ms)
        if group.producer >= 0 and offset is not None:
            ended = marker(ends[group.log_partition], group.producer, COMMIT)
            append(group.log_partition, ended, b"", None, group.producer, at_ms)
    for log_partition, parts in logs.items():
        write_log(folder, {0: b"".join(parts)}, f"{OFFSETS_TOPIC}-{log_partition}")
    return folder
