"""More incidents like those of `incidents`, each in a small cluster with two other, healthy groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from struct import pack
from typing import Any, Final

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_tables.report.levels import Level
from tests.report.classic_lives import ClassicLife
from tests.report.data_directory import OFFSETS, SHARE_STATE, TRANSACTIONS, Write
from tests.report.incidents import END_MS
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, SECOND, MadeCluster
from tests.report.modern_lives import ModernLife, ShareLife
from tests.report.transactional_lives import Transactional

_GROUP: Final = "billing"
_TOPIC: Final = "orders"


@dataclass(frozen=True)
class Variant:
    """A problem, and what the report must say about it, apart from notes."""

    plant: Callable[[MadeCluster], None]
    kind: str
    level: Level
    groups: tuple[str, ...] = (_GROUP,)
    retention: str | None = None
    spoils: Callable[[Path], None] | None = None
    """A function that changes the files."""


def write_variant(name: str, folder: Path) -> None:
    """Write the data directory of a variant of `VARIANTS` into `folder`, which must not be there."""
    cluster = MadeCluster(name, END_MS, days=2, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    for life in (ClassicLife(cluster, "well-classic", ["stock"]), ModernLife(cluster, "well-consumer", ["stock"])):
        life.start(cluster.start_ms, 2)
        life.commits(cluster.start_ms + HOUR, END_MS)
    variant = VARIANTS[name]
    variant.plant(cluster)
    cluster.write(folder)
    if variant.spoils is not None:
        variant.spoils(folder)


def _life(cluster: MadeCluster, kind: type[Any] = ClassicLife, until_ms: int = END_MS) -> Any:
    """A group with two members that commits every quarter of an hour."""
    life = kind(cluster, _GROUP, [_TOPIC])
    life.start(cluster.start_ms, 2)
    life.commits(cluster.start_ms + HOUR, until_ms)
    return life


def _member_never_settles(cluster: MadeCluster) -> None:
    """A third member came two hours ago; the first one sends heartbeats and gives up nothing."""
    life, since = _life(cluster, ModernLife, END_MS - 2 * HOUR), END_MS - 2 * HOUR
    life._come(since, None)
    life.assign(since + SECOND)
    stuck = next(each for each in life.members if set(each.has) - set(each.target))
    held = dict(stuck.has)
    life.give_up(since + 2 * SECOND, stuck)
    stuck.has = held
    for member in life.members:
        if member is not stuck:
            life.follow(since + 3 * SECOND, member)
    life.commits(since + MINUTE, END_MS)


def _broken_value(cluster: MadeCluster) -> None:
    """A commit whose value is truncated, in a batch with the right checksum."""
    life = _life(cluster)
    at_ms = END_MS - 30 * MINUTE
    key = pack(">h", OffsetCommitKey.RECORD_TYPE) + OffsetCommitKey(_GROUP, _TOPIC, 0).encode(0)
    value = pack(">h", 3) + OffsetCommitValue(offset=life.done[_TOPIC, 0], commit_timestamp=at_ms).encode(3)
    cluster.logs.write_bytes(OFFSETS, _GROUP, Write(at_ms, ((key, value[:-9]),)))


def _flips_a_byte(folder: Path) -> None:
    path = max((folder / f"{OFFSETS}-0").glob("*.log"), key=lambda each: each.stat().st_size)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x40
    path.write_bytes(content)


def _transactional_committers(cluster: MadeCluster) -> None:
    """Two producers with different ids commit for the same partition in turn."""
    cluster.needs(TRANSACTIONS, 1)
    first = cluster.topic(_TOPIC, 1).begins[0] - 9000
    producers = [Transactional(cluster, f"billing-{number}", _GROUP, "invoices", 4000 + number) for number in (1, 2)]
    for producer in producers:
        producer.start(END_MS - 6 * HOUR)
    for number in range(40):
        at_ms = END_MS - 5 * HOUR + number * 5 * MINUTE
        producers[number % 2].begin(at_ms, {(_TOPIC, 0): first + 5000 * (1 - number % 2) + number * 10})
        producers[number % 2].end(at_ms + SECOND)


def _archived(cluster: MadeCluster) -> None:
    """A record that was delivered five times and given up; the one before it is being delivered."""
    cluster.needs(SHARE_STATE, 1)
    cluster.topic(_TOPIC, 1)
    life = ShareLife(cluster, _GROUP, [_TOPIC])
    life.start(cluster.start_ms, 2)
    life.consumes(cluster.start_ms + HOUR, END_MS - HOUR)
    start = life.starts[_TOPIC, 0]
    life.update(END_MS - 30 * MINUTE, (_TOPIC, 0), start, 1, (start, start, 0, 1), (start + 1, start + 1, 4, 5))


def _hangs(cluster: MadeCluster) -> None:
    """A commit of a transaction that `__transaction_state` does not have."""
    cluster.needs(TRANSACTIONS, 1)
    cluster.topic(_TOPIC, 2)
    life = ClassicLife(cluster, _GROUP, [_TOPIC])
    life.start(cluster.start_ms, 1)
    life.commits(cluster.start_ms + HOUR, END_MS - 2 * HOUR)
    cluster.commit(_GROUP, END_MS - 2 * HOUR, {(_TOPIC, 0): life.done[_TOPIC, 0] + 5}, producer_id=4000)


def _held(cluster: MadeCluster) -> None:
    """A worker has renewed the lock of one record for three hours. The others went on until the window was full."""
    cluster.needs(SHARE_STATE)
    topic, held = cluster.topic(_TOPIC, 2, 2000), END_MS - 3 * HOUR
    life = ShareLife(cluster, _GROUP, [_TOPIC])
    life.start(cluster.start_ms, 2)
    life.consumes(cluster.start_ms + HOUR, held)
    first = life.starts[_TOPIC, 1]
    read = first + 1
    for at_ms in cluster.ticks(held + MINUTE, END_MS, 10 * MINUTE):
        life.consume(at_ms, places=[(_TOPIC, 0)])
        end = min(topic.end(1, at_ms), first + 2000)
        if end > read:
            life.update(at_ms, (_TOPIC, 1), first, end - first - 1, (read, end - 1, 2, 1))
            read = end


def _metadata(cluster: MadeCluster) -> None:
    """Four thousand bytes of metadata with each commit, 3000 in a quarter of an hour: a gigabyte a day."""
    cluster.topic(_TOPIC, 1, 40_000)
    for number in range(3000):
        at_ms = END_MS // HOUR * HOUR - 15 * MINUTE + number * 300
        cluster.commit(_GROUP, at_ms, cluster.topics[_TOPIC].ends(at_ms - 2 * SECOND), metadata="x" * 4000)


def _empty_since_yesterday(cluster: MadeCluster) -> None:
    """Brokers that keep offsets for 25 hours, and a consumer group that was stopped a day ago."""
    life = _life(cluster, ModernLife, END_MS - DAY)
    for number in range(4):
        life.restart(cluster.start_ms + (2 + number) * HOUR)
    life.commit(END_MS - DAY)
    life.stop(END_MS - DAY + SECOND)


def _left_behind_by_one_at_work(cluster: MadeCluster) -> None:
    """A client that assigns itself partitions commits for one, and has committed nothing for the other for a week."""
    cluster.topic(_TOPIC, 2, 0)
    life = ClassicLife(cluster, _GROUP, [_TOPIC])
    life.commit(END_MS - 7 * DAY + HOUR)
    for at_ms in cluster.ticks(cluster.start_ms, END_MS):
        life.commit(at_ms, [(_TOPIC, 0)])


def _reset_to_earliest(cluster: MadeCluster) -> None:
    """A group that was stopped, moved back to the start of its logs and started again."""
    stopped = END_MS - 2 * HOUR
    life = _life(cluster, ClassicLife, stopped)
    life.stop(stopped)
    topic = cluster.topics[_TOPIC]
    life.done = {(_TOPIC, number): start for number, start in enumerate(topic.log_starts)}
    cluster.commit(_GROUP, stopped + MINUTE, life.done)
    life.join(stopped + 2 * MINUTE, 2)


def _recreated(cluster: MadeCluster) -> None:
    """Two groups read a topic; it is recreated, and both continue with the new one."""
    made = END_MS - HOUR
    topic = cluster.topic(_TOPIC, 2)
    lives = [ClassicLife(cluster, group, [_TOPIC]) for group in (_GROUP, "shipping")]
    for life in lives:
        life.start(cluster.start_ms, 1)
        life.commits(cluster.start_ms + HOUR, made)
        life.done.clear()
    topic.topic_id, topic.grows_from_ms = cluster.kafka_id(), made
    topic.begins = topic.log_starts = (0,) * topic.partitions
    for life in lives:
        life.commits(made + MINUTE, END_MS, 10 * MINUTE)


def _rolls(cluster: MadeCluster) -> None:
    cluster.rolls_ms = 6 * HOUR
    _life(cluster)


def _loses_the_first(folder: Path) -> None:
    min((folder / f"{OFFSETS}-0").glob("*.log")).unlink()


def _loses_the_last(folder: Path) -> None:
    max((folder / f"{OFFSETS}-0").glob("*.log")).unlink()


_ALL: Final = (_GROUP, "well-classic", "well-consumer")

VARIANTS: Final[Mapping[str, Variant]] = {
    "member_never_settles": Variant(_member_never_settles, "members_unsettled", Level.HIGH),
    "broken_value": Variant(_broken_value, "coordinator_cannot_load", Level.CRITICAL, _ALL),
    "broken_bytes": Variant(_life, "damage", Level.HIGH, _ALL, spoils=_flips_a_byte),
    "transactional_committers": Variant(_transactional_committers, "two_committers", Level.HIGH),
    "archived_share_record": Variant(_archived, "share_records_archived", Level.HIGH),
    "held_share_record": Variant(_held, "share_partition_stuck", Level.HIGH),
    "transaction_without_entry": Variant(_hangs, "transaction_open", Level.HIGH),
    "flood_of_metadata": Variant(_metadata, "commits_flooding", Level.MODERATE),
    "empty_since_yesterday": Variant(_empty_since_yesterday, "offsets_expiring", Level.HIGH, retention="25h"),
    "left_behind_by_one_at_work": Variant(_left_behind_by_one_at_work, "offsets_expiring", Level.CRITICAL),
    "reset_to_earliest": Variant(_reset_to_earliest, "offsets_reset", Level.MODERATE),
    "topic_recreated_for_two": Variant(_recreated, "topic_recreated", Level.MODERATE, (_GROUP, "shipping")),
    "lost_first_segment": Variant(_rolls, "log_cut", Level.HIGH, _ALL, spoils=_loses_the_first),
    "lost_last_segment": Variant(_rolls, "log_cut", Level.HIGH, _ALL, spoils=_loses_the_last),
}
"""The variants by name. No other finding may be above a note."""
