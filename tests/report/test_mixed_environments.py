"""Members of one group whose client ids name different environments."""

from __future__ import annotations

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rules.mixed_environments import environment_of
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found
from tests.report.test_unlike_members import MINUTE, SECOND, _joins


@pytest.mark.parametrize(
    ("client_id", "environment"),
    [
        ("pricing-prod-0", "prod"),
        ("pricing_PRD2", "prod"),
        ("pricing-pre-prod-1", "preprod"),
        ("pricing-stg.1", "staging"),
        ("product-7", None),
        ("latest-1", None),
        ("pricing-canary", None),
        ("pricing-prod-test-1", None),
        (None, None),
    ],
)
def test_the_environment_of_a_client_id(client_id: str | None, environment: str | None) -> None:
    assert environment_of(client_id) == environment


@pytest.mark.parametrize(
    ("second", "together", "leaves", "level"),
    [
        ("pay-staging-0", 4 * MINUTE, None, Level.MODERATE),
        ("pay-staging-0", 4 * MINUTE, MINUTE, Level.NOTE),
        ("other-staging-0", 4 * MINUTE, None, Level.NOTE),
        ("pay-staging-0", 29 * SECOND, None, None),
        ("pay-live-1", 4 * MINUTE, None, None),
        ("pay-canary-0", 4 * MINUTE, None, None),
    ],
    ids=["staging", "rollout", "unlike", "short", "same", "canary"],
)
def test_another_environment_joins(second: str, together: int, leaves: int | None, level: Level | None) -> None:
    joined = END_MS - together
    left = None if leaves is None else joined + leaves
    events = _joins("pay-prod-0", [0], END_MS - 10 * MINUTE, left) + _joins("pay-prod-1", [1], END_MS - 9 * MINUTE)
    events = sorted(events + _joins(second, [1], joined), key=lambda each: each["log_offset"])
    commits = [(joined - SECOND, 40), (joined + SECOND, 70), (END_MS - SECOND, 90)]
    place = {"group_id": "g", "topic": "orders", "partition": 1, "log_partition": 0, "commits": 1}
    history = [
        place | {"offset": offset, "valid_from_timestamp_ms": at_ms, "log_offset": at}
        for at, (at_ms, offset) in enumerate(commits)
    ]
    found = _found(_context({"history": history}, timeline=events, members=[]), "mixed_environments")
    assert [each.level for each in found] == ([] if level is None else [level])
    if found:
        assert (found[0].since_timestamp_ms, found[0].partitions) == (joined, (1,))
        assert found[0].scale == {"records_of_other_environment": 50, "partitions": 1}
        assert found[0].causes[0].name == "other_environment"
        assert "orders,1,40" in found[0].next[1].what
