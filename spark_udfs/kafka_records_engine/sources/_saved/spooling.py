"""Sorts rows by log partition into a temporary file, for sources in which each log partition would have to read all
files.

The file is in a temporary directory, which is deleted when this process no longer refers to it. A process that cannot
access the temporary file (a Spark task on another machine) reads the original files.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from dataclasses import dataclass
from shutil import rmtree
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.log.files.paths import located
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._saved.converting import SavedFile
from kafka_records_engine.sources._saved.describing import Described
from kafka_records_engine.sources._saved.file_pieces import (
    FilePiece,
    Wrong,
    by_log_partition,
    is_increasing,
    usable_rows,
)
from kafka_records_engine.sources._saved.saved_formats import unreadable
from kafka_records_engine.sources._saved.tabular import FileReader, top_columns
from kafka_records_engine.sources._saved.taken_columns import TakenColumn

_ROWS: Final = 65_536
_HIGHEST: Final = (1 << 63) - 1
_MOST_OF_ONE: Final = 4 * 1024 * 1024
_MOST_OF_ALL: Final = 128 * 1024 * 1024


@dataclass(slots=True)
class _Seen:
    """The rows of a log partition in a file."""

    rows: int = 0
    first: int = _HIGHEST
    last: int = -1

    def add(self, rows: int, first: int, last: int) -> None:
        self.rows += rows
        self.first, self.last = min(self.first, first), max(self.last, last)


class Spool:
    """All rows of the given files, by log partition.

    Creating the object reads every file once. Raises LogSourceError.
    """

    def __init__(self, described: Described) -> None:
        there = {name for file in described.files for name in file.raws}
        self._names = [name for name in RAW_SCHEMA.names if name in there]
        self._schema = pa.schema([RAW_SCHEMA.field(name) for name in self._names])
        self.folder = tempfile.mkdtemp(prefix="kafka-records-")
        weakref.finalize(self, rmtree, self.folder, ignore_errors=True)
        self.path = os.path.join(self.folder, "rows.arrow")
        self.pieces: dict[tuple[str, int], list[FilePiece]] = {}
        """The pieces of each log partition in the temporary file."""
        self.origins: dict[tuple[str, int], list[FilePiece]] = {}
        """The pieces of each log partition in the original files. Each piece is a whole file."""
        self.wrong: dict[tuple[str, int], list[Wrong]] = {}
        """The unusable rows of each log partition."""
        self._held: dict[tuple[str, int], list[Any]] = {}
        self._sizes: dict[tuple[str, int], int] = {}
        self._groups = 0
        compression = "lz4" if pa.Codec.is_available("lz4") else None
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.OSFile(self.path, "wb") as out, pa.ipc.new_file(out, self._schema, options=options) as writer:
            for number, (file, reader) in enumerate(zip(described.files, described.readers, strict=True)):
                self._add(number, file, reader, writer)
            for place in [*self._held]:
                self._write(place, writer)

    @property
    def file(self) -> SavedFile:
        """The temporary file as a file of saved rows. Its columns are named like raw-row columns."""
        taken = tuple(TakenColumn(field.name, field.name, field.type) for field in self._schema)
        return SavedFile(located(self.path), "arrow", os.stat(self.path).st_size, (), taken)

    def _add(self, number: int, file: SavedFile, reader: FileReader, writer: Any) -> None:
        raws = file.raws
        seen: dict[tuple[str, int], _Seen] = {}
        wrong: list[Wrong] = []
        try:
            for first, batch in reader.batches(top_columns(reader, file.columns(raws))):
                rows = usable_rows(file, reader, batch, first, raws, wrong)
                for place, part in by_log_partition(self._completed(rows)):
                    self._hold(place, part, writer)
                    offsets = part.column("offset").to_numpy()
                    seen.setdefault(place, _Seen()).add(len(offsets), int(offsets.min()), int(offsets.max()))
                for each in wrong:
                    self.wrong.setdefault(each.place, []).append(each)
                    seen.setdefault(each.place, _Seen()).add(1, each.offset, each.offset)
                wrong.clear()
        except (OSError, pa.ArrowException, EOFError) as error:
            raise unreadable(file.place, error) from None
        total = sum(found.rows for found in seen.values())
        for place, found in seen.items():
            size, is_pure = file.size * found.rows // total, len(seen) == 1
            piece = FilePiece(number, None, found.rows, size, found.first, found.last, is_pure, False)
            self.origins.setdefault(place, []).append(piece)

    def _completed(self, rows: Any) -> Any:
        there = set(rows.schema.names)
        arrays = [
            rows.column(field.name) if field.name in there else pa.nulls(rows.num_rows, field.type)
            for field in self._schema
        ]
        return pa.record_batch(arrays, schema=self._schema)

    def _hold(self, place: tuple[str, int], rows: Any, writer: Any) -> None:
        self._held.setdefault(place, []).append(rows)
        self._sizes[place] = self._sizes.get(place, 0) + rows.nbytes
        if self._sizes[place] >= _MOST_OF_ONE:
            self._write(place, writer)
        elif sum(self._sizes.values()) > _MOST_OF_ALL:
            self._write(max(self._sizes, key=self._sizes.__getitem__), writer)

    def _write(self, place: tuple[str, int], writer: Any) -> None:
        parts, size = self._held.pop(place), self._sizes.pop(place)
        rows = pa.Table.from_batches(parts).combine_chunks()
        for batch in rows.to_batches(_ROWS):
            offsets = batch.column("offset").to_numpy()
            writer.write_batch(batch)
            piece = FilePiece(
                0,
                self._groups,
                batch.num_rows,
                size * batch.num_rows // rows.num_rows,
                int(offsets.min()),
                int(offsets.max()),
                True,
                is_increasing(batch),
            )
            self.pieces.setdefault(place, []).append(piece)
            self._groups += 1
