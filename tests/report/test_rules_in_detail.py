"""What rules say about cases that are similar to others, with synthetic rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_records.enums import TransactionState
from kafka_records_engine.log.reading.unread import Unread, UnreadAsked
from kafka_records_engine.sources.given import source_of
from kafka_records_tables.engines.checked_request import question_of
from kafka_records_tables.read import Engine, read_answers
from kafka_records_tables.report.causes import with_causes
from kafka_records_tables.report.facts import first_uses, log_times, producer_starts
from kafka_records_tables.report.facts.group_facts import LogEnds, MemberLife, Span
from kafka_records_tables.report.facts.group_work import work_of
from kafka_records_tables.report.facts.share_deliveries import Covered
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import Evidence, ReportFinding, ReportRequest
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules import (
    RULES,
    crash_loops,
    shared_group_ids,
    slow_groups,
    stuck_partitions,
    usual_scaling,
)
from kafka_records_tables.report.thresholds import thresholds_of
from kafka_records_tables.tables import TABLES
from kafka_records_tables.tables.declaration import Table
from kafka_records_tables.topics import TRANSACTIONS
from tests.report.data_directory import OFFSETS
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS
from tests.report.transactional_lives import Transactional

Row = Mapping[str, Any]
_RULES = {rule.kind: rule for rule in RULES}
_WORKER = {"producer_epoch": 0, "timeout_ms": 900_000, "log_partition": 0, "log_offset": 1}


def _table(declared: Table, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([dict(each) for each in rows], schema=declared.schema)


def _context(looks: Mapping[str, Sequence[Row]] | None = None, **tables: Sequence[Row]) -> RuleContext:
    request = ReportRequest("rows", (), END_MS, END_MS, False, 7 * 24 * HOUR, None, (), "of a test", "local")
    return RuleContext(
        request,
        {name: _table(TABLES[name], rows) for name, rows in tables.items()},
        (),
        thresholds_of(None),
        second_look=lambda declared, _, topic, __: _table(
            declared, [row for row in (looks or {}).get(declared.name, ()) if topic is None or row["topic"] == topic]
        ),
    )


def _read(declared: Table, folder: Path) -> list[Row]:
    found = read_answers(question_of([declared]), source_of(folder), Engine(1, None, None))[declared.name]
    rows: list[Row] = found.table.to_pylist()
    return rows


def _found(context: RuleContext, kind: str) -> list[ReportFinding]:
    rule = _RULES[kind]
    cases = rule.cases(context).to_pylist()
    return [with_causes(context, rule, case, rule.tell(context, case)) for case in cases]


def _transactions() -> list[Row]:
    """One is silent for a quarter of an hour; its sibling, whose producer id is higher, has just committed."""
    return [
        {
            **_WORKER,
            "transactional_id": "worker-0",
            "producer_id": 1000,
            "state": "Ongoing",
            "start_timestamp_ms": END_MS - 15 * MINUTE,
            "last_update_timestamp_ms": END_MS - 15 * MINUTE,
        },
        {
            **_WORKER,
            "transactional_id": "worker-1",
            "producer_id": 2000,
            "state": "CompleteCommit",
            "start_timestamp_ms": END_MS - 2 * SECOND,
            "last_update_timestamp_ms": END_MS - SECOND,
        },
    ]


@pytest.mark.parametrize(
    ("ratio", "causes"),
    [("0.5", ["cleaner_failed_here", "no_cleaner", "cleaner_slow"]), ("0.7", ["settings"])],
    ids=["default", "larger"],
)
def test_a_dirty_ratio_has_a_cleaner_wait_only_if_it_is_larger(ratio: str, causes: list[str]) -> None:
    """100 of the 150 bytes that a cleaner counts are dirty. The newest file does not count."""
    sizes = [(0, 50, None), (10, 100, END_MS - HOUR), (20, 100, None)]
    log = {"topic": OFFSETS, "partition": 0, "cleaner_offset": 10, "segments": 3, "bytes": 250}
    looks = {
        "log_sizes": [
            {**log, "sizes": [dict(zip(("offset", "bytes", "timestamp_ms"), each, strict=True)) for each in sizes]}
        ],
        "configs": [
            {
                "resource_type": "topic",
                "resource_name": OFFSETS,
                "name": "min.cleanable.dirty.ratio",
                "value": ratio,
                "is_sensitive": False,
            }
        ],
    }
    ends = [{"topic": OFFSETS, "partition": 0, "high_watermark": 30}]
    (found,) = _found(_context(looks, log_ends=ends), "log_not_cleaned")
    assert [each.name for each in found.causes] == causes


def _first(name: str, age_ms: int, *, is_new: bool = True) -> Row:
    return {
        "transactional_id": name,
        "is_new": is_new,
        "log_timestamp_ms": END_MS - age_ms,
        "log_partition": 0,
        "log_offset": 0,
    }


@pytest.mark.parametrize(
    ("first", "causes"),
    [
        ([_first("worker-1", HOUR)], [("instance_hangs", "high")]),
        ([_first("worker-1", MINUTE)], [("instance_died", "medium"), ("instance_hangs", "low")]),
        ([_first("worker-1", MINUTE, is_new=False)], [("instance_died", "medium"), ("instance_hangs", "medium")]),
        ([], [("instance_died", "medium"), ("instance_hangs", "medium")]),
    ],
    ids=["a healthy pool", "a successor", "a cleaner was there", "nothing is known"],
)
def test_a_sibling_of_a_silent_instance_is_no_successor(first: list[Row], causes: list[tuple[str, str]]) -> None:
    (found,) = _found(_context({"first_uses": first}, transactions=_transactions()), "transaction_of_dead_instance")
    assert [(each.name, each.confidence) for each in found.causes] == causes
    assert ("its successor" in found.title) == (causes[0][0] == "instance_died")


@pytest.mark.parametrize(("silent_ms", "count"), [(SECOND, 1), (30 * SECOND, 0)])
def test_where_others_are_as_silent_transactions_are_long(silent_ms: int, count: int) -> None:
    """A program that commits once a minute has such transactions: all began with the last commit."""
    first, other = _transactions()
    at_ms = END_MS - silent_ms
    other = {**other, "state": "Ongoing", "start_timestamp_ms": at_ms, "last_update_timestamp_ms": at_ms}
    assert len(_found(_context(transactions=[first, other]), "transaction_of_dead_instance")) == count


def test_who_reads_uncommitted_records_does_not_wait() -> None:
    """Its offset is after the first record of the transaction."""
    open_one, done = _transactions()
    place = {"topic": "orders", "partition": 0}
    transaction = {**open_one, "partitions": [{"topic": "orders", "partitions": [0]}]}
    started = {**place, "producer_id": open_one["producer_id"], "first_offset": 10}
    lag = [
        {**place, "group_id": group, "offset": at, "lag": 30 - at, "held_back": 5}
        for group, at in (("g", 10), ("h", 28))
    ]
    (found,) = _found(
        _context(transactions=[transaction, done], open_transactions=[started], lag=lag), "transaction_of_dead_instance"
    )
    assert (found.group_ids, found.scale["records_waiting"]) == (("g",), 20)


def test_an_abort_of_the_application_is_none_of_a_start(tmp_path: Path) -> None:
    """A start raises the epoch before it aborts; in transactions of version 2 every end does, so that time decides."""
    cluster = MadeCluster("starts", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.logs.partitions = {OFFSETS: 1, TRANSACTIONS: 1}
    cluster.topic("orders", 4)
    life = Transactional(cluster, "exporter", "billing", "enriched", 200)
    at_ms = END_MS - HOUR
    life.start(at_ms)
    for number, (raises, waits_ms) in enumerate(((0, 100), (1, 100), (1, 5 * SECOND))):
        began = at_ms + number * MINUTE
        life.begin(began, {("orders", 0): 50_000})
        life.epoch += raises
        life._write(began + SECOND, TransactionState.PREPARE_ABORT, life._partitions)
        life._write(began + SECOND, TransactionState.COMPLETE_ABORT, ())
        life.epoch += 1
        life.start(began + SECOND + waits_ms)
    cluster.write(tmp_path / "data")
    rows = _read(producer_starts.TABLE, tmp_path / "data")
    assert [each["has_aborted"] for each in rows] == [False, True, False]
    (first,) = _read(first_uses.TABLE, tmp_path / "data")
    assert (first["transactional_id"], first["is_new"], first["log_timestamp_ms"]) == ("exporter", True, at_ms)


def test_a_range_that_a_moved_start_has_cut_is_told_once() -> None:
    seen = Covered()
    assert seen.add(10, 20) == [(10, 20)]
    assert seen.add(15, 20) == []
    assert seen.add(5, 30) == [(5, 9), (21, 30)]
    assert seen.add(40, 41) == [(40, 41)]
    assert seen.add(31, 50) == [(31, 39), (42, 50)]
    assert seen.add(5, 50) == []
    assert seen.add(51, 51) == [(51, 51)]
    assert seen.add(1, 2) == [(1, 2)]


def _spans(*offsets: tuple[int, int]) -> list[Span]:
    return [Span(offset, from_ms, None, None, 0, 0, None, 1) for offset, from_ms in offsets]


def test_a_partition_that_is_idle_does_not_go_on() -> None:
    """A partition that moved before the others stopped does not count as continuing either."""
    stuck = stuck_partitions.StuckPartition("orders", 0, 7, 5, 1000, _spans((7, 900))[0], [])
    spans = {
        ("g", "orders", 0): _spans((5, 800), (7, 900)),
        ("g", "orders", 1): _spans((5, 800), (9, 950)),
        ("g", "orders", 2): _spans((0, 2000)),
        ("other", "orders", 1): _spans((5, 800), (9, 2000)),
    }
    assert crash_loops._others_that_move(spans, "g", [stuck]) == 0
    spans["g", "orders", 3] = _spans((5, 800), (9, 1100))
    assert crash_loops._others_that_move(spans, "g", [stuck]) == 1


def test_members_that_come_and_go_while_there_is_nothing_to_read_hide_no_loop() -> None:
    """There is one record an hour, which is read at once; six members join and leave each hour. All of them fail on the
    last record."""
    spans = [Span(at, at * HOUR, (at + 1) * HOUR if at < 21 else None, None, 0, at, None, 1) for at in range(22)]
    samples = [{"offset": at, "timestamp_ms": (at + 1) * HOUR - SECOND} for at in range(22)]
    ends = {"topic": "orders", "partition": 0, "samples": samples, "exact_from": 0}
    lives = [_life("orders", at * 10 * MINUTE, at * 10 * MINUTE + MINUTE) for at in range(22 * 6 + 6)]
    for each in lives:
        each.places.add(("orders", 0))
    row = {"topic": "orders", "partition": 0, "lag": 1, "unread_timestamp_ms": 22 * HOUR - SECOND}
    stuck = crash_loops._stuck(_context({"log_samples": [ends]}), row, spans, lives)
    assert stuck is not None
    assert (len(stuck.attempts), stuck.usual) == (6, 0)


def _life(topic: str, joined_ms: int, left_ms: int | None) -> MemberLife:
    left_at = None if left_ms is None else left_ms
    return MemberLife("g", f"{topic}-{joined_ms}", joined_ms, joined_ms, 0, topic, left_ms=left_ms, left_at=left_at)


def test_rebalances_after_one_application_has_left_are_its_own() -> None:
    """Nothing after the moment at which it left counts."""
    one = shared_group_ids.Application({"a"}, [_life("a", 10, 100)])
    other = shared_group_ids.Application({"b"}, [_life("b", 20, 30), _life("b", 40, 300), _life("b", 200, 250)])
    assert shared_group_ids._changes([one, other], 20) == [20, 30, 40, 100]


@pytest.mark.parametrize(
    ("before", "names"),
    [
        ((10.0, 12.0), {"work_slower": True, "more_written": True}),
        ((20.0, 12.0), {"work_slower": True, "more_written": False}),
        ((10.0, 5.0), {"work_slower": False, "more_written": True}),
    ],
)
def test_where_no_speed_has_changed_both_causes_remain(before: tuple[float, float], names: dict[str, bool]) -> None:
    growth = slow_groups.Growth([], 0, 10_000, 50, 100, 120, before, _spans((1, 1))[0], 0, 5, 0)
    evidence = Evidence("rows")
    weighed = slow_groups._weighed("g", "t", growth, evidence)
    assert {name: each.refuted_by is None for name, each in weighed.items()} == names
    if all(names.values()):
        assert not any(each.evidence_for for each in weighed.values())


@pytest.mark.parametrize(("before", "level"), [(None, Level.HIGH), ((10.0, 10.0), Level.NOTE)])
def test_a_backlog_is_usual_only_if_the_time_before_is_long_enough(
    before: tuple[float, float] | None, level: Level
) -> None:
    growth = slow_groups.Growth([], 5000, 15_000, 130, 40, 170, before, _spans((1, 1))[0], 0, 0, 2)
    finding = slow_groups._incident(_context(), "g", "t", growth).finding
    assert finding.level == level
    assert ("thresholds decide" in finding.problem) == (level == Level.HIGH)


@pytest.mark.parametrize(("state", "is_usual"), [("idle", True), ("stalled or stopped", False), (None, False)])
def test_a_group_that_always_scales_is_usual_only_if_no_partition_may_fall_behind(
    state: str | None, is_usual: bool
) -> None:
    changes = [
        {"group_id": "g", "event": "epoch", "at_timestamp_ms": at * MINUTE, "member_count": 1 + at % 3, "detail": "{}"}
        for at in range(24)
    ]
    states = [{"group_id": "g", "state": each} for each in ("ok", state)]
    assert bool(usual_scaling.usual_of_scaling(_context(timeline=changes, progress=states), ["g"])) == is_usual


def test_a_group_that_never_commits_has_all_records_to_read() -> None:
    """This applies to the partitions that its members have, as far as their logs are in the source."""
    assigned = [{"group_id": "g", "group_kind": "classic", "topic": "orders", "partition": each} for each in range(3)]
    ends = [{"topic": "orders", "partition": each, "log_start_offset": 5, "log_end_offset": 30} for each in range(2)]
    work = work_of(_context(assignments=assigned, log_ends=ends), "g", 0)
    assert (work.topics, work.waiting) == (("orders",), 50)
    assert work.words == ' It has no offsets for "orders" (partitions 0-1), whose logs have 50 records.'
    assert work_of(_context(assignments=assigned), "g", 0).words == ""


def test_rows_that_rules_have_looked_up_with_options_are_not_given_twice() -> None:
    context = _context({"history": [{"group_id": "g", "topic": "t", "offset": 1}]})
    context.look("history", ["g"])
    context.look("history", ["g"], times=True)
    rows = context.looked_up("history")
    assert rows is not None
    assert rows.num_rows == 1
    assert context.looked_up("lag") is None


def test_when_a_record_was_there_is_known_only_where_every_batch_is() -> None:
    samples = [{"offset": offset, "timestamp_ms": offset * 100} for offset in (10, 20)]
    ends = LogEnds([{"topic": "t", "partition": 0, "samples": samples, "exact_from": 11}])
    assert [ends.written_ms(("t", 0), offset) for offset in (9, 11, 20, 21)] == [None, 2000, 2000, None]


def test_brokers_are_asked_when_records_were_written_to_find_a_group_that_is_too_slow() -> None:
    """It reads all of the 30 records per second for 20 seconds, then 10 per second."""
    began = END_MS - 80 * SECOND
    committed = [30 * at if at <= 20 else 600 + 10 * (at - 20) for at in range(80)]
    place = {"group_id": "g", "topic": "orders", "partition": 0}
    history = [
        {
            **place,
            "offset": offset,
            "valid_from_timestamp_ms": began + at * SECOND,
            "log_partition": 0,
            "log_offset": at,
        }
        for at, offset in enumerate(committed)
    ]
    log = {"topic": "orders", "partition": 0, "log_start_offset": 0, "log_end_offset": 2400}

    def unread(asked: Sequence[UnreadAsked]) -> Iterator[tuple[UnreadAsked, Unread]]:
        for each in asked:
            unknown = np.full(len(each.offsets), -1, np.int64)
            yield each, Unread(unknown, unknown, began + each.offsets * 1000 // 30, unknown + 1)

    parts = {"history": _table(TABLES["history"], history), "log_ends": _table(TABLES["log_ends"], [log])}
    asking: Any = SimpleNamespace(log=SimpleNamespace(unread=unread))
    times = [row for rows in log_times.joined(parts, asking) for row in rows.to_pylist()]
    lag = {**place, "offset": committed[-1], "end_offset": 2400, "lag": 2400 - committed[-1]}
    looks = {
        "history": history,
        "log_times": times,
        "lag": [{**lag, "unread_timestamp_ms": began + committed[-1] * 1000 // 30}],
    }
    context = _context(looks, lag=[lag], groups=[{"group_id": "g", "member_count": 1}], members=[{"group_id": "g"}])
    (found,) = _found(replace(context, bootstrap="broker:9092"), "too_slow")
    assert [each.name for each in found.causes] == ["work_slower"]
    assert abs((found.since_timestamp_ms or 0) - began - 20 * SECOND) < 3 * SECOND
    assert "reads 10.0 records per second" in found.problem
    assert "and it never had one of this size." in found.problem


def test_a_stop_names_what_goes_on_and_no_wait_that_is_unknown() -> None:
    """A partition with nothing to read is not at work."""
    row = {"group_id": "g", "topic": "orders", "log_partition": 0, "moment_timestamp_ms": END_MS}
    stopped = {**row, "partition": 0, "state": "stopped", "wait_ms": MINUTE, "commit_timestamp_ms": END_MS - HOUR}
    others = [{**row, "partition": number, "state": state} for number, state in ((1, "idle"), (2, "idle"), (3, "ok"))]
    lags = [{"group_id": "g", "topic": "orders", "partition": number} for number in range(4)]
    context = _context(
        progress=[stopped, *others],
        lag=lags,
        groups=[{"group_id": "g", "member_count": 1}],
        members=[{"group_id": "g", "member_id": "m", "client_id": "c"}],
    )
    (found,) = _found(context, "group_stands_still")
    assert "never waited" not in found.problem
    assert found.problem.endswith(" 1 other partition goes on.")


@pytest.mark.parametrize("waits", [True, False])
def test_a_member_that_holds_back_nobody_is_no_finding(waits: bool) -> None:
    asked = END_MS - 5 * MINUTE
    place = {"group_id": "g", "topic": "orders", "partition": 0, "log_partition": 0, "log_timestamp_ms": asked}
    held = {**place, "member_id": "m", "role": "pending_revocation"}
    member = {"group_id": "g", "client_host": "/h", "rebalance_timeout_ms": MINUTE}
    context = _context(
        assignments=[held, {**place, "member_id": "n", "role": "target"}],
        members=[{**member, "member_id": each, "client_id": each} for each in ("m", "n")[: 1 + waits]],
        lag=[],
    )
    found = _found(context, "partitions_not_given_up")
    assert len(found) == waits
    assert all("timeout of 1 min ended at " in each.problem for each in found)


def _config(name: str, value: str, of: str = "orders", kind: str = "topic") -> Row:
    return {"resource_type": kind, "resource_name": of, "name": name, "value": value, "is_sensitive": False}


@pytest.mark.parametrize(
    ("configs", "cause", "sentence", "step"),
    [
        ([_config("retention.ms", "60000")], "too_slow", "keeps records for 1 min", "retention.ms=604800000"),
        (
            [_config("retention.ms", "-1"), _config("retention.bytes", "5000")],
            "too_much",
            "no record by its age",
            "retention.bytes=-1",
        ),
        ([_config("retention.ms", "-1")], "by_hand", "no record by its age", "kafka-delete-records"),
    ],
)
def test_what_deletes_records_before_they_are_read(configs: list[Row], cause: str, sentence: str, step: str) -> None:
    """Each partition has a different start."""
    places = {each: {"group_id": "g", "topic": "orders", "partition": each} for each in (0, 1)}
    history = []
    for place in places.values():
        for number, offset in enumerate((0, 10, 20, 30, 40, 50, 1050)):
            history.append(
                {
                    **place,
                    "offset": offset,
                    "valid_from_timestamp_ms": END_MS - MINUTE + number * SECOND,
                    "log_partition": 0,
                    "log_offset": number,
                    "commits": 1,
                }
            )
    # The second partition has been read to its end by now.
    logs = {number: {"log_start_offset": 1000 + number, "lag": 9 * (number == 0), "lost": 0} for number in places}
    lag = [{**place, **logs[number]} for number, place in places.items()]
    (found,) = _found(_context({"configs": configs, "history": history}, lag=lag), "deleted_before_read")
    assert found.causes[0].name == cause
    assert sentence in found.problem
    # Without the files of the logs, a question about kafka-delete-records may come first.
    assert any(step in f"{each.what} {each.command}" for each in found.next)
    shown = [each.shows for each in found.causes[0].evidence_for[:2]]
    assert [each.rpartition("starts at ")[2] for each in shown] == ["1000 now", "1001 now"]


@pytest.mark.parametrize(("limit", "kinds"), [(None, 1), ("2", 1), ("10", 0)])
def test_the_limit_of_deliveries_is_that_of_the_group_where_it_is_told(limit: str | None, kinds: int) -> None:
    """If no record has a time, the finding has none."""
    configs = [] if limit is None else [_config("share.delivery.count.limit", limit, "g", "group")]
    row = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "orders", "partition": 0}
    archived = {**row, "log_partition": 0, "log_offset": 1, "first_offset": 5, "last_offset": 5}
    archived["delivery_count"] = 2 if limit == "2" else 5
    archived["delivery_state"] = 4
    looks: dict[str, list[Row]] = {"configs": configs, "share_deliveries": [archived]}
    found = _found(_context(looks, share_partitions=[row], members=[]), "share_records_archived")
    assert len(found) == kinds
    assert all("The last one was" not in each.problem and each.causes[0].confidence == "high" for each in found)
