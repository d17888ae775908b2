"""Processes that use one transactional id and fence each other, and producers that only look like it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kafka_records.enums import TransactionState
from kafka_records.transaction_state.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.classic_lives import ClassicLife
from tests.report.data_directory import TRANSACTIONS
from tests.report.made_up_cluster import HOUR, MINUTE, MadeCluster
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context
from tests.report.test_rules_in_detail import _found as _incidents

_STARTS = 12
_EVERY_MS = 4000


class _Producer:
    """Writes the records of a coordinator about a transactional id."""

    def __init__(self, cluster: MadeCluster, name: str, version: int) -> None:
        self._cluster, self._name, self._version, self._epoch = cluster, name, version, 0

    def write(self, at_ms: int, state: TransactionState, *, raises: bool = False) -> None:
        """A record; the coordinator writes its own with its own transaction.version, which is 2."""
        self._epoch += raises
        own = state in (TransactionState.EMPTY, TransactionState.PREPARE_ABORT, TransactionState.COMPLETE_ABORT)
        value = TransactionLogValue(
            producer_id=4,
            previous_producer_id=4,
            producer_epoch=self._epoch,
            transaction_timeout_ms=MINUTE,
            transaction_status=state,
            transaction_partitions=None if state == TransactionState.EMPTY else (PartitionsSchema("orders", (0,)),),
            transaction_last_update_timestamp_ms=at_ms,
            transaction_start_timestamp_ms=at_ms,
            client_transaction_version=2 if own else self._version,
        )
        self._cluster.logs.write(TRANSACTIONS, self._name, at_ms, (TransactionLogKey(self._name), value))

    def transaction(self, at_ms: int) -> None:
        """A transaction of 300 ms."""
        self.write(at_ms, TransactionState.ONGOING)
        self.write(at_ms + 300, TransactionState.PREPARE_COMMIT, raises=self._version >= 2)
        self.write(at_ms + 303, TransactionState.COMPLETE_COMMIT)

    def start(self, at_ms: int, *, is_open: bool) -> None:
        """InitProducerId. An open transaction is aborted first, and the client repeats the request after half a second,
        as librdkafka does."""
        if is_open:
            self.write(at_ms, TransactionState.PREPARE_ABORT, raises=True)
            self.write(at_ms + 3, TransactionState.COMPLETE_ABORT)
            at_ms += 500
        self.write(at_ms, TransactionState.EMPTY, raises=True)


@dataclass(frozen=True)
class _Life:
    """The activity of a transactional id between two starts: some transactions, of which the last may be open when the
    next producer starts, `idle_ms` after the last record."""

    is_open: bool = True
    idle_ms: int = 40
    transactions: int = 2
    version: int = 0


def _found(folder: Path, left: int | None, **lives: _Life) -> dict[str, ReportFinding]:
    """The findings by transactional id; a cleaner has left the last `left` starts."""
    cluster = MadeCluster("fence", END_MS, offsets_partitions=1)
    cluster.needs(TRANSACTIONS, 1)
    first = END_MS - _STARTS * _EVERY_MS
    cluster.cleaned_until_ms = None if left is None else END_MS - left * _EVERY_MS
    group = ClassicLife(cluster, GROUP, ["orders"])
    group.start(END_MS - HOUR)
    group.commits(END_MS - HOUR, END_MS, MINUTE)
    for name, life in lives.items():
        producer = _Producer(cluster, name, life.version)
        producer.start(first - MINUTE, is_open=False)
        for number in range(_STARTS):
            ends = first + (number + 1) * _EVERY_MS - 510
            for at in range(life.transactions):
                producer.transaction(ends - life.idle_ms - 303 - (life.transactions - at) * 330)
            if life.is_open:
                producer.write(ends - life.idle_ms, TransactionState.ONGOING)
            producer.start(ends - (0 if life.is_open else 307 - life.idle_ms), is_open=life.is_open)
    cluster.write(folder)
    found = [each for each in read_report(folder).findings if each.level > Level.NOTE]
    assert {each.kind for each in found} <= {"producers_fence"}
    return {each.transactional_ids[0]: each for each in found}


def test_a_start_that_aborts_was_when_it_aborted(tmp_path: Path) -> None:
    """A client that repeats the request only after a long wait has fenced the other one at once. If one process is
    restarted, its id is unused in between. A producer for each transaction is only slow."""
    found = _found(
        tmp_path,
        None,
        fences=_Life(),
        between=_Life(is_open=False, transactions=3),
        restarts=_Life(idle_ms=1200),
        one_each=_Life(is_open=False, transactions=1),
    )
    assert set(found) == {"fences", "between"}
    one = found["fences"]
    assert (one.level, one.scale) == (Level.HIGH, {"fenced": _STARTS, "transactions_aborted": _STARTS})
    assert [(each.name, each.confidence) for each in one.causes] == [("one_id_twice", "high")]
    assert "until at most 250 ms before" in str(one.refuted_by["restarts"])


def test_a_cleaned_log_has_enough_if_the_epoch_is_high(tmp_path: Path) -> None:
    """The counts are lower bounds. An epoch that every transaction raises shows no starts, and starts that abort
    nothing may be of one process."""
    found = _found(
        tmp_path,
        3,
        fences=_Life(),
        newer=_Life(is_open=False, version=2),
        between=_Life(is_open=False),
        restarts=_Life(idle_ms=1200),
    )
    assert set(found) == {"fences"}
    one = found["fences"]
    assert (one.confidence, one.causes[0].name, len(one.lacked)) == ("medium", "one_id_twice", 1)
    assert list(one.scale) == ["fenced_at_least", "transactions_aborted_at_least"]
    assert 2 <= one.scale["fenced_at_least"] <= 3
    assert "fenced each other at least" in one.problem
    assert "starts and timeouts must have raised it 12 times or more" in one.problem


def test_the_groups_of_fenced_producers_are_part_of_the_incident() -> None:
    """Each fenced process closes its consumer too, so the group rebalances. Another group whose members leave as often
    commits without these producers."""
    times = [END_MS - 2 * MINUTE + number * _EVERY_MS for number in range(_STARTS)]
    start = {"transactional_id": "tx", "producer_id": 7, "idle_ms": 20, "usual_ms": 300, "has_aborted": True}
    starts = [
        {**start, "commits": 1, "is_whole": True, "producer_epoch": at, "log_timestamp_ms": at_ms, "log_offset": at}
        for at, at_ms in enumerate(times)
    ]
    timeline = [
        {"group_id": group, "at_timestamp_ms": at_ms + wait, "event": event, "member_id": f"{group}-{at}"}
        | {"log_partition": 0, "log_offset": 2 * at + (wait > 0), "sequence": 0}
        for group in ("settles", "restless")
        for at, at_ms in enumerate(times)
        for event, wait in (("member_joined", 0), ("member_left", _EVERY_MS - 500))
    ]
    commits: list[dict[str, object]] = [
        {"group_id": "settles", "producer_id": 7},
        {"group_id": "restless", "producer_id": None},
    ]
    context = _context(
        {"producer_starts": starts, "offset_commits": commits},
        transactions=[{"transactional_id": "tx", "producer_epoch": _STARTS}],
        timeline=timeline,
    )
    (found,) = _incidents(context, "producers_fence")
    assert (found.group_ids, found.scale["fenced"]) == (("settles",), _STARTS)
