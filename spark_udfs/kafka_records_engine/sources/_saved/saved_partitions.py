"""The rows of one log partition in saved files, sorted by offset, each offset once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_records_engine.findings import DAMAGED_LOG, Finding
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA, raw_column
from kafka_records_engine.sources._saved.converting import SavedFile
from kafka_records_engine.sources._saved.file_pieces import FilePiece, Wrong, rows_of
from kafka_records_engine.sources._saved.ordering import in_order, together
from kafka_records_engine.sources._saved.spooling import Spool
from kafka_records_engine.sources._saved.tabular import FileReader
from kafka_records_engine.sources.protocol import PLACE_COLUMNS, Context


@dataclass(frozen=True)
class Kept:
    """The rows of a log partition in the temporary file."""

    file: SavedFile
    pieces: tuple[FilePiece, ...]
    wrong: tuple[Wrong, ...]
    spool: Spool | None
    """A reference that keeps the file from being deleted. Set only in the process that wrote the file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, (self.file, self.pieces, self.wrong, None)

    @property
    def is_there(self) -> bool:
        """Whether this process can access the file."""
        return os.path.exists(self.file.place.path)


@dataclass(frozen=True, slots=True)
class SavedPartition:
    """The rows of one partition in saved files."""

    topic: str
    partition: int
    files: tuple[SavedFile, ...]
    pieces: tuple[FilePiece, ...]
    notes: tuple[Finding, ...] = ()
    new_files: int = 0
    """The number of files of this partition that no earlier partition uses."""
    kept: Kept | None = None
    in_memory = False

    @property
    def size(self) -> int:
        """The approximate number of bytes in the files counted for this partition."""
        return sum(piece.size for piece in self.pieces)

    @property
    def tells_transactions(self) -> bool:
        """Whether a column says which records are transactional."""
        return any({"transaction", "producer_id"} & set(file.raws) for file in self.files)

    @property
    def end(self) -> int | None:
        """The offset after the last row; None if there is none."""
        return max((piece.last for piece in self.pieces if piece.rows), default=-1) + 1 or None

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`."""
        context.counts.partitions += 1
        context.counts.files += self.new_files
        for note in self.notes:
            context.report(note)
        there = {name for file in self.files for name in file.raws}
        chosen = [name for name in columns if name in RAW_SCHEMA.names and (name in there or name not in PLACE_COLUMNS)]
        reading = _Reading(self, context, [name for name in chosen if name in there], start, end)
        last = None
        for rows in reading.rows():
            last = int(rows.column("offset")[-1].as_py())
            if "control" not in there:
                # If the column is missing, markers look like records or are missing too.
                context.log.add_hole(last)
            yield pa.RecordBatch.from_arrays([raw_column(rows, name) for name in chosen], names=chosen)
            context.progress(self.size * reading.done // max(reading.total, 1))
        if end is not None and any(piece.last >= end for piece in self.pieces):
            context.log.add_hole(end - 1)
        context.counts.bytes += reading.done


class _Reading:
    """Reads a log partition once."""

    def __init__(
        self, log: SavedPartition, context: Context, raws: Sequence[str], start: int | None, end: int | None
    ) -> None:
        self._log, self._context, self._raws = log, context, raws
        self._start, self._end = start, end
        kept = log.kept if log.kept is not None and log.kept.is_there else None
        self._files = log.files if kept is None else (kept.file,)
        self._pieces = [piece for piece in (log.pieces if kept is None else kept.pieces) if self._concerns(piece)]
        self._wrong: list[Wrong] = [*kept.wrong] if kept is not None else []
        self._readers: dict[int, FileReader] = {}
        self._differing: set[int] = set()
        self._lost: list[tuple[int, int]] = []
        """The first and last offsets of unreadable parts of pieces that are being sorted."""
        self.total = sum(piece.size for piece in self._pieces)
        self.done = 0

    def _concerns(self, piece: FilePiece) -> bool:
        return (self._start is None or piece.last >= self._start) and (self._end is None or piece.first < self._end)

    def rows(self) -> Iterator[Any]:
        """The rows sorted by offset, each offset once. Findings go to the context."""
        self._tell()
        for group in together(self._pieces):
            self._lost.clear()
            is_sorted = len(group) == 1 and self._is_sorted(group[0])
            batches: Iterator[Any] = (rows for piece in group for rows in self._read(piece, is_sorted=is_sorted))
            if not is_sorted:
                batches = self._with_holes(in_order(batches, self._tell_differing))
            for rows in batches:
                self._tell()
                within = self._within(rows)
                self._context.counts.outside += rows.num_rows - within.num_rows
                if within.num_rows:
                    yield within
            self._tell()

    def _is_sorted(self, piece: FilePiece) -> bool:
        if piece.is_sorted is not None:
            return piece.is_sorted
        last = -1
        for rows in self._read(piece, ("offset",), counts=False):
            offsets = rows.column("offset").to_numpy()
            if offsets[0] <= last or not (offsets[1:] > offsets[:-1]).all():
                return False
            last = int(offsets[-1])
        return True

    def _with_holes(self, batches: Iterator[Any]) -> Iterator[Any]:
        """Batches in order, with a hole at every gap where a row may have been lost."""
        before = -1
        for rows in batches:
            offsets = rows.column("offset").to_numpy()
            behind = np.concatenate(([before], offsets))
            for first, last in self._lost:
                gaps = (behind[:-1] + 1 < offsets) & (behind[:-1] < last) & (offsets > first)
                for hole in np.maximum(behind[:-1][gaps], first - 1).tolist():
                    self._context.log.add_hole(hole)
            before = int(offsets[-1])
            yield rows
        for first, last in self._lost:
            if before < last:
                self._context.log.add_hole(max(before, first - 1))

    def _read(
        self, piece: FilePiece, raws: Sequence[str] | None = None, counts: bool = True, *, is_sorted: bool = False
    ) -> Iterator[Any]:
        file, place = self._files[piece.file], (self._log.topic, self._log.partition)
        given, last = 0, piece.first - 1
        try:
            if piece.file not in self._readers:
                self._readers[piece.file] = file.open()
            reader = self._readers[piece.file]
            for rows in rows_of(file, reader, piece, place, self._raws if raws is None else raws, self._wrong):
                given += rows.num_rows
                last = int(rows.column("offset")[-1].as_py())
                yield rows
        except (OSError, pa.ArrowException, EOFError) as error:
            if counts:
                first = last + 1 if is_sorted else piece.first
                self._tell_damage(file, piece, first, piece.rows - given, error)
                if is_sorted:
                    self._context.log.add_hole(last)
                else:
                    self._lost.append((first, piece.last))
        if counts:
            self.done += piece.size

    def _within(self, rows: Any) -> Any:
        offsets = rows.column("offset").to_numpy()
        first = 0 if self._start is None else int(np.searchsorted(offsets, self._start))
        behind = len(offsets) if self._end is None else int(np.searchsorted(offsets, self._end))
        return rows.slice(first, max(behind - first, 0))

    # -- findings ------------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        for wrong in self._wrong:
            if (self._start is None or wrong.offset >= self._start) and (self._end is None or wrong.offset < self._end):
                if self._context.findings.has_room("damage", DAMAGED_LOG, 1):
                    self._context.findings.add(wrong.finding)
                self._context.log.add_hole(wrong.offset - 1)
        self._wrong.clear()

    def _tell_damage(self, file: SavedFile, piece: FilePiece, first: int, lost: int, error: Exception) -> None:
        text = " ".join(str(error).split())
        part = "this" if piece.group is None else f"part {piece.group + 1}"
        self._context.report(
            Finding(
                "damage",
                DAMAGED_LOG,
                f"{part}, with offsets {first} to {piece.last}, cannot be read: {text}",
                "its other records are left out",
                self._log.topic,
                self._log.partition,
                file=file.path,
                base_offset=first,
                records=lost,
                bytes=piece.size,
            )
        )

    def _tell_differing(self, offset: int) -> None:
        if offset in self._differing:
            return
        self._differing.add(offset)
        self._context.report(
            Finding(
                "damage",
                DAMAGED_LOG,
                "two different records have this offset",
                "the first one found is used; read the rows of one log at a time",
                self._log.topic,
                self._log.partition,
                offset=offset,
                file=self._files[0].path if len(self._files) == 1 and self._log.kept is None else None,
            )
        )
