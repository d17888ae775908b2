"""Simulates applications that consume, produce and commit in one transaction (KIP-98, KIP-447)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from kafka_records.enums import TransactionState
from kafka_records.transaction_state.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from tests.report.classic_lives import ClassicLife
from tests.report.data_directory import OFFSETS, TRANSACTIONS
from tests.report.made_up_cluster import MINUTE, SECOND, MadeCluster, Place

_TIMEOUT_MS: Final = MINUTE
"""`transaction.timeout.ms` of a producer: the default of clients."""


@dataclass
class Transactional:
    """One producer with its transactional id, and the partitions whose offsets it commits for a group."""

    cluster: MadeCluster
    transactional_id: str
    group: str
    output: str
    producer_id: int
    epoch: int = 0
    timeout_ms: int = _TIMEOUT_MS
    _started_ms: int = -1

    def start(self, at_ms: int) -> None:
        """The producer requests its id."""
        self._write(at_ms, TransactionState.EMPTY, None)

    def begin(self, at_ms: int, offsets: dict[Place, int]) -> None:
        """A transaction begins, and some offsets are committed in it."""
        self._started_ms = at_ms
        self._write(at_ms, TransactionState.ONGOING, self._partitions[1:])
        self._write(at_ms + 40, TransactionState.ONGOING, self._partitions)
        self.cluster.commit(self.group, at_ms + 80, offsets, producer_id=self.producer_id)

    def end(self, at_ms: int, control: str = "commit") -> None:
        """The transaction ends: first its state, then the marker, then its state again."""
        commits = control == "commit"
        self.epoch += 1
        before = TransactionState.PREPARE_COMMIT if commits else TransactionState.PREPARE_ABORT
        behind = TransactionState.COMPLETE_COMMIT if commits else TransactionState.COMPLETE_ABORT
        self._write(at_ms, before, self._partitions)
        self.cluster.marker(self.group, at_ms + 12, self.producer_id, control)
        self._write(at_ms + 25, behind, ())

    def commit_late(self, at_ms: int, offsets: dict[Place, int]) -> None:
        """A commit of a transaction that has ended already arrives, from a client older than KIP-890: no coordinator
        knows of it, and nobody will write its marker."""
        self.cluster.commit(self.group, at_ms, offsets, producer_id=self.producer_id)

    @property
    def _partitions(self) -> tuple[PartitionsSchema, ...]:
        own = self.cluster.logs.partition(OFFSETS, self.group)
        output = PartitionsSchema(self.output, (self.producer_id % self.cluster.topic(self.output).partitions,))
        return output, PartitionsSchema(OFFSETS, (own,))

    def _write(self, at_ms: int, state: TransactionState, partitions: tuple[Any, ...] | None) -> None:
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.producer_id,
            producer_epoch=self.epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=state,
            transaction_partitions=partitions,
            transaction_last_update_timestamp_ms=at_ms,
            transaction_start_timestamp_ms=self._started_ms,
            client_transaction_version=2 if self._started_ms >= 0 else 0,
        )
        key = TransactionLogKey(self.transactional_id)
        self.cluster.logs.write(TRANSACTIONS, self.transactional_id, at_ms, (key, value))


@dataclass
class ExactlyOnceLife(ClassicLife):
    """A classic group whose members commit in transactions only; each has its own producer."""

    output: str = ""
    first_producer_id: int = 4000
    producers: list[Transactional] = field(default_factory=list)

    def start(self, at_ms: int, members: int = 2) -> None:
        """Producers request their ids, and the group starts."""
        for number in range(members):
            transactional_id = f"{self.group}-tx-{number}"
            made = Transactional(
                self.cluster, transactional_id, self.group, self.output, self.first_producer_id + number
            )
            made.start(at_ms - 2 * SECOND)
            self.producers.append(made)
        super().start(at_ms, members)

    def commit(self, at_ms: int, places: Any = None, *, behind_ms: int = 2 * SECOND) -> None:
        """Each member does a transaction; one in thirty is aborted and repeated."""
        wanted = set(self.places if places is None else places)
        for producer, share in zip(self.producers, self._shares(), strict=False):
            told = {each: self._consumed(each, at_ms - behind_ms) for each in share if each in wanted}
            if not told:
                continue
            aborts = self.cluster.random.randrange(30) == 0
            if aborts:
                producer.begin(at_ms, told)
                producer.end(at_ms + 900, "abort")
            producer.begin(at_ms + 2 * SECOND * aborts, told)
            producer.end(at_ms + 2 * SECOND * aborts + 300)
            self.done |= told

    def _consumed(self, place: Place, at_ms: int) -> int:
        return max(self.cluster.topics[place[0]].end(place[1], at_ms), self.done.get(place, 0))
