"""Few transactional ids that are each used once, at a rate that fills coordinators."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found


def _random(at: int) -> str:
    return f"render-{UUID(int=(at + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC834 % 2**128)}"


def _problems(name: Callable[[int], str], number: int = 30, *, gap_ms: int = 5 * SECOND, ended: int = 1) -> list[str]:
    """So many ids, one every `gap_ms`, and what the findings say."""
    rows = [
        {
            "transactional_id": name(at),
            "producer_id": at,
            "producer_epoch": 1,
            "state": "CompleteCommit",
            "start_timestamp_ms": END_MS - (number - at) * gap_ms,
            "last_update_timestamp_ms": END_MS - (number - at) * gap_ms + 40,
            "log_partition": 0,
            "log_offset": at,
        }
        for at in range(number)
    ]
    uses = [{"transactional_id": each["transactional_id"], "is_new": True, "ended": ended} for each in rows]
    return [
        each.problem for each in _found(_context({"first_uses": uses}, transactions=rows), "many_transactional_ids")
    ]


def test_a_rate_that_fills_coordinators_is_found_with_few_ids() -> None:
    (problem,) = _problems(_random)
    assert problem == (
        '30 transactional ids begin with "render" and were used for one or a few transactions each, in 2 min 25 s: '
        "about 745 new ones an hour, or 125097 a week."
    )


@pytest.mark.parametrize(
    ("name", "number", "gap_ms", "ended"),
    [
        (_random, 29, 5 * SECOND, 1),
        (_random, 30, 31 * MINUTE, 1),
        (_random, 30, 5 * SECOND, 2),
        ("render-0-{}".format, 30, 5 * SECOND, 1),
        (lambda at: f"{_random(at)}-1", 30, 5 * SECOND, 1),
    ],
    ids=["too few", "slow", "reused", "checkpoints", "tasks"],
)
def test_it_is_not_one_with_less_or_with_numbers(
    name: Callable[[int], str], number: int, gap_ms: int, ended: int
) -> None:
    assert _problems(name, number, gap_ms=gap_ms, ended=ended) == []
