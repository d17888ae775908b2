"""Ten planted incidents: data directories with one problem among a dozen healthy groups.

`python -m tests.report.incidents NAME|all|healthy FOLDER` writes them for a trial. With `--numbered` the folders are
numbers in a shuffled order, healthy ones among them, and the answers are in `key.json` next to them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from struct import pack
from typing import Final

from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records_runtime.kafka.uuids import Uuid
from tests.report.classic_lives import ClassicLife
from tests.report.data_directory import OFFSETS, SHARE_STATE, TRANSACTIONS, Write
from tests.report.healthy import HEALTHY, write_healthy
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, SECOND, MadeCluster, Place
from tests.report.modern_lives import Batch, ShareLife
from tests.report.transactional_lives import ExactlyOnceLife
from tests.report.usual_lives import BANK, LOGISTICS, MEDIA, SHOP, Theme, usual_lives

END_MS: Final = int(datetime(2026, 11, 16, 9, 0, 7, tzinfo=UTC).timestamp()) * SECOND
"""The default time at which the copy of the data directory was taken."""


@dataclass(frozen=True)
class Truth:
    """The facts that the judge of a trial needs."""

    what: str
    since_ms: int
    what_to_do: str
    group_ids: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    partitions: tuple[int, ...] = ()
    """The affected partitions of the topic."""
    transactional_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Incident:
    """A data directory with something wrong in it."""

    name: str
    folder: Path
    as_of_ms: int
    """The moment of the copy: nothing in it is newer."""
    truth: Truth


def write_incident(name: str, folder: Path, *, end_ms: int = END_MS) -> Incident:
    """Write the data directory of an incident of `INCIDENTS` into `folder`, which must not exist."""
    theme, days, plant = INCIDENTS[name]
    cluster = MadeCluster(name, end_ms, days=days)
    truth = plant(cluster, theme)
    cluster.write(folder)
    return Incident(name, folder, end_ms, truth)


def _expiring(cluster: MadeCluster, theme: Theme) -> Truth:
    usual_lives(cluster, theme)
    stopped = cluster.end_ms - 6 * DAY - 21 * HOUR
    life = ClassicLife(cluster, "regulatory-reporting", ["ledger.entries"])
    life.start(cluster.start_ms, 3)
    for number in range(3):
        life.restart(cluster.start_ms + number * 12 * HOUR + MINUTE)
    life.commits(cluster.start_ms + HOUR, stopped)
    life.stop(stopped)
    return Truth(
        "the group was stopped a week ago with all of its offsets; in three hours a clean-up deletes them, and whoever "
        "starts it again then begins where auto.offset.reset says",
        stopped,
        "start the group again, or commit its offsets again (reset to current), or raise offsets.retention.minutes",
        ("regulatory-reporting",),
        ("ledger.entries",),
        tuple(range(cluster.topics["ledger.entries"].partitions)),
    )


def _hanging_transaction(cluster: MadeCluster, theme: Theme) -> Truth:
    began = cluster.end_ms - 25 * HOUR
    cluster.cleaned_until_ms = began - 2 * HOUR
    usual_lives(cluster, theme, without=["transactional"])
    cluster.needs(TRANSACTIONS)
    cluster.topic("shop.orders")
    life = ExactlyOnceLife(cluster, "invoice-numbers", ["shop.invoices"], output="shop.numbered-invoices")
    cluster.topic("shop.invoices", 6, 300)
    life.start(cluster.start_ms, 3)
    life.commits(cluster.start_ms + HOUR, began - MINUTE)
    stuck = [("shop.invoices", 4), ("shop.invoices", 5)]
    told = {place: cluster.topics[place[0]].end(place[1], began) for place in stuck}
    producer = life.producers[2]
    producer.begin(began, {stuck[0]: told[stuck[0]]})
    producer.end(began + 70 * SECOND, "abort")
    producer.commit_late(began + 83 * SECOND, told)
    del life.members[2]
    life.rebalance(began + 2 * MINUTE)
    going = [place for place in life.places if place not in stuck]
    for at_ms in cluster.ticks(began + 5 * MINUTE, cluster.end_ms):
        life.commit(at_ms, going)
    return Truth(
        "a commit of a transaction that was aborted already came late: no coordinator knows the transaction, nobody "
        "ends it, and the group waits for the offsets of two partitions",
        began + 83 * SECOND,
        "kafka-transactions.sh abort, with the producer id and the partition of __consumer_offsets",
        ("invoice-numbers",),
        ("shop.invoices",),
        (4, 5),
        ("invoice-numbers-tx-2",),
    )


def _two_committers(cluster: MadeCluster, theme: Theme) -> Truth:
    usual_lives(cluster, theme, without=["simple"])
    began = cluster.end_ms - 6 * HOUR
    group, topic = "spark-audience-report", "player.sessions"
    life = ClassicLife(cluster, group, [topic])
    life.commits(cluster.start_ms + HOUR, began)
    old = dict(life.done)
    for at_ms in cluster.ticks(began, cluster.end_ms - 8 * MINUTE, 10 * MINUTE):
        life.commit(at_ms)
        old = {place: offset + 40 + cluster.jitter(60) for place, offset in old.items()}
        old = {place: min(offset, life.done[place] - 10) for place, offset in old.items()}
        cluster.commit(group, at_ms + 4 * MINUTE + cluster.jitter(MINUTE), old)
    return Truth(
        "two programs commit for the same partitions under one group name: offsets go up and down by turns",
        began,
        "find the second program (an old deployment, a copy in another environment) and stop it or rename its group",
        (group,),
        (topic,),
        tuple(range(cluster.topics[topic].partitions)),
    )


def _endless_rebalance(cluster: MadeCluster, theme: Theme) -> Truth:
    usual_lives(cluster, theme)
    began = cluster.end_ms - 3 * HOUR - 30 * MINUTE
    life = ClassicLife(cluster, "route-optimiser", ["shipments.events"])
    life.start(cluster.start_ms, 4)
    life.commits(cluster.start_ms + HOUR, began)
    at_ms, number = began, 0
    while at_ms < cluster.end_ms - MINUTE:
        life.rejoin(at_ms, cluster.random.randrange(4))
        number += 1
        if number % 20 == 0:
            life.commit(at_ms + 20 * SECOND, life.places[:1], behind_ms=(at_ms - began) * 9 // 10)
        at_ms += 40 * SECOND + cluster.jitter(30 * SECOND)
    return Truth(
        "the group rebalances every minute: members drop out and come again, and hardly anything is consumed",
        began,
        "see why members leave: processing longer than max.poll.interval.ms; raise it, or lower max.poll.records",
        ("route-optimiser",),
        ("shipments.events",),
    )


def _reset_by_administrator(cluster: MadeCluster, theme: Theme) -> Truth:
    usual_lives(cluster, theme, without=["statement-archiver"])
    stopped = cluster.end_ms - 5 * HOUR - 20 * MINUTE
    reset, again = stopped + 18 * MINUTE, stopped + 25 * MINUTE
    topic = cluster.topic("ledger.entries")
    life = ClassicLife(cluster, "statement-archiver", [topic.name])
    life.start(cluster.start_ms, 3)
    life.commits(cluster.start_ms + HOUR, stopped)
    life.stop(stopped)
    life.done = topic.ends(reset - 3 * DAY)
    cluster.commit(life.group, reset, life.done)
    life.join(again, 3)
    for at_ms in cluster.ticks(again + MINUTE, cluster.end_ms, 10 * MINUTE):
        life.commit(at_ms, behind_ms=3 * DAY - (at_ms - again) * 6)
    return Truth(
        "somebody set the offsets of the group back by three days while it was stopped: it consumes them a second time",
        reset,
        "ask who reset it and whether it was meant; what the group writes may be there twice",
        (life.group,),
        (topic.name,),
        tuple(range(topic.partitions)),
    )


def _topic_recreated(cluster: MadeCluster, theme: Theme) -> Truth:
    usual_lives(cluster, theme)
    made = cluster.end_ms - 2 * HOUR - 10 * MINUTE
    topic = cluster.topic("ads.impressions", 4, 900)
    billing, pacing = (ClassicLife(cluster, group, [topic.name]) for group in ("ads-billing", "ads-pacing"))
    for life, until in ((billing, made), (pacing, made - 25 * MINUTE)):
        life.start(cluster.start_ms, 2)
        life.commits(cluster.start_ms + HOUR, until)
    pacing.stop(made - 20 * MINUTE)
    nothing = (0,) * topic.partitions
    new = replace(topic, topic_id=cluster.kafka_id(), begins=nothing, log_starts=nothing, grows_from_ms=made)
    cluster.topics[topic.name] = new
    billing.done.clear()
    billing.rebalance(made + 30 * SECOND)
    billing.commits(made + MINUTE, cluster.end_ms, 10 * MINUTE)
    return Truth(
        "the topic was deleted and recreated under its old name: what was in it is gone, one group has begun at 0, "
        "and the offsets of the other one belong to the topic that is gone",
        made,
        "ask who made the topic again; reset ads-pacing before it starts again",
        (billing.group, pacing.group),
        (topic.name,),
        tuple(range(topic.partitions)),
    )


_DELIVERY_LIMIT: Final = 5
"""`group.share.delivery.count.limit`, as brokers have it."""


def _poisoned_share(cluster: MadeCluster, theme: Theme) -> Truth:
    usual_lives(cluster, theme, without=["share"])
    cluster.needs(SHARE_STATE)
    began = cluster.end_ms - 3 * HOUR
    topic = cluster.topic("deliveries.photos", 3, 400)
    life = ShareLife(cluster, "proof-of-delivery-ocr", [topic.name])
    life.start(cluster.start_ms, 3)
    life.consumes(cluster.start_ms + HOUR, began)
    sick: Place = (topic.name, 2)
    life.consume(began)
    first = life.starts[sick]
    ill, complete, end, counts = first, 0, first, {first: 0}
    for at_ms in cluster.ticks(began + MINUTE, cluster.end_ms, 5 * MINUTE):
        life.consume(at_ms, places=[(topic.name, 0), (topic.name, 1)])
        told: list[Batch] = []
        for offset, count in list(counts.items()):
            # A member holds the first one for a long time, by renewing its lock; the others are delivered again at
            # once.
            counts[offset] = min(count + 1, 4) if offset == first else count + 1
            is_archived = counts[offset] == _DELIVERY_LIMIT
            told.append((offset, offset, 4 if is_archived else 0, counts[offset]))
            if is_archived:
                del counts[offset]
                complete += 1
        start, end = end, topic.end(2, at_ms)
        for ill in (start + 7, start + 19):
            if ill < end:
                told.append((start, ill - 1, 2, 1))
                told.append((ill, ill, 0, 1))
                complete, counts[ill], start = complete + ill - start, 1, ill + 1
        if start < end:
            told.append((start, end - 1, 2, 1))
            complete += end - start
        told = [each for each in told if each[0] != first or each[1] == first]
        life.update(at_ms + SECOND, sick, first, complete, *sorted(told))
    return Truth(
        "some records of one partition cannot be processed: each is delivered five times and then archived, which "
        "nobody consumes any more; the first one holds the start of the share partition",
        began,
        "look at the records at these offsets and at what the group logs; fix the consumers or reject such records",
        (life.group,),
        (topic.name,),
        (2,),
    )


def _flooding(cluster: MadeCluster, theme: Theme) -> Truth:
    usual_lives(cluster, theme, without=["share", "transactional", "streams"])
    began = cluster.end_ms - 70 * MINUTE
    topic = cluster.topic("shop.page-views", 2, 110)
    life = ClassicLife(cluster, "clickstream-sessionizer", [topic.name])
    life.start(cluster.start_ms, 1)
    life.commits(cluster.start_ms + HOUR, began)
    life.restart(began)
    at_ms = began + 5 * MINUTE
    while at_ms < cluster.end_ms:
        life.commit(at_ms)
        at_ms += 800 + cluster.jitter(100)
    return Truth(
        "since its last deployment the group commits more than once a second, nearly always the offset that is "
        "committed already: most of what is written to __consumer_offsets is its",
        began,
        "let it commit by time (auto.commit.interval.ms) or after a batch, and only when the offset has moved",
        (life.group,),
        (topic.name,),
        (0, 1),
    )


def _lost_segment(cluster: MadeCluster, theme: Theme) -> Truth:
    cluster.cleaned_until_ms, cluster.rolls_ms = None, 6 * HOUR
    usual_lives(cluster, theme, without=["gone", "share", "transactional"])
    topic = cluster.topic("accounts.changes")
    life = ClassicLife(cluster, "address-verification", [topic.name])
    life.start(cluster.start_ms, 2)
    life.commits(cluster.start_ms + 22 * HOUR, cluster.end_ms, behind_ms=21 * HOUR)
    topic.log_starts = tuple(topic.end(number, cluster.end_ms - 8 * HOUR) for number in range(topic.partitions))
    hole_ms = (cluster.end_ms // cluster.rolls_ms - 4) * cluster.rolls_ms
    own = cluster.logs.partition(OFFSETS, life.group)
    cluster.lost.append((OFFSETS, own, hole_ms))
    return Truth(
        f"a segment file of {OFFSETS}-{own} is missing in the middle of the log, and records of the topic were deleted "
        "that the group had not consumed",
        hole_ms,
        "restore the file from a replica, and see who deleted files; reset the group or accept the loss",
        (life.group,),
        (topic.name,),
        tuple(range(topic.partitions)),
    )


def _not_loaded(cluster: MadeCluster, theme: Theme) -> Truth:
    # Few partitions, so that several groups are in the one that does not load.
    cluster.logs.partitions = {OFFSETS: 3}
    lives = usual_lives(cluster, theme, without=["transactional", "share"])
    group = "order-confirmation-mails"
    life, stops = lives[group], cluster.end_ms - 3 * HOUR
    own = cluster.logs.partition(OFFSETS, group)
    # Nothing more is written: the coordinator stops while loading, and answers NOT_COORDINATOR to all groups.
    writes = cluster.logs.writes
    writes[OFFSETS, own] = [each for each in writes[OFFSETS, own] if each.at_ms < stops]
    records = []
    for topic, partition in sorted(life.done):
        offset = cluster.topics[topic].end(partition, stops)
        known = Uuid.from_string(cluster.topics[topic].topic_id)
        value = OffsetCommitValue(offset=offset, leader_epoch=3, commit_timestamp=stops, topic_id=known)
        key = pack(">h", OffsetCommitKey.RECORD_TYPE) + OffsetCommitKey(group, topic, partition).encode(0)
        records.append((key, pack(">h", _LATER_VERSION) + value.encode(_LATER_VERSION - 1)))
    cluster.logs.write_bytes(OFFSETS, group, Write(stops, tuple(records)))
    return Truth(
        f"{OFFSETS}-{own} holds commits of a version that no broker of this release knows, written by a newer one: the "
        "coordinator does not load the partition, and no group in it can commit or join",
        stops,
        "bring the newer broker back, or have somebody remove the records; all groups of the partition stand still",
        tuple(sorted(each for each in lives if cluster.logs.partition(OFFSETS, each) == own)),
        (OFFSETS,),
        (own,),
    )


_LATER_VERSION: Final = 5
"""A version of `OffsetCommitValue` that is one higher than Kafka 4.4 knows."""

Plant = Callable[[MadeCluster, Theme], Truth]

INCIDENTS: Final[Mapping[str, tuple[Theme, int, Plant]]] = {
    "expiring_offsets": (BANK, 9, _expiring),
    "hanging_transaction": (SHOP, 9, _hanging_transaction),
    "two_committers": (MEDIA, 9, _two_committers),
    "endless_rebalance": (LOGISTICS, 9, _endless_rebalance),
    "reset_by_administrator": (BANK, 9, _reset_by_administrator),
    "topic_recreated": (MEDIA, 9, _topic_recreated),
    "poisoned_share": (LOGISTICS, 9, _poisoned_share),
    "flooding_group": (SHOP, 9, _flooding),
    "lost_segment": (BANK, 2, _lost_segment),
    "coordinator_not_loaded": (SHOP, 9, _not_loaded),
}
"""By name: the business, the number of days in the log, and the function that plants the incident."""


def write_all(folder: Path, names: Sequence[str], *, end_ms: int, is_numbered: bool) -> dict[str, object]:
    """Write some incidents and healthy topics below `folder`; returns the answers by the names of their folders."""
    order = list(names)
    if is_numbered:
        Random(end_ms).shuffle(order)
    answers: dict[str, object] = {}
    for number, name in enumerate(order, 1):
        place = folder / (f"{number:02}" if is_numbered else name)
        if name in INCIDENTS:
            truth = asdict(write_incident(name, place, end_ms=end_ms).truth)
            answers[place.name] = {"name": name, "as_of_ms": end_ms, **truth}
        else:
            write_healthy(name, place, end_ms=end_ms)
            answers[place.name] = {"name": name, "as_of_ms": end_ms, "what": "nothing is wrong"}
    return answers


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the incidents in the command line."""
    parser = argparse.ArgumentParser(prog="tests.report.incidents", description=__doc__)
    parser.add_argument("name", choices=[*INCIDENTS, *HEALTHY, "all", "incidents", "healthy"])
    parser.add_argument("folder", type=Path, help="where to; must not hold what is written")
    parser.add_argument("--numbered", action="store_true", help="numbers for names, and the answers in key.json")
    parser.add_argument("--end", type=datetime.fromisoformat, help="moment of the copy; default: a fixed one")
    given = parser.parse_args(arguments)
    many = {"incidents": [*INCIDENTS], "healthy": [*HEALTHY], "all": [*INCIDENTS, *HEALTHY]}
    end_ms = END_MS if given.end is None else int(given.end.timestamp() * SECOND)
    names = many.get(given.name, [given.name])
    answers = write_all(given.folder, names, end_ms=end_ms, is_numbered=given.numbered)
    (given.folder / "key.json").write_text(json.dumps(answers, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
