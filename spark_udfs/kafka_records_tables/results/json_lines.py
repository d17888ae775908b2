"""A table as JSON, one object per line."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

import pyarrow as pa

from kafka_records_runtime.text.printable import json_printable
from kafka_records_tables.results.cell_texts import json_objects, small_slices, write_lines


def write_json(batches: Iterable[pa.RecordBatch], out: TextIO) -> None:
    """Write the rows as they arrive, as JSON like that of Kafka's tools; non-ASCII characters are not escaped.

    Times are ISO 8601 in UTC, bytes are base64. On a terminal, non-printable characters are escaped.
    """
    is_terminal = out.isatty()
    for batch in small_slices(batches):
        lines = json_objects(batch.schema.names, batch.columns, batch.num_rows, "\n")
        if is_terminal:
            out.writelines(f"{json_printable(line[:-1])}\n" for line in lines.to_pylist())
        else:
            write_lines(lines, out)
