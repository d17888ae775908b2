"""Topics of coordinators whose configs let brokers delete what coordinators need."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.levels import Level
from tests.report.data_directory import OFFSETS, SHARE_STATE, TRANSACTIONS
from tests.report.test_rules_in_detail import _context, _found

KIND = "coordinator_topic_deletes"
Row = dict[str, Any]


def _configs(topic: str, **values: str) -> list[Row]:
    """Rows of `configs`; names have underscores for the dots."""
    row = {"resource_type": "topic", "resource_name": topic, "is_sensitive": False}
    return [row | {"name": name.replace("_", "."), "value": value} for name, value in values.items()]


def _log(topic: str, partition: int, start: int) -> Row:
    return {"topic": topic, "partition": partition, "log_start_offset": start, "log_end_offset": 900}


@pytest.mark.parametrize(
    ("topic", "values", "is_found"),
    [
        (OFFSETS, {"cleanup_policy": "compact"}, False),
        (OFFSETS, {}, False),
        (OFFSETS, {"cleanup_policy": "delete"}, True),
        (OFFSETS, {"cleanup_policy": "compact,delete", "retention_ms": "1"}, True),
        (OFFSETS, {"cleanup_policy": "delete", "retention_ms": "-1", "retention_bytes": "-1"}, False),
        (TRANSACTIONS, {"cleanup_policy": "delete", "retention_ms": "-1"}, True),
        (SHARE_STATE, {"cleanup_policy": "delete", "retention_ms": "-1"}, False),
        (SHARE_STATE, {"cleanup_policy": "delete"}, False),
        (SHARE_STATE, {"cleanup_policy": "delete", "retention_ms": "-1", "retention_bytes": "9"}, True),
    ],
)
def test_which_configs_delete(topic: str, values: dict[str, str], is_found: bool) -> None:
    """The finding comes even before anything is lost. Brokers create the topic of share state with `delete`, and
    without limits."""
    context = _context({"configs": _configs(topic, **values)}, log_ends=[_log(topic, 0, 0)])
    found = _found(context, KIND)
    assert bool(found) is is_found
    for each in found:
        assert (each.level, each.scale) == (Level.HIGH, {"offsets_deleted": 0, "partitions": 0})
        assert "still begin at offset 0" in each.problem
        assert topic in str(each.next[0].command)
        assert ("cleanup.policy=compact" in str(each.next[0].command)) is (topic != SHARE_STATE)


def test_deleted_records_are_no_missing_files() -> None:
    """Without a config that deletes, a log that begins above 0 lacks files."""
    logs = [_log(OFFSETS, 0, 0), _log(OFFSETS, 1, 70), _log(OFFSETS, 2, 5), _log(TRANSACTIONS, 0, 3)]
    change = {"topic": OFFSETS, "event": "compaction_ended", "at_timestamp_ms": 5000, "log_offset": 92}
    state = {"check": "share_state_unnamed", "level": "broken", "group_id": "pickers", "detail": "state"}
    looks = {
        "configs": _configs(OFFSETS, cleanup_policy="delete", retention_ms="20000"),
        "topic_changes": [change],
    }
    context = _context(looks, log_ends=logs, checks=[state])
    (found,) = _found(context, KIND)
    assert (found.partitions, found.scale) == ((1, 2), {"offsets_deleted": 75, "partitions": 2})
    assert (found.since_timestamp_ms, found.evidence[0].offset, found.group_ids) == (5000, 92, ("pickers",))
    assert found.is_going_on
    (cut,) = _found(context, "log_cut")
    assert cut.topics == (TRANSACTIONS,)
    (cut,) = _found(_context(log_ends=logs[:3]), "log_cut")
    assert "either the topic had that policy, or files of the log are gone" in cut.problem
    asks = "--describe --entity-type topics --entity-name __consumer_offsets"
    assert asks in str(cut.next[0].command)
    known = _context({"configs": _configs(OFFSETS, cleanup_policy="compact")}, log_ends=logs[:3])
    (cut,) = _found(known, "log_cut")
    assert not any(asks in str(each.command) for each in cut.next)
