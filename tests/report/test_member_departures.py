"""Causes that depend on how members leave: they freeze, end, or read without commits; and one hot partition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kafka_records_tables.report.facts.group_facts import LogEnds, Span
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.rules import slow_groups
from kafka_records_tables.report.rules.key_skew import hot_partition, weigh_skew
from kafka_records_tables.report.rules.silent_readers import reads_without_commits
from kafka_records_tables.report.rules.stuck_partitions import how_they_left, look_at, step_past, usual_step
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context, _found

_ROUNDS = 14


def _written(folder: Path, how: str, rounds: int = _ROUNDS) -> None:
    """Three members commit every three seconds. The third is gone and back again and again: `silent` for nine seconds
    before, or it `commits` until it leaves, or it is `replaced` before it is removed."""
    cluster = MadeCluster("departures", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.topic("orders", 3)
    life = ClassicLife(cluster, GROUP, ["orders"])
    life._timeouts = (5 * MINUTE, 6 * SECOND)
    first = END_MS - rounds * 18 * SECOND - 3 * SECOND
    life.start(first - 2 * MINUTE, 3)
    life.commits(first - 2 * MINUTE + 4 * SECOND, first, 3 * SECOND)
    others = [("orders", 0), ("orders", 1)]
    for number in range(rounds):
        at_ms = first + number * 18 * SECOND
        life.commit(at_ms)
        for after in (3, 6, 8):
            life.commit(at_ms + after * SECOND, None if how == "commits" else others)
        if how == "replaced":
            life._add(3)
            life.rebalance(at_ms + 8 * SECOND)
        life.members.pop(2)
        life.rebalance(at_ms + 9 * SECOND)
        if how != "replaced":
            life._add(3)
            life.rebalance(at_ms + 12 * SECOND)
        life.commit(at_ms + 15 * SECOND)
    cluster.write(folder)


_FREEZES = ("members_freeze", "medium")


@pytest.mark.parametrize(
    ("how", "causes", "words"),
    [
        (
            "silent",
            [_FREEZES, ("processes_restart", "medium")],
            '"g-3" at 10.42.1.13 freezes for longer than',
        ),
        ("commits", [("processes_restart", "high")], "Its processes end and start again"),
        ("replaced", [("processes_restart", "high")], 'The process of "g-3" at 10.42.1.13 ends without leaving'),
    ],
)
def test_members_that_are_gone_and_back(
    tmp_path: Path, how: str, causes: Sequence[tuple[str, str]], words: str
) -> None:
    """Whether they froze is decided by their commits before, and by when their client joined again."""
    _written(tmp_path, how)
    (found,) = [each for each in read_report(tmp_path).findings if each.level > Level.NOTE]
    assert found.kind == "endless_rebalances"
    assert [(each.name, each.confidence) for each in found.causes] == causes
    assert found.causes[0].statement.startswith(words)
    assert [(each.did, each.client_id) for each in found.who] == [(f"left {_ROUNDS} times", "g-3")]
    if how == "silent":
        assert [each.shows for each in found.causes[0].evidence_for] == [
            f"{_ROUNDS} of {_ROUNDS} departures are of {words[:19]}, which joined again 3 s after each; "
            "2 other members stayed",
            "half of the members that left had committed nothing for 9 s or longer before (usually they commit every "
            "3 s), and the session timeout is 6 s",
        ]
        assert found.decision is not None
        assert "keep running" in found.decision.question
    else:
        assert "members_freeze" in found.refuted_by


@pytest.mark.parametrize(("how", "levels"), [("silent", [Level.HIGH]), ("commits", [])])
def test_one_client_is_dropped_a_few_times(tmp_path: Path, how: str, levels: list[Level]) -> None:
    """Four departures of a client that times out are a finding by themselves; departures of a client that leaves are
    not."""
    rounds = 4
    _written(tmp_path, how, rounds)
    found = [each for each in read_report(tmp_path).findings if each.level > Level.NOTE]
    assert [each.level for each in found] == levels
    for each in found:
        assert each.kind == "endless_rebalances"
        assert each.since_timestamp_ms == END_MS - rounds * 18 * SECOND + 6 * SECOND
        assert each.scale["rebalances"] == 2 * rounds
        assert each.causes[0].name == "members_freeze"


_GAINED = '{"gained": {"orders": [0]}}'
_COMMITS = [
    {"group_id": GROUP, "topic": "orders", "partition": 0, "offset": at, "valid_from_timestamp_ms": at * 3 * SECOND}
    | {"valid_to_timestamp_ms": (at + 1) * 3 * SECOND if at < 20 else None, "log_partition": 0, "log_offset": at * 3}
    for at in range(21)
]
"""Commits every three seconds."""


def _event(event: str, at_ms: int, member: str, **more: Any) -> dict[str, Any]:
    place = {"log_partition": 0, "log_offset": at_ms // SECOND, "sequence": 0}
    return {"group_id": GROUP, "event": event, "at_timestamp_ms": at_ms, "member_id": member, **place, **more}


@pytest.mark.parametrize(
    ("stay_ms", "protocol", "evidence"),
    [(30 * SECOND, "range", (2, 0)), (12 * SECOND, "range", (0, 0)), (SECOND, "range", (0, 1)), (HOUR, "stream", None)],
    ids=["works for long", "may have died at once", "leaves at once", "Streams"],
)
def test_members_that_work_for_long_without_commits(
    stay_ms: int, protocol: str, evidence: tuple[int, int] | None
) -> None:
    """The members would have committed, because the group did so every three seconds before. A dead member stays for
    its session timeout."""
    events = [
        _event("member_joined", 0, "old", detail='{"session_timeout_ms": 10000}'),
        _event("member_left", 61 * SECOND, "old"),
        _event("member_joined", 62 * SECOND, "new"),
    ]
    groups = [{"group_id": GROUP, "group_kind": "classic", "protocol": protocol}]
    context = _context({"history": _COMMITS}, timeline=events, groups=groups)
    found = reads_without_commits(context, GROUP, [stay_ms])
    assert (None if found is None else (len(found.evidence_for), len(found.evidence_against))) == evidence


@pytest.mark.parametrize(("joined_ms", "has_two"), [(62 * SECOND, True), (SECOND, False)], ids=["new", "from before"])
def test_a_member_that_reads_nothing_may_not_commit(joined_ms: int, has_two: bool) -> None:
    """This does not apply to a member that committed before."""
    place = {"group_id": GROUP, "topic": "orders", "partition": 0, "commit_timestamp_ms": 60 * SECOND}
    stopped = place | {"state": "stopped", "wait_ms": HOUR, "since_timestamp_ms": END_MS - HOUR}
    context = _context(
        {"history": _COMMITS},
        progress=[stopped],
        lag=[place | {"lag": 9, "member_id": "new"}],
        groups=[{"group_id": GROUP, "group_kind": "classic", "member_count": 1}],
        members=[{"group_id": GROUP, "member_id": "new", "session_timeout_ms": 10 * SECOND}],
        timeline=[_event("member_joined", joined_ms, "new")],
    )
    (found,) = _found(context, "group_stands_still")
    names = ["application_hangs", "does_not_commit"][: 1 + has_two]
    assert [(each.name, each.confidence) for each in found.causes] == [
        (each, "medium" if has_two else "high") for each in names
    ]
    assert (found.decision is not None) == has_two


def test_no_member_of_before_may_be_there() -> None:
    """The commits of such a member worked, so those of others could work too."""
    commit = {"group_id": GROUP, "topic": "orders", "partition": 0, "offset": 5, "valid_from_timestamp_ms": 5 * SECOND}
    events = [_event("member_joined", 0, "old"), _event("member_joined", 6 * SECOND, "new")]
    looks = {"history": [commit | {"log_partition": 0, "log_offset": 5}]}
    assert reads_without_commits(_context(looks, timeline=events), GROUP, [HOUR]) is None


def test_the_record_that_fails_is_exact_only_if_each_is_committed() -> None:
    def spans(step: int) -> list[Span]:
        return [Span(at * step, at, at + 1, "commit", 0, at, None, 1) for at in range(30)]

    context, place = _context(), ("orders", 2)
    assert [usual_step(spans(each)) for each in (1, 40)] == [1, 40]
    assert usual_step(spans(1)[:10]) is None
    for step, number in ((1, 1), (None, 20), (40, 40), (9000, 500)):
        assert f"--offset 7 --max-messages {number}" in (look_at(context, place, 7, step).command or "")
    assert "--to-offset 8 " in (step_past(context, GROUP, place, 7, 1).command or "")
    past = step_past(context, GROUP, place, 7, 40)
    assert "--to-offset AFTER_RECORD " in (past.command or "")
    assert "continuing at AFTER_RECORD, the offset after that record," in past.what


@pytest.mark.parametrize(
    ("kind", "stays", "words"),
    [
        (
            "consumer",
            [12 * SECOND, 9 * SECOND],
            "group.consumer.session.timeout.ms of the brokers is at most 9 s, their",
        ),
        ("classic", [5 * SECOND], "their session timeout is at most 5 s, their shortest stay."),
        ("consumer", [136, 2 * SECOND], "They left by themselves: 136 ms, the shortest stay, is no session timeout."),
        ("classic", [7 * SECOND], "No record shows whether they left on their own or timed out."),
    ],
)
def test_how_members_left_is_open_without_a_known_timeout(kind: str, stays: list[int], words: str) -> None:
    """Brokers may have a shorter timeout in their own files, which no record shows."""
    context = _context(groups=[{"group_id": GROUP, "group_kind": kind}])
    assert words in how_they_left(context, GROUP, stays)


def test_restarts_without_commits_are_no_loop_for_sure() -> None:
    """A new version is restarted every 65 s and never commits. The previous version committed every three seconds."""
    first = 60 * SECOND
    events = [_event("member_joined", 0, "old", detail=_GAINED), _event("member_left", first, "old")]
    for number in range(5):
        at_ms, name = first + (1 + 70 * number) * SECOND, f"new-{number}"
        events += [_event("member_joined", at_ms, name), _event("assignment_changed", at_ms, name, detail=_GAINED)]
        events.append(_event("member_left", at_ms + 65 * SECOND, name))
    lag = {"group_id": GROUP, "topic": "orders", "partition": 0, "lag": 50, "unread_timestamp_ms": first}
    members = [{"group_id": GROUP, "session_timeout_ms": 10 * SECOND}]
    context = _context({"history": _COMMITS}, timeline=events, lag=[lag], members=members)
    (found,) = _found(context, "crash_loop")
    assert found.title == "members join and leave again and again, and no offset moves"
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("does_not_commit", "medium"),
        ("poison_record", "low"),
        ("fails_at_start", "low"),
    ]
    assert found.decision is not None
    assert "--topic orders --partition 0 --offset 20 --max-messages 1" in (found.decision.command or "")


def _ends(written: Sequence[int]) -> LogEnds:
    return LogEnds(
        {
            "topic": "orders",
            "partition": number,
            "log_start_offset": 0,
            "exact_from": 0,
            "samples": [{"timestamp_ms": 0, "offset": 9}, {"timestamp_ms": 5000, "offset": 9 + count}],
        }
        for number, count in enumerate(written)
    )


def test_a_hot_partition_gets_most_records() -> None:
    hot = hot_partition("orders", [0, 1, 2], _ends([10, 80, 10]), 0, 10_000)
    assert hot is not None
    assert (hot.place, hot.written, hot.of_all) == ("orders-1", 80, 100)
    verdict = weigh_skew(hot, 50, 30, 40)
    assert "orders-1 gets 80 % of them (8.0 per second), and its reader manages 5.0" in verdict.statement
    assert [each.shows for each in verdict.evidence_for] == [
        "8.0 records per second are written to orders-1 and 5.0 are read from it; each of the other 2 partitions gets "
        "1.0 on average",
        "30 of 40 waiting records are in orders-1",
    ]
    growth = slow_groups.Growth(
        [("orders", 1)],
        0,
        10_000,
        30,
        50,
        80,
        None,
        Span(1, 1, None, None, 0, 1, None, 1),
        0,
        0,
        0,
        {("orders", 1): 50},
    )
    incident = slow_groups._incident(_context(), GROUP, "orders", growth, hot)
    assert set(incident.verdicts) == {"key_skew", "work_slower"}
    assert not any("Add members" in each.what for each in incident.finding.next)
    assert hot_partition("orders", [0, 1, 2], _ends([30, 40, 30]), 0, 10_000) is None
    assert hot_partition("orders", [0, 1, 2, 3], _ends([10, 80, 10]), 0, 10_000) is None, "an end is unknown"
    assert hot_partition("orders", [0], _ends([80]), 0, 10_000) is None
