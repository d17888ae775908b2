"""The Arrow schema of raw rows, and the code that turns blocks into record batches with that schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_engine.log.reading._blocks import CONTROLS, TIMESTAMP_TYPES, Block, BlockRows, transactions_of
from kafka_records_engine.log.reading._scanning import Chunk
from kafka_records_engine.log.reading._transaction_index import TRANSACTIONS
from kafka_records_engine.numpy_types import FLAGS, INT64

__all__ = [
    "CONTROLS",
    "PLACE_FIELDS",
    "RAW_SCHEMA",
    "TIMESTAMP_TYPES",
    "TRANSACTIONS",
    "RowColumns",
    "raw_column",
    "rebatched",
]

RAW_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("timestamp_type", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("leader_epoch", pa.int32()),
        ("base_offset", pa.int64()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int16()),
        ("transaction", pa.string()),
        ("control", pa.string()),
    ]
)
"""One row per record. A field that the message format lacks is -1, as in Kafka (`timestamp_ms` of magic 0, epochs and
producers of magic 0 and 1). Only these can be null: `timestamp_type` of magic 0, a missing key or value, and `control`
of ordinary records."""

PLACE_FIELDS: Final = (pa.field("file", pa.dictionary(pa.int32(), pa.string())), pa.field("position", pa.int64()))
"""The columns for the place of a record's batch: the path of the file, with unprintable characters replaced, and the
byte at which the batch starts."""

_MOST_PENDING: Final = 16 * 1024 * 1024

_FEW_ROWS: Final = 4096
"""Batches with fewer rows than this are joined."""


def raw_column(rows: Any, name: str) -> Any:
    """A column of raw rows; all null if the rows do not have it."""
    return rows.column(name) if name in rows.schema.names else pa.nulls(rows.num_rows, RAW_SCHEMA.field(name).type)


def rebatched(batches: Iterable[Any], rows: int | None) -> Iterator[Any]:
    """The same rows in record batches of `rows` rows each. The last batch and batches of very large rows may have
    fewer. If `rows` is None, the batches stay unchanged."""
    if rows is None:
        yield from (batch for batch in batches if batch.num_rows)
        return
    pending: list[Any] = []
    count = size = 0
    for batch in batches:
        pending.append(batch)
        count += batch.num_rows
        size += batch.nbytes
        if count >= rows or size >= _MOST_PENDING:
            joined = _joined(pending)
            whole = count - count % rows if count >= rows and size < _MOST_PENDING else count
            for start in range(0, whole, rows):
                yield joined.slice(start, min(rows, whole - start))
            pending = [joined.slice(whole)] if whole < count else []
            count -= whole
            size = sum(each.nbytes for each in pending)
    if count:
        yield _joined(pending)


def gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """The same rows, with small batches joined to the next ones.

    A log may consist of thousands of small files, and every batch has a cost for its consumer.
    """
    pending: list[Any] = []
    count = 0
    for batch in batches:
        pending.append(batch)
        count += batch.num_rows
        if count >= _FEW_ROWS:
            yield _joined(pending)
            pending, count = [], 0
    if pending:
        yield _joined(pending)


def _joined(batches: list[Any]) -> Any:
    """One batch with the rows of all batches. (`pa.concat_batches` exists only since pyarrow 19.)"""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.record_batch(columns, schema=batches[0].schema)


class RowColumns:
    """Builds record batches of one log partition with the requested columns."""

    def __init__(
        self, topic: str, partition: int, log_start: int, columns: Sequence[str] | None, files: Sequence[str] | None
    ) -> None:
        """`files` are the paths of all files of the log, for the columns PLACE_FIELDS; with None, these columns are
        left out.

        Raises ValueError for a column that is not in RAW_SCHEMA, and for an empty list of columns.
        """
        names = RAW_SCHEMA.names if columns is None else list(columns)
        unknown = [name for name in names if name not in RAW_SCHEMA.names]
        if unknown:
            raise ValueError(f"raw rows have no column {unknown[0]!r}, only {', '.join(RAW_SCHEMA.names)}")
        if not names:
            raise ValueError("the list of columns is empty: give at least one")
        self._names = names
        self._has_bytes = "key" in names or "value" in names
        self._files = None if files is None else pa.array(files, pa.string())
        self.schema = pa.schema(
            [*(RAW_SCHEMA.field(name) for name in names), *(PLACE_FIELDS if files is not None else ())]
        )
        self._topic, self._partition, self._log_start = topic, partition, log_start

    def record_batch(self, block: Block, chunk: Chunk, file: int) -> Any:
        """The rows of `block` that are not below the log start. The block comes from `chunk`, in file number `file`."""
        rows = block.rows
        if self._log_start and bool((rows.offset < self._log_start).any()):
            kept = np.flatnonzero(rows.offset >= self._log_start)
            rows = BlockRows(*(vector[kept] for vector in rows))
        pieces = _pieces(block.arena, rows) if self._has_bytes else None
        columns = [self._column(name, block, rows, pieces) for name in self._names]
        if self._files is not None:
            numbers = pa.array(np.full(len(rows.batch), file, np.int32))
            columns.append(pa.DictionaryArray.from_arrays(numbers, self._files))
            columns.append(pa.array(chunk.position + chunk.entries[rows.batch]))
        return pa.record_batch(columns, schema=self.schema)

    def _column(self, name: str, block: Block, rows: BlockRows, pieces: Any) -> Any:
        entry, heads = rows.batch, block.heads
        match name:
            case "topic":
                return pa.repeat(pa.scalar(self._topic, pa.string()), len(entry))
            case "partition":
                return pa.repeat(pa.scalar(self._partition, pa.int32()), len(entry))
            case "offset":
                return pa.array(rows.offset)
            case "timestamp_ms":
                return pa.array(rows.timestamp)
            case "timestamp_type":
                return _names(TIMESTAMP_TYPES, _timestamp_types(block)[entry])
            case "key":
                return _taken(pieces, rows.key_size, 0)
            case "value":
                return _taken(pieces, rows.value_size, 2)
            case "leader_epoch":
                return pa.array(heads.leader_epoch[entry].astype(np.int32))
            case "base_offset":
                return pa.array(block.base_offset[entry])
            case "producer_id":
                return pa.array(heads.producer_id[entry])
            case "producer_epoch":
                return pa.array(heads.producer_epoch[entry].astype(np.int16))
            case "transaction":
                return _names(TRANSACTIONS, transactions_of(block.transaction[entry], rows.control))
            case _:
                return _names(CONTROLS, rows.control)


def _timestamp_types(block: Block) -> Any:
    heads = block.heads
    return np.where(heads.magic == 0, -1, (heads.attributes >> 3) & 1).astype(np.int8)


def _names(names: tuple[str, ...], codes: Any) -> Any:
    """The name for each code; null for -1."""
    if len(codes) and (codes == codes[0]).all():
        return pa.repeat(pa.scalar(names[codes[0]] if codes[0] >= 0 else None, pa.string()), len(codes))
    return pa.array(names, pa.string()).take(pa.array(codes, mask=codes < 0))


def _pieces(arena: bytes, rows: BlockRows) -> Any:
    """A binary array over the same bytes: key, gap, value, gap, and so on.

    Keys and values follow one another in the arena, so one array of offsets describes them all. Arrow's `take` then
    copies the requested ones, in C.
    """
    key_at, key_size, value_at, value_size = rows.key_at, rows.key_size, rows.value_at, rows.value_size
    count = len(key_at)
    if not count:
        return pa.array([], pa.binary())
    first = int(key_at[0])
    offsets = np.empty(4 * count + 1, np.int64)
    offsets[0:-1:4] = key_at
    offsets[1:-1:4] = key_at + np.maximum(key_size, 0)
    offsets[2:-1:4] = value_at
    offsets[3:-1:4] = value_at + np.maximum(value_size, 0)
    offsets[-1] = offsets[-2]
    offsets -= first
    buffer = pa.py_buffer(arena).slice(first)
    return pa.Array.from_buffers(pa.binary(), 4 * count, [None, pa.py_buffer(offsets.astype(np.int32)), buffer])


def _taken(pieces: Any, sizes: INT64, which: int) -> Any:
    """The keys (`which` is 0) or the values (`which` is 2) among the pieces."""
    return pieces.take(pa.array(np.arange(which, len(pieces), 4), mask=_nulls(sizes)))


def _nulls(sizes: INT64) -> FLAGS | None:
    nulls = sizes < 0
    return nulls if nulls.any() else None
