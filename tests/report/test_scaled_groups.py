"""Groups that are scaled up and down again and again, and members that freeze in turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_tables.report.facts.group_facts import member_lives
from kafka_records_tables.report.facts.streams_tasks import with_topics
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.rules.scaled_groups import scaling_of
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context

_EVERY = 8 * SECOND


def _life(seed: str, members: int) -> tuple[MadeCluster, ClassicLife]:
    cluster = MadeCluster(seed, END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.topic("orders", 6, per_hour=72_000)
    life = ClassicLife(cluster, GROUP, ["orders"])
    life._timeouts = (5 * MINUTE, 6 * SECOND)
    life.start(END_MS - 6 * MINUTE, members)
    return cluster, life


@pytest.mark.parametrize("times", [6, 2])
def test_a_group_that_is_scaled_again_and_again(tmp_path: Path, times: int) -> None:
    cluster, life = _life("scaled", 2)
    first = END_MS - 2 * times * _EVERY - 2 * SECOND
    life.commits(END_MS - 6 * MINUTE + 5 * SECOND, first - SECOND, 2 * SECOND)
    for at_ms in range(first, END_MS - _EVERY, 2 * _EVERY):
        life.join(at_ms, 4)
        # It loads something for most of the time, and falls behind.
        life.commit(at_ms + 7 * SECOND, behind_ms=(at_ms - first) // 2 + 8 * SECOND)
        del life.members[2:]
        life.rebalance(at_ms + _EVERY)
    cluster.write(tmp_path)
    found = [each for each in read_report(tmp_path).findings if each.kind in ("endless_rebalances", "crash_loop")]
    assert [(each.kind, each.level) for each in found] == ([("endless_rebalances", Level.HIGH)] if times > 3 else [])
    for each in found:
        assert each.since_timestamp_ms == pytest.approx(first, abs=2 * SECOND)
        assert [(cause.name, cause.confidence) for cause in each.causes] == [("scaled_again_and_again", "high")]
        assert "between 2 and 6 members" in each.causes[0].statement
        assert "cooperative-sticky" in each.next[0].what


@pytest.mark.parametrize("quiet_ms", [MINUTE, 3 * SECOND])
def test_members_that_time_out_in_turns(tmp_path: Path, quiet_ms: int) -> None:
    """Four departures by a timeout of two clients are a finding; it is over if there have been none for some time."""
    cluster, life = _life("turns", 2)
    first = END_MS - quiet_ms - 4 * 12 * SECOND
    life.commits(END_MS - 6 * MINUTE + 5 * SECOND, first, 2 * SECOND)
    for number in range(4):
        at_ms = first + number * 12 * SECOND
        frozen = number % 2
        rest = [("orders", each) for each in (range(3, 6) if frozen == 0 else range(3))]
        for after in (2, 4, 6, 8):
            life.commit(at_ms + after * SECOND, rest)
        gone = life.members.pop(frozen)
        life.rebalance(at_ms + 8 * SECOND)
        life._add(gone.number)
        life.members.insert(frozen, life.members.pop())
        life.rebalance(at_ms + 11 * SECOND)
        life.commit(at_ms + 12 * SECOND)
    life.commits(first + 4 * 12 * SECOND, END_MS, 2 * SECOND)
    cluster.write(tmp_path)
    (found,) = [each for each in read_report(tmp_path).findings if each.kind == "endless_rebalances"]
    is_over = quiet_ms == MINUTE
    assert (found.level, found.is_going_on) == ((Level.LOW, False) if is_over else (Level.HIGH, True))
    assert found.since_timestamp_ms == first + 8 * SECOND
    assert found.causes[0].name == "members_freeze"


@pytest.mark.parametrize("takes_over", [True, False], ids=["one after another", "at once"])
def test_members_that_die_of_one_partition_are_not_scaled(takes_over: bool) -> None:
    """Two of three members leave within a second, five times. If each took over a partition from the previous one, the
    record in it may be the cause."""
    rows: list[dict[str, object]] = []

    def event(at_ms: int, event: str, member: str, detail: str = "{}") -> None:
        place = {"group_id": "g", "group_kind": "consumer", "log_partition": 0, "sequence": 0, "log_offset": len(rows)}
        rows.append({**place, "event": event, "member_id": member, "detail": detail, "at_timestamp_ms": at_ms})

    event(0, "member_joined", "a", '{"client_id": "a"}')
    for number in range(5):
        at_ms = (1 + number) * MINUTE
        for client in ("b", "c"):
            event(at_ms, "member_joined", f"{client}{number}", f'{{"client_id": "{client}"}}')
        event(at_ms + 1, "assignment_changed", f"b{number}", '{"gained": {"orders": [0]}}')
        event(at_ms + 9 * SECOND, "member_left", f"b{number}")
        if takes_over:
            event(at_ms + 9 * SECOND, "assignment_changed", f"c{number}", '{"gained": {"orders": [0]}}')
        event(at_ms + 9 * SECOND + 500, "member_left", f"c{number}")
    found = scaling_of(_context({"offset_commits": []}, timeline=rows), "g", 0)
    assert (found is None) == takes_over
    if found is not None:
        assert (found.times, found.stayed, found.least, found.most) == (5, 1, 1, 3)


def test_tasks_of_streams_groups_are_partitions_of_their_sources() -> None:
    sources = {"0": ["orders", "returns"], "1": ["app-x-repartition"]}
    changes = {"active 0": [1, 2], "active 1": [0], "standby 0": [3], "active 7": [1]}
    assert with_topics(changes, sources) == {"orders": [1, 2], "returns": [1, 2], "app-x-repartition": [0]}
    assert with_topics({"orders": [1]}, {}) == {"orders": [1]}
    place = {"group_id": "g", "group_kind": "streams", "log_partition": 0, "sequence": 0, "member_id": "m"}
    events = [("member_joined", "{}"), ("assignment_changed", '{"gained": {"active 0": [2]}}')]
    context = _context(
        timeline=[
            {**place, "event": event, "detail": detail, "at_timestamp_ms": at, "log_offset": at}
            for at, (event, detail) in enumerate(events)
        ],
        assignments=[{"group_id": "g", "subtopology_id": "0", "source_topics": ["orders"], "partition": 2}],
    )
    (life,) = member_lives(context, ["g"])["g"]
    assert life.places == {("orders", 2)}
