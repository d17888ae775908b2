"""The expected answers for the written log. They are remembered while the log is written, not read back, so that a
reader can be compared with them.

They follow the rules of Kafka's coordinators (`OffsetMetadataManager`, `GroupMetadataManager`,
`TransactionStateManager`), as far as the writer needs them. The last record of a key counts, unless it belongs to an
aborted or open transaction. Any value of a commit creates its group, which exists until a group tombstone follows.
Records of a consumer group make it a group of that kind.

A group tombstone does not affect the offsets of the group: they stay, here as in a coordinator, which does not return
them until the group exists again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tools.segments.plan import OFFSETS_TOPIC, SHARE_STATE_TOPIC, Plan
from tools.segments.pool import INT64, TRANSACTIONAL, Kind, Pool, Subjects, state_of, topic_id_of

if TYPE_CHECKING:
    from tools.segments.partition import Drawn

CURRENT_OFFSETS: Final = pa.schema(
    [
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("commit_timestamp_ms", pa.int64()),
        ("log_partition", pa.int32()),
        ("log_offset", pa.int64()),
    ]
)
GROUPS: Final = pa.schema([("group", pa.string()), ("kind", pa.string()), ("log_partition", pa.int32())])
"""Kinds are classic, simple (a classic group that never had a member), consumer, share and streams."""

TRANSACTIONS: Final = pa.schema(
    [
        ("transactional_id", pa.string()),
        ("state", pa.string()),
        ("last_update_ms", pa.int64()),
        ("log_partition", pa.int32()),
        ("log_offset", pa.int64()),
    ]
)
SHARE_PARTITIONS: Final = pa.schema(
    [
        ("group", pa.string()),
        ("topic_id", pa.string()),
        ("partition", pa.int32()),
        ("log_partition", pa.int32()),
        ("log_offset", pa.int64()),
    ]
)
TABLES: Final[Mapping[str, Any]] = {
    "current_offsets": CURRENT_OFFSETS,
    "groups": GROUPS,
    "transactions": TRANSACTIONS,
    "share_partitions": SHARE_PARTITIONS,
}


class Memory:
    """The expected answers for one partition."""

    def __init__(self, plan: Plan, partition: int, subjects: Subjects) -> None:
        self.kinds: Mapping[str, Kind] = {}
        self._plan = plan
        self._partition = partition
        self._subjects = subjects
        self._last = _Last(subjects.weight)
        self._group_events = {
            name: np.full(len(subjects.groups), -1)
            for name in ("commit", "classic", "deleted", "consumer", "share", "streams")
        }

    def add(self, pool: Pool, drawn: Drawn) -> None:
        """Add some batches. The batches before them must have been added."""
        template = drawn.records.template
        kind, subject = pool.kind[template], pool.subject[template]

        def rows_of(*names: str) -> INT64:
            numbers = [pool.number(name) for name in names if name in pool.kinds]
            return np.flatnonzero(np.isin(kind, numbers))

        changes = rows_of("commits", "tombstones", TRANSACTIONAL, "states", "snapshots", "updates")
        changes = changes[drawn.counts[changes]]
        self._last.set(subject[changes], drawn, changes, kind[changes] != pool.number("tombstones"))
        if not len(self._subjects.groups):
            return
        commits = rows_of("commits", TRANSACTIONAL)
        self._happened("commit", self._subjects.group_of_key[subject[commits]], drawn.offset[commits])
        for event, names in (
            ("classic", ("group_metadata",)),
            ("deleted", ("group_tombstones",)),
            ("consumer", ("consumer_groups", "consumer_members", "consumer_assignments")),
            ("share", ("share_groups", "share_members")),
            ("streams", ("streams_groups", "streams_members")),
        ):
            rows = rows_of(*names)
            self._happened(event, subject[rows], drawn.offset[rows])

    def _happened(self, event: str, groups: INT64, offsets: INT64) -> None:
        self._group_events[event][groups] = offsets

    def tables(self) -> dict[str, Any]:
        """The tables of the topic, each with the rows of this partition."""
        if self._plan.topic == OFFSETS_TOPIC:
            return {"current_offsets": self._current_offsets(), "groups": self._groups()}
        if self._plan.topic == SHARE_STATE_TOPIC:
            return {"share_partitions": self._share_partitions()}
        return {"transactions": self._transactions()}

    def _current_offsets(self) -> Any:
        last = self._last
        there = last.subjects()
        group, topic, partition = (
            zip(*(self._subjects.keys[at] for at in there), strict=True) if len(there) else ((),) * 3
        )
        columns = [group, topic, partition, last.committed[there], last.timestamp[there]]
        return self._table(CURRENT_OFFSETS, columns, last.offset[there])

    def _groups(self) -> Any:
        events = self._group_events
        deleted = events["deleted"]
        kind = np.where(events["commit"] > deleted, "simple", "")
        kind = np.where(events["classic"] > deleted, "classic", kind)
        for name in ("consumer", "share", "streams"):
            kind = np.where(events[name] >= 0, name, kind)
        there = np.flatnonzero(kind != "")
        return self._table(GROUPS, [[self._subjects.groups[at] for at in there], kind[there].tolist()], None)

    def _share_partitions(self) -> Any:
        there = self._last.subjects()
        keys = [self._subjects.keys[at] for at in there]
        columns: list[Any] = [
            [group for group, _, _ in keys],
            [topic_id_of(topic) for _, topic, _ in keys],
            [partition for _, _, partition in keys],
        ]
        return self._table(SHARE_PARTITIONS, columns, self._last.offset[there])

    def _transactions(self) -> Any:
        last = self._last
        there = last.subjects()
        # The templates of a state are consecutive, one for each id.
        states = self.kinds.get("states", Kind(0, 1, 1))
        variants = (last.template[there] - states.first) // states.subjects
        columns = [
            [self._subjects.ids[at] for at in there],
            [state_of(variant) for variant in variants.tolist()],
            last.timestamp[there],
        ]
        return self._table(TRANSACTIONS, columns, last.offset[there])

    def _table(self, schema: Any, columns: list[Any], offsets: INT64 | None) -> Any:
        places: list[Any] = [np.full(len(columns[0]), self._partition, np.int32)]
        places += [] if offsets is None else [offsets]
        filled = [pa.array(column, each.type) for column, each in zip([*columns, *places], schema, strict=True)]
        return pa.table(filled, schema=schema)


class _Last:
    """The last record of every subject."""

    def __init__(self, subjects: int) -> None:
        self._has_value = np.zeros(subjects, np.bool_)
        self.offset = np.full(subjects, -1)
        self.template = np.full(subjects, -1)
        self.committed = np.full(subjects, -1)
        self.timestamp = np.full(subjects, -1)

    def set(self, subjects: INT64, drawn: Drawn, rows: INT64, has_value: Any) -> None:
        # numpy keeps the last assignment to an index.
        self._has_value[subjects] = has_value
        self.offset[subjects] = drawn.offset[rows]
        self.template[subjects] = drawn.records.template[rows]
        self.committed[subjects] = drawn.records.committed[rows]
        self.timestamp[subjects] = drawn.records.timestamp[rows]

    def subjects(self) -> INT64:
        """The subjects whose last record was not a tombstone."""
        return np.flatnonzero(self._has_value)
