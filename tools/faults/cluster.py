"""Three brokers on loopback. Each has a second listener, which advertises the address of a proxy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tools.broker import HOST, Broker, cluster_id, free_ports
from tools.faults.proxy import Faults, Proxy

SHARED: Final = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "default.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "min.insync.replicas": "1",
    # A dead broker is noticed soon, and a live broker under load does not count as dead.
    "broker.session.timeout.ms": "6000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "5000",
    "leader.imbalance.check.interval.seconds": "5",
}


class ProxiedBroker(Broker):
    """A broker. Its listener on the port `inner` advertises the port `outer`."""

    def __init__(self, folder: Path, settings: dict[str, str], port: int, cluster: str, inner: int, outer: int) -> None:
        super().__init__(folder, settings=settings, port=port, cluster=cluster)
        self.inner, self.outer = inner, outer


def three_brokers(folder: Path) -> list[ProxiedBroker]:
    """Three brokers that are not started yet. The first one is also the controller."""
    controller, *ports = free_ports(10)
    cluster = cluster_id()
    brokers = []
    for number in (1, 2, 3):
        port, inner, outer = ports[3 * number - 3 : 3 * number]
        listeners = f"PLAINTEXT://{HOST}:{port},PROXIED://{HOST}:{inner}"
        settings = {
            **SHARED,
            "node.id": str(number),
            "broker.rack": f"rack-{number}",
            "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
            "process.roles": "broker,controller" if number == 1 else "broker",
            "listeners": f"{listeners},CONTROLLER://{HOST}:{controller}" if number == 1 else listeners,
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port},PROXIED://{HOST}:{outer}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
        }
        brokers.append(ProxiedBroker(folder / str(number), settings, port, cluster, inner, outer))
    return brokers


@contextmanager
def proxied(brokers: list[ProxiedBroker], faults: Faults) -> Iterator[str]:
    """Run proxies for these running brokers. Yields their addresses."""
    proxies: list[Proxy] = []
    try:
        for each in brokers:
            proxies.append(Proxy(faults, each.outer, each.inner))
        yield ",".join(f"{HOST}:{each.outer}" for each in brokers)
    finally:
        for proxy in proxies:
            proxy.close()
