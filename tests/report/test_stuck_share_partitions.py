"""Share groups that have stopped in a partition although members are there and records wait."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_tables.engines.checked_request import question_of
from kafka_records_tables.read import Engine, read_answers
from kafka_records_tables.report.facts.share_waits import TABLE, first_unprocessed
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _config, _context, _found
from tests.tables.share_topic import TOPIC_ID, Batch, ShareTopic
from tools.judge.cleaner import table_of

Row = dict[str, Any]
KIND = "share_partition_stuck"
HELD, AGAIN, HANG, UNASSIGNED = "record_held", "record_delivered_again", "workers_hang", "assigned_to_nobody"
LIMIT, LOCK = "share.partition.max.record.locks", "share.record.lock.duration.ms"
AVAILABLE, ACKNOWLEDGED = 0, 2
START, END = 351, 968
ALL_AFTER: tuple[Batch, ...] = ((START + 1, 550, ACKNOWLEDGED, 1),)
NONE: tuple[Batch, ...] = ()


def _stuck(
    batches: tuple[Batch, ...] = ALL_AFTER,
    *,
    start: int = START,
    held: int = 83 * SECOND,
    quiet: int = 57 * SECOND,
    longest_hold: int = 2 * SECOND,
    longest_pause: int = 2 * SECOND,
    changes: int = 400,
    configs: dict[str, str] | None = None,
    members: int = 2,
    owners: int = 2,
    end: int = END,
    written_ms: int | None = None,
    down: int = 0,
    others_ms: int = END_MS - SECOND,
) -> list[ReportFinding]:
    """A share group that acknowledged these batches of partition 1: the first of them `held` milliseconds ago, the last
    one `quiet` milliseconds ago. Two records are written per second, but before the last one brokers were down for
    `down` milliseconds. In partition 0, it acknowledged the last record at `others_ms`."""
    place = {"group_id": "g", "topic_id": TOPIC_ID, "log_partition": 0}
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    done = sum(last - first + 1 for first, last, state, _ in batches if state == ACKNOWLEDGED)
    state = place | {"partition": 1, "start_offset": start, "acknowledged_count": done, "archived_count": 0}
    state["batches"] = [dict(zip(names, each, strict=True)) for each in batches]
    waits = place | {"partition": 1, "first_offset": start, "held_at": 414, "changed_at": 664, "changes": changes}
    waits |= {"longest_hold_ms": longest_hold, "longest_pause_ms": longest_pause, "changed_ms": END_MS - quiet}
    waits["held_ms"] = END_MS - held if any(each[0] > start and each[2] == ACKNOWLEDGED for each in batches) else None
    others = waits | {"partition": 0, "changed_ms": others_ms, "held_ms": None}
    log = {"topic": "scans", "partition": 1, "topic_id": TOPIC_ID, "log_start_offset": 0, "log_end_offset": end}
    first_ms = END_MS - 500 * end if written_ms is None else written_ms
    step = 500 if written_ms is None else 0
    samples = [{"offset": each, "timestamp_ms": first_ms + step * (each + 1)} for each in range(end)]
    for each in samples[:-1]:
        each["timestamp_ms"] -= down
    looks: dict[str, list[Row]] = {
        "configs": [dict(_config(name, value, "g", "group")) for name, value in (configs or {}).items()],
        TABLE.name: [waits, others],
        "log_samples": [log | {"samples": samples, "exact_from": 0}],
    }
    there = [{"group_id": "g", "member_id": f"m{each}", "client_id": f"worker-{each}"} for each in range(members)]
    owned = [{"group_id": "g", "member_id": f"m{each}", "topic": "scans", "partition": 1} for each in range(owners)]
    group = {"group_id": "g", "group_kind": "share", "member_count": members}
    tables: dict[str, list[Row]] = {"groups": [group], "members": there, "assignments": owned, "log_ends": [log]}
    return _found(_context(looks, share_partitions=[state], **tables), KIND)


FULL = {LIMIT: "200"}


def test_a_record_that_a_worker_holds_for_ever_fills_the_window() -> None:
    (found,) = _stuck(configs=FULL)
    assert (found.level, found.consequence, found.is_going_on) == (Level.HIGH, "work_stopped", True)
    assert (found.topics, found.partitions, found.since_timestamp_ms) == (("scans",), (1,), END_MS - 83 * SECOND)
    assert found.scale == {"records_waiting": END - 551, "partitions": 1}
    assert "has been 351 since" in found.problem
    assert "All 199 offsets after it, up to 550, are. So the 200 records are in flight" in found.problem
    assert "417 records wait, and about 2 more come per second" in found.impact
    assert [each.client_id for each in found.who] == ["worker-0", "worker-1"]
    assert [(each.name, each.confidence) for each in found.causes] == [(HELD, "high")]
    assert set(found.refuted_by) == {AGAIN}
    shown = [each.shows for each in found.causes[0].evidence_for]
    assert "if its lock (30 s, share.record.lock.duration.ms by default) had run out" in shown[2]
    assert found.next[0].what.startswith('Restart the workers that are assigned the partition ("worker-0", "worker-1")')
    assert "--partition 1 --offset 351 --max-messages 1" in str(found.next[1].command)


@pytest.mark.parametrize(
    "given",
    [
        {"held": 50 * SECOND, "quiet": 40 * SECOND},
        {"quiet": 20 * SECOND},
        {"longest_hold": 30 * SECOND},
        {"configs": FULL | {LOCK: "60000"}},
        {"configs": FULL | {LIMIT: "300"}},
        {"configs": {}},
        {"members": 0},
        {"end": 555},
        {"batches": ((START, 550, ACKNOWLEDGED, 1),), "end": 552},
    ],
    ids=[
        "for a short time",
        "still acknowledges",
        "usual for the group",
        "longer locks",
        "higher limit",
        "default limit",
        "no members",
        "few wait",
        "the start offset moves with the next record",
    ],
)
def test_otherwise_a_record_that_holds_the_start_offset_is_usual(given: Row) -> None:
    usual: Row = {"configs": FULL, "longest_pause": HOUR}
    assert _stuck(**(usual | given)) == []


def test_records_that_were_delivered_before_are_another_cause() -> None:
    (found,) = _stuck(((START, START, AVAILABLE, 2), *ALL_AFTER), configs=FULL)
    assert {each.name for each in found.causes} == {HELD, AGAIN}
    assert "deliveries of offset 351 that ended without an acknowledgement: 2" in str(found.causes)


def test_the_limit_may_be_one_of_the_brokers() -> None:
    """Without a limit in the metadata log, the window may be full all the same: nothing has been acknowledged for far
    longer than ever before."""
    (found,) = _stuck(others_ms=END_MS - HOUR, quiet=61 * SECOND)
    assert (found.level, found.causes[0].name) == (Level.MODERATE, HELD)
    assert "Nothing has been acknowledged since" in found.problem
    assert found.lacked


@pytest.mark.parametrize(
    ("given", "causes"),
    [({}, [HANG]), ({"others_ms": END_MS - HOUR}, [HANG]), ({"owners": 0}, [UNASSIGNED])],
    ids=["others go on", "none goes on", "nobody has it"],
)
def test_nothing_is_acknowledged_at_all(given: Row, causes: list[str]) -> None:
    (found,) = _stuck(NONE, quiet=2 * MINUTE, **given)
    assert (found.level, found.since_timestamp_ms) == (Level.MODERATE, END_MS - 2 * MINUTE)
    assert [each.name for each in found.causes] == causes
    assert "never took longer than 2 s" in found.problem
    assert found.scale["records_waiting"] == END - START


@pytest.mark.parametrize(
    "given",
    [
        {"quiet": 50 * SECOND},
        {"longest_pause": 70 * SECOND},
        {"changes": 10},
        {"written_ms": END_MS - 20 * SECOND},
        {"configs": {"share.isolation.level": "read_committed"}},
    ],
    ids=["for a short time", "usual pause", "too little is known", "only new records wait", "open transactions"],
)
def test_otherwise_silence_is_usual(given: Row) -> None:
    usual: Row = {"quiet": 2 * MINUTE}
    assert _stuck(NONE, **(usual | given)) == []


def _waits(topic: ShareTopic, times: list[int]) -> list[Row]:
    """The rows of `share_waits` over these records, written at the given times."""
    rows = topic.table().to_pylist()
    written = [{**row, "timestamp_ms": at} for row, at in zip(rows, times, strict=True)]
    found = read_answers(question_of([TABLE]), ArrowRows(table_of(written)), Engine(1, None, None))[TABLE.name]
    told: list[Row] = found.table.to_pylist()
    return told


def test_a_hold_begins_with_the_first_record_that_is_processed_after_another() -> None:
    topic = ShareTopic()
    topic.snapshot((10, 11, ACKNOWLEDGED, 1), start_offset=10)
    topic.update((13, 13, ACKNOWLEDGED, 1), start_offset=12)
    topic.update((14, 15, ACKNOWLEDGED, 1), start_offset=12)
    topic.update((12, 12, ACKNOWLEDGED, 1), start_offset=12)
    topic.update((16, 16, ACKNOWLEDGED, 1), start_offset=16)
    begins = topic.update((18, 18, ACKNOWLEDGED, 1), start_offset=17)
    last = topic.update((19, 20, ACKNOWLEDGED, 1))
    topic.snapshot((18, 20, ACKNOWLEDGED, 1), start_offset=17)
    (found,) = _waits(topic, [100, 200, 300, 700, 750, 800, 900, 5000])
    expected = {"first_offset": 17, "held_ms": 800, "held_at": begins, "longest_hold_ms": 500}
    expected |= {"changed_ms": 900, "changed_at": last, "changes": 7, "longest_pause_ms": 400}
    assert found == {"group_id": "g", "topic_id": TOPIC_ID, "partition": 0, "log_partition": 0} | expected


def test_a_start_offset_that_somebody_sets_back_ends_a_hold() -> None:
    topic = ShareTopic()
    topic.snapshot((13, 20, ACKNOWLEDGED, 1), start_offset=12)
    topic.snapshot(start_offset=3)
    topic.update((3, 4, ACKNOWLEDGED, 1), start_offset=3)
    (found,) = _waits(topic, [100, 200, 900])
    assert (found["first_offset"], found["held_ms"], found["longest_hold_ms"]) == (5, None, 0)


def test_records_that_are_released_are_a_change_but_hold_nothing() -> None:
    topic = ShareTopic()
    topic.snapshot(start_offset=0)
    topic.update((0, 0, AVAILABLE, 1), start_offset=0)
    topic.update((4, 4, AVAILABLE, 1), start_offset=0)
    topic.delete()
    (found,) = _waits(topic, [100, 200, 300, 400])
    assert (found["held_ms"], found["changes"], found["changed_ms"]) == (None, 2, 300)


def test_the_first_offset_is_that_of_all_records_together() -> None:
    """A record that is processed late makes the ones after it the processed beginning."""
    topic = ShareTopic()
    topic.snapshot((10, 11, ACKNOWLEDGED, 1), start_offset=10)
    topic.update((13, 14, ACKNOWLEDGED, 1), (16, 16, ACKNOWLEDGED, 1), start_offset=12)
    late = topic.update((12, 12, ACKNOWLEDGED, 2), start_offset=12)
    (found,) = _waits(topic, [100, 200, 700])
    batches = [(12, 12, ACKNOWLEDGED), (13, 14, ACKNOWLEDGED), (16, 16, ACKNOWLEDGED)]
    assert found["first_offset"] == first_unprocessed(12, batches) == 15
    assert (found["held_ms"], found["held_at"], found["longest_hold_ms"]) == (700, late, 500)


def test_a_limit_that_no_record_sets_is_assumed() -> None:
    (found,) = _stuck(((START + 1, START + 1999, ACKNOWLEDGED, 1),), end=START + 2100, configs={LOCK: "30000"})
    assert (found.level, found.symptom_confidence, found.causes[0].confidence) == (Level.HIGH, "medium", "medium")
    assert "that the default limit allows" in found.problem
    assert f"whether {LIMIT} of the brokers differs from 2000" in str(found.lacked)


def test_a_time_in_which_brokers_were_down_is_no_silence() -> None:
    assert _stuck(NONE, quiet=2 * MINUTE)
    assert _stuck(NONE, quiet=2 * MINUTE, down=110 * SECOND) == []
    assert _stuck(configs=FULL, held=10 * MINUTE, quiet=9 * MINUTE)
    assert _stuck(configs=FULL, held=10 * MINUTE, quiet=9 * MINUTE, down=570 * SECOND) == []
