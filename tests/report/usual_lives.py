"""A healthy cluster: a dozen groups with members, commits, deployments and old groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from tests.report.classic_lives import ClassicLife, ConnectLife
from tests.report.data_directory import SHARE_STATE, TRANSACTIONS
from tests.report.made_up_cluster import DAY, HOUR, MINUTE, MadeCluster
from tests.report.modern_lives import ModernLife, ShareLife, StreamsLife
from tests.report.transactional_lives import ExactlyOnceLife

Life = ClassicLife | ModernLife


class Theme(NamedTuple):
    """The names of a business: groups with the topics that they consume, by kind."""

    classic: Mapping[str, Sequence[str]]
    consumer: Mapping[str, Sequence[str]]
    streams: Mapping[str, Sequence[str]]
    share: Mapping[str, Sequence[str]]
    transactional: Mapping[str, Sequence[str]]
    """The groups with transactions; their last topic is the one to which they write."""
    simple: Mapping[str, Sequence[str]]
    workers: str
    connectors: Sequence[str]
    gone: Sequence[str]
    """Groups that were there for a day: the first expires, the second is deleted by somebody."""


SHOP: Final = Theme(
    classic={
        "order-confirmation-mails": ["shop.orders"],
        "basket-abandonment": ["shop.baskets"],
        "returns-desk": ["shop.returns", "shop.orders"],
        "connect-orders-to-warehouse": ["shop.orders"],
    },
    consumer={"stock-levels": ["shop.orders", "shop.returns"], "recommendations-feed": ["shop.clicks"]},
    streams={"revenue-per-hour": ["shop.orders"]},
    share={"label-printers": ["shop.parcels"]},
    transactional={"loyalty-points": ["shop.orders", "shop.points"]},
    simple={"flink-dynamic-pricing": ["shop.clicks"]},
    workers="connect-cluster-shop",
    connectors=["orders-to-warehouse", "customers-from-crm", "clicks-to-s3"],
    gone=["console-consumer-48213", "backfill-returns-2-test"],
)
BANK: Final = Theme(
    classic={
        "statement-archiver": ["ledger.entries"],
        "card-notifications": ["cards.authorisations"],
        "limits-watch": ["cards.authorisations", "accounts.changes"],
        "connect-ledger-to-dwh": ["ledger.entries"],
    },
    consumer={"fraud-scoring": ["cards.authorisations"], "sanctions-screening": ["payments.initiated"]},
    streams={"balance-aggregates": ["ledger.entries"]},
    share={"document-checks": ["kyc.documents"]},
    transactional={"payment-settlement": ["payments.initiated", "ledger.bookings"]},
    simple={"spark-risk-positions": ["ledger.entries"]},
    workers="connect-dwh",
    connectors=["ledger-to-dwh", "accounts-from-core"],
    gone=["console-consumer-7719", "kyc-replay-march"],
)
LOGISTICS: Final = Theme(
    classic={
        "eta-calculation": ["vehicles.positions"],
        "customs-declarations": ["shipments.events"],
        "dock-planner": ["shipments.events", "docks.slots"],
        "connect-shipments-to-search": ["shipments.events"],
    },
    consumer={"geofence-alerts": ["vehicles.positions"], "driver-app-push": ["tours.assigned"]},
    streams={"tour-progress": ["tours.assigned"]},
    share={"proof-of-delivery-ocr": ["deliveries.photos"]},
    transactional={"freight-invoicing": ["shipments.events", "invoices.drafts"]},
    simple={"flink-heatmap": ["vehicles.positions"]},
    workers="connect-search",
    connectors=["shipments-to-search", "docks-from-erp"],
    gone=["console-consumer-90122", "eta-model-b-trial"],
)
MEDIA: Final = Theme(
    classic={
        "subtitle-ingest": ["assets.uploaded"],
        "playback-billing": ["player.sessions"],
        "catalogue-search": ["catalogue.changes", "assets.uploaded"],
        "connect-sessions-to-lake": ["player.sessions"],
    },
    consumer={"watch-history": ["player.sessions"], "rights-expiry": ["catalogue.changes"]},
    streams={"trending-titles": ["player.sessions"]},
    share={"transcode-workers": ["assets.uploaded"]},
    transactional={"royalty-accounting": ["player.sessions", "royalties.entries"]},
    simple={"spark-audience-report": ["player.sessions"]},
    workers="connect-lake",
    connectors=["sessions-to-lake", "catalogue-from-cms"],
    gone=["console-consumer-3305", "search-reindex-dry-run"],
)
THEMES: Final = (SHOP, BANK, LOGISTICS, MEDIA)

_PROTOCOLS: Final = ("range", "cooperative-sticky", "roundrobin", "range")
_RATES: Final = (240, 420, 900, 1500)


def usual_lives(cluster: MadeCluster, theme: Theme, *, without: Sequence[str] = ()) -> dict[str, Life]:
    """Write what the groups of a theme do; `without` names kinds, as fields of `Theme`, and groups to leave out.

    Every group exists from the start to the end, and some are redeployed in between.
    """
    lives: dict[str, Life] = {}
    for name, kind in ((SHARE_STATE, "share"), (TRANSACTIONS, "transactional")):
        if kind not in without:
            cluster.needs(name)
    for kind in ("classic", "consumer", "streams", "transactional", "share", "simple"):
        told: Mapping[str, Sequence[str]] = {} if kind in without else getattr(theme, kind)
        for number, (group, topics) in enumerate(told.items()):
            if group not in without:
                lives[group] = one_life(cluster, kind, group, topics, number)
    if "workers" not in without:
        workers = ConnectLife(cluster, theme.workers, theme.connectors, protocol="sessioned")
        workers.start(cluster.start_ms, 2)
        workers.restart(cluster.end_ms - 31 * HOUR)
        lives[theme.workers] = workers
    if "gone" not in without:
        _gone(cluster, theme)
    return lives


def one_life(cluster: MadeCluster, kind: str, group: str, topics: Sequence[str], number: int = 0) -> Life:
    """A group of a kind that exists all the time, with a deployment a day or two before the end."""
    for name in topics:
        cluster.topic(name, cluster.random.choice((3, 4, 6)), cluster.random.choice(_RATES))
    life: Life
    if kind == "classic" or kind == "simple":
        life = ClassicLife(cluster, group, topics, protocol=_PROTOCOLS[number % len(_PROTOCOLS)])
    elif kind == "transactional":
        life = ExactlyOnceLife(cluster, group, topics[:-1], output=topics[-1])
    else:
        life = {"consumer": ModernLife, "streams": StreamsLife, "share": ShareLife}[kind](cluster, group, topics)
    begin = cluster.start_ms + cluster.jitter(HOUR)
    deployed = cluster.end_ms - (4 + 9 * number) * HOUR - cluster.jitter(3 * HOUR)
    if kind != "simple":
        life.start(begin, cluster.random.choice((2, 3)))
    _go_on(life, begin + 5 * MINUTE, deployed)
    # Each transactional producer belongs to one member, and is restarted with it in a deployment.
    if kind not in ("simple", "transactional"):
        life.restart(deployed)
    _go_on(life, deployed + 15 * MINUTE, cluster.end_ms)
    return life


def _go_on(life: Life, from_ms: int, to_ms: int) -> None:
    if isinstance(life, ShareLife):
        life.consumes(from_ms, to_ms)
    else:
        life.commits(from_ms, to_ms, life.cluster.random.choice((10, 15, 20)) * MINUTE)


def _gone(cluster: MadeCluster, theme: Theme) -> None:
    """A group that expired some hours ago, seven days after it was left, and one that somebody deleted."""
    topics = next(iter(theme.classic.values()))
    expires = cluster.end_ms - 3 * HOUR - cluster.jitter(5 * HOUR)
    expired = ClassicLife(cluster, theme.gone[0], topics)
    expired.start(expires - 7 * DAY - 2 * HOUR, 1)
    expired.commit(expires - 7 * DAY - HOUR)
    expired.stop(expires - 7 * DAY)
    expired.delete(expires + cluster.jitter(10 * MINUTE))
    deleted = ClassicLife(cluster, theme.gone[1], topics)
    deleted.start(cluster.end_ms - 40 * HOUR, 1)
    deleted.commits(cluster.end_ms - 39 * HOUR, cluster.end_ms - 20 * HOUR, HOUR)
    deleted.stop(cluster.end_ms - 20 * HOUR)
    deleted.delete(cluster.end_ms - 18 * HOUR)
