"""Positions in a deleted topic that were committed for the topic that was created after it."""

from __future__ import annotations

import pytest

from kafka_records_tables.report.facts.carried_positions import carried_positions
from tests.report.test_rules_in_detail import _context


@pytest.mark.parametrize(
    ("old", "committed_ms", "later", "is_found"),
    [(19, 5000, 60, True), (19, 9000, 60, False), (30, 5000, 60, False), (19, 5000, 3, False), (None, 5000, 60, False)],
    ids=["carried", "read", "below_the_old_one", "went_back", "old_one_unknown"],
)
def test_a_commit_beyond_the_end_of_the_new_log_is_an_old_position(
    old: int | None, committed_ms: int, later: int, is_found: bool
) -> None:
    """The new log has record n at 5000 + 100 n; the group commits 26, and once more at 20 s."""
    samples = [{"offset": at, "timestamp_ms": 5000 + 100 * at} for at in range(80)]
    log = {"topic": "orders", "partition": 0, "log_start_offset": 4, "log_end_offset": 80}
    log |= {"samples": samples, "exact_from": 0}
    row = {"group_id": "g", "topic": "orders", "partition": 0}
    commits = [(26, committed_ms), (later, 20_000)]
    history = [
        row | {"offset": offset, "valid_from_timestamp_ms": at, "log_partition": 0, "log_offset": at, "commits": 1}
        for offset, at in commits
    ]
    first = row | {"from_offset": old, "to_offset": 26, "commit_timestamp_ms": committed_ms}
    found = carried_positions(_context({"log_samples": [log], "history": history}), "orders", [first])
    assert [(each.group_id, each.partition, each.offset, each.records) for each in found] == (
        [("g", 0, 26, 22)] if is_found else []
    )
