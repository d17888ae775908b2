"""Which causes the metadata log leaves for a topic that was deleted and is there again."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.causes import with_causes
from kafka_records_tables.report.facts.recreated_topics import recreation_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import NextStep, ReportFinding
from kafka_records_tables.report.rules.offset_falls import with_causes as with_fall_causes
from kafka_records_tables.report.rules.remade_topics import RULE
from tests.report.test_rules_in_detail import _context

BY_CLIENT, ON_PURPOSE = "created_for_a_client", "recreated_on_purpose"
FINDING = ReportFinding("topic_made_anew", Level.HIGH, "title", "problem")
Row = dict[str, Any]


def _change(event: str, at_ms: int, count: int, configs: list[str] | None = None) -> Row:
    """A row of `topic_changes`."""
    row = {"topic": "orders", "event": event, "partition_count": count, "at_timestamp_ms": at_ms, "log_offset": at_ms}
    return row | {"configs": (configs or []) if event == "created" else None}


def _recreated(count: int, configs: list[str] | None = None, at_ms: int = 5300, before: list[str] | None = None) -> Any:
    return [_change("created", 1, 4, before), _change("deleted", 5000, 4), _change("created", at_ms, count, configs)]


@pytest.mark.parametrize(
    ("rows", "left", "refuted"),
    [
        (_recreated(1), [(BY_CLIENT, "medium"), (ON_PURPOSE, "low")], []),
        (_recreated(1, before=["retention.ms"], at_ms=900_000), [(BY_CLIENT, "medium"), (ON_PURPOSE, "low")], []),
        (_recreated(4, at_ms=900_000), [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
        (_recreated(4), [(BY_CLIENT, "medium"), (ON_PURPOSE, "low")], []),
        (_recreated(4, ["retention.ms"]), [(ON_PURPOSE, "high")], [BY_CLIENT]),
        (_recreated(4)[:2], [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
        ([], [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
    ],
    ids=[
        "other_count",
        "configs_gone",
        "same_count",
        "same_count_at_once",
        "configs_set",
        "not_there_again",
        "no_metadata",
    ],
)
def test_what_speaks_for_each_cause(
    monkeypatch: pytest.MonkeyPatch, rows: list[Row], left: list[tuple[str, str]], refuted: list[str]
) -> None:
    monkeypatch.setattr("kafka_records_tables.report.facts.recreated_topics.changes_of", lambda *_: rows)
    context: Any = _Steps()
    found = with_causes(context, RULE, {"topic": "orders"}, FINDING)
    assert [(each.name, each.confidence) for each in found.causes] == left
    assert [*found.refuted_by] == refuted
    assert bool(found.lacked) is (recreation_of(context, "orders") is None)
    assert (found.decision is None) is (len(left) == 1)


def test_the_last_recreation_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [*_recreated(4), _change("deleted", 7000, 4), _change("created", 8000, 2)]
    monkeypatch.setattr("kafka_records_tables.report.facts.recreated_topics.changes_of", lambda *_: rows)
    context: Any = _Steps()
    found = recreation_of(context, "orders")
    assert found is not None
    assert (found.since_ms, found.created["partition_count"], found.before["at_timestamp_ms"]) == (7000, 2, 5300)


def test_each_fall_from_a_position_in_an_older_topic_is_found() -> None:
    """However many members of other groups went back."""
    fall = {"group_id": "a", "topic": "orders", "partition": 0, "kind": "rewind_by_member", "group_kind": "classic"}
    fall |= {"from_offset": 9, "to_offset": 1, "log_partition": 0, "from_commit_timestamp_ms": 1, "confidence": "high"}
    rows = [fall | {"log_offset": at} for at in range(1000)]
    rows += [fall | {"group_id": "b", "log_offset": at, "from_commit_timestamp_ms": 5400} for at in range(2)]
    looks = {"topic_changes": _recreated(4), "log_samples": []}
    causes = with_fall_causes(_context(looks, regressions=rows))["cause"].to_pylist()
    assert causes == ["rewind_by_member"] * 1000 + ["topic_recreated"] * 2


class _Steps:
    """What the causes need of a context."""

    def ask_kafka(self, what: str, *words: str) -> NextStep:
        return NextStep(what, " ".join(words))
