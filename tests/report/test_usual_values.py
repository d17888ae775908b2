"""What is usual for a group according to its own history, and how rules use it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from kafka_records_tables.report.facts.group_facts import MemberLife, Span
from kafka_records_tables.report.facts.log_times import chosen_offsets
from kafka_records_tables.report.facts.usual_values import LEAST, UsualGap, as_often_as_ever, usual_gap, usual_most
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.rules.slow_groups import earlier_backlogs
from kafka_records_tables.report.rules.stuck_partitions import usual_attempts
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.modern_lives import ModernLife
from tests.report.rule_cases import END_MS, GROUP

_SCALES: Final = 40


def test_intervals_are_those_between_neighbours_in_time() -> None:
    times = [1000 * each for each in range(19)] + [118_000]
    assert usual_gap([None, *reversed(times)]) == UsualGap(19, 1000, 100_000, 100_000)


def test_few_intervals_show_nothing() -> None:
    assert usual_gap(range(LEAST)) is None
    assert usual_gap(range(LEAST + 1)) == UsualGap(LEAST, 1, 1, 1)
    assert usual_most(range(19)) is None


def test_one_exception_in_twenty_is_not_usual() -> None:
    assert usual_most([*range(19), 1000]) == 18


def test_events_are_as_frequent_as_ever_up_to_twice_as_fast() -> None:
    before = [100 * each for each in range(12)]
    assert as_often_as_ever([*before, *(1100 + 50 * each for each in range(1, 12))]) == UsualGap(11, 100, 100, 100)
    assert as_often_as_ever([*before, *(1100 + 49 * each for each in range(1, 12))]) is None
    assert as_often_as_ever(before) is None


def test_offsets_to_ask_for_are_in_the_log_and_reach_its_end() -> None:
    chosen = chosen_offsets([*range(0, 1000, 2)], 100, 1200)
    assert (chosen[0], chosen[1], chosen[-1]) == (100, 138, 1199)
    assert chosen == sorted(set(chosen))
    assert len(chosen) <= 37
    assert chosen_offsets([5], 0, 5) == []


@pytest.mark.parametrize(
    ("size", "last_ms", "level"),
    [(3, 4 * MINUTE, Level.NOTE), (1, 4 * MINUTE, Level.HIGH), (3, 20 * SECOND, Level.HIGH)],
    ids=["it always scales", "its size hardly changes", "it rebalances faster than ever"],
)
def test_a_group_that_always_scales_is_a_note(tmp_path: Path, size: int, last_ms: int, level: Level) -> None:
    """Half of its rebalances are four minutes apart; it commits after each."""
    cluster = MadeCluster("usual", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    life = ClassicLife(cluster, GROUP, ["orders"])
    later = [END_MS - MINUTE - last_ms * each for each in range(_SCALES // 2)][::-1]
    times = [later[0] - 4 * MINUTE * each for each in range(1, _SCALES // 2)][::-1] + later
    life.join(times[0] - 4 * MINUTE, 2)
    for number, at_ms in enumerate(times):
        if number // size % 2:
            life.leave(at_ms)
        else:
            life.join(at_ms)
        life.commit(at_ms + 10 * SECOND)
    life.commit(END_MS)
    cluster.write(tmp_path)
    (finding,) = [each for each in read_report(tmp_path).findings if each.kind == "endless_rebalances"]
    assert finding.level == level
    assert ("That is usual for this group" in finding.problem) == (level == Level.NOTE)
    assert "falls behind is unknown" not in finding.problem
    for log in tmp_path.glob("orders-*"):
        shutil.rmtree(log)
    (finding,) = [each for each in read_report(tmp_path).findings if each.kind == "endless_rebalances"]
    assert finding.level == level
    assert ("whether a partition falls behind is unknown" in finding.problem) == (level == Level.NOTE)


def test_a_group_that_always_settles_slowly_is_a_note_until_it_takes_twice_as_long(tmp_path: Path) -> None:
    """Each of its rebalances takes eight minutes; the last one is not over."""
    cluster = MadeCluster("usual", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    life = ModernLife(cluster, GROUP, ["orders"])
    life.join(END_MS - 12 * HOUR)
    for number in range(20):
        at_ms = END_MS - 10 * HOUR + number * 25 * MINUTE
        life._come(at_ms, None)
        life.settle(at_ms + 8 * MINUTE)
    life._come(END_MS - 18 * MINUTE, None)
    cluster.commit("clock", END_MS, {("orders", 0): 5})
    cluster.write(tmp_path)
    for as_of, level in ((END_MS - 6 * MINUTE, Level.NOTE), (END_MS, Level.MODERATE)):
        (finding,) = [each for each in read_report(tmp_path, as_of=as_of).findings if each.kind == "members_unsettled"]
        assert finding.level == level
        assert " 95 % of its earlier rebalances were over within 8 min" in finding.problem


def test_the_time_without_members_is_none_of_a_rebalance(tmp_path: Path) -> None:
    """An hourly job becomes stable within seconds and leaves; the last run does not become stable."""
    cluster = MadeCluster("usual", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    life = ModernLife(cluster, GROUP, ["orders"])
    for number in range(20):
        life.join(END_MS - (22 - number) * HOUR)
        life.stop(END_MS - (22 - number) * HOUR + 5 * MINUTE)
    life._come(END_MS - 65 * MINUTE, None)
    cluster.commit("clock", END_MS, {("orders", 0): 5})
    cluster.write(tmp_path)
    (finding,) = [each for each in read_report(tmp_path).findings if each.kind == "members_unsettled"]
    assert finding.level == Level.HIGH
    assert " 95 % of its earlier rebalances were over within 3 s" in finding.problem


def test_members_that_usually_leave_before_an_offset_moves_are_counted() -> None:
    """The offset moves twenty times, once a minute. Three members leave in each minute, one of them after there is a
    record."""
    spans = [Span(each, each * MINUTE, (each + 1) * MINUTE, "commit", 0, each, None, 1) for each in range(20)]
    left = [MemberLife(GROUP, str(each), 0, 0, 0, left_ms=each * 20 * SECOND) for each in range(60)]
    assert usual_attempts(spans, left, None) == 3
    assert usual_attempts(spans, left, lambda offset: offset * MINUTE + 30 * SECOND) == 1
    assert usual_attempts(spans, left, lambda offset: offset * MINUTE if offset else None) is None


def test_backlogs_that_were_read_before_are_counted() -> None:
    assert earlier_backlogs([0, 50, 100, 60, 10, 0, 99, 0, 120, 11, 9, 100, 50], 100) == 2
