"""Collects the last record of each group key in a log partition, and replays these records as a coordinator does."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from heapq import merge
from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_tables.coordinator.groups.group_model import PICKED, Groups
from kafka_records_tables.coordinator.groups.record_names import PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, are_of_types, numbers_of
from kafka_records_tables.coordinator.records.latest import LAST_VALUE, Latest
from kafka_records_tables.coordinator.records.named_records import Picked, events

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_runtime.schema import RecordSchema

NOT_USED: Final = "not used: it is unknown which group it is about"
"""The consequence reported for an unreadable key."""


class Replayed(NamedTuple):
    """The groups, and the records from which they were built."""

    groups: Groups
    told: DecodedRecords
    """The records whose values were decoded."""
    seen: DecodedRecords
    """Records of which only the keys matter, such as commits."""


class GroupRecords:
    """Collects the records of groups and their commits, in any order."""

    def __init__(
        self, schemas: Mapping[int, RecordSchema], *, with_values: Collection[str] = (), columns: Iterable[str] = ()
    ) -> None:
        """`with_values` names the PARTS to decode with their values; `columns` are kept in addition to those that this
        class needs."""
        self._schemas = schemas
        self._parts = tuple(name for name in PARTS if name not in with_values)
        self._commit_types = numbers_of(schemas, COMMITS)
        self._by_key_alone = (*self._commit_types, *numbers_of(schemas, self._parts))
        kept = ("offset", "key", LAST_VALUE, "file", "position", "base_offset", *columns)
        self._alone, self._whole = Latest(kept), Latest((*kept, "value"))

    def add(self, batch: pa.RecordBatch) -> None:
        """Add records of the table's record types. Control rows are ignored."""
        types, _ = prefix_column(batch.column("key"))
        is_alone = are_of_types(types, self._by_key_alone)
        is_record = batch.column("control").is_null().to_numpy(zero_copy_only=False)
        self._alone.add(batch, is_alone & is_record)
        self._whole.add(batch, ~is_alone & is_record)

    def replayed(
        self,
        context: Context,
        consequence: str = "its group keeps a row, with null instead of the values of this record",
        *,
        picked: Picked = PICKED,
        reports_commits: bool = True,
    ) -> Replayed:
        """Replay the records, and return the groups. Reports undecodable records, with `consequence` as the text for a
        broken value. With `reports_commits`, also reports commits with unreadable keys. `picked` names the fields of
        values to read."""
        told, seen = self._decoded(self._whole, context), self._decoded(self._alone, context)
        told.report(context, lambda row: consequence if told.has_key[row] else NOT_USED)
        is_reported = None if reports_commits else ~np.isin(seen.columns.record_type, self._commit_types)
        seen.report(context, lambda row: NOT_USED, is_reported)
        groups = Groups()
        parts = events(seen, dict.fromkeys(self._parts, ()))
        for event in merge(events(told, picked), parts, key=attrgetter("offset")):
            groups.replay(event)
        for name, offset in self._commits(seen):
            groups.commit(name, offset)
        return Replayed(groups, told, seen)

    def _decoded(self, latest: Latest, context: Context) -> DecodedRecords:
        nothing = pa.RecordBatch.from_pylist(
            [], pa.schema([("offset", pa.int64()), ("key", pa.binary()), (LAST_VALUE, pa.int64())])
        )
        return DecodedRecords(nothing if (found := latest.rows()) is None else found, self._schemas, context.shared)

    def _commits(self, seen: DecodedRecords) -> Iterator[tuple[str, int]]:
        """The offset of each group's last commit value, regardless of how its transaction ended."""
        group = seen.member(self._commit_types, "key", "group").dictionary_encode()
        last = np.full(len(group.dictionary) + 1, -1, np.int64)
        np.maximum.at(last, group.indices.fill_null(-1).to_numpy(), seen.last_value)
        for name, offset in zip(group.dictionary.to_pylist(), last.tolist(), strict=False):
            if offset >= 0:
                yield name, offset
