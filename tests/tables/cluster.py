"""Synthetic topics of coordinators: groups with members and assignments, and share state."""

from __future__ import annotations

from typing import Any

from kafka_records.share_group_state import encode_record, share_snapshot
from kafka_records_runtime.kafka.uuids import Uuid
from tests.tables.share_topic import SHARE_TOPIC, TOPIC_ID
from tests.tables.topic import Topic, struct

ORDERS = TOPIC_ID
"""The id of the topic `orders`."""


class Cluster(Topic):
    """Synthetic topics of coordinators."""

    def member(self, member_id: str, *topics: str, group: str = "g", kind: str = "Consumer", **fields: Any) -> int:
        """Write the metadata of a member."""
        names = {} if kind == "Streams" else {"subscribed_topic_names": topics}
        return self.of_group(f"{kind}GroupMemberMetadata", group, {**names, **fields}, member_id=member_id)

    def target(self, member_id: str, *numbers: int, group: str = "g", topic_id: str = ORDERS) -> int:
        """Write the target assignment of a member of a consumer group."""
        value = {"topic_partitions": parts("consumer_group_target_assignment_member", topic_id, numbers)}
        return self.of_group("ConsumerGroupTargetAssignmentMember", group, value, member_id=member_id)

    def current(self, member_id: str, *numbers: int, epoch: int = 1, gives_up: tuple[int, ...] = ()) -> int:
        """Write the current assignment of a member of the consumer group `g`."""
        module = "consumer_group_current_member_assignment"
        value = {
            "member_epoch": epoch,
            "previous_member_epoch": epoch - 1,
            "state": 0,
            "assigned_partitions": parts(module, ORDERS, numbers),
            "partitions_pending_revocation": parts(module, ORDERS, gives_up),
        }
        return self.of_group("ConsumerGroupCurrentMemberAssignment", "g", value, member_id=member_id)

    def epochs(self, group: int = 1, target: int = 1, *, kind: str = "Consumer", group_id: str = "g") -> None:
        """Write the epochs of a group and of its target assignment."""
        self.of_group(f"{kind}GroupMetadata", group_id, {"epoch": group})
        self.of_group(f"{kind}GroupTargetAssignmentMetadata", group_id, {"assignment_epoch": target})

    def of_group(self, record: str, group: str, value: dict[str, Any] | None, **key: Any) -> int:
        """Write a record of a group; a `value` of None is a tombstone."""
        return self.add(record, {"group_id": group, **key}, value)

    def share_topics(self, group: str = "g", **lists: tuple[int, ...]) -> int:
        """Write a record of type 15: `initialized=(0, 1)` are partitions of the topic `orders`."""
        module, value = "share_group_state_partition_metadata", {}
        for name, numbers in lists.items():
            partitions = {} if name == "deleting" else {"partitions": numbers}
            topic_id = Uuid.from_string(ORDERS)
            part = struct(module, _TOPIC_INFO[name], topic_id=topic_id, topic_name="orders", **partitions)
            value[f"{name}_topics"] = (part,)
        return self.of_group("ShareGroupStatePartitionMetadata", group, value)

    def state(self, partition: int, *, group: str = "g", log_partition: int = 0) -> int:
        """Write a snapshot of a share partition of the topic `orders`."""
        value = share_snapshot.ShareSnapshotValue(
            state_epoch=1, create_timestamp=1, write_timestamp=1, start_offset=0, state_batches=()
        )
        made = share_snapshot.ShareSnapshotKey(group_id=group, topic_id=Uuid.from_string(ORDERS), partition=partition)
        return self.add_bytes(*encode_record(made, value), topic=SHARE_TOPIC, partition=log_partition)


_TOPIC_INFO = {"initializing": "TopicPartitionsInfo", "initialized": "TopicPartitionsInfo", "deleting": "TopicInfo"}


def parts(module: str, topic_id: str, numbers: tuple[int, ...]) -> tuple[Any, ...]:
    """Partitions of a topic, in the form of a record of the module."""
    if not numbers:
        return ()
    name = "TopicPartitions" if "current" in module else "TopicPartition"
    return (struct(module, name, topic_id=Uuid.from_string(topic_id), partitions=numbers),)
