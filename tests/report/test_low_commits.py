"""Groups whose commits stay one below the end of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules import low_commits
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found
from tests.report.test_unlike_members import _joins

Row = dict[str, Any]
Times = Mapping[int, Sequence[int]]
"""By partition, the times at which records were written, by their offsets."""
Commits = Mapping[int, Sequence[tuple[int, int]]]
"""By partition, the times of commits, and the offsets."""
BEGAN = END_MS - 10 * MINUTE
_ROUND, _WORK = 30 * SECOND, 20
_OFFSETS = (0, 1)
"""The partitions."""


def _cluster(written: Times, commits: Commits, events: Sequence[Row], *, step: int = 1) -> RuleContext:
    """A group with these commits. With a `step` of 2, a marker of a transaction follows each record."""
    history: list[Row] = []
    lag: list[Row] = []
    logs: list[Row] = []
    for number, times in written.items():
        place = {"group_id": "g", "topic": "orders", "partition": number, "log_partition": 0}
        spans: list[Row] = []
        for at, (at_ms, offset) in enumerate(commits[number]):
            if spans and spans[-1]["offset"] == offset:
                spans[-1]["commits"] += 1
                continue
            spans.append(place | {"offset": offset, "valid_from_timestamp_ms": at_ms, "log_offset": at, "commits": 1})
        for before, after in pairwise(spans):
            before |= {"valid_to_timestamp_ms": after["valid_from_timestamp_ms"], "ended_by": "commit"}
        history += spans
        end = len(times) * step
        log = {"topic": "orders", "partition": number, "log_start_offset": 0, "exact_from": 0}
        samples = [{"offset": each * step, "timestamp_ms": at_ms} for each, at_ms in enumerate(times)]
        logs.append(log | {"log_end_offset": end, "samples": samples})
        unread = [each["timestamp_ms"] for each in samples if each["offset"] >= spans[-1]["offset"]]
        committed = {"offset": spans[-1]["offset"], "commit_timestamp_ms": commits[number][-1][0]}
        ends = {"log_start_offset": 0, "end_offset": end, "unread": len(unread), "held_back": 0}
        lag.append(place | committed | ends | {"unread_timestamp_ms": min(unread, default=None)})
    return _context({"history": history, "log_samples": logs}, timeline=events, lag=lag)


def _rounds(
    *,
    low_from: int = 4,
    rounds: int = 8,
    records: int = 3,
    job: bool = True,
    every: Sequence[int] = (_ROUND,),
    apart: int = 0,
    low_by: Sequence[int] = (1,),
    reaches: int | None = None,
    has_members: bool = True,
    step: int = 1,
) -> RuleContext:
    """Records come in rounds, and a job, or a member that stays, commits each of them. From a round on, it commits
    offsets that are `low_by` too low, in turn; in a partition `reaches`, it does not."""
    written: dict[int, list[int]] = {number: [] for number in _OFFSETS}
    commits: dict[int, list[tuple[int, int]]] = {number: [] for number in _OFFSETS}
    events = [] if job else _joins("mailer-0", [*_OFFSETS], BEGAN - SECOND)
    at_ms = BEGAN
    for turn in range(rounds):
        if job:
            events += _joins(
                f"mailer-v{1 + (turn >= low_from)}-{turn}", [*_OFFSETS], at_ms + SECOND, at_ms + 5 * SECOND
            )
        for number in _OFFSETS:
            read_from = commits[number][-1][1] // step if job and commits[number] else len(written[number])
            written[number] += [at_ms + apart * each for each in range(records)]
            too_low = low_by[turn % len(low_by)] if turn >= low_from and number != reaches else 0
            for offset in range(read_from, len(written[number])):
                seen = max(written[number][offset], at_ms + SECOND if job else 0)
                commits[number].append((seen + _WORK, max(offset * step + 1 - too_low, 0)))
        at_ms += every[turn % len(every)]
    return _cluster(written, commits, events if has_members else [], step=step)


def test_a_job_commits_the_records_that_it_has_processed() -> None:
    (found,) = _found(_rounds(), "commits_one_too_low")
    assert (found.level, found.group_ids, found.partitions) == (Level.MODERATE, ("g",), (0, 1))
    assert found.since_timestamp_ms == BEGAN + 4 * _ROUND + SECOND
    assert found.who[0].client_id == "mailer-v2-4"
    # Three starts since then, of two partitions each.
    assert found.scale == {"records_repeated": 6, "partitions": 2}
    assert [each.name for each in found.causes] == ["commits_own_offset"]
    assert found.causes[0].evidence_for[1].shows.startswith("6 times a member")
    assert "keeps_last_record_back" in found.refuted_by
    assert '"mailer-v2-4"' in found.next[0].what
    assert '"mailer-v1-3"' in found.next[0].what
    assert "orders,0,24; orders,1,24" in found.next[1].what
    assert "8 times" in found.problem
    assert "the last commit that reached the end" in found.evidence[0].shows
    assert found.evidence_count == 9


def test_a_member_that_has_always_committed_so() -> None:
    """Single records leave open whether it waits for the next one."""
    (found,) = _found(
        _rounds(low_from=0, job=False, records=1, rounds=13, every=(SECOND, 30 * SECOND)), "commits_one_too_low"
    )
    assert found.level == Level.LOW
    assert found.scale == {"partitions": 2}
    assert [each.name for each in found.causes] == ["commits_own_offset", "keeps_last_record_back"]
    assert found.decision is not None
    assert "adding 1" in found.next[0].what
    assert found.since_note is not None
    assert "Until" not in found.problem


@pytest.mark.parametrize(
    "context",
    [
        _rounds(low_from=9),
        _rounds(low_from=9, step=2),
        _rounds(reaches=1),
        _rounds(low_from=6),
        _rounds(has_members=False),
        _rounds(low_from=0, job=False, records=1, rounds=14),
        _rounds(low_from=0, job=False, records=3, apart=9 * SECOND),
        _rounds(low_from=0, job=False, every=(1900,)),
        _rounds(low_from=4, job=False, rounds=12, low_by=(2, 1)),
    ],
    ids=["reaches", "markers", "one_partition", "few", "no_members", "regular", "slow_before", "short", "further"],
)
def test_what_looks_alike(context: RuleContext) -> None:
    assert not _found(context, "commits_one_too_low")


def _steady(every: int, after: int, last: int, *, rounds: int = 60) -> RuleContext:
    """A record every so often in each partition, which the group commits so long after it was written; the last one
    was written so long before the end."""
    times = [END_MS - last - every * number for number in reversed(range(rounds))]
    commits = [(at_ms + after, offset + 1) for offset, at_ms in enumerate(times) if at_ms + after <= END_MS]
    events = _joins("steady-0", [*_OFFSETS], times[0] - SECOND)
    return _cluster(dict.fromkeys(_OFFSETS, times), dict.fromkeys(_OFFSETS, commits), events)


@pytest.mark.parametrize(
    "context",
    [
        # A record has just been written in each partition.
        _steady(10 * SECOND, 50, 40),
        # The group takes longer than the time between two records.
        _steady(10 * SECOND, 11 * SECOND, 5 * SECOND),
        _steady(60 * SECOND, 61 * SECOND, 50 * SECOND),
    ],
    ids=["just_written", "delay", "long_delay"],
)
def test_a_group_that_is_one_record_behind(context: RuleContext) -> None:
    (unread,) = set(context.table("lag")["unread"].to_pylist())
    assert unread == 1
    assert not _found(context, "commits_one_too_low")


@pytest.mark.parametrize(
    "context",
    [_rounds(low_from=9), _rounds(reaches=1), _rounds(low_from=9, step=2), _steady(10 * SECOND, 50, 40)],
    ids=["reaches", "one_partition", "markers", "just_written"],
)
def test_no_more_is_read_of_most_healthy_groups(context: RuleContext) -> None:
    assert not low_commits._suspects(context)


def test_a_group_that_works_on_each_record_for_a_while() -> None:
    """It has got to the last but one."""
    written = [END_MS - 9 * MINUTE] * 40
    commits = [(END_MS - 9 * MINUTE + 12 * SECOND * each, each) for each in range(1, 40)]
    events = _joins("slow-0", [*_OFFSETS], BEGAN)
    context = _cluster(dict.fromkeys(_OFFSETS, written), dict.fromkeys(_OFFSETS, commits), events)
    assert context.table("lag")["unread"].to_pylist() == [1, 1]
    assert not _found(context, "commits_one_too_low")


@pytest.mark.parametrize(("kind", "name"), [("classic", "records_repeated_at_least"), ("consumer", "records_repeated")])
def test_members_of_classic_groups_may_read_kept_partitions_again(kind: str, name: str) -> None:
    context = _rounds()
    rebalance = {"group_id": "g", "group_kind": kind, "event": "rebalance_completed", "member_count": 1}
    rebalance |= {"at_timestamp_ms": END_MS - MINUTE, "log_partition": 0, "log_offset": 10**9}
    timeline = [*context.table("timeline").to_pylist(), rebalance]
    schema = context.table("timeline").schema
    changed = replace(context, tables={**context.tables, "timeline": pa.Table.from_pylist(timeline, schema=schema)})
    (found,) = _found(changed, "commits_one_too_low")
    assert found.scale == {name: 6, "partitions": 2}
