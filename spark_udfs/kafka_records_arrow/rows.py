"""Raw rows as Arrow: the schema, and how blocks become record batches of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_arrow.blocks import CONTROLS, TIMESTAMP_TYPES, Block, Rows
from kafka_records_arrow.transactions import TRANSACTIONS
from kafka_records_arrow.varints import FLAGS, INT64

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
"""One row per record. What a message format does not have is -1, as Kafka reports it (`timestamp_ms` of magic 0,
epochs and producers of magic 0 and 1); null are only `timestamp_type` of magic 0, keys and values that are null, and
`control` of ordinary records."""

_MOST_PENDING: Final = 16 * 1024 * 1024


def rebatched(batches: Iterable[Any], rows: int) -> Iterator[Any]:
    """The same rows in record batches of `rows` rows, fewer only in the last one and where rows are very large."""
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


def _joined(batches: list[Any]) -> Any:
    """One batch with the rows of all; `pa.concat_batches` does that from pyarrow 19 on only."""
    if len(batches) == 1:
        return batches[0]
    columns = [pa.concat_arrays(parts) for parts in zip(*(batch.columns for batch in batches), strict=True)]
    return pa.record_batch(columns, schema=batches[0].schema)


def record_batch(block: Block, topic: str, partition: int, log_start: int) -> Any:
    """The rows of `block` from offset `log_start` on."""
    kept = None
    if log_start and bool((block.rows.offset < log_start).any()):
        kept = np.flatnonzero(block.rows.offset >= log_start)

    rows = block.rows if kept is None else Rows(*(vector[kept] for vector in block.rows))
    entry = rows.batch
    count = len(entry)
    heads = block.heads
    keys, values = _keys_and_values(block.arena, rows)
    return pa.record_batch(
        [
            pa.repeat(pa.scalar(topic, pa.string()), count),
            pa.repeat(pa.scalar(partition, pa.int32()), count),
            pa.array(rows.offset),
            pa.array(rows.timestamp),
            _names(TIMESTAMP_TYPES, _timestamp_types(block)[entry]),
            keys,
            values,
            pa.array(heads.leader_epoch[entry].astype(np.int32)),
            pa.array(block.base_offset[entry]),
            pa.array(heads.producer_id[entry]),
            pa.array(heads.producer_epoch[entry].astype(np.int16)),
            _names(TRANSACTIONS, block.transaction[entry]),
            _names(CONTROLS, block.control[entry]),
        ],
        schema=RAW_SCHEMA,
    )


def _timestamp_types(block: Block) -> Any:
    heads = block.heads
    return np.where(heads.magic == 0, -1, (heads.attributes >> 3) & 1).astype(np.int8)


def _names(names: tuple[str, ...], codes: Any) -> Any:
    """The name at each code; null for -1."""
    if len(codes) and (codes == codes[0]).all():
        return pa.repeat(pa.scalar(names[codes[0]] if codes[0] >= 0 else None, pa.string()), len(codes))
    return pa.array(names, pa.string()).take(pa.array(codes, mask=codes < 0))


def _keys_and_values(arena: bytes, rows: Rows) -> Any:
    """Two binary columns.

    Keys and values follow one another in the arena, so one array of offsets makes an array of key, gap, value, gap
    and so on over the same bytes, from which Arrow takes what is wanted; that copies in C.
    """
    _, _, _, key_at, key_size, value_at, value_size = rows
    count = len(key_at)
    if not count:
        return pa.array([], pa.binary()), pa.array([], pa.binary())
    first = int(key_at[0])
    offsets = np.empty(4 * count + 1, np.int64)
    offsets[0:-1:4] = key_at
    offsets[1:-1:4] = key_at + np.maximum(key_size, 0)
    offsets[2:-1:4] = value_at
    offsets[3:-1:4] = value_at + np.maximum(value_size, 0)
    offsets[-1] = offsets[-2]
    offsets -= first
    buffer = pa.py_buffer(arena).slice(first)
    pieces = pa.Array.from_buffers(pa.binary(), 4 * count, [None, pa.py_buffer(offsets.astype(np.int32)), buffer])
    places = np.arange(0, 4 * count, 4)
    return tuple(
        pieces.take(pa.array(each, mask=_nulls(sizes)))
        for each, sizes in ((places, key_size), (places + 2, value_size))
    )


def _nulls(sizes: INT64) -> FLAGS | None:
    nulls = sizes < 0
    return nulls if nulls.any() else None
