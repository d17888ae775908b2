"""Collects the topics for which groups have commits, using the keys of commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.columns.framing_in_columns import prefix_column
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.coordinator.records.decoded_records import DecodedRecords, are_of_types, numbers_of

if TYPE_CHECKING:
    from kafka_records_runtime.schema import RecordSchema

_PARTITION: Final = 4
"""The size of the partition number at the end of a key, in bytes (`OffsetCommitKey`)."""


class CommittedTopics:
    """Removes commits from the records of a log, and collects the distinct pairs of group and topic."""

    def __init__(self, schemas: Mapping[int, RecordSchema]) -> None:
        self._schemas = schemas
        self._types = numbers_of(schemas, COMMITS)
        self._found: pa.Array | None = None

    def taken(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Remove the commits from a batch; returns the other rows."""
        types, _ = prefix_column(batch.column("key"))
        is_commit = are_of_types(types, self._types)
        if not is_commit.any():
            return batch
        keys = batch.column("key").filter(pa.array(is_commit))
        beginnings = pc.binary_slice(keys, 0, -_PARTITION).unique()
        known = () if self._found is None else (self._found,)
        self._found = pa.chunked_array([*known, beginnings]).unique()
        return batch.filter(pa.array(~is_commit))

    def found(self) -> Iterator[tuple[str, str]]:
        """The distinct pairs of group and topic. It includes deleted commits, but not undecodable keys."""
        if self._found is None:
            return
        end = pa.scalar(bytes(_PARTITION), self._found.type)
        keys = pc.binary_join_element_wise(self._found, end, pa.scalar(b"", self._found.type))
        rows = pa.RecordBatch.from_arrays([pa.array(np.arange(len(keys))), keys], ["offset", "key"])
        decoded = DecodedRecords(rows, self._schemas)
        groups, topics = (decoded.member(self._types, "key", name).to_pylist() for name in ("group", "topic"))
        for group, topic in dict.fromkeys(zip(groups, topics, strict=True)):
            if group is not None and topic is not None:
                yield group, topic
