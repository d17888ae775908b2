"""Healthy topics: data directories of clusters without a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from struct import pack
from typing import Final

from tests.report.classic_lives import ClassicLife, ConnectLife
from tests.report.data_directory import SHARE_STATE, TRANSACTIONS
from tests.report.made_up_cluster import HOUR, MINUTE, MadeCluster
from tests.report.usual_lives import SHOP, THEMES, one_life, usual_lives


def write_healthy(name: str, folder: Path, *, end_ms: int) -> None:
    """Write the data directory of a healthy topic of `HEALTHY` into `folder`, which must not exist."""
    partitions, fill = HEALTHY[name]
    cluster = MadeCluster(name, end_ms, offsets_partitions=partitions, has_ids=name != "kafka_2_8")
    fill(cluster)
    cluster.write(folder)


def _only(kind: str, most: int = 12) -> Callable[[MadeCluster], None]:
    """The groups of one kind of all businesses."""

    def fill(cluster: MadeCluster) -> None:
        for name, of_kind in ((SHARE_STATE, "share"), (TRANSACTIONS, "transactional")):
            if kind == of_kind:
                cluster.needs(name)
        named: dict[str, Sequence[str]] = {}
        for theme in THEMES:
            named |= getattr(theme, kind)
        for number, (group, topics) in enumerate(list(named.items())[:most]):
            one_life(cluster, kind, group, topics, number % 3)

    return fill


def _connect(cluster: MadeCluster) -> None:
    """Workers of four clusters; each sink connector consumes as a group of its own."""
    for number, theme in enumerate(THEMES):
        workers = ConnectLife(cluster, theme.workers, theme.connectors, protocol="sessioned")
        workers.start(cluster.start_ms + number * HOUR, 3)
        workers.restart(cluster.end_ms - (5 + 7 * number) * HOUR)
        for group, topics in theme.classic.items():
            if group.startswith("connect-"):
                one_life(cluster, "classic", group, topics, number)


def _streams_classic(cluster: MadeCluster) -> None:
    """Kafka Streams with the classic protocol: with the user data of its assignor, and repartition topics."""
    for number, theme in enumerate(THEMES):
        for group, topics in theme.streams.items():
            between = f"{group}-KSTREAM-AGGREGATE-STATE-STORE-0000000003-repartition"
            partitions = cluster.topic(topics[0], 4, 400).partitions
            cluster.topic(between, partitions, 400)
            life = ClassicLife(cluster, group, [*topics, between], protocol="stream", user_data=_subscription_info)
            life.start(cluster.start_ms, 3)
            deployed = cluster.end_ms - (6 + 8 * number) * HOUR
            life.commits(cluster.start_ms + HOUR, deployed)
            life.restart(deployed)
            life.commits(deployed + 10 * MINUTE, cluster.end_ms)


def _subscription_info(number: int) -> bytes:
    """`SubscriptionInfoData` version 11: versions, process id, no end point, no sums, no error, no tags."""
    return pack(">iiqqiibii", 11, 11, 7_777, number, 0, 0, number % 128, 0, 0)


def _admin_clean_up(cluster: MadeCluster) -> None:
    """Old groups were deleted, and offsets of topics that nobody consumes any more, which leaves tombstones."""
    lives = usual_lives(cluster, SHOP)
    at_ms = cluster.end_ms - 6 * HOUR
    for number in range(9):
        old = ClassicLife(cluster, f"migration-2025-batch-{number:02}", ["shop.orders"])
        old.start(cluster.start_ms + number * HOUR, 1)
        old.commit(cluster.start_ms + (number + 1) * HOUR)
        old.stop(cluster.start_ms + (number + 2) * HOUR)
        old.delete(at_ms + number * 1_400)
    cluster.topic("shop.orders-v1", 3, 10)
    life = lives["returns-desk"]
    former = ClassicLife(cluster, life.group, ["shop.orders-v1"])
    former.commit(cluster.start_ms + 2 * HOUR)
    former.delete_topic(at_ms + MINUTE, "shop.orders-v1")
    cluster.topics["shop.orders-v1"].exists = False


def _big_cluster(cluster: MadeCluster) -> None:
    """Hundreds of groups. A cleaner has left little more than their last state."""
    cluster.cleaned_until_ms = cluster.end_ms - HOUR
    for team in range(60):
        topic = cluster.topic(f"team-{team:02}.events", 3, 300)
        for number in range(6):
            life = ClassicLife(cluster, f"team-{team:02}-service-{number}", [topic.name])
            life.start(cluster.start_ms + cluster.jitter(HOUR), 1 + number % 2)
            life.commits(cluster.end_ms - 2 * HOUR, cluster.end_ms, 30 * MINUTE)


def _freshly_compacted(cluster: MadeCluster) -> None:
    """A cleaner cleaned the logs a minute ago."""
    cluster.cleaned_until_ms = cluster.end_ms - MINUTE
    usual_lives(cluster, THEMES[3])


def _kafka_2_8(cluster: MadeCluster) -> None:
    """A broker that writes no ids of topics, and commits of version 3."""
    usual_lives(cluster, THEMES[2], without=["consumer", "streams", "share", "transactional"])


HEALTHY: Final[Mapping[str, tuple[int, Callable[[MadeCluster], None]]]] = {
    "classic_consumers": (8, _only("classic")),
    "consumer_groups": (8, _only("consumer")),
    "connect_workers": (8, _connect),
    "streams_classic": (8, _streams_classic),
    "streams_groups": (8, _only("streams")),
    "share_groups": (8, _only("share")),
    "exactly_once": (8, _only("transactional")),
    "simple_groups": (8, _only("simple")),
    "admin_clean_up": (8, _admin_clean_up),
    "big_cluster": (50, _big_cluster),
    "freshly_compacted": (8, _freshly_compacted),
    "kafka_2_8": (8, _kafka_2_8),
}
"""By name: the number of partitions of the offsets topic, and a function that writes what happens."""
