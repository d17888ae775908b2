"""Writes a table in Arrow's own formats: the stream for pipes, and the file for random access."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import IO

import pyarrow as pa


def write_arrow_stream(batches: Iterable[pa.RecordBatch], schema: pa.Schema, out: IO[bytes]) -> None:
    """Write the rows as they arrive as an Arrow stream. The comments in `schema` are kept. A stream that ends early has
    no end marker."""
    with pa.ipc.new_stream(out, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_arrow_file(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path | str) -> None:
    """Write the rows as an Arrow file, which `pyarrow.ipc.open_file`, Polars' `read_ipc` and pandas' `read_feather` can
    read."""
    with open(path, "wb") as file, pa.ipc.new_file(file, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
