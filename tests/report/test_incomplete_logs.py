"""If logs are missing, rules say nothing that the missing part could refute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_tables.report.facts.group_facts import MemberLife, Span
from kafka_records_tables.report.facts.known_logs import absent_partitions, with_known_counts, without_end
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules.past_crash_loops import past_loops
from kafka_records_tables.report.whole_logs import seen_by
from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS
from tests.report.made_up_cluster import HOUR, MINUTE
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _first, _found, _transactions

Row = Mapping[str, Any]
_PLACE = {"group_id": "g", "topic": "orders", "partition": 0}


def _seen(context: RuleContext, kind: str) -> list[ReportFinding]:
    return _found(seen_by(context, kind), kind)


def _end(partition: int, end: int | None, topic: str = "orders", **more: Any) -> Row:
    return {"topic": topic, "partition": partition, "log_start_offset": 0, "log_end_offset": end, **more}


def _fall(kind: str) -> Row:
    return {
        **_PLACE,
        "from_offset": 5_000_000,
        "to_offset": 300,
        "kind": kind,
        "confidence": "high",
        "group_kind": "classic",
        "commit_timestamp_ms": END_MS - MINUTE,
        "log_partition": 0,
        "log_offset": 7,
    }


@pytest.mark.parametrize(
    ("ends", "causes", "repeated"),
    [
        ([_end(0, 5_000_001)], ["member_went_back", "out_of_range"], 4_999_700),
        ([_end(0, 400)], ["beyond_end"], 0),
        ([_end(0, None)], ["member_went_back", "beyond_end"], 0),
        ([_end(0, 400, is_cut=True)], ["member_went_back", "beyond_end"], 0),
        ([_end(1, 5_000_001)], ["member_went_back", "beyond_end"], 0),
        ([], ["member_went_back", "beyond_end"], 0),
    ],
    ids=["within", "beyond", "no end", "cut", "another partition", "no log"],
)
def test_a_fall_repeats_records_only_if_the_log_had_them(ends: list[Row], causes: list[str], repeated: int) -> None:
    (found,) = _found(_context(regressions=[_fall("rewind_by_member")], log_ends=ends), "offsets_rewound")
    assert [each.name for each in found.causes] == causes
    assert found.scale["records_repeated"] == repeated
    is_sure = repeated > 0
    assert (
        found.impact == "The records from the lower offset to the higher one are consumed a second time."
    ) == is_sure
    assert found.title == ("a member moved its offsets backwards" if is_sure else "offsets of a group went backwards")
    if causes == ["member_went_back", "beyond_end"]:
        assert found.confidence == "medium"
        assert [each.what for each in found.lacked] == ['the end of the log of "orders" (partition 0)']
        assert found.next[0].command == 'kafka-get-offsets --bootstrap-server "$BOOTSTRAP" --topic orders'
        assert found.impact.startswith(
            "Whether records are repeated is unknown, because the source lacks the end of the log of "
        )


def test_only_places_that_a_group_consumes_can_be_missing() -> None:
    commits = [{**_PLACE, "partition": number} for number in (0, 1)] + [{**_PLACE, "group_id": "other"}]
    assigned: list[Row] = [
        {"group_id": "g", "topic": "orders", "partition": 2, "group_kind": "consumer"},
        {"group_id": "g", "topic": "queue", "partition": 0, "group_kind": "share"},
        {"group_id": "g", "topic": None, "partition": 0, "group_kind": "streams"},
    ]
    context = _context(current_offsets=commits, assignments=assigned, log_ends=[_end(1, 10)])
    assert without_end(context, ["g"]) == [("orders", 0), ("orders", 2)]
    assert without_end(context, ["g"], ["prices"]) == []
    finding = ReportFinding("k", Level.HIGH, "t", "It waits.", group_ids=("g",), scale={"records_waiting": 3})
    assert with_known_counts(context, finding).problem == (
        'It waits. For "orders" (partitions 0, 2), the counts of records include only what commits show, because the '
        "ends of these logs are unknown."
    )
    uncounted = ReportFinding("k", Level.HIGH, "t", "It waits.", group_ids=("g",), scale={"records_waiting": 0})
    assert with_known_counts(context, uncounted) is uncounted


@pytest.mark.parametrize("partitions", [None, 3])
def test_a_partition_is_absent_if_there_are_others(partitions: int | None) -> None:
    """If their number is unknown, only gaps show it."""
    topics = [] if partitions is None else [{"topic": OFFSETS, "partition_count": partitions}]
    context = _context({"topics": topics}, log_ends=[_end(1, 5, OFFSETS)])
    assert absent_partitions(context, OFFSETS) == ([0] if partitions is None else [0, 2])
    assert absent_partitions(context, TRANSACTIONS) == []


@pytest.mark.parametrize("is_there", [True, False])
def test_missing_share_state_may_be_in_a_missing_log(is_there: bool) -> None:
    check = {
        "check": "share_state_missing",
        "level": "broken",
        "group_id": "g",
        "topic": "queue",
        "partition": 0,
        "detail": "the group lists partition 0 of topic 'queue' as initialized, but it has no state: reads of it are "
        "rejected",
        "log_timestamp_ms": END_MS - HOUR,
    }
    ends = [_end(1, 5, SHARE_STATE), *([_end(0, 5, SHARE_STATE)] if is_there else [])]
    (found,) = _found(_context(checks=[check], log_ends=ends), "share_state_broken")
    assert found.level == (Level.HIGH if is_there else Level.NOTE)
    if not is_there:
        assert found.problem == (
            'No state was found for 1 share partition of the group "g": __share_group_state-0 is not in the source: '
            "the state may be there."
        )
        assert "rejected" not in found.evidence[0].shows


@pytest.mark.parametrize("is_there", [True, False])
def test_state_without_a_group_may_belong_to_one_in_a_missing_log(is_there: bool) -> None:
    check = {
        "check": "share_state_unnamed",
        "level": "broken",
        "group_id": "g",
        "detail": "partition 0 of topic 'queue' has state, and there is no share group of that name",
        "log_timestamp_ms": END_MS - HOUR,
    }
    ends = [_end(1, 5, OFFSETS), *([_end(0, 5, OFFSETS)] if is_there else [])]
    assert len(_seen(_context(checks=[check], log_ends=ends), "share_state_left")) == is_there


@pytest.mark.parametrize("is_there", [True, False])
def test_the_entry_of_a_transaction_may_be_in_a_missing_log(is_there: bool) -> None:
    hanging = {
        "producer_id": 9,
        "topic": OFFSETS,
        "partition": 0,
        "first_offset": 4,
        "since_timestamp_ms": END_MS - 2 * HOUR,
        "is_hanging": True,
        "hanging_rule": "no_entry",
        "holds_back": [],
    }
    ends = [_end(1, 5, TRANSACTIONS), *([_end(0, 5, TRANSACTIONS)] if is_there else [])]
    (found,) = _found(_context(open_transactions=[hanging], log_ends=ends), "transaction_open")
    assert (found.level > Level.NOTE) == is_there
    assert ("nothing will end it" in found.problem) == is_there


@pytest.mark.parametrize(("end", "waits"), [(30, "20 records"), (None, "An unknown number of records")])
def test_a_backlog_without_an_end_is_unknown_and_not_empty(end: int | None, waits: str) -> None:
    has = {**_PLACE, "log_partition": 0, "log_offset": 3}
    old = END_MS - HOUR
    context = _context(
        assignments=[
            {**has, "member_id": "a", "role": "pending_revocation", "log_timestamp_ms": old, "group_kind": "consumer"},
            {**has, "member_id": "b", "role": "target", "log_timestamp_ms": old, "group_kind": "consumer"},
        ],
        members=[{"group_id": "g", "member_id": each, "client_id": each} for each in "ab"],
        current_offsets=[{**_PLACE, "offset": 10, "commit_timestamp_ms": old - MINUTE}],
        lag=[{**_PLACE, "lag": None if end is None else end - 10}],
        log_ends=[_end(0, end)],
    )
    (found,) = _found(context, "partitions_not_given_up")
    assert found.impact.startswith(f"{waits} of 1 partition wait")


def test_the_successor_of_a_silent_instance_may_be_in_a_missing_log() -> None:
    """Otherwise an older instance would prove that there is no successor."""
    context = _context(
        {"first_uses": [_first("worker-1", HOUR)]}, transactions=_transactions(), log_ends=[_end(1, 5, TRANSACTIONS)]
    )
    (found,) = _found(context, "transaction_of_dead_instance")
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("instance_died", "medium"),
        ("instance_hangs", "medium"),
    ]
    assert [each.what for each in found.lacked] == ["all of __transaction_state-0"]


@pytest.mark.parametrize(
    ("topics", "deliveries", "causes"),
    [
        ([{"topic": "orders"}], 2, ["rejected", "no_records"]),
        ([], 2, ["cannot_be_processed", "rejected", "no_records"]),
        ([], 1, ["rejected", "no_records"]),
    ],
)
def test_without_configs_the_limit_of_deliveries_may_be_lower(
    topics: list[Row], deliveries: int, causes: list[str]
) -> None:
    row = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "orders", "partition": 0}
    archived: list[Row] = [
        {
            **row,
            "log_partition": 0,
            "log_offset": 1,
            "first_offset": at,
            "last_offset": at,
            "delivery_state": 4,
            "delivery_count": deliveries,
        }
        for at in range(0, 20, 2)
    ]
    looks: dict[str, list[Row]] = {"share_deliveries": archived, "topics": topics}
    (found,) = _found(_context(looks, share_partitions=[row], members=[]), "share_records_archived")
    assert sorted(each.name for each in found.causes) == sorted(causes)


@pytest.mark.parametrize(("distance", "level"), [(21, Level.MODERATE), (22, Level.NOTE)])
def test_a_share_group_may_reject_a_few_records_on_purpose(distance: int, level: Level) -> None:
    """Eleven of 211 records are more than a twentieth, eleven of 221 are fewer."""
    row = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "orders", "partition": 0}
    at = {"log_partition": 0, "log_offset": 1, "delivery_state": 4, "delivery_count": 1}
    rejected: list[Row] = [
        {**row, **at, "first_offset": number * distance, "last_offset": number * distance} for number in range(11)
    ]
    looks: dict[str, list[Row]] = {"share_deliveries": rejected}
    (found,) = _found(_context(looks, share_partitions=[row], members=[]), "share_records_archived")
    assert found.level == level


@pytest.mark.parametrize("is_there", [True, False])
def test_a_group_whose_new_partition_is_missing_has_not_stopped(is_there: bool) -> None:
    homes = {name: partition_for(name, 4) for name in ("a", "b", "c", "d", "e", "f")}
    commits = [
        {
            "group_id": name,
            "topic": "orders",
            "partition": 0,
            "offset": 5,
            "log_partition": (home + 1) % 4,
            "log_offset": 1,
            "commit_timestamp_ms": END_MS - HOUR,
        }
        for name, home in homes.items()
    ]
    history = [{**each, "valid_from_timestamp_ms": END_MS - HOUR} for each in commits]
    ends = [_end(number, 5, OFFSETS) for number in range(4) if is_there or number != homes["a"]]
    topics = [{"topic": OFFSETS, "partition_count": 4}]
    checks = [{"check": "wrong_partition", "level": "broken", "log_topic": OFFSETS}]
    context = _context({"topics": topics, "history": history}, current_offsets=commits, checks=checks, log_ends=ends)
    (found,) = _found(context, "groups_in_two_partitions")
    gone = {name for name, home in homes.items() if home == homes["a"]}
    assert found.scale["groups_stopped"] == (len(homes) if is_there else len(homes) - len(gone))


@pytest.mark.parametrize("end", [9000, None])
def test_an_offset_moved_ahead_may_be_beyond_the_end(end: int | None) -> None:
    event = {"group_id": "g", "log_partition": 0, "sequence": 0}
    member = {**event, "member_id": "m", "detail": "{}"}
    timeline = [
        {**member, "event": "member_joined", "log_offset": 1, "at_timestamp_ms": END_MS - HOUR},
        {**member, "event": "member_left", "log_offset": 3, "at_timestamp_ms": END_MS - 3 * MINUTE},
        {**event, "event": "offsets_reset", "log_offset": 4, "at_timestamp_ms": END_MS - MINUTE},
    ]
    history: list[Row] = [
        {
            **_PLACE,
            "offset": offset,
            "log_offset": at,
            "log_partition": 0,
            "ended_by": ended,
            "valid_from_timestamp_ms": ms,
        }
        for offset, at, ended, ms in ((10, 2, "commit", END_MS - 4 * MINUTE), (5010, 4, None, END_MS - MINUTE))
    ]
    looks: dict[str, list[Row]] = {"history": history, "log_samples": []}
    context = _context(looks, timeline=timeline, current_offsets=[_PLACE], log_ends=[_end(0, end)])
    (found,) = _found(context, "offsets_moved_ahead")
    assert found.scale["records_possibly_lost"] == (5000 if end else 0)
    assert found.impact.startswith("Unless a client" if end else "If the new offsets are in their logs, and no client")


@pytest.mark.parametrize("exact_from", [0, 6, None])
def test_members_that_left_may_have_had_nothing_to_read(exact_from: int | None) -> None:
    """If it is unknown when the record was written, a job that starts, finds nothing and leaves is no loop."""
    place = ("orders", 0)
    spans = {
        ("g", *place): [
            Span(5, END_MS - HOUR, END_MS - MINUTE, "commit", 0, 1, None, 1),
            Span(9, END_MS - MINUTE, None, None, 0, 40, None, 1),
        ]
    }
    lives = [
        MemberLife(
            "g", f"m{at}", END_MS - (20 - at) * MINUTE, at, 0, left_ms=END_MS - (19 - at) * MINUTE, places={place}
        )
        for at in range(10)
    ]
    samples = [{"offset": 9, "timestamp_ms": END_MS - HOUR}]
    rows = [{"topic": "orders", "partition": 0, "samples": samples, "exact_from": exact_from}]
    context = _context({"log_samples": rows}, log_ends=[_end(0, 20)])
    assert len(past_loops(context, "g", spans, lives)) == (exact_from == 0)
