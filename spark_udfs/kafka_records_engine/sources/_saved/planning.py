"""Maps log partitions to the pieces of saved files that contain them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from kafka_records_engine.sources._saved.converting import SavedFile
from kafka_records_engine.sources._saved.describing import Described
from kafka_records_engine.sources._saved.file_pieces import FilePiece, pieces_of
from kafka_records_engine.sources._saved.saved_formats import unreadable
from kafka_records_engine.sources._saved.saved_partitions import Kept, SavedPartition
from kafka_records_engine.sources._saved.spooling import Spool
from kafka_records_engine.sources._saved.tabular import FileReader

_MIXED: Final = 3
"""Rows are first sorted into a temporary file if the log partitions together would otherwise read all bytes more than
this many times."""


class SavedPlan:
    """Maps log partitions to the pieces of files that contain them. Building it reads as little as possible. Raises
    LogSourceError."""

    def __init__(self, described: Described, spools: bool) -> None:
        self._files, self._notes = described.files, described.notes
        self._spool: Spool | None = None
        self.places: dict[tuple[str, int], list[FilePiece]] = {}
        if spools and any(reader.groups is None for reader in described.readers):
            self._spool = Spool(described)
            self.places = self._spool.origins
            return
        for number, (file, reader) in enumerate(zip(described.files, described.readers, strict=True)):
            for place, pieces in _pieces(number, file, reader).items():
                self.places.setdefault(place, []).extend(pieces)
        if spools and _bytes_to_read(self.places) > _MIXED * sum(file.size for file in described.files):
            self._spool = Spool(described)

    def partition(self, place: tuple[str, int], counted: set[str]) -> SavedPartition:
        """One of the log partitions. `counted` contains the files already counted for other partitions; this
        partition's files are added."""
        pieces, spool = self.places[place], self._spool
        numbers = sorted({piece.file for piece in pieces})
        renumbered = tuple(replace(piece, file=numbers.index(piece.file)) for piece in pieces)
        files = tuple(self._files[number] for number in numbers)
        new = {file.path for file in files} - counted
        counted |= new
        made = SavedPartition(*place, files, renumbered, self._notes, len(new))
        if spool is None:
            return made
        wrong = tuple(spool.wrong.get(place, ()))
        kept = Kept(spool.file, tuple(spool.pieces.get(place, ())), wrong, spool)
        return replace(made, kept=kept)


def _pieces(number: int, file: SavedFile, reader: FileReader) -> dict[tuple[str, int], list[FilePiece]]:
    try:
        return pieces_of(number, file, reader)
    except (OSError, pa.ArrowException, EOFError) as error:
        raise unreadable(file.place, error) from None


def _bytes_to_read(places: Mapping[tuple[str, int], Sequence[FilePiece]]) -> int:
    """The total for all log partitions, if each reads the groups that contain its rows."""
    groups = Counter[tuple[int, int | None]]()
    for pieces in places.values():
        for piece in pieces:
            groups[piece.file, piece.group] += piece.size
    return sum(groups[piece.file, piece.group] for pieces in places.values() for piece in pieces)
