"""Findings call certain only what records show: who stopped, what was skipped, and which groups wait."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from kafka_records_tables.report.facts.beginnings import Beginning, consequence_of, scale_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rules import crash_loops, slow_members
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = Mapping[str, Any]
_PLACE = {"group_id": "g", "topic": "orders", "partition": 0, "log_partition": 0}
_CLIENT = "consumer-g-1"
_HANGS, _LEFT_OUT = "application_hangs", "partition_left_out"


def _stop(owner: str | None, other: str | None, changed_ms: int | None) -> ReportFinding:
    """A partition of member `owner` that stopped an hour ago, and one of `other` that was committed a minute ago. Both
    have the same client id."""
    rows = [
        {**_PLACE, "commit_timestamp_ms": END_MS - HOUR, "offset": 5, "lag": 9, "member_id": owner},
        {**_PLACE, "partition": 1, "commit_timestamp_ms": END_MS - MINUTE, "offset": 7, "member_id": other},
    ]
    stopped = {
        **_PLACE,
        "state": "stopped",
        "wait_ms": HOUR,
        "since_timestamp_ms": END_MS - HOUR,
        "commit_timestamp_ms": END_MS - HOUR,
    }
    changes = [
        {"group_id": "g", "event": "assignment_changed", "member_id": each, "at_timestamp_ms": changed_ms}
        for each in ("a", "b")
        if changed_ms is not None
    ]
    context = _context(
        progress=[stopped],
        lag=[{**each, "client_id": each["member_id"] and _CLIENT} for each in rows],
        groups=[{"group_id": "g", "member_count": 2}],
        members=[
            {"group_id": "g", "member_id": each, "client_id": _CLIENT, "client_host": f"/10.0.0.{number}"}
            for number, each in enumerate("ab")
        ],
        timeline=changes,
    )
    (found,) = _found(context, "group_stands_still")
    return found


@pytest.mark.parametrize(
    ("owner", "other", "changed_ms", "causes"),
    [
        ("a", "b", END_MS - 2 * HOUR, [_HANGS]),
        ("a", "a", END_MS - 2 * HOUR, [_LEFT_OUT]),
        ("a", "a", END_MS - SECOND, [_HANGS, _LEFT_OUT]),
        ("a", "b", END_MS - SECOND, [_HANGS, _LEFT_OUT]),
        ("a", "a", None, [_HANGS, _LEFT_OUT]),
        (None, "a", END_MS - 2 * HOUR, [_HANGS, _LEFT_OUT]),
        ("a", None, END_MS - 2 * HOUR, [_HANGS, _LEFT_OUT]),
    ],
    ids=["another", "its own", "given since", "taken since", "no assignment", "unknown owner", "unknown other"],
)
def test_a_member_leaves_out_a_partition_if_it_has_committed_others_itself(
    owner: str | None, other: str | None, changed_ms: int | None, causes: list[str]
) -> None:
    found = _stop(owner, other, changed_ms)
    assert [each.name for each in found.causes] == causes
    assert (found.causes[0].confidence == "high") == (len(causes) == 1)
    assert [each.member_id for each in found.who] == ([owner] if owner else ["a", "b"])
    assert f'"{_CLIENT} at 10.0.0.0"' in found.causes[0].statement


def test_members_that_are_behind_are_told_apart_by_their_ids() -> None:
    rows = [{"partition": at, "lag": 90 * (not at), "member_id": f"m{at}", "client_id": _CLIENT} for at in range(9)]
    assert slow_members.places_behind(rows, 90) == ((0,), {"m0"})


def test_only_internal_topics_of_kafka_streams_follow_from_what_a_group_reads() -> None:
    names = ("g-counts-changelog", "g-by-key-repartition", "g-orders", "orders-changelog")
    assert [crash_loops._is_internal("g", each) for each in names] == [True, True, False, False]


def _ahead(
    moves: Sequence[tuple[int, int, int]] = ((0, 5010, END_MS - MINUTE),),
    *,
    start: int = 0,
    end: tuple[int, int] | None = None,
    falls: Sequence[int] = (),
) -> list[ReportFinding]:
    """The findings about a group whose members left three days ago, at offset 10 of each partition, and about these
    commits (partition, offset, time) since. The log ends at 9000, and ended at the offset
    `end` until that time. `regressions` has the records at the log offsets `falls`."""
    event = {"group_id": "g", "log_partition": 0, "sequence": 0}
    member = {**event, "member_id": "m", "detail": "{}"}
    reset = f'{{"topic": "orders", "partitions": {len(moves)}}}'
    timeline = [
        {**member, "event": "member_joined", "log_offset": 1, "at_timestamp_ms": END_MS - 4 * DAY},
        {**member, "event": "member_left", "log_offset": 10, "at_timestamp_ms": END_MS - 3 * DAY},
        {**event, "event": "offsets_reset", "detail": reset, "log_offset": 11, "at_timestamp_ms": END_MS - MINUTE},
    ]
    regressions = [{"group_id": "g", "topic": "orders", "log_partition": 0, "log_offset": at} for at in falls]
    history: list[Row] = []
    for partition in sorted({each for each, *_ in moves}):
        own = [(10, END_MS - 3 * DAY, 2 + partition)]
        own += [(offset, ms, 11 + at) for at, (of, offset, ms) in enumerate(moves) if of == partition]
        history += [
            {
                **_PLACE,
                "partition": partition,
                "offset": offset,
                "log_offset": at,
                "ended_by": "commit" if (offset, ms, at) != own[-1] else None,
                "valid_from_timestamp_ms": ms,
            }
            for offset, ms, at in own
        ]
    ends = [
        {"topic": "orders", "partition": each, "log_start_offset": start, "log_end_offset": 9000} for each in (0, 1)
    ]
    samples = None
    if end is not None:
        samples = [{"offset": end[0] - 1, "timestamp_ms": END_MS - 4 * DAY}, {"offset": 8999, "timestamp_ms": end[1]}]
    looks: dict[str, Sequence[Row]] = {
        "history": history,
        "log_samples": [{**each, "samples": samples, "exact_from": 0} for each in ends],
    }
    tables: dict[str, Sequence[Row]] = {"timeline": timeline, "log_ends": ends, "regressions": regressions}
    return _found(_context(looks, **tables), "offsets_moved_ahead")


def test_commits_of_a_group_whose_offsets_all_fell_are_not_read_again() -> None:
    two = [(0, 5010, END_MS - MINUTE), (1, 5010, END_MS - MINUTE)]
    assert len(_ahead(two, falls=[12])) == 1
    assert _ahead(two, falls=[11, 12]) == []


def test_records_that_others_may_have_read_are_possibly_lost() -> None:
    (found,) = _ahead()
    assert (found.level, found.consequence) == (Level.HIGH, "none")
    assert found.scale == {"records_possibly_lost": 5000, "partitions": 1}
    assert found.impact == "Unless a client that is not a member read them, up to 5000 records were skipped."
    assert [each.did for each in found.who] == ["had no members at that time"]


def test_what_the_log_no_longer_has_was_not_skipped() -> None:
    """Records that are gone cannot be read again either."""
    (found,) = _ahead(start=4000)
    assert found.scale["records_possibly_lost"] == 1010
    assert "by 5000 offsets in all" in found.problem
    assert any("--to-offset 4000" in (each.command or "") for each in found.next)
    assert _ahead(start=5010) == []


@pytest.mark.parametrize("second", [5005, 5010, 5020])
def test_a_client_that_is_not_a_member_commits_more_than_once(second: int) -> None:
    """This does not depend on the second commit; it may even be a lower offset."""
    assert _ahead([(0, 5010, END_MS - HOUR), (0, second, END_MS - MINUTE)]) == []


def test_offsets_that_were_moved_at_other_times_are_other_incidents() -> None:
    later, earlier = _ahead([(0, 5010, END_MS - 2 * DAY), (1, 5010, END_MS - MINUTE)])
    assert (later.since_timestamp_ms, later.partitions, later.level) == (END_MS - MINUTE, (1,), Level.HIGH)
    assert (earlier.since_timestamp_ms, earlier.partitions, earlier.level) == (END_MS - 2 * DAY, (0,), Level.MODERATE)
    (both,) = _ahead([(0, 5010, END_MS - 2 * MINUTE), (1, 5010, END_MS - MINUTE)])
    assert both.partitions == (0, 1)


@pytest.mark.parametrize(
    ("end", "after_ms", "is_to_end"),
    [(5010, -4 * SECOND, True), (5010, -6 * SECOND, False), (5009, 4 * SECOND, True), (5009, 6 * SECOND, False)],
)
def test_what_is_written_while_a_tool_commits_is_after_the_end(end: int, after_ms: int, is_to_end: bool) -> None:
    """Earlier records do not count, and an offset that no record had reached was not the end."""
    (found,) = _ahead(end=(end, END_MS - MINUTE + after_ms))
    assert ("moved ahead to the end of the log, by" in found.problem) == is_to_end
    shown = [each.shows for each in found.causes[0].evidence_for]
    assert ("that was the end of the log at that moment" in shown) == is_to_end


def _waiting(
    member_count: int,
    limit_ms: int = 30 * SECOND,
    *,
    usual: Sequence[Row] = (),
    at: tuple[int, int | None] = (50, None),
) -> ReportFinding:
    """A transaction that has been open for a minute, and two groups at its beginning that committed each second.
    `usual` has what earlier ones of its id took; `at` has their committed offset and the records before the transaction
    that they have not read."""
    since = END_MS - MINUTE
    groups = ("g", "h")
    transaction = {
        "transactional_id": "t",
        "producer_id": 1,
        "topic": "orders",
        "partition": 0,
        "state": "Ongoing",
        "since_timestamp_ms": since,
        "first_offset": 50,
        "last_stable_offset": 50,
        "held_back": 7,
        "timeout_ms": HOUR,
    }
    history = [
        {**_PLACE, "group_id": group, "offset": 30 + each, "valid_from_timestamp_ms": since - (20 - each) * SECOND}
        for group in groups
        for each in range(20)
    ]
    lags = [{**_PLACE, "group_id": group, "offset": at[0], "unread": at[1], "lag": 7} for group in groups]
    context = _context(
        {"history": [{**each, "log_offset": number} for number, each in enumerate(history)], "first_uses": usual},
        open_transactions=[transaction],
        lag=[*lags, {**_PLACE, "group_id": "g", "partition": 1, "offset": 3, "lag": 100}],
        groups=[{"group_id": group, "member_count": member_count} for group in groups],
    )
    limits = {**context.limits, "group_stands_still.after": limit_ms}
    (found,) = _found(replace(context, limits=limits), "transaction_open")
    return found


def test_groups_with_members_have_stopped_at_a_transaction() -> None:
    """Their other partitions do not wait for it."""
    found = _waiting(1)
    assert (found.level, found.group_ids, found.consequence) == (Level.MODERATE, ("g", "h"), "work_stopped")
    assert found.scale == {"records_waiting": 14}
    assert '"g", "h" have committed nothing there for at least 2 times the longest interval' in found.problem
    assert found.impact == (
        'If isolation.level is read_committed, "g", "h" read nothing in these partitions until it ends, at the latest '
        "after its timeout."
    )
    assert found.thresholds["group_stands_still.after"] == 30 * SECOND


@pytest.mark.parametrize(("at", "waits"), [((49, 0), True), ((49, 1), False), ((49, None), False), ((51, 0), False)])
def test_markers_before_a_transaction_are_nothing_to_read(at: tuple[int, int | None], waits: bool) -> None:
    """A consumer commits the offset after its last record; the marker there ends the transaction of that record."""
    assert (_waiting(1, at=at).level == Level.MODERATE) == waits


@pytest.mark.parametrize(("ended", "longest_ms"), [(4, 300), (5, 3001), (5, 3000)], ids=["few", "long", "left open"])
def test_a_transaction_was_left_open_if_earlier_ones_of_its_id_were_short(ended: int, longest_ms: int) -> None:
    """Then a producer has died or hangs; an operator can find out which."""
    use = {"transactional_id": "t", "is_new": True, "ended": ended, "longest_ms": longest_ms, "log_partition": 0}
    found = _waiting(1, usual=[{**use, "log_offset": 3, "log_timestamp_ms": END_MS - HOUR}])
    if (ended, longest_ms) == (5, 3000):
        assert (found.level, found.title) == (Level.HIGH, "a transaction was left open, and readers are blocked")
        assert [(each.name, each.confidence) for each in found.causes] == [
            ("producer_died", "medium"),
            ("producer_hangs", "medium"),
        ]
        assert found.decision is not None
        assert "5 earlier transactions of this id took 3 s at most" in found.causes[0].statement
    else:
        assert (found.level, found.causes) == (Level.MODERATE, ())


@pytest.mark.parametrize(("member_count", "limit_ms"), [(0, 30 * SECOND), (1, 2 * MINUTE)], ids=["no members", "short"])
def test_a_group_that_was_shut_down_or_pauses_waits_for_nothing(member_count: int, limit_ms: int) -> None:
    found = _waiting(member_count, limit_ms)
    assert (found.level, found.consequence, found.scale, found.impact) == (Level.NOTE, "none", {}, "")


def test_only_what_is_certain_is_a_consequence() -> None:
    cases = [Beginning(50, 20, True), Beginning(0, 20), Beginning(50, 0)]
    assert [consequence_of(scale_of([each])) for each in cases] == ["none", "data_lost", "work_repeated"]


@pytest.mark.parametrize(
    ("offset", "committed_ms", "is_found"),
    [(120, END_MS, False), (121, END_MS, True), (120, END_MS - 2 * MINUTE, True)],
)
def test_files_that_were_copied_one_after_another_are_not_cut(offset: int, committed_ms: int, is_found: bool) -> None:
    """The topic got twenty records in the last minute, so its copy may lack as many."""
    samples = [{"offset": at, "timestamp_ms": ms} for at, ms in ((79, END_MS - 90 * SECOND), (99, END_MS - SECOND))]
    ends = {**_PLACE, "log_start_offset": 0, "log_end_offset": 100, "samples": samples, "exact_from": 0}
    lag = {**_PLACE, "group_id": "g", "offset": offset, "end_offset": 100, "log_start_offset": 0}
    row = {**lag, "problem": "beyond_end", "commit_timestamp_ms": committed_ms}
    found = _found(_context({"log_samples": [ends]}, lag=[row]), "offsets_beyond_end")
    assert bool(found) == is_found
