"""Which causes remain, given the metadata log, for a topic that was deleted and exists again."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.causes import with_causes
from kafka_records_tables.report.facts.recreated_topics import recreation_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rules.offset_falls import with_causes as with_fall_causes
from kafka_records_tables.report.rules.remade_topics import RULE
from tests.report.test_rules_in_detail import _context, _found

BY_CLIENT, ON_PURPOSE = "created_for_a_client", "recreated_on_purpose"
FINDING = ReportFinding("topic_recreated", Level.HIGH, "title", "problem")
Row = dict[str, Any]


def _change(event: str, at_ms: int, count: int, configs: list[str] | None = None) -> Row:
    """A row of `topic_changes`."""
    row = {"topic": "orders", "event": event, "partition_count": count, "at_timestamp_ms": at_ms, "log_offset": at_ms}
    return row | {"configs": (configs or []) if event == "created" else None}


def _recreated(count: int, configs: list[str] | None = None, at_ms: int = 5300, before: list[str] | None = None) -> Any:
    return [_change("created", 1, 4, before), _change("deleted", 5000, 4), _change("created", at_ms, count, configs)]


def _lost(at_ms: int = 5100, members: int = 1, group: str = "g") -> Row:
    """The row of `timeline` by which a group lost its offsets with the topic."""
    row = {"group_id": group, "event": "offsets_deleted", "detail": '{"topic": "orders", "partitions": 4}'}
    return row | {"at_timestamp_ms": at_ms, "member_count": members, "log_partition": 0, "log_offset": at_ms}


@pytest.mark.parametrize(
    ("rows", "events", "left", "refuted"),
    [
        (_recreated(1), [], [(BY_CLIENT, "medium"), (ON_PURPOSE, "low")], []),
        (_recreated(1, at_ms=900_000), [], [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
        (
            _recreated(1, before=["retention.ms"], at_ms=900_000),
            [],
            [(BY_CLIENT, "medium"), (ON_PURPOSE, "low")],
            [],
        ),
        (_recreated(4, at_ms=900_000), [], [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
        (_recreated(4), [], [(BY_CLIENT, "medium"), (ON_PURPOSE, "low")], []),
        (_recreated(1, at_ms=9000), [_lost()], [(ON_PURPOSE, "medium"), (BY_CLIENT, "low")], []),
        (
            _recreated(1, at_ms=9000),
            [_lost(), {"group_id": "g", "event": "emptied", "at_timestamp_ms": 6000}],
            [(BY_CLIENT, "low"), (ON_PURPOSE, "low")],
            [],
        ),
        (_recreated(1, at_ms=9000), [_lost(members=0)], [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
        (_recreated(4, ["retention.ms"]), [], [(ON_PURPOSE, "high")], [BY_CLIENT]),
        (_recreated(4)[:2], [], [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
        ([], [], [(BY_CLIENT, "low"), (ON_PURPOSE, "low")], []),
    ],
    ids=[
        "at_once",
        "another_number_of_partitions",
        "configs_gone",
        "same_count",
        "same_count_at_once",
        "members_asked_in_vain",
        "members_left_meanwhile",
        "nobody_asked",
        "configs_set",
        "not_there_again",
        "no_metadata",
    ],
)
def test_what_speaks_for_each_cause(
    rows: list[Row], events: list[Row], left: list[tuple[str, str]], refuted: list[str]
) -> None:
    context = _context({"topic_changes": rows}, timeline=events)
    found = with_causes(context, RULE, {"topic": "orders"}, FINDING)
    assert [(each.name, each.confidence) for each in found.causes] == left
    assert [*found.refuted_by] == refuted
    assert bool(found.lacked) is (recreation_of(context, "orders") is None)
    assert (found.decision is None) is (len(left) == 1)


def test_a_group_that_ended_with_its_topic_is_in_the_finding() -> None:
    """Its offsets were deleted, it had members then, and it has committed nothing since. A group without members, one
    that lost its offsets at another time, and one that has continued did not end with it."""
    groups = {"ended": _lost(), "idle": _lost(members=0), "earlier": _lost(-90_000), "back": _lost()}
    events = [each | {"group_id": group} for group, each in groups.items()]
    current = [{"group_id": "back", "topic": "orders", "partition": 0, "offset": 1, "commit_timestamp_ms": 9000}]
    context = _context({"topic_changes": _recreated(2)}, timeline=events, current_offsets=current)
    (found,) = _found(context, "topic_recreated")
    assert found.group_ids == ("ended",)
    assert 'The group "ended" had members then, lost its offsets with the topic' in found.problem
    assert (found.since_timestamp_ms, found.evidence[0].offset) == (5000, 5100)
    assert any("--group ended --topic orders --to-earliest" in str(each.command) for each in found.next)


def test_without_a_metadata_log_lost_offsets_show_when_a_topic_was_deleted() -> None:
    """A group that later committed for the new topic lost the offsets of the old one at that time, and so did a group
    that ended."""
    fall = {
        "group_id": "back",
        "topic": "orders",
        "partition": 0,
        "kind": "topic_recreated",
        "commit_timestamp_ms": 9000,
    }
    fall |= {"from_offset": 9, "to_offset": 1, "log_partition": 0, "log_offset": 7, "confidence": "high"}
    events = [_lost(5000, group="back"), _lost(5200, group="ended"), _lost(80_000, group="later")]
    current = [{"group_id": "back", "topic": "orders", "partition": 0, "offset": 1, "commit_timestamp_ms": 9000}]
    (found,) = _found(_context(regressions=[fall], timeline=events, current_offsets=current), "topic_recreated")
    assert found.group_ids == ("ended", "back")
    assert found.since_timestamp_ms == 5000


def test_the_last_recreation_counts() -> None:
    rows = [*_recreated(4), _change("deleted", 7000, 4), _change("created", 8000, 2)]
    found = recreation_of(_context({"topic_changes": rows}), "orders")
    assert found is not None
    assert (found.since_ms, found.created["partition_count"], found.before["at_timestamp_ms"]) == (7000, 2, 5300)


def test_each_fall_from_a_position_in_an_older_topic_is_found() -> None:
    """The number of members of other groups that went back does not matter."""
    fall = {"group_id": "a", "topic": "orders", "partition": 0, "kind": "rewind_by_member", "group_kind": "classic"}
    fall |= {"from_offset": 9, "to_offset": 1, "log_partition": 0, "from_commit_timestamp_ms": 1, "confidence": "high"}
    rows = [fall | {"log_offset": at} for at in range(1000)]
    rows += [fall | {"group_id": "b", "log_offset": at, "from_commit_timestamp_ms": 5400} for at in range(2)]
    looks = {"topic_changes": _recreated(4), "log_samples": []}
    causes = with_fall_causes(_context(looks, regressions=rows))["cause"].to_pylist()
    assert causes == ["rewind_by_member"] * 1000 + ["topic_recreated"] * 2


@pytest.mark.parametrize(
    ("members", "to_offset", "start", "other", "words"),
    [
        (0, 125, 0, None, "the log still has them"),
        (0, 125, 40, None, "the log still has 80 of them"),
        (0, 119, 0, None, None),
        (1, 125, 0, None, "the log still has them"),
        (1, 119, 0, None, None),
        (1, 125, 0, 120, "the log still has them"),
        (1, 125, 0, 119, None),
        (0, 125, 0, 119, "the log still has them"),
    ],
    ids=[
        "away",
        "partly_deleted",
        "read_from_the_start",
        "was_there",
        "was_there_and_read_from_the_start",
        "began_at_another_end",
        "began_below_another_end",
        "away_after_it_began_below_another_end",
    ],
)
def test_a_group_may_have_skipped_what_was_written_before_it_was_assigned_the_new_topic(
    members: int, to_offset: int, start: int, other: int | None, words: str | None
) -> None:
    """If it began at the end that the new log had then: 120. `other` is its first commit for another topic, whose log
    ended at 120 when it was assigned."""
    topic = {"group_id": "g", "topic": "orders", "partition": 0}
    old = {"offset": 60, "valid_from_timestamp_ms": 4000, "topic_id": "old", "ended_by": "tombstone"}
    new = {"offset": to_offset, "valid_from_timestamp_ms": 9500, "topic_id": "new"}
    history = [
        topic | each | {"log_partition": 0, "log_offset": at, "commits": 1} for at, each in enumerate((old, new))
    ]
    if other is not None:
        history.append(history[0] | {"topic": "payments", "offset": other, "valid_from_timestamp_ms": 9500})
    gained = '{"gained": {"orders": [0], "payments": [0]}}'
    joined = {"group_id": "g", "event": "assignment_changed", "detail": gained}
    events = [_lost(members=members), joined | {"at_timestamp_ms": 9000, "member_count": 1}]
    samples = [{"timestamp_ms": at_ms, "offset": offset} for at_ms, offset in ((8000, 119), (9400, 150))]
    log = {"topic": "orders", "partition": 0, "log_start_offset": start, "log_end_offset": 151, "samples": samples}
    log |= {"exact_from": 0}
    looks = {"topic_changes": _recreated(1), "history": history, "log_samples": [log, log | {"topic": "payments"}]}
    current = [topic | {"offset": to_offset, "commit_timestamp_ms": 9500}]
    (found,) = _found(_context(looks, timeline=events, current_offsets=current), "topic_recreated")
    assert found.scale == {"records_possibly_skipped": 120 if words else 0}
    if words:
        assert words in found.next[0].what
        assert ("had no members" in found.problem) is (members == 0)
        assert "--group g --topic orders --to-earliest" in str(found.next[0].command)
    else:
        assert "auto.offset.reset" not in found.problem
