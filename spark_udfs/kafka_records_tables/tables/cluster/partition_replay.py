"""A cluster's partitions, in columns, according to the records of its metadata log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from kafka_records_tables.tables.cluster.metadata_reader import MetadataReplay
from kafka_records_tables.tables.cluster.metadata_records import MetadataRecords, events, values_of

if TYPE_CHECKING:
    from kafka_records_engine.numpy_types import FLAGS, INT64
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords

_MADE, _CHANGED = "PartitionRecord", "PartitionChangeRecord"
_OF_TOPICS: Final = ("TopicRecord", "RemoveTopicRecord", "ClearElrRecord")
_AS_BEFORE: Final = -2
"""The leader in a change that does not change the leader (`LeaderConstants.NO_LEADER_CHANGE`)."""
_AFTER_CHECKPOINT: Final = 1 << 62
"""Added to log offsets, because the records of a checkpoint, which have their own offsets, come first."""
_MOST_CHANGES: Final = 1 << 18
"""The minimum number of changes to apply together, so that memory use depends on the partitions and not on the
changes."""

_NEVER: Final = (1 << 63) - 1
_ORDER: Final = "order"
_LISTS: Final = {"replicas": "replicas", "isr": "isr", "elr": "eligible_leader_replicas"}
_NUMBERS: Final = ("leader", "leader_epoch")
_NOBODY: Final = pa.array([[]], pa.list_(pa.int32()))


class PartitionReplay(MetadataReplay):
    """Replays partitions, as `PartitionRegistration.merge` does.

    Records of partitions are kept as columns and applied together: the last record that creates a partition, and the
    last later change of each of its fields.
    """

    def __init__(self, context: Context) -> None:
        super().__init__(MetadataRecords(context, (*_OF_TOPICS, _MADE, _CHANGED), (_MADE, _CHANGED)))
        numbers = self._records.numbers
        self._of_topics = {name: numbers[name] for name in _OF_TOPICS}
        self._numbers = numbers[_MADE], numbers[_CHANGED]
        self._names: dict[str, str] = {}
        self._topics: dict[str, int] = {}
        """For each existing topic id, the position of the topic's creation in the order of records."""
        self._cleared: dict[str, int] = {}
        """For each topic id, the position at which the topic's eligible leader replicas were last reset."""
        self._made: list[pa.Table] = []
        self._changed: list[pa.Table] = []
        self._changes = 0

    def take(self, batch: pa.RecordBatch) -> None:
        super().take(batch)
        if self._changes > _MOST_CHANGES:
            self._apply()

    def columns(self) -> Mapping[str, pa.Array]:
        """The columns of the table, with a row for each partition that exists at the end of the log."""
        self._apply()
        (found,) = self._made
        rows = found.combine_chunks()
        encoded = _only(rows["topic_id"]).dictionary_encode()
        names = pa.array([self._names[each] for each in encoded.dictionary.to_pylist()], pa.string())
        columns = {name: _only(rows[name]) for name in rows.column_names if name != _ORDER}
        return {"topic": names.take(encoded.indices), **columns}

    def _add(self, decoded: DecodedRecords, is_checkpoint: bool) -> None:
        orders = decoded.offsets if is_checkpoint else decoded.offsets + _AFTER_CHECKPOINT
        for row, name, value in events(decoded, self._of_topics):
            match name:
                case "TopicRecord":
                    self._names[value["topic_id"]] = value["name"]
                    self._topics.setdefault(value["topic_id"], int(orders[row]))
                case "RemoveTopicRecord":
                    self._topics.pop(value["topic_id"], None)
                case _:
                    self._clear(value["topic_name"], int(orders[row]))
        for number, kept in zip(self._numbers, (self._made, self._changed), strict=True):
            found = values_of(decoded, number)
            if found is not None:
                rows, values = found
                kept.append(_columns(values, orders[rows], is_change=kept is self._changed))
                self._changes += len(rows) if kept is self._changed else 0

    def _clear(self, topic: str, order: int) -> None:
        """Clear the eligible leader replicas of a topic, or of all topics (`TopicsDelta.replay(ClearElrRecord)`)."""
        for topic_id in self._topics:
            if not topic or self._names[topic_id] == topic:
                self._cleared[topic_id] = order

    def _apply(self) -> None:
        """Make one row for each existing partition, sorted by topic and in order of creation."""
        made = pa.concat_tables(self._made) if self._made else _columns(None, np.zeros(0, np.int64), is_change=False)
        changed = pa.concat_tables(self._changed) if self._changed else made.slice(0, 0)
        self._changed, self._changes = [], 0
        ids = pa.chunked_array([*made["topic_id"].chunks, *changed["topic_id"].chunks], pa.string())
        encoded = ids.combine_chunks().dictionary_encode()
        topics = encoded.indices.to_numpy().astype(np.int64)
        known = encoded.dictionary.to_pylist()
        partitions = np.concatenate([made["partition"].to_numpy(), changed["partition"].to_numpy()])
        keys = topics << 32 | partitions.astype(np.int64)
        orders, count = made[_ORDER].to_numpy(), made.num_rows
        since = np.array([self._topics.get(each, _NEVER) for each in known], np.int64)
        is_there = orders > since[topics[:count]]
        rows = np.flatnonzero(is_there)
        unique, first, inverse = np.unique(keys[:count][rows], return_index=True, return_inverse=True)
        last = np.zeros(len(unique), np.int64)
        last[inverse] = rows
        ranks = {topic_id: rank for rank, topic_id in enumerate(self._topics)}
        rank = np.array([ranks.get(each, -1) for each in known], np.int64)[unique >> 32]
        chosen = np.lexsort((first, rank))
        places = _Places(unique, chosen, orders[last], keys[count:])
        self._made = [self._merged(made.take(last[chosen]), changed, places, known)]
        self._cleared = {}

    def _merged(self, made: pa.Table, changed: pa.Table, places: _Places, topics: list[str]) -> pa.Table:
        """The partitions in `made`, with the later changes in `changed`."""
        rows = np.flatnonzero(places.are_of(changed[_ORDER].to_numpy()))
        of = places.partition[rows]
        columns = {name: made[name] for name in made.column_names}
        if len(rows):
            for name in _LISTS:
                columns[name] = _last(made[name], changed[name], rows, of)
            leader = changed["leader"].to_numpy()
            is_new = leader[rows] != _AS_BEFORE
            columns["leader"] = _last(made["leader"], changed["leader"], rows[is_new], of[is_new])
            epochs = made["leader_epoch"].to_numpy() + np.bincount(of[is_new], minlength=made.num_rows)
            columns["leader_epoch"] = pa.chunked_array([pa.array(epochs, pa.int32())])
        columns["elr"] = self._elr(columns["elr"], changed, places, rows, topics)
        return pa.table(columns)

    def _elr(
        self, column: pa.ChunkedArray, changed: pa.Table, places: _Places, rows: INT64, topics: list[str]
    ) -> pa.ChunkedArray:
        """The eligible leader replicas; empty if they were cleared after the last record that contains them."""
        is_nobody: FLAGS = column.is_null().to_numpy().astype(np.bool_)
        if self._cleared:
            told = rows[changed["elr"].is_valid().to_numpy()[rows]]
            since = places.made.copy()
            since[places.partition[told]] = changed[_ORDER].to_numpy()[told]
            cleared = np.array([self._cleared.get(each, -1) for each in topics], np.int64)
            is_nobody = is_nobody | (cleared[places.keys >> 32] > since)
        if not is_nobody.any():
            return column
        at = np.where(is_nobody, len(column), np.arange(len(column)))
        return pa.chunked_array([*column.chunks, _NOBODY]).take(pa.array(at))


class _Places:
    """Assigns changes to partitions."""

    def __init__(self, keys: INT64, chosen: INT64, made: INT64, changed: INT64) -> None:
        """`keys` are the sorted keys of partitions, `chosen` their order in the table, `made` when each was created,
        and `changed` the keys of changes."""
        self.keys, self.made = keys[chosen], made[chosen]
        at = np.searchsorted(keys, changed)
        at[at == len(keys)] = 0
        self._is_known = keys[at] == changed if len(keys) else np.zeros(len(changed), np.bool_)
        rows = np.zeros(max(len(keys), 1), np.int64)
        rows[chosen] = np.arange(len(chosen))
        self.partition: INT64 = rows[at]
        """For each change, the row of its partition, if the partition exists."""

    def are_of(self, orders: INT64) -> FLAGS:
        """Flags the changes, given their orders, that belong to a partition that already existed."""
        found = self._is_known.copy()
        found[found] = orders[found] > self.made[self.partition[found]]
        return found


def _columns(values: pa.Array | None, orders: INT64, *, is_change: bool) -> pa.Table:
    """The columns that the table needs, and the order of records."""
    names = {"topic_id": "topic_id", "partition": "partition_id", **_LISTS, "leader": "leader"}
    if not is_change:
        names["leader_epoch"] = "leader_epoch"
    kinds = {"topic_id": pa.string(), **dict.fromkeys(_LISTS, pa.list_(pa.int32()))}
    columns: dict[str, pa.Array] = {}
    for name, field in names.items():
        kind = kinds.get(name, pa.int32())
        columns[name] = pa.array([], kind) if values is None else values.field(field).cast(kind)
    return pa.table({**columns, _ORDER: pa.array(orders, pa.int64())})


def _last(made: pa.ChunkedArray, changed: pa.ChunkedArray, rows: INT64, of: INT64) -> pa.ChunkedArray:
    """The values of partitions. With `rows`, the last non-null value among each partition's changes."""
    is_told = changed.is_valid().to_numpy()[rows]
    if not is_told.any():
        return made
    at = np.arange(len(made))
    at[of[is_told]] = len(made) + rows[is_told]
    return pa.chunked_array([*made.chunks, *changed.chunks]).take(pa.array(at))


def _only(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks else pa.array([], column.type)
