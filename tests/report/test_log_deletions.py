"""Causes of the deletion of records before a group read them, and their consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kafka_records_tables.report.facts.group_facts import MemberLife, Span
from kafka_records_tables.report.folding import folded
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rule_context import RuleContext
from kafka_records_tables.report.rules import RULES
from kafka_records_tables.report.rules.past_crash_loops import past_loops
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _config, _context, _found

Row = Mapping[str, Any]
_PLACE = {"group_id": "g", "topic": "orders", "partition": 0}
_NEW = END_MS - 10 * MINUTE
_OLD = END_MS - 40 * DAY


def _looks(
    *,
    created: int = _NEW,
    base: int = 0,
    times: int = END_MS,
    replicas: int | None = 1,
    changed: Sequence[str] = (),
    size: int = 0,
) -> dict[str, list[Row]]:
    """A topic that keeps records for a day, and whose log starts at 1000. Its only file begins at `base`."""
    log = {"topic": "orders", "partition": 0, "log_start_offset": 1000, "log_end_offset": 1100}
    change = {"topic": "orders", "event": "created", "configs": [], "changed": changed, "at_timestamp_ms": created}
    limit = [_config("retention.bytes", str(size))] if size else []
    return {
        "configs": [_config("retention.ms", str(DAY)), *limit],
        "topics": [{"topic": "orders", "replication_factor": replicas, "created_timestamp_ms": created}],
        "topic_changes": [change],
        "log_sizes": [{**log, "bytes": 5000, "sizes": [{"offset": base, "bytes": 5000}]}],
        "log_samples": [{**log, "samples": [{"offset": 1099, "timestamp_ms": times}], "exact_from": 1000}],
    }


def _jump(looks: dict[str, list[Row]], away: int = 30 * SECOND) -> ReportFinding:
    """A group commits every second, has no members for a while, and then jumps over the start of the log."""
    (found,) = _jumps(looks, away, 1050)
    return found


def _jumps(
    looks: dict[str, list[Row]], away: int, to: int, ago: int = MINUTE, earlier: Sequence[int] = ()
) -> list[ReportFinding]:
    """The same with a jump to a given offset, some time `ago`, and with earlier commits after the first six."""
    offsets = [*range(0, 60, 10), *earlier]
    times = [END_MS - ago - away + number * SECOND for number in range(len(offsets))]
    history: list[Row] = [
        {**_PLACE, "offset": offset, "valid_from_timestamp_ms": at, "log_partition": 0, "log_offset": number}
        | {"commits": 1, "ended_by": "commit"}
        for number, (offset, at) in enumerate(zip((*offsets, to), (*times, times[-1] + away), strict=True))
    ]
    gone = {"group_id": "g", "event": "emptied", "at_timestamp_ms": times[-1] + 1, "log_partition": 0, "log_offset": 6}
    row = {**_PLACE, "offset": to, "log_start_offset": 1000, "end_offset": 1100, "lag": 50, "lost": 5}
    return _found(_context({**looks, "history": history}, lag=[row], timeline=[gone]), "deleted_before_read")


@pytest.mark.parametrize(
    ("away", "ago", "count"),
    [(HOUR, 2 * DAY, 0), (2 * DAY, 2 * DAY, 1), (HOUR, MINUTE, 1)],
    ids=["backlog", "gone", "new"],
)
def test_a_backlog_that_was_deleted_later_is_no_loss(away: int, ago: int, count: int) -> None:
    """The topic keeps records for a day: a group that was away for an hour reads its backlog, which is old by now."""
    assert len(_jumps(_looks(base=1000, created=_OLD), away, 1050, ago)) == count


def test_a_request_explains_only_the_jump_over_the_present_start() -> None:
    """An earlier run of a batch job also began with a large step; its records were deleted later."""
    for looks, jumps in ((_looks(), 1), (_looks(base=1000), 2)):
        (found,) = _jumps(looks, 30 * SECOND, 1050, earlier=range(500, 560, 10))
        assert found.scale["jumps"] == jumps


@pytest.mark.parametrize(("times", "lost"), [(END_MS // 1000, [845]), (END_MS, [])], ids=["early", "timely"])
def test_a_jump_within_deleted_records(times: int, lost: list[int]) -> None:
    """The log starts after the jump, so that it may have been deleted later. If retention deletes at once, it may have
    been deleted before, and the number is an upper bound."""
    found = _jumps(_looks(base=1000, times=times), 30 * SECOND, 900)
    assert [each.scale["records_lost_in_jumps_at_most"] for each in found] == lost
    assert all("may be backlogs" in (each.why_not_sure or "") for each in found)
    assert all("In these jumps it lost at most 845 records" in each.problem for each in found)
    assert all(each.causes[0].name == "early_timestamps" for each in found)


@pytest.mark.parametrize(
    ("to", "other", "files", "count"),
    [
        (1500, [], 4, 1),
        (1000, [], 4, 0),
        (300, [(-15 * MINUTE, 100)], 4, 1),
        (300, [(-15 * MINUTE, 50)], 4, 0),
        (300, [(-2 * MINUTE, 100)], 4, 0),
        (1500, [], 2, 0),
    ],
    ids=["far", "near", "read_by_another", "not_read_by_another", "too_young", "too_few_files"],
)
def test_records_that_were_deleted_while_a_group_was_away(
    to: int, other: list[tuple[int, int]], files: int, count: int
) -> None:
    """It commits ten offsets per second, is away for ten minutes, and comes back a minute before the report. The topic
    keeps records for a minute, in files of ten seconds; by now it has deleted those of that time."""
    left_ms, back_ms = END_MS - 11 * MINUTE, END_MS - MINUTE
    commits = [(left_ms - (5 - at) * SECOND, at * 10) for at in range(6)]
    history: list[Row] = [
        {**_PLACE, "group_id": group, "offset": offset, "valid_from_timestamp_ms": at, "log_offset": number}
        | {"log_partition": 0, "commits": 1, "ended_by": "commit"}
        for group, told in (
            ("g", [*commits, (back_ms, to)]),
            ("other", [(END_MS + at, offset) for at, offset in other]),
        )
        for number, (at, offset) in enumerate(told)
    ]
    sizes = [
        {"offset": 2000 + 10 * at, "bytes": 10, "timestamp_ms": END_MS - (files - at) * 10 * SECOND}
        for at in range(files - 1)
    ]
    log = {"topic": "orders", "partition": 0, "log_start_offset": 2000, "log_end_offset": 2100, "bytes": 10 * files}
    looks: dict[str, list[Row]] = {
        "configs": [_config("retention.ms", str(MINUTE))],
        "log_sizes": [{**log, "sizes": [*sizes, {"offset": 2090, "bytes": 10, "timestamp_ms": None}]}],
        "history": history,
    }
    offsets = [{**_PLACE, "group_id": each, "offset": 0} for each in ("g", "other")]
    row = {**_PLACE, "offset": 2100, "log_start_offset": 2000, "end_offset": 2100, "lag": 0, "lost": 0}
    gone = {"group_id": "g", "event": "emptied", "at_timestamp_ms": left_ms, "log_partition": 0, "log_offset": 6}
    found = _found(_context(looks, lag=[row], current_offsets=offsets, timeline=[gone]), "deleted_before_read")
    assert [each.causes[0].name for each in found] == ["away"] * count
    assert all(each.scale["records_lost"] == to - 60 for each in found)


@pytest.mark.parametrize(
    ("looks", "away", "causes", "step"),
    [
        (
            _looks(base=1000, times=END_MS // 1000),
            30 * SECOND,
            ["early_timestamps high"],
            "--add-config retention.ms=-1",
        ),
        (_looks(base=1000, created=_OLD, times=99), 30 * SECOND, ["early_timestamps high"], "retention.ms=-1"),
        (
            _looks(base=1000),
            30 * SECOND,
            ["by_hand medium", "too_much low", "early_timestamps low"],
            "kafka-delete-records",
        ),
        (_looks(base=1000, size=9000), 30 * SECOND, ["by_hand medium", "early_timestamps low"], "kafka-delete-records"),
        (_looks(base=1000, size=4000), 30 * SECOND, ["too_much medium", "early_timestamps low"], "retention.bytes"),
        (_looks(base=1000, created=_OLD), 30 * SECOND, ["too_slow medium"], "retention.ms=604800000"),
        (
            _looks(base=1000, created=_OLD, size=4000),
            30 * SECOND,
            ["too_much medium", "too_slow low"],
            "retention.bytes",
        ),
        (_looks(base=1000, created=_OLD, size=6000), 30 * SECOND, ["too_much medium", "too_slow medium"], "--describe"),
        (_looks(base=1000, created=_OLD), 2 * DAY, ["away high"], "retention.ms=604800000"),
        (_looks(base=1000, changed=["retention.ms"]), 30 * SECOND, ["too_slow medium"], "retention.ms=604800000"),
        (
            {**_looks(base=1000, times=END_MS // 1000), "configs": [], "topics": [], "topic_changes": []},
            30 * SECOND,
            ["early_timestamps medium", "too_much low", "by_hand low"],
            "retention.ms=-1",
        ),
        (_looks(), 30 * SECOND, ["by_hand high"], "kafka-delete-records"),
        (_looks(created=_OLD, replicas=None), 2 * DAY, ["by_hand medium", "away low"], "kafka-delete-records"),
        (_looks(created=_OLD, replicas=3), 2 * DAY, ["away medium", "by_hand medium"], "kafka-delete-records"),
    ],
    ids=[
        "seconds",
        "old topic",
        "young",
        "small",
        "large",
        "away for 30 s",
        "at its limit",
        "below its limit",
        "away",
        "changed",
        "no metadata",
        "inside a file",
        "replicas unknown",
        "of a follower",
    ],
)
def test_retention_is_no_cause_that_facts_refute(
    looks: dict[str, list[Row]], away: int, causes: list[str], step: str
) -> None:
    """A group cannot have been away for more than a day if its topic is ten minutes old."""
    found = _jump(looks, away)
    assert [f"{each.name} {each.confidence}" for each in found.causes] == causes
    assert step in f"{found.next[0].what} {found.next[0].command}"
    said = " ".join(each.statement for each in found.causes)
    assert "this slow" not in found.impact or causes[0].startswith("too_")
    assert ("taken as seconds instead of milliseconds" in said) == (
        looks["log_samples"][0]["samples"][0]["timestamp_ms"] == END_MS // 1000
    )


def _failing(looks: dict[str, list[Row]], *, joins: int = 5) -> RuleContext:
    """The log has lost the next records of partition 0. Members take both partitions and leave at once."""
    committed = END_MS - 5 * MINUTE
    history: list[Row] = [
        {**_PLACE, "partition": number, "offset": 900, "valid_from_timestamp_ms": committed, "log_partition": 0}
        | {"log_offset": number, "commits": 1}
        for number in (0, 1)
    ]
    timeline = []
    for number in range(joins):
        at = committed + MINUTE + number * 10 * SECOND
        event: Row = {"group_id": "g", "member_id": f"m{number}", "at_timestamp_ms": at}
        event = {**event, "log_partition": 0, "log_offset": 10 + 2 * number}
        gained = '{"gained": {"orders": [0, 1]}}'
        timeline.append({**event, "event": "member_joined", "detail": '{"client_id": "c"}', "sequence": 0})
        timeline.append({**event, "event": "assignment_changed", "detail": gained, "sequence": 1})
        timeline.append({**event, "event": "member_left", "log_offset": 11 + 2 * number, "at_timestamp_ms": at + 50})
    row = {**_PLACE, "offset": 900, "end_offset": 1100, "commit_timestamp_ms": END_MS - SECOND}
    row |= {"unread_timestamp_ms": committed}
    lag = [
        {**row, "log_start_offset": 1000, "lag": 100, "lost": 100, "problem": "below_log_start"},
        {**row, "partition": 1, "log_start_offset": 0, "lag": 200, "lost": 0},
    ]
    current = [{"group_id": "g", "commit_timestamp_ms": END_MS - SECOND}]
    return _context({**looks, "history": history}, lag=lag, timeline=timeline, current_offsets=current, members=[])


def test_a_loop_that_a_deletion_causes_is_its_effect() -> None:
    context = _failing(_looks())
    (found,) = _found(context, "offsets_below_log_start")
    assert [f"{each.name} {each.confidence}" for each in found.causes] == ["records_deleted high"]
    assert found.since_timestamp_ms == END_MS - 4 * MINUTE + 50
    assert "--topic orders:0 --to-earliest" in (found.next[0].command or "")
    (loop,) = _found(context, "crash_loop")
    assert "the log no longer has" in loop.title
    assert "starts at 1000. 5 members took" in loop.problem
    assert [each.name for each in loop.causes] == ["offset_out_of_range", "fails_at_start"]
    rules = [each for each in RULES if each.kind in ("offsets_below_log_start", "crash_loop")]
    parted = folded(rules, {each.kind: each.cases(context) for each in rules})
    assert {kind: cases.num_rows for kind, cases in parted.cases.items()} == {
        "crash_loop": 0,
        "offsets_below_log_start": 1,
    }


def test_a_loop_that_is_older_than_the_retention_may_have_caused_the_deletion() -> None:
    """Members may have failed on a record that was deleted since."""
    looks = _looks(base=1000, created=_OLD)
    looks["configs"] = [_config("retention.ms", str(3 * MINUTE))]
    context = _failing(looks)
    (loop,) = _found(context, "crash_loop")
    assert "poison_record" in {each.name for each in loop.causes}
    (found,) = _found(context, "offsets_below_log_start")
    assert found.since_timestamp_ms is None


@pytest.mark.parametrize("pause", [1, 20], ids=["evenly", "in bursts"])
def test_a_past_loop_on_a_record_that_is_deleted(pause: int) -> None:
    """Ten offsets per second, half a minute without any, then 300 at once. Nothing shows when records began to wait if
    the group had such pauses before."""
    start = END_MS - 10 * MINUTE
    moves = [(number * 10, start + number * SECOND * (pause if number == 1 else 1)) for number in range(30)]
    moves = [(0, start), *((offset, at + (pause - 1) * SECOND) for offset, at in moves[1:])]
    stuck = moves[-1][1]
    moves += [(590 + number * 10, stuck + (30 + number) * SECOND) for number in range(10)]
    spans = [
        Span(offset, at, later[1], "commit", 0, number, None, 1)
        for number, ((offset, at), later) in enumerate(zip(moves, [*moves[1:], (0, END_MS)], strict=True))
    ]
    lives = []
    for number in range(8):
        joined = stuck + (1 + 3 * number) * SECOND
        lives.append(MemberLife("g", f"m{number}", joined, 10, 0, "c", left_ms=joined + 20, left_at=12))
        lives[-1].places.add(("orders", 0))
    found = past_loops(_context(_looks(base=1000)), "g", {("g", "orders", 0): spans}, lives)
    assert [each.offset for each in found] == ([290] if pause == 1 else [])
