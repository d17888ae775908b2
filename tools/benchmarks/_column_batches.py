"""The input of `columns.py`: batches of encoded rows, the same on every machine.

Every row of values starts with its int16 version, every key with its int16 record type, as on a topic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records.consumer_offsets import consumer_group_current_member_assignment as current_assignment
from kafka_records.consumer_offsets.group_metadata import GroupMetadataValue, MemberMetadata
from kafka_records.consumer_protocol import consumer_protocol_subscription as subscription
from kafka_records.schemas import consumer_offsets, consumer_protocol, share_group_state, transaction_state
from kafka_records.share_group_state.share_snapshot import ShareSnapshotValue, StateBatch
from kafka_records.transaction_state.transaction_log import PartitionsSchema, TransactionLogValue
from kafka_records_runtime.kafka.uuids import Uuid
from kafka_records_runtime.records.framing import framed, split_value
from kafka_records_runtime.schema import MessageSchema, RecordSchema
from tools.benchmarks._offset_commits import Mix, raw_rows

_COMMITTED_AT: Final = 1_700_000_000_123
_TOPICS: Final = [f"orders.eu-west-1.topic-{number:03d}" for number in range(40)]
_TOPIC_IDS: Final = [Uuid((0x0123_4567_89AB_CDEF * (number + 1)).to_bytes(16, "big")) for number in range(40)]
_TOMBSTONES: Final = 0.1
_BROKEN: Final = 0.01


@dataclass(frozen=True)
class Batch:
    """Encoded rows. Without `keys`, only messages are decoded. `broken` are the rows that no reader can read."""

    schema: RecordSchema | MessageSchema
    keys: pa.Array | None
    values: pa.Array
    broken: frozenset[int] = frozenset()

    @property
    def message(self) -> MessageSchema:
        """The message that the values hold."""
        return self.schema.value if isinstance(self.schema, RecordSchema) else self.schema

    @property
    def key_message(self) -> MessageSchema | None:
        """The message that the keys hold."""
        return self.schema.key if isinstance(self.schema, RecordSchema) else None

    @property
    def has_gaps(self) -> bool:
        """Whether there are rows without a decoded value: tombstones, or broken ones."""
        return bool(self.broken or self.values.null_count)

    @property
    def size(self) -> int:
        """Bytes of all keys and values."""
        columns = [self.values] if self.keys is None else [self.keys, self.values]
        return sum(pc.sum(pc.binary_length(column)).as_py() for column in columns)


@dataclass(frozen=True)
class Case:
    """A batch to time. The goals say how many times as long as `columns` a contender should take."""

    name: str
    make: Callable[[], Batch]
    goals: Mapping[str, float] = field(default_factory=dict)


def cases(rows: int) -> tuple[Case, ...]:
    """All cases. Those with goals come first."""
    flat = {"rows": 8.0, "kio → Arrow": 4.0}
    fewer, huge = max(1, rows // 10), 2 * rows
    return (
        Case("OffsetCommit v3", partial(offset_commits, rows, 0.0), flat),
        Case("OffsetCommit v4", partial(offset_commits, rows, 1.0), flat),
        Case("OffsetCommit v3 and v4, tombstones", partial(_with_tombstones, rows), flat),
        Case("GroupMetadataValue v3, 1 to 20 members", partial(_groups, rows), {"rows": 3.0}),
        Case(f"GroupMetadataValue v3, {huge} members in one row", partial(_skewed_groups, rows, huge), {"rows": 1.0}),
        Case("ConsumerGroupCurrentMemberAssignmentValue v0", partial(_current_assignments, rows)),
        Case("ShareSnapshotValue v0", partial(_share_snapshots, rows)),
        Case("TransactionLogValue v1", partial(_transactions, rows)),
        Case("ConsumerProtocolSubscription v3", partial(_subscriptions, rows)),
        Case(f"OffsetCommit v3 and v4, only {fewer} rows", partial(offset_commits, fewer, 0.5)),
        Case("OffsetCommit v3 and v4, 1 % broken", partial(_with_broken_rows, rows)),
    )


# ----------------------------------------------------------------------------------------------------- offset commits


def offset_commits(rows: int, v4: float) -> Batch:
    """Keys and values of committed offsets; `v4` is the share of values in version 4, the others are in version 3."""
    table = raw_rows(0, rows, Mix(v4))
    return Batch(consumer_offsets.RECORDS[1], table["key"].combine_chunks(), table["value"].combine_chunks())


def _with_tombstones(rows: int) -> Batch:
    whole = offset_commits(rows, 0.5)
    deleted = np.random.default_rng(rows).random(rows) < _TOMBSTONES
    return Batch(whole.schema, whole.keys, pc.if_else(pa.array(deleted), pa.scalar(None, pa.binary()), whole.values))


def _with_broken_rows(rows: int) -> Batch:
    whole = offset_commits(rows, 0.5)
    values = whole.values.to_pylist()
    random = Random("broken rows")
    broken = random.sample(range(rows), max(1, round(rows * _BROKEN)))
    for number, row in enumerate(broken):
        values[row] = _BREAKAGES[number % len(_BREAKAGES)](values[row], random)
    return Batch(whole.schema, whole.keys, pa.array(values, pa.binary()), frozenset(broken))


def _cut_short(value: bytes, random: Random) -> bytes:
    return value[: random.randrange(len(value))]


def _text_beyond_the_end(value: bytes, _: Random) -> bytes:
    # After the version (2 bytes), the offset (8) and the epoch (4) follows the length of the metadata: an int16 in
    # version 3, a varint in version 4. In both, this first byte claims more bytes than any row has.
    return value[:14] + b"\x7f" + value[15:]


def _unheard_of_version(value: bytes, _: Random) -> bytes:
    return framed(99, split_value(value)[1])


_BREAKAGES: Final = (_cut_short, _text_beyond_the_end, _unheard_of_version)


# ---------------------------------------------------------------------------------------------------- other messages


def _batch(schema: MessageSchema, version: int, messages: Iterator[Any]) -> Batch:
    values = [framed(version, message.encode(version)) for message in messages]
    return Batch(schema, None, pa.array(values, pa.binary()))


def _groups(rows: int) -> Batch:
    random = Random("groups")
    messages = (_group(random, random.randint(1, 20)) for _ in range(rows))
    return _batch(consumer_offsets.GROUP_METADATA_VALUE, 3, messages)


def _skewed_groups(rows: int, members: int) -> Batch:
    random = Random("skewed groups")
    messages = (_group(random, members if row == rows // 2 else random.randint(0, 2)) for row in range(rows))
    return _batch(consumer_offsets.GROUP_METADATA_VALUE, 3, messages)


def _group(random: Random, members: int) -> GroupMetadataValue:
    service = random.choice(("payments", "orders", "search"))
    ids = [f"{service}-consumer-{number}-{_unique(random)}" for number in range(1, members + 1)]
    return GroupMetadataValue(
        protocol_type="consumer",
        generation=random.randrange(1000),
        protocol="range" if ids else None,
        leader=ids[0] if ids else None,
        current_state_timestamp=_COMMITTED_AT + random.randrange(10**6),
        members=tuple(_member(random, member_id, service) for member_id in ids),
    )


def _member(random: Random, member_id: str, service: str) -> MemberMetadata:
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=f"{service}-{random.randrange(100)}" if random.random() < 0.1 else None,
        client_id=f"{service}-consumer",
        client_host=f"/10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(256)}",
        rebalance_timeout=300_000,
        session_timeout=45_000,
        subscription=random.randbytes(random.randint(60, 200)),
        assignment=random.randbytes(random.randint(60, 200)),
    )


def _unique(random: Random) -> str:
    digits = random.randbytes(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _current_assignments(rows: int) -> Batch:
    random = Random("current assignments")
    message = current_assignment.ConsumerGroupCurrentMemberAssignmentValue

    def topics(most: int) -> tuple[current_assignment.TopicPartitions, ...]:
        chosen = random.sample(_TOPIC_IDS, random.randint(0, most))
        return tuple(current_assignment.TopicPartitions(each, _partitions(random)) for each in chosen)

    messages = (
        message(
            member_epoch=random.randint(1, 500),
            previous_member_epoch=random.randint(0, 500),
            state=random.choice((0, 0, 0, 1, 2)),
            assigned_partitions=topics(5),
            partitions_pending_revocation=topics(2) if random.random() < 0.1 else (),
        )
        for _ in range(rows)
    )
    return _batch(consumer_offsets.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE, 0, messages)


def _partitions(random: Random) -> tuple[int, ...]:
    first = random.randrange(48)
    return tuple(range(first, first + random.randint(1, 16)))


def _share_snapshots(rows: int) -> Batch:
    random = Random("share snapshots")
    return _batch(share_group_state.SHARE_SNAPSHOT_VALUE, 0, (_share_snapshot(random) for _ in range(rows)))


def _share_snapshot(random: Random) -> ShareSnapshotValue:
    start = random.randrange(10**9)
    return ShareSnapshotValue(
        snapshot_epoch=random.randrange(1000),
        state_epoch=random.randrange(10),
        leader_epoch=random.randrange(30),
        start_offset=start,
        delivery_complete_count=random.choice((-1, 0, 17)),
        create_timestamp=_COMMITTED_AT,
        write_timestamp=_COMMITTED_AT + random.randrange(10**6),
        state_batches=tuple(
            StateBatch(start + 100 * number, start + 100 * number + 99, random.choice((0, 2, 4)), random.randint(1, 5))
            for number in range(random.randint(0, 10))
        ),
    )


def _transactions(rows: int) -> Batch:
    random = Random("transactions")
    return _batch(transaction_state.TRANSACTION_LOG_VALUE, 1, (_transaction(random) for _ in range(rows)))


def _transaction(random: Random) -> TransactionLogValue:
    status = random.randint(0, 5)
    topics = random.sample(_TOPICS, random.randint(1, 4))
    return TransactionLogValue(
        producer_id=random.randrange(10**6),
        previous_producer_id=random.choice((-1, -1, -1, random.randrange(10**6))),
        producer_epoch=random.randrange(30_000),
        transaction_timeout_ms=60_000,
        transaction_status=status,
        transaction_partitions=(
            tuple(PartitionsSchema(each, _partitions(random)) for each in topics) if status else None
        ),
        transaction_last_update_timestamp_ms=_COMMITTED_AT + random.randrange(10**6),
        transaction_start_timestamp_ms=_COMMITTED_AT if status else -1,
        client_transaction_version=2,
    )


def _subscriptions(rows: int) -> Batch:
    random = Random("subscriptions")
    return _batch(consumer_protocol.CONSUMER_PROTOCOL_SUBSCRIPTION, 3, (_subscription(random) for _ in range(rows)))


def _subscription(random: Random) -> subscription.ConsumerProtocolSubscription:
    topics = sorted(random.sample(_TOPICS, random.randint(1, 5)))
    owned = topics if random.random() < 0.7 else ()
    return subscription.ConsumerProtocolSubscription(
        topics=tuple(topics),
        user_data=random.choice((None, b"", random.randbytes(8))),
        owned_partitions=tuple(subscription.TopicPartition(each, _partitions(random)) for each in owned),
        generation_id=random.randint(-1, 500),
        rack_id=random.choice((None, "eu-west-1a", "eu-west-1b")),
    )
