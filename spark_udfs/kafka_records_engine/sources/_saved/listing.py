"""Lists the files of saved rows, with the values in their paths: folders `partition=3`, names `orders+3+00000000`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from kafka_records_engine.log.files.discovery import SUFFIXES, folders_with_logs
from kafka_records_engine.log.files.paths import inside_of, is_archive, places_of
from kafka_records_engine.log.files.places import Entry, Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._saved.saved_formats import (
    Format,
    format_of_file,
    format_of_name,
    read_head,
    unreadable,
)
from kafka_records_engine.sources._saved.tabular import OF_A_SNAPSHOT, package_missing
from kafka_records_engine.sources._saved.taken_columns import raw_name
from kafka_records_engine.sources._stored.stored_names import MARK

_DELTA: Final = "_delta_log"
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_SINK_NAME: Final = re.compile(r"([A-Za-z0-9._-]+)[+-]([0-9]{1,10})[+-]([0-9]{1,20})(\.[a-z0-9.]+)?")
"""The file names of sink connectors: topic, partition and first offset."""
_LOG_FOLDER: Final = re.compile(r"[A-Za-z0-9._-]+-[0-9]+")
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log(\.swap)?")
_MAGIC_AT: Final = 16
_LAST_MAGIC: Final = 2
"""The byte of a batch with its magic, and the highest known magic (section Record Batch of Kafka's documentation)."""


class Found(NamedTuple):
    """A file of saved rows."""

    place: Place
    format: Format
    folders: dict[str, str]
    """The values in folder names, by raw-row column."""
    name: dict[str, str]
    """The values in the file name, such as the topic."""

    @property
    def path(self) -> str:
        """The name of the file in messages."""
        return str(self.place)


class SavedFiles(NamedTuple):
    """The files of a source."""

    files: list[Found]
    left_out: list[str]
    """Files in folders that have an unknown format."""
    lost: list[LogSourceError]
    """Why some of the paths contain no files."""


def are_saved(paths: Sequence[str]) -> bool:
    """Whether at least one of these is saved rows (`is_saved`), and no other path contains anything."""
    others = [path for path in paths if not is_saved(path)]
    return len(others) < len(paths) and not any(map(_is_there, others))


def _is_there(path: str) -> bool:
    try:
        return any(place.kind is not None for place in places_of(path))
    except (LogSourceError, OSError):
        return False


def is_saved(path: str) -> bool:
    """Whether `path` is a file of saved rows, or a folder with such files and, at any depth, without log segments."""
    try:
        places = places_of(path)
        return bool(places) and all(map(_is_saved, places))
    except (LogSourceError, OSError):
        return False


def _is_saved(place: Place) -> bool:
    place = _opened_up(place)
    kind = place.kind
    if place.files.is_archive and kind == "folder":
        return _holds_saved(place) and not _holds_segments(place)
    if kind == "folder":
        return _holds_saved(place) and not folders_with_logs(place)
    if kind != "file" or place.path.endswith(SUFFIXES):
        return False
    try:
        return format_of_file(place) is not None
    except LogSourceError:
        return format_of_name(place.path) is not None


def _opened_up(place: Place) -> Place:
    """The content of an archive; any other place is returned unchanged."""
    return inside_of(place) if is_archive(place) else place


def _holds_segments(folder: Place) -> bool:
    """Whether there are segments at any depth, because directories are often archived with their full path."""
    entries = folder.listed()
    return any(
        _is_segment(folder, entry) if entry.kind != "folder" else _holds_segments(folder.child(entry.name))
        for entry in entries
    )


def _is_segment(folder: Place, entry: Entry) -> bool:
    """Whether this is a segment file: it has a name like those that brokers use, or begins like a batch. The extension
    `.log` is not enough, because many programs use it for text."""
    if not entry.name.endswith(SUFFIXES) or _SEGMENT.fullmatch(entry.name):
        return entry.name.endswith(SUFFIXES)
    try:
        head = read_head(folder.child(entry.name))
    except LogSourceError:
        return True
    return len(head) > _MAGIC_AT and head[_MAGIC_AT] <= _LAST_MAGIC


def _holds_saved(folder: Place) -> bool:
    """Whether there are saved rows and no segments. Other files next to segments are there by accident, such as a list
    of partitions to move, or an export."""
    entries = sorted(folder.listed(), key=lambda entry: entry.name)
    if any(_is_segment(folder, entry) for entry in entries):
        return False
    names = [entry.name for entry in entries if _counts(entry.name)]
    if any(entry.name == _DELTA for entry in entries) or any(format_of_name(name) for name in names):
        return not _is_data_directory(folder, entries)
    folders = (entry.name for entry in entries if _counts(entry.name) and entry.kind == "folder")
    return any(_holds_saved(folder.child(name)) for name in folders) and not _is_data_directory(folder, entries)


def _is_data_directory(folder: Place, entries: Sequence[Entry]) -> bool:
    """Whether this is a broker's data directory: it has a broker's own files, or folders <topic>-<partition> with
    segments."""
    if any(entry.name == "meta.properties" or entry.name.endswith("-offset-checkpoint") for entry in entries):
        return True
    logs = (entry.name for entry in entries if _LOG_FOLDER.fullmatch(entry.name) and entry.kind == "folder")
    below = map(folder.child, logs)
    return any(_is_segment(inside, inner) for inside in below for inner in inside.listed())


def _counts(name: str) -> bool:
    """Whether a file or folder may contain rows. Spark and Hadoop start the names of their own files with `_` or
    `.`."""
    return not name.startswith(("_", ".")) or "=" in name


def list_saved(paths: Sequence[str | Place], format: Format | None, filesystem: Any = None) -> SavedFiles:
    """The files below some paths, sorted by name. Raises LogSourceError if no path has one."""
    files: list[Found] = []
    left_out: list[str] = []
    lost: list[LogSourceError] = []
    for path in paths:
        try:
            for given in places_of(path, filesystem):
                files += _in_place(_opened_up(given), format, left_out)
        except LogSourceError as error:
            lost.append(error)
    if lost and not files:
        raise lost[0]
    known: set[Place] = set()
    for each in files:
        place = each.place.resolved()
        if place in known:
            raise LogSourceError(each.path, "this file is given twice: give it once")
        known.add(place)
    return SavedFiles(files, left_out, lost)


def _in_place(place: Place, format: Format | None, left_out: list[str]) -> list[Found]:
    try:
        return _at(place, format, left_out)
    except OSError as error:
        raise unreadable(place, error) from None


def _at(place: Place, format: Format | None, left_out: list[str]) -> list[Found]:
    kind = place.kind
    if kind is None:
        raise LogSourceError(str(place), "there is no such file or directory")
    if kind == "folder":
        found = _in_folder(place, format, left_out)
        if not found:
            raise LogSourceError(str(place), _nothing_in(left_out))
        return found
    known = format or format_of_file(place)
    if known is None:
        what = "this is not one of Parquet, Arrow, Avro, JSON and CSV by its first bytes and its name"
        raise LogSourceError(str(place), what)
    return [Found(place, known, {}, _told_by_name(place))]


def _nothing_in(left_out: list[str]) -> str:
    if left_out:
        return f"no file here is Parquet, Arrow, Avro, JSON or CSV: {', '.join(left_out[:3])}"
    return "there is no file with rows in this folder"


def _in_folder(folder: Place, format: Format | None, left_out: list[str]) -> list[Found]:
    if format == "delta" or (format is None and folder.child(_DELTA).kind == "folder"):
        return list(_delta(folder))
    found = []
    for place, folders in _files(folder, ()):
        known = format or (None if place.name.endswith(SUFFIXES) else format_of_file(place))
        if known is None:
            left_out.append(place.name)
        else:
            told = _told_by_folders([*folder.resolved().path.split("/"), *folders])
            found.append(Found(place, known, told, _told_by_name(place)))
    return found


def _files(folder: Place, below: tuple[str, ...]) -> Iterator[tuple[Place, tuple[str, ...]]]:
    """The files in a folder and its subfolders, with the names of the subfolders."""
    entries = {entry.name: entry.kind for entry in folder.listed()}
    if below and entries.get(_DELTA) == "folder":
        raise LogSourceError(str(folder), "a Delta table cannot be read together with other files: give only the table")
    if MARK in entries:
        how = ": unpack it there" if folder.files.is_archive else ""
        raise LogSourceError(str(folder), f"{OF_A_SNAPSHOT}{how}")
    if entries.get("metadata") == "folder" and any(
        entry.name.endswith(".metadata.json") for entry in folder.child("metadata").listed()
    ):
        raise LogSourceError(
            str(folder), "this is an Iceberg table, whose files also contain deleted rows: save it as Parquet first"
        )
    names = sorted(name for name in entries if _counts(name))
    yield from ((folder.child(name), below) for name in names if entries[name] == "file")
    for name in names:
        if entries[name] == "folder":
            yield from _files(folder.child(name), (*below, name))


def _told_by_folders(names: Iterable[str]) -> dict[str, str]:
    told: dict[str, str] = {}
    for part in names:
        name, equals, value = part.partition("=")
        raw = raw_name(name) if equals else None
        # Ignore other columns, because all rows of a folder have the same value, which is impossible for an offset or a
        # time. A folder `ts=20260101` does not name the time of a record.
        if raw in ("topic", "partition") and value != _NULL:
            told[raw] = unquote(value)
    return told


def _told_by_name(place: Place) -> dict[str, str]:
    match = _SINK_NAME.fullmatch(place.path.rpartition("/")[2])
    return {"topic": match[1], "partition": match[2]} if match else {}


def _delta(folder: Place) -> Iterator[Found]:
    if not folder.files.is_local:
        raise LogSourceError(
            str(folder),
            "Delta tables can be read only from local disk: read the Parquet files of the table, or copy it to local "
            "disk",
        )
    try:
        import deltalake
    except ModuleNotFoundError:
        raise package_missing(folder, "a Delta table", "deltalake", "delta") from None
    try:
        table = deltalake.DeltaTable(folder.path)
        features = set(table.protocol().reader_features or ())
        paths = sorted(map(unquote, table.get_add_actions(flatten=True).column("path").to_pylist()))
    except Exception as error:  # deltalake's errors have no common base class
        what = f"this Delta table cannot be read: {' '.join(str(error).split())}"
        raise LogSourceError(str(folder), what) from None
    unread = features & {"deletionVectors", "columnMapping"}
    if unread:
        raise LogSourceError(
            str(folder),
            f"this Delta table uses {', '.join(sorted(unread))}, which cannot be read: save its rows as Parquet",
        )
    root = folder.resolved().path.split("/")
    for path in paths:
        yield Found(folder.child(path), "parquet", _told_by_folders([*root, *path.split("/")[:-1]]), {})
