"""Where a group without an offset began, and findings about a group whose earlier records are gone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from kafka_records_tables.report.facts.beginnings import Beginning, agreed, beginning, either_words
from kafka_records_tables.report.facts.group_facts import LogEnds, MemberLife, Place, Span
from kafka_records_tables.report.facts.moved_groups import STILL, MovedGroup, add_commits, add_effects
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.rules.expired_restarts import _restart
from kafka_records_tables.report.rules.moved_groups import _impact
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import HOUR, MINUTE, MadeCluster
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules import context_of
from tests.report.test_rules_in_detail import _context

PLACE = ("orders", 0)


class _Ends:
    """One log: where it starts, and where it ended at some moments."""

    def __init__(self, start: int | None, ends: Mapping[int, int]) -> None:
        self._start, self._ends = start, ends

    def start(self, _: Place) -> int | None:
        return self._start

    def end_at(self, _: Place, at_ms: int | None) -> int | None:
        return None if at_ms is None else self._ends.get(at_ms)


def _ends(start: int | None, ends: Mapping[int, int]) -> LogEnds:
    return cast("LogEnds", _Ends(start, ends))


def _span(offset: int, log_partition: int = 0, at_ms: int = 9) -> Span:
    return Span(offset, at_ms, None, None, log_partition, 2, None, 1)


@pytest.mark.parametrize(
    ("start", "end", "own", "first", "expected"),
    [
        (10, 100, 60, 80, Beginning(50, 0, False, 100)),
        (10, 100, 60, 50, Beginning(50, 0, False, 100)),
        (10, 100, 60, 100, Beginning(50, 40, True, 100)),
        (10, 60, 60, 60, Beginning(50, 0, True, 60)),
        (10, 100, 60, 60, Beginning(0, 0, False, 100)),
        (10, 100, 10, 120, Beginning(0, 90, True, 100)),
        (10, None, 60, 80, Beginning(50, 20, True, None)),
        (None, None, 60, 40, Beginning(20, 0, False, None, False)),
        (None, None, 60, 80, Beginning(0, 20, True, None, False)),
    ],
    ids=["start", "below", "either", "nothing_new", "given_back", "new_group", "no_end", "no_start", "no_log"],
)
def test_where_a_group_began(start: int | None, end: int | None, own: int, first: int, expected: Beginning) -> None:
    assert beginning(_ends(start, {} if end is None else {1: end}), PLACE, own, first, 1) == expected


def test_words_give_both_counts_and_what_is_a_bound() -> None:
    whole = either_words("it", "its", [Beginning(50, 0, True, 60)])
    assert "and nothing was lost, or at the start (earliest), and 50 records were read again" in whole
    in_part = either_words("it", "its", [Beginning(0, 20, True, None, False)])
    assert "at most 20 records were never read" in in_part
    assert "earlier records were read again" in in_part


def test_the_log_counts_from_when_the_first_member_joined() -> None:
    lives = [MemberLife(GROUP, str(at), at, at, 0) for at in (2, 5)]
    restart = _restart(PLACE, _span(60), _span(80), lives, _ends(10, {2: 70, 5: 90}), {"log_timestamp_ms": 1})
    assert restart.began == Beginning(50, 10, True, 70)


def test_without_the_start_of_a_log_what_was_read_again_is_a_bound() -> None:
    moved = MovedGroup(GROUP, 1, (0,))
    add_commits(moved, {(GROUP, *PLACE): [_span(60), _span(40, 1), _span(90, 1)]}, _ends(None, {}), [])
    assert (moved.read_again, moved.is_least, moved.gains_nothing) == (20, True, True)


def test_a_member_that_began_at_the_start_did_so_in_all_its_partitions() -> None:
    """auto.offset.reset is a setting of a consumer, so it is unknown what another member did."""
    places = [("orders", 0), ("orders", 1), ("orders", 2)]
    ends = _ends(0, {1: 70})
    lives = [MemberLife(GROUP, "one", 1, 1, 1, places={*places[:2]}), MemberLife(GROUP, "two", 1, 1, 1)]
    lives[1].places = {places[2]}
    moved = MovedGroup(GROUP, 1, (0,))
    again, at_end = [_span(60), _span(40, 1), _span(90, 1)], [_span(60), _span(70, 1)]
    add_commits(moved, {(GROUP, *places[0]): again} | {(GROUP, *each): at_end for each in places[1:]}, ends, lives)
    assert (moved.read_again, moved.unsure) == (120, [Beginning(60, 10, True, 70)])
    assert (moved.has_passed, moved.skipped, moved.gains_nothing) == (True, 10, False)


@pytest.mark.parametrize(("last_new", "gains_nothing"), [([], False), ([50], False), ([60], True)])
def test_old_offsets_that_a_group_has_not_passed_are_worth_restoring(last_new: list[int], gains_nothing: bool) -> None:
    moved = MovedGroup(GROUP, 1, (0,))
    again = [_span(each, 1) for each in (40, *last_new)] if last_new else []
    add_commits(moved, {(GROUP, *PLACE): [_span(60), *again]}, _ends(0, {}), [])
    assert moved.gains_nothing is gains_nothing


def test_a_restart_decides_nothing_about_another_member_or_another_restart() -> None:
    """A member began at the start; another one, and one that joined after a restart, may have begun at the end."""
    places = [("orders", at) for at in range(4)]
    lives = [MemberLife(GROUP, str(at), 1, 1, 0, places={*each}) for at, each in enumerate((places[:2], places[2:3]))]
    lives.append(MemberLife(GROUP, "later", 5, 5, 0, places={places[3]}))
    for at in (0, 1):
        lives[at].left_at = 4
    spans = [_span(40), _span(70), _span(70), Span(70, 9, None, None, 0, 6, None, 1)]
    ends, at_once = _ends(0, {1: 70}), {"log_timestamp_ms": 1}
    found = [_restart(places[at], _span(60), spans[at], lives, ends, at_once) for at in range(4)]
    assert [each.member and each.member.member_id for each in found] == ["0", "0", "1", "later"]
    sure, open_ = Beginning(60, 0, False, 70), Beginning(60, 10, True, 70)
    assert agreed([(each.began, each.member) for each in found]) == [sure, sure, open_, open_]


@pytest.mark.parametrize(
    ("last_old", "last_new", "is_there", "members_until", "stopped", "idle"),
    [
        (99, None, False, None, True, False),
        (99, 150, False, None, True, False),
        (99, 195, False, None, False, False),
        (99, None, True, None, False, False),
        (50, None, False, None, False, True),
        (50, None, False, 170, True, False),
        (99, None, False, 100, False, True),
        (None, None, False, STILL, True, False),
        (None, None, False, 0, False, True),
        (None, None, False, None, False, False),
    ],
    ids=[
        *("silent", "one_commit", "goes_on", "has_members", "away_before", "commits_rarely", "just_left"),
        *("share_group", "empty_share_group", "unknown"),
    ],
)
def test_which_moved_groups_have_stopped(
    last_old: int | None, last_new: int | None, is_there: bool, members_until: int | None, stopped: bool, idle: bool
) -> None:
    moved = MovedGroup(GROUP, 1, (0,), None, is_there, members_until, last_old, None, last_new, settles_ms=20)
    assert (moved.is_stopped(100, 200), moved.is_idle(100)) == (stopped, idle)


@pytest.mark.parametrize("left_ms", [END_MS - 2 * HOUR, END_MS - MINUTE, None])
def test_members_of_an_old_copy_are_removed_after_the_change(left_ms: int | None) -> None:
    """Coordinators load old copies when they start, and remove their members as sessions expire."""
    old = {"group_id": GROUP, "log_partition": 0}
    event = {**old, "member_id": "m", "sequence": 0, "detail": "{}"}
    events = [event | {"event": "member_joined", "log_offset": 1, "at_timestamp_ms": END_MS - 3 * HOUR}]
    if left_ms is not None:
        events.append(event | {"event": "member_left", "log_offset": 5, "at_timestamp_ms": left_ms})
    groups = [{**old, "group_kind": "share", "member_count": int(left_ms is None)}]
    context = _context({"history": [], "log_samples": []}, groups=groups, current_offsets=[], timeline=events)
    moved = MovedGroup(GROUP, 1, (0,))
    add_effects(context, [moved])
    assert moved.is_stopped(END_MS - HOUR, END_MS) == (left_ms != END_MS - 2 * HOUR)


def test_what_is_said_about_groups_that_did_not_work() -> None:
    idle = [MovedGroup(name, 1, (0,), last_old_ms=END_MS - age) for name, age in (("a", HOUR), ("b", 2 * HOUR))]
    empty = MovedGroup("q", 1, (0,), "share", had_members_until_ms=0)
    assert _impact([*idle, empty], [], [], [], [*idle, empty], END_MS) == (
        '1 group ("q") had no members at the time of the change, and has done nothing since: it will begin where '
        'share.auto.offset.reset says; 2 groups ("a", "b") had committed nothing for at least 1 h before the '
        "change, and have done nothing since: they will begin where auto.offset.reset says."
    )


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_a_group_whose_earlier_records_are_gone_may_have_had_members(tmp_path: Path, is_cleaned: bool) -> None:
    cluster = MadeCluster("cut", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = END_MS - HOUR if is_cleaned else None
    topic = cluster.topic("orders", 1, 0)
    topic.begins, topic.log_starts = (9,), (6,)
    for at_ms, offset in ((END_MS - 3 * HOUR, 7), (END_MS - 2 * HOUR, 8), (END_MS - MINUTE, 900)):
        cluster.commit(GROUP, at_ms, {PLACE: offset})
    cluster.write(tmp_path)
    (found,) = [each for each in read_report(tmp_path, processes=1).findings if each.kind == "offsets_from_elsewhere"]
    causes = [each.name for each in found.causes]
    assert causes == (["another_cluster", "log_truncated"] if is_cleaned else ["another_cluster"])
    assert ("no consumer has read that far" in found.problem) is not is_cleaned
    assert bool(found.lacked) is is_cleaned

    (rule,) = [each for each in RULES if each.kind == "offsets_beyond_end"]
    context = context_of(tmp_path, rule, {})
    case: dict[str, Any] = rule.cases(context).to_pylist()[0]
    verdict = next(each for each in rule.causes if each.name == "offsets_from_elsewhere").weigh(context, case)
    assert verdict is not None
    assert (bool(verdict.evidence_for), bool(verdict.lacked)) == (not is_cleaned, is_cleaned)


@pytest.mark.parametrize("has_joined", [False, True])
def test_a_group_whose_members_commit_nothing_after_foreign_offsets_is_not_told_to_wait(
    tmp_path: Path, has_joined: bool
) -> None:
    """Some clients do not commit an offset again until they have read further."""
    cluster = MadeCluster("silent", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    topic = cluster.topic("orders", 1, 0)
    topic.begins, topic.log_starts = (9,), (6,)
    life = ClassicLife(cluster, GROUP, ["orders"])
    cluster.commit(GROUP, END_MS - HOUR, {PLACE: 900})
    if has_joined:
        life.join(END_MS - 30 * MINUTE)
    cluster.write(tmp_path)
    (found,) = [each for each in read_report(tmp_path, processes=1).findings if each.kind == "offsets_from_elsewhere"]
    assert ("will begin where" in found.impact) is not has_joined
    assert ("had members since" in found.impact) is has_joined
    assert ("stop its members" in str(found.next[0])) is has_joined
