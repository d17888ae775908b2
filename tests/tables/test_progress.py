"""Progress of groups: each state in a planted case, healthy groups that are ok or idle, and what sources know."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_records_engine.sources.arrow_rows import ArrowRows
from kafka_records_engine.sources.protocol import LogEnds, LogPartition
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table
from kafka_records_tables.tables.moving import states
from tests.log.test_tails import PLANTED, unpacked
from tests.tables.consumed import Brokers, Commit
from tests.tables.moving_groups import (
    ABORT,
    COMMIT,
    HOUR,
    MINUTE,
    SECOND,
    START_MS,
    Group,
    UserTopic,
    every,
    write_cluster,
)
from tests.tables.topic import Topic
from tests.variants import one_in

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = dict[str, Any]
ID, OTHER_ID = "GbK1GQHFS4ymFPkmnUrzCQ", "t45nZMKZRXuARwA1OeCzdg"
NOW = START_MS + 6 * HOUR
TOMBSTONE = "a tombstone"


@dataclass(frozen=True)
class Stored(Brokers):
    """Brokers with given records in the topic of groups."""

    written: Topic = field(default_factory=Topic)

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """The partitions that hold the records."""
        return ArrowRows(self.written.table()).partitions(topic)


def steady(name: str, end_ms: int = 6 * HOUR, step_ms: int = 10 * SECOND) -> UserTopic:
    return UserTopic(name).at(every(step_ms, 0, end_ms))


def clock() -> tuple[UserTopic, Group]:
    """A topic and a group with records up to the end, which determine the moment."""
    topic = steady("clock", step_ms=MINUTE)
    topic.write(NOW)
    return topic, Group("clock", topic).follows([*every(MINUTE, 0, 6 * HOUR), NOW])


def rows_of(source: Any, **options: Any) -> list[Row]:
    result = read_table("progress", source, **options)
    assert result.findings == ()
    rows: list[Row] = result.table.to_pylist()
    return rows


def judged(
    folder: Path, *groups: Group, assigned: dict[str, list[str]] | None = None, **options: Any
) -> dict[str, Row]:
    """The rows by group, without that of the clock, which must be ok."""
    topic, ticking = clock()
    topics = {each.topic.name: each.topic for each in groups} | {"clock": topic}
    rows = rows_of(write_cluster(folder, [*topics.values()], [ticking, *groups], assigned), **options)
    found = {row["group_id"]: row for row in rows if row["group_id"] != "clock"}
    assert len(rows) == len(found) + 1
    assert {row["moment_timestamp_ms"] for row in rows} == {options.get("at", NOW)}
    return found


def told(row: Row) -> tuple[str | None, str | None, int | None]:
    """The state, the reason, and the time since then, in milliseconds after the start."""
    since = row["since_timestamp_ms"]
    return row["state"], row["reason"], None if since is None else since - START_MS


# -- what is wrong -----------------------------------------------------------------------------------------------------


def test_stopped(tmp_path: Path) -> None:
    topic = steady("orders")
    row = judged(tmp_path, Group("dead", topic).follows(every(5 * SECOND, 0, 5 * HOUR)))["dead"]
    last = 5 * HOUR - 5 * SECOND
    # The record of that second is committed, and the next one came five seconds later.
    assert told(row) == ("stopped", None, 5 * HOUR)
    assert row["unread_timestamp_ms"] == START_MS + 5 * HOUR
    # Each record was committed when it was written.
    assert (row["wait_ms"], row["longest_wait_ms"]) == (HOUR, 0)
    assert (row["commit_timestamp_ms"], row["end_offset"]) == (START_MS + last, topic.end)
    assert row["known_by"] == "log"


def test_stopped_before_a_topic_gets_records_again(tmp_path: Path) -> None:
    topic = UserTopic("orders").at([*every(MINUTE, 0, HOUR), *every(MINUTE, 5 * HOUR, 6 * HOUR)])
    row = judged(tmp_path, Group("dead", topic).follows(every(MINUTE, 0, HOUR)))["dead"]
    # For four hours, there was nothing to read.
    assert told(row) == ("stopped", None, 5 * HOUR)


def test_stalled(tmp_path: Path) -> None:
    topic = steady("orders")
    group = Group("poisoned", topic).follows(every(5 * SECOND, 0, 4 * HOUR))
    stuck = group.commits[-1][1]
    group.commits += [(at_ms, stuck) for at_ms in every(5 * SECOND, 4 * HOUR, 6 * HOUR)]
    row = judged(tmp_path, group)["poisoned"]
    assert told(row) == ("stalled", None, 4 * HOUR)
    assert row["commit_timestamp_ms"] == NOW - 5 * SECOND
    assert row["changed_timestamp_ms"] == START_MS + 4 * HOUR - 10 * SECOND


def test_stalled_and_dead_since(tmp_path: Path) -> None:
    topic = steady("orders")
    group = Group("poisoned", topic).follows(every(5 * SECOND, 0, 4 * HOUR))
    stuck = group.commits[-1][1]
    group.commits += [(at_ms, stuck) for at_ms in every(5 * SECOND, 4 * HOUR, 5 * HOUR)]
    row = judged(tmp_path, group)["poisoned"]
    assert told(row) == ("stopped", None, 5 * HOUR - 5 * SECOND)


def falling(begin_ms: int) -> Group:
    """A group that, from a time on, reads only four of five records."""
    topic = steady("orders", step_ms=2 * SECOND)
    group = Group("slow", topic).follows(every(10 * SECOND, 0, begin_ms))
    start = topic.read_up_to(START_MS + begin_ms)
    group.commits += [(at_ms, start + 4 * n) for n, at_ms in enumerate(every(10 * SECOND, begin_ms, 6 * HOUR))]
    return group


def test_falling_behind(tmp_path: Path) -> None:
    row = judged(tmp_path, falling(5 * HOUR))["slow"]
    state, reason, since = told(row)
    assert (state, reason) == ("falling_behind", None)
    # The ends of twelve parts of 131 seconds each are remembered.
    assert since is not None
    assert 6 * HOUR - 12 * 131_072 <= since <= 6 * HOUR - 4 * 131_072


def test_just_beginning_to_fall_behind(tmp_path: Path) -> None:
    row = judged(tmp_path, falling(6 * HOUR - 5 * MINUTE))["slow"]
    assert row["state"] == "ok"


@pytest.mark.parametrize(
    ("minutes", "window", "state"), [(5, "10m", "rewound"), (30, "10m", "ok"), (30, "1h", "rewound")]
)
def test_rewound(tmp_path: Path, minutes: int, window: str, state: str) -> None:
    topic = steady("orders")
    at = 6 * HOUR - minutes * MINUTE
    group = Group("reset", topic).follows(every(5 * SECOND, 0, at))
    high = group.commits[-1][1]
    group.commits += [(at_ms, 100 + n) for n, at_ms in enumerate(every(5 * SECOND, at, 6 * HOUR))]
    row = judged(tmp_path, group, window=window)["reset"]
    assert row["state"] == state
    if state == "rewound":
        assert told(row)[2] == at
        assert row["fell_from"] == high


def test_rewound_and_back(tmp_path: Path) -> None:
    topic = steady("orders")
    group = Group("reset", topic).follows(every(5 * SECOND, 0, 6 * HOUR - 5 * MINUTE))
    group.commits += [(NOW - 5 * MINUTE, 100)]
    group.follows(every(5 * SECOND, 6 * HOUR - 4 * MINUTE, 6 * HOUR))
    assert judged(tmp_path, group)["reset"]["state"] == "ok"


def test_a_rewind_of_two_steps_counts_from_the_highest(tmp_path: Path) -> None:
    topic = steady("orders")
    group = Group("reset", topic).follows(every(5 * SECOND, 0, 6 * HOUR - 5 * MINUTE))
    high = group.commits[-1][1]
    group.commits += [(NOW - 4 * MINUTE, 500), (NOW - 3 * MINUTE, 100), (NOW - 2 * MINUTE, 700)]
    row = judged(tmp_path, group)["reset"]
    assert told(row) == ("rewound", None, 6 * HOUR - 3 * MINUTE)
    assert row["fell_from"] == high


# -- what is fine ------------------------------------------------------------------------------------------------------


def prompt() -> Group:
    return Group("healthy", steady("orders")).follows(every(5 * SECOND, 0, 6 * HOUR))


def slow_topic() -> Group:
    topic = UserTopic("orders").at(every(HOUR, 10 * MINUTE, 6 * HOUR))
    topic.write(NOW - 2 * SECOND)
    return Group("healthy", topic).follows([at + 2 * SECOND for at in every(HOUR, 10 * MINUTE, 6 * HOUR)])


def slow_topic_with_commits_of_nothing_new() -> Group:
    topic = UserTopic("orders").at(every(HOUR, 10 * MINUTE, 6 * HOUR))
    topic.write(NOW - 2 * SECOND)
    return Group("healthy", topic).follows(every(5 * SECOND, 0, 6 * HOUR), late_ms=3 * SECOND)


def hourly_job() -> Group:
    group = Group("healthy", steady("orders"))
    for hour in range(6):
        # It reads the records of an hour within a minute, and then has nothing to do for 59 minutes.
        begin = START_MS + hour * HOUR
        end, before = group.topic.read_up_to(begin), (group.commits or [(0, 0)])[-1][1] or 0
        group.commits += [(begin + n * SECOND, before + (end - before) * n // 60) for n in range(1, 61)]
    return group


def idle_for_long() -> Group:
    topic = steady("orders", end_ms=HOUR)
    return Group("healthy", topic).follows(every(5 * SECOND, 0, HOUR + MINUTE))


def idle_with_commits() -> Group:
    topic = steady("orders", end_ms=HOUR)
    return Group("healthy", topic).follows(every(5 * SECOND, 0, 6 * HOUR))


def exactly_once_before_a_marker() -> Group:
    """It commits the offset after the last record of each transaction; the marker is never consumed."""
    topic = UserTopic("orders")
    group = Group("healthy", topic, producer=7)
    for at_ms in every(MINUTE, 0, 3 * HOUR):
        first = topic.write(at_ms, producer=9)
        topic.finish(9, COMMIT, first)
        group.commits.append((at_ms + SECOND, first + 1))
    return group


def aborted_at_the_end() -> Group:
    topic = steady("orders", end_ms=HOUR)
    group = Group("healthy", topic).follows(every(5 * SECOND, 0, HOUR))
    for at_ms in every(MINUTE, HOUR, 3 * HOUR):
        first = topic.write(at_ms, producer=9)
        topic.write(at_ms, producer=9)
        topic.finish(9, ABORT, first)
    return group


def behind_an_open_transaction() -> Group:
    topic = steady("orders", end_ms=HOUR)
    group = Group("healthy", topic).follows(every(5 * SECOND, 0, HOUR))
    topic.write(START_MS + HOUR, producer=9)
    topic.at(every(MINUTE, HOUR, 6 * HOUR))
    return group


def constantly_late() -> Group:
    """A group that is always a minute late, because it works in batches."""
    return Group("healthy", steady("orders", step_ms=SECOND)).follows(
        every(30 * SECOND, MINUTE, 6 * HOUR), late_ms=MINUTE
    )


def catching_up() -> Group:
    topic = steady("orders", step_ms=2 * SECOND)
    times = every(10 * SECOND, 5 * HOUR, 6 * HOUR)
    return Group("healthy", topic, [(at_ms, 10 * n) for n, at_ms in enumerate(times, 1)])


def new_group() -> Group:
    topic = steady("orders")
    return Group("healthy", topic).follows(every(5 * SECOND, 6 * HOUR - MINUTE, 6 * HOUR))


def a_burst() -> Group:
    """A thousand records at once, which the group reads in three minutes."""
    topic = steady("orders", end_ms=6 * HOUR - 3 * MINUTE)
    before = topic.end
    group = Group("healthy", topic).follows(every(5 * SECOND, 0, 6 * HOUR - 3 * MINUTE))
    topic.at([NOW - 3 * MINUTE] * 1000)
    group.commits += [
        (at_ms, before + 27 * n) for n, at_ms in enumerate(every(5 * SECOND, 6 * HOUR - 3 * MINUTE, 6 * HOUR))
    ]
    return group


def deleted_and_begun_anew() -> Group:
    topic = steady("orders")
    group = Group("healthy", topic).follows(every(5 * SECOND, 0, 6 * HOUR - 9 * MINUTE))
    group.commits += [(NOW - 9 * MINUTE, None), (NOW - 8 * MINUTE, 0)]
    group.commits += [(NOW - 8 * MINUTE + n * SECOND, 20 * n) for n in range(1, 100)]
    return group.follows(every(5 * SECOND, 6 * HOUR - 5 * MINUTE, 6 * HOUR))


def topic_recreated() -> Group:
    topic = steady("orders")
    group = Group("healthy", topic, [(START_MS + n, 100 + n) for n in range(5000)])
    group.follows(every(5 * SECOND, 6 * HOUR - 5 * MINUTE, 6 * HOUR))
    group.topic_ids = {place: OTHER_ID if place < 5000 else ID for place in range(len(group.commits))}
    return group


HEALTHY: dict[str, tuple[Callable[[], Group], str]] = {
    made.__name__: (made, state)
    for made, state in (
        (prompt, "ok"),
        (slow_topic, "ok"),
        (slow_topic_with_commits_of_nothing_new, "ok"),
        (hourly_job, "ok"),
        (idle_for_long, "idle"),
        (idle_with_commits, "idle"),
        (exactly_once_before_a_marker, "idle"),
        (aborted_at_the_end, "idle"),
        (behind_an_open_transaction, "idle"),
        (constantly_late, "ok"),
        (catching_up, "ok"),
        (new_group, "ok"),
        (a_burst, "ok"),
        (deleted_and_begun_anew, "ok"),
        (topic_recreated, "ok"),
    )
}


@pytest.mark.parametrize("name", one_in(2, HEALTHY))
@pytest.mark.parametrize("window", ["10m", pytest.param("30m", marks=pytest.mark.matrix)])
def test_healthy_groups(tmp_path: Path, name: str, window: str) -> None:
    made, state = HEALTHY[name]
    row = judged(tmp_path, made(), window=window)["healthy"]
    if window == "10m":
        assert row["state"] == state
    assert row["state"] in ("ok", "idle")
    assert row["reason"] == ("open_transaction" if name == "behind_an_open_transaction" else None)


def test_an_hourly_job_that_does_not_come_back(tmp_path: Path) -> None:
    group = hourly_job()
    group.commits = [each for each in group.commits if each[0] < START_MS + 3 * HOUR]
    row = judged(tmp_path, group)["healthy"]
    # Its longest wait before was 59 minutes, and now it is three hours.
    assert told(row) == ("stopped", None, 2 * HOUR + 60 * SECOND)
    assert 58 * MINUTE < row["longest_wait_ms"] < HOUR


def test_at_another_moment(tmp_path: Path) -> None:
    group = idle_for_long()
    group.topic.write(NOW - MINUTE)
    assert judged(tmp_path, group)["healthy"]["state"] == "ok"
    row = judged(tmp_path, group, at=NOW + HOUR)["healthy"]
    assert told(row) == ("stopped", None, 6 * HOUR - MINUTE)
    assert row["wait_ms"] == HOUR + MINUTE


def test_a_moment_before_the_last_commit(tmp_path: Path) -> None:
    """Only a part of the group's earlier commits is known."""
    row = judged(tmp_path, Group("g", steady("orders")).follows(every(5 * SECOND, 0, HOUR)), at=START_MS)["g"]
    assert told(row) == (None, "no_history", None)


def test_the_moment_is_in_the_records(tmp_path: Path) -> None:
    """The times of files are not used, because a copy changes them."""
    orders = steady("orders")
    folder = write_cluster(tmp_path, [orders], [Group("dead", orders).follows(every(5 * SECOND, 0, 5 * HOUR))])
    place = folder / "replication-offset-checkpoint"
    place.write_text(f"0\n1\norders 0 {orders.end}\n")
    os.utime(place, (START_MS / 1000, START_MS / 1000))
    (row,) = rows_of(folder)
    assert row["moment_timestamp_ms"] == orders.written[-1][1]
    assert row["state"] == "stopped"


@pytest.mark.parametrize("by", [1, 2, 5])
def test_rewound_without_a_log(tmp_path: Path, by: int) -> None:
    group = Group("g", UserTopic("orders"), [(NOW - MINUTE, 50), (NOW, 50 - by)])
    topic, ticking = clock()
    rows = rows_of(write_cluster(tmp_path, [topic], [ticking, group]))
    (row,) = [row for row in rows if row["group_id"] == "g"]
    assert (*told(row)[:2], row["fell_from"], row["known_by"]) == ("rewound", None, 50, "commits")


def test_how_fast_groups_and_logs_go_on(tmp_path: Path) -> None:
    dead = judged(tmp_path / "dead", Group("dead", steady("orders")).follows(every(5 * SECOND, 0, 5 * HOUR)))["dead"]
    assert (dead["commit_rate"], dead["caught_up_in_ms"]) == (0, None)
    assert dead["produce_rate"] == pytest.approx(0.1, rel=0.05)
    young = judged(tmp_path / "young", Group("g", steady("orders"), [(NOW - MINUTE, 0), (NOW, 9)]))["g"]
    assert (young["commit_rate"], young["caught_up_in_ms"]) == (None, None)


def test_when_a_group_has_caught_up(tmp_path: Path) -> None:
    """It reads ten records per new record, and 360 are left."""
    orders = steady("orders")
    commits = [(at, orders.end - 360 - (NOW - at) // SECOND) for at in range(NOW - HOUR // 2, NOW + 1, 5 * SECOND)]
    row = judged(tmp_path, Group("g", orders, [*commits]))["g"]
    assert (row["commit_rate"], row["produce_rate"]) == (pytest.approx(1, rel=0.02), pytest.approx(0.1, rel=0.05))
    assert row["caught_up_in_ms"] == pytest.approx(400_000, rel=0.05)


# -- real disks --------------------------------------------------------------------------------------------------------


def test_a_healthy_cluster_has_groups_that_are_ok_or_idle(tmp_path: Path) -> None:
    """Rolling restarts, a job that runs six seconds a minute, a backlog that shrinks: fifteen groups that commit."""
    folder = unpacked("healthy.tar.zst", tmp_path)
    for options in ({}, {"window": "20s"}, {"window": "1m"}):
        rows = rows_of(folder, **options)
        assert len({row["group_id"] for row in rows}) == 15
        assert {row["state"] for row in rows} <= {"ok", "idle"}
        assert {row["reason"] for row in rows} == {None}


def test_a_poison_record(tmp_path: Path) -> None:
    """Both members fail on a record of partition 2, and are restarted again and again; partition 0 continues."""
    rows = rows_of(unpacked("poison.tar.zst", tmp_path))
    wrong = {
        (row["group_id"], row["topic"], row["partition"]): row for row in rows if row["state"] not in ("ok", "idle")
    }
    assert {place: (row["state"], row["offset"]) for place, row in wrong.items()} == {
        ("order-router", "orders.v2", 1): ("stopped", 69),
        ("order-router", "orders.v2", 2): ("stopped", 68),
        ("order-router", "orders.v2", 3): ("stopped", 68),
    }
    for row in wrong.values():
        assert f"{row['since_timestamp']:%H:%M:%S}" in ("14:22:55", "14:22:56")


def test_the_disk_of_a_broker(tmp_path: Path) -> None:
    """A day after the copy, every group with unread records has waited too long, judged by the times of producers."""
    folder = unpacked("disk.tar.zst", tmp_path)
    whole = {(row["group_id"], row["topic"], row["partition"]): row for row in rows_of(folder)}
    moment = next(iter(whole.values()))["moment_timestamp_ms"]
    later = {(row["group_id"], row["topic"], row["partition"]): row for row in rows_of(folder, at=moment + 24 * HOUR)}
    for row in map(json.loads, (PLANTED / "left.jsonl").read_text("utf-8").splitlines()):
        place = row["group"], row["topic"], row["partition"]
        assert whole[place]["offset"] == row["committed"]
        assert later[place]["state"] == ("stopped" if row["committed_records_left"] else "idle")
        is_held = row["committed"] >= row["last_stable"] and row["last_stable"] < row["end"]
        assert later[place]["reason"] == ("open_transaction" if is_held else None)


def test_rows_made_a_few_at_a_time_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = unpacked("disk.tar.zst", tmp_path / "disk")
    (tmp_path / "alone").mkdir()
    orders = steady("orders")
    groups = [Group(name, orders).follows(every(5 * SECOND, 0, hours * HOUR)) for name, hours in (("a", 6), ("b", 5))]
    folders = disk, write_cluster(tmp_path / "alone", [], groups)
    whole = [rows_of(folder) for folder in folders]
    monkeypatch.setattr(states, "_ROWS", 1)
    assert [rows_of(folder) for folder in folders] == whole


# -- what is not known -------------------------------------------------------------------------------------------------


def test_a_topic_that_the_group_left(tmp_path: Path) -> None:
    group = Group("switched", steady("orders")).follows(every(5 * SECOND, 0, HOUR))
    other = Group("unsure", group.topic).follows(every(5 * SECOND, 0, HOUR))
    found = judged(tmp_path, group, other, assigned={"switched": ["clock"], "unsure": ["orders"]})
    assert told(found["switched"])[:2] == ("idle", "left")
    assert told(found["unsure"])[:2] == ("stopped", None)


def test_a_group_whose_coordinator_has_moved(tmp_path: Path) -> None:
    topic, ticking = clock()
    old = Group("moved", topic).follows(every(5 * SECOND, 0, 3 * HOUR))
    new = Group("moved", topic, log_partition=1).follows(every(MINUTE, 3 * HOUR, 6 * HOUR))
    rows = rows_of(write_cluster(tmp_path, [topic], [ticking, old, new]))
    assert {(row["group_id"], row["log_partition"]): told(row)[:2] for row in rows} == {
        ("clock", 0): ("ok", None),
        ("moved", 0): (None, "moved"),
        ("moved", 1): ("ok", None),
    }


def test_offsets_that_fit_no_log(tmp_path: Path) -> None:
    gone, orders = UserTopic("gone"), steady("orders")
    topic, ticking = clock()
    groups = [
        Group("of a topic that is gone", gone, [(START_MS, 5)]),
        Group("of another cluster", orders, [(NOW, 4_800_000)]),
        Group("negative", orders, [(NOW, -1)]),
    ]
    rows = rows_of(write_cluster(tmp_path, [topic, orders], [ticking, *groups]))
    assert {row["group_id"]: told(row) for row in rows if row["group_id"] != "clock"} == {
        "of a topic that is gone": (None, "no_log", None),
        "of another cluster": (None, "beyond_end", None),
        "negative": (None, "beyond_end", None),
    }


def test_without_the_logs_of_topics_other_groups_tell(tmp_path: Path) -> None:
    orders = steady("orders")
    first = Group("first", orders).follows(every(5 * SECOND, 0, 6 * HOUR))
    dead = Group("dead", orders).follows(every(5 * SECOND, 0, 5 * HOUR))
    alone = Group("alone", steady("others")).follows(every(5 * SECOND, 0, 5 * HOUR))
    found = {row["group_id"]: row for row in rows_of(write_cluster(tmp_path, [], [first, dead, alone]))}
    assert told(found["dead"])[:2] == ("stopped", None)
    assert found["dead"]["known_by"] == "commits"
    # By the first commit of the other group after it that is remembered: there is one for each of twelve parts.
    assert 10 * 131_072 <= NOW - found["dead"]["since_timestamp_ms"] <= 12 * 131_072
    assert told(found["first"]) == (None, "no_log", None)
    assert told(found["alone"]) == (None, "no_log", None)


def test_brokers_tell_the_end_of_now() -> None:
    def log(end: int, stable: int | None = None) -> LogEnds:
        return LogEnds("", 0, None, 0, end, end, NOW, end if stable is None else stable)

    ends = {(name, 0): log(100) for name in ("read", "left", "marked", "followed", "moving")} | {
        ("held", 0): log(100, 50)
    }
    steps = [START_MS + n * MINUTE for n in range(300)]

    def commits(group: str, topic: str, last: int, until: int = 300) -> list[Commit]:
        return [Commit(group, topic, 0, last * (n + 1) // until, at_ms=at) for n, at in enumerate(steps[:until])]

    given = [
        *commits("g", "read", 100),
        *commits("g", "left", 90),
        *commits("g", "marked", 99),
        *commits("g", "followed", 90, until=200),
        *commits("other", "followed", 100),
        *commits("g", "held", 50),
        *[Commit("g", "moving", 0, n, at_ms=NOW - 90 * SECOND + n * SECOND) for n in range(80)],
    ]
    given.sort(key=lambda each: each.at_ms)
    found = {(row["group_id"], row["topic"]): row for row in rows_of(Brokers(given, ends))}
    assert {place: told(row)[:2] for place, row in found.items()} == {
        ("g", "read"): ("idle", None),
        ("g", "left"): (None, "time_unknown"),
        ("g", "marked"): (None, "time_unknown"),
        ("g", "followed"): ("stopped", None),
        ("other", "followed"): ("idle", None),
        ("g", "held"): ("idle", "open_transaction"),
        ("g", "moving"): ("ok", None),
    }
    assert {row["known_by"] for row in found.values()} == {"end"}
    assert {row["moment_timestamp_ms"] for row in found.values()} == {NOW}


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([ID], "topic_recreated"),
        ([ID, None], None),
        ([ID, TOMBSTONE, None], None),
        ([ID, TOMBSTONE, OTHER_ID], None),
        ([OTHER_ID, None, ID], "topic_recreated"),
    ],
)
def test_the_last_commit_says_of_which_topic_it_is(names: list[str | None], reason: str | None) -> None:
    """An older broker writes commits without an id, into a log with those of a newer one. `lag` says the same."""
    written = Topic()
    for number, name in enumerate(names):
        known = None if name == TOMBSTONE else name
        key, value = Commit("g", "orders", 0, 7 + number, known, at_ms=NOW + number).record
        written.add_bytes(key, None if name == TOMBSTONE else value)
    source = Stored([], {("orders", 0): LogEnds("", 0, OTHER_ID, 0, 10, 10, NOW, 10)}, written=written)
    (row,) = rows_of(source)
    assert (row["state"], row["reason"]) == (None if reason else "ok", reason)
    (of_lag,) = read_table("lag", source).table.to_pylist()
    assert of_lag["problem"] == reason


def test_a_few_groups_of_all(tmp_path: Path) -> None:
    """Other groups determine the moment, and are not shown."""
    topic, ticking = clock()
    dead = Group("dead", topic).follows(every(MINUTE, 0, HOUR))
    folder = write_cluster(tmp_path, [topic], [ticking, dead])
    whole = rows_of(folder)
    assert rows_of(folder, group="dead") == [row for row in whole if row["group_id"] == "dead"]
    with pytest.raises(ValueError, match="progress shows logs as they are now: leave out as_of"):
        read_table("progress", folder, as_of="1h")


@pytest.mark.spark
def test_both_engines_say_the_same(tmp_path: Path, spark: SparkSession) -> None:
    topic, ticking = clock()
    orders = steady("orders")
    groups = [
        ticking,
        Group("dead", orders).follows(every(5 * SECOND, 0, 5 * HOUR)),
        Group("elsewhere", orders, log_partition=1).follows(every(MINUTE, 0, 6 * HOUR)),
    ]
    folder = write_cluster(tmp_path, [topic, orders], groups)
    assert rows_of(folder, spark=spark) == rows_of(folder)


def test_a_snapshot_tells_what_its_commits_tell(tmp_path: Path) -> None:
    orders = steady("orders")
    first = Group("first", orders).follows(every(MINUTE, 0, 6 * HOUR))
    dead = Group("dead", orders).follows(every(MINUTE, 0, 5 * HOUR))
    folder = write_cluster(tmp_path / "disk", [orders], [first, dead])
    take_snapshot(Segments(folder), tmp_path / "snapshot")
    found = rows_of(tmp_path / "snapshot")
    # It has the last offset of each log, and the time of the first unread record.
    assert [(row["group_id"], *told(row)[:2], row["known_by"]) for row in found] == [
        ("dead", "stopped", None, "log"),
        ("first", "ok", None, "log"),
    ]
    # The moment is that of the last record, of a topic here.
    assert {row["moment_timestamp_ms"] for row in found} == {NOW - 10 * SECOND}
