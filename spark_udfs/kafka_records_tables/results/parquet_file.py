"""A table as a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pyarrow as pa
from pyarrow.parquet import ParquetWriter

_GROUP_ROWS: Final = 128 * 1024
_GROUP_BYTES: Final = 64 * 1024 * 1024


def write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path | str) -> None:
    """Write the rows as they arrive, in row groups of the usual size. Comments in `schema` are kept.

    One row group is in memory at a time. A table without rows becomes a file with only the columns.
    """
    # Arrow rejects file names that are not UTF-8, so pass it an open file.
    with open(path, "wb") as file, ParquetWriter(file, schema) as writer:
        held: list[pa.RecordBatch] = []
        rows = size = 0
        for batch in batches:
            held.append(batch)
            rows += batch.num_rows
            size += batch.nbytes
            if rows >= _GROUP_ROWS or size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(held, schema))
                held, rows, size = [], 0, 0
        if held:
            writer.write_table(pa.Table.from_batches(held, schema))
