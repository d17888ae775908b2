"""A retention that was shortened, and deletions that have another cause."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from kafka_records_tables.report.facts.commit_jumps import Jump
from kafka_records_tables.report.facts.first_reads import without_polls
from kafka_records_tables.report.facts.group_facts import Span
from kafka_records_tables.report.facts.retention_changes import retention_at, retention_changes, where_set
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.topics import METADATA
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import Row, _context, _found

_PLACE = {"group_id": "g", "topic": "orders", "partition": 0, "log_partition": 0}
_RUNS = [END_MS - minutes * MINUTE for minutes in (31, 21, 11, 1)]
"""When the group comes back; it reads for a few seconds. Ten records are written each second."""
_CHANGED = _RUNS[1] + MINUTE
_DEFAULT, _OWN = ("broker", "", "log.retention.ms"), ("topic", "orders", "retention.ms")
_SHORT = str(2 * MINUTE)


def _change(of: tuple[str, str, str], value: str | None, before: str | None, at_ms: int | None, at: int = 7) -> Row:
    row: dict[str, Any] = dict(zip(("resource_type", "resource_name", "name"), of, strict=True))
    return row | {"value": value, "before": before, "at_timestamp_ms": at_ms, "log_offset": at}


def _configs(changes: Sequence[Row]) -> list[Row]:
    names = ("resource_type", "resource_name", "name")
    last = {tuple(each[name] for name in names): each["value"] for each in changes}
    rows = [dict(zip(names, of, strict=True)) | {"value": value} for of, value in last.items() if value is not None]
    return [each | {"is_sensitive": False} for each in rows]


def _findings(
    changes: Sequence[Row],
    lost: Sequence[int] = (0, 0, 3000, 3000),
    created: Sequence[Row] = (),
    *,
    sees_records: bool = True,
    members: int = 0,
    at_ms: int = END_MS,
    sizes: Sequence[Row] = (),
) -> list[ReportFinding]:
    """A group reads 6000 records each ten minutes, in polls of 500, without the given numbers of deleted records. The
    topic has files of a minute; `created` says when it was created. `sees_records` says whether commits of another
    group show when records existed; `sizes` are more configs."""
    commits: list[tuple[int, int]] = []
    for back_ms, deleted in zip(_RUNS, lost, strict=True):
        begin = (back_ms - END_MS) // SECOND * 10 + 18_600
        until = begin + 6000 if commits else begin
        offsets = range((commits[-1][1] if commits else begin) + deleted + 500, until + 1, 500)
        commits += [(back_ms + at, offset) for at, offset in enumerate(offsets)]
        commits += [(back_ms + second * SECOND, until + second * 10) for second in range(1, 30)]
    history = [
        _PLACE
        | {"offset": offset, "valid_from_timestamp_ms": at, "log_offset": number, "commits": 1, "ended_by": "commit"}
        for number, (at, offset) in enumerate(commits)
    ]
    other: list[dict[str, Any]] = [
        _PLACE | {"group_id": "other", "offset": (at - END_MS) // SECOND * 10 + 24_600, "valid_from_timestamp_ms": at}
        for at in range(END_MS - (40 if sees_records else 8) * MINUTE, END_MS, MINUTE)
    ]
    end = other[-1]["offset"] + 600
    files = [
        {"offset": end - number * 600, "bytes": 600, "timestamp_ms": at_ms - (number - 1) * MINUTE} for number in (3, 2)
    ]
    log = {"topic": "orders", "partition": 0, "log_start_offset": end - 1800, "log_end_offset": end, "bytes": 1800}
    looks: dict[str, Sequence[Row]] = {
        "configs": [*_configs(changes), *sizes],
        "config_changes": changes,
        "topic_changes": created,
        "history": [*history, *(each | {"log_offset": 0, "commits": 1, "ended_by": "commit"} for each in other)],
        "log_sizes": [log | {"sizes": [*files, {"offset": end - 600, "bytes": 600, "timestamp_ms": None}]}],
    }
    emptied = [
        {"group_id": "g", "event": "emptied", "at_timestamp_ms": back_ms + 30 * SECOND, "log_partition": 0}
        | {"log_offset": 1000 + number}
        for number, back_ms in enumerate(_RUNS)
    ]
    row = _PLACE | {"offset": commits[-1][1], "log_start_offset": end - 1800, "end_offset": end, "lag": 300, "lost": 0}
    groups = [_PLACE | {"group_id": each, "offset": 0} for each in ("g", "other")]
    there = [{"group_id": "g", "member_count": members}]
    context = _context(looks, lag=[row], current_offsets=groups, timeline=emptied, groups=there)
    return _found(replace(context, request=replace(context.request, at_timestamp_ms=at_ms)), "deleted_before_read")


def _names(found: ReportFinding) -> list[tuple[str, str]]:
    return [(each.name, each.confidence) for each in found.causes]


@pytest.mark.parametrize(
    ("of", "before", "undo"),
    [
        (_DEFAULT, None, "--entity-type brokers --entity-default --delete-config log.retention.ms"),
        (_DEFAULT, str(60 * MINUTE), "--entity-default --add-config log.retention.ms=3600000"),
        (_OWN, None, "--topic orders --delete-config retention.ms"),
    ],
)
def test_a_shorter_retention_is_named_with_what_set_it(of: tuple[str, str, str], before: str | None, undo: str) -> None:
    earlier = [] if before is None else [_change(of, before, None, None, 3)]
    (found,) = _findings([*earlier, _change(of, _SHORT, before, _CHANGED)])
    # Without a record of the old retention, the properties files of brokers may have set one as short.
    unsure = [("retention_shortened", "medium"), ("away", "low")]
    assert _names(found) == (unsure if before is None else [("retention_shortened", "high")])
    assert (found.level, found.is_going_on) == (Level.CRITICAL, True)
    assert (found.since_timestamp_ms, found.since_note) == (_CHANGED, f"the change of {of[2]}")
    assert (found.scale["jumps"], found.scale["records_lost"]) == (2, 6000)
    assert "a minute" not in found.problem
    assert undo in (found.next[0].command or "")
    assert (found.evidence[0].topic, found.evidence[0].offset) == (METADATA, 7)
    assert ("every topic without retention.ms" in found.causes[0].statement) == (of == _DEFAULT)


_FROM_HOUR = (_change(_DEFAULT, str(60 * MINUTE), None, None, 3), _change(_DEFAULT, _SHORT, str(60 * MINUTE), _CHANGED))


def test_a_pause_without_records_does_not_prove_what_the_retention_was() -> None:
    (found,) = _findings(_FROM_HOUR, sees_records=False)
    assert _names(found)[0] == ("retention_shortened", "medium")
    assert found.since_timestamp_ms == _RUNS[3]
    (found,) = _findings([_change(_DEFAULT, _SHORT, None, _CHANGED)], sees_records=False)
    assert [name for name, _ in _names(found)] == ["away"]


def test_a_change_does_not_explain_what_the_old_retention_deleted_too() -> None:
    old = str(9 * MINUTE)
    (found,) = _findings([_change(_DEFAULT, old, None, None, 3), _change(_DEFAULT, _SHORT, old, _CHANGED)])
    assert ("retention_shortened", "high") not in _names(found)
    assert found.since_timestamp_ms == _RUNS[2]
    shown = [fact.shows for each in found.causes for fact in each.evidence_against]
    assert any("were deleted after 9 min before the change too" in each for each in shown)


def test_a_limit_of_bytes_may_be_the_reason() -> None:
    limit = {"resource_type": "topic", "resource_name": "orders", "name": "retention.bytes", "value": "1000"}
    (found,) = _findings(_FROM_HOUR, sizes=[limit | {"is_sensitive": False}])
    names = dict(_names(found))
    assert "too_much" in names
    assert names["retention_shortened"] != "high"


def test_a_group_that_reads_again_is_not_said_to_lose_records_now() -> None:
    (found,) = _findings(_FROM_HOUR, members=2, at_ms=END_MS + HOUR)
    assert _names(found) == [("retention_shortened", "high")]
    assert (found.level, found.is_going_on) == (Level.HIGH, False)
    assert not any(each.what.startswith("Start ") for each in found.next)
    (found,) = _findings(_FROM_HOUR)
    assert any(each.what.startswith('Start "g" now') for each in found.next)


def test_what_was_read_before_the_change_is_no_loss() -> None:
    assert _findings([_change(_DEFAULT, _SHORT, None, _CHANGED)], (0, 0, 0, 0)) == []


@pytest.mark.parametrize(
    ("of", "at_ms", "changed", "causes"),
    [
        (_OWN, _CHANGED, [], ["away"]),
        (_OWN, _CHANGED - DAY, ["retention.ms"], ["retention_shortened", "away"]),
        (_DEFAULT, _CHANGED + 1, [], ["away"]),
        (_DEFAULT, _CHANGED - DAY, [], ["retention_shortened", "away"]),
    ],
)
def test_a_retention_with_which_a_topic_was_created_is_no_change(
    of: tuple[str, str, str], at_ms: int, changed: Sequence[str], causes: Sequence[str]
) -> None:
    made = {"topic": "orders", "event": "created", "configs": [], "changed": changed, "at_timestamp_ms": at_ms}
    (found,) = _findings([_change(of, _SHORT, None, _CHANGED)], created=[made])
    assert [each.name for each in found.causes] == causes


@pytest.mark.parametrize(
    "changes",
    [
        [_change(_DEFAULT, _SHORT, None, None)],
        [_change(_DEFAULT, _SHORT, None, _RUNS[0] - 30 * MINUTE)],
        [_change(_DEFAULT, str(MINUTE), None, None), _change(_DEFAULT, _SHORT, str(MINUTE), _CHANGED)],
    ],
    ids=["in a checkpoint", "long before", "longer than before"],
)
def test_an_old_or_longer_retention_is_no_change_that_did_it(changes: Sequence[Row]) -> None:
    """The group was then away for longer than the topic keeps records."""
    (found,) = _findings(changes, (0, 3000, 3000, 3000))
    assert found.causes[0].name == "away"
    assert "(log.retention.ms of all brokers)" in found.causes[0].statement
    assert "keeps records for 2 min (log.retention.ms of all brokers)" in found.problem
    assert found.next[0].what.startswith(
        'log.retention.ms of all brokers holds for "orders": set a retention.ms of its'
    )


def test_the_retention_of_a_topic_is_its_own_before_that_of_all_brokers() -> None:
    changes = [
        _change(_DEFAULT, "1000", None, None),
        _change(("topic", "returns", "retention.ms"), "5", None, 10),
        _change(_OWN, "9000", None, 20),
        _change(_DEFAULT, "2000", "1000", 30),
        _change(_OWN, None, "9000", 40),
        _change(_OWN, "-1", None, 50),
    ]
    context = _context({"configs": _configs(changes), "config_changes": changes})
    found = retention_changes(context, "orders")
    assert [(each.name, each.at_ms, each.before_ms, each.ms) for each in found] == [
        ("log.retention.ms", None, None, 1000),
        ("retention.ms", 20, 1000, 9000),
        ("retention.ms", 40, 9000, 2000),
        ("retention.ms", 50, 2000, 2**63 - 1),
    ]
    assert [retention_at(found, at, None) for at in (0, 20, 39, 45)] == [1000, 9000, 9000, 2000]
    assert (where_set(context, "orders"), where_set(context, "payments")) == (
        "retention.ms",
        "log.retention.ms of all brokers",
    )
    assert retention_at([], 5, 77) == 77
    # The topic was deleted, and its configs with it.
    recreated = _context({"configs": _configs(changes[:1]), "config_changes": changes})
    assert retention_changes(recreated, "orders") == []


def _lost(runs: Sequence[Sequence[int]]) -> list[int]:
    """What a group has lost in the commits that are further than eight, given the distances in each run."""
    spans, emptied, at_ms, offset = [Span(0, 0, None, "commit", 0, 0, None, 1)], [], 0, 0
    for run in runs:
        for distance in run:
            at_ms, offset = at_ms + 10, offset + distance
            spans.append(Span(offset, at_ms, None, "commit", 0, len(spans), None, 1))
        emptied.append({"at_timestamp_ms": at_ms + 1})
        at_ms += 20_000
    steps = list(pairwise(spans))
    jumps = [
        Jump("orders", 0, before.offset, before.from_ms, after, after.offset - before.offset - 2)
        for before, after in steps
        if after.offset - before.offset > 8
    ]
    return [each.lost for each in without_polls(jumps, {0: steps}, emptied, 4)]


_TAIL = (2, 1, 2, 1, 2, 2, 1, 2, 1, 2, 1, 2, 2, 1)


@pytest.mark.parametrize(
    ("back", "lost"),
    [((270, 68, 74, 40), [199]), ((80, 68, 74, 40), [9]), ((74, 68, 74, 40), []), ((270,), [268])],
    ids=["usual polls", "little more than a poll", "a poll", "no polls follow"],
)
def test_a_group_has_read_a_usual_poll_of_its_first_commit(back: Sequence[int], lost: list[int]) -> None:
    assert _lost([_TAIL, (*back, *_TAIL)]) == lost


def test_changes_of_many_topics_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = [_change(_DEFAULT, "1000", None, 5)]
    changes += [_change(("topic", f"t{each}", "retention.ms"), str(each), None, 10 + each) for each in range(1, 50)]
    context = _context({"configs": _configs(changes), "config_changes": changes})
    looks: list[str] = []
    look = RuleContext.look

    def counted(self: RuleContext, table: Any, *others: Any, **options: Any) -> Any:
        looks.append(table if isinstance(table, str) else table.name)
        return look(self, table, *others, **options)

    monkeypatch.setattr(RuleContext, "look", counted)
    found = {each: retention_changes(context, f"t{each}") for each in range(1, 50)}
    assert all([each.ms for each in of_topic] == [1000, number] for number, of_topic in found.items())
    assert looks.count("config_changes") == 1
