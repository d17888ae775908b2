"""Compresses rows in memory as long as nothing uses them.

The rows of a report with a million offsets use a gigabyte, and most of its tables are not needed before the end. Rows
read batch by batch also leave gaps in the memory of Arrow's allocator, unlike one block per batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import pyarrow as pa

_CODEC: Final = pa.Codec("zstd", 1) if pa.Codec.is_available("zstd") else None

_PLAIN_BYTES: Final = 64 * 1024 * 1024
"""How many bytes of rows stay uncompressed. Compressing fewer is not worth the time."""

_MANY: Final = 100_000
"""The number of rows from which returning a table's memory is worthwhile."""


def return_memory(rows: int) -> None:
    """Return freed memory to the system after many rows were computed or unpacked. Otherwise, Arrow's allocator and the
    system's, which holds the compressed rows, both keep it."""
    if rows > _MANY:
        pa.default_memory_pool().release_unused()
        pa.system_memory_pool().release_unused()


class RowStore:
    """Decides which rows are compressed: all after the first `plain_bytes`."""

    def __init__(self, plain_bytes: int = _PLAIN_BYTES) -> None:
        self._left = plain_bytes

    def packed(self, batches: Iterable[pa.RecordBatch]) -> PackedRows:
        """The rows of some batches."""
        rows = PackedRows(self)
        for batch in batches:
            rows.append(batch)
        return rows

    def part(self, batch: pa.RecordBatch) -> pa.RecordBatch | bytes:
        """A batch as it is kept: itself or its compressed bytes."""
        if batch.nbytes <= self._left:
            self._left -= batch.nbytes
            return batch
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression=_CODEC, use_threads=False)
        with pa.ipc.new_stream(sink, batch.schema, options=options) as stream:
            stream.write_batch(batch)
        # The buffer of a stream may be twice as large as its content.
        content: bytes = sink.getvalue().to_pybytes()
        return content


class PackedRows:
    """Batches of rows in order, some of them compressed. Each iteration unpacks them one by one."""

    def __init__(self, store: RowStore) -> None:
        self._store = store
        self._parts: list[pa.RecordBatch | bytes] = []
        self.num_rows = 0

    def append(self, batch: pa.RecordBatch) -> None:
        """Add a batch."""
        self._parts.append(self._store.part(batch))
        self.num_rows += batch.num_rows

    def clear(self) -> None:
        """Drop all rows."""
        self._parts.clear()
        self.num_rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        options = pa.ipc.IpcReadOptions(use_threads=False)
        for part in self._parts:
            if isinstance(part, bytes):
                yield from pa.ipc.open_stream(part, options=options)
            else:
                yield part
