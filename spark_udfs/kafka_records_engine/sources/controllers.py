"""Fetches the metadata log of a running cluster from its active controller into a directory.

Brokers do not let clients read `__cluster_metadata`, but controllers do, if the client has the CLUSTER_ACTION right
(`ControllerApis.handleFetch`). A Fetch with replica id -1 is treated as coming from outside the cluster
(`KafkaRaftClient.handleFetchRequest`, `LeaderState.updateReplicaState`), so reading changes nothing. If the log begins
after the requested offset, the answer names a snapshot, which is fetched in pieces with FetchSnapshot (KIP-595,
KIP-630).
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

from kafka_records_engine import arguments
from kafka_records_engine.log.files.discovery import METADATA_TOPIC, LogSourceError
from kafka_records_engine.log.format.batches import ENTRY_HEAD, RECORDS_AT, computed_crc, read_head
from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.failures import BrokerFailure, ConnectionLost, Refused
from kafka_records_engine.sources._brokers.pool import borrow, give_back
from kafka_records_engine.sources._brokers.requests_sent import FETCH, FETCH_SNAPSHOT
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.live import Config, addresses_of, config_of
from kafka_records_engine.sources.right_words import lacks_right
from kafka_records_engine.sources.time_limit import Timeout, limit_of
from kafka_records_engine.sources.unreachable import UnreachableBrokers
from kafka_records_runtime.kafka.error_codes import ErrorCode

_TOPIC_ID: Final = bytes(15) + b"\x01"
"""The topic id of the metadata log in every cluster (`Uuid.METADATA_TOPIC_ID`)."""
_BY_ID: Final = 13
"""The first version of Fetch that names topics by id (KIP-516)."""
_WAIT_MS: Final = 500
_MAGIC_AT: Final = 16
_PAUSE: Final = 0.2
_MOVING: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
"""Errors after which the request is sent to the controller named in the answer, or repeated because no controller is
elected yet."""
_NO_METADATA_LOG: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})


@dataclass(frozen=True, slots=True)
class FetchedMetadataLog:
    """The result of fetching a metadata log."""

    directory: str
    """A data directory with the log, readable like a broker's."""
    start_offset: int
    """The offset of the first record in the log. The state before it is in the snapshot."""
    end_offset: int
    """The end offset of the committed log at the first request."""
    snapshot: str | None
    """The name of the file with the state before `start_offset`; None if the log starts at 0."""


OnBytes = Callable[[int], object]
"""Called with the number of bytes fetched so far."""


def fetch_metadata_log(
    controllers: str | Sequence[str],
    directory: str | PathLike[str],
    config: Config | None = None,
    *,
    timeout: Timeout | None = None,
    on_bytes: OnBytes = lambda size: None,
) -> FetchedMetadataLog:
    """Fetch the metadata log of a running cluster into a new directory. Requires the CLUSTER_ACTION right on the
    cluster.

    The directory appears once it is complete. It contains the metadata log as of the first answer, including all
    secrets in the log (keys of SCRAM users, sensitive settings), so only its owner may read it. Fetching changes
    nothing on the cluster.

    Parameters
    ----------
    controllers
        `HOST:PORT` of some controllers, as in `controller.quorum.bootstrap.servers`. They name the active one.
    directory
        The directory to create. It must not exist, or must be empty.
    config, timeout
        As for `LiveBrokers`.
    on_bytes
        Called with the number of bytes fetched so far.

    Raises
    ------
    ValueError, TypeError
        If an argument is invalid.
    LogSourceError
        If no controller answers, the right is missing, the address is that of a broker, or the data is damaged.
    OSError
        If the directory cannot be written.
    """
    fetching = _Fetching(addresses_of(controllers), config_of(config), Session(limit_of(timeout)), on_bytes)
    target = Path(arguments.path("directory", directory))
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise LogSourceError(str(target), "this is not an empty directory: give a new one")
    target.parent.mkdir(parents=True, exist_ok=True)
    # only the owner may read this directory
    partial = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        log = partial / f"{METADATA_TOPIC}-0"
        log.mkdir()
        found = fetching.fetch(log)
        partial.rename(target)
    except BrokerFailure as failed:
        raise _error(failed) from None
    finally:
        fetching.close()
        shutil.rmtree(partial, ignore_errors=True)
    return FetchedMetadataLog(str(target), *found)


def _error(failed: BrokerFailure) -> LogSourceError:
    kind = UnreachableBrokers if isinstance(failed, ConnectionLost) else LogSourceError
    return kind(failed.address, failed.detail)


class _Found(NamedTuple):
    start: int
    end: int
    snapshot: str | None


class _SnapshotId(NamedTuple):
    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The file name that Kafka uses (`Snapshots.filenameFromSnapshotId`)."""
        return f"{self.end_offset:020}-{self.epoch:010}.checkpoint"


class _Fetching:
    """The requests to the controller that is currently active."""

    def __init__(self, addresses: Sequence[tuple[str, int]], config: Any, session: Session, on_bytes: OnBytes) -> None:
        self._given = list(addresses)
        self._address = self._given[0]
        self._config = config
        self._session = session
        self._on_bytes = on_bytes
        self._connection: Connection | None = None
        self._epoch = 0  # requests need an epoch of at least 0, and responses contain the current one
        self._bytes = 0
        self._until = 0.0
        self._moved()

    def close(self) -> None:
        """Give the connection back."""
        if self._connection is not None:
            give_back(*self._address, self._config, self._connection)
            self._connection = None

    def fetch(self, folder: Path) -> _Found:
        """Write the log, and the snapshot before it, into a folder. Raises BrokerFailure and OSError."""
        offset, epoch, end = 0, 0, -1
        snapshot: _SnapshotId | None = None
        kept: list[bytes] = []
        while end < 0 or offset < end:
            answer = self._answer(offset, epoch)
            named = _SnapshotId(answer["snapshot_id"]["end_offset"], answer["snapshot_id"]["epoch"])
            if named.end_offset >= 0:
                with (folder / named.file_name).open("wb") as file:
                    self._fetch_snapshot(named, file)
                if snapshot is not None and snapshot != named:
                    (folder / snapshot.file_name).unlink()
                # The log now begins after the part fetched so far.
                snapshot, kept = named, []
                offset, epoch = named
                continue
            if answer["diverging_epoch"]["end_offset"] >= 0:
                what = f"its log differs from that of the previous controller below offset {offset}; try again"
                raise Refused(self._shown, what)
            if end < 0:
                end = answer["high_watermark"]
            if offset >= end >= 0:
                break
            data, offset, epoch = self._committed(answer["records"] or b"", offset, epoch, end)
            if data:
                kept.append(data)
                self._moved(len(data))
            else:
                self._pause("it returned no committed records")
        start = snapshot.end_offset if snapshot is not None else 0
        (folder / f"{start:020}.log").write_bytes(b"".join(kept))
        return _Found(start, offset, None if snapshot is None else snapshot.file_name)

    def _committed(self, data: bytes, offset: int, epoch: int, end: int) -> tuple[bytes, int, int]:
        """The complete batches from `offset` up to `end`, and where to continue: the offset, and the epoch of the last
        record.

        A controller also sends uncommitted batches, and may cut off the last one.
        """
        first = at = 0
        while at + RECORDS_AT <= len(data):
            size = ENTRY_HEAD + int.from_bytes(data[at + 8 : at + ENTRY_HEAD], "big", signed=True)
            is_batch = data[at + _MAGIC_AT] == 2 and size >= RECORDS_AT
            if is_batch and at + size > len(data):
                break
            head = read_head(data, at, at) if is_batch else None
            if head is None or computed_crc(2, data[at : at + size]) != head.crc:
                raise Refused(self._shown, f"the batch at offset {offset} is damaged, or no batch begins there")
            if head.last_offset < offset:
                first = at + size
            elif head.last_offset >= end:
                break
            else:
                offset, epoch = head.last_offset + 1, head.leader_epoch
            at += size
        return data[first:at], offset, epoch

    def _fetch_snapshot(self, snapshot: _SnapshotId, file: IO[bytes]) -> None:
        position, size = 0, 1
        while position < size:
            partition = {
                "partition": 0,
                "current_leader_epoch": self._epoch,
                "snapshot_id": snapshot._asdict(),
                "position": position,
            }
            topics = [{"name": METADATA_TOPIC, "partitions": [partition]}]
            answer = self._asked(FETCH_SNAPSHOT, {"max_bytes": self._config.fetch_bytes, "topics": topics}, "topics")
            if answer is None:
                continue
            code = ErrorCode(answer["error_code"])
            if code == ErrorCode.SNAPSHOT_NOT_FOUND:
                raise Refused(self._shown, "the controller has deleted this snapshot in the meantime: try again")
            if code:
                raise Refused(self._shown, f"cannot fetch snapshot {snapshot.file_name}: {code.name}")
            data = answer["unaligned_records"]
            if answer["position"] != position or not data:
                raise Refused(
                    self._shown,
                    f"the controller returned no bytes of snapshot {snapshot.file_name} from byte {position}",
                )
            file.write(data)
            position, size = position + len(data), answer["size"]
            self._moved(len(data))

    # -- requests ------------------------------------------------------------------------------------------------------

    def _answer(self, offset: int, epoch: int) -> dict[str, Any]:
        """A controller's answer about the log, starting at an offset; `epoch` is the epoch of the record before it."""
        while True:
            partition = {
                "partition": 0,
                "fetch_offset": offset,
                "current_leader_epoch": self._epoch,
                "last_fetched_epoch": epoch,
                "partition_max_bytes": self._config.fetch_bytes,
            }
            topic = {"topic": METADATA_TOPIC, "topic_id": _TOPIC_ID, "partitions": [partition]}
            fields = {
                "max_wait_ms": _WAIT_MS,
                "min_bytes": 1,
                "max_bytes": self._config.fetch_bytes,
                "isolation_level": 0,
                "topics": [topic],
            }
            answer = self._asked(FETCH, fields, "responses")
            if answer is None:
                continue
            code = ErrorCode(answer["error_code"])
            if code in _NO_METADATA_LOG:
                raise Refused(self._shown, _A_BROKER)
            if code:
                raise Refused(self._shown, f"cannot fetch {METADATA_TOPIC}: {code.name}")
            return answer

    def _asked(self, name: str, fields: dict[str, Any], topics: str) -> dict[str, Any] | None:
        """The part of the answer about the partition; None if the request has to be repeated, to the same or another
        controller."""
        try:
            connection = self._connected()
            version = connection.version(name)
            if name == FETCH:
                (topic,) = fields["topics"]
                fields["topics"] = [{key: value for key, value in topic.items() if key != _other_name(version)}]
            answer = connection.ask(name, fields, version)
        except ConnectionLost as lost:
            self._drop()
            self._try_next()
            self._pause(lost.detail, lost.address)
            return None
        code = ErrorCode(answer["error_code"])
        if code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
            user = f"user {self._config.username}" if self._config.uses_sasl else "this client"
            what = lacks_right(user, "CLUSTER_ACTION", "the cluster", "read the metadata log")
            raise Refused(self._shown, what)
        if code in _NO_METADATA_LOG:
            raise Refused(self._shown, _A_BROKER)
        if code:
            raise Refused(self._shown, f"rejects {name}: {code.name}")
        found = [partition for topic in answer[topics] for partition in topic["partitions"]]
        if len(found) != 1:
            raise Refused(self._shown, _A_BROKER if not found else f"the response to {name} is about other partitions")
        (partition,) = found
        if ErrorCode(partition["error_code"]) in _MOVING:
            self._follow(partition["current_leader"], answer.get("node_endpoints") or ())
            return None
        return dict(partition)

    def _follow(self, leader: dict[str, Any], endpoints: Sequence[dict[str, Any]]) -> None:
        """Switch to the controller that is now active, if the answer contains its address."""
        is_new = leader["leader_epoch"] > self._epoch and leader["leader_id"] >= 0
        self._epoch = max(self._epoch, leader["leader_epoch"])
        for each in endpoints:
            if each["node_id"] == leader["leader_id"]:
                address = (each["host"], each["port"])
                if address != self._address:
                    self.close()
                    self._address = address
                if is_new:
                    return
        if not endpoints and not is_new:  # before Kafka 3.9, controllers do not report the addresses of others
            self.close()
            self._try_next()
        if not is_new:
            self._pause("there is no active controller, or another one has become active")

    def _try_next(self) -> None:
        """Switch to another of the given controllers."""
        self._given.append(self._given.pop(0))
        self._address = self._given[0]

    def _connected(self) -> Connection:
        until = min(self._until, self._session.end)
        if self._connection is None:
            self._connection = borrow(*self._address, self._config, self._session, until)
        self._connection.until = until
        return self._connection

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @property
    def _shown(self) -> str:
        return f"{self._address[0]}:{self._address[1]}" if self._connection is None else self._connection.address

    def _moved(self, size: int = 0) -> None:
        self._bytes += size
        self._until = time.monotonic() + self._config.patience_ms / 1000
        if size:
            self._on_bytes(self._bytes)

    def _pause(self, why: str, address: str | None = None) -> None:
        """Wait before the next attempt. Raises ConnectionLost after `default.api.timeout.ms` without progress, or when
        the time limit has passed."""
        if time.monotonic() + _PAUSE >= min(self._until, self._session.end):
            raise ConnectionLost(address or self._shown, why)
        time.sleep(_PAUSE)


_A_BROKER: Final = (
    "this has no metadata log for clients, so it is a broker: give the address of a controller, as in "
    "controller.quorum.bootstrap.servers or controller.quorum.voters"
)


def _other_name(version: int) -> str:
    """The topic field that a version of Fetch does not have."""
    return "topic" if version >= _BY_ID else "topic_id"
