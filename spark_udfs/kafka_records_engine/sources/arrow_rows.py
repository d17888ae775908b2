"""Raw rows in memory as a source: an Arrow table, a reader, or any object that provides an Arrow stream."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources.plain_arrays import plain_array
from kafka_records_engine.sources.protocol import PLACE_COLUMNS, Context
from kafka_records_engine.sources.row_words import UnknownWord, as_controls
from kafka_records_runtime.text.printable import some_names

_NEEDED: Final = ("partition", "offset", "key", "value")
_ROWS: Final = 65_536


class ArrowRows:
    """Rows of `log.reading.raw_rows.RAW_SCHEMA` in memory, in any order; duplicates are allowed.

    Parameters
    ----------
    data
        A `pyarrow.Table`, `RecordBatch` or `RecordBatchReader`, or any object with `__arrow_c_stream__` (a Polars or
        pandas frame, a DuckDB relation). It needs the columns `partition`, `offset`, `key` and `value`. Other columns
        of raw rows are optional, but a table that depends on transactions rejects data without them. All other columns
        are ignored.
    topic
        The topic of rows whose column `topic` is missing or null.

    Raises
    ------
    ValueError
        If the data lacks one of these four columns, has a column with a type that cannot be cast, or has a `control`
        other than commit or abort.
    """

    def __init__(self, data: Any, topic: str | None = None) -> None:
        table = _table(data)
        for name in _NEEDED:
            if name not in table.column_names:
                raise ValueError(f"the rows have no column {name}: raw rows have {', '.join(RAW_SCHEMA.names)}")
        table = _plain(table)
        if "topic" not in table.column_names and topic is None:
            raise ValueError("the rows have no column 'topic': give their topic")
        self._topic = topic
        self._table = table

    @property
    def name(self) -> str:
        """The name in messages. (The rows have no name of their own.)"""
        return "the rows"

    def topics(self) -> list[str]:
        """The topics of the rows. Raises LogSourceError if no row has a topic."""
        names = {self._topic}
        if "topic" in self._table.column_names:
            named = pc.unique(self._table["topic"].cast(pa.string())).to_pylist()
            names = {self._topic if name is None else name for name in named}
        found = sorted(name for name in names if name is not None)
        if not found:
            raise LogSourceError(self.name, "no row has a topic: give the topic of the rows")
        return found

    def partitions(self, topic: str) -> list[RowsPartition]:
        """The partitions of `topic` that have a row. Raises LogSourceError if all rows are of other topics."""
        table = self._of_topic(topic)
        found = []
        for partition in pc.unique(table["partition"]).to_pylist():
            if partition is None:
                raise ValueError(f"a row of {topic} has no partition: its place in the order is unknown")
            rows = table.filter(pc.equal(table["partition"], partition))
            found.append(RowsPartition(topic, int(partition), in_log_order(rows.combine_chunks(), topic)))
        return sorted(found, key=lambda each: each.partition)

    def _of_topic(self, topic: str) -> pa.Table:
        table = self._table
        if "topic" in table.column_names:
            named = table["topic"].cast(pa.string())
            if self._topic is not None:
                named = pc.fill_null(named, self._topic)
            kept = table.filter(pc.equal(named, topic))
            others = pc.unique(named).to_pylist()
        else:
            kept = table if self._topic == topic else table.slice(0, 0)
            others = [self._topic]
        if table.num_rows and not kept.num_rows:
            names = some_names(sorted(name for name in others if name is not None)) or "none that is named"
            raise LogSourceError(self.name, f"there are no rows of topic {topic} here, only rows of {names}")
        return kept


def in_log_order(rows: pa.Table, topic: str) -> pa.Table:
    """The rows of one log partition sorted by offset, each offset once. Raises ValueError for a row without an
    offset."""
    column = rows["offset"].cast(pa.int64()).combine_chunks()
    if column.null_count:
        raise ValueError(f"a row of {topic} has no offset: without it the last record of a key is unknown")
    offsets = column.to_numpy()
    if len(offsets) < 2 or (offsets[1:] > offsets[:-1]).all():
        return rows
    _, first = np.unique(offsets, return_index=True)
    return rows.take(pa.array(first))


@dataclass(frozen=True, slots=True)
class RowsPartition:
    """The rows of one partition in memory."""

    topic: str
    partition: int
    rows: pa.Table
    in_memory = True

    @property
    def size(self) -> int:
        """The number of bytes in all columns."""
        return int(self.rows.nbytes)

    @property
    def tells_transactions(self) -> bool:
        """Whether a column says which records are transactional."""
        return bool({"transaction", "producer_id"} & set(self.rows.column_names))

    @property
    def end(self) -> int | None:
        """The offset after the last row; None if there is none."""
        return int(self.rows["offset"][-1].as_py()) + 1 if self.rows.num_rows else None

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """See `protocol.LogPartition.batches`."""
        there = set(self.rows.column_names)
        chosen = [name for name in columns if name in there or name not in PLACE_COLUMNS]
        rows = self._between(start, end)
        context.counts.partitions += 1
        if "control" not in there and rows.num_rows:
            # If the column is missing, markers look like records or are missing too.
            context.log.add_hole(int(rows["offset"][-1].as_py()))
        for at in range(0, rows.num_rows, _ROWS):
            part = rows.slice(at, _ROWS)
            arrays = [_column(part, name, there) for name in chosen]
            yield pa.RecordBatch.from_arrays(arrays, names=chosen)
            context.progress(self.size * (at + part.num_rows) // max(rows.num_rows, 1))
        if end is not None and self.rows.num_rows and self.rows["offset"][-1].as_py() >= end:
            context.log.add_hole(end - 1)

    def _between(self, start: int | None, end: int | None) -> pa.Table:
        """The rows in a range of offsets, as a view without copying."""
        if (start is None and end is None) or not self.rows.num_rows:
            return self.rows
        offsets = self.rows["offset"].cast(pa.int64()).to_numpy()
        first = 0 if start is None else int(np.searchsorted(offsets, start))
        behind = len(offsets) if end is None else int(np.searchsorted(offsets, end))
        return self.rows.slice(first, max(behind - first, 0))


def _column(rows: pa.Table, name: str, there: Collection[str]) -> pa.Array:
    if name in ("file", "position"):
        return rows[name].combine_chunks()
    kind = RAW_SCHEMA.field(name).type
    return rows[name].cast(kind).combine_chunks() if name in there else pa.nulls(rows.num_rows, kind)


def _plain(table: pa.Table) -> pa.Table:
    """The columns cast to the types of RAW_SCHEMA. `control` has only known values."""
    for name in RAW_SCHEMA.names:
        if name in table.column_names and table.schema.field(name).type != RAW_SCHEMA.field(name).type:
            place = table.schema.get_field_index(name)
            if name == "control" and pa.types.is_boolean(table.schema.field(name).type):
                continue
            table = table.set_column(place, name, plain_array(table[name]).cast(RAW_SCHEMA.field(name).type))
    if "control" not in table.column_names:
        return table
    try:
        controls = as_controls(table["control"].combine_chunks(), lambda: table["key"])
    except UnknownWord as unknown:
        raise ValueError(f"row {unknown.row + 1}: {unknown}") from None
    return table.set_column(table.schema.get_field_index("control"), "control", controls)


def _table(data: Any) -> pa.Table:
    if isinstance(data, pa.Table):
        return data
    if isinstance(data, pa.RecordBatch):
        return pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        return data.read_all()
    if hasattr(data, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(data).read_all()
    raise TypeError(f"raw rows must be an Arrow table or a stream of one, not {data!r}")
