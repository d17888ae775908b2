"""A synthetic cluster: a clock, topics that producers fill steadily, and the coordinators of groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from struct import unpack_from
from typing import Any, Final
from uuid import UUID

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from tests.report.data_directory import (
    OFFSETS,
    SHARE_STATE,
    TRANSACTIONS,
    CoordinatorLogs,
    TopicLog,
    Write,
    write_directory,
)

SECOND: Final = 1000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

_BASE_TIMESTAMP_AT: Final = 27
"""The position of this field in a batch."""
_COMMIT_VERSION: Final = 4
_COMMIT_VERSION_BEFORE_4_1: Final = 3

Place = tuple[str, int]
Offsets = Mapping[Place, int]


@dataclass
class MadeTopic:
    """A topic whose partitions grow by `per_hour` records each, a few more or less."""

    name: str
    topic_id: str
    partitions: int
    per_hour: int
    begins: tuple[int, ...]
    """The end of each partition at the start of the simulated time."""
    log_starts: tuple[int, ...]
    grows_from_ms: int
    exists: bool = True

    def end(self, partition: int, at_ms: int) -> int:
        """Where the log of a partition ends at a time."""
        rate = self.per_hour * (90 + 7 * (partition % 4))
        return self.begins[partition] + max(at_ms - self.grows_from_ms, 0) * rate // (100 * HOUR)

    def ends(self, at_ms: int) -> dict[Place, int]:
        """The same of all partitions."""
        return {(self.name, partition): self.end(partition, at_ms) for partition in range(self.partitions)}


class MadeCluster:
    """A simulated cluster from `days` before `end_ms` on. All randomness comes from `seed`."""

    def __init__(self, seed: str, end_ms: int, *, days: int = 9, offsets_partitions: int = 8, has_ids: bool = True):
        self.random = Random(seed)
        self.end_ms = end_ms
        self.start_ms = end_ms - days * DAY
        self.has_ids = has_ids
        """Whether brokers write ids of topics: into `partition.metadata` (2.8), and beside commits (4.1)."""
        self.topics: dict[str, MadeTopic] = {}
        self.logs = CoordinatorLogs({OFFSETS: offsets_partitions})
        self._own_ids: dict[str, str] = {}
        self.cleaned_until_ms: int | None = end_ms - 26 * HOUR
        self.rolls_ms = DAY
        self.lost: list[tuple[str, int, int]] = []
        """Topic and partition of deleted segment files, and a time of records in each."""

    def uuid(self) -> str:
        """A random id, as Java's `UUID` prints it."""
        return str(UUID(int=self.random.getrandbits(128), version=4))

    def kafka_id(self) -> str:
        """A random id in Kafka's 22 characters."""
        return str(Uuid(UUID(self.uuid())))

    def jitter(self, span_ms: int) -> int:
        """A random part of a span."""
        return self.random.randrange(max(span_ms, 1))

    def topic(self, name: str, partitions: int = 4, per_hour: int = 600) -> MadeTopic:
        """The topic of that name, made when it is first asked for."""
        if name not in self.topics:
            begins = tuple(self.random.randrange(40_000, 900_000) for _ in range(partitions))
            starts = tuple(begin - self.random.randrange(9_000, 30_000) for begin in begins)
            self.topics[name] = MadeTopic(name, self.kafka_id(), partitions, per_hour, begins, starts, self.start_ms)
        return self.topics[name]

    def needs(self, topic: str, partitions: int = 3) -> None:
        """Add another topic of a coordinator: that of transactions, or that of share state."""
        self.logs.partitions = {**self.logs.partitions, topic: partitions}

    def ticks(self, from_ms: int, to_ms: int, every_ms: int = 15 * MINUTE) -> Iterator[int]:
        """Times of commits: rare in the part that a cleaner has cleaned at the end, regular after it."""
        seldom = max(every_ms, 6 * HOUR)
        at_ms = from_ms + self.jitter(every_ms)
        while at_ms < to_ms:
            yield at_ms
            is_cleaned = self.cleaned_until_ms is not None and at_ms + seldom < self.cleaned_until_ms
            at_ms += (seldom if is_cleaned else every_ms) - every_ms // 16 + self.jitter(every_ms // 8)

    def commit(
        self, group: str, at_ms: int, offsets: Offsets, *, metadata: str = "", producer_id: int = -1, ids: Any = None
    ) -> None:
        """Commit some offsets in one request; `ids` has ids of topics that differ from the usual ones."""
        version = _COMMIT_VERSION if self.has_ids else _COMMIT_VERSION_BEFORE_4_1
        records = []
        for (topic, partition), offset in offsets.items():
            # Commits in transactions have no id (4.3).
            tells_id = version == _COMMIT_VERSION and producer_id < 0
            known = (ids or {}).get(topic) or self.topics[topic].topic_id
            value = OffsetCommitValue(
                offset=offset,
                leader_epoch=3,
                metadata=metadata,
                commit_timestamp=at_ms,
                topic_id=Uuid.from_string(known) if tells_id else ZERO_UUID,
            )
            records.append((OffsetCommitKey(group, topic, partition), value, version))
        self.logs.write(OFFSETS, group, at_ms, *records, producer_id=producer_id)

    def delete_offsets(self, group: str, at_ms: int, places: Iterable[Place]) -> None:
        """Write tombstones of offsets in one batch: by a clean-up, by an administrator, or because a topic is
        deleted."""
        self.logs.write(OFFSETS, group, at_ms, *((OffsetCommitKey(group, *place), None) for place in places))

    def marker(self, group: str, at_ms: int, producer_id: int, control: str) -> None:
        """End the transaction of a producer in the partition of a group."""
        self.logs.write_bytes(OFFSETS, group, Write(at_ms, (), producer_id, control))

    def id_of(self, coordinator_topic: str) -> str:
        """The id of a coordinator's own topic."""
        return self._own_ids.setdefault(coordinator_topic, self.kafka_id())

    def write(self, folder: Path) -> None:
        """Write the data directory as of the end."""
        logs = [
            TopicLog(each.name, each.topic_id if self.has_ids else None, number, start, end)
            for each in self.topics.values()
            if each.exists
            for number, start in enumerate(each.log_starts)
            for end in (max(each.end(number, self.end_ms), start),)
        ]
        own = {topic: self.id_of(topic) for topic in (OFFSETS, SHARE_STATE, TRANSACTIONS) if self.has_ids}
        write_directory(
            folder,
            self.logs,
            logs,
            at_ms=self.end_ms,
            cleaned_until_ms=self.cleaned_until_ms,
            rolls_ms=self.rolls_ms,
            topic_ids=own,
        )
        for topic, partition, at_ms in self.lost:
            self._lose(folder / f"{topic}-{partition}", self.logs.files(topic, partition, None, self.rolls_ms), at_ms)

    def _lose(self, place: Path, files: Mapping[int, bytes], at_ms: int) -> None:
        """Delete the file whose records begin at a time or after it."""
        began = {base: unpack_from(">q", content, _BASE_TIMESTAMP_AT)[0] for base, content in files.items()}
        (place / f"{min(base for base, first in began.items() if first >= at_ms):020}.log").unlink()
