"""Fetching the log of one partition, whoever leads it and however often that changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.sources._brokers.cluster import (
    EARLIEST,
    MAX_TIMESTAMP,
    PASSING,
    Address,
    Cluster,
    NotAllowed,
    Patience,
    Topic,
    TopicMissing,
)
from kafka_records_engine.sources._brokers.failures import ConnectionLost, Refused
from kafka_records_engine.sources._brokers.pool import borrow, give_back
from kafka_records_engine.sources._brokers.requests_sent import FETCH
from kafka_records_runtime.error_codes import ErrorCode

if TYPE_CHECKING:
    from kafka_records_engine.sources._brokers.connection import Connection

_WAIT_MS: Final = 500
"""How long a broker may wait for records to come. There are some below the high watermark, so it does not wait."""
_BY_ID: Final = 13
"""From this version on Fetch names topics by their ids (KIP-516)."""
_LARGEST_FETCH: Final = 1 << 30
_TRIES_TO_READ: Final = 3
"""How often a broker is asked again for what it cannot read itself."""
_UNREADABLE: Final = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.UNKNOWN_SERVER_ERROR})


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one Fetch brought of the log from `position` on."""

    address: str
    """The broker that sent it."""
    position: int
    data: bytes
    high_watermark: int
    is_throttled: bool = False
    """Whether the broker asks for a pause: then it may send nothing although there are records."""


@dataclass(frozen=True, slots=True)
class StartMoved:
    """The log starts later than what was asked for: records were deleted meanwhile."""

    address: str
    log_start: int


@dataclass(frozen=True, slots=True)
class EndMoved:
    """The log ends before the offset that was asked for, although it went further."""

    address: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The broker has the record at `position`, and cannot read its own log there."""

    address: str
    position: int
    what: str


class Fetcher:
    """Fetches one log partition. A request is on its way while the caller looks at the answer to the last one.

    `ask` sends a request; `answer` waits for its answer. It asks again as long as there is a reason to: another broker
    leads now, the leader is gone, the broker wants a pause, or a follower (KIP-392) lags behind.
    """

    def __init__(self, cluster: Cluster, topic: Topic, partition: int) -> None:
        self._cluster = cluster
        self._config = cluster.config
        self._topic = topic
        self._partition = partition
        self._patience = Patience(self._config)
        self._rack = self._config.client_rack
        self._follower: int | None = None
        self._leader = topic.leaders.get(partition, -1)
        self._connection: Connection | None = None
        self._address: Address | None = None
        self._position = 0
        self._bytes = self._config.fetch_bytes
        self._is_asked = False
        self._why = ""
        self._unreadable = 0

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None and self._address is not None:
            give_back(*self._address, self._config, connection)

    def ask(self, position: int) -> None:
        """Ask for the log from an offset on; what goes wrong is mended by `answer`."""
        self._position = position
        self._is_asked = False
        try:
            self._send()
        except ConnectionLost as lost:
            self._drop(lost)

    def larger(self) -> bool:
        """Ask for more bytes from now on, as what is wanted did not fit; whether that can be done."""
        self._bytes *= 2
        return self._bytes <= _LARGEST_FETCH

    def moved(self) -> None:
        """What was fetched has brought the reading forward."""
        self._patience.moved()
        self._unreadable = 0
        self._bytes = self._config.fetch_bytes

    def wait(self, why: str) -> None:
        """Wait before the same is asked again. Raises GivenUp."""
        self._patience.wait(why)

    def answer(self) -> Fetched | StartMoved | EndMoved | Unreadable:
        """What the request brought. Raises GivenUp, Refused, NotAllowed, TopicMissing."""
        while True:
            try:
                if not self._is_asked:
                    self._send()
                found = self._received()
            except ConnectionLost as lost:
                self._drop(lost)
                self._look_again()
                continue
            if found is not None:
                return found

    def record_named(self) -> int | None:
        """A record at or behind the position that ListOffsets names, which searches by timestamps; None without one.

        Raises NotAllowed, Refused.
        """
        topic = self._led
        for timestamp in (0, MAX_TIMESTAMP):
            offset = self._cluster.offsets(topic, [self._partition], timestamp).get(self._partition)
            if isinstance(offset, int) and offset >= self._position:
                return offset
        return None

    # -- asking --------------------------------------------------------------------------------------------------------

    def _send(self) -> None:
        connection = self._connected()
        version = connection.version(FETCH, _LARGEST_FETCH if self._topic.has_id else _BY_ID - 1)
        asked = {
            "partition": self._partition,
            "fetch_offset": self._position,
            "partition_max_bytes": self._bytes,
        }
        topic: dict[str, Any] = {"partitions": [asked]}
        topic |= {"topic_id": self._topic.topic_id} if version >= _BY_ID else {"topic": self._topic.name}
        fields: dict[str, Any] = {
            "max_wait_ms": _WAIT_MS,
            "min_bytes": 1,
            "max_bytes": self._bytes,
            # Everything up to the high watermark, transactions that are open or aborted too: tables settle them.
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
            raise ConnectionLost(self._name, "it has no leader" if node < 0 else f"broker {node} is not there")
        if self._connection is not None and address != self._address:
            self.close()
        if self._connection is None:
            self._connection, self._address = borrow(*address, self._config), address
        return self._connection

    @property
    def _led(self) -> Topic:
        """The topic with the partition and its leader only."""
        return Topic(self._topic.name, self._topic.topic_id, {self._partition: self._leader})

    @property
    def _name(self) -> str:
        return f"{self._topic.name}-{self._partition}"

    def _drop(self, lost: ConnectionLost) -> None:
        self._why = str(lost)
        self._is_asked = False
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._leave_follower()

    def _leave_follower(self) -> None:
        """From now on the leader is read: it has everything."""
        if self._follower is not None:
            self._follower, self._rack = None, ""

    def _look_again(self) -> None:
        """Wait a moment, then ask who leads now. Raises GivenUp, Refused, NotAllowed, TopicMissing."""
        self._patience.wait(self._why)
        try:
            topic = self._cluster.topic(self._topic.name)
        except ConnectionLost as lost:
            self._why = str(lost)
            return
        except TopicMissing as missing:
            # A broker that has just started may not know yet.
            self._patience.wait(f"{missing} any more")
            return
        if topic.has_id and self._topic.has_id and topic.topic_id != self._topic.topic_id:
            raise TopicMissing(f"topic {topic.name} was deleted while it was read, and another one has its name now")
        self._leader = topic.leaders.get(self._partition, -1)

    # -- answers -------------------------------------------------------------------------------------------------------

    def _received(self) -> Fetched | StartMoved | EndMoved | Unreadable | None:
        """What came; None when something else has to be asked first."""
        assert self._connection is not None
        connection = self._connection
        answer = connection.receive()
        self._is_asked = False
        code = answer["error_code"]
        partitions = [each for topic in answer["responses"] for each in topic["partitions"]]
        if not code and not partitions:
            if answer["throttle_time_ms"] > 0:
                return None  # it wants to be left alone for a while, which the connection sees to
            raise ConnectionLost(connection.address, "its answer to Fetch is about no partition")
        data: dict[str, Any] = partitions[0] if not code else {}
        code = code or data["error_code"]
        if code:
            return self._failed(connection.address, ErrorCode(code))
        records: bytes = data["records"] or b""
        preferred = data["preferred_read_replica"]
        if preferred >= 0 and not records:
            if self._cluster.address_of(preferred) is not None:
                self._follower = preferred
            else:
                self._rack = ""
            return None
        if not records and self._follower is not None:
            self._leave_follower()  # it lags behind
            return None
        throttled = answer["throttle_time_ms"] > 0
        return Fetched(connection.address, self._position, records, data["high_watermark"], throttled)

    def _failed(self, address: str, code: ErrorCode) -> StartMoved | EndMoved | Unreadable | None:
        if code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            who = f"user {self._config.username}" if self._config.uses_sasl else "this client"
            raise NotAllowed(f"{who} may not read topic {self._topic.name}: it needs the ACL operation READ on it")
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._out_of_range(address)
        if code in _UNREADABLE:
            self._unreadable += 1
            if self._unreadable < _TRIES_TO_READ:
                self._why = f"{address}: {code.name}"
                self._look_again()
                return None
            return Unreadable(address, self._position, code.name)
        if code not in PASSING:
            raise Refused(address, f"cannot fetch {self._name}: {code.name}")
        self._why = f"{address}: {code.name}"
        self._leave_follower()
        self._look_again()
        return None

    def _out_of_range(self, address: str) -> StartMoved | EndMoved | None:
        if self._follower is not None:
            self._leave_follower()
            return None
        start = self._cluster.offsets(self._led, [self._partition], EARLIEST)[self._partition]
        if isinstance(start, str):
            self._why = f"{address}: {start}"
            self._look_again()
            return None
        return StartMoved(address, start) if start > self._position else EndMoved(address)
