"""Saved rows as a source: Parquet, Arrow, Avro, JSON lines, CSV and Delta tables, with keys and values as bytes or
text. The log partitions are determined from Parquet statistics, from folder and file names, or by reading the columns.
Formats that can only be read from start to end are read once, and their rows are sorted by log partition into a
temporary file. The same happens to Parquet and Arrow files whose groups mix partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from os import PathLike, fspath
from typing import Any, TypeVar

from kafka_records_engine.log.files.paths import without_secrets
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._saved.describing import Described, SavedAsked, described
from kafka_records_engine.sources._saved.file_parts import FilePart, parts_of
from kafka_records_engine.sources._saved.listing import is_saved, list_saved
from kafka_records_engine.sources._saved.planning import SavedPlan
from kafka_records_engine.sources._saved.saved_formats import FORMATS, asked_of
from kafka_records_engine.sources._saved.saved_partitions import SavedPartition
from kafka_records_engine.sources._saved.taken_columns import BYTES
from kafka_records_engine.sources._saved.texts import ENCODINGS, Encoding
from kafka_records_engine.sources._saved.times import TIME_UNITS
from kafka_records_engine.sources.segment_files import Paths
from kafka_records_runtime.text.printable import printable, some_names

__all__ = ["FilePart", "SavedPartition", "SavedRows", "is_saved"]

T = TypeVar("T")


class SavedRows:
    """Saved rows in files or folders, in any order. Duplicates are allowed.

    Parameters
    ----------
    paths
        One or more files or folders: paths on this machine, URLs, patterns (docs/sources.md). Folders are searched at
        all depths; folder names such as `partition=3` count as columns. Names that begin with `_` or `.` are ignored.
    topic
        The topic of rows that do not name one.
    columns
        For columns of raw rows, the columns of the files to use (`{"value": "payload"}`), if their names do not show
        it. A dot selects a member (`record.key`). None means that there is no such column. In CSV without a header
        line, columns are called `1`, `2` and so on.
    encoding
        How strings encode bytes: `base64`, `hex`, or `text` for unchanged bytes; or a mapping with one of these for
        `key` and one for `value`. By default, it is determined from the strings if they are unambiguous.
    format
        `parquet`, `arrow`, `avro`, `json`, `csv` or `delta`, if neither the first bytes nor the names of the files show
        it.
    time_unit
        `s`, `ms`, `us` or `ns`: the unit of numbers that say when a record was written, counted from 1970. The default
        is the only unit in which the numbers are plausible times. If there is no such unit, or if the column name says
        milliseconds (`timestamp_ms`), it is milliseconds.
    filesystem
        The file system of the paths, from `pyarrow.fs` or fsspec. By default, it is determined from each path.
    spools
        Whether rows may be sorted by log partition into a temporary file if each partition would otherwise have to read
        all files. If not, all files are read once for each partition.

    Raises
    ------
    ValueError
        If an argument is invalid.
    """

    def __init__(
        self,
        paths: Paths | Place | Sequence[Place],
        topic: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        encoding: str | Mapping[str, str] | None = None,
        format: str | None = None,
        time_unit: str | None = None,
        *,
        filesystem: Any = None,
        spools: bool = True,
    ) -> None:
        given = [paths] if isinstance(paths, str | PathLike | Place) else paths
        self._paths = [path if isinstance(path, Place) else fspath(path) for path in given]
        self._filesystem = filesystem
        self._asked = SavedAsked(
            topic,
            _checked_columns(columns or {}),
            _checked_encodings(encoding),
            None if format is None else _checked("format", format, FORMATS),
            None if time_unit is None else _checked("time_unit", time_unit, TIME_UNITS),
        )
        self._spools = spools
        self._state: object = None
        self._seen: Described | None = None
        self._planned: SavedPlan | None = None

    def __repr__(self) -> str:
        return f"SavedRows({self.name!r})"

    @property
    def name(self) -> str:
        """The paths as the caller passed them, without secrets."""
        return ", ".join(without_secrets(str(path)) for path in self._paths)

    def topics(self) -> list[str]:
        """The topics that have at least one row, sorted. Raises LogSourceError, also if there are no rows."""
        return sorted({topic for topic, _ in self._places()})

    def partitions(self, topic: str) -> list[SavedPartition]:
        """The log partitions of `topic` that have at least one row, sorted. Raises LogSourceError if there are none."""
        places, plan = self._places(), self._plan()
        counted: set[str] = set()
        found = [plan.partition(place, counted) for place in sorted(places) if place[0] == topic]
        if not found:
            others = some_names(sorted({name for name, _ in places}))
            raise LogSourceError(
                self.name, f"there are no rows of topic {printable(topic)} here, only rows of {others}"
            )
        return found

    def parts(self) -> list[FilePart]:
        """The files, split into parts that can be read in parallel. Raises LogSourceError."""
        described = self._described()
        files = zip(described.files, described.readers, strict=True)
        return [part for file, reader in files for part in parts_of(file, reader)]

    def _places(self) -> Collection[tuple[str, int]]:
        """The log partitions that have a row. Raises LogSourceError if there are none."""
        places = self._plan().places
        if not places:
            raise LogSourceError(self.name, "no rows were found")
        return places

    def _plan(self) -> SavedPlan:
        described = self._described()
        if self._planned is None:
            self._planned = SavedPlan(described, self._spools)
        return self._planned

    def _described(self) -> Described:
        """The contents of the files, determined once as long as the files do not change."""
        listing = list_saved(self._paths, self._asked.format, self._filesystem)
        state = [(each, asked_of(each.place, lambda files, path: files.version(path))) for each in listing.files]
        if self._seen is None or self._state != state:
            self._planned = None
            self._seen = described(self.name, listing, self._asked)
            self._state = state
        return self._seen


def _checked_columns(columns: Mapping[str, str | None]) -> dict[str, str | None]:
    for raw in columns:
        if raw not in RAW_SCHEMA.names:
            raise ValueError(f"raw rows have no column {raw!r}, only {', '.join(RAW_SCHEMA.names)}")
    return dict(columns)


def _checked_encodings(encoding: str | Mapping[str, str] | None) -> dict[str, Encoding]:
    asked = dict.fromkeys(BYTES, encoding) if isinstance(encoding, str) else dict(encoding or {})
    for raw in asked:
        if raw not in BYTES:
            raise ValueError(f"encoding applies to key and value, not to {raw!r}")
    return {raw: _checked("encoding", name, ENCODINGS) for raw, name in asked.items()}


def _checked(what: str, given: str, known: Sequence[T]) -> T:
    found = next((each for each in known if each == given), None)
    if found is None:
        raise ValueError(f"{what} must be one of {', '.join(map(str, known))}, not {given!r}")
    return found
