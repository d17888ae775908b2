"""Parts of saved files that can be read independently, and the log partitions they contain."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import DAMAGED_LOG, Finding
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.converting import SavedFile
from kafka_records_engine.sources._saved.tabular import FileReader, top_columns

IN_LOG: Final = ("topic", "partition", "offset")
"""The raw-row columns that locate a row: topic, partition and offset."""


@dataclass(frozen=True, slots=True)
class FilePiece:
    """The rows of one log partition in one part of a file. Small and picklable."""

    file: int
    """The number of the file."""
    group: int | None
    """The group of the file; None for the whole file."""
    rows: int
    size: int
    """The approximate size of these rows in bytes."""
    first: int
    last: int
    """The smallest and the largest offset."""
    is_pure: bool
    """Whether the part has no rows of other log partitions."""
    is_sorted: bool | None
    """Whether each offset is higher than the previous one; None if not checked."""

    def overlaps(self, last: int) -> bool:
        """Whether this piece begins at or before the offset `last`. For pieces sorted by first offset."""
        return self.first <= last


class Wrong(NamedTuple):
    """An unusable row. Small, because every row of a file may be unusable."""

    topic: str
    partition: int
    offset: int
    file: str
    row: int
    """The number of the row in the file, starting at 0."""
    what: str

    @property
    def place(self) -> tuple[str, int]:
        """The log partition of the row."""
        return self.topic, self.partition

    @property
    def finding(self) -> Finding:
        """The problem, as a sentence."""
        return Finding(
            "damage",
            DAMAGED_LOG,
            f"row {self.row + 1}: {self.what}",
            "the record is left out",
            self.topic,
            self.partition,
            offset=self.offset,
            file=self.file,
            records=1,
        )


def usable_rows(
    file: SavedFile, reader: FileReader, batch: Any, first: int, raws: Collection[str], wrong: list[Wrong]
) -> Any:
    """The usable rows of a batch, as raw rows; unusable rows are added to `wrong`. Needs the columns of IN_LOG."""
    told: dict[int, str] = {}
    rows = file.converted(reader, batch, first, raws, told.__setitem__)
    for name in IN_LOG:
        column = rows.column(name)
        if column.null_count:
            row = first + int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))) + 1
            why = {
                "topic": "it is unknown which log it belongs to: leave such rows out, or name the topic of all",
                "partition": "its place in the order is unknown",
                "offset": "without it the last record of a key is unknown",
            }[name]
            raise LogSourceError(file.path, f"row {row} has no {name}: {why}")
        if name != "topic" and rows.num_rows and pc.min(column).as_py() < 0:
            row = first + int(np.argmax(column.to_numpy() < 0)) + 1
            raise LogSourceError(
                file.path, f"row {row} has the {name} {column[row - first - 1]}, but {name}s start at 0"
            )
    if not told:
        return rows
    for row, what in told.items():
        topic, partition, offset = (rows.column(name)[row - first].as_py() for name in IN_LOG)
        wrong.append(Wrong(topic, partition, offset, file.path, row, what))
    kept = np.ones(rows.num_rows, np.bool_)
    kept[np.array(list(told), np.int64) - first] = False
    return rows.filter(pa.array(kept))


def by_log_partition(rows: Any) -> Iterator[tuple[tuple[str, int], Any]]:
    """The rows of each log partition, in their original order."""
    if not rows.num_rows:
        return
    topics, partitions = rows.column("topic"), rows.column("partition").to_numpy()
    encoded = topics.dictionary_encode()
    numbers = encoded.indices.to_numpy().astype(np.int64)
    codes = (numbers << 32) | partitions.astype(np.int64)
    if (codes == codes[0]).all():
        yield (encoded.dictionary[0].as_py(), int(partitions[0])), rows
        return
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    sorted_rows = rows.take(pa.array(order))
    starts = [0, *(np.flatnonzero(np.diff(ordered)) + 1).tolist()]
    for start, end in zip(starts, [*starts[1:], len(ordered)], strict=True):
        number, partition = divmod(int(ordered[start]), 1 << 32)
        yield (encoded.dictionary[number].as_py(), partition), sorted_rows.slice(start, end - start)


def is_increasing(rows: Any) -> bool:
    """Whether each offset is higher than the previous one."""
    offsets = rows.column("offset").to_numpy()
    return bool((offsets[1:] > offsets[:-1]).all())


def pieces_of(number: int, file: SavedFile, reader: FileReader) -> dict[tuple[str, int], list[FilePiece]]:
    """The log partitions in each group of a file, or in the whole file if it has no groups.

    Reads the columns of IN_LOG if statistics do not suffice. Raises LogSourceError.
    """
    found: dict[tuple[str, int], list[FilePiece]] = {}
    groups: Sequence[int | None] = [None] if reader.groups is None else range(reader.groups)
    rows_of_groups = reader.rows_of_groups()
    count = sum(rows_of_groups)
    for group in groups:
        told = None if group is None else _told(file, reader, group)
        if told is not None and group is not None:
            place, first, last = told
            rows = rows_of_groups[group]
            piece = FilePiece(number, group, rows, file.size * rows // count, first, last, True, None)
            found.setdefault(place, []).append(piece)
            continue
        places = _looked_up(file, reader, group)
        rows = sum(map(len, places.values()))
        size = file.size if group is None else file.size * rows // max(count, 1)
        for place, offsets in places.items():
            piece = FilePiece(
                number,
                group,
                len(offsets),
                size * len(offsets) // rows,
                int(offsets.min()),
                int(offsets.max()),
                len(offsets) == rows,
                bool((offsets[1:] > offsets[:-1]).all()),
            )
            found.setdefault(place, []).append(piece)
    return found


def _told(file: SavedFile, reader: FileReader, group: int) -> tuple[tuple[str, int], int, int] | None:
    """The only log partition of a group, with its smallest and largest offset, if statistics show it. If statistics
    contain impossible values, the rows are read instead, which finds the invalid row."""
    given = dict(file.given)
    columns = {taken.raw: taken.column for taken in file.taken}
    told: dict[str, tuple[Any, Any]] = {}
    for name in IN_LOG:
        if name in given:
            told[name] = given[name], given[name]
            continue
        found = reader.statistics(group, columns[name])
        if found is None:
            return None
        try:
            least, most = (each.decode() if isinstance(each, bytes) else each for each in found)
        except UnicodeDecodeError:
            return None
        if name == "topic" and not isinstance(least, str):
            return None
        if name != "topic" and (not isinstance(least, int) or least < 0):
            return None
        told[name] = least, most
    (topic, last_topic), (partition, last_partition), (first, last) = (told[name] for name in IN_LOG)
    if topic != last_topic or partition != last_partition:
        return None
    return (topic, partition), first, last


def _looked_up(file: SavedFile, reader: FileReader, group: int | None) -> dict[tuple[str, int], Any]:
    """The offsets of each log partition in a group, from its rows, in row order."""
    parts: dict[tuple[str, int], list[Any]] = {}
    for first, batch in reader.batches(top_columns(reader, file.columns(IN_LOG)), group):
        for place, rows in by_log_partition(usable_rows(file, reader, batch, first, IN_LOG, [])):
            parts.setdefault(place, []).append(rows.column("offset").to_numpy())
    return {place: np.concatenate(offsets) for place, offsets in parts.items()}


def rows_of(
    file: SavedFile,
    reader: FileReader,
    piece: FilePiece,
    place: tuple[str, int],
    raws: Collection[str],
    wrong: list[Wrong],
) -> Iterator[Any]:
    """The rows of a piece, in file order.

    Raises LogSourceError, OSError and pa.ArrowException, also if rows contradict the statistics, because statistics
    determine the order in which pieces are read.
    """
    wanted = {*raws, *IN_LOG}
    mistakes: list[Wrong] = []
    for first, batch in reader.batches(top_columns(reader, file.columns(wanted)), piece.group):
        rows = usable_rows(file, reader, batch, first, wanted, mistakes)
        wrong += [each for each in mistakes if each.place == place]
        mistakes.clear()
        is_here = pc.and_(pc.equal(rows.column("topic"), place[0]), pc.equal(rows.column("partition"), place[1]))
        if not piece.is_pure:
            rows = rows.filter(is_here)
        if not rows.num_rows:
            continue
        offsets = rows.column("offset").to_numpy()
        if (piece.is_pure and not pc.all(is_here).as_py()) or offsets.min() < piece.first or offsets.max() > piece.last:
            raise pa.ArrowInvalid(f"the rows from row {first + 1} on differ from the statistics of the file")
        yield rows
