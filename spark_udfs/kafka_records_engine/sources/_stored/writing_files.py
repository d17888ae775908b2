"""Writes the files of a snapshot. A file gets its final name only when it is complete."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.numpy_types import INT64
from kafka_records_engine.sources._stored.stored_names import (
    make_folder,
    part_name,
    records_name,
    replace_file,
    survey_name,
    sync_folder,
)
from kafka_records_engine.sources._stored.stretches import (
    SURVEY_SCHEMA,
    StoredFile,
    Stretch,
    Survey,
    metadata_of,
    metadata_of_survey,
)

COLUMNS: Final = tuple(name for name in RAW_SCHEMA.names if name not in ("topic", "partition"))
"""The columns of a file. Topic and partition are in the folder names."""

SCHEMA: Final = pa.schema([RAW_SCHEMA.field(name) for name in COLUMNS])

_RISING: Final = ("offset", "timestamp_ms", "base_offset")
TAIL: Final = 64
"""The number of rows at the end of a file that form a separate row group, because every run compares the last stored
rows with the log."""

_ROWS_PER_GROUP: Final = 131_072
_BYTES_PER_GROUP: Final = 32 * 1024 * 1024


class RecordsFile:
    """A file with records that is being written. Close it to publish it, or abandon it."""

    def __init__(self, folder: str) -> None:
        make_folder(folder)
        self._folder = folder
        self._part = part_name(folder)
        self._sink = pa.OSFile(self._part, "wb")
        self._writer = pq.ParquetWriter(
            self._sink,
            SCHEMA,
            compression="zstd",
            use_dictionary=[name for name in COLUMNS if name not in _RISING],
            column_encoding=dict.fromkeys(_RISING, "DELTA_BINARY_PACKED"),
            write_statistics=["offset", "timestamp_ms"],
            write_page_checksum=True,
        )
        self._waiting: list[Any] = []
        self._waiting_rows = self._waiting_bytes = 0
        self.first = self.last = -1
        self.rows = 0
        self.latest_ms = -1

    @property
    def size(self) -> int:
        """The number of bytes written so far."""
        return int(self._sink.tell())

    def write(self, rows: Any) -> None:
        """Add rows with SCHEMA. Their offsets must be above those of earlier rows."""
        if not self.rows:
            self.first = int(rows.column("offset")[0].as_py())
        self.last = int(rows.column("offset")[-1].as_py())
        self.rows += rows.num_rows
        latest = pc.max(rows.column("timestamp_ms")).as_py()
        self.latest_ms = max(self.latest_ms, -1 if latest is None else latest)
        self._waiting.append(rows)
        self._waiting_rows += rows.num_rows
        self._waiting_bytes += rows.nbytes
        if self._waiting_rows >= _ROWS_PER_GROUP or self._waiting_bytes >= _BYTES_PER_GROUP:
            self._flush()

    def _flush(self, tail: int = 0) -> None:
        """Write the buffered rows, with the last `tail` rows as a separate row group."""
        if self._waiting:
            table = pa.Table.from_batches(self._waiting, SCHEMA)
            cut = max(table.num_rows - tail, 0)
            for part in (table.slice(0, cut), table.slice(cut)):
                if part.num_rows:
                    self._writer.write_table(part, row_group_size=_ROWS_PER_GROUP)
            self._waiting, self._waiting_rows, self._waiting_bytes = [], 0, 0

    def close(self, stretches: Sequence[Stretch]) -> StoredFile:
        """Publish the complete file after flushing it to disk."""
        self._flush(TAIL)
        self._writer.add_key_value_metadata(metadata_of(stretches))
        self._writer.close()
        self._sink.close()
        path = os.path.join(self._folder, records_name(self.first, self.last))
        replace_file(self._part, path)
        return StoredFile(self.first, self.last, path, tuple(stretches))

    def abandon(self) -> None:
        """Delete the incomplete file."""
        with suppress(OSError, pa.ArrowInvalid):
            self._writer.close()
        with suppress(OSError):
            self._sink.close()
        with suppress(OSError):
            os.unlink(self._part)


def write_survey(folder: str, survey: Survey, firsts: INT64, lasts: INT64) -> None:
    """Write the lost offsets of a survey as ranges, without those of earlier surveys. A survey with the same end is
    replaced."""
    make_folder(folder)
    path = os.path.join(folder, survey_name(survey.end))
    if os.path.exists(path):
        before = pq.read_table(path)
        firsts = np.concatenate([before["first"].to_numpy(), firsts])
        lasts = np.concatenate([before["last"].to_numpy(), lasts])
    table = pa.table([pa.array(firsts), pa.array(lasts)], SURVEY_SCHEMA)
    part = part_name(folder)
    try:
        metadata = metadata_of_survey(replace(survey, path=""))
        pq.write_table(
            table.replace_schema_metadata(metadata),
            part,
            compression="zstd",
            use_dictionary=False,
            column_encoding=dict.fromkeys(SURVEY_SCHEMA.names, "DELTA_BINARY_PACKED"),
            write_page_checksum=True,
        )
        replace_file(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def join_small_files(files: Sequence[StoredFile], most: int) -> StoredFile | None:
    """Merge the last files into one. A file is included if it is smaller than `most` bytes and not much larger than all
    files after it together. Returns None if there is nothing to merge.

    So there are few files, and a record is rewritten only about log(number of runs) times. All records are in complete
    files at all times, because the merged files are removed last.
    """
    chosen: list[StoredFile] = []
    total = 0
    for file in reversed(files):
        size = os.stat(file.path).st_size
        if file.trouble or total + size > most or (chosen and size > 2 * total):
            break
        if chosen and file.last >= chosen[0].first:
            break
        chosen.insert(0, file)
        total += size
    if len(chosen) < 2:
        return None
    folder = os.path.dirname(chosen[0].path)
    joined = RecordsFile(folder)
    try:
        for file in chosen:
            with pq.ParquetFile(file.path, page_checksum_verification=True) as opened:
                for number in range(opened.num_row_groups):
                    for batch in opened.read_row_group(number, columns=list(COLUMNS)).to_batches():
                        if batch.num_rows:
                            joined.write(batch)
        written = joined.close([stretch for file in chosen for stretch in file.stretches])
    except (OSError, pa.ArrowInvalid):
        joined.abandon()
        return None
    except BaseException:
        joined.abandon()
        raise
    for file in chosen:
        os.unlink(file.path)
    sync_folder(folder)
    return written
