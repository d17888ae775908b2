"""Asks brokers to describe their cluster: brokers, topics with partitions, configs, and feature levels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kafka_records_engine.sources._brokers.cluster import Address, Cluster
from kafka_records_engine.sources._brokers.connection import Connection
from kafka_records_engine.sources._brokers.failures import ConnectionLost, Refused
from kafka_records_engine.sources._brokers.requests_sent import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    LIST_CONFIG_RESOURCES,
)
from kafka_records_engine.sources.known_topics import CLEANUP_POLICY, RETENTION_BYTES, RETENTION_MS, retention_of
from kafka_records_engine.sources.right_words import lacks_right
from kafka_records_runtime.kafka.error_codes import ErrorCode

TOPIC: Final = 2
BROKER: Final = 4
CLIENT_METRICS: Final = 16
GROUP: Final = 32
"""A kind of resource that has configs, with its number in metadata records and requests (`ConfigResource.Type`)."""

ALL_BROKERS: Final = ""
"""The resource name of configs that are defaults for all brokers."""

_SET_FOR: Final = {TOPIC: 1, BROKER: 2, CLIENT_METRICS: 7, GROUP: 8}
_SET_FOR_ALL_BROKERS: Final = 3
"""The source of values that were set for a single resource at runtime (`ConfigSource`)."""

_NOT_ALLOWED: Final = {
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.GROUP_AUTHORIZATION_FAILED,
}
_GONE: Final = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.GROUP_ID_NOT_FOUND}
_AT_ONCE: Final = 500
"""The maximum number of resources in one request. The answer has about forty configs for each."""
_LISTS_GROUPS: Final = 1
"""The first version of ListConfigResources that lists groups (4.1)."""
_TELLS_FENCED: Final = 2
_TELLS_KIND: Final = 1
"""The first versions of DescribeCluster that report fenced brokers, and controllers."""

ELIGIBLE_LEADERS: Final = "eligible.leader.replicas.version"
"""The feature that is required for eligible leader replicas."""

Resource = tuple[int, str]


class Config(NamedTuple):
    """A config that was set for a resource."""

    resource: Resource
    name: str
    value: str | None
    """The value; None for a secret, which brokers never reveal."""


class Refusal(NamedTuple):
    """Resources of one kind with unknown configs, and the reason."""

    kind: int
    resources: Sequence[str]
    why: str
    is_right: bool
    """Whether the reason is a missing right."""


def features(cluster: Cluster) -> dict[str, int]:
    """The level of each feature. Raises ConnectionLost and Refused."""
    answer = cluster.asked_of_any(partial(Connection.ask, name=API_VERSIONS, fields=_SOFTWARE))
    return {each["name"]: each["max_version_level"] for each in answer.get("finalized_features") or ()}


_SOFTWARE: Final = {"client_software_name": "kafka-records", "client_software_version": "1"}


def brokers(cluster: Cluster) -> list[Mapping[str, Any]]:
    """The brokers of the cluster: `broker_id`, `host`, `port`, `rack`, `is_fenced`. Fenced brokers are included since
    Kafka 4.0. Raises ConnectionLost and Refused."""

    def ask(connection: Connection) -> dict[str, Any]:
        version = connection.version(DESCRIBE_CLUSTER)
        fields = {"endpoint_type": 1} if version >= _TELLS_KIND else {}
        fields |= {"include_fenced_brokers": True} if version >= _TELLS_FENCED else {}
        return connection.ask(DESCRIBE_CLUSTER, fields, version)

    found: list[Mapping[str, Any]] = [*cluster.asked_of_any(ask)["brokers"]]
    return found


def eligible_leaders(cluster: Cluster) -> dict[tuple[str, int], Sequence[int]]:
    """By topic and partition, the replicas that may be elected although they are not in sync. Partitions without such
    replicas are left out. Raises ConnectionLost and Refused."""
    found: dict[tuple[str, int], Sequence[int]] = {}
    cursor: Mapping[str, Any] | None = None
    while True:
        ask = partial(Connection.ask, name=DESCRIBE_TOPIC_PARTITIONS, fields={"topics": [], "cursor": cursor})
        answer = cluster.asked_of_any(ask)
        for topic in answer["topics"]:
            for each in topic["partitions"]:
                if each["eligible_leader_replicas"]:
                    found[topic["name"], each["partition_index"]] = each["eligible_leader_replicas"]
        after, cursor = cursor, answer["next_cursor"]
        if cursor is None or cursor == after:
            return found


def listed_resources(cluster: Cluster) -> tuple[list[Resource], Refusal | None]:
    """The groups and client metrics subscriptions that have configs. Raises ConnectionLost and Refused.

    Brokers before 4.1 do not list groups, and brokers before 3.7 list neither.
    """

    def ask(connection: Connection) -> dict[str, Any]:
        try:
            version = connection.version(LIST_CONFIG_RESOURCES)
        except Refused:
            return {"error_code": 0, "config_resources": ()}
        fields = {"resource_types": [GROUP, CLIENT_METRICS]} if version >= _LISTS_GROUPS else {}
        return connection.ask(LIST_CONFIG_RESOURCES, fields, version)

    answer = cluster.asked_of_any(ask)
    code = answer["error_code"]
    if code:
        refusal = Refusal(GROUP, (), ErrorCode(code).name, code in _NOT_ALLOWED)
        return [], refusal
    return [
        (each.get("resource_type", CLIENT_METRICS), each["resource_name"]) for each in answer["config_resources"]
    ], None


def configs(
    cluster: Cluster, resources: Sequence[Resource], names: Sequence[str] | None = None, *, inherited: bool = False
) -> Iterator[Config | Refusal]:
    """The configs that were set for the given resources at runtime; with `inherited`, all configs that apply to them.

    `names` are the configs to request (None: all). A resource that no longer exists has no configs. The configs of a
    broker are requested from that broker, all others from any broker. Raises ConnectionLost if no broker answers, and
    Refused.
    """
    own = [each for each in resources if each[0] == BROKER and each[1] != ALL_BROKERS]
    others = [each for each in resources if each not in {*own}]
    refused: dict[tuple[int, str, bool], list[str]] = {}
    for ask, some in _questions(cluster, others, own):
        try:
            results = ask(partial(_asked_configs, resources=some, names=names))["results"]
        except ConnectionLost as lost:
            if some[0] not in own:
                raise
            refused.setdefault((BROKER, str(lost), False), []).append(some[0][1])
            continue
        for result in results:
            kind, code = result["resource_type"], result["error_code"]
            if code in _GONE:
                continue
            if code:
                refused.setdefault((kind, ErrorCode(code).name, code in _NOT_ALLOWED), []).append(
                    result["resource_name"]
                )
                continue
            resource = kind, result["resource_name"]
            is_default = resource == (BROKER, ALL_BROKERS)
            wanted = _SET_FOR_ALL_BROKERS if is_default else _SET_FOR.get(kind)
            for each in result["configs"] or ():
                if inherited or each["config_source"] == wanted:
                    yield Config(resource, each["name"], None if each["is_sensitive"] else each["value"])
    for (kind, why, is_right), of in refused.items():
        yield Refusal(kind, sorted(of), why, is_right)


def retentions(cluster: Cluster, topics: Iterable[str]) -> dict[str, int]:
    """The effective `retention.ms` of the given topics, which may be the brokers' value or Kafka's default.

    Only topics that delete records by time alone are included. A topic is left out if this user may not describe its
    configs. Raises ConnectionLost and Refused.
    """
    resources = [(TOPIC, name) for name in topics]
    told: dict[str, dict[str, str | None]] = {}
    for each in configs(cluster, resources, (RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY), inherited=True):
        if isinstance(each, Config):
            told.setdefault(each.resource[1], {})[each.name] = each.value
    found = {name: retention_of(of_topic) for name, of_topic in told.items()}
    return {name: retention for name, retention in found.items() if retention is not None}


Ask = Callable[[Callable[[Connection], dict[str, Any]]], dict[str, Any]]


def _questions(
    cluster: Cluster, others: Sequence[Resource], own: Sequence[Resource]
) -> Iterator[tuple[Ask, Sequence[Resource]]]:
    """The brokers to ask, and the resources to ask each of them about."""
    for start in range(0, len(others), _AT_ONCE):
        yield cluster.asked_of_any, others[start : start + _AT_ONCE]
    for resource in own:
        address = cluster.address_of(int(resource[1]))
        if address is not None:  # a broker that is down cannot be queried
            yield partial(_asked_at, cluster, address), [resource]


def _asked_at(cluster: Cluster, address: Address, ask: Callable[[Connection], dict[str, Any]]) -> dict[str, Any]:
    return cluster.asked(address, ask)


def _asked_configs(
    connection: Connection, resources: Iterable[Resource], names: Sequence[str] | None
) -> dict[str, Any]:
    fields = {
        "resources": [
            {"resource_type": kind, "resource_name": name, "configuration_keys": names} for kind, name in resources
        ]
    }
    return connection.ask(DESCRIBE_CONFIGS, fields)


_RESOURCE: Final = {TOPIC: "topic", CLIENT_METRICS: "client metrics", GROUP: "group"}


def words_of(refusal: Refusal, who: str) -> str:
    """A sentence that says which resources have unknown configs, and why."""
    kind, names = refusal.kind, refusal.resources
    whose = (
        "groups and client metrics" if not names else "brokers" if kind == BROKER else f"{_RESOURCE[kind]} {names[0]}"
    )
    if kind != BROKER and len(names) > 1:
        whose += f" and of {len(names) - 1} more"
    if not refusal.is_right:
        return f"the configs of {whose} are unknown: {refusal.why}"
    on = f"{_RIGHT_ON[kind]} {names[0]}" if names and kind in _RIGHT_ON else _CLUSTER
    if kind in _RIGHT_ON and len(names) > 1:
        on = f"{on} and the others"
    return lacks_right(who, "DESCRIBE_CONFIGS", on, f"describe the configs of {whose}")


_CLUSTER: Final = "the cluster"
_RIGHT_ON: Final = {TOPIC: "topic", GROUP: "group"}
