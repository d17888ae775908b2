"""Groups that got a new topic, and fall behind in their others since."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import GROUP
from tests.report.test_rules_in_detail import _context, _found

_GIVEN: Final = 2 * MINUTE
_UNTIL: Final = 4 * MINUTE
_MADE: Final = _GIVEN - 2 * SECOND
_OLD, _NEW = "orders", "loadtest"
_NEW_TOPIC: Final = "new_topic"
_CLEANED: Final = Finding("note", INCOMPLETE_HISTORY, "", "", "__consumer_offsets", 0, complete_from=10**9)
"""A cleaner may have removed everything about the group."""
_RATES: Final = {"read_before": 10.0, "read_old": 9.8, "read_new": 30.0, "write_old": 10.0, "write_new": 100.0}
"""Records per second of each partition, of two for each topic."""


def _findings(
    *,
    made_ms: int | None = _MADE,
    joined_ms: int = 0,
    regex: str | None = "orders|load.*",
    first_ms: int = 0,
    members: int = 2,
    new_from: int = 0,
    given_ms: int = _GIVEN,
    held: int = 0,
    cleaned: bool = False,
    matched: Sequence[str] | None = (_OLD, _NEW),
    subtopology: str | None = None,
    **rates: float,
) -> list[ReportFinding]:
    """The findings about a group that read ten records per second of each partition of "orders", and got the topic
    "loadtest" at `given_ms`. `new_from` records were in each partition of it then; `held` is the number of its
    partitions that keep up. `matched` are the topics that its regular expression matched. If `subtopology` is given, it
    is a streams group whose members get tasks of it."""
    rate = {**_RATES, **rates}
    history, samples, lag, progress = [], [], [], []
    for topic in (_OLD, _NEW):
        for number in range(2):
            is_old, keeps_up = topic == _OLD, topic == _NEW and number < held
            began = first_ms if is_old else given_ms
            written, read = (0, 0) if is_old else (new_from, 0)
            ends, commits = [], []
            for at in range(began, _UNTIL + 1, SECOND):
                passed = (at - _GIVEN) / SECOND
                before = min(at, _GIVEN) / SECOND if is_old else 0
                since = max(passed, 0)
                written = (
                    int(10 * before + rate["write_old"] * since)
                    if is_old
                    else new_from + int(rate["write_new"] * since)
                )
                read = (
                    int(rate["read_before"] * before + rate["read_old"] * since)
                    if is_old
                    else written if keeps_up else int(rate["read_new"] * since)
                )
                ends.append({"offset": written - 1, "timestamp_ms": at})
                commits.append({"offset": read, "valid_from_timestamp_ms": at, "log_offset": at, "commits": 1})
            place = {"group_id": GROUP, "topic": topic, "partition": number, "log_partition": 0}
            history += [{**place, **each} for each in commits]
            samples.append(
                {"topic": topic, "partition": number, "log_start_offset": 0, "exact_from": 0, "samples": ends}
            )
            lag.append({**place, "lag": written - read, "member_id": f"m{number}"})
            row = {**place, "state": "falling_behind", "offset": read, "end_offset": written}
            progress.append({**row, "unread_timestamp_ms": _GIVEN, "moment_timestamp_ms": _UNTIL})
    kind = "consumer" if subtopology is None else "streams"
    event = {"group_id": GROUP, "log_partition": 0, "sequence": 0, "group_kind": kind}
    timeline = []
    for number in range(members):
        detail = json.dumps({"client_id": f"node-{number}"})
        joined = {"member_id": f"m{number}", "at_timestamp_ms": joined_ms, "log_offset": joined_ms + 1}
        timeline.append({**event, **joined, "event": "member_joined", "detail": detail})
        gained = json.dumps({"gained": {_NEW if subtopology is None else f"active {subtopology}": [number]}})
        given = {"member_id": f"m{number}", "at_timestamp_ms": given_ms - 500, "log_offset": given_ms}
        timeline.append({**event, **given, "event": "assignment_changed", "detail": gained})
    change = {"event": "created", "topic": _NEW, "partition_count": 2, "at_timestamp_ms": made_ms, "log_offset": 9}
    of_members = {"client_host": "/10.0.0.1", "subscribed_regex": regex, "regex_topics": matched}
    context = _context(
        {"history": history, "log_samples": samples, "topic_changes": [] if made_ms is None else [change]},
        lag=lag,
        members=[
            {"group_id": GROUP, "member_id": f"m{each}", "client_id": f"node-{each}", **of_members}
            for each in range(members)
        ],
        groups=[{"group_id": GROUP, "member_count": members, "log_partition": 0}],
        timeline=timeline,
        log_ends=[{"topic": each["topic"], "partition": each["partition"]} for each in samples],
        progress=progress,
        assignments=[{"group_id": GROUP, "subtopology_id": subtopology, "source_topics": [_NEW]}],
    )
    return _found(replace(context, reading=(_CLEANED,) if cleaned else ()), "too_slow")


def _only(**given: Any) -> ReportFinding:
    (found,) = _findings(**given)
    return found


def _causes(found: ReportFinding) -> list[tuple[str, str]]:
    return [(each.name, each.confidence) for each in found.causes]


def test_a_topic_that_a_subscription_by_a_regular_expression_matches_is_the_cause() -> None:
    found = _only()
    assert _causes(found) == [(_NEW_TOPIC, "high")]
    assert set(found.refuted_by) == {"work_slower"}
    assert found.title == "a group reads a new topic with more records than it can handle, and its backlog grows"
    assert found.since_timestamp_ms == _GIVEN - 500
    assert found.problem == (
        'The group "g" has read "loadtest" (partitions 0-1) since 1970-01-01 00:01:59 UTC: the topic was created at '
        "1970-01-01 00:01:58 UTC, 1.5 s before, and the regular expression orders|load.* of its subscription matches "
        "it. 200.0 records per second are written to it, and the group handles 79.6 in all (19.9 before). 16800 "
        'records wait there, and 48 in its other topics, "orders" (partitions 0-1), to which only 20.0 are written.'
    )
    assert found.scale["records_waiting_in_other_topics"] == 48
    assert [each.did for each in found.who] == ["reads the new topic"] * 2
    assert [(each.topic, each.timestamp_ms) for each in found.evidence[:2]] == [
        ("__cluster_metadata", _MADE),
        ("__consumer_offsets", _GIVEN - 500),
    ]
    assert found.next[0].what.startswith('If the records of "loadtest" are not for "g", stop what writes them, or')
    assert 'subscribe to "orders" by name, not by the regular expression orders|load.*' in found.next[0].what
    assert "a group of its own" in found.next[1].what
    assert not any("Add members" in each.what or "became slow" in each.what for each in found.next)


@pytest.mark.parametrize("matched", [None, [], [_OLD]])
def test_a_regular_expression_that_is_not_known_to_match_is_not_named(matched: Sequence[str] | None) -> None:
    found = _only(matched=matched)
    assert "regular expression" not in found.problem
    assert not any("regular expression" in each.what for each in found.next)


def test_tasks_of_a_streams_group_are_partitions_of_the_topic() -> None:
    """Their members got them half a second before the first commit."""
    found = _only(regex=None, subtopology="0")
    assert found.since_timestamp_ms == _GIVEN - 500
    assert _causes(found) == [(_NEW_TOPIC, "high")]


def test_a_group_is_said_to_keep_up_with_its_other_topics_only_if_that_is_proved() -> None:
    statements = {
        cause.statement
        for found in (_only(), *_findings(read_old=3.0, read_new=2.0, write_new=20.0))
        for cause in found.causes
        if cause.name == _NEW_TOPIC
    }
    proved, other = sorted(statements, key=lambda each: "would keep up" not in each)
    assert proved.endswith('and would keep up with the 20.0 of its other topics ("orders").')
    assert other.endswith('the group handles 10.0 in all, and 20.0 are written to its other topics ("orders").')


def test_the_other_topics_of_the_group_are_effects() -> None:
    found = _only(read_old=7.0)
    assert found.topics == (_NEW,)
    assert [each.topics for each in found.effects] == [(_OLD,)]


def test_a_topic_that_the_group_keeps_up_with_takes_the_time_of_the_others() -> None:
    """It gives most of its time to the new topic, and its backlog grows in the other one."""
    found = _only(read_old=7.0, held=2)
    assert found.topics == (_OLD,)
    assert _causes(found) == [(_NEW_TOPIC, "high")]
    assert "0 records wait there, and 720 in its other topics" in found.problem
    assert "records_waiting_in_other_topics" not in found.scale


def test_old_records_of_a_topic_take_the_time_of_the_others() -> None:
    """Few are written to it, but many were there."""
    found = _only(read_old=7.0, write_new=5.0, new_from=20_000, made_ms=None, joined_ms=_GIVEN - SECOND)
    assert found.topics == (_OLD,)
    assert _causes(found)[0] == (_NEW_TOPIC, "medium")
    assert "34000 records wait there, and 720 in its other topics" in found.problem


@pytest.mark.parametrize(
    ("given", "how", "out"),
    [
        ({"regex": None}, "without a restart, as subscriptions to a pattern do", "by name, not by a pattern"),
        ({"regex": None, "joined_ms": _GIVEN - SECOND}, "members that joined then subscribe to it", "out of the list"),
        ({"regex": None, "made_ms": None}, "without a restart.", "out of the list"),
    ],
    ids=["classic pattern", "release", "no metadata"],
)
def test_it_is_said_how_the_group_came_to_the_topic(given: Mapping[str, Any], how: str, out: str) -> None:
    found = _only(**given)
    assert found.causes[0].name == _NEW_TOPIC
    assert how in found.problem
    assert out in found.next[0].what


@pytest.mark.parametrize(
    "given",
    [{"joined_ms": _GIVEN - SECOND}, {"made_ms": None}],
    ids=["members were restarted", "creation unknown"],
)
def test_it_is_not_certain_if_something_else_may_have_changed(given: Mapping[str, Any]) -> None:
    found = _only(**given)
    assert _causes(found) == [(_NEW_TOPIC, "medium"), ("work_slower", "low")]
    assert found.decision is not None
    assert found.decision.between == (_NEW_TOPIC, "work_slower")


def test_it_is_not_certain_if_only_one_partition_waits() -> None:
    """One of the members, which has it, may be slow."""
    assert ("slow_member", "medium") in _causes(_only(held=1))


def test_a_group_that_handles_less_than_before_became_slow() -> None:
    found = _findings(read_old=3.0, read_new=2.0, write_new=20.0)
    assert len(found) == 2
    causes = {each.topics: _causes(each) for each in found}
    assert causes[_OLD,] == [("work_slower", "medium")]
    assert (_NEW_TOPIC, "low") in causes[_NEW,]
    for each in found:
        assert each.title == "a group reads less than is written, and its backlog grows"
        assert each.who[0].did == "reads too slowly"


@pytest.mark.parametrize(
    "given",
    [
        {"first_ms": _GIVEN - 10 * SECOND},
        {"given_ms": _GIVEN + 30 * SECOND, "made_ms": None, "held": 2},
        {"cleaned": True},
    ],
    ids=["the group is as new", "it came later", "it may be older"],
)
def test_a_topic_is_not_the_cause_if_it_did_not_come_when_the_backlog_began(given: Mapping[str, Any]) -> None:
    for found in _findings(read_old=7.0, **given):
        assert _NEW_TOPIC not in [name for name, _ in _causes(found)]
