"""A data directory as a broker leaves it: logs of coordinators, cleaned and rolled, beside the logs of other topics."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from struct import pack
from typing import Any, Final, NamedTuple

from kafka_records_engine.log.format.checkpoints import CHECKPOINT, HIGH_WATERMARKS
from kafka_records_runtime.kafka.partitioner import partition_for
from tests.log.logs import batch, record

OFFSETS: Final = "__consumer_offsets"
SHARE_STATE: Final = "__share_group_state"
TRANSACTIONS: Final = "__transaction_state"

_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_RETENTION_MS: Final = 24 * 60 * 60 * 1000
"""`delete.retention.ms` of the topics: a cleaner keeps tombstones for this time."""

Records = tuple[tuple[bytes, bytes | None], ...]


class Write(NamedTuple):
    """One write of a coordinator, which is one batch: records, or the marker that ends a transaction."""

    at_ms: int
    records: Records
    producer_id: int = -1
    control: str | None = None

    @property
    def taken(self) -> int:
        """The number of offsets that it takes."""
        return len(self.records) or 1


@dataclass
class CoordinatorLogs:
    """What coordinators have written, by topic and partition; writes may come in any order of times."""

    partitions: Mapping[str, int]
    """How many each topic has."""
    writes: dict[tuple[str, int], list[Write]] = field(default_factory=dict)
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    def partition(self, topic: str, key: str) -> int:
        """The partition of the log for a group, a transactional id or a share partition."""
        if (topic, key) not in self._known:
            self._known[topic, key] = partition_for(key, self.partitions[topic])
        return self._known[topic, key]

    def write(self, topic: str, key: str, at_ms: int, *records: tuple[Any, ...], producer_id: int = -1) -> None:
        """Write records, each a key, a value (None is a tombstone) and, where it is not the highest, a version."""
        made = tuple(_encoded(*each) for each in records)
        self.write_bytes(topic, key, Write(at_ms, made, producer_id))

    def write_bytes(self, topic: str, key: str, write: Write) -> None:
        """The same with bytes, or with a marker."""
        self.writes.setdefault((topic, self.partition(topic, key)), []).append(write)

    def files(self, topic: str, partition: int, cleaned_until_ms: int | None, rolls_ms: int) -> dict[int, bytes]:
        """The segment files of a partition by their base offsets: first the file that a cleaner has cleaned, then one
        per `rolls_ms` milliseconds."""
        placed = _placed(self.writes.get((topic, partition), []))
        if cleaned_until_ms is not None:
            placed = list(_cleaned(placed, cleaned_until_ms))
        until = cleaned_until_ms or 0
        files: dict[int, bytearray] = {}
        current: tuple[int, int] | None = None
        for base_offset, write, kept in placed:
            number = 0 if write.at_ms < until else 1 + write.at_ms // rolls_ms
            if current is None or current[0] != number:
                # The first file keeps its name, regardless of what a cleaner has removed from it.
                current = (number, base_offset if files else 0)
                files[current[1]] = bytearray()
            files[current[1]] += _batch(base_offset, write, kept)
        return {base: bytes(content) for base, content in files.items()} or {0: b""}


def _encoded(key: Any, value: Any, version: int | None = None) -> tuple[bytes, bytes | None]:
    """Encode as `encode_record` of the topic does, without a search for the classes, which each caller knows."""
    key_bytes = pack(">h", key.RECORD_TYPE) + key.encode(0)
    if value is None:
        return key_bytes, None
    version = value.VERSIONS[-1] if version is None else version
    return key_bytes, pack(">h", version) + value.encode(version)


_Placed = tuple[int, Write, tuple[int, ...]]
"""Base offset, the write, and the records of it that remain."""


def _placed(writes: list[Write]) -> list[_Placed]:
    placed, offset = [], 0
    for write in sorted(writes, key=lambda each: each.at_ms):
        placed.append((offset, write, tuple(range(len(write.records)))))
        offset += write.taken
    return placed


def _cleaned(placed: list[_Placed], until_ms: int) -> Iterator[_Placed]:
    """Kafka's cleaner (`Cleaner`): the last record of each key stays; tombstones and markers stay only if they are
    young."""
    aborted = _aborted(placed)
    last = {
        write.records[number][0]: base + number
        for base, write, numbers in placed
        for number in numbers
        if write.at_ms < until_ms and base not in aborted
    }
    horizon = until_ms - _DELETE_RETENTION_MS
    served: dict[int, bool] = {}
    for base, write, numbers in placed:
        if write.at_ms >= until_ms:
            yield base, write, numbers
            continue
        kept = tuple(
            number
            for number in numbers
            if base not in aborted
            and last[write.records[number][0]] == base + number
            and (write.records[number][1] is not None or write.at_ms >= horizon)
        )
        if write.control is None:
            served[write.producer_id] = served.get(write.producer_id, False) or bool(kept)
            if kept:
                yield base, write, kept
        elif served.pop(write.producer_id, False) or write.at_ms >= horizon:
            yield base, write, ()


def _aborted(placed: list[_Placed]) -> set[int]:
    """Base offsets of the batches whose transaction was aborted."""
    found, ends = set(), {}
    for base, write, _ in reversed(placed):
        if write.control is not None:
            ends[write.producer_id] = write.control
        elif write.producer_id >= 0 and ends.get(write.producer_id) == "abort":
            found.add(base)
    return found


def _batch(base_offset: int, write: Write, kept: tuple[int, ...]) -> bytes:
    attributes = _TRANSACTIONAL if write.producer_id >= 0 else 0
    if write.control is not None:
        kind = 1 if write.control == "commit" else 0
        body, count, attributes = record(0, pack(">hh", 0, kind), pack(">hi", 0, 7)), 1, attributes | _CONTROL
    else:
        body, count = b"".join(record(number, *write.records[number]) for number in kept), len(kept)
    return batch(
        body,
        count,
        offset=base_offset,
        last_delta=write.taken - 1,
        attributes=attributes,
        producer_id=write.producer_id,
        timestamp=write.at_ms,
    )


class TopicLog(NamedTuple):
    """The log of a partition of an ordinary topic."""

    topic: str
    topic_id: str | None
    partition: int
    start: int
    end: int


def write_directory(
    folder: Path,
    logs: CoordinatorLogs,
    topics: list[TopicLog],
    *,
    at_ms: int,
    cleaned_until_ms: int | None,
    rolls_ms: int,
    topic_ids: Mapping[str, str],
) -> None:
    """Write everything below `folder`, as of `at_ms`."""
    ends: dict[tuple[str, int], int] = {}
    for topic, count in logs.partitions.items():
        # The topic of share state is never cleaned.
        until = None if topic == SHARE_STATE else cleaned_until_ms
        for partition in range(count):
            files = logs.files(topic, partition, until, rolls_ms)
            _write_log(folder, topic, partition, files, topic_ids.get(topic))
            ends[topic, partition] = sum(write.taken for write in logs.writes.get((topic, partition), []))
    for log in topics:
        _write_log(folder, log.topic, log.partition, _topic_files(log, at_ms), log.topic_id)
        ends[log.topic, log.partition] = log.end
    raised = {(log.topic, log.partition): log.start for log in topics if log.start}
    _write_checkpoint(folder / CHECKPOINT, raised, at_ms)
    _write_checkpoint(folder / HIGH_WATERMARKS, ends, at_ms)


def _topic_files(log: TopicLog, at_ms: int) -> dict[int, bytes]:
    """The last batch is enough to show the end of a log."""
    if log.end == log.start:
        return {log.start: b""}
    count = min(log.end - log.start, 3)
    records = b"".join(record(number, None, b"{}") for number in range(count))
    return {log.start: batch(records, count, offset=log.end - count, timestamp=at_ms)}


def _write_log(folder: Path, topic: str, partition: int, files: Mapping[int, bytes], topic_id: str | None) -> None:
    place = folder / f"{topic}-{partition}"
    place.mkdir(parents=True)
    for base_offset, content in files.items():
        (place / f"{base_offset:020}.log").write_bytes(content)
    (place / "leader-epoch-checkpoint").write_text("0\n1\n3 0\n", encoding="utf-8")
    if topic_id is not None:
        (place / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")


def _write_checkpoint(path: Path, offsets: Mapping[tuple[str, int], int], at_ms: int) -> None:
    lines = [f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items())]
    path.write_text("\n".join(["0", str(len(lines)), *lines, ""]), encoding="utf-8")
    os.utime(path, ns=(at_ms * 1_000_000, at_ms * 1_000_000))
