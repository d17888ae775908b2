"""Members of one group whose client ids name two applications that consume the same topic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka_records_tables.report.facts.client_names import words_of
from kafka_records_tables.report.levels import Level
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = dict[str, Any]
SECOND, MINUTE, HOUR = 1000, 60_000, 3_600_000


@pytest.mark.parametrize(
    ("client_id", "words"),
    [
        ("fraud-check-1", {"fraud", "check"}),
        ("FraudCheck12", {"fraudcheck"}),
        ("pdf-job-faa9aad2", {"pdf", "job"}),
        ("counts-7b1f6f0e-2f5e-4c0a-9d3c-1f2e3d4c5b6a-StreamThread-1-consumer", {"counts"}),
        ("consumer-orders-app-3", set()),
        ("rdkafka", set()),
        ("aiokafka-0.12.0", set()),
        ("ip-10-0-0-7", set()),
        (None, set()),
    ],
)
def test_the_words_of_a_client_id_that_name_an_application(client_id: str | None, words: set[str]) -> None:
    assert words_of(client_id) == words


def _joins(name: str, partitions: list[int], from_ms: int, to_ms: int | None = None) -> list[Row]:
    """The events of a member that is assigned partitions when it joins."""
    row = {"group_id": "g", "member_id": f"{name}-id", "log_partition": 0}
    given = json.dumps({"gained": {"orders": partitions}})
    rows: list[Row] = [
        {"at_timestamp_ms": from_ms, "event": "member_joined", "detail": json.dumps({"client_id": name})},
        {"at_timestamp_ms": from_ms, "event": "assignment_changed", "detail": given},
    ]
    if to_ms is not None:
        rows.append({"at_timestamp_ms": to_ms, "event": "member_left", "detail": None})
    return [row | each | {"log_offset": each["at_timestamp_ms"] - END_MS + 10 * HOUR} for each in rows]


def _member(name: str, version: int) -> Row:
    protocol = {"name": "range", "version": version, "opened": '{"topics": ["orders"]}'}
    return {"group_id": "g", "member_id": f"{name}-id", "protocols": [protocol], "log_partition": 0, "log_offset": 1}


def _group(
    second: str = "points", *, together: int = 4 * MINUTE, leaves: int | None = None, several: bool = True
) -> Any:
    """`fraud-1` and `fraud-2` begin ten minutes before the end; others join them. A member of the first may leave a
    while after that."""
    joined = END_MS - together
    left = None if leaves is None else joined + leaves
    events = _joins("fraud-1", [0, 1], END_MS - 10 * MINUTE) + _joins("fraud-2", [1], END_MS - 10 * MINUTE + SECOND)
    if left is not None:
        events[1:2] += _joins("fraud-1", [], END_MS - 10 * MINUTE, left)[2:]
    events += _joins(f"{second}-1", [0], joined) + (_joins(f"{second}-2", [0], joined) if several else [])
    return sorted(events, key=lambda each: each["log_offset"])


SAME, OTHER = (1, 1), (3, 1)


@pytest.mark.parametrize(
    ("events", "versions", "level"),
    [
        (_group(), SAME, Level.MODERATE),
        (_group(several=False), OTHER, Level.MODERATE),
        (_group(several=False), SAME, Level.NOTE),
        (_group(leaves=MINUTE), SAME, Level.NOTE),
        (_group(together=3 * MINUTE), OTHER, None),
        (_group("fraudulent"), OTHER, None),
        (_group("consumer-g"), OTHER, None),
    ],
    ids=["joined_beside", "other_clients", "one_each", "one_left", "not_long", "renamed", "default_ids"],
)
def test_two_applications_or_one(events: list[Row], versions: tuple[int, int], level: Level | None) -> None:
    names = {each["member_id"].removesuffix("-id") for each in events}
    members = [_member(name, versions[not name.startswith("fraud-")]) for name in names]
    found = _found(_context({"history": []}, timeline=events, members=members), "unlike_members")
    assert [each.level for each in found] == ([] if level is None else [level])
    if level is not None:
        assert {each.name for each in found[0].causes} == {"two_applications", "one_application"}
        assert found[0].decision is not None
        assert found[0].next[0].what == found[0].decision.question


def test_what_each_application_consumed_is_counted() -> None:
    """From the commits while both were there, by the member that had the partition."""
    since = END_MS - 4 * MINUTE
    commits = [(0, 50, since - SECOND), (0, 80, since + SECOND), (1, 20, since - SECOND), (1, 25, since + SECOND)]
    place = {"group_id": "g", "topic": "orders", "log_partition": 0, "commits": 1}
    history = [
        place | {"partition": partition, "offset": offset, "valid_from_timestamp_ms": at_ms, "log_offset": at}
        for at, (partition, offset, at_ms) in enumerate(commits)
    ]
    (found,) = _found(_context({"history": history}, timeline=_group(), members=[]), "unlike_members")
    assert (found.measured["by_first"], found.measured["by_second"]) == (5, 30)
    assert found.scale["records_possibly_missed"] == 35
    assert any("--topic orders:0 --to-datetime" in str(each.command) for each in found.next)
