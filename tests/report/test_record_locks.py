"""Whether the locks of archived records ran out, from the times between the ends of their deliveries."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_records_tables.report.facts.share_deliveries import TABLE
from kafka_records_tables.report.facts.share_repeats import QUIET_MS
from kafka_records_tables.report.facts.share_repeats import TABLE as REPEATS
from kafka_records_tables.report.report_parts import ReportFinding
from tests.report.incidents import Incident
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND
from tests.report.rule_cases import END_MS
from tests.report.test_rules_in_detail import _config, _context, _found, _read

Row = dict[str, Any]
LOCK = "share.record.lock.duration.ms"
LOCKS, CANNOT = "locks_run_out", "cannot_be_processed"


@pytest.mark.parametrize(
    ("lock", "gaps", "causes"),
    [
        ("2000", [2600, 2200, 5200, 2700], [LOCKS, CANNOT]),
        ("2000", [20, 15, 2600, 40], [CANNOT]),
        ("2000", [300_000, 290_000, 310_000, 280_000], [CANNOT, LOCKS]),
        (None, [31_000, 30_500, 30_100, 33_000], [LOCKS, CANNOT]),
        (None, [12_000, 12_200, 12_100, 12_900], [LOCKS, CANNOT]),
        (None, [12_000, 200, 1100, 5000], [CANNOT]),
        ("2000", [], [CANNOT]),
    ],
    ids=["too_slow", "released", "waits", "too_slow_by_default", "equal", "not_equal", "unknown"],
)
def test_locks_run_out_if_deliveries_last_as_long(lock: str | None, gaps: list[int], causes: list[str]) -> None:
    row = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "orders", "partition": 0}
    released = [END_MS - sum(gaps[at:]) for at in range(len(gaps))]
    archived = {**row, "log_partition": 0, "log_offset": 1, "released_ms": released}
    archived |= {"delivery_count": 5, "delivery_state": 4}
    rows = [archived | {"first_offset": at, "last_offset": at, "log_timestamp_ms": END_MS} for at in range(5, 9)]
    looks: dict[str, list[Row]] = {
        "configs": [] if lock is None else [dict(_config(LOCK, lock, "g", "group"))],
        "share_deliveries": rows,
    }
    (found,) = _found(_context(looks, share_partitions=[row], members=[]), "share_records_archived")
    assert [each.name for each in found.causes] == causes
    assert " Most of them follow one another." in found.problem
    is_possible = causes[0] == LOCKS
    assert found.scale.get("records_possibly_lost" if is_possible else "records_lost") == 4
    assert (found.decision is not None) is (LOCKS in causes)
    assert (f"{LOCK}={2 * int(lock or 30_000)}" in str(found.next[1].command)) is is_possible


def test_the_ends_of_earlier_deliveries_are_read(incident: Any) -> None:
    """Of records that were archived at the fifth delivery there are four, in the order of the log; of those that wait
    for another one, as many as they were delivered."""
    poisoned: Incident = incident("poisoned_share")
    rows = _read(TABLE, poisoned.folder)
    assert {row["delivery_state"] for row in rows} == {0, 4}
    for row in rows:
        waits = row["delivery_state"] == 0
        assert len(row["released_ms"]) == (row["delivery_count"] if waits else 4)
        assert sorted(row["released_ms"]) == row["released_ms"]
        assert (row["released_ms"][-1] == row["log_timestamp_ms"]) == waits


@pytest.mark.parametrize(
    ("gaps", "causes"),
    [([2600] * 3, [LOCKS, CANNOT]), ([20, 15, 40], [CANNOT])],
    ids=["too_slow", "released"],
)
def test_the_same_decides_about_records_that_wait_to_be_delivered_again(gaps: list[int], causes: list[str]) -> None:
    """Records that were acknowledged at last count too: their last delivery did not outlast the lock."""
    row = {"group_id": "g", "topic_id": "AAAAAAAAAAAAAAAAAAAAAQ", "topic": "orders", "partition": 0}
    delivered = {**row, "log_partition": 0, "log_offset": 1, "delivery_count": 5, "log_timestamp_ms": END_MS}
    delivered["released_ms"] = [END_MS - sum(gaps[at:]) for at in range(len(gaps) + 1)]
    rows = [delivered | {"first_offset": 5, "last_offset": 6, "delivery_state": state} for state in (0, 2)]
    batch = {"first_offset": 5, "last_offset": 6, "delivery_state": 0, "delivery_count": 4}
    state = row | {"log_partition": 0, "log_offset": 1, "batches": [batch]}
    del state["topic"]
    looks: dict[str, list[Row]] = {"configs": [dict(_config(LOCK, "2000", "g", "group"))], "share_deliveries": rows}
    (found,) = _found(_context(looks, share_partitions=[state], members=[]), "share_redelivery")
    assert [each.name for each in found.causes] == causes


_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
_CHANGED_MS = END_MS - 10 * MINUTE
_FAILS_MS = _CHANGED_MS + 9 * SECOND


def _repeated(
    values: tuple[tuple[str | None, str | None], ...] = ((None, "2000"),),
    *,
    gaps: tuple[int, ...] = (25_000,) * 6,
    fails_ms: int = _FAILS_MS,
    accepted: int = 200,
    accepted_after: int = 30,
    joined_ms: int | None = None,
    earlier_ms: int | None = None,
    lock: str = "2000",
) -> ReportFinding:
    """Records that wait for another delivery. The lock of the group was changed ten minutes ago, in each case from one
    value to another; deliveries have failed since `fails_ms`, and once before at `earlier_ms`."""
    row = {"group_id": "g", "topic_id": _TOPIC_ID, "partition": 0, "log_partition": 0, "log_offset": 7}
    batch = {"first_offset": 5, "last_offset": 6, "delivery_state": 0, "delivery_count": 3}
    delivered = {**row, **batch, "log_timestamp_ms": END_MS}
    delivered["released_ms"] = [END_MS - sum(gaps[at:]) for at in range(len(gaps) + 1)]
    span = {"last_ms": END_MS - SECOND, "first_ms": fails_ms, "log_offset": 3, "records": 40, "repeats": 90}
    before = [] if earlier_ms is None else [span | {"first_ms": earlier_ms, "last_ms": earlier_ms}]
    times = (_CHANGED_MS, accepted - accepted_after), (_CHANGED_MS + SECOND, accepted_after)
    last = [{"timestamp_ms": at, "records": count} for at, count in times]
    changed = {"resource_type": "group", "resource_name": "g", "name": LOCK, "at_timestamp_ms": _CHANGED_MS}
    looks: dict[str, list[Row]] = {
        "configs": [dict(_config(LOCK, lock, "g", "group"))],
        "share_deliveries": [delivered],
        REPEATS.name: [{**row, "accepted_before": accepted, "last_accepted": last, "failures": [*before, span]}],
        "config_changes": [
            changed | {"before": old, "value": new, "log_offset": at} for at, (old, new) in enumerate(values)
        ],
    }
    groups = [{"group_id": "g", "member_count": 2}]
    joins = {"group_id": "g", "event": "member_joined", "member_id": "m", "log_partition": 0, "log_offset": 9}
    timeline = [] if joined_ms is None else [joins | {"sequence": 0, "at_timestamp_ms": joined_ms}]
    state = [row | {"batches": [batch]}]
    (found,) = _found(_context(looks, share_partitions=state, groups=groups, timeline=timeline), "share_redelivery")
    return found


def test_a_lock_that_was_made_shorter_just_before_deliveries_failed_is_the_cause() -> None:
    found = _repeated()
    assert [(each.name, each.confidence) for each in found.causes] == [(LOCKS, "high")]
    assert (found.since_timestamp_ms, found.is_going_on, found.consequence) == (_FAILS_MS, True, "work_repeated")
    assert found.scale == {"records_delivered_again": 40, "repeated_deliveries": 90}
    changed, follows = found.causes[0].evidence_for
    assert (changed.topic, changed.timestamp_ms) == ("__cluster_metadata", _CHANGED_MS)
    assert "was set to 2000 (2 s; before: 30 s, the value of the brokers)" in changed.shows
    assert (
        "9 s later a delivery failed; before the change, 170 records were accepted at the first delivery"
        in follows.shows
    )
    assert str(found.next[0].command).endswith(f"--entity-type groups --entity-name g --delete-config {LOCK}")
    assert not any("Look at such a record" in each.what for each in found.next)


def test_a_value_of_the_group_itself_is_set_back() -> None:
    found = _repeated(((None, "20000"), ("20000", "2000")))
    assert str(found.next[0].command).endswith(f"--add-config {LOCK}=20000")


@pytest.mark.parametrize(
    ("given", "causes"),
    [
        ({"values": (), "gaps": (2600,) * 6}, {LOCKS: "medium", CANNOT: "low"}),
        ({"accepted": 30}, {LOCKS: "low", CANNOT: "low"}),
        ({"accepted_after": 110}, {LOCKS: "low", CANNOT: "low"}),
        ({"joined_ms": _CHANGED_MS + SECOND}, {LOCKS: "medium", CANNOT: "low"}),
        ({"earlier_ms": _CHANGED_MS - HOUR}, {LOCKS: "medium", CANNOT: "low"}),
        ({"fails_ms": _CHANGED_MS - SECOND}, {LOCKS: "low", CANNOT: "low"}),
        ({"fails_ms": _CHANGED_MS + QUIET_MS + 1}, {LOCKS: "low", CANNOT: "low"}),
        ({"values": (("1000", "2000"),)}, {LOCKS: "low", CANNOT: "low"}),
        ({"values": ((None, "2000"), ("2000", None)), "lock": "30000", "gaps": (31_000,) * 6}, {LOCKS: "medium"}),
        ({"gaps": (300,) * 6}, {CANNOT: "high"}),
    ],
    ids=[
        "no change",
        "few accepted before",
        "most accepted since",
        "new member",
        "failed before",
        "failed earlier",
        "failed much later",
        "made longer",
        "set back",
        "released soon",
    ],
)
def test_a_change_of_the_lock_is_certain_only_if_nothing_failed_before(
    given: dict[str, Any], causes: dict[str, str]
) -> None:
    found = _repeated(**given)
    assert {each.name: each.confidence for each in found.causes}.items() >= causes.items()
    assert found.since_timestamp_ms == given.get("fails_ms", _FAILS_MS)
    assert found.consequence == "none"


def test_failed_deliveries_are_counted_from_the_log(incident: Any) -> None:
    """Each record that was archived had been delivered five times; each that waits, as many times as its state says."""
    poisoned: Incident = incident("poisoned_share")
    counts: dict[tuple[int, int], int] = {}
    for row in _read(TABLE, poisoned.folder):
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            counts[row["partition"], offset] = max(counts.get((row["partition"], offset), 0), row["delivery_count"])
    rows = _read(REPEATS, poisoned.folder)
    spans = [each for row in rows for each in row["failures"]]
    assert sum(each["records"] for each in spans) >= len(counts) > 0
    assert sum(each["repeats"] for each in spans) >= sum(count - 1 for count in counts.values())
    assert all(each["first_ms"] <= each["last_ms"] for each in spans)
    assert sum(row["accepted_before"] for row in rows) > 0
