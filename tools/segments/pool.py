"""The records of a partition. They are encoded once with the generated codecs, then drawn and varied.

A *template* is the part of a record in a batch (magic 2) from the length of its key on: varint length and key, varint
length and value, no header. Two numbers in it, a committed offset and a time, may be filled in later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from kafka_records import consumer_offsets, share_group_state, transaction_state
from kafka_records.consumer_offsets import consumer_group_current_member_assignment as assignment
from kafka_records.consumer_offsets import consumer_group_member_metadata as member
from kafka_records.consumer_offsets.consumer_group_metadata import ConsumerGroupMetadataKey, ConsumerGroupMetadataValue
from kafka_records.consumer_offsets.group_metadata import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from kafka_records.consumer_offsets.offset_commit import OffsetCommitKey, OffsetCommitValue
from kafka_records.consumer_offsets.share_group_member_metadata import (
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
)
from kafka_records.consumer_offsets.share_group_metadata import ShareGroupMetadataKey, ShareGroupMetadataValue
from kafka_records.consumer_offsets.streams_group_member_metadata import (
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
)
from kafka_records.consumer_offsets.streams_group_metadata import StreamsGroupMetadataKey, StreamsGroupMetadataValue
from kafka_records.enums import DeliveryState, TransactionState
from kafka_records.share_group_state import share_snapshot as snapshot
from kafka_records.share_group_state import share_update as update
from kafka_records.transaction_state.transaction_log import PartitionsSchema, TransactionLogKey, TransactionLogValue
from kafka_records_runtime.kafka.partitioner import partition_for
from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid
from tools.segments.plan import OFFSETS_TOPIC, SHARE_STATE_TOPIC, Plan

INT64 = NDArray[np.int64]

TRANSACTIONAL: Final = "transactional"
"""The kind of commits in a transaction, which have no topic id (Kafka 4.3)."""

MARKERS: Final = "markers"
"""The kind of control records: variant 0 aborts a transaction, variant 1 commits it."""

# Numbers that occur nowhere else in a value. They mark the places for the real numbers.
_AN_OFFSET: Final = 0x5A17_0FF5_E700_0001
_A_TIME: Final = 0x5A17_71AE_0000_0002
_NOWHERE: Final = -1

_TEAMS: Final = ("payments", "orders", "search", "mail", "fraud", "billing")
_PARTITIONS_OF_A_TOPIC: Final = 12
_METADATA: Final = ("", "checkpoint=7;node=eu-west-1a", "geprüft")
_EXPIRES_AT_MS: Final = 4_000_000_000_000
_MEMBERS: Final = 2
_STATES: Final = tuple(TransactionState(number) for number in range(6))
"""The states that a coordinator loads: ids of dead transactions are deleted, and the last state is never stored."""


def _no_numbers() -> INT64:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Subjects:
    """The subjects of the records of one partition."""

    keys: tuple[tuple[str, str, int], ...] = ()
    """Group, topic and partition of every committed offset, or of every share partition."""
    group_of_key: INT64 = field(default_factory=_no_numbers)
    groups: tuple[str, ...] = ()
    consumers: INT64 = field(default_factory=_no_numbers)
    """The groups of the consumer protocol (KIP-848)."""
    share: INT64 = field(default_factory=_no_numbers)
    streams: INT64 = field(default_factory=_no_numbers)
    """The share groups, and the streams groups; groups of none of these three kinds are classic."""
    ids: tuple[str, ...] = ()
    """Transactional ids."""

    @property
    def weight(self) -> int:
        """The weight of this partition among the topic's records."""
        return len(self.keys) + len(self.ids)


class Kind(NamedTuple):
    """Templates of one kind of record: `variants` times `subjects`, from number `first` on."""

    first: int
    subjects: int
    variants: int


@dataclass(frozen=True)
class Pool:
    """All templates of a partition."""

    kinds: dict[str, Kind]
    tails: Any
    """The templates, as a binary array."""
    sizes: INT64
    offset_at: INT64
    """The byte at which the committed offset is; -1 in a template without one."""
    time_at: INT64
    subject: INT64
    """The number of the key, group or transactional id among those of the partition; -1 for markers."""
    kind: INT64
    """The number of the kind, in the order of `kinds`."""

    def number(self, kind: str) -> int:
        """The number of the kind `kind`; -1 if there are no templates of it."""
        return list(self.kinds).index(kind) if kind in self.kinds else -1


# ------------------------------------------------------------------------------------------------------------ subjects


def subjects_by_partition(plan: Plan) -> list[Subjects]:
    """The subjects of every partition, by Kafka's rule (`partitioner.partition_for`)."""
    if plan.topic == SHARE_STATE_TOPIC:
        return _share_partitions(plan)
    if plan.topic != OFFSETS_TOPIC:
        ids: list[list[str]] = [[] for _ in range(plan.partitions)]
        for number in range(plan.keys):
            name = f"{_team(number)}-writer-{_scattered(number)}"
            ids[partition_for(name, plan.partitions)].append(name)
        return [Subjects(ids=tuple(each)) for each in ids]
    groups: list[list[int]] = [[] for _ in range(plan.partitions)]
    for number in range(-(-plan.keys // plan.keys_per_group)):
        groups[partition_for(_group(number), plan.partitions)].append(number)
    return [_of_groups(plan, each) for each in groups]


def _share_partitions(plan: Plan) -> list[Subjects]:
    """The hash of the whole key determines the partition of a share partition
    (`SharePartitionKey.asCoordinatorKey`)."""
    found: list[list[tuple[str, str, int]]] = [[] for _ in range(plan.partitions)]
    for number in range(plan.keys):
        group, each = divmod(number, plan.keys_per_group)
        topic, partition = _place(group, each)
        key = f"{_group(group)}:{_topic_id(topic)}:{partition}"
        found[partition_for(key, plan.partitions)].append((_group(group), topic, partition))
    return [Subjects(keys=tuple(each)) for each in found]


def topic_id_of(topic: str) -> str:
    """The id of a topic, in Kafka's text form."""
    return str(_topic_id(topic))


def _of_groups(plan: Plan, numbers: Sequence[int]) -> Subjects:
    keys: list[tuple[str, str, int]] = []
    owners: list[int] = []
    for at, number in enumerate(numbers):
        count = min(plan.keys_per_group, plan.keys - number * plan.keys_per_group)
        keys += [(_group(number), *_place(number, each)) for each in range(count)]
        owners += [at] * count

    def quarter(which: int, kind: str) -> INT64:
        """Every fourth group, if there are records of its kind."""
        is_written = any(share for name, share in plan.shares.items() if name.startswith(kind))
        return (
            np.flatnonzero(np.array(numbers, np.int64) % 4 == which).astype(np.int64) if is_written else _no_numbers()
        )

    return Subjects(
        keys=tuple(keys),
        group_of_key=np.array(owners, np.int64),
        groups=tuple(map(_group, numbers)),
        consumers=quarter(0, "consumer_"),
        share=quarter(1, "share_"),
        streams=quarter(2, "streams_"),
    )


def _team(number: int) -> str:
    return _TEAMS[number % len(_TEAMS)]


def _group(number: int) -> str:
    return f"{_team(number)}-service-{_scattered(number)}"


def _scattered(number: int) -> str:
    """Eight digits, different for every number: Java's hashes of consecutive numbers as texts are far from even."""
    return f"{number * 2654435761 & 0xFFFFFFFF:08x}"


def _place(group: int, number: int) -> tuple[str, int]:
    topic, partition = divmod(number, _PARTITIONS_OF_A_TOPIC)
    return _topic(group + topic), partition


def _topic(number: int) -> str:
    return f"{_team(number)}.eu-west-1.topic-{number % 40:02d}"


@cache
def _topic_id(topic: str) -> Uuid:
    return Uuid(topic.encode("ascii")[-2:] + topic.encode("ascii")[:14].rjust(14, b"."))


# --------------------------------------------------------------------------------------------------------------- pools

Entry = tuple[bytes, bytes | None]
"""The key and value of a template."""


def pool_of(plan: Plan, subjects: Subjects) -> Pool:
    """The templates of a partition for the kinds that have subjects there."""
    if plan.topic == SHARE_STATE_TOPIC:
        made = _share_state_kinds(subjects)
    else:
        made = _offsets_kinds(plan, subjects) if plan.topic == OFFSETS_TOPIC else _transactions_kinds(subjects)
    made[MARKERS] = (np.array([_NOWHERE]), [[(b"\0\0\0" + bytes([ends]), b"\0\0\0\0\0\0")] for ends in (0, 1)])
    kinds: dict[str, Kind] = {}
    templates: list[tuple[bytes, int, int]] = []
    about: list[INT64] = []
    kind_of: list[INT64] = []
    for name, (numbers, variants) in made.items():
        if not len(numbers):
            continue
        kinds[name] = Kind(len(templates), len(numbers), len(variants))
        for variant in variants:
            templates += [_template(key, value) for key, value in variant]
            about.append(numbers)
            kind_of.append(np.full(len(numbers), len(kinds) - 1))
    tails, offset_at, time_at = zip(*templates, strict=True)
    return Pool(
        kinds,
        pa.array(tails, pa.binary()),
        np.array([len(tail) for tail in tails], np.int64),
        np.array(offset_at, np.int64),
        np.array(time_at, np.int64),
        np.concatenate(about),
        np.concatenate(kind_of),
    )


def _template(key: bytes, value: bytes | None) -> tuple[bytes, int, int]:
    """The bytes, and the positions of a committed offset and of a time in them."""
    head = varint(2 * len(key)) + key
    if value is None:
        return head + b"\x01\0", _NOWHERE, _NOWHERE  # a length of -1, and no header
    head += varint(2 * len(value))
    at = value.find(_AN_OFFSET.to_bytes(8, "big")), value.find(_A_TIME.to_bytes(8, "big"))
    offset_at, time_at = (each if each == _NOWHERE else len(head) + each for each in at)
    return head + value + b"\0", offset_at, time_at


def varint(value: int) -> bytes:
    """An unsigned varint: seven bits per byte, the lowest first."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_Variants = Sequence[Iterable[Entry]]


def _offsets_kinds(plan: Plan, subjects: Subjects) -> dict[str, tuple[INT64, _Variants]]:
    encode = consumer_offsets.encode_record
    keys = [encode(OffsetCommitKey(*key), None)[0] for key in subjects.keys]
    topics = [topic for _, topic, _ in subjects.keys]
    notes = [_metadata(number) for number in range(len(keys))]
    every_key = np.arange(len(keys))

    def commits(version: int, with_ids: bool) -> list[Entry]:
        values = (
            _commit(version, topic if with_ids else None, note) for topic, note in zip(topics, notes, strict=True)
        )
        return list(zip(keys, values, strict=True))

    newest = max(plan.commit_versions)
    others = np.concatenate([subjects.consumers, subjects.share, subjects.streams])
    classic = np.setdiff1d(np.arange(len(subjects.groups)), others)
    members = np.repeat(subjects.consumers, _MEMBERS)
    kinds: dict[str, Callable[[], tuple[INT64, _Variants]]] = {
        "commits": lambda: (every_key, [commits(version, version >= 4) for version in plan.commit_versions]),
        "tombstones": lambda: (every_key, [[(key, None) for key in keys]]),
        "group_metadata": lambda: _each(subjects, classic, (_empty_group, _stable_group)),
        "group_tombstones": lambda: _each(subjects, classic, (_deleted_group,)),
        "consumer_groups": lambda: _each(subjects, subjects.consumers, (_consumer_group,)),
        "consumer_members": lambda: _each(subjects, members, (_member,)),
        "consumer_assignments": lambda: _each(subjects, members, (_assigned,)),
        "share_groups": lambda: _each(subjects, subjects.share, (_share_group,)),
        "share_members": lambda: _each(subjects, np.repeat(subjects.share, _MEMBERS), (_share_member,)),
        "streams_groups": lambda: _each(subjects, subjects.streams, (_streams_group,)),
        "streams_members": lambda: _each(subjects, np.repeat(subjects.streams, _MEMBERS), (_streams_member,)),
    }
    made = {name: kinds[name]() for name, share in plan.shares.items() if share}
    if plan.transactions:
        made[TRANSACTIONAL] = every_key, [commits(newest, False)]
    return made


def _each(
    subjects: Subjects, numbers: INT64, writers: Sequence[Callable[[str, int], tuple[Any, Any, int | None]]]
) -> tuple[INT64, _Variants]:
    """Records about groups. Each writer gets the group's name and a running number."""
    names = [subjects.groups[number] for number in numbers]
    return numbers, [
        [consumer_offsets.encode_record(*writer(name, at)) for at, name in enumerate(names)] for writer in writers
    ]


def _metadata(number: int) -> str:
    return _METADATA[0 if number % 20 else 1 + number // 20 % 2]


@cache
def _commit(version: int, topic: str | None, note: str) -> bytes:
    value = OffsetCommitValue(
        offset=_AN_OFFSET,
        leader_epoch=-1 if version < 3 else 7,
        metadata=note,
        commit_timestamp=_A_TIME,
        expire_timestamp=_EXPIRES_AT_MS if version == 1 else -1,
        topic_id=ZERO_UUID if topic is None else _topic_id(topic),
    )
    return version.to_bytes(2, "big") + value.encode(version)


def _empty_group(group: str, number: int) -> tuple[Any, Any, int | None]:
    value = GroupMetadataValue("consumer", 7, None, None, _A_TIME)
    return GroupMetadataKey(group), value, 3


def _stable_group(group: str, number: int) -> tuple[Any, Any, int | None]:
    ids = [_member_id(group, each) for each in range(1 + number % 5)]
    members = tuple(
        MemberMetadata(each, None, f"{group}-client", "/10.0.0.7", 300_000, 45_000, _SUBSCRIPTION, _ASSIGNMENT)
        for each in ids
    )
    return GroupMetadataKey(group), GroupMetadataValue("consumer", 8, "range", ids[0], _A_TIME, members), 3


_SUBSCRIPTION: Final = bytes.fromhex("0000 00000001") + b"\0\x06events" + b"\xff\xff\xff\xff"
"""ConsumerProtocolSubscription v0: one topic, no user data."""
_ASSIGNMENT: Final = bytes.fromhex("0000 00000001") + b"\0\x06events" + bytes.fromhex("00000001 00000000 ffffffff")
"""ConsumerProtocolAssignment v0: partition 0 of that topic, no user data."""


def _deleted_group(group: str, number: int) -> tuple[Any, Any, int | None]:
    return GroupMetadataKey(group), None, None


def _consumer_group(group: str, number: int) -> tuple[Any, Any, int | None]:
    return ConsumerGroupMetadataKey(group), ConsumerGroupMetadataValue(epoch=9), 0


def _member(group: str, number: int) -> tuple[Any, Any, int | None]:
    key = member.ConsumerGroupMemberMetadataKey(group, _member_id(group, number % _MEMBERS))
    value = member.ConsumerGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id=f"{group}-client",
        client_host="/10.0.0.8",
        subscribed_topic_names=("events", "payments"),
        rebalance_timeout_ms=300_000,
        server_assignor=None,
    )
    return key, value, 0


def _assigned(group: str, number: int) -> tuple[Any, Any, int | None]:
    which = number % _MEMBERS
    key = assignment.ConsumerGroupCurrentMemberAssignmentKey(group, _member_id(group, which))
    # Members of a group have no partition in common: a coordinator refuses to load a partition with two owners.
    owned = assignment.TopicPartitions(_topic_id(_topic(which)), tuple(range(_PARTITIONS_OF_A_TOPIC)), None)
    value = assignment.ConsumerGroupCurrentMemberAssignmentValue(9, 8, 0, (owned,))
    return key, value, 0


def _share_group(group: str, number: int) -> tuple[Any, Any, int | None]:
    return ShareGroupMetadataKey(group), ShareGroupMetadataValue(epoch=9), 0


def _share_member(group: str, number: int) -> tuple[Any, Any, int | None]:
    key = ShareGroupMemberMetadataKey(group, _member_id(group, number % _MEMBERS))
    return key, ShareGroupMemberMetadataValue(None, f"{group}-client", "/10.0.0.9", ("events",)), 0


def _streams_group(group: str, number: int) -> tuple[Any, Any, int | None]:
    return StreamsGroupMetadataKey(group), StreamsGroupMetadataValue(epoch=9), 0


def _streams_member(group: str, number: int) -> tuple[Any, Any, int | None]:
    key = StreamsGroupMemberMetadataKey(group, _member_id(group, number % _MEMBERS))
    value = StreamsGroupMemberMetadataValue(
        instance_id=None,
        rack_id=None,
        client_id=f"{group}-client",
        client_host="/10.0.0.10",
        rebalance_timeout_ms=300_000,
        process_id=_scattered(number),
    )
    return key, value, 0


def _member_id(group: str, number: int) -> str:
    return f"{group}-{number}-6e0c6b38-9d3e-4c27-a5c5-6a5fd8d0e2b1"


def _share_state_kinds(subjects: Subjects) -> dict[str, tuple[INT64, _Variants]]:
    every_key = np.arange(len(subjects.keys))
    places = [(group, _topic_id(topic), partition) for group, topic, partition in subjects.keys]
    encode = share_group_state.encode_record
    snapshots = [
        [encode(snapshot.ShareSnapshotKey(*place), _snapshot(state), 0) for place in places] for state in _DELIVERED
    ]
    updates = [[encode(update.ShareUpdateKey(*place), _update(state), 0) for place in places] for state in _DELIVERED]
    return {
        "snapshots": (every_key, snapshots),
        "updates": (every_key, updates),
        "tombstones": (every_key, [[encode(snapshot.ShareSnapshotKey(*place), None) for place in places]]),
    }


_DELIVERED: Final = (DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED)
_FIRST_OFFSET: Final = 1 << 60
"""The first offset of records that a share group has not all acknowledged. It is after any start offset."""


def _snapshot(state: DeliveryState) -> snapshot.ShareSnapshotValue:
    batch = snapshot.StateBatch(_FIRST_OFFSET, _FIRST_OFFSET + 9, int(state), 1)
    return snapshot.ShareSnapshotValue(1, 1, 2, _AN_OFFSET, 0, _A_TIME, _A_TIME, (batch,))


def _update(state: DeliveryState) -> update.ShareUpdateValue:
    batch = update.StateBatch(_FIRST_OFFSET + 3, _FIRST_OFFSET + 5, int(state), 2)
    return update.ShareUpdateValue(1, 2, _AN_OFFSET, 0, (batch,))


def _transactions_kinds(subjects: Subjects) -> dict[str, tuple[INT64, _Variants]]:
    every_id = np.arange(len(subjects.ids))
    keys = [TransactionLogKey(each) for each in subjects.ids]
    encode = transaction_state.encode_record
    states = [[encode(key, _transaction(at, state), 1) for at, key in enumerate(keys)] for state in _STATES]
    return {"states": (every_id, states), "tombstones": (every_id, [[encode(key, None) for key in keys]])}


def _transaction(number: int, state: TransactionState) -> TransactionLogValue:
    began = state is not TransactionState.EMPTY
    return TransactionLogValue(
        producer_id=1000 + number,
        producer_epoch=3,
        transaction_timeout_ms=60_000,
        transaction_status=int(state),
        transaction_partitions=(PartitionsSchema(_topic(number), (0, 1, 2)),) if began else None,
        transaction_last_update_timestamp_ms=_A_TIME,
        transaction_start_timestamp_ms=1_759_999_999_000 if began else -1,
        client_transaction_version=2,
    )


def state_of(variant: int) -> str:
    """Kafka's name of the state in variant `variant` of the kind `states`."""
    return _STATES[variant].label
