"""Aborts a hanging transaction, which no coordinator would end. Unlike Kafka's own tool, this module asks coordinators
first, and never aborts a transaction with an owner. A transactional id in state Ongoing, PrepareCommit or PrepareAbort
owns every open transaction with its producer id, because its producer or its coordinator will end that transaction
(KIP-664)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.missing_rights import AbsentTopic
from kafka_records_engine.sources.right_words import lacks_right
from kafka_records_engine.sources.transaction_requests import ActiveProducer, MarkerAnswerLost
from kafka_records_tables.read import read_table
from kafka_records_tables.tables.open_transactions import LIVE_STATES
from kafka_records_tables.topics import TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources.live import LiveBrokers
    from kafka_records_engine.sources.transaction_requests import TransactionRequests

_CLUSTER: Final = "the cluster (CLUSTER_ACTION does as well)"
RIGHT: Final = f"the right ALTER on {_CLUSTER}"
"""The right that a WriteTxnMarkers request needs (`KafkaApis.handleWriteTxnMarkersRequest`)."""

_NOT_AUTHORIZED: Final = "CLUSTER_AUTHORIZATION_FAILED"


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """An open transaction in a partition, and the outcome of an attempt to abort it."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    first_offset: int
    last_timestamp_ms: int
    last_stable_offset: int | None
    """The offset where the transaction begins in this partition."""
    end_offset: int | None
    """The high watermark."""
    transactional_id: str | None
    """The transactional id that uses this producer id; None if there is none."""
    state: str | None
    refusal: str | None
    """The reason not to abort the transaction, and what to do instead; None if the transaction hangs."""
    is_aborted: bool = False
    error: str | None = None
    """Why the marker was not written."""

    @property
    def held_back(self) -> int | None:
        """The number of offsets that this transaction hides from readers of committed records; 0 if an earlier open
        transaction already hides them."""
        if self.last_stable_offset is None or self.end_offset is None:
            return None
        return self.end_offset - self.first_offset if self.first_offset <= self.last_stable_offset else 0


class NoSuchTransaction(LogSourceError):
    """The partition has no open transaction that matches the request, or more than one."""


def open_transactions_of(source: LiveBrokers, topic: str, partition: int) -> list[OpenTransaction]:
    """The open transactions in a partition of a running cluster, each with the reason not to abort it, if any.

    Raises LogSourceError if brokers do not answer or the topic may not be read.
    """
    requests = source.transaction_requests()
    producers = requests.open_producers((topic, partition))
    ends = requests.ends((topic, partition))
    entries = _entries(source, requests, producers)
    return [
        OpenTransaction(
            topic,
            partition,
            each.producer_id,
            each.producer_epoch,
            each.coordinator_epoch,
            each.first_offset,
            each.last_timestamp_ms,
            ends.last_stable_offset,
            ends.high_watermark,
            entry.get("transactional_id"),
            entry.get("state"),
            refusal_of(entry),
        )
        for each in producers
        for entry in (entries.get(each.producer_id, {}),)
    ]


def abort_transaction(
    source: LiveBrokers,
    topic: str,
    partition: int,
    *,
    start_offset: int | None = None,
    producer_id: int | None = None,
    execute: bool = False,
) -> OpenTransaction:
    """Abort a transaction that hangs in a partition, given its start offset, its producer id, or both.

    Without `execute`, nothing is changed. With `execute`, a transaction without a `refusal` is aborted with
    WriteTxnMarkers and then looked up again: `is_aborted` says whether it has ended, and `error` has the leader's
    answer if it has not.

    Raises
    ------
    NoSuchTransaction
        If no open transaction matches, or several do. The text lists them.
    LogSourceError
        If brokers do not answer, or a right to read is missing.
    ValueError
        If neither `start_offset` nor `producer_id` is given.

    Examples
    --------
    >>> from kafka_records_engine.sources.live import LiveBrokers
    >>> abort_transaction(LiveBrokers("broker-1:9092"), "orders", 0, start_offset=5).refusal
    """
    if start_offset is None and producer_id is None:
        raise ValueError("identify the transaction by start_offset, producer_id, or both")
    found = open_transactions_of(source, topic, partition)
    meant = [
        each for each in found if start_offset in (None, each.first_offset) and producer_id in (None, each.producer_id)
    ]
    if len(meant) != 1:
        there = ", ".join(f"producer {each.producer_id} from offset {each.first_offset}" for each in found)
        which = [
            *([] if start_offset is None else [f"at offset {start_offset}"]),
            *([] if producer_id is None else [f"of producer {producer_id}"]),
        ]
        what = f"{topic}-{partition}: no transaction {' '.join(which)} is open; open there: {there or 'none'}"
        raise NoSuchTransaction(source.name, what)
    return carry_out(source, meant[0]) if execute and meant[0].refusal is None else meant[0]


def carry_out(source: LiveBrokers, planned: OpenTransaction) -> OpenTransaction:
    """Abort a transaction unless it has ended or has an owner by now, and look up the outcome."""
    place = planned.topic, planned.partition
    (now,) = [each for each in open_transactions_of(source, *place) if _is_same(each, planned)] or [
        replace(planned, refusal="it has ended in the meantime, by another marker")
    ]
    if now.refusal is not None:
        return now
    requests = source.transaction_requests()
    error = None
    try:
        error = requests.abort(place, _producer(now))
    except MarkerAnswerLost as lost:
        error = f"no response came: {lost}"
    if error == _NOT_AUTHORIZED:
        error = lacks_right(requests.who, "ALTER", _CLUSTER, "write markers")
    left = requests.open_producers(place)
    is_aborted = all((each.producer_id, each.first_offset) != (now.producer_id, now.first_offset) for each in left)
    ends = requests.ends(place)
    return replace(
        now,
        last_stable_offset=ends.last_stable_offset,
        end_offset=ends.high_watermark,
        is_aborted=is_aborted,
        error=(
            None
            if is_aborted
            else error or "the leader has written the marker, but still reports the transaction as open"
        ),
    )


def _is_same(one: OpenTransaction, other: OpenTransaction) -> bool:
    return (one.producer_id, one.producer_epoch, one.first_offset) == (
        other.producer_id,
        other.producer_epoch,
        other.first_offset,
    )


def _producer(planned: OpenTransaction) -> ActiveProducer:
    return ActiveProducer(
        planned.producer_id,
        planned.producer_epoch,
        planned.coordinator_epoch,
        planned.first_offset,
        planned.last_timestamp_ms,
    )


def _entries(
    source: LiveBrokers, requests: TransactionRequests, producers: Sequence[ActiveProducer]
) -> dict[int, Mapping[str, Any]]:
    """What is known about transactional ids, by producer id: the live one, if any."""
    ids = {each.producer_id for each in producers}
    found: dict[int, Mapping[str, Any]] = {}
    told = [{"producer_id": each.producer_id, **each._asdict()} for each in requests.known_transactions(ids)]
    unknown = ids.difference(each["producer_id"] for each in told)
    if unknown:
        # Coordinators omit transactions that the user may not describe, but the topic of transactions contains all of
        # them.
        try:
            rows = read_table("transactions", source)
            if not rows.is_complete:
                raise LogSourceError(
                    source.name, f"{TRANSACTIONS} was not read completely, so their owners are unknown"
                )
            told += rows.table.filter(pc.is_in(rows.table["producer_id"], pa.array([*unknown], pa.int64()))).to_pylist()
        except AbsentTopic:
            pass
    for each in sorted(told, key=lambda each: each["state"] in LIVE_STATES):
        found[each["producer_id"]] = each
    return found


def refusal_of(entry: Mapping[str, Any]) -> str | None:
    """Why a transaction may not be aborted, according to the coordinator of its transactional id; None if it has no
    owner."""
    if entry.get("state") not in LIVE_STATES:
        return None
    who, state = entry["transactional_id"], entry["state"]
    if state != "Ongoing":
        return f"transactional id {who} is in state {state}: its coordinator is about to write the marker; wait for it"
    return (
        f"transactional id {who} owns it ({state}): its producer ends it, or its coordinator after "
        f"{entry['timeout_ms']} ms. To end it now, fence the producer: InitProducerId, which a new producer with this "
        "transactional id sends when it starts, and Admin.fenceProducers"
    )
