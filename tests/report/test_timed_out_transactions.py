"""Transactions that take longer than their timeout, and aborts that only look like it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from kafka_records.enums import TransactionState
from kafka_records_tables.report.facts import timed_out_transactions
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule_context import RuleContext
from tests.report.data_directory import OFFSETS, TRANSACTIONS
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import Row, _context, _found, _read
from tests.report.transactional_lives import Transactional

_FIRST = END_MS - 2 * MINUTE
_TIMEOUT = 4 * SECOND
_NAME, _RECORD, _PROCESS = "transaction_times_out", "poison_record", "process_dies"


@dataclass(frozen=True)
class _Loop:
    """A loop of members of one client. Each has two partitions, begins a transaction and leaves."""

    stays: float = 7
    """How many seconds each is a member, with a session timeout of 8 s."""
    aborted: float = 5
    """How many seconds after it joined the coordinator aborts its transaction."""
    timeouts: int = 6
    """The number of transactions that timed out."""
    producer: int | None = 7
    """The producer of the last commits; None if they belonged to no transaction."""
    slowest: float = 0.3
    """How many seconds the longest of the last transactions took that were committed."""


def _event(event: str, at_ms: float, member: str, **detail: Any) -> dict[str, Any]:
    row = {"group_id": GROUP, "event": event, "at_timestamp_ms": int(at_ms), "member_id": member, "sequence": 0}
    return row | {"log_partition": 0, "log_offset": int(at_ms - _FIRST + 10 * MINUTE), "detail": json.dumps(detail)}


def _finding(loop: _Loop) -> ReportFinding:
    commits: list[dict[str, Any]] = []
    history: list[dict[str, Any]] = []
    for partition in range(2):
        for at in range(20):
            from_ms = _FIRST - (20 - at) * SECOND
            row = {"group_id": GROUP, "topic": "orders", "partition": partition, "log_partition": 0, "offset": 50 + at}
            row["log_offset"] = from_ms - _FIRST + 10 * MINUTE
            outcome = {"producer_id": loop.producer, "transaction": "none" if loop.producer is None else "committed"}
            commits.append(row | outcome | {"is_tombstone": False, "log_timestamp_ms": from_ms})
            until = None if at == 19 else from_ms + SECOND
            span = {"valid_from_timestamp_ms": from_ms, "valid_to_timestamp_ms": until, "commits": 1}
            history.append(row | span | {"ended_by": None if until is None else "commit"})
    events, timeouts, at_ms = [], [], float(_FIRST)
    for number in range(6):
        limits = {"session_timeout_ms": 8 * SECOND, "rebalance_timeout_ms": 5 * MINUTE}
        events.append(_event("member_joined", at_ms, f"m{number}", client_id="tax", **limits))
        events.append(_event("assignment_changed", at_ms, f"m{number}", gained={"orders": [0, 1]}))
        aborted_ms = int(at_ms + loop.aborted * SECOND)
        times = {"began_ms": int(at_ms) + 500, "aborted_ms": aborted_ms}
        timeouts.append(times | {"producer_epoch": 20 + 2 * number, "log_offset": 100 + number})
        at_ms += loop.stays * SECOND
        events.append(_event("member_left", at_ms, f"m{number}"))
        at_ms += SECOND
    events.sort(key=lambda each: each["at_timestamp_ms"])
    row = {"transactional_id": "tax-0", "producer_ids": [7], "timeout_ms": _TIMEOUT, "log_partition": 3}
    row |= {"timeouts": timeouts[: loop.timeouts], "slowest_ms": int(loop.slowest * SECOND)}
    row |= {"committed_timestamp_ms": _FIRST - SECOND, "aborts": loop.timeouts, "log_offset": 200}
    other = row | {"transactional_id": "of-others", "producer_ids": [8]}
    lag = {"group_id": GROUP, "topic": "orders", "unread_timestamp_ms": _FIRST, "lag": 40}
    context = _context(
        {"history": history, "offset_commits": commits, "timed_out_transactions": [row, other]},
        timeline=events,
        lag=[lag | {"partition": partition} for partition in range(2)],
        transactions=[{"transactional_id": "tax-0", "producer_id": 7}],
    )
    (found,) = _found(context, "crash_loop")
    return found


def test_members_that_leave_after_their_transactions_timed_out_fail_for_that() -> None:
    found = _finding(_Loop())
    assert [(each.name, each.confidence) for each in found.causes] == [(_NAME, "high")]
    assert found.title == "transactions time out, and members leave and join again, endlessly"
    assert found.transactional_ids == ("tax-0",)
    assert (found.scale["transactions_timed_out"], found.scale["attempts"]) == (6, 6)
    assert found.causes[0].statement.startswith(
        'The transactions of the transactional.id "tax-0" take longer than transaction.timeout.ms (4 s): the '
        "coordinator aborted 6, half of them when they were open for 4.5 s, and none was committed since"
    )
    assert set(found.refuted_by) >= {_RECORD, "fails_at_start"}
    assert found.next[0].what.startswith('Raise transaction.timeout.ms of "tax-0" well above')
    assert not any("--reset-offsets" in (each.command or "") for each in found.next)
    shown = [(each.topic, each.partition, each.offset) for each in found.evidence[:3]]
    assert shown == [(TRANSACTIONS, 3, 100), (TRANSACTIONS, 3, 101), (TRANSACTIONS, 3, 105)]


def test_a_killed_process_leaves_transactions_that_time_out() -> None:
    """It stays a member until its session timeout: then the transaction may only have timed out because of that."""
    found = _finding(_Loop(stays=9))
    assert found.title == "members fail on a record, leave and join again, endlessly"
    assert {_NAME, _RECORD} <= {each.name for each in found.causes}
    assert found.confidence == "medium"
    assert "transactions_timed_out" not in found.scale


@pytest.mark.parametrize(("slowest", "shown"), [(3.1, False), (3.9, True)])
def test_the_last_commits_show_that_transactions_became_slow(slowest: float, shown: bool) -> None:
    found = _finding(_Loop(slowest=slowest))
    text = f"of the last transactions of tax-0 that were committed, one took {slowest} s"
    assert (text in [each.shows for each in found.causes[0].evidence_for]) == shown


@pytest.mark.parametrize(
    "loop",
    [_Loop(aborted=7.5), _Loop(timeouts=2), _Loop(timeouts=4), _Loop(producer=None), _Loop(producer=9)],
    ids=["after they left", "few", "of some members", "commits without transactions", "another producer"],
)
def test_other_timeouts_are_no_cause(loop: _Loop) -> None:
    found = _finding(loop)
    assert _NAME not in {each.name for each in found.causes} | set(found.refuted_by)


def _stop(*, timeouts: int = 4, joined_ms: int = _FIRST - HOUR, slowest: int = 300, producer: int = 7) -> ReportFinding:
    """The finding about a group with a member that stopped two minutes ago, while its transactions timed out."""
    place = {"group_id": GROUP, "topic": "orders", "partition": 0, "log_partition": 0}
    since = {"since_timestamp_ms": _FIRST, "commit_timestamp_ms": _FIRST, "wait_ms": 2 * MINUTE}
    times = [
        {"began_ms": at_ms, "aborted_ms": at_ms + 5 * SECOND, "producer_epoch": 9, "log_offset": at_ms - _FIRST}
        for at_ms in range(_FIRST, _FIRST + timeouts * 10 * SECOND, 10 * SECOND)
    ]
    row = {"transactional_id": "tax-0", "producer_ids": [7], "timeout_ms": _TIMEOUT, "timeouts": times}
    row |= {"slowest_ms": slowest, "committed_timestamp_ms": _FIRST, "log_partition": 3, "log_offset": 200}
    commit = place | {"offset": 5, "producer_id": producer, "transaction": "committed", "is_tombstone": False}
    context = _context(
        {"offset_commits": [commit | {"log_offset": 1, "log_timestamp_ms": _FIRST}], "timed_out_transactions": [row]},
        progress=[place | since | {"state": "stopped", "end_offset": 50}],
        lag=[place | {"lag": 45, "offset": 5, "member_id": "m"}],
        groups=[{"group_id": GROUP, "member_count": 1}],
        members=[{"group_id": GROUP, "member_id": "m", "client_id": "tax"}],
        timeline=[_event("member_joined", joined_ms, "m", client_id="tax")],
        transactions=[{"transactional_id": "tax-0", "producer_id": 7}],
    )
    (found,) = _found(context, "group_stands_still")
    return found


@pytest.mark.parametrize(
    ("given", "causes"),
    [
        ({}, [(_NAME, "high")]),
        ({"joined_ms": END_MS - SECOND, "slowest": 3900}, [(_NAME, "high")]),
        ({"joined_ms": END_MS - SECOND}, [(_NAME, "medium"), ("application_hangs", "medium")]),
        ({"timeouts": 2}, [("application_hangs", "high")]),
        ({"producer": 9}, [("application_hangs", "high")]),
    ],
    ids=["stayed", "slow before", "joined later", "few", "another producer"],
)
def test_a_group_stands_still_while_its_transactions_time_out(
    given: dict[str, int], causes: Sequence[tuple[str, str]]
) -> None:
    """Its members stay, because only their producers are replaced."""
    assert [(each.name, each.confidence) for each in _stop(**given).causes] == causes


@dataclass(frozen=True)
class _Abort:
    """The end of a transaction without a commit."""

    after: int
    """Milliseconds from its beginning until its abort."""
    raises: bool = True
    restarts: bool = True


def _rows(folder: Path, aborts: Sequence[_Abort]) -> list[Row]:
    """The rows about a transactional id: a transaction of two seconds that is committed, and then the given ones."""
    cluster = MadeCluster("timeouts", END_MS, offsets_partitions=1)
    cluster.logs.partitions = {OFFSETS: 1, TRANSACTIONS: 1}
    cluster.topic("orders", 4)
    cluster.topic("enriched", 4)
    life = Transactional(cluster, "exporter", "billing", "enriched", 200, timeout_ms=_TIMEOUT)
    at_ms = END_MS - HOUR
    life.start(at_ms)
    life.begin(at_ms, {("orders", 0): 50})
    life._write(at_ms + 5 * SECOND, TransactionState.PREPARE_ABORT, life._partitions)
    life._write(at_ms + 5 * SECOND, TransactionState.COMPLETE_ABORT, ())
    life.begin(at_ms + MINUTE, {("orders", 0): 50})
    life.end(at_ms + MINUTE + 2 * SECOND)
    for number, abort in enumerate(aborts, start=2):
        began = at_ms + number * MINUTE
        life.begin(began, {("orders", 0): 60})
        life.epoch += abort.raises
        life._write(began + abort.after, TransactionState.PREPARE_ABORT, life._partitions)
        life._write(began + abort.after + 3, TransactionState.COMPLETE_ABORT, ())
        if abort.restarts:
            life.epoch += 1
            life.start(began + abort.after + SECOND)
    cluster.write(folder)
    return _read(timed_out_transactions.TABLE, folder)


def test_timeouts_are_long_raise_the_epoch_and_fence_the_producer(tmp_path: Path) -> None:
    """Others are aborts of the application or of its next start."""
    slow = _Abort(4500)
    (row,) = _rows(
        tmp_path, [slow, replace(slow, after=900), replace(slow, raises=False), replace(slow, restarts=False), slow]
    )
    assert (row["transactional_id"], row["producer_ids"], row["timeout_ms"]) == ("exporter", [200], _TIMEOUT)
    assert (row["committed_timestamp_ms"], row["slowest_ms"]) == (END_MS - HOUR + MINUTE + 2 * SECOND, 2 * SECOND)
    began = [END_MS - HOUR + number * MINUTE for number in (2, 6)]
    assert [each["began_ms"] for each in row["timeouts"]] == began
    assert [each["aborted_ms"] - each["began_ms"] for each in row["timeouts"]] == [4500, 4500]
    assert row["aborts"] == 5


def test_without_timeouts_there_is_no_row(tmp_path: Path) -> None:
    assert _rows(tmp_path, [_Abort(900), _Abort(4500, raises=False)]) == []


def test_of_committed_transactions_only_the_last_durations_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives: list[timed_out_transactions._Life] = []
    finish = timed_out_transactions.Reader.finish

    def seen(self: timed_out_transactions.Reader) -> Any:
        lives.extend(self._lives.values())
        return finish(self)

    monkeypatch.setattr(timed_out_transactions.Reader, "finish", seen)
    cluster = MadeCluster("commits", END_MS, offsets_partitions=1)
    cluster.logs.partitions = {OFFSETS: 1, TRANSACTIONS: 1}
    cluster.topic("orders", 4)
    cluster.topic("enriched", 4)
    life = Transactional(cluster, "exporter", "billing", "enriched", 200, timeout_ms=_TIMEOUT)
    life.start(END_MS - HOUR)
    # The first of seven is the slowest, and five count.
    for number, lasts in enumerate((3900, 3800, 900, 800, 1700, 600, 500)):
        began = END_MS - HOUR + number * MINUTE
        life.begin(began, {("orders", 0): 50 + number})
        life.end(began + lasts)
    life.begin(END_MS - MINUTE, {("orders", 0): 60})
    life.epoch += 1
    life._write(END_MS - MINUTE + 4500, TransactionState.PREPARE_ABORT, life._partitions)
    cluster.write(tmp_path)
    (row,) = _read(timed_out_transactions.TABLE, tmp_path)
    assert (row["slowest_ms"], row["committed_timestamp_ms"]) == (1700, END_MS - HOUR + 6 * MINUTE + 500)
    (known,) = lives
    assert list(known.durations) == [900, 800, 1700, 600, 500]
    assert known.records[0].status == TransactionState.PREPARE_COMMIT
    assert len(known.records) <= 5


def test_the_log_of_transactions_is_not_read_for_commits_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    look = RuleContext.look

    def noted(self: RuleContext, table: Any, *others: Any, **options: Any) -> Any:
        looks.append(table if isinstance(table, str) else table.name)
        return look(self, table, *others, **options)

    monkeypatch.setattr(RuleContext, "look", noted)
    _finding(_Loop(producer=None))
    assert timed_out_transactions.TABLE.name not in looks
    _finding(_Loop())
    assert timed_out_transactions.TABLE.name in looks
