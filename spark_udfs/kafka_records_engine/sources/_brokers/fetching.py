"""Fetches the log of one partition, even if the partition's leader changes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.sources._brokers.cluster import (
    EARLIEST,
    MAX_TIMESTAMP,
    PASSING,
    Address,
    Cluster,
    NotAllowed,
    Topic,
    TopicMissing,
    UnknownOffset,
)
from kafka_records_engine.sources._brokers.failures import (
    AnswerTooLarge,
    ConnectionLost,
    NoAnswer,
    PartitionUnavailable,
    PauseTooLong,
    Refused,
)
from kafka_records_engine.sources._brokers.patience import GivenUp, Patience
from kafka_records_engine.sources._brokers.pool import borrow, give_back
from kafka_records_engine.sources._brokers.requests_sent import FETCH
from kafka_records_runtime.kafka.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka_records_engine.sources._brokers.connection import Connection

_WAIT_MS: Final = 500
"""How long a broker may wait for new records. Below the high watermark, there are records, so it does not wait."""
_BY_ID: Final = 13
"""The first version of Fetch that names topics by id (KIP-516)."""
_NEWEST: Final = 0x7FFF
_LARGEST_FETCH: Final = 128 << 20
"""The maximum number of bytes to request. No batch is larger than a segment, and segments of the coordinators' topics
have 100 MiB by default."""
_SMALLEST_FETCH: Final = 1 << 16
_TRIES_TO_READ: Final = 3
"""How often a request is repeated for data that the broker itself cannot read."""
_NO_ANSWER: Final = UnknownOffset("no broker reports which records exist")
_NO_TIMES: Final = ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT.name
_UNREADABLE: Final = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR})


@dataclass(frozen=True, slots=True)
class Fetched:
    """The part of the log that one Fetch returned, starting at `position`."""

    address: str
    """The address of the broker that sent it."""
    position: int
    data: bytes
    high_watermark: int
    is_throttled: bool = False
    """Whether the broker requested a pause. If so, it may send nothing even if there are records."""


@dataclass(frozen=True, slots=True)
class StartMoved:
    """The log starts after the requested offset, because records have been deleted since."""

    address: str
    log_start: int


@dataclass(frozen=True, slots=True)
class EndMoved:
    """The log ends before the requested offset, although it used to be longer."""

    address: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The broker has the record at `position`, but does not send it in readable form."""

    address: str
    position: int
    what: str
    """The broker's problem as a sentence."""


class Fetcher:
    """Fetches one log partition. While the caller processes an answer, the next request has already been sent.

    `ask` sends a request, and `answer` waits for its answer. `answer` repeats the request if the leader has changed or
    is gone, if the broker requests a pause, or if a follower (KIP-392) lags behind.
    """

    def __init__(self, cluster: Cluster, topic: Topic, partition: int) -> None:
        self._cluster = cluster
        self._config = cluster.config
        self._topic = topic
        self._partition = partition
        self._leader = topic.leaders.get(partition, -1)
        self._patience = Patience(
            self._config, cluster.session, self._name, leader=self._led_by, target=(topic.name, partition)
        )
        self._rack = self._config.client_rack
        self._follower: int | None = None
        self._is_redirected = False
        self._connection: Connection | None = None
        self._address: Address | None = None
        self._position = 0
        self._usual = self._bytes = self._config.fetch_bytes
        self._most = max(_LARGEST_FETCH, self._usual)
        self._sent_bytes = 0
        """The number of bytes in the last answer."""
        self._is_asked = False
        self._unreadable = 0

    def close(self) -> None:
        """Return the connection to the pool."""
        connection, self._connection = self._connection, None
        if connection is not None and self._address is not None:
            give_back(*self._address, self._config, connection)

    def ask(self, position: int) -> None:
        """Request the log starting at an offset. If that fails, `answer` repeats the request."""
        self._position = position
        self._is_asked = False
        self._cluster.until = self._patience.until
        try:
            self._send()
        except ConnectionLost:
            self._drop()

    @property
    def had_room(self) -> bool:
        """Whether the size limit left room for more bytes in the last answer."""
        return self._sent_bytes < self._bytes

    def larger(self) -> bool:
        """Request more bytes from now on, because the needed data did not fit. Returns whether that can help: if the
        last answer had room left, the broker has no more data."""
        if self.had_room or self._bytes >= self._most:
            return False
        self._bytes = min(2 * self._bytes, self._most)
        return True

    def moved(self) -> None:
        """Record that the last fetch made progress."""
        self._patience.moved()
        self._unreadable = 0
        self._is_redirected = False
        self._bytes = self._usual

    def wait(self, why: str, *, broker_failed: bool = False) -> None:
        """Wait before the request is repeated. See `Patience.check` for `broker_failed`. Raises GivenUp."""
        self._patience.wait(why, broker_failed=broker_failed)

    def answer(self) -> Fetched | StartMoved | EndMoved | Unreadable:
        """The result of the request. Raises GivenUp, Refused, NotAllowed, TopicMissing."""
        self._patience.begin()
        while True:
            try:
                self._cluster.until = self._patience.until
                if not self._is_asked:
                    self._send()
                elif self._connection is not None:
                    self._connection.until = self._cluster.until
                found = self._received()
            except AnswerTooLarge as large:
                self._drop()
                if large.size > self._most:
                    return Unreadable(large.address, self._position, large.detail)
                # Brokers send at least one complete batch, however large it is.
                self._usual = self._bytes = min(max(large.size, 2 * self._bytes), self._most)
                self._look_again(str(large))
                continue
            except PauseTooLong as lost:
                raise GivenUp(str(lost)) from None
            except ConnectionLost as lost:
                is_leader = self._follower is None
                self._drop()
                if isinstance(lost, NoAnswer) and lost.has_begun:
                    self._usual = self._bytes = max(self._bytes // 4, _SMALLEST_FETCH)
                self._look_again(str(lost), broker_failed=is_leader and not isinstance(lost, PartitionUnavailable))
                continue
            if found is not None:
                return found

    def record_named(self) -> int | None:
        """The offset of a record at or after the position, from a search by timestamp with ListOffsets; None if there
        is none.

        Raises ConnectionLost if the leader does not answer, NotAllowed, and Refused.
        """
        self._cluster.until = self._patience.until
        for timestamp in (0, MAX_TIMESTAMP):
            offset = self._cluster.offsets(self._led, [self._partition], timestamp).get(self._partition, _NO_ANSWER)
            if isinstance(offset, int):
                if offset >= self._position:
                    return offset
            elif offset.broker_failed:
                raise ConnectionLost(self._name, offset.why)
            elif offset.why != _NO_TIMES:
                raise PartitionUnavailable(self._name, offset.why)
        return None

    # -- asking --------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        connection = self._connected()
        version = connection.version(FETCH, _NEWEST if self._topic.has_id else _BY_ID - 1)
        asked = {
            "partition": self._partition,
            "fetch_offset": self._position,
            "partition_max_bytes": self._bytes,
        }
        topic: dict[str, Any] = {"partitions": [asked]}
        topic |= {"topic_id": self._topic.topic_id} if version >= _BY_ID else {"topic": self._topic.name}
        fields: dict[str, Any] = {
            # If the caller has little time left, the response must arrive earlier, even without records.
            "max_wait_ms": max(min(_WAIT_MS, int(1000 * (connection.until - time.monotonic()) / 4)), 0),
            "min_bytes": 1,
            "max_bytes": self._bytes,
            # Read up to the high watermark, including open and aborted transactions. Tables resolve these.
            "isolation_level": 0,
            "topics": [topic],
        }
        if self._rack and self._follower is None and version >= 11:
            fields["rack_id"] = self._rack
        connection.send(FETCH, fields, version)
        self._is_asked = True

    def _connected(self) -> Connection:
        node = self._leader if self._follower is None else self._follower
        address = self._cluster.address_of(node)
        if address is None:
            if node < 0:
                raise PartitionUnavailable(self._name, "it has no leader")
            raise ConnectionLost(self._name, f"broker {node} is unavailable")
        if self._connection is not None and address != self._address:
            self.close()
        if self._connection is None:
            self._connection = borrow(*address, self._config, self._cluster.session, self._cluster.until)
            self._address = address
        self._connection.until = self._cluster.until
        return self._connection

    @property
    def _led(self) -> Topic:
        """The topic description, limited to this partition and its leader."""
        return Topic(self._topic.name, self._topic.topic_id, {self._partition: self._leader})

    @property
    def _led_by(self) -> int | None:
        return None if self._leader < 0 else self._leader

    @property
    def _name(self) -> str:
        return f"{self._topic.name}-{self._partition}"

    def _drop(self) -> None:
        self._is_asked = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._leave_follower()

    def _leave_follower(self) -> None:
        """Read from the leader from now on, because it has all records."""
        if self._follower is not None:
            self._follower, self._rack = None, ""

    def _look_again(self, why: str, *, broker_failed: bool = False) -> None:
        """Wait a moment, then ask which broker is the leader now. Raises GivenUp, Refused, NotAllowed, TopicMissing."""
        self._patience.wait(why, broker_failed=broker_failed)
        try:
            topic = self._cluster.topic(self._topic.name)
        except ConnectionLost:
            return
        except TopicMissing as missing:
            # A broker that has just started may not yet have the topic's metadata.
            self._patience.wait(f"{missing} any more")
            return
        if topic.has_id and self._topic.has_id and topic.topic_id != self._topic.topic_id:
            raise TopicMissing(f"topic {topic.name} was deleted and recreated while it was being read")
        self._leader = topic.leaders.get(self._partition, -1)
        self._patience.leader = self._led_by

    # -- answers -------------------------------------------------------------------------------------------------------

    def _received(self) -> Fetched | StartMoved | EndMoved | Unreadable | None:
        """The content of the answer; None if another request has to be sent first."""
        assert self._connection is not None
        connection = self._connection
        answer = connection.receive()
        self._is_asked = False
        code = answer["error_code"]
        if not code and not answer["responses"] and answer["throttle_time_ms"] > 0:
            why = f"{connection.address}: the broker sends nothing and asks for a pause"
            self._patience.wait(why, broker_failed=self._follower is None)
            return None
        data: dict[str, Any] = {} if code else self._own(answer, connection.address)
        code = code or data["error_code"]
        if code:
            return self._failed(connection.address, ErrorCode(code))
        records: bytes = data["records"] or b""
        self._sent_bytes = len(records)
        preferred = data["preferred_read_replica"]
        if preferred >= 0 and not records:
            self._redirected(preferred, connection.address)
            return None
        if not records and self._follower is not None:
            self._leave_follower()  # the follower lags behind the leader
            return None
        throttled = answer["throttle_time_ms"] > 0
        return Fetched(connection.address, self._position, records, data["high_watermark"], throttled)

    def _own(self, answer: dict[str, Any], address: str) -> dict[str, Any]:
        """The part of an answer about this log partition. Raises ConnectionLost if the answer is about another one."""
        for topic in answer["responses"]:
            # Depending on the version of the response, topics have names or ids.
            is_own = topic["topic"] == self._topic.name or (
                self._topic.has_id and bytes(topic["topic_id"]) == self._topic.topic_id
            )
            for each in topic["partitions"] if is_own else ():
                if each["partition_index"] == self._partition:
                    return dict(each)
        what = f"its response to Fetch lacks {self._name}, which was requested"
        raise PartitionUnavailable(address, what)

    def _redirected(self, preferred: int, address: str) -> None:
        """Handle an answer that names another replica to read from. That replica is tried once. If the leader names one
        again, the leader is read."""
        is_leader = self._follower is None
        if is_leader and not self._is_redirected and self._cluster.address_of(preferred) is not None:
            self._follower, self._is_redirected = preferred, True
            return
        was_asked_to = is_leader and bool(self._rack)
        self._follower, self._rack = None, ""
        if not was_asked_to:
            self._patience.wait(f"{address}: it sends no records, but refers to broker {preferred}")

    def _failed(self, address: str, code: ErrorCode) -> StartMoved | EndMoved | Unreadable | None:
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            raise NotAllowed(self._cluster.who, "READ", self._topic.name)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._out_of_range(address)
        if code in _UNREADABLE:
            self._unreadable += 1
            if self._unreadable < _TRIES_TO_READ:
                self._look_again(f"{address}: {code.name}")
                return None
            return Unreadable(address, self._position, f"the broker cannot read its own log: {code.name}")
        if code not in PASSING:
            raise Refused(address, f"cannot fetch {self._name}: {code.name}")
        self._leave_follower()
        self._look_again(f"{address}: {code.name}")
        return None

    def _out_of_range(self, address: str) -> StartMoved | EndMoved | None:
        if self._follower is not None:
            self._leave_follower()
            return None
        start = self._cluster.offsets(self._led, [self._partition], EARLIEST)[self._partition]
        if isinstance(start, UnknownOffset):
            self._look_again(f"{address}: {start}", broker_failed=start.broker_failed)
            return None
        return StartMoved(address, start) if start > self._position else EndMoved(address)
