"""Saved rows as a source: Parquet, Arrow, Avro, JSON lines, CSV, Delta tables; keys and values as bytes or texts.

Which log partitions there are is told by the statistics of Parquet, by names of folders and files, or by reading the
columns that say it. Formats that are read from start to end are read once, and their rows put by log partition into a
temporary file; so are Parquet and Arrow files whose groups mix the partitions.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any, Final, TypeVar

import numpy as np
import pyarrow as pa

from kafka_records_engine.findings import DAMAGED_LOG, UNREAD_LOG, Finding, OnFinding
from kafka_records_engine.log.paths import without_secrets
from kafka_records_engine.log.places import Files, LogSourceError, Place
from kafka_records_engine.log.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._saved.converting import SavedFile
from kafka_records_engine.sources._saved.file_pieces import IN_LOG, FilePiece, Wrong, pieces_of, rows_of, usable_rows
from kafka_records_engine.sources._saved.listing import Found, SavedFiles, is_saved, list_saved
from kafka_records_engine.sources._saved.ordering import in_order, together
from kafka_records_engine.sources._saved.saved_formats import FORMATS, Format, unreadable
from kafka_records_engine.sources._saved.spooling import Spool
from kafka_records_engine.sources._saved.tabular import FileReader, member, top_columns
from kafka_records_engine.sources._saved.taken_columns import BYTES, TakenColumn, is_text, raw_name, taken_columns
from kafka_records_engine.sources._saved.texts import ENCODINGS, Encoding, Undecided, encoding_of
from kafka_records_engine.sources.protocol import PLACE_COLUMNS, Context
from kafka_records_engine.sources.segment_files import Paths
from kafka_records_runtime.printable import printable

__all__ = ["SavedPartition", "SavedRows", "is_saved"]

T = TypeVar("T")

_SAMPLED_FILES: Final = 16
_SAMPLED_ROWS: Final = 4096
_MIXED: Final = 3
"""Files are put in order beforehand if the log partitions together would otherwise read all bytes N times."""
_GROUPED: Final = ("parquet", "arrow")


class SavedRows:
    """Rows that somebody saved, in files or folders, in any order, each as often as it likes.

    Parameters
    ----------
    paths
        A file, a folder, or several: paths of this machine, URLs, patterns (docs/sources.md). Folders are searched to
        their ends; names of folders as `partition=3` count as columns. What begins with `_` or `.` is left out.
    topic
        The topic of rows that do not name one.
    columns
        The column of the files for a column of raw rows (`{"value": "payload"}`), where their names do not tell; a dot
        leads to a member (`record.key`). None says that there is none. In CSV without a line of names, columns are
        called `1`, `2` and so on.
    encoding
        How texts hold bytes: `base64`, `hex`, or `text` for the bytes as they stand in the file; or one for `key` and
        one for `value`. It is told by the texts themselves where that is beyond doubt.
    format
        `parquet`, `arrow`, `avro`, `json`, `csv` or `delta`, where neither first bytes nor names tell.
    filesystem
        The file system that the paths belong to, of `pyarrow.fs` or fsspec. Without, each path says it.
    spools
        Whether rows may be put by log partition into a temporary file where each partition would have to read all
        files. Without, they are read once for each.

    Raises
    ------
    ValueError
        For an argument that makes no sense.
    """

    def __init__(
        self,
        paths: Paths | Place | Sequence[Place],
        topic: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        encoding: str | Mapping[str, str] | None = None,
        format: str | None = None,
        *,
        filesystem: Any = None,
        spools: bool = True,
    ) -> None:
        given = [paths] if isinstance(paths, str | PathLike | Place) else paths
        self._paths = [path if isinstance(path, Place) else fspath(path) for path in given]
        self._filesystem = filesystem
        self._topic = topic
        self._columns = _checked_columns(columns or {})
        self._encodings = _checked_encodings(encoding)
        self._format = _checked_format(format)
        self._spools = spools
        self._planned: _Plan | None = None

    def __repr__(self) -> str:
        return f"SavedRows({self.name!r})"

    @property
    def name(self) -> str:
        """The paths, as they were given, without secrets."""
        return ", ".join(without_secrets(str(path)) for path in self._paths)

    def topics(self) -> list[str]:
        """The topics that have a row, sorted. Raises LogSourceError."""
        return sorted({topic for topic, _ in self._plan().places})

    def partitions(self, topic: str) -> list[SavedPartition]:
        """The log partitions of `topic` that have a row, sorted. Raises LogSourceError where all rows are of others."""
        plan = self._plan()
        counted: set[str] = set()
        found = [plan.partition(place, counted) for place in sorted(plan.places) if place[0] == topic]
        if not found and plan.places:
            others = ", ".join(sorted({printable(name) for name, _ in plan.places}))
            raise LogSourceError(self.name, f"there is no row of topic {printable(topic)} here, but of {others}")
        return found

    def files(self) -> list[SavedFile]:
        """The files, and what is taken from them. Raises LogSourceError."""
        return self._described()[0]

    def parts(self) -> list[FilePart]:
        """The files in parts that can be read side by side. Raises LogSourceError."""
        return [part for file in self.files() for part in _parts(file)]

    def _plan(self) -> _Plan:
        files, notes = self._described()
        state = [(file.place, _asked(file.place, lambda files, path: files.version(path))) for file in files]
        if self._planned is None or self._planned.state != state:
            self._planned = _Plan(files, notes, state, self._spools)
        return self._planned

    def _described(self) -> tuple[list[SavedFile], list[Finding]]:
        listing = list_saved(self._paths, self._format, self._filesystem)
        found = [(each, self._open(each)) for each in listing.files]
        taken = [self._taken(each, reader) for each, reader in found]
        _check_alike([each.path for each, _ in found], taken)
        files = [
            SavedFile(
                each.place,
                each.format,
                _asked(each.place, lambda files, path: files.size(path)),
                tuple(self._given(each, columns).items()),
                columns,
            )
            for (each, _), columns in zip(found, taken, strict=True)
        ]
        encodings = {raw: self._encoding(raw, files, [reader for _, reader in found]) for raw in BYTES}
        files = [replace(file, encodings=_of_texts(file, encodings)) for file in files]
        return files, self._notes(listing, files)

    @staticmethod
    def _open(found: Found) -> FileReader:
        return SavedFile(found.place, found.format, 0, (), ()).open()

    def _taken(self, found: Found, reader: FileReader) -> tuple[TakenColumn, ...]:
        if not reader.fields and reader.groups is None:
            return ()  # a text file without a line
        known = {*found.folders, *found.name}
        columns = taken_columns(found.path, reader.fields, self._columns, known)
        if "topic" not in columns and "topic" not in known and self._topic is None:
            raise LogSourceError(found.path, "no column says which topic the rows are of: name it (topic=… or --topic)")
        return tuple(columns.values())

    def _given(self, found: Found, taken: tuple[TakenColumn, ...]) -> dict[str, Any]:
        """The values that all rows of a file share. A column decides first, then the name of a folder, then the name of
        the file, then the topic that the caller named."""
        there = {each.raw for each in taken}
        told: dict[str, Any] = {} if self._topic is None else {"topic": self._topic}
        told |= found.name
        told |= found.folders
        given = {}
        for raw, value in told.items():
            if raw in there or (raw in self._columns and raw != "topic"):
                continue
            kind = RAW_SCHEMA.field(raw).type
            try:
                given[raw] = pa.scalar(value).cast(kind).as_py()
            except pa.ArrowException:
                raise LogSourceError(found.path, f"{raw}={value} in its path is no {kind}") from None
        return given

    # -- how texts hold bytes ------------------------------------------------------------------------------------------

    def _encoding(self, raw: str, files: Sequence[SavedFile], readers: Sequence[FileReader]) -> Encoding | None:
        """How the texts of a column hold bytes; None where they are bytes."""
        asked = self._encodings.get(raw)
        if asked is not None:
            return asked
        samples: list[Any] = []
        where = None
        for file, reader in zip(files, readers, strict=True):
            taken = next((each for each in file.taken if each.raw == raw), None)
            if taken is None or not is_text(taken.type):
                continue
            where = where or (file.path, taken)
            if taken.encoding is not None:
                return taken.encoding
            if len(samples) < _SAMPLED_FILES:
                samples.append(_sample(file, reader, taken))
        if where is None:
            return None
        try:
            return encoding_of(samples) or "text"
        except Undecided as undecided:
            raise LogSourceError(
                where[0],
                f"the texts of the column {printable(where[1].column)}, taken for {raw}, {undecided}; say how they hold"
                ' bytes, encoding="base64", "hex" or "text" (--saved-encoding)',
            ) from None

    # -- what is told --------------------------------------------------------------------------------------------------

    def _notes(self, listing: SavedFiles, files: Sequence[SavedFile]) -> list[Finding]:
        notes = []
        if listing.left_out:
            names = ", ".join(printable(name) for name in listing.left_out[:3])
            more = f" and {len(listing.left_out) - 3} more" if len(listing.left_out) > 3 else ""
            notes.append(
                Finding(
                    "note",
                    UNREAD_LOG,
                    f"{names}{more}: of no known format",
                    "not read; format=… (--saved-format) says what they are",
                    file=self.name,
                )
            )
        guesses = self._guesses(files)
        if guesses:
            notes.append(
                Finding(
                    "note",
                    GUESSED_COLUMNS,
                    "; ".join(guesses),
                    "columns=… and encoding=… (--saved-column, --saved-encoding) say it otherwise",
                    file=self.name,
                )
            )
        return notes

    def _guesses(self, files: Sequence[SavedFile]) -> list[str]:
        told: dict[str, None] = {}
        for file in files:
            encodings = dict(file.encodings)
            for taken in file.taken:
                encoding = encodings.get(taken.raw)
                is_guess = taken.raw not in self._columns and taken.column != taken.raw
                if is_guess or (encoding is not None and taken.raw not in self._encodings):
                    how = "" if encoding is None else f", {_SAID[encoding]}"
                    told[f"column {printable(taken.column)} is taken for {taken.raw}{how}"] = None
        for file in files:
            for raw, value in file.given:
                if not (raw == "topic" and value == self._topic):
                    which = "folders" if self._is_by_folder(file, raw) else "files"
                    told[f"names of {which} are taken for {raw}"] = None
        return list(told)

    @staticmethod
    def _is_by_folder(file: SavedFile, raw: str) -> bool:
        return any(raw_name(part.partition("=")[0]) == raw for part in file.place.path.split("/") if "=" in part)


GUESSED_COLUMNS: Final = "GuessedColumns"
"""The `reason` of a note that says what columns of saved rows are taken for."""

_SAID: Final = {"base64": "base64", "hex": "hex digits", "text": "bytes as they stand in the text"}


def _sample(file: SavedFile, reader: FileReader, taken: TakenColumn) -> Any:
    try:
        for _, batch in reader.batches(top_columns(reader, [taken.column]), None if reader.groups is None else 0):
            return member(batch, taken.column, reader.fields).slice(0, _SAMPLED_ROWS)
    except (OSError, pa.ArrowException, EOFError) as error:
        raise unreadable(file.place, error) from None
    return pa.array([], pa.string())


def _of_texts(file: SavedFile, encodings: Mapping[str, Encoding | None]) -> tuple[tuple[str, Encoding], ...]:
    """The encodings of those columns that are texts in this file."""
    texts = [taken.raw for taken in file.taken if taken.raw in BYTES and is_text(taken.type)]
    return tuple((raw, encoding) for raw in texts if (encoding := encodings[raw]) is not None)


def _check_alike(paths: Sequence[str], taken: Sequence[tuple[TakenColumn, ...]]) -> None:
    """Raise LogSourceError where files have different columns: what one does not tell would be missing in part of the
    rows."""
    kept = [(path, {each.raw: each.column for each in columns}) for path, columns in zip(paths, taken, strict=True)]
    kept = [each for each in kept if each[1]]
    for path, columns in kept[1:]:
        first_path, first = kept[0]
        for raw in RAW_SCHEMA.names:
            if columns.get(raw) != first.get(raw):
                one, other = (
                    f"{printable(column)} is taken for {raw}" if column else f"there is no {raw}"
                    for column in (columns.get(raw), first.get(raw))
                )
                raise LogSourceError(
                    path,
                    f"{one}, and in {printable(first_path)} {other}: read files of one kind at a time, or say what to "
                    f'take, columns={{"{raw}": …}} or --saved-column {raw}=…',
                )


def _asked(place: Place, ask: Callable[[Files, str], T]) -> T:
    """What the file system says of a place. Raises LogSourceError."""
    try:
        return ask(place.files, place.path)
    except OSError as error:
        raise unreadable(place, error) from None


def _checked_columns(columns: Mapping[str, str | None]) -> dict[str, str | None]:
    for raw in columns:
        if raw not in RAW_SCHEMA.names:
            raise ValueError(f"raw rows have no column {raw!r}, but {', '.join(RAW_SCHEMA.names)}")
    return dict(columns)


def _checked_encodings(encoding: str | Mapping[str, str] | None) -> dict[str, Encoding]:
    asked = dict.fromkeys(BYTES, encoding) if isinstance(encoding, str) else dict(encoding or {})
    checked: dict[str, Encoding] = {}
    for raw, name in asked.items():
        if raw not in BYTES:
            raise ValueError(f"encoding is for key and value, not for {raw!r}")
        known = next((each for each in ENCODINGS if each == name), None)
        if known is None:
            raise ValueError(f"encoding is one of {', '.join(ENCODINGS)}, not {name!r}")
        checked[raw] = known
    return checked


def _checked_format(format: str | None) -> Format | None:
    if format is None:
        return None
    known = next((each for each in FORMATS if each == format), None)
    if known is None:
        raise ValueError(f"format is one of {', '.join(FORMATS)}, not {format!r}")
    return known


# -- the plan ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kept:
    """The rows of a log partition in the temporary file."""

    file: SavedFile
    pieces: tuple[FilePiece, ...]
    wrong: tuple[Wrong, ...]
    spool: Spool | None
    """Keeps the file. Only the process that wrote it has this."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Kept, (self.file, self.pieces, self.wrong, None)

    @property
    def is_there(self) -> bool:
        """Whether this process sees the file."""
        return os.path.exists(self.file.place.path)


class _Plan:
    """Which log partition is in which pieces of which files. Making one reads as little as it can."""

    def __init__(self, files: Sequence[SavedFile], notes: Sequence[Finding], state: object, spools: bool) -> None:
        self.state = state
        self._files, self._notes = tuple(files), tuple(notes)
        self._spool: Spool | None = None
        self.places: dict[tuple[str, int], list[FilePiece]] = {}
        if spools and any(file.format not in _GROUPED or file.open().groups is None for file in files):
            self._spool = Spool(files)
            self.places = self._spool.origins
            return
        for number, file in enumerate(files):
            for place, pieces in _pieces(number, file).items():
                self.places.setdefault(place, []).extend(pieces)
        if spools and _bytes_to_read(self.places) > _MIXED * sum(file.size for file in files):
            self._spool = Spool(files)

    def partition(self, place: tuple[str, int], counted: set[str]) -> SavedPartition:
        """One of the log partitions. Its files are added to those that were `counted` with another one."""
        pieces, spool = self.places[place], self._spool
        numbers = sorted({piece.file for piece in pieces})
        renumbered = tuple(replace(piece, file=numbers.index(piece.file)) for piece in pieces)
        files = tuple(self._files[number] for number in numbers)
        new = {file.path for file in files} - counted
        counted |= new
        made = SavedPartition(*place, files, renumbered, self._notes, len(new))
        if spool is None:
            return made
        wrong = tuple(each for each in spool.wrong if (each.topic, each.partition) == place)
        kept = _Kept(spool.file, tuple(spool.pieces.get(place, ())), wrong, spool)
        return replace(made, kept=kept)


def _pieces(number: int, file: SavedFile) -> dict[tuple[str, int], list[FilePiece]]:
    try:
        return pieces_of(number, file)
    except (OSError, pa.ArrowException, EOFError) as error:
        raise unreadable(file.place, error) from None


def _parts(file: SavedFile) -> Iterator[FilePart]:
    reader = file.open()
    given = dict(file.given).get("topic")
    column = next((taken.column for taken in file.taken if taken.raw == "topic"), None)
    groups: Sequence[int | None] = [None] if reader.groups is None else range(reader.groups)
    rows = reader.rows_of_groups()
    total = sum(rows)
    for group in groups:
        size = file.size if group is None else file.size * rows[group] // max(total, 1)
        told = None if group is None or column is None else reader.statistics(group, column)
        yield FilePart(file, group, told.least if told is not None and told.least == told.most else given, size)


def _bytes_to_read(places: Mapping[tuple[str, int], Sequence[FilePiece]]) -> int:
    """Of all log partitions together, when each reads the groups it has rows in."""
    groups = Counter[tuple[int, int | None]]()
    for pieces in places.values():
        for piece in pieces:
            groups[piece.file, piece.group] += piece.size
    return sum(groups[piece.file, piece.group] for pieces in places.values() for piece in pieces)


# -- parts of files, without an order ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class FilePart:
    """Some rows of a file, in its order."""

    file: SavedFile
    group: int | None
    topic: str | None
    """The topic of all of them, if that is known."""
    size: int
    """Bytes of the file, roughly."""

    def batches(self, columns: Sequence[str], on_finding: OnFinding) -> Iterator[Any]:
        """The rows, as record batches of these columns of raw rows; what the file does not tell is null."""
        reader = self.file.open()
        wanted = {*columns, *IN_LOG}
        wrong: list[Wrong] = []
        try:
            for first, batch in reader.batches(top_columns(reader, self.file.columns(wanted)), self.group):
                rows = usable_rows(self.file, reader, batch, first, wanted, wrong)
                for each in wrong:
                    on_finding(each.finding)
                wrong.clear()
                yield pa.RecordBatch.from_arrays([_column(rows, name) for name in columns], names=columns)
        except (OSError, pa.ArrowException, EOFError) as error:
            raise unreadable(self.file.place, error) from None


# -- log partitions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SavedPartition:
    """The rows of one partition in saved files."""

    topic: str
    partition: int
    files: tuple[SavedFile, ...]
    pieces: tuple[FilePiece, ...]
    notes: tuple[Finding, ...] = ()
    new_files: int = 0
    """How many of the files no partition before it has."""
    kept: _Kept | None = None

    @property
    def size(self) -> int:
        """The bytes of the files that are its own, roughly."""
        return sum(piece.size for piece in self.pieces)

    @property
    def in_memory(self) -> bool:
        """Never."""
        return False

    @property
    def end(self) -> int | None:
        """The offset behind the last row; None where there is none."""
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
                # Without the column nobody can tell markers from records, or they were left out.
                context.add_hole(last)
            yield pa.RecordBatch.from_arrays([_column(rows, name) for name in chosen], names=chosen)
            context.progress(self.size * reading.done // max(reading.total, 1))
        if end is not None and any(piece.last >= end for piece in self.pieces):
            context.add_hole(end - 1)
        context.counts.bytes += reading.done


def _column(rows: Any, name: str) -> Any:
    return rows.column(name) if name in rows.schema.names else pa.nulls(rows.num_rows, RAW_SCHEMA.field(name).type)


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
        self._differing: set[int] = set()
        self._lost: list[tuple[int, int]] = []
        """The first and last offset of what could not be read of pieces that are put in order."""
        self.total = sum(piece.size for piece in self._pieces)
        self.done = 0

    def _concerns(self, piece: FilePiece) -> bool:
        return (self._start is None or piece.last >= self._start) and (self._end is None or piece.first < self._end)

    def rows(self) -> Iterator[Any]:
        """The rows by their offsets, each once; what is found goes to the context."""
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
        """Batches in order, with a hole at every gap where a lost row may have stood."""
        before = -1
        for rows in batches:
            offsets = rows.column("offset").to_numpy()
            behind = np.concatenate(([before], offsets))
            for first, last in self._lost:
                gaps = (behind[:-1] + 1 < offsets) & (behind[:-1] < last) & (offsets > first)
                for hole in np.maximum(behind[:-1][gaps], first - 1).tolist():
                    self._context.add_hole(hole)
            before = int(offsets[-1])
            yield rows
        for first, last in self._lost:
            if before < last:
                self._context.add_hole(max(before, first - 1))

    def _read(
        self, piece: FilePiece, raws: Sequence[str] | None = None, counts: bool = True, *, is_sorted: bool = False
    ) -> Iterator[Any]:
        file, place = self._files[piece.file], (self._log.topic, self._log.partition)
        given, last = 0, piece.first - 1
        try:
            for rows in rows_of(file, piece, place, self._raws if raws is None else raws, self._wrong):
                given += rows.num_rows
                last = int(rows.column("offset")[-1].as_py())
                yield rows
        except (OSError, pa.ArrowException, EOFError) as error:
            if counts:
                first = last + 1 if is_sorted else piece.first
                self._tell_damage(file, piece, first, piece.rows - given, error)
                if is_sorted:
                    self._context.add_hole(last)
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
                self._context.report(wrong.finding)
                self._context.add_hole(wrong.offset - 1)
        self._wrong.clear()

    def _tell_damage(self, file: SavedFile, piece: FilePiece, first: int, lost: int, error: Exception) -> None:
        text = " ".join(str(error).split())
        part = "this" if piece.group is None else f"part {piece.group + 1}"
        self._context.report(
            Finding(
                "damage",
                DAMAGED_LOG,
                f"{part} cannot be read, with offsets from {first} to {piece.last}: {text}",
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
                "the one that was found first is taken; read the rows of one log at a time",
                self._log.topic,
                self._log.partition,
                offset=offset,
                file=self._files[0].path if len(self._files) == 1 and self._log.kept is None else None,
            )
        )
