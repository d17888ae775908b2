"""Which files of saved rows there are, and what their places say: folders `partition=3`, names `orders+3+00000000`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from kafka_records_engine.log.discovery import SUFFIXES, LogSourceError
from kafka_records_engine.sources._saved.saved_formats import Format, format_of_file, format_of_name
from kafka_records_engine.sources._saved.tabular import package_missing
from kafka_records_engine.sources._saved.taken_columns import raw_name

_DELTA: Final = "_delta_log"
_NULL: Final = "__HIVE_DEFAULT_PARTITION__"
_SINK_NAME: Final = re.compile(r"([A-Za-z0-9._-]+)[+-]([0-9]{1,10})[+-]([0-9]{1,20})(\.[a-z0-9.]+)?")
"""Files of sink connectors: topic, partition and first offset."""


class Found(NamedTuple):
    """A file of saved rows."""

    path: str
    format: Format
    folders: dict[str, str]
    """What the names of folders say, by the column of raw rows."""
    name: dict[str, str]
    """What the name of the file says."""


class SavedFiles(NamedTuple):
    """The files of a source."""

    files: list[Found]
    left_out: list[str]
    """Files in folders that are in no known format."""


def is_saved(path: str) -> bool:
    """Whether this is a file of saved rows, or a folder with some and no log segments. Asks the file system."""
    if os.path.isdir(path):
        return _holds_saved(path)
    if path.endswith(SUFFIXES) or not os.path.isfile(path):
        return False
    try:
        return format_of_file(path) is not None
    except LogSourceError:
        return format_of_name(path) is not None


def _holds_saved(folder: str) -> bool:
    for place, folders, names in os.walk(folder):
        if any(name.endswith(SUFFIXES) for name in names):
            return False
        if _DELTA in folders or any(_counts(name) and format_of_name(name) for name in names):
            return True
        folders[:] = sorted(name for name in folders if _counts(name))
        del place
    return False


def _counts(name: str) -> bool:
    """Whether a file or folder holds rows: those of Spark and Hadoop that do not begin with these."""
    return not name.startswith(("_", ".")) or "=" in name


def list_saved(paths: Sequence[str], format: Format | None) -> SavedFiles:
    """The files below some paths, by name. Raises LogSourceError for a path without any."""
    files: list[Found] = []
    left_out: list[str] = []
    for path in paths:
        if not os.path.exists(path):
            raise LogSourceError(path, "there is no such file or directory")
        if os.path.isdir(path):
            found = _in_folder(path, format, left_out)
            if not found:
                raise LogSourceError(path, _nothing_in(path, left_out))
            files += found
        else:
            known = format or format_of_file(path)
            if known is None:
                raise LogSourceError(
                    path, "this is none of Parquet, Arrow, Avro, JSON and CSV by its first bytes and its name"
                )
            files.append(Found(path, known, {}, _told_by_name(path)))
    places = [os.path.realpath(each.path) for each in files]
    for each, place in zip(files, places, strict=True):
        if places.count(place) > 1 and len(places) < 10_000:
            raise LogSourceError(each.path, "this file is named twice: read it once")
    return SavedFiles(files, left_out)


def _nothing_in(folder: str, left_out: list[str]) -> str:
    if left_out:
        return f"no file here is Parquet, Arrow, Avro, JSON or CSV: {', '.join(map(os.path.basename, left_out[:3]))}"
    return "there is no file with rows in this folder"


def _in_folder(folder: str, format: Format | None, left_out: list[str]) -> list[Found]:
    if format == "delta" or (format is None and os.path.isdir(os.path.join(folder, _DELTA))):
        return list(_delta(folder))
    found = []
    for path in _files(folder):
        known = format or format_of_file(path)
        if known is None:
            left_out.append(path)
            continue
        found.append(Found(path, known, _told_by_folders(os.path.relpath(path, folder), folder), _told_by_name(path)))
    return found


def _files(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder, onerror=_cannot_list):
        if _DELTA in folders and place != folder:
            raise LogSourceError(place, "this is a Delta table: name it by itself")
        if "metadata" in folders and any(
            name.endswith(".metadata.json") for name in os.listdir(os.path.join(place, "metadata"))
        ):
            raise LogSourceError(
                place, "this is an Iceberg table, whose files also hold deleted rows: save it as Parquet first"
            )
        folders[:] = sorted(name for name in folders if _counts(name))
        yield from (os.path.join(place, name) for name in sorted(names) if _counts(name))


def _cannot_list(error: OSError) -> None:
    raise LogSourceError(str(error.filename), f"this cannot be read: {error.strerror or error}")


def _told_by_folders(relative: str, root: str) -> dict[str, str]:
    told: dict[str, str] = {}
    parts = [*os.path.normpath(os.path.abspath(root)).split(os.sep), *relative.split(os.sep)[:-1]]
    for part in parts:
        name, equals, value = part.partition("=")
        raw = raw_name(name) if equals else None
        if raw is not None and value != _NULL:
            told[raw] = unquote(value)
    return told


def _told_by_name(path: str) -> dict[str, str]:
    match = _SINK_NAME.fullmatch(os.path.basename(path))
    return {"topic": match[1], "partition": match[2]} if match else {}


def _delta(folder: str) -> Iterator[Found]:
    try:
        import deltalake
    except ModuleNotFoundError:
        raise package_missing(folder, "a Delta table", "deltalake", "delta") from None
    try:
        table = deltalake.DeltaTable(folder)
        features = set(table.protocol().reader_features or ())
    except Exception as error:  # deltalake has no common class of its errors
        raise LogSourceError(
            folder, f"this is no Delta table that can be read: {' '.join(str(error).split())}"
        ) from None
    unread = features & {"deletionVectors", "columnMapping"}
    if unread:
        raise LogSourceError(
            folder,
            f"this Delta table uses {', '.join(sorted(unread))}, which this does not read: save its rows as Parquet",
        )
    actions = table.get_add_actions(flatten=True)
    for path in sorted(actions.column("path").to_pylist()):
        place = os.path.join(folder, unquote(path))
        yield Found(place, "parquet", _told_by_folders(unquote(path), folder), {})
