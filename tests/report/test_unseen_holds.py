"""Groups that stopped in partitions whose logs are not in the source, while a transaction is open in them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context, _found

_SINCE_MS: Final = END_MS - 5 * MINUTE
_HANGS, _HELD = "application_hangs", "transaction_holds_back"


def _stop(transactions: list[dict[str, Any]], end: int | None = None) -> ReportFinding:
    """The finding about a group that stopped five minutes ago in two partitions; `end` is the end of their logs."""
    place = {"group_id": GROUP, "topic": "orders", "log_partition": 0}
    since = {"since_timestamp_ms": _SINCE_MS, "commit_timestamp_ms": _SINCE_MS, "wait_ms": 5 * MINUTE}
    lag = None if end is None else end - 5
    context = _context(
        progress=[{**place, **since, "partition": each, "state": "stopped", "end_offset": end} for each in (0, 1)],
        lag=[{**place, "partition": each, "lag": lag, "offset": 5, "member_id": "m-2"} for each in (0, 1)],
        groups=[{"group_id": GROUP, "member_count": 1}],
        members=[{"group_id": GROUP, "member_id": "m-2", "client_id": "poster"}],
        open_transactions=transactions,
    )
    (found,) = _found(context, "group_stands_still")
    return found


def _open(partitions: tuple[int, ...], since_ms: int, name: str = "settle") -> dict[str, Any]:
    return {
        "transactional_id": name,
        "producer_id": 4,
        "since_timestamp_ms": since_ms,
        "partitions": [{"topic": "orders", "partitions": list(partitions)}],
    }


@pytest.mark.parametrize(
    ("transactions", "end", "causes"),
    [
        ([_open((0, 1), _SINCE_MS - SECOND)], None, [_HELD, _HANGS]),
        ([_open((0,), _SINCE_MS - SECOND), _open((1,), _SINCE_MS, "bill")], None, [_HELD, _HANGS]),
        # The log of the topic would show that the transaction holds records back.
        ([_open((0, 1), _SINCE_MS - SECOND)], 75, [_HANGS]),
        # The other partition stopped too, or records waited before the transaction began.
        ([_open((0,), _SINCE_MS - SECOND)], None, [_HANGS]),
        ([_open((0, 1), _SINCE_MS + SECOND)], None, [_HANGS]),
        ([], None, [_HANGS]),
    ],
)
def test_an_open_transaction_may_hold_records_back(
    transactions: list[dict[str, Any]], end: int | None, causes: list[str]
) -> None:
    found = _stop(transactions, end)
    assert [each.name for each in found.causes] == causes
    assert {each.confidence for each in found.causes} == {"high" if causes == [_HANGS] else "medium"}
    if end is None:
        assert "how many is unknown" in found.impact
        assert "records_waiting" not in found.scale
    else:
        assert (found.impact, found.scale["records_waiting"]) == ("140 records wait, and more come.", 140)
    if causes[0] == _HELD:
        assert "read_committed" in found.next[0].what
        assert "--transactional-id settle" in str(found.next[1].command)
