"""For each kind of finding, the smallest log with it, and a log that just does not have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from struct import pack
from typing import Any, Final, NamedTuple

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_tables.report.levels import Level
from tests.report.classic_lives import ClassicLife
from tests.report.data_directory import OFFSETS, SHARE_STATE, TRANSACTIONS, Write
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, SECOND, MadeCluster, Place
from tests.report.modern_lives import ModernLife, ShareLife

END_MS: Final = 1_790_000_000_000 // HOUR * HOUR
"""The moment of all reports: a full hour."""
GROUP: Final = "g"
_ORDERS: Final = ("orders", 0)
_OTHER_ID: Final = "t45nZMKZRXuARwA1OeCzdg"
_PRODUCER: Final = 4000

Plant = Callable[[MadeCluster], None]


class Evidence(NamedTuple):
    """The first piece of evidence."""

    topic: str
    partition: int
    number: int = 1
    """The number of pieces of evidence."""


@dataclass(frozen=True)
class RuleCase:
    """One kind of finding."""

    kind: str
    has: Plant
    lacks: Plant
    level: Level
    since_ms: int | None
    shown: Evidence | None
    next: Sequence[str]
    """The first two words of each command, or `-` for a step without one."""
    otherwise: Level | None = None
    """The level that the other log has; none where it has no such finding."""
    groups: Sequence[str] = (GROUP,)
    topics: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    """The options of the tables."""
    spoils: Callable[[Path], None] | None = None
    """A function that changes the files of the first log."""


# -- what happens to groups --------------------------------------------------------------------------------------------


def _stopped(at_ms: int) -> Plant:
    """A group that is in use for two days, until it is stopped."""

    def plant(cluster: MadeCluster) -> None:
        life = ClassicLife(cluster, GROUP, ["orders"])
        life.start(at_ms - 2 * DAY, 1)
        life.commit(at_ms - HOUR, [_ORDERS])
        life.stop(at_ms)

    return plant


def _commits(*offsets: int | None, ids: Mapping[int, str] | None = None, members: bool | None = None) -> Plant:
    """Commits of one partition, a minute apart, of which the last is a minute before the end; None deletes the offset.
    With `members`, a classic group commits, which has members or has lost them."""

    def plant(cluster: MadeCluster) -> None:
        cluster.topic("orders", 1)
        if members is not None:
            life = ClassicLife(cluster, GROUP, ["orders"])
            life.start(END_MS - HOUR, 1)
            if not members:
                life.stop(END_MS - HOUR + MINUTE)
        for number, offset in enumerate(offsets):
            at_ms = END_MS - (len(offsets) - number) * MINUTE
            if offset is None:
                cluster.delete_offsets(GROUP, at_ms, [_ORDERS])
            else:
                cluster.commit(GROUP, at_ms, {_ORDERS: offset}, ids={"orders": ids[number]} if ids else None)

    return plant


def _ends(offset: int, start: int, end: int) -> Plant:
    """One commit, and the start and end of the log of the topic."""

    def plant(cluster: MadeCluster) -> None:
        topic = cluster.topic("orders", 1, 0)
        topic.begins, topic.log_starts = (end,), (start,)
        cluster.commit(GROUP, END_MS - MINUTE, {_ORDERS: offset})

    return plant


def _pending(age_ms: int) -> Plant:
    """A commit of a transaction that no transactional id has open."""

    def plant(cluster: MadeCluster) -> None:
        cluster.needs(TRANSACTIONS, 1)
        cluster.topic("orders", 1)
        cluster.commit(GROUP, END_MS - age_ms, {_ORDERS: 5}, producer_id=_PRODUCER)

    return plant


def _rebalances(number: int) -> Plant:
    """A group with one member that goes through `number` generations, a minute apart, up to the end."""

    def plant(cluster: MadeCluster) -> None:
        life = ClassicLife(cluster, GROUP, ["orders"])
        life.join(END_MS - (number - 1) * MINUTE)
        for left in range(number - 2, -1, -1):
            life.rebalance(END_MS - left * MINUTE)

    return plant


def _waits(age_ms: int) -> Plant:
    """A consumer group whose second member joined, but no member has a new assignment."""

    def plant(cluster: MadeCluster) -> None:
        life = ModernLife(cluster, GROUP, ["orders"])
        life.join(END_MS - 3 * HOUR)
        life._come(END_MS - age_ms, None)

    return plant


class _AllToOne(ClassicLife):
    def _shares(self) -> list[list[Place]]:
        return [list(self.places) if number == 0 else [] for number in range(len(self.members))]


def _uneven(partitions: int) -> Plant:
    """A group of two members, of which one has all partitions."""

    def plant(cluster: MadeCluster) -> None:
        cluster.topic("orders", partitions)
        _AllToOne(cluster, GROUP, ["orders"]).join(END_MS - HOUR, 2)

    return plant


def _delivered(count: int) -> Plant:
    """A record of a share partition that was delivered `count` times and waits."""

    def plant(cluster: MadeCluster) -> None:
        cluster.needs(SHARE_STATE, 1)
        cluster.topic("orders", 1)
        life = ShareLife(cluster, GROUP, ["orders"])
        life.start(END_MS - HOUR, 1)
        start = life.starts[_ORDERS]
        life.update(END_MS - MINUTE, _ORDERS, start, 0, (start, start, 0, count))

    return plant


def _floods(commits: int) -> Plant:
    """`commits` commits in the last hour, at most one per second."""

    def plant(cluster: MadeCluster) -> None:
        cluster.topic("orders", 1)
        for number in range(commits):
            cluster.commit(GROUP, END_MS - HOUR + number * 999, {_ORDERS: 5})

    return plant


def _subscribed(topic: str) -> Plant:
    """A group with a member that subscribes to `orders`, and a commit."""

    def plant(cluster: MadeCluster) -> None:
        life = ClassicLife(cluster, GROUP, ["orders"])
        life.join(END_MS - HOUR)
        cluster.topic(topic, 1)
        cluster.commit(GROUP, END_MS - MINUTE, {(topic, 0): 5})

    return plant


def _share_members(number: int) -> Plant:
    """A share group that had two members and now has `number`."""

    def plant(cluster: MadeCluster) -> None:
        cluster.needs(SHARE_STATE, 1)
        life = ShareLife(cluster, GROUP, ["orders"])
        life.start(END_MS - HOUR)
        for _ in range(2 - number):
            life.leave(END_MS - MINUTE, settles=False)

    return plant


# -- what is in logs that should not -------------------------------------------------------------------------------


def _version(number: int) -> Plant:
    """A commit whose value has the given version."""

    def plant(cluster: MadeCluster) -> None:
        key = pack(">h", OffsetCommitKey.RECORD_TYPE) + OffsetCommitKey(GROUP, "orders", 0).encode(0)
        value = pack(">h", number) + OffsetCommitValue(offset=5, commit_timestamp=END_MS - MINUTE).encode(4)
        _commits(3)(cluster)
        cluster.logs.write_bytes(OFFSETS, GROUP, Write(END_MS - MINUTE, ((key, value),)))

    return plant


def _of_type(number: int) -> Plant:
    """A record of some type without a value; 1 is a tombstone of an offset."""

    def plant(cluster: MadeCluster) -> None:
        _commits(3)(cluster)
        key = pack(">h", number) + OffsetCommitKey(GROUP, "orders", 0).encode(0)
        cluster.logs.write_bytes(OFFSETS, GROUP, Write(END_MS - MINUTE, ((key, b"\x00\x00" if number > 1 else None),)))

    return plant


def _in_partition(is_own: bool) -> Plant:
    """A commit in the partition of its group, or in another one."""

    def plant(cluster: MadeCluster) -> None:
        cluster.logs.partitions = {OFFSETS: 2}
        own = cluster.logs.partition(OFFSETS, GROUP)
        cluster.logs._known[OFFSETS, GROUP] = own if is_own else 1 - own
        _commits(3)(cluster)

    return plant


class _Shares(ModernLife):
    """A consumer group whose assignor gives its members the requested partitions."""

    told: tuple[tuple[int, ...], ...] = ()

    def _shares(self) -> list[list[Place]]:
        return [[("orders", number) for number in share] for share in self.told[: len(self.members)]]


def _assigned(*shares: tuple[int, ...], of_nobody: bool = False) -> Plant:
    """A consumer group with these target assignments, which its members follow if nobody else has a partition."""

    def plant(cluster: MadeCluster) -> None:
        cluster.topic("orders", 3)
        life = _Shares(cluster, GROUP, ["orders"])
        life.told = shares
        for number in range(len(shares)):
            life.join(END_MS - HOUR + number * MINUTE)
        if of_nobody:
            nobody = replace(life.members[0], member_id="nobody", target=(("orders", 2),))
            life._write(END_MS - MINUTE, life._target_record(nobody))

    return plant


def _share_state(initialized: bool, state: bool) -> Plant:
    """A share group, whose list of initialized partitions may have a partition, and the state of that partition."""

    def plant(cluster: MadeCluster) -> None:
        cluster.needs(SHARE_STATE, 1)
        cluster.topic("orders", 1)
        life = ShareLife(cluster, GROUP, ["orders"])
        ModernLife.start(life, END_MS - HOUR, 1)
        if initialized:
            life._initialize(END_MS - HOUR + MINUTE)
        elif state:
            life.snapshot(END_MS - MINUTE, _ORDERS, 0, 0)
        if not state:
            cluster.logs.writes.pop((SHARE_STATE, 0))

    return plant


def _whole_before(records: int) -> Plant:
    """A log of three segments, of which the second one is deleted; `records` records come before it."""

    def plant(cluster: MadeCluster) -> None:
        cluster.topic("orders", 1)
        cluster.cleaned_until_ms, cluster.rolls_ms = None, HOUR
        for number in range(records):
            cluster.commit(GROUP, END_MS - 3 * HOUR + number * SECOND, {_ORDERS: number})
        cluster.commit(GROUP, END_MS - 2 * HOUR, {_ORDERS: 990})
        cluster.commit(GROUP, END_MS - HOUR, {_ORDERS: 991})
        cluster.lost.append((OFFSETS, 0, END_MS - 2 * HOUR))

    return plant


def _begins_at(offset: int) -> Plant:
    """A log that begins at this offset."""

    def plant(cluster: MadeCluster) -> None:
        _commits(*range(offset + 1))(cluster)
        if offset:
            cluster.rolls_ms = MINUTE
            cluster.lost.append((OFFSETS, 0, 0))

    return plant


def _flips_a_byte(folder: Path) -> None:
    path = next((folder / f"{OFFSETS}-0").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


_TABLE: Final = "kafka-records table"
_GROUPS: Final = "kafka-consumer-groups --bootstrap-server"
_SHARE_GROUPS: Final = "kafka-share-groups --bootstrap-server"
_TRANSACTIONS: Final = "kafka-transactions --bootstrap-server"
_TOPICS: Final = "kafka-topics --bootstrap-server"
_OF_FALLS: Final = (_TABLE, _TABLE, _TABLE, _GROUPS)

CASES: Final = (
    RuleCase(
        "offsets_expiring",
        _stopped(END_MS - 7 * DAY + HOUR),
        _stopped(END_MS - 7 * DAY + 72 * HOUR + 1),
        Level.HIGH,
        END_MS - 7 * DAY + HOUR,
        Evidence(OFFSETS, 0),
        (_GROUPS, _TABLE, _GROUPS),
        topics=("orders",),
    ),
    RuleCase(
        "retention_differs",
        _stopped(END_MS - 7 * DAY - HOUR),
        _stopped(END_MS - 7 * DAY - HOUR + 1),
        Level.NOTE,
        END_MS - HOUR,
        None,
        ("kafka-configs --bootstrap-server", _TABLE),
        groups=(),
    ),
    RuleCase(
        "offsets_below_log_start",
        _ends(5, 6, 9),
        _ends(6, 6, 9),
        Level.CRITICAL,
        None,
        Evidence("orders", 0),
        (_TABLE, _GROUPS, _GROUPS),
        topics=("orders",),
    ),
    RuleCase(
        "offsets_beyond_end",
        _ends(10, 6, 9),
        _ends(9, 6, 9),
        Level.HIGH,
        None,
        Evidence("orders", 0),
        (_TABLE, _GROUPS, _GROUPS),
        topics=("orders",),
    ),
    RuleCase(
        "topic_recreated",
        _commits(5, 3, ids={0: _OTHER_ID, 1: ""}),
        _commits(5, 3),
        Level.MODERATE,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        ("-", _TABLE, _TOPICS),
        topics=("orders",),
    ),
    RuleCase(
        "transaction_open",
        _pending(5 * MINUTE),
        _pending(5 * MINUTE - 1),
        Level.HIGH,
        END_MS - 5 * MINUTE,
        Evidence(OFFSETS, 0),
        (_TABLE, _TRANSACTIONS, "kafka-records abort-transaction"),
        otherwise=Level.NOTE,
        topics=("orders",),
    ),
    RuleCase(
        "two_committers",
        _commits(100, 50, 110, 60),
        _commits(100, 50, 110, 40),
        Level.HIGH,
        END_MS - 3 * MINUTE,
        Evidence(OFFSETS, 0, 2),
        ("-", "-", _TABLE, *_OF_FALLS),
        topics=("orders",),
    ),
    RuleCase(
        "offsets_began_again",
        _commits(5, None, 4),
        _commits(5, None, 5),
        Level.HIGH,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        _OF_FALLS,
        topics=("orders",),
    ),
    RuleCase(
        "offsets_reset",
        _commits(5, 4, members=False),
        _commits(5, 5, members=False),
        Level.MODERATE,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        ("-", *_OF_FALLS, "-"),
        topics=("orders",),
    ),
    RuleCase(
        "offsets_rewound",
        _commits(5, 4, members=True),
        _commits(5, 5, members=True),
        Level.MODERATE,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        _OF_FALLS,
        topics=("orders",),
    ),
    RuleCase(
        "endless_rebalances",
        _rebalances(10),
        _rebalances(9),
        Level.HIGH,
        END_MS - 9 * MINUTE,
        Evidence(OFFSETS, 0, 10),
        (_TABLE, _TABLE, _GROUPS),
        topics=("orders",),
    ),
    RuleCase(
        "members_unsettled",
        _waits(10 * MINUTE),
        _waits(10 * MINUTE - 1),
        Level.MODERATE,
        END_MS - 10 * MINUTE,
        Evidence(OFFSETS, 0, 2),
        (_TABLE, _TABLE, _GROUPS),
        otherwise=Level.NOTE,
    ),
    RuleCase(
        "uneven_assignments",
        _uneven(4),
        _uneven(3),
        Level.LOW,
        END_MS - HOUR,
        Evidence(OFFSETS, 0),
        (_TABLE, _GROUPS),
        topics=("orders",),
    ),
    RuleCase(
        "share_redelivery",
        _delivered(3),
        _delivered(2),
        Level.MODERATE,
        None,
        Evidence(SHARE_STATE, 0),
        (_TABLE, "kafka-records dump", "kafka-console-consumer --bootstrap-server", _SHARE_GROUPS),
        topics=("orders",),
    ),
    RuleCase(
        "commits_flooding",
        _floods(3600),
        _floods(3599),
        Level.NOTE,
        END_MS - HOUR,
        None,
        (_TABLE, _TABLE, _GROUPS, "-"),
        topics=("orders",),
    ),
    RuleCase(
        "coordinator_cannot_load",
        _version(5),
        _version(4),
        Level.CRITICAL,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        (_TABLE, "-", "kafka-records dump", _TOPICS, "-", "-"),
    ),
    RuleCase(
        "records_misplaced",
        _in_partition(False),
        _in_partition(True),
        Level.HIGH,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        (_TABLE, "kafka-records dump", _TOPICS),
        options={"partitions": {OFFSETS: 2}},
    ),
    RuleCase(
        "partitions_unassigned",
        _assigned((0, 2)),
        _assigned((0, 1)),
        Level.HIGH,
        END_MS - HOUR + SECOND,
        Evidence(OFFSETS, 0),
        (_TABLE, "kafka-records dump", _GROUPS),
        topics=("orders",),
    ),
    RuleCase(
        "assignments_broken",
        _assigned((0,), of_nobody=True),
        _assigned((0,)),
        Level.HIGH,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        (_TABLE, "kafka-records dump", _GROUPS),
    ),
    RuleCase(
        "share_state_broken",
        _share_state(initialized=True, state=False),
        _share_state(initialized=True, state=True),
        Level.HIGH,
        END_MS - HOUR + MINUTE + 200,
        Evidence(OFFSETS, 0),
        (_TABLE, "kafka-records dump"),
        topics=("orders",),
    ),
    RuleCase(
        "share_state_left",
        _share_state(initialized=False, state=True),
        _share_state(initialized=True, state=True),
        Level.LOW,
        END_MS - MINUTE,
        Evidence(SHARE_STATE, 0),
        (_TABLE, "kafka-records dump"),
    ),
    RuleCase(
        "records_unknown",
        _of_type(99),
        _of_type(1),
        Level.NOTE,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        (_TABLE, "kafka-records dump"),
        groups=(),
    ),
    RuleCase(
        "damage",
        _commits(3),
        _commits(3),
        Level.HIGH,
        None,
        Evidence(OFFSETS, 0),
        ("kafka-records counts", "-"),
        groups=(),
        topics=(OFFSETS,),
        spoils=_flips_a_byte,
    ),
    RuleCase(
        "segment_lost",
        _whole_before(100),
        _whole_before(99),
        Level.HIGH,
        END_MS - 3 * HOUR + 99 * SECOND,
        Evidence(OFFSETS, 0, 2),
        ("-", _TOPICS, _TABLE, "-"),
        topics=(OFFSETS,),
    ),
    RuleCase(
        "log_cut",
        _begins_at(1),
        _begins_at(0),
        Level.HIGH,
        None,
        Evidence(OFFSETS, 0),
        ("kafka-configs --bootstrap-server", "-", _TABLE, _TOPICS, "-"),
        topics=(OFFSETS,),
    ),
    RuleCase(
        "offsets_unneeded",
        _subscribed("returns"),
        _subscribed("orders"),
        Level.NOTE,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        (_TABLE, "kafka-records delete-offsets"),
        topics=("returns",),
    ),
    RuleCase(
        "share_groups_empty",
        _share_members(0),
        _share_members(1),
        Level.NOTE,
        END_MS - MINUTE,
        Evidence(OFFSETS, 0),
        (_TABLE, _SHARE_GROUPS),
    ),
)

Thresholds = Mapping[str, Any]

MOVED: Final[Mapping[str, Sequence[tuple[Thresholds, Level | None]]]] = {
    "offsets_expiring": (
        ({"within": "59m", "high_within": "59m", "critical_within": "59m"}, None),
        ({"high_within": "59m", "critical_within": "59m"}, Level.MODERATE),
        ({"in_use_for": "3d", "in_use_epoch": 99}, Level.NOTE),
        ({"in_use_for": "3d", "in_use_epoch": 1}, Level.HIGH),
    ),
    "offsets_below_log_start": (({"alive_within": "30s"}, Level.LOW),),
    "offsets_beyond_end": (({"alive_within": "30s"}, Level.LOW),),
    "topic_recreated": (
        ({"lately": "30s"}, Level.LOW),
        ({"lately": "30s", "of_the_past": "30s"}, Level.NOTE),
    ),
    "transaction_open": (
        ({"settled_after": "6m"}, Level.NOTE),
        ({"settled_after": "6m", "open_after": "6m"}, None),
        ({"critical_after": "5m"}, Level.CRITICAL),
    ),
    "two_committers": (({"lately": "30s"}, Level.MODERATE), ({"lately": "30s", "of_the_past": "30s"}, Level.NOTE)),
    "offsets_began_again": (({"lately": "30s"}, Level.MODERATE), ({"lately": "30s", "of_the_past": "30s"}, Level.NOTE)),
    "offsets_reset": (({"lately": "30s"}, Level.LOW), ({"lately": "30s", "of_the_past": "30s"}, Level.NOTE)),
    "offsets_rewound": (({"lately": "30s"}, Level.LOW), ({"lately": "30s", "of_the_past": "30s"}, Level.NOTE)),
    "endless_rebalances": (
        ({"least": 11}, None),
        ({"per_member": 11}, None),
        ({"pause": "59s"}, None),
    ),
    "members_unsettled": (({"moderate_after": "11m"}, Level.NOTE), ({"high_after": "10m"}, Level.HIGH)),
    "uneven_assignments": (
        ({"difference": 5}, None),
        ({"times_mean": 3}, None),
        ({"moderate_difference": 4}, Level.MODERATE),
    ),
    "share_redelivery": (({"deliveries": 4}, None), ({"delivery_limit": 4}, Level.HIGH)),
    "commits_flooding": (
        ({"least_commits": 3601}, None),
        ({"interval_ms": 998}, None),
        ({"lately": "30m"}, None),
        ({"moderate_rate": 1}, Level.MODERATE),
        ({"moderate_rate": 1, "high_rate": 1}, Level.HIGH),
        ({"moderate_bytes": 1_000_000, "share": 1.0}, Level.MODERATE),
        ({"moderate_bytes": 1_000_000, "high_bytes": 1_000_000}, Level.HIGH),
        ({"interval_ms": 998, "least_bytes": 100_000, "commit_bytes": 30}, Level.NOTE),
        ({"interval_ms": 998, "least_bytes": 100_000, "commit_bytes": 600}, None),
    ),
    "segment_lost": (({"whole_before": 101}, None),),
    "offsets_unneeded": (({"many": 1}, Level.LOW),),
}
"""By kind: the level of the finding in its first log with other thresholds; None if there is no finding any more."""

SETTLED: Final[Mapping[str, str]] = {
    "offsets_expiring": "8d",
    "members_unsettled": "11m",
    "uneven_assignments": "61m",
    "offsets_unneeded": "2h",
    "share_groups_empty": "61s",
}
"""By kind of finding about the present state of a group: a time within which something happened to the group of its
case."""

ELSEWHERE: Final = {
    "transaction_open": {"times_usual"},
    "offsets_expiring": {"alive_within", "overdue_after"},
    "topic_recreated": {"alive_within"},
    "endless_rebalances": {"lately", "drops"},
    "log_cut": {"silent_for"},
}
"""Thresholds that do not matter for these logs; other tests cover them."""
