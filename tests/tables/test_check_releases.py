"""The table `checks` on logs that a release of Kafka would not load, and on records that do not fit together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_records_tables import read_table
from kafka_records_tables.query import QueryError
from kafka_records_tables.tables.words.check_words import INFORMATION
from tests.tables.check_cases import (
    NOT_LOADED,
    problem,
    problems,
    values_of,
)
from tests.tables.cluster import Cluster
from tests.tables.planted_conflicts import PLANTED
from tests.tables.topic import struct

# -- other releases ----------------------------------------------------------------------------------------------------


def _of_now() -> Cluster:
    """Records as Kafka 4.3 writes them."""
    cluster = Cluster()
    cluster.commit("c", 1)
    cluster.commit("c", 2)
    cluster.commit("deleted", None)
    cluster.member("m", "orders")
    cluster.share_topics("s", initialized=(0,))
    cluster.state(0, group="s")
    return cluster


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("4.4", []),
        ("4.3", []),
        ("4.1", []),
        ("4.0", [("not_loaded_by_release", "s", 5), ("not_loaded_by_release", "s", 4)]),
        (
            "3.9",
            [
                ("passed_over_by_release", "g", 3),
                ("passed_over_by_release", "s", 4),
                ("passed_over_by_release", "s", 5),
            ],
        ),
        (
            "2.8",
            [
                ("not_loaded_by_release", "c", 0),
                ("not_loaded_by_release", "g", 3),
                ("not_loaded_by_release", "s", 4),
                ("passed_over_by_release", "s", 5),
            ],
        ),
    ],
)
def test_what_a_release_does_with_records_of_now(release: str, expected: list[tuple[str, str, int]]) -> None:
    rows = problems(_of_now(), loads_in=release)
    assert sorted(values_of(rows, "check", "group_id", "log_offset")) == sorted(expected)
    assert {row["level"] for row in rows if row["check"] == "not_loaded_by_release"} <= {"broken"}
    assert {row["level"] for row in rows if row["check"] == "passed_over_by_release"} <= {INFORMATION}


def test_tombstones_of_types_that_a_release_does_not_know() -> None:
    cluster = Cluster()
    cluster.of_group("ConsumerGroupMetadata", "g", None)
    row = problem(cluster, loads_in="2.8")
    assert values_of([row], "check", "level", "group_id") == [("not_loaded_by_release", "broken", "g")]
    assert row["detail"] == (
        "1 record ConsumerGroupMetadata (type 3): 2.8 does not know this record type, and does not load the log"
    )
    assert values_of([problem(cluster, loads_in="3.9")], "check") == [("passed_over_by_release",)]
    assert problems(cluster, loads_in="4.0") == []


def test_types_that_nobody_knows_are_not_loaded_before_3_5() -> None:
    cluster = Cluster()
    cluster.add_bytes(b"\x00\x63\x00\x01a", None)
    later, rows = (read_table("checks", cluster.table(), loads_in=each).table.to_pylist() for each in ("3.5", "2.8"))
    assert values_of(later, "check") == [("unknown_record_type",)]
    assert values_of(rows, "check", "level") == [
        ("not_loaded_by_release", "broken"),
        ("unknown_record_type", INFORMATION),
    ]
    assert rows[0]["detail"].startswith("1 record of type 99: 2.8 does not know this record type")


@pytest.mark.parametrize(
    ("release", "known"), [("2.8.2", "2.8"), ("3.4", "2.8"), ("3.6", "3.5"), ("3.9.1", "3.9"), ("4.4.1", "4.4")]
)
def test_any_release_is_the_last_known_one_before_it(release: str, known: str) -> None:
    same = [
        row | {"detail": row["detail"].replace(f": {release} ", f": {known} ")}
        for row in problems(_of_now(), loads_in=release)
    ]
    assert same == problems(_of_now(), loads_in=known)


@pytest.mark.parametrize("wrong", ["2.7", "2.9", "3.10", "4.5", "9.9", "4", "", "x", "3.9-rc1", "1." * 9])
def test_what_is_no_release_or_a_newer_one(wrong: str) -> None:
    known = r"^loads_in: .* is not a known Kafka release, from 2.8 to 4.4: write 3.9, or 4.1.2$"
    with pytest.raises(QueryError, match=known):
        read_table("checks", _of_now().table(), loads_in=wrong)


def test_records_of_one_kind_are_one_row() -> None:
    first = next(row for row in problems(_of_now(), loads_in="2.8") if row["group_id"] == "c")
    assert first["detail"] == (
        "2 records OffsetCommit (type 1) with values of version 4: 2.8 does not know this version, so it does not "
        "load the log"
    )


# -- bugs of replays ---------------------------------------------------------------------------------------------------


def _bugs(cluster: Cluster, release: str) -> list[str]:
    rows = problems(cluster, loads_in=release)
    return [row["detail"] for row in rows if row["check"] == "not_loaded_by_release" and "KAFKA-" in row["detail"]]


@pytest.mark.parametrize(
    ("release", "stops"),
    [
        ("4.1.0", True),
        ("4.1.2", True),
        ("4.2", True),
        ("4.2.0", True),
        ("4.2.1", False),
        ("4.3", False),
        ("3.9", False),
    ],
)
def test_a_streams_group_after_offsets_of_its_name(release: str, stops: bool) -> None:
    cluster = Cluster()
    PLANTED["a streams group after commits"][0](cluster)
    assert (
        _bugs(cluster, release)
        == [
            "value of StreamsGroupMetadata: the record is of a streams group, but earlier offsets have made a simple "
            f"group of that name: {release} does not load the log (KAFKA-20254); load it with 4.2.1 or later"
        ]
        * stops
    )
    other = Cluster()
    other.of_group("StreamsGroupMetadata", "g", {"epoch": 1, "metadata_hash": 0, "validated_topology_epoch": 0})
    other.commit("g", 1)
    assert _bugs(other, release) == []


@pytest.mark.parametrize(
    ("release", "stops"),
    [("4.0", True), ("4.0.1", True), ("4.1.1", True), ("4.1.2", False), ("4.2.0", False), ("4.4", False)],
)
def test_a_partition_that_passes_to_another_member_without_a_record_between(release: str, stops: bool) -> None:
    cluster = Cluster()
    cluster.member("m", "orders")
    cluster.member("n", "orders")
    cluster.current("m", 0, epoch=1)
    cluster.current("n", 0, epoch=2)
    assert (
        _bugs(cluster, release)
        == [
            "value of ConsumerGroupCurrentMemberAssignment: the member gets or gives up a partition that another one "
            f"has according to earlier records: {release} does not load the log (KAFKA-19862); load it with 4.1.2 or "
            "later"
        ]
        * stops
    )
    other = Cluster()
    other.member("m", "orders")
    other.member("n", "orders")
    other.current("m", 0, epoch=1)
    other.current("m", epoch=2)
    other.current("n", 0, epoch=2)
    assert _bugs(other, release) == []


def _tasks(cluster: Cluster, member: str, *numbers: int, epoch: int = 1, standby: tuple[int, ...] = ()) -> None:
    """Write the current assignment of a member of the streams group `g`."""
    module = "streams_group_current_member_assignment"
    lists: dict[str, Any] = {
        f"{name}_tasks{suffix}": ()
        for name in ("active", "standby", "warmup")
        for suffix in ("", "_pending_revocation")
    }
    for name, given in (("active", numbers), ("standby", standby)):
        lists[f"{name}_tasks"] = (struct(module, "TaskIds", subtopology_id="s", partitions=given),) if given else ()
    value = {"member_epoch": epoch, "previous_member_epoch": epoch - 1, "state": 1, **lists}
    cluster.of_group("StreamsGroupCurrentMemberAssignment", "g", value, member_id=member)


def _streams_members(cluster: Cluster, *members: str) -> None:
    for each in members:
        cluster.member(each, kind="Streams", process_id=f"process of {each}")


@pytest.mark.parametrize(
    ("release", "stops"), [("4.0", False), ("4.1", True), ("4.1.1", True), ("4.1.2", False), ("4.4", False)]
)
def test_a_task_that_passes_to_another_process_without_a_record_between(release: str, stops: bool) -> None:
    cluster = Cluster()
    _streams_members(cluster, "m", "n")
    _tasks(cluster, "m", 0)
    _tasks(cluster, "n", 0, epoch=2)
    assert (
        _bugs(cluster, release)
        == [
            "value of StreamsGroupCurrentMemberAssignment: according to earlier records, another process has a task "
            f"that the member gets, or its own has none that it gives up: {release} does not load the log "
            "(KAFKA-19862); load it with 4.1.2 or later"
        ]
        * stops
    )


def _given_up_first(cluster: Cluster) -> None:
    _streams_members(cluster, "m", "n")
    _tasks(cluster, "m", 0, 1)
    _tasks(cluster, "m", 1, epoch=2)
    _tasks(cluster, "n", 0, epoch=2)


def _standby_twice(cluster: Cluster) -> None:
    _streams_members(cluster, "m", "n")
    _tasks(cluster, "m", standby=(0,))
    _tasks(cluster, "n", standby=(0,))
    _tasks(cluster, "m", epoch=2)


def _another_process(cluster: Cluster) -> None:
    """`StreamsGroup.updateMember` removes the tasks of the old process, and adds those of the new one."""
    _streams_members(cluster, "m")
    _tasks(cluster, "m", 0, standby=(1,))
    cluster.member("m", kind="Streams", process_id="another")
    _tasks(cluster, "m", 1, epoch=2)


def _begun_again(cluster: Cluster) -> None:
    _given_up_first(cluster)
    for member in ("m", "n"):
        for record in ("CurrentMemberAssignment", "MemberMetadata"):
            cluster.of_group(f"StreamsGroup{record}", "g", None, member_id=member)
    cluster.of_group("StreamsGroupMetadata", "g", None)
    _given_up_first(cluster)


@pytest.mark.parametrize("write", [_given_up_first, _standby_twice, _another_process, _begun_again])
def test_tasks_that_fit_the_records_before(write: Callable[[Cluster], None]) -> None:
    cluster = Cluster()
    write(cluster)
    assert _bugs(cluster, "4.1.1") == []


def _before_its_process(cluster: Cluster) -> None:
    """The log after a cleaner if the metadata of a member is written again: before that record, the member has no
    process."""
    _tasks(cluster, "m", 0)
    _streams_members(cluster, "m")


def _standby_of_nobody(cluster: Cluster) -> None:
    _tasks(cluster, "m", standby=(0,))
    _streams_members(cluster, "m")


@pytest.mark.parametrize("write", [_before_its_process, _standby_of_nobody])
def test_tasks_that_are_named_before_the_process(write: Callable[[Cluster], None]) -> None:
    cluster = Cluster()
    write(cluster)
    (found,) = _bugs(cluster, "4.1.0")
    assert found.startswith("value of StreamsGroupMemberMetadata: according to earlier records")


# -- conflicts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANTED)
def test_conflicts_are_found(name: str) -> None:
    plant, why = PLANTED[name]
    cluster = Cluster()
    plant(cluster)
    conflicts = [row for row in problems(cluster) if row["check"] == "replay_conflict"]
    assert values_of(conflicts, "level", "group_id") == [("broken", "g")] * (why is not None)
    if why is not None:
        detail = conflicts[0]["detail"]
        assert why in detail
        assert detail.endswith(f"; {NOT_LOADED}")


def test_of_each_group_the_first_conflict_is_told() -> None:
    cluster = Cluster()
    for group in ("h", "i"):
        cluster.commit(group, 1)
        first = cluster.of_group("ShareGroupMetadata", group, {"epoch": 1, "metadata_hash": 0})
        cluster.of_group("ShareGroupMetadata", group, {"epoch": 2, "metadata_hash": 0})
    assert values_of(problems(cluster), "check", "group_id", "log_offset") == [
        ("replay_conflict", "h", 1),
        ("replay_conflict", "i", first),
    ]
