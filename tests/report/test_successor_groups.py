"""Groups that continue the work of another group without its offsets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from kafka_records_tables.report.facts.random_names import pattern_of, stem_of
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.rule_context import RuleContext
from tests.report.made_up_cluster import MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

Row = dict[str, Any]


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("ferry-eta-0a47f1aa-5665-8f4c-aedd-8447d6428e84", "ferry-eta-*"),
        ("app.0a47f1aa56658f4caedd8447d6428e84.reader", "app.*.reader"),
        ("report-20261128T011121Z", "report-*"),
        ("report_2026-11-28", "report_*"),
        ("worker-7d9f8b6c5d-x2x9z", "worker-*-*"),
        ("console-consumer-48213", "console-consumer-*"),
        ("orders-v12", "orders-v12"),
        ("orders-2024", "orders-2024"),
        ("facade-reader-3", "facade-reader-3"),
        ("s3-eu1-mirror", "s3-eu1-mirror"),
    ],
)
def test_the_random_parts_of_a_name(name: str, pattern: str) -> None:
    assert pattern_of(name) == pattern


def test_the_stem_of_a_pattern() -> None:
    assert (stem_of("ferry-eta-*"), stem_of("app.*.reader"), stem_of("*")) == ("ferry-eta", "app-reader", "")


class _Life:
    """The rows of groups with one member each, which consume `alarms-0`. Ten records are written per second."""

    def __init__(self) -> None:
        self.timeline: list[Row] = []
        self.history: list[Row] = []
        self.groups: list[Row] = []
        self.offsets: list[Row] = []

    def group(
        self, name: str, from_ms: int, to_ms: int | None, commits: Mapping[int, int], client: str = "notify-1"
    ) -> None:
        """A group with a member from one time until another (None: it stays), and its commits by time. All times are
        counted from END_MS."""
        at = (END_MS + from_ms, None if to_ms is None else END_MS + to_ms)
        row = {"group_id": name, "log_partition": 0, "group_kind": "classic", "epoch": 1}
        events = [
            (at[0], "created", {}),
            (at[0], "member_joined", {"client_id": client, "client_host": "/10.0.0.1"}),
            (at[0], "assignment_changed", {"gained": {"alarms": [0]}}),
        ]
        if at[1] is not None:
            events += [(at[1], "member_left", {}), (at[1], "emptied", {})]
        for number, (at_ms, event, detail) in enumerate(events):
            has_member = event in ("member_joined", "assignment_changed", "member_left")
            self.timeline.append(
                row
                | {"at_timestamp_ms": at_ms, "event": event, "detail": json.dumps(detail), "sequence": number}
                | {"member_id": f"{name}-{from_ms}" if has_member else None, "log_offset": _offset(at_ms)}
            )
        place = {"group_id": name, "topic": "alarms", "partition": 0, "log_partition": 0}
        self.history += [
            place
            | {"offset": offset, "valid_from_timestamp_ms": END_MS + at_ms, "log_offset": _offset(END_MS + at_ms)}
            | {"commits": 1}
            for at_ms, offset in commits.items()
        ]
        self.groups = [each for each in self.groups if each["group_id"] != name]
        self.groups.append(
            {"group_id": name, "member_count": int(to_ms is None), "log_partition": 0, "log_offset": 0, "epoch": 2}
        )
        self.offsets.append(place | {"offset": [*commits.values()][-1], "log_offset": 0})

    def context(self) -> RuleContext:
        starts = END_MS - 10 * MINUTE
        samples = [{"offset": 10 * second, "timestamp_ms": starts + second * SECOND} for second in range(601)]
        log = {"topic": "alarms", "partition": 0, "log_start_offset": 0, "log_end_offset": 6001}
        looks = {"history": self.history, "log_samples": [log | {"samples": samples, "exact_from": 0}]}
        events = sorted(self.timeline, key=lambda each: (each["log_offset"], each["sequence"]))
        return _context(looks, timeline=events, groups=self.groups, current_offsets=self.offsets)


def _offset(at_ms: int) -> int:
    return at_ms - END_MS + 20 * MINUTE


STOPPED = -5 * MINUTE
"""When the old group stops: it has read 3000 records."""


def _changed(
    new: str = "alarm.notify",
    *,
    after: int = 20 * SECOND,
    first: int | None = None,
    client: str = "notify-12-1",
    set_before: bool = False,
    absences: int = 0,
) -> RuleContext:
    """`alarm-notify` stops, and a new group begins `after` that, with a first commit a second later."""
    life, joins = _Life(), STOPPED + after
    if absences:
        life.group("alarm-notify", -9 * MINUTE, STOPPED - absences, {STOPPED - absences: 200})
    life.group("alarm-notify", -10 * MINUTE if not absences else STOPPED - SECOND, STOPPED, {STOPPED: 3000})
    end = 3000 + 10 * after // SECOND
    commits = {joins + SECOND: end + 8 if first is None else first}
    life.group(new, joins, None, {joins - 1: 3000} | commits if set_before else commits, client)
    return life.context()


@pytest.mark.parametrize(
    ("context", "level", "scale"),
    [
        (_changed(), Level.HIGH, {"records_possibly_lost": 201, "records_possibly_repeated": 3000}),
        (_changed(first=2500), Level.MODERATE, {"records_repeated": 3000, "records_possibly_lost": 0}),
        (_changed("alarm-notify-2"), Level.HIGH, {"records_possibly_lost": 201}),
        (_changed("alarm-notify", after=20 * SECOND), None, {}),
        (_changed(after=40 * MINUTE), None, {}),
        (_changed(after=-10 * SECOND), None, {}),
        (_changed(client="audit-1"), None, {}),
        (_changed(set_before=True), None, {}),
        (_changed(absences=2 * MINUTE), None, {}),
        (_changed(client="consumer-alarm.notify-1"), None, {}),
    ],
    ids=[
        "at_the_end",
        "at_the_start",
        "numbered",
        "same_group",
        "much_later",
        "blue_green",
        "other_client",
        "copied",
        "job",
        "default_id",
    ],
)
def test_a_group_id_is_changed(context: RuleContext, level: Level | None, scale: Mapping[str, int]) -> None:
    found = _found(context, "group_id_changed")
    assert [each.level for each in found] == ([] if level is None else [level])
    for each in found:
        assert each.scale.items() >= scale.items()
        assert each.group_ids[0] == "alarm-notify"
        assert each.causes[0].name == "id_of_release"
        assert each.decision is not None
        assert each.decision.question in [step.what for step in each.next[1:]]
        assert any("alarms,0,3000" in step.what for step in each.next)


def test_a_new_version_of_a_group_may_read_everything_again() -> None:
    """`indexer-v2` follows `indexer-v1`, which is often intended."""
    life = _Life()
    life.group("indexer-v1", -9 * MINUTE, STOPPED, {STOPPED: 3000})
    life.group("indexer-v2", STOPPED + SECOND, None, {STOPPED + 2 * SECOND: 2000})
    assert [each.level for each in _found(life.context(), "group_id_changed")] == [Level.NOTE]


def test_groups_of_jobs_that_read_everything_are_a_note() -> None:
    """Three jobs, each with a group of its own, whose names have no number in common."""
    life = _Life()
    for number, name in enumerate(("audit-red", "audit-green", "audit-blue")):
        from_ms = STOPPED + number * MINUTE
        commits = {from_ms + SECOND: 100, from_ms + 50 * SECOND: 3000 + number}
        life.group(name, from_ms, from_ms + 50 * SECOND, commits, "audit-1")
    assert [each.level for each in _found(life.context(), "group_id_changed")] == [Level.NOTE, Level.NOTE]


def _restarts(*, fixed: bool = True, pause: int = SECOND, number: int = 4, prefix: str = "eta") -> RuleContext:
    """An application that is restarted every half a minute, with a new group each time, which reads everything."""
    life, at = _Life(), STOPPED
    if fixed:
        life.group(prefix, -9 * MINUTE, at, {at: 3000})
    for each in range(number):
        start, stop = at + pause, at + pause + 30 * SECOND
        life.group(f"{prefix}-{each}a7f1b{each}", start, stop, {start + SECOND: 500, stop: 6000 + stop // 100})
        at = stop
    return life.context()


@pytest.mark.parametrize(
    ("context", "level", "groups"),
    [
        (_restarts(number=9), Level.HIGH, 9),
        (_restarts(fixed=False), Level.MODERATE, 4),
        (_restarts(fixed=False, pause=20 * SECOND), Level.NOTE, 4),
        (_restarts(number=2), None, 0),
        (_restarts(fixed=False, prefix="console-consumer"), None, 0),
    ],
    ids=["had_an_id", "service", "jobs", "few", "console"],
)
def test_a_group_id_with_a_random_part(context: RuleContext, level: Level | None, groups: int) -> None:
    found = _found(context, "group_id_random")
    assert [each.level for each in found] == ([] if level is None else [level])
    for each in found:
        assert each.scale["groups"] == groups
        # Each group reads again what the previous one had read.
        assert each.scale["records_repeated"] > 3000 * (groups - 1)
        assert {cause.name for cause in each.causes} == {"random_part", "reads_all_on_purpose"}
        assert each.topics == ("alarms",)


def test_a_group_before_groups_with_random_parts_is_the_one_to_return_to() -> None:
    (found,) = _found(_restarts(number=9), "group_id_random")
    assert found.group_ids[0] == "eta"
    assert found.causes[0].name == "random_part"
    assert any("--reset-offsets --group eta " in str(each.command) for each in found.next)
    assert any("alarms,0," in each.what for each in found.next)
