"""Synthetic logs with and without a record that a coordinator of Kafka 4.3.1 refuses to replay, and the messages about
it.

`tests/tools/test_judge_checks.py` lets Kafka's own coordinator load each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.tables.cluster import Cluster
from tests.tables.topic import struct

_CURRENT: Final = "ConsumerGroupCurrentMemberAssignment"
_TARGET: Final = "ConsumerGroupTargetAssignmentMember"
_EPOCH: Final = "ConsumerGroupTargetAssignmentMetadata"
_MEMBER: Final = "ConsumerGroupMemberMetadata"
_GROUP: Final = "ConsumerGroupMetadata"
_PASSED_OVER: Final = "{} (Kafka 4.4 skips it)"
_KINDS: Final = {"Consumer": {}, "Share": {"metadata_hash": 0}, "Streams": {"validated_topology_epoch": 0}}


def _classic(cluster: Cluster, *instances: str | None, protocol_type: str = "consumer") -> None:
    members = tuple(
        struct("group_metadata", "MemberMetadata", member_id=f"m{number}", group_instance_id=instance)
        for number, instance in enumerate(instances)
    )
    value = {"protocol_type": protocol_type, "generation": 1, "protocol": "range", "leader": None, "members": members}
    cluster.add("GroupMetadata", {"group": "g"}, value, version=3)


def _subscribed(*parts: int | bytes) -> Callable[[Cluster], None]:
    """A consumer with a subscription of version 0, whose numbers of four bytes are given as such."""
    data = b"".join(part if isinstance(part, bytes) else part.to_bytes(4, "big", signed=True) for part in parts)
    return _all_subscribed({"m": data})


def _all_subscribed(subscriptions: Mapping[str, bytes]) -> Callable[[Cluster], None]:
    """Consumers by their member ids, with subscriptions of version 0."""
    members = tuple(
        struct("group_metadata", "MemberMetadata", member_id=member_id, subscription=b"\0\0" + data)
        for member_id, data in subscriptions.items()
    )

    def plant(cluster: Cluster) -> None:
        value = {"protocol_type": "consumer", "generation": 1, "protocol": "range", "leader": None, "members": members}
        cluster.add("GroupMetadata", {"group": "g"}, value, version=3)

    return plant


_TOO_MANY: Final = b"\0\0\0\x04"
_CUT: Final = b"\0\0"


def _of_many(count: int) -> dict[str, bytes]:
    """`count` members, of which `q` claims too much and `b` ends early. Java's map has `b` first if it has 32 buckets;
    up to 12 members it has 16."""
    whole = b"\0\0\0\0\xff\xff\xff\xff"
    return {"q": _TOO_MANY, "b": _CUT, **{f"\N{SNOWMAN}{number}": whole for number in range(count - 2)}}


def _group(cluster: Cluster, kind: str) -> None:
    cluster.of_group(f"{kind}GroupMetadata", "g", {"epoch": 1, **_KINDS[kind]})


def _after_commit(kind: str) -> Callable[[Cluster], None]:
    def plant(cluster: Cluster) -> None:
        cluster.commit("g", 1)
        _group(cluster, kind)

    return plant


def _in_classic(kind: str) -> Callable[[Cluster], None]:
    def plant(cluster: Cluster) -> None:
        _classic(cluster, None)
        _group(cluster, kind)

    return plant


def _after_classic(cluster: Cluster) -> None:
    _classic(cluster, None)
    cluster.add("GroupMetadata", {"group": "g"}, None)
    _group(cluster, "Share")


def _over_any(cluster: Cluster) -> None:
    _group(cluster, "Share")
    _classic(cluster, None)


def _tombstone_of_another_kind(cluster: Cluster) -> None:
    _group(cluster, "Share")
    cluster.of_group(_GROUP, "g", None)


def _tombstone_over_a_simple_group(cluster: Cluster) -> None:
    cluster.commit("g", 1)
    cluster.of_group("StreamsGroupTopology", "g", None)
    _group(cluster, "Share")


def _tombstones_of_nothing(cluster: Cluster) -> None:
    cluster.of_group(_GROUP, "g", None)
    cluster.of_group(_MEMBER, "g", None, member_id="m")
    cluster.of_group(_CURRENT, "g", None, member_id="m")
    cluster.of_group(_TARGET, "g", None, member_id="m")


def _two_instances(cluster: Cluster) -> None:
    _classic(cluster, "i", None, None, "i")


def _joined(cluster: Cluster) -> None:
    cluster.epochs()
    cluster.member("m", "orders")
    cluster.target("m", 0)
    cluster.current("m", 0)


def _gone(*records: str) -> Callable[[Cluster], None]:
    """Tombstones of some records of a group with a member."""

    def plant(cluster: Cluster) -> None:
        _joined(cluster)
        for record in records:
            key = {} if record in (_GROUP, _EPOCH) else {"member_id": "m"}
            cluster.of_group(record, "g", None, **key)

    return plant


def _member_of(kind: str, *, has_target: bool) -> Callable[[Cluster], None]:
    """A member of a group of some kind is deleted before its assignment is."""

    def plant(cluster: Cluster) -> None:
        cluster.member("m", "orders", kind=kind)
        if has_target:
            cluster.of_group(f"{kind}GroupCurrentMemberAssignment", "g", None, member_id="m")
            cluster.of_group(f"{kind}GroupTargetAssignmentMember", "g", {}, member_id="m")
        cluster.of_group(f"{kind}GroupMemberMetadata", "g", None, member_id="m")

    return plant


def _epoch_of(kind: str) -> Callable[[Cluster], None]:
    def plant(cluster: Cluster) -> None:
        cluster.of_group(f"{kind}GroupTargetAssignmentMember", "g", {}, member_id="m")
        cluster.of_group(f"{kind}GroupTargetAssignmentMetadata", "g", None)

    return plant


def _group_of(kind: str) -> Callable[[Cluster], None]:
    def plant(cluster: Cluster) -> None:
        cluster.of_group(f"{kind}GroupTargetAssignmentMember", "g", {}, member_id="m")
        cluster.of_group(f"{kind}GroupMetadata", "g", None)

    return plant


def _taken(epoch: int, *, after: int) -> Callable[[Cluster], None]:
    """Two members get the same partition, the second at `epoch`."""

    def plant(cluster: Cluster) -> None:
        cluster.member("m", "orders")
        cluster.member("n", "orders")
        cluster.current("m", 0, 1, epoch=after)
        cluster.current("n", 1, epoch=epoch)

    return plant


def _taken_at_first(*, has_commits: bool) -> Callable[[Cluster], None]:
    """The current assignments of two members are the first records of their group."""

    def plant(cluster: Cluster) -> None:
        if has_commits:
            cluster.commit("g", 1)
        cluster.current("m", 0, epoch=2)
        cluster.current("n", 0, epoch=2)

    return plant


def _taken_and_touched(cluster: Cluster) -> None:
    """The first is updated after it, with the epoch that it had."""
    _taken(3, after=2)(cluster)
    cluster.member("m", "orders", "others")


def _given_up(cluster: Cluster) -> None:
    _taken(3, after=2)(cluster)
    cluster.current("n", epoch=3)
    cluster.current("m", 0, 1, epoch=2)
    cluster.of_group(_CURRENT, "g", None, member_id="m")
    cluster.current("n", 0, 1, epoch=1)


def _given_and_to_be_given_up(cluster: Cluster) -> None:
    cluster.current("m", 0, epoch=2, gives_up=(0,))


_NOT_THIS: Final = "but the group is {} at this point of the log"

PLANTED: Final[Mapping[str, tuple[Callable[[Cluster], Any], str | None]]] = {
    "a consumer group after commits": (_after_commit("Consumer"), None),
    "a streams group after commits": (_after_commit("Streams"), None),
    "a share group after commits": (_after_commit("Share"), _NOT_THIS.format("simple (it has commits)")),
    "a consumer group in a classic one": (_in_classic("Consumer"), _NOT_THIS.format("classic")),
    "a share group in a classic one": (_in_classic("Share"), _NOT_THIS.format("classic")),
    "a streams group in a classic one": (_in_classic("Streams"), _NOT_THIS.format("classic")),
    "a share group after a classic one": (_after_classic, None),
    "a classic group over a share group": (_over_any, None),
    "a tombstone of another kind": (_tombstone_of_another_kind, _NOT_THIS.format("share")),
    "a tombstone over a simple group": (_tombstone_over_a_simple_group, _NOT_THIS.format("streams")),
    "tombstones of nothing": (_tombstones_of_nothing, None),
    "two members with one instance id": (_two_instances, "have the group.instance.id 'i'"),
    "a subscription": (_subscribed(1, b"\0\1t", -1), None),
    "a subscription that ends in a number": (_subscribed(1, b"\0\1t", b"\0\0\0"), None),
    "a subscription that ends in the number of topics": (_subscribed(b"\0\0\0"), None),
    "a subscription that ends in the length of a topic": (_subscribed(1, b"\0"), None),
    "a subscription without its user data": (_subscribed(1, b"\0\1t"), None),
    "a subscription that lacks a topic": (_subscribed(2, b"\0\1t"), None),
    "a subscription of fewer than no topics": (
        _subscribed(-2),
        _PASSED_OVER.format("it claims to have -2 topics, but 0 bytes are left"),
    ),
    "a subscription of too many topics": (
        _subscribed(4, b"\0\1t"),
        _PASSED_OVER.format("it claims to have 4 topics, but 3 bytes are left"),
    ),
    "a topic of fewer than no bytes": (
        _subscribed(1, b"\xff\xff"),
        _PASSED_OVER.format("it claims to have a topic of -1 bytes, but 0 are left"),
    ),
    "a topic that ends too early": (
        _subscribed(1, b"\0\2t"),
        _PASSED_OVER.format("it claims to have a topic of 2 bytes, but 1 are left"),
    ),
    "user data that ends too early": (
        _subscribed(1, b"\0\1t", 2, b"u"),
        _PASSED_OVER.format("it claims to have user data of 2 bytes, but 1 are left"),
    ),
    "of two broken subscriptions first one that claims": (
        _all_subscribed({"b": _CUT, "a": _TOO_MANY}),
        _PASSED_OVER.format("it claims to have 4 topics, but 0 bytes are left"),
    ),
    "of two broken subscriptions first one that ends": (_all_subscribed({"b": _TOO_MANY, "a": _CUT}), None),
    "of twelve subscriptions first one that claims": (
        _all_subscribed(_of_many(12)),
        _PASSED_OVER.format("it claims to have 4 topics, but 0 bytes are left"),
    ),
    "of thirteen subscriptions first one that ends": (_all_subscribed(_of_many(13)), None),
    "a member that leaves": (_gone(_CURRENT, _TARGET, _MEMBER), None),
    "a group that goes": (_gone(_CURRENT, _TARGET, _EPOCH, _MEMBER, _GROUP), None),
    "a member before its current assignment": (_gone(_MEMBER), "while it still has a current assignment"),
    "a member before its target assignment": (_gone(_CURRENT, _MEMBER), "while it still has a target assignment"),
    "an epoch before target assignments": (_gone(_EPOCH), "but 1 member's target is still there"),
    "a group before its members": (_gone(_CURRENT, _TARGET, _EPOCH, _GROUP), "but 1 member is still in it"),
    "a group before its epoch": (_gone(_CURRENT, _TARGET, _MEMBER, _GROUP), "no tombstone of its epoch"),
    **{
        f"a {kind} {what}": (plant(kind), why)
        for kind in _KINDS
        for what, plant, why in (
            (
                "member at once",
                lambda kind: _member_of(kind, has_target=False),
                "while it still has a current assignment",
            ),
            ("member with a target", lambda kind: _member_of(kind, has_target=True), "while it still has a target"),
            ("epoch with a target", _epoch_of, "but 1 member's target is still there"),
        )
    },
    "a consumer group with a target": (_group_of("Consumer"), "but 1 target assignment is still in it"),
    "a share group with a target": (_group_of("Share"), "but 1 target assignment is still in it"),
    "a streams group with a target": (_group_of("Streams"), "no tombstone of its epoch"),
    "a partition taken at the same epoch": (
        _taken(2, after=2),
        "at epoch 2, but another member has had it since epoch 2",
    ),
    "a partition taken at an earlier epoch": (
        _taken(1, after=2),
        "at epoch 1, but another member has had it since epoch 2",
    ),
    **{
        f"a partition taken by the first records{after}": (
            _taken_at_first(has_commits=has_commits),
            "at epoch 2, but another member has had it since epoch 2",
        )
        for after, has_commits in (("", False), (" after commits", True))
    },
    "a partition taken at a later epoch": (_taken(3, after=2), None),
    "an update of who had it": (_taken_and_touched, "at epoch 2, but another member has had it since epoch 3"),
    "a partition that comes back": (_given_up, None),
    "a partition twice with one member": (
        _given_and_to_be_given_up,
        "at epoch 2, but another member has had it since epoch 2",
    ),
}
"""By name: the function that plants the conflict, and the end of its detail; None if the log loads."""
