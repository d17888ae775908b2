"""Groups that are scaled up and down again and again, and members that freeze in turns."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from kafka_records_tables.report.facts.group_facts import MemberLife, member_lives
from kafka_records_tables.report.facts.streams_tasks import with_topics
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules import rebalancing, scaled_groups
from kafka_records_tables.report.rules.scaled_groups import may_be_scaled, scaling_of
from kafka_records_tables.report.rules.usual_scaling import falls_behind
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import Row, _context, _found

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
def test_a_group_that_is_scaled_again_and_again(tmp_path: Path, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # The logs of made-up topics do not show how their ends moved.
    monkeypatch.setattr(rebalancing, "falls_behind", lambda _, groups: set(groups))
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
        assert [(cause.name, cause.confidence) for cause in each.causes] == [
            ("scaled_again_and_again", "medium"),
            ("processes_restart", "medium"),
        ]
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


def test_a_scaled_group_that_keeps_up_is_no_finding(tmp_path: Path) -> None:
    """Fewer rebalances than usual are a finding only if the group falls behind."""
    cluster, life = _life("keeps up", 2)
    first = END_MS - 6 * 2 * _EVERY - 2 * SECOND
    life.commits(END_MS - 6 * MINUTE + 5 * SECOND, first - SECOND, 2 * SECOND)
    for at_ms in range(first, END_MS - _EVERY, 2 * _EVERY):
        life.join(at_ms, 4)
        life.commits(at_ms, at_ms + _EVERY, SECOND, behind_ms=SECOND)
        del life.members[2:]
        life.rebalance(at_ms + _EVERY)
        life.commits(at_ms + _EVERY, at_ms + 2 * _EVERY, SECOND, behind_ms=SECOND)
    cluster.write(tmp_path)
    assert [each.kind for each in read_report(tmp_path).findings if each.level > Level.NOTE] == []


def test_two_rolling_restarts_without_leaving_are_no_freezes(tmp_path: Path) -> None:
    """Each client is killed twice. Its next member joins before the coordinator removes the old one."""
    cluster, life = _life("killed", 2)
    first = END_MS - MINUTE - 4 * 12 * SECOND
    life.commits(END_MS - 6 * MINUTE + 5 * SECOND, first, 2 * SECOND)
    for number in range(4):
        at_ms = first + number * 12 * SECOND
        killed = number % 2
        rest = [("orders", each) for each in (range(3, 6) if killed == 0 else range(2))]
        for after in (2, 4, 6):
            life.commit(at_ms + after * SECOND, rest)
        life._add(life.members[killed].number)
        life.rebalance(at_ms + 6 * SECOND)
        gone = life.members.pop(killed)
        assert gone.number == life.members[-1].number
        life.members.insert(killed, life.members.pop())
        life.rebalance(at_ms + 8 * SECOND)
        life.commit(at_ms + 10 * SECOND)
    life.commits(first + 4 * 12 * SECOND, END_MS, 2 * SECOND)
    cluster.write(tmp_path)
    assert [each.kind for each in read_report(tmp_path).findings if each.level > Level.NOTE] == []


_START_MS = END_MS - 7 * MINUTE
_PLACE = {"group_id": "g", "topic": "orders", "partition": 0}


class _Timeline:
    """Rows of the table `timeline`."""

    def __init__(self) -> None:
        self.rows: list[dict[str, object]] = []

    def event(self, at_ms: int, event: str, member: str, detail: Mapping[str, object] | None = None) -> None:
        place = {"group_id": "g", "group_kind": "consumer", "log_partition": 0, "sequence": 0}
        words = {"log_offset": len(self.rows), "event": event, "member_id": member, "detail": json.dumps(detail or {})}
        self.rows.append({**place, **words, "at_timestamp_ms": _START_MS + at_ms})

    def join(self, at_ms: int, member: str, host: str) -> None:
        """A member, whose client id is its first letter, joins."""
        client = {"client_id": member[0], "client_host": host, "session_timeout_ms": 10 * SECOND}
        self.event(at_ms, "member_joined", member, client)

    def assign(self, at_ms: int, member: str, partition: int) -> None:
        self.event(at_ms, "assignment_changed", member, {"gained": {"orders": [partition]}})

    def epoch(self, at_ms: int, members: int) -> None:
        self.event(at_ms, "epoch", "")
        self.rows[-1] |= {"member_id": None, "member_count": members}

    def context(self, looks: Mapping[str, Sequence[Row]] | None = None, **tables: Sequence[Row]) -> RuleContext:
        return _context({"offset_commits": [], **(looks or {})}, timeline=self.rows, **tables)


def _pairs(hosts: str, back_ms: int, stay_ms: int = 9 * SECOND, takes_over: bool = False) -> _Timeline:
    """Two of three members, on given hosts, leave within a second, five times."""
    timeline = _Timeline()
    timeline.join(0, "a", "a")
    timeline.epoch(0, 1)
    at_ms = MINUTE
    for number in range(5):
        for client, host in zip("bc", hosts, strict=True):
            timeline.join(at_ms, f"{client}{number}", host)
        timeline.epoch(at_ms, 3)
        timeline.assign(at_ms, f"b{number}", 0)
        at_ms += stay_ms
        timeline.event(at_ms, "member_left", f"b{number}")
        if takes_over:
            timeline.assign(at_ms, f"c{number}", 0)
        timeline.event(at_ms + 500, "member_left", f"c{number}")
        timeline.epoch(at_ms + 500, 1)
        at_ms += 500 + back_ms
    return timeline


@pytest.mark.parametrize(
    ("hosts", "state", "kinds"),
    [
        ("bb", "stalled", ["crash_loop"]),
        ("bc", "stalled", ["endless_rebalances"]),
        ("bc", "ok", ["crash_loop"]),
    ],
    ids=["one process restarts", "scaled", "scaled without a finding"],
)
def test_a_stuck_partition_of_members_that_leave_together(hosts: str, state: str, kinds: Sequence[str]) -> None:
    """A process with two consumers that fails and restarts is a crash loop. If the group is scaled, the loop is left
    out only if there is a finding that says so."""
    commit = {**_PLACE, "offset": 20, "valid_from_timestamp_ms": _START_MS, "log_partition": 0, "log_offset": 0}
    context = _pairs(hosts, 50 * SECOND).context(
        {"history": [commit]},
        lag=[{**_PLACE, "lag": 50, "unread_timestamp_ms": _START_MS}],
        progress=[{**_PLACE, "state": state}],
        groups=[{"group_id": "g", "group_kind": "consumer"}],
    )
    found = [each for kind in ("crash_loop", "endless_rebalances") for each in _found(context, kind)]
    assert [each.kind for each in found if each.level > Level.NOTE] == kinds


@pytest.mark.parametrize(("state", "is_behind"), [("ok", False), ("idle", False), (None, False), ("stalled", True)])
def test_a_group_falls_behind_if_a_partition_is_known_to(state: str | None, is_behind: bool) -> None:
    context = _context(progress=[{**_PLACE, "state": "ok"}, {**_PLACE, "partition": 1, "state": state}])
    assert falls_behind(context, ["g"]) == ({"g"} if is_behind else set())


@pytest.mark.parametrize(
    ("hosts", "back_ms", "stay_ms", "takes_over", "is_scaled"),
    [
        ("bc", 50 * SECOND, 9 * SECOND, False, True),
        ("bc", 50 * SECOND, 9 * SECOND, True, False),
        ("bc", 2 * SECOND, 9 * SECOND, False, False),
        ("bc", 50 * SECOND, 11 * SECOND, False, False),
        ("bb", 50 * SECOND, 9 * SECOND, False, False),
    ],
    ids=["at once", "one after another", "back at once", "may have timed out", "one process"],
)
def test_members_that_leave_together(hosts: str, back_ms: int, stay_ms: int, takes_over: bool, is_scaled: bool) -> None:
    """Two of three members leave within a second, five times. If each took over a partition from the previous one, the
    record in it may be the cause. If both are of one process, or back at once, their processes may have ended."""
    found = scaling_of(_pairs(hosts, back_ms, stay_ms, takes_over).context(), "g", 0)
    assert (found is not None) == is_scaled
    if found is not None:
        assert (found.times, found.smaller, found.stayed, found.least, found.most) == (5, 5, 1, 1, 3)


@pytest.mark.parametrize(("gone", "is_scaled"), [(("bc", "bcd", "cd", "bcd"), True), (("bcd",) * 4, False)])
def test_processes_of_one_host_do_not_always_leave_together(gone: Sequence[str], is_scaled: bool) -> None:
    timeline = _Timeline()
    timeline.join(0, "a", "/h")
    there: dict[str, str] = {}
    for number, clients in enumerate(gone):
        at_ms = (1 + number) * MINUTE
        for partition, client in enumerate("bcd"):
            if client not in there:
                there[client] = f"{client}{number}"
                timeline.join(at_ms, there[client], "/h")
                timeline.assign(at_ms, there[client], partition)
        for client in clients:
            timeline.event(at_ms + 9 * SECOND, "member_left", there.pop(client))
    found = scaling_of(timeline.context(), "g", 0)
    assert (None if found is None else found.times) == (4 if is_scaled else None)


def test_only_groups_that_members_left_together_are_examined(monkeypatch: pytest.MonkeyPatch) -> None:
    """The members of all of them are read once."""
    place = {"group_kind": "consumer", "log_partition": 0, "sequence": 0, "event": "member_left", "detail": "{}"}
    rows = [
        {**place, "group_id": f"g{group}", "log_offset": number, "member_id": f"m{number}", "at_timestamp_ms": at_ms}
        for group, apart_ms in ((0, SECOND), (1, SECOND), (2, 1 + SECOND))
        for number, at_ms in enumerate(each * MINUTE + late for each in range(3) for late in (0, apart_ms))
    ]
    asked: list[list[str]] = []

    def lives(context: RuleContext, groups: Sequence[str]) -> dict[str, list[MemberLife]]:
        asked.append(sorted(groups))
        return member_lives(context, groups)

    monkeypatch.setattr(scaled_groups, "member_lives", lives)
    context = _context({"offset_commits": []}, timeline=rows)
    assert [may_be_scaled(context, f"g{group}") for group in range(3)] == [True, True, False]
    assert [scaling_of(context, f"g{group}", 0) for group in (0, 0, 1, 2)] == [None] * 4
    assert asked == [["g0", "g1"]]


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
