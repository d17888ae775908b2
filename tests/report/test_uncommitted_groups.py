"""Groups whose members have partitions with records, but that never commit them."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.data_directory import OFFSETS
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _context, _found

_GIVEN_MS: Final = END_MS - 10 * MINUTE
_TIMES: Final = (END_MS - HOUR, END_MS - 9 * MINUTE, END_MS)


def _found_in(
    *,
    group: str = "g-1",
    client: str = "worker-1",
    committed: tuple[int, ...] = (),
    pending: tuple[int, ...] = (),
    deleted: bool = False,
    given_ms: int = _GIVEN_MS,
    times: tuple[int, ...] | None = _TIMES,
    stable_end: int = 300,
    poll_ms: int = 300_000,
    log_start: int = 0,
    every_ms: int | None = None,
    lag: int = 0,
    earlier: tuple[tuple[int, int], ...] = (),
    more: dict[str, Any] | None = None,
    kind: str = "never_commits",
    stopped_ms: int = 0,
) -> list[ReportFinding]:
    """A member has partitions 0 and 1 of a topic, each with 100 records before it and 200 since. Before it,
    `earlier` members may have had them: from when to when."""
    of_group = {"group_id": group, "log_partition": 0, "log_offset": 5}
    offset = {**of_group, "topic": "orders", "offset": 300, "commit_timestamp_ms": END_MS}
    span = {**of_group, "topic": "orders", "offset": 300, "commits": 1}
    last_ms = END_MS - (stopped_ms or 5 * SECOND)
    commits = range(END_MS - (every_ms or 0) * 12, END_MS, every_ms) if every_ms else (last_ms,)
    history = [
        {**span, "partition": each, "valid_from_timestamp_ms": at, "valid_to_timestamp_ms": then, "log_offset": at}
        for each in committed
        for at, then in zip(commits, [*list(commits)[1:], None], strict=True)
    ]
    if deleted:
        gone = {"valid_from_timestamp_ms": _GIVEN_MS - HOUR, "valid_to_timestamp_ms": _GIVEN_MS - MINUTE}
        history.append({**span, "topic": "older", "partition": 0, **gone})
    ends = [
        {
            "topic": "orders",
            "partition": each,
            "log_start_offset": 0,
            "log_end_offset": 300,
            "high_watermark": 300,
            "last_stable_offset": stable_end,
        }
        for each in (0, 1)
    ]
    offsets_log = {"topic": OFFSETS, "partition": 0, "log_start_offset": log_start, "log_end_offset": 9}
    samples = (
        None
        if times is None
        else [{"offset": at, "timestamp_ms": at_ms} for at, at_ms in zip((99, 199, 299), times, strict=True)]
    )
    gained = {"gained": {"orders": [0, 1]}, "lost": {}}
    stays: list[dict[str, Any]] = [
        {**of_group, "event": event, "member_id": member, "at_timestamp_ms": at_ms, "detail": detail}
        for number, (start, end) in enumerate(earlier)
        for event, member, at_ms, detail in (
            ("member_joined", f"m{number}", start, None),
            ("assignment_changed", f"m{number}", start, json.dumps(gained)),
            ("member_left", f"m{number}", end, None),
            ("emptied", None, end, None),
        )
    ]
    member = {**of_group, "member_id": "m", "client_id": client, "rebalance_timeout_ms": poll_ms}
    context = _context(
        {"history": history, "log_samples": [{**each, "samples": samples, "exact_from": 0} for each in ends]},
        groups=[
            {
                **of_group,
                "group_kind": "classic",
                "state": "Stable",
                "protocol_type": "consumer",
                "protocol": "range",
                "member_count": 1,
                **(more or {}),
            }
        ],
        assignments=[
            {**of_group, "topic": "orders", "partition": each, "member_id": "m", "role": "current"} for each in (0, 1)
        ],
        current_offsets=[{**offset, "partition": each} for each in committed],
        pending_offsets=[{**offset, "partition": each} for each in pending],
        members=[member],
        timeline=[
            *stays,
            {**of_group, "event": "member_joined", "member_id": "m", "at_timestamp_ms": given_ms, "detail": None},
            {
                **of_group,
                "event": "assignment_changed",
                "member_id": "m",
                "at_timestamp_ms": given_ms,
                "detail": json.dumps(gained),
            },
        ],
        log_ends=[*ends, offsets_log],
        lag=[{**of_group, "topic": "orders", "partition": 0, "lag": lag, "member_id": "m"}],
        progress=[
            {
                **of_group,
                "topic": "orders",
                "partition": each,
                "state": "stopped",
                "since_timestamp_ms": END_MS - stopped_ms,
                "commit_timestamp_ms": END_MS - stopped_ms,
                "wait_ms": stopped_ms,
            }
            for each in committed
            if stopped_ms
        ],
    )
    return _found(context, kind)


def test_a_group_that_never_committed_is_a_note_because_its_offsets_may_be_elsewhere() -> None:
    (found,) = _found_in()
    assert (found.level, found.partitions, found.is_going_on) == (Level.NOTE, (0, 1), True)
    assert found.scale == {"partitions": 2, "records_without_commit": 400}
    assert (found.since_timestamp_ms, found.consequence) == (_GIVEN_MS, "none")
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("does_not_commit", "medium"),  # it has stayed for longer than max.poll.interval.ms
        ("offsets_elsewhere", "low"),
        ("application_hangs", "low"),
    ]
    assert found.decision is not None
    assert found.next[0].what == found.decision.question


def test_before_the_poll_interval_is_over_nothing_speaks_against_a_member_that_hangs() -> None:
    (found,) = _found_in(poll_ms=900_000)
    assert [(each.name, each.confidence, each.evidence_against) for each in found.causes] == [
        ("does_not_commit", "low", ()),
        ("offsets_elsewhere", "low", ()),
        ("application_hangs", "low", ()),
    ]


@pytest.mark.parametrize("client", ["flink-orders-3", "spark-executor-1"])
def test_a_client_id_may_name_a_system_that_keeps_its_offsets(client: str) -> None:
    (found,) = _found_in(client=client, poll_ms=900_000)
    assert found.causes[0].name == "offsets_elsewhere"
    assert client.partition("-")[0] in found.causes[0].evidence_for[0].shows


def test_a_group_that_commits_another_partition_leaves_this_one_out() -> None:
    (found,) = _found_in(committed=(0,))
    assert (found.level, found.partitions) == (Level.MODERATE, (1,))
    assert found.scale == {"partitions": 1, "records_without_commit": 200}
    assert [each.name for each in found.causes] == ["partition_left_out", "does_not_commit", "offsets_elsewhere"]
    assert found.causes[-1].evidence_against[0].shows == "it commits other partitions, such as orders-0"


def test_earlier_commits_speak_against_offsets_elsewhere() -> None:
    (found,) = _found_in(deleted=True)
    assert found.level == Level.MODERATE
    assert [each.evidence_against[0].shows for each in found.causes if each.name == "offsets_elsewhere"] == [
        "it committed offsets to Kafka earlier"
    ]


_LATELY: Final = END_MS - 20 * SECOND
"""The present member has not been there for long, after two others."""
_RESTARTED: Final = ((END_MS - 10 * MINUTE, END_MS - 5 * MINUTE), (END_MS - 4 * MINUTE, END_MS - MINUTE))
_BETWEEN: Final = (END_MS - HOUR, END_MS - 270 * SECOND, END_MS - 30 * SECOND)


def test_stays_of_earlier_members_count_and_each_restart_skips_or_repeats() -> None:
    (found,) = _found_in(given_ms=_LATELY, earlier=_RESTARTED, times=_BETWEEN)
    assert (found.level, found.since_timestamp_ms) == (Level.LOW, END_MS - 10 * MINUTE)
    assert found.scale == {
        "partitions": 2,
        "records_without_commit": 400,
        "restarts": 2,
        "records_while_it_was_away": 400,
    }
    assert "each of its 2 restarts read records again (earliest), or skipped" in (found.impact or "")
    assert "when it ends" not in found.causes[0].statement


def test_a_system_with_offsets_elsewhere_may_be_restarted() -> None:
    assert [
        each.level for each in _found_in(given_ms=_LATELY, earlier=_RESTARTED, times=_BETWEEN, client="flink-1")
    ] == [Level.NOTE]


def test_members_that_leave_before_they_would_commit_do_not_count() -> None:
    short = tuple((start, start + 9 * SECOND) for start, _ in _RESTARTED) * 9
    assert _found_in(given_ms=_LATELY, earlier=short, times=_BETWEEN) == []


@pytest.mark.parametrize(
    "given",
    [
        {"times": None},
        {"committed": (0,), "times": None},
        {"committed": (0,), "lag": 200},
    ],
    ids=str,
)
def test_it_is_a_note_if_something_else_may_explain_it(given: dict[str, Any]) -> None:
    assert [each.level for each in _found_in(**given)] == [Level.NOTE]


@pytest.mark.parametrize(
    "given",
    [
        {"given_ms": END_MS - MINUTE + 1},
        {"times": (END_MS - HOUR, END_MS - HOUR, END_MS - HOUR)},
        {"times": (END_MS - HOUR, END_MS - 30 * SECOND, END_MS)},
        {"stable_end": 0},
        {"stable_end": 100},
        {"committed": (0, 1)},
        {"pending": (0, 1)},
        {"committed": (0,), "every_ms": 6 * MINUTE},
        {"group": "console-consumer-4711"},
        {"group": "spark-kafka-source-1d2f-driver-0"},
        {"log_start": 3},
        {"more": {"state": "Empty"}},
        {"more": {"group_kind": "share"}},
        {"more": {"group_kind": "streams"}},
        {"more": {"protocol": "stream"}},
        {"more": {"protocol_type": "connect"}},
    ],
    ids=str,
)
def test_healthy_groups_that_look_like_it_are_not_found(given: dict[str, Any]) -> None:
    assert _found_in(**given) == []


@pytest.mark.parametrize(
    ("committed", "level", "causes"),
    [
        ((0,), Level.MODERATE, ["application_hangs", "does_not_commit"]),
        ((0, 1), Level.HIGH, ["application_hangs"]),
    ],
    ids=["one_never", "both_once"],
)
def test_a_group_that_stopped_after_a_commit_may_commit_only_in_rebalances(
    committed: tuple[int, ...], level: Level, causes: list[str]
) -> None:
    """Its other partition was never committed, although records were written to it too."""
    (found,) = _found_in(committed=committed, kind="group_stands_still", stopped_ms=9 * MINUTE, lag=200)
    assert (found.level, [each.name for each in found.causes]) == (level, causes)
    assert found.impact.startswith("Unless it reads them without a commit") is (level == Level.MODERATE)
