"""Reads one log partition from brokers. It fetches raw record batches as they are in the log, and parses them with the
code that reads files. So control records, producers and transactions are available, although clients hide them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.findings import (
    DAMAGED_LOG,
    DELETED_MEANWHILE,
    MISSING_RIGHT,
    UNREACHABLE_LOG,
    UNREAD_LOG,
    Finding,
    Severity,
)
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.fetched import RecordSets
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._brokers.cluster import (
    Address,
    Cluster,
    NotAllowed,
    Topic,
    TopicMissing,
    named,
)
from kafka_records_engine.sources._brokers.failures import (
    ConnectionLost,
    PartitionUnavailable,
    Refused,
    TopicUnavailable,
)
from kafka_records_engine.sources._brokers.fetching import EndMoved, Fetched, Fetcher, StartMoved, Unreadable
from kafka_records_engine.sources._brokers.patience import GivenUp, Patience
from kafka_records_engine.sources._brokers.session import Session
from kafka_records_engine.sources.client_config import ClientConfig
from kafka_records_engine.sources.missing_rights import MissingRight
from kafka_records_engine.sources.protocol import Context

_BYTES_PER_OFFSET: Final = 100
"""The approximate size of a record in the coordinators' topics. Brokers report sizes only to administrators."""
_ANY_BROKER: Final = "any broker"
"""Used in place of a leader as long as no broker answers Metadata."""
_TRIES_TO_CUT: Final = 3
"""How often a request is repeated if the broker sends only part of a batch."""
_CUT_OFF: Final = "cut off: the broker has no more than {} bytes of it"
_QUIET: Final = 5
"""The number of empty answers of a leader, with pauses in between, before it is asked which records it has."""


@dataclass(frozen=True, slots=True)
class BrokerPartition:
    """One log partition on brokers, from the offset `start` up to `end` (exclusive).

    The process that reads it connects to the broker when reading starts.
    """

    bootstrap: tuple[Address, ...]
    config: ClientConfig
    topic: str
    topic_id: bytes
    partition: int
    start: int
    end: int
    leader: int = field(default=-1, compare=False)
    """The broker that led the partition when it was found; -1 if it had no leader."""
    trouble: str | None = None
    """Why the start and the end of the log are unknown (both are then 0); None if they are known."""
    found_ms: int | None = field(default=None, compare=False)
    """When the broker reported the end of the log, in milliseconds since 1970."""
    session: Session = field(default_factory=Session, compare=False, repr=False)
    """The state shared with the other partitions: the time limit, and how each broker behaves."""
    in_memory = False

    @property
    def size(self) -> int:
        """The size in bytes, estimated from the number of offsets."""
        return max(self.end - self.start, 0) * _BYTES_PER_OFFSET

    @property
    def high_watermark(self) -> int | None:
        """The end of the log when the log was found, as the broker reported it; None if unknown. A snapshot uses it as
        the end of the log at that time. Exports have no high watermark, because their age is unknown."""
        return self.end if self.trouble is None else None

    def cuts(self, size: int) -> list[int]:
        """Offsets at which the log partition can be cut into parts of about `size` bytes. Sizes are estimates."""
        count = max(-(-self.size // size), 1)
        return [self.start + (self.end - self.start) * number // count for number in range(1, count)]

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`. Raises LogSourceError if the topic is missing or the broker refuses.

        A finding reports offsets that were not read within `default.api.timeout.ms`, or for which the user has lost the
        right.
        """
        context.counts.partitions += 1
        context.counts.note_moment("records", self.found_ms)
        if self.trouble is not None:
            place = f"{named(self.bootstrap)} {self.topic}-{self.partition}"
            lost = "nothing of it is read"
            context.report(
                Finding("damage", UNREACHABLE_LOG, self.trouble, lost, self.topic, self.partition, file=place)
            )
            context.log.add_hole(-1)
            return
        context.log.start = self.start
        wanted = replace(
            self, start=max(self.start, start or 0), end=self.end if end is None else min(self.end, max(end, 0))
        )
        yield from _Reading(wanted, context, columns, self.start).batches()
        if wanted.end < self.end:
            context.log.add_hole(wanted.end - 1)


class _Reading:
    """One run over a log partition."""

    def __init__(self, log: BrokerPartition, context: Context, columns: Collection[str], log_start: int) -> None:
        """`log` is the requested range of the log partition, which starts at `log_start`."""
        self._log = log
        self._log_start = log_start
        self._context = context
        names = [name for name in columns if name in RAW_SCHEMA.names]
        self._added = "offset" not in names
        self._sets = RecordSets(
            log.topic, log.partition, [*names, "offset"] if self._added else names, self._damaged, context.log.add_hole
        )
        self._position = log.start
        self._quiet = self._cuts = self._rest = 0
        self._damaged_at: int | None = None
        self._ahead = self._skip = 0

    def batches(self) -> Iterator[Any]:
        log, context = self._log, self._context
        if log.start >= log.end:
            return
        cluster = Cluster(log.bootstrap, log.config, log.session)
        fetcher: Fetcher | None = None
        try:
            topic = self._found(cluster)
            fetcher = Fetcher(cluster, topic, log.partition)
            fetcher.ask(self._position)
            while self._position < log.end:
                yield from self._taken(fetcher, fetcher.answer())
                context.progress((self._position - log.start) * _BYTES_PER_OFFSET)
        except NotAllowed as failed:
            # The user had the right when the log was found, so the rows read so far are still useful.
            right = MissingRight(named(log.bootstrap), failed.who, failed.operation, failed.topic)
            self._unread(self._position, log.end, right.detail, reason=MISSING_RIGHT)
        except TopicMissing as missing:
            raise LogSourceError(named(log.bootstrap), str(missing)) from None
        except Refused as failed:
            raise LogSourceError(failed.address, failed.detail) from None
        except GivenUp as given_up:
            # With only one broker, the reason starts with the same address.
            why = str(given_up).removeprefix(f"{named(log.bootstrap)}: ")
            self._unread(self._position, log.end, why, reason=UNREACHABLE_LOG)
        finally:
            if fetcher is not None:
                fetcher.close()

    def _found(self, cluster: Cluster) -> Topic:
        log = self._log
        patience = Patience(log.config, log.session, f"{log.topic}-{log.partition}", target=_ANY_BROKER)
        while True:
            patience.begin()
            cluster.until = patience.until
            try:
                topic = cluster.topic(self._log.topic)
            except ConnectionLost as lost:
                # An error about this topic does not affect other topics.
                patience.target = log.topic if isinstance(lost, TopicUnavailable) else _ANY_BROKER
                patience.wait(str(lost))
                continue
            if topic.topic_id != self._log.topic_id:
                raise TopicMissing(f"topic {topic.name} was deleted and recreated since its logs were found")
            return topic

    def _taken(self, fetcher: Fetcher, came: Fetched | StartMoved | EndMoved | Unreadable) -> Iterator[Any]:
        log = self._log
        if isinstance(came, StartMoved):
            self._start_moved(came)
            fetcher.moved()
        elif isinstance(came, EndMoved):
            # A retry shows whether a new leader has caught up.
            fetcher.wait(f"{came.address}: the log ends before offset {self._position} now, and went up to {log.end}")
        elif isinstance(came, Unreadable):
            self._skipped(came.address, came.what)
        elif not came.data:
            self._nothing(fetcher, came)
        else:
            self._quiet = 0
            self._context.counts.bytes += len(came.data)
            taken = self._sets.take(came.data, self._place(came.address), self._position, came.high_watermark)
            before = self._position
            # If a broker sends an incomplete batch although there was room for more, it cannot read any further.
            self._rest = taken.rest if fetcher.had_room else 0
            if taken.behind is not None:
                self._position, self._ahead, self._skip, self._cuts = taken.behind, 0, 0, 0
                fetcher.moved()
            elif not taken.is_cut:
                self._look_ahead()
            elif not fetcher.larger():
                self._cut_off(fetcher, came)
            if self._position < log.end:
                fetcher.ask(self._position + self._ahead)
            for rows in taken.rows:
                kept = self._kept(rows, before)
                if kept.num_rows:
                    yield kept
            return
        if self._position < log.end:
            fetcher.ask(self._position + self._ahead)

    def _cut_off(self, fetcher: Fetcher, came: Fetched) -> None:
        """Handle a broker that sends only part of a batch, even if more bytes are requested."""
        what = _CUT_OFF.format(len(came.data))
        self._cuts += 1
        if self._cuts < _TRIES_TO_CUT:
            fetcher.wait(f"{came.address}: batch at offset {came.position}: {what}")
            return
        if not self._ahead:
            consequence = "the records from there are not read, up to the next batch that can be read"
            self._find("damage", DAMAGED_LOG, what, consequence, came.address, base_offset=self._position)
            self._sets.add_hole(self._position - 1)
        self._look_ahead()

    def _look_ahead(self) -> None:
        """Continue after an answer without usable data, which a finding reports. The log may be intact after that."""
        self._ahead = 2 * self._ahead or 1
        if self._position + self._ahead >= self._log.end:
            self._position = self._log.end

    def _kept(self, rows: Any, position: int) -> Any:
        """Only the requested rows. Batches are sent whole, so they may contain offsets outside the range."""
        offsets = rows.column("offset").to_numpy()
        if len(offsets) and (offsets[0] < position or offsets[-1] >= self._log.end):
            rows = rows.filter(pa.array((offsets >= position) & (offsets < self._log.end)))
        return rows.select(rows.schema.names[:-1]) if self._added else rows

    # -- what is not there ---------------------------------------------------------------------------------------------

    def _nothing(self, fetcher: Fetcher, came: Fetched) -> None:
        """Handle a leader that sends no more records although its high watermark is further on.

        This happens if a cleaner removed all records. The leader is also asked for records by timestamp (ListOffsets).
        As long as it names a record that it does not send, the request is repeated. Eventually, this is reported as
        damage.
        """
        log = self._log
        if came.high_watermark < log.end:
            fetcher.wait(f"{came.address}: the log ends at {came.high_watermark} now, and ended at {log.end} before")
            return
        silence = f"{came.address}: no record is sent from offset {self._position} on"
        if came.is_throttled:
            fetcher.wait(f"{silence}, as the broker asks for a pause", broker_failed=True)
            return
        self._quiet += 1
        if self._quiet < _QUIET:
            fetcher.wait(f"{silence}, and the log went up to {log.end}")
            return
        try:
            there = fetcher.record_named()
        except ConnectionLost as lost:
            is_broker = not isinstance(lost, PartitionUnavailable)
            fetcher.wait(f"{silence}, and which records it has is unknown: {lost.detail}", broker_failed=is_broker)
            return
        if there is not None:
            fetcher.wait(f"{silence}, although there is one at offset {there}")
            return
        if self._rest:
            self._unread(self._position, log.end, _CUT_OFF.format(self._rest), came.address)
        elif self._damaged_at != self._position:
            what = f"the leader has no record at {_range_text(self._position, log.end)}"
            self._find("note", UNREAD_LOG, what, "the log cleaner may have removed all of them", came.address)
        self._position = log.end

    def _start_moved(self, came: StartMoved) -> None:
        first, end = self._position, min(came.log_start, self._log.end)
        what = f"{_range_with_verb(first, end)} deleted while the log was read: it starts at {came.log_start} now"
        self._find("note", DELETED_MEANWHILE, what, "the response does not contain them", came.address)
        self._sets.add_hole(first - 1)
        if first == self._log_start:
            self._context.log.start = end
        self._position, self._ahead = end, 0

    def _skipped(self, address: str, what: str) -> None:
        self._skip = 2 * self._skip or 1
        end = min(self._position + self._skip, self._log.end)
        self._unread(self._position, end, what, address)
        self._position, self._ahead = end, 0

    def _unread(self, first: int, end: int, why: str, address: str | None = None, reason: str = DAMAGED_LOG) -> None:
        consequence = f"{_range_with_verb(first, end)} not read"
        self._find("damage", reason, why, consequence, address, base_offset=first)
        self._sets.add_hole(first - 1)

    def _damaged(self, found: Finding) -> None:
        self._damaged_at = found.base_offset
        # A byte position within a broker's answer is of no use to the user.
        self._context.report(replace(found, topic=self._log.topic, partition=self._log.partition, position=None))

    def _find(
        self,
        severity: Severity,
        reason: str,
        what: str,
        consequence: str,
        address: str | None,
        base_offset: int | None = None,
    ) -> None:
        place = self._place(address or named(self._log.bootstrap))
        topic, partition = self._context.topic, self._context.partition
        self._context.report(
            Finding(severity, reason, what, consequence, topic, partition, file=place, base_offset=base_offset)
        )

    def _place(self, address: str) -> str:
        return f"{address} {self._log.topic}-{self._log.partition}"


def _range_text(first: int, end: int) -> str:
    return f"offset {first}" if end - first == 1 else f"offsets {first} to {end - 1}"


def _range_with_verb(first: int, end: int) -> str:
    return f"{_range_text(first, end)} {'is' if end - first == 1 else 'are'}"
