"""Groups that fall behind because members left and were not replaced."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.rules.fewer_members import weigh_members
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import GROUP
from tests.report.test_rules_in_detail import _context

_SINCE = 10 * MINUTE


def _event(event: str, at_ms: int, member: str, name: str) -> dict[str, Any]:
    place = {"log_partition": 0, "log_offset": at_ms // SECOND, "sequence": 0}
    detail = f'{{"client_id": "{name}"}}' if event == "member_joined" else None
    return {"group_id": GROUP, "event": event, "at_timestamp_ms": at_ms, "member_id": member, "detail": detail, **place}


_JOINED = [_event("member_joined", 0, f"{name}-1", name) for name in ("a", "b", "c")]
_B_LEFT = _event("member_left", _SINCE, "b-1", "b")
_C_LEFT = _event("member_left", _SINCE + 7 * SECOND, "c-1", "c")


@pytest.mark.parametrize(
    ("events", "reads_now", "certain"),
    [
        ([_B_LEFT, _C_LEFT], 30, True),
        ([_B_LEFT, _C_LEFT], 12, False),
        ([], 30, None),
        ([_event("member_left", MINUTE, "b-1", "b")], 30, None),
        ([_B_LEFT, _event("member_joined", _SINCE + MINUTE, "b-2", "b")], 30, None),
        ([_B_LEFT, _C_LEFT, _event("member_left", _SINCE + MINUTE, "a-1", "a")], 30, None),
    ],
    ids=["as fast", "slower too", "none left", "long ago", "back", "all left"],
)
def test_members_that_left_when_the_backlog_began(
    events: list[dict[str, Any]], reads_now: float, certain: bool | None
) -> None:
    """Three members read 60 records per second before."""
    context = _context({}, timeline=[*_JOINED, *events])
    found = weigh_members(context, GROUP, (0, _SINCE), _SINCE + 5 * MINUTE, (60, reads_now))
    assert (found and found.is_certain) == certain
    if found is not None:
        assert found.statement.startswith(f'"{GROUP}" has 1 member, and had 3 while it kept up: "b", "c" left')
        assert bool(found.evidence_against) is not found.is_certain
        assert [each.timestamp_ms for each in found.evidence_for[:2]] == [_SINCE, _SINCE + 7 * SECOND]
        assert found.steps[-1].what == "Start as many members again as before (3)"
