"""Computes the partition of a coordinator key in its topic. The leader of this partition is the coordinator.

The key is a group id, a transactional id or, for a share partition, `share_partition_key`. Kafka computes Java's hash
of that text, drops its sign, and takes it modulo the number of partitions (the method `partitionFor` of
`GroupCoordinatorService`, `TransactionStateManager` and `ShareCoordinatorService`, and
`org.apache.kafka.common.utils.Utils.abs`).
"""

from __future__ import annotations

import struct
from typing import Final

from kafka_records_runtime.kafka.uuids import Uuid, uuid_text

_MINIMUM: Final = -(2**31)


def java_hash(text: str) -> int:
    """Java's `String.hashCode`, a signed 32-bit number.

    The hash is computed over UTF-16 units: a character beyond U+FFFF counts as two units, and a lone surrogate as one.
    """
    data = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for unit in struct.unpack(f">{len(data) // 2}H", data):
        result = (31 * result + unit) & 0xFFFFFFFF
    return result - 2**32 if result >= 2**31 else result


def partition_for(key: str, partitions: int) -> int:
    """The partition, counted from 0, with the records of `key` in a topic with that many partitions.

    `key` is a group id, a transactional id or a `share_partition_key`. Raises ValueError for fewer than one partition.
    The smallest hash has no positive counterpart in 32 bits; Kafka uses 0 in its place.
    """
    if partitions < 1:
        raise ValueError(f"a topic must have at least one partition, got {partitions}")
    number = java_hash(key)
    return 0 if number == _MINIMUM else abs(number) % partitions


def share_partition_key(group_id: str, topic_id: Uuid, partition: int) -> str:
    """The key of a share partition: group, topic id in Kafka's base64 and partition, separated by colons.

    FindCoordinator expects it for key type 2 (KIP-932; `org.apache.kafka.server.share.SharePartitionKey`).
    """
    return f"{group_id}:{uuid_text(topic_id)}:{partition}"
