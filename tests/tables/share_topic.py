"""A synthetic topic of share state: snapshots and updates, as raw rows."""

from __future__ import annotations

from typing import Any, Final

from kafka_records.share_group_state import encode_record, share_snapshot, share_update
from kafka_records_runtime.kafka.uuids import Uuid
from tests.tables.topic import Topic

SHARE_TOPIC: Final = "__share_group_state"
TOPIC_ID: Final = "wpIKykfmTR6vUYsARjcjhA"

Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""

_NAMES: Final = ("first_offset", "last_offset", "delivery_state", "delivery_count")


class ShareTopic(Topic):
    """Grows one record at a time, all about partition 0 of a topic by default."""

    def snapshot(
        self, *batches: Batch, group: str = "g", partition: int = 0, topic_id: str = TOPIC_ID, **fields: Any
    ) -> int:
        """Write a snapshot; returns the log offset."""
        told = {"state_epoch": 1, "create_timestamp": 10, "write_timestamp": 20, "start_offset": 0, **fields}
        value = share_snapshot.ShareSnapshotValue(state_batches=_structs(share_snapshot, batches), **told)
        return self._add(share_snapshot.ShareSnapshotKey, value, group, partition, topic_id)

    def update(self, *batches: Batch, group: str = "g", partition: int = 0, **fields: Any) -> int:
        """Write an update, which leaves start offset and leader epoch as they are unless told otherwise."""
        told = {"start_offset": -1, "leader_epoch": -1, **fields}
        value = share_update.ShareUpdateValue(state_batches=_structs(share_update, batches), **told)
        return self._add(share_update.ShareUpdateKey, value, group, partition)

    def delete(self, *, group: str = "g", partition: int = 0, record: str = "share_snapshot") -> int:
        """Write a tombstone, by default of a snapshot."""
        key = share_snapshot.ShareSnapshotKey if record == "share_snapshot" else share_update.ShareUpdateKey
        return self._add(key, None, group, partition)

    def _add(self, key: Any, value: Any, group: str, partition: int, topic_id: str = TOPIC_ID) -> int:
        made = key(group_id=group, topic_id=Uuid.from_string(topic_id), partition=partition)
        return self.add_bytes(*encode_record(made, value), topic=SHARE_TOPIC)


def _structs(module: Any, batches: tuple[Batch, ...]) -> tuple[Any, ...]:
    return tuple(module.StateBatch(**dict(zip(_NAMES, batch, strict=True))) for batch in batches)
