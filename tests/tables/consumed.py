"""Synthetic commits, and the logs of their topics: as a data directory, or as brokers would report them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kafka_records.consumer_offsets import encode_record
from kafka_records.consumer_offsets.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.consumer_protocol.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafka_records.consumer_protocol.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafka_records_engine.log.files.topic_ids import topic_id
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.protocol import LogEnds, LogPartition
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from tests.log.logs import batch, record, write_log
from tests.tables.topic import OFFSETS_TOPIC, Topic

Place = tuple[str, int]
START_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Commit:
    """An offset that a group committed; by a broker before 4.1 without the id of the topic."""

    group: str
    topic: str
    partition: int
    offset: int
    topic_id: str | None = None
    log_partition: int = 0
    at_ms: int = START_MS

    @property
    def record(self) -> tuple[bytes, bytes]:
        """Its key and value."""
        known = ZERO_UUID if self.topic_id is None else Uuid.from_string(self.topic_id)
        value = OffsetCommitValue(offset=self.offset, metadata="", commit_timestamp=self.at_ms, topic_id=known)
        key, told = encode_record(OffsetCommitKey(self.group, self.topic, self.partition), value, 4)
        assert told is not None
        return key, told


@dataclass(frozen=True)
class Brokers:
    """Brokers that have some commits, and report the ends of all logs. They record the requests in order."""

    commits: Sequence[Commit]
    ends: Mapping[Place, LogEnds]
    assigned: Mapping[str, Sequence[Place]] = field(default_factory=dict)
    """By classic group, the partitions of its only member; the records are in partition 0 of the topic."""
    asked: list[str] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Their name in messages."""
        return "brokers"

    def topics(self) -> list[str]:
        """All topics, including that of the commits."""
        self.asked.append("topics")
        return sorted({OFFSETS_TOPIC, *(topic for topic, _ in self.ends)})

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """The partitions that hold the commits."""
        self.asked.append(topic)
        written = Topic()
        for commit in self.commits:
            written.add_bytes(*commit.record, partition=commit.log_partition)
        for group, places in self.assigned.items():
            written.add_bytes(*assigned_group(group, places), partition=0)
        return ArrowRows(written.table()).partitions(topic)

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """The ends of logs that they report."""
        self.asked.append("ends")
        yield from (replace(each, topic=place[0], partition=place[1]) for place, each in self.ends.items())


def assigned_group(group: str, places: Sequence[Place]) -> tuple[bytes, bytes]:
    """The record of a classic group whose only member has some partitions."""
    topics = sorted({topic for topic, _ in places})
    parts = [TopicPartition(topic, tuple(number for name, number in places if name == topic)) for topic in topics]
    data = b"\x00\x00" + ConsumerProtocolAssignment(tuple(parts), b"").encode(0)
    subscribed = b"\x00\x00" + ConsumerProtocolSubscription(topics=tuple(topics)).encode(0)
    member = MemberMetadata("m-1", None, "client", "/127.0.0.1", 60_000, 30_000, subscribed, data)
    value = GroupMetadataValue("consumer", 1, "range", "m-1", START_MS, (member,))
    key, told = encode_record(GroupMetadataKey(group), value, 3)
    assert told is not None
    return key, told


def told(start: int, end: int, stable: int | None = None, topic_id: str | None = None) -> LogEnds:
    """A broker's report about a log."""
    stable = end if stable is None else stable
    return LogEnds("", 0, topic_id, start, end + 2, end, START_MS, stable)


def data_directory(
    folder: Path,
    commits: Sequence[Commit],
    logs: Mapping[Place, tuple[int, int, str]],
    assigned: Mapping[str, Sequence[Place]] | None = None,
) -> Path:
    """Write the data directory of a broker; `logs` has log start, log end and id of each topic."""
    held: dict[int, bytes] = {}
    records = [(commit.log_partition, commit.record) for commit in commits]
    records += [(0, assigned_group(group, places)) for group, places in (assigned or {}).items()]
    for offset, (log_partition, written) in enumerate(records):
        body = batch(record(0, *written), 1, offset=offset)
        held[log_partition] = held.get(log_partition, b"") + body
    for partition, content in held.items():
        write_log(folder, {0: content}, f"{OFFSETS_TOPIC}-{partition}")
    for (topic, partition), (start, end, known) in logs.items():
        content = batch(record(0, b"", b""), 1, offset=end - 1) if end > start else b""
        log = write_log(folder, {start: content}, f"{topic}-{partition}")
        (folder / f"{topic}-{partition}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {known}\n")
        assert topic_id(log.place) == known
    return folder


def plain_lag(
    commits: Sequence[Commit], ends: Mapping[Place, LogEnds], assigned: Mapping[str, Sequence[Place]]
) -> list[dict[str, Any]]:
    """A second implementation of the table's rule, offset by offset."""
    last = {(each.group, each.log_partition, each.topic, each.partition): each for each in commits}
    rows = [_row(each, ends.get((each.topic, each.partition))) for each in last.values()]
    for group, places in assigned.items():
        for place in places:
            log = ends.get(place)
            if log is None or (group, 0, *place) in last:
                continue
            if log.high_watermark is None or log.high_watermark > (log.log_start_offset or 0):
                rows.append(_row(Commit(group, *place, -1), log) | {"offset": None})
    return sorted(rows, key=lambda row: (row["group_id"], row["topic"], row["partition"], row["log_partition"]))


def _row(commit: Commit, log: LogEnds | None) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(("lag", "stable_lag", "lost", "problem"))
    row |= {"group_id": commit.group, "topic": commit.topic, "partition": commit.partition, "offset": commit.offset}
    row["log_partition"] = commit.log_partition
    if log is None:
        return row | {"problem": "no_log"}
    if None not in (commit.topic_id, log.topic_id) and commit.topic_id != log.topic_id:
        return row | {"problem": "topic_recreated"}
    if log.high_watermark is None:
        return row | {"problem": "end_unknown"}
    if commit.offset < 0:
        return row | {"problem": "no_commit"}
    if commit.offset > log.high_watermark:
        return row | {"problem": "beyond_end"}
    row["lag"] = log.high_watermark - commit.offset
    if log.last_stable_offset is not None:
        row["stable_lag"] = max(log.last_stable_offset - commit.offset, 0)
    if log.log_start_offset is not None:
        row["lost"] = max(log.log_start_offset - commit.offset, 0)
        row["problem"] = "below_log_start" if row["lost"] else None
    return row
