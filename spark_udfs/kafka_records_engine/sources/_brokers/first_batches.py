"""Finds the first batch with readable records at or after some offsets. The Fetch requests read only as much of a log
as is needed to get one batch.

Brokers send whole batches and, for the first partition of a request, always at least one, however large it is
(`ReplicaManager.readFromLog`). Aborted records are skipped as a consumer with `read_committed` does (`CompletedFetch`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from kafka_records_engine.log.format.batches import BatchHead, read_head
from kafka_records_engine.log.reading.unread import BATCH, RECORD, UNKNOWN
from kafka_records_engine.sources._brokers.cluster import PASSING, Address, Cluster, NotAllowed, Topic
from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.failures import ConnectionLost
from kafka_records_engine.sources._brokers.requests_sent import FETCH
from kafka_records_engine.sources.waiting import pause, side_by_side
from kafka_records_runtime.kafka.error_codes import ErrorCode

_FIRST_BYTES: Final = 1 << 15
"""The number of bytes first requested for each partition. By default, producers fill batches up to 16 KiB."""
_MOST_BYTES: Final = 1 << 24
"""The maximum size of an answer in bytes."""
_MORE: Final = 8
_FETCHES: Final = 8
"""The maximum number of requests for one offset. If they return only markers and aborted records, the time is
unknown."""
_TRIES: Final = 3
_PAUSE: Final = 0.3
_BY_ID: Final = 13
"""The first version of Fetch that names topics by id (KIP-516)."""
_NEWEST: Final = 0x7FFF
_MAGIC: Final = 2
_MAGIC_AT: Final = 16
_HEAD: Final = 61
_SIZE: Final = struct.Struct(">i")
_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_HAS_HORIZON: Final = 0x40
"""If this attribute bit is set, the first timestamp field is the time from which a cleaner may remove the batch's
tombstones."""

_Place = tuple[str, int]


@dataclass(slots=True)
class Seek:
    """The search for the first record to read at or after `offset`, in a log that ends at `end`."""

    topic: str
    partition: int
    offset: int
    end: int
    timestamp_ms: int = UNKNOWN
    precision: int = UNKNOWN
    is_done: bool = False
    trouble: str | NotAllowed | None = None
    """Why the result is unknown."""
    position: int = field(init=False)
    """The offset before which there is nothing to read."""
    most: int = _FIRST_BYTES
    """The number of bytes to request."""
    left: int = _FETCHES

    def __post_init__(self) -> None:
        self.position = self.offset

    @property
    def place(self) -> _Place:
        """The topic and partition of the log."""
        return self.topic, self.partition

    def take(self, answer: Mapping[str, Any]) -> None:
        """Process the result of a Fetch."""
        records = answer["records"] or b""
        before = self.position
        self._look(records, answer["aborted_transactions"] or ())
        self.left -= 1
        end = min(self.end, max(answer["last_stable_offset"], 0))
        self.is_done = self.is_done or self.position >= end or self.left <= 0
        if self.position == before:  # the batch did not fit into the requested bytes
            self.most = min(self.most * _MORE, _MOST_BYTES)

    def _look(self, records: bytes, aborted: Iterable[Mapping[str, int]]) -> None:
        begun = sorted((each["first_offset"], each["producer_id"]) for each in aborted)
        aborting: set[int] = set()
        if len(records) > _MAGIC_AT and records[_MAGIC_AT] != _MAGIC:
            self.is_done = True  # headers in formats before Kafka 0.11 do not contain the time of the first record
            return
        for head in _heads(records):
            if head.last_offset < self.position:
                continue
            while begun and begun[0][0] <= head.last_offset:
                aborting.add(begun.pop(0)[1])
            self.position = head.last_offset + 1
            is_control = bool(head.attributes & _CONTROL)
            if is_control:
                aborting.discard(head.producer_id)
            is_aborted = bool(head.attributes & _TRANSACTIONAL) and head.producer_id in aborting
            if not is_control and not is_aborted and head.count:
                self._found(head)
                return

    def _found(self, head: BatchHead) -> None:
        is_append_time = bool(head.attributes & _APPEND_TIME)
        has_first = head.base_timestamp >= 0 and not head.attributes & _HAS_HORIZON
        stamp = head.base_timestamp if has_first and not is_append_time else head.max_timestamp
        self.is_done = True
        if stamp >= 0:
            is_first = self.offset <= head.offset or head.count == 1
            self.timestamp_ms = stamp
            self.precision = RECORD if is_append_time or (is_first and has_first) else BATCH


def _heads(records: bytes) -> Iterator[BatchHead]:
    """The headers of complete batches, up to the first one in an older format."""
    at = 0
    while at + _HEAD <= len(records):
        size = 12 + _SIZE.unpack_from(records, at + 8)[0]
        if records[at + _MAGIC_AT] != _MAGIC or size < _HEAD or at + size > len(records):
            return
        yield read_head(records, at, at)
        at += size


def seek_first_batches(cluster: Cluster, seeks: Sequence[Seek]) -> None:
    """Carry out all `seeks`, with several leaders in parallel. Raises Refused, and ConnectionLost if no broker
    describes the topics."""
    for tries_left in range(_TRIES - 1, -1, -1):
        waiting = [each for each in seeks if not each.is_done]
        if not waiting:
            return
        topics = {each.name: each for each in cluster.described(sorted({seek.topic for seek in waiting}))}
        by_leader: dict[Address, list[Seek]] = {}
        for seek in waiting:
            topic = topics.get(seek.topic)
            address = None if topic is None else cluster.address_of(topic.leaders.get(seek.partition, -1))
            if address is None:
                seek.trouble = "it has no leader"
            else:
                by_leader.setdefault(address, []).append(seek)
        side_by_side([partial(_seek_by, cluster, address, topics, led) for address, led in by_leader.items()])
        if tries_left and any(not each.is_done for each in waiting):
            pause(_PAUSE)


def _seek_by(cluster: Cluster, address: Address, topics: Mapping[str, Topic], seeks: Sequence[Seek]) -> None:
    """Ask one broker about the partitions that it leads, until all results are known or the broker does not answer."""
    left = list(seeks)
    while left:
        turn = _turn(left)
        ask = _asking([(topics[seek.topic], seek) for seek in turn.values()])
        try:
            answer = cluster.asked(address, ask)
        except ConnectionLost as lost:
            for seek in left:
                seek.trouble = f"its leader cannot be asked: {lost}"
            return
        code = answer["error_code"]
        named = {topics[name].topic_id: name for name, _ in turn}
        found = {
            (named.get(bytes(each["topic_id"]), each["topic"]), part["partition_index"]): part
            for each in answer["responses"]
            for part in each["partitions"]
        }
        for place, seek in turn.items():
            part = found.get(place)
            seek.trouble = None
            if code or part is None:
                seek.trouble = ErrorCode(code).name if code else "its leader answers Fetch without this partition"
            elif part["error_code"]:
                _fail(seek, ErrorCode(part["error_code"]), cluster)
            else:
                seek.take(part)
        left = [each for each in left if not each.is_done and each.trouble is None]


def _turn(seeks: Iterable[Seek]) -> dict[_Place, Seek]:
    """The searches to send next: each partition once, with no more bytes than fit into an answer."""
    turn: dict[_Place, Seek] = {}
    room = _MOST_BYTES
    for seek in sorted(seeks, key=lambda each: -each.most):
        if seek.place not in turn and (seek.most <= room or not turn):
            turn[seek.place] = seek
            room -= seek.most
    return turn


def _fail(seek: Seek, code: ErrorCode, cluster: Cluster) -> None:
    if code == ErrorCode.OFFSET_OUT_OF_RANGE:  # the records were deleted in the meantime
        seek.is_done = True
        return
    seek.trouble = code.name
    if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        seek.trouble = NotAllowed(cluster.who, "READ", seek.topic)
    seek.is_done = code not in PASSING


def _asking(asked: Sequence[tuple[Topic, Seek]]) -> Callable[[Connection], dict[str, Any]]:
    by_topic: dict[str, list[dict[str, Any]]] = {}
    for topic, seek in asked:
        part = {"partition": seek.partition, "fetch_offset": seek.position, "partition_max_bytes": seek.most}
        by_topic.setdefault(topic.name, []).append(part)
    topics = {topic.name: topic for topic, _ in asked}
    have_ids = all(topic.has_id for topic in topics.values())

    def ask(connection: Connection) -> dict[str, Any]:
        version = connection.version(FETCH, _NEWEST if have_ids else _BY_ID - 1)
        fields = {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": _MOST_BYTES,
            "isolation_level": 1,  # read_committed: up to the last stable offset, with the list of aborted transactions
            "topics": [
                {"partitions": parts} | ({"topic_id": topics[name].topic_id} if version >= _BY_ID else {"topic": name})
                for name, parts in by_topic.items()
            ],
        }
        return connection.ask(FETCH, fields, version)

    return ask
