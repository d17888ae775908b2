"""Finds logs: data directories, partition folders and single files, on any file system and in archives.

A broker's data directory contains one folder `<topic>-<partition>` per log partition. Its `.log` files are named after
the offset they start at. Other files (indexes, snapshots, checkpoints, files that were deleted or cleaned) are not part
of the log, with one exception: a `.log.swap` file is the complete replacement for older files, which the cleaner has
not yet renamed (`org.apache.kafka.storage.internals.log.LogLoader`).

Discovery only determines which logs exist. The files of a log are listed when it is opened (`_opening`), because a live
broker constantly replaces them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from os import PathLike
from typing import Any, Final

from kafka_records_engine.findings import Finding, in_file
from kafka_records_engine.log.files.local_files import LOCAL
from kafka_records_engine.log.files.paths import expanded, inside_of, is_archive, without_secrets
from kafka_records_engine.log.files.places import Entry, Files, Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable, some_names
from kafka_records_runtime.wire.primitives import MAX_INT32

__all__ = ["SUFFIXES", "FoundLog", "LogSourceError", "find_logs"]

SUFFIXES: Final = (".log", ".log.swap")
"""Suffixes of the names of files that contain records."""

METADATA_TOPIC: Final = "__cluster_metadata"
"""The topic of the metadata log, which has only partition 0."""

CHECKPOINT_SUFFIX: Final = ".checkpoint"
"""The suffix of checkpoints of a metadata log. Checkpoints also contain records, with their own offsets, and are read
only if the caller names them."""

_FOLDER: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]+)")
_PUT_AWAY: Final = re.compile(r".*-(?:delete|future|stray)")
"""Folders of replicas that are deleted, being moved from another disk, or no longer assigned to this broker."""
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log(\.swap)?")
_MOST_DIGITS: Final = 20
_AT_ONCE: Final = 16
"""The number of folders in an object store that are listed in parallel."""

_GIVE: Final = "give the data directory of a broker (log.dirs), a folder in it, or a .log file"

_LEVELS: Final = 2
"""The number of levels below a folder without logs to search for a folder with logs."""
_MOST_FOLDERS: Final = 300

_Asked = str | PathLike[str] | Place
_Folders = list[tuple[Place, list[str] | None]]
"""Partition folders, each with the names of the requested files (None: all files)."""


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The log of one partition, found but not opened. The object is small, can be pickled, and is read by
    `read_partition`."""

    topic: str
    partition: int
    folder: str
    """The path of the folder that contains its files."""
    files: tuple[str, ...] | None = None
    """The names of the requested files; None means all files that the log has when it is read."""
    size: int = field(default=0, compare=False)
    """The total size of these files in bytes when the log was found."""
    system: Files = LOCAL
    """The file system that the folder belongs to."""
    lost: tuple[Finding, ...] = field(default=(), compare=False)
    """Findings about other sources of the same call in which there was nothing to read."""

    @property
    def place(self) -> Place:
        """The folder that contains its files."""
        return Place(self.system, self.folder)


def find_logs(
    sources: Sequence[_Asked], topic: str | None = None, unnamed: str | None = None, filesystem: Any = None
) -> list[FoundLog]:
    """The log partitions in `sources`, sorted by topic and partition.

    A source is a data directory, a partition folder or a `.log` file; an archive of these; or a pattern (see `paths`).
    Matches of a pattern that contain no log are ignored. `topic` leaves out every other topic. If a file's folder is
    not named `<topic>-<partition>`, the file belongs to partition 0 of `unnamed` or, without it, of `topic`.
    `filesystem`, of `pyarrow.fs` or fsspec, is the file system of all paths; without it, each path determines its own.

    The name of a partition folder follows Kafka's rule (`LocalLog.parseTopicPartitionName`): the topic, the last `-`,
    and an int32. So folders of deleted, stray and future replicas are not read.

    A partition folder that cannot be listed is returned, and reported when it is read. The same applies to a source
    that does not exist or has no log, if another source has one. Raises LogSourceError if no source has a log, or if a
    partition is in two places.
    """
    looks = _Looks(topic)
    asked: dict[Place, tuple[Place, list[str] | None]] = {}
    parents: dict[str, str] = {}
    lost: list[LogSourceError] = []
    for source in sources:
        try:
            folders = _source_folders(source, filesystem, looks)
        except LogSourceError as error:
            lost.append(error)
            continue
        for folder, files in folders:
            resolved = _resolved(folder, parents)
            known = asked.setdefault(resolved, (folder, files))
            if known[1] is not None and files is not known[1]:
                asked[resolved] = (known[0], None if files is None else [*known[1], *files])
    named = [
        (*_told_of(folder, resolved.name, files, unnamed or topic), folder, files)
        for resolved, (folder, files) in asked.items()
    ]
    chosen = [each for each in named if topic in (None, each[0])]
    if lost and not asked:
        raise lost[0]
    if topic is not None and not chosen:
        there = some_names(sorted({name for name, *_ in named})) or "nothing"
        raise LogSourceError(
            _listed(sources), f"there is no log of topic {printable(topic)} here, only logs of {there}"
        )
    chosen.sort(key=lambda each: each[:2])
    for one, other in pairwise(chosen):
        if one[:2] == other[:2]:
            places = _listed((one[2], other[2]))
            raise LogSourceError(places, f"both contain {one[0]}-{one[1]}; read one of them at a time")
    looks.look([folder for _, _, folder, _ in chosen])
    findings = tuple(map(not_read, lost))
    return [_found(*each, looks, findings) for each in chosen]


def not_read(error: LogSourceError) -> Finding:
    """The finding about an unreadable source, if the other sources are read."""
    return in_file(printable(error.path), None, None, error.detail, "nothing in it is read")


def _found(
    topic: str, partition: int, folder: Place, files: list[str] | None, looks: _Looks, lost: tuple[Finding, ...]
) -> FoundLog:
    names = None if files is None else tuple(sorted(set(files)))
    size = 0
    with suppress(OSError):
        for entry in looks.files(folder):
            if names is None or entry.name in names:
                with suppress(OSError):
                    size += entry.size if entry.kind == "file" else 0
    return FoundLog(topic, partition, folder.path, names, size, folder.files, lost)


def _resolved(folder: Place, parents: dict[str, str]) -> Place:
    """The same as `Place.resolved`. A data directory may have thousands of folders with the same parent, which is
    resolved once and remembered in `parents`."""
    parent, name = os.path.split(folder.path)
    if not folder.files.is_local or not parent or name in ("", ".", "..") or os.path.islink(folder.path):
        return folder.resolved()
    if parent not in parents:
        parents[parent] = os.path.realpath(parent)
    return Place(folder.files, os.path.join(parents[parent], name))


def _listed(sources: Iterable[_Asked]) -> str:
    return ", ".join(str(source) if isinstance(source, Place) else without_secrets(str(source)) for source in sources)


# -- from a source to partition folders --------------------------------------------------------------------------------


class _HoldsNoLog(LogSourceError):
    """The place can be read, but contains no log."""


def _source_folders(source: _Asked, filesystem: Any, looks: _Looks) -> _Folders:
    places, is_pattern = expanded(source, filesystem)
    if not is_pattern:
        return _folders_at(places[0], looks)
    found: _Folders = []
    for place in places:
        if not _PUT_AWAY.fullmatch(place.name):
            with suppress(_HoldsNoLog):
                found += _folders_at(place, looks)
    if not found:
        matches = plural(len(places), "name")
        raise LogSourceError(_listed([source]), f"{matches} match this pattern, but none contains a log")
    return found


def _folders_at(place: Place, looks: _Looks) -> _Folders:
    try:
        return _folders(place, looks)
    except OSError as error:
        raise LogSourceError(str(place), f"this cannot be read: {error.strerror or error}") from error


def _folders(source: Place, looks: _Looks) -> _Folders:
    kind = source.kind
    if kind is None:
        raise LogSourceError(str(source), "there is no such file or directory")
    if is_archive(source):
        return _folders(inside_of(source), looks)
    if kind == "file":
        if not source.name.endswith((*SUFFIXES, CHECKPOINT_SUFFIX)):
            raise _HoldsNoLog(str(source), f"this is not a .log file: {_GIVE}")
        return [(source.parent, [source.name])]
    if kind == "other":
        raise _HoldsNoLog(str(source), "this is neither a file nor a directory")
    if place_of(source.resolved().name) and looks.has_files(source):
        return [(source, None)]
    entries = sorted(source.listed(), key=lambda entry: entry.name)
    if not entries:
        raise _HoldsNoLog(str(source), f"the directory is empty: {_GIVE}")
    folders = [source.child(entry.name) for entry in entries if place_of(entry.name) and entry.kind == "folder"]
    looks.look(folders)
    partitions = [folder for folder in folders if looks.has_files(folder)]
    if partitions:
        return [(folder, None) for folder in partitions]
    if looks.has_files(source) and not (_are_other_logs(source, looks) and folders_with_logs(source)):
        return [(source, None)]
    if source.files.is_archive:
        # An archive may contain a directory with its whole path, or several directories.
        below = [source.child(entry.name) for entry in entries if entry.kind == "folder"]
        return _below(source, below, looks)
    what = "there is no segment file in this directory, nor in a folder <topic>-<partition> below it"
    deeper = [str(folder) for folder in folders_with_logs(source)]
    if deeper:
        what += f"; give the folder that contains logs: {some_names(deeper)}"
    raise _HoldsNoLog(str(source), what)


def _are_other_logs(folder: Place, looks: _Looks) -> bool:
    """Whether no file in a folder has the name of a segment, for example because another program writes its own
    `broker.log` there. Raises OSError."""
    return not any(_SEGMENT.fullmatch(entry.name) for entry in looks.files(folder))


def folders_with_logs(above: Place) -> list[Place]:
    """Folders that contain partition folders with logs, one or more levels below this folder, as suggestions for the
    user.

    At most a few hundred folders on this machine are checked. Object stores are not searched, because each check is a
    request.
    """
    found: list[Place] = []
    level, left = [above], _MOST_FOLDERS
    for _ in range(_LEVELS):
        below: list[Place] = []
        for folder in level:
            with suppress(OSError):
                entries = sorted(folder.listed(), key=lambda entry: entry.name) if folder.files.is_local else []
                below += [folder.child(entry.name) for entry in entries if entry.kind == "folder"]
        level = below[:left]
        left -= len(level)
        holders = [folder for folder in level if _holds_partitions(folder)]
        found += holders
        level = [folder for folder in level if folder not in holders]
    return found


def _holds_partitions(folder: Place) -> bool:
    """Whether a folder has a partition folder that contains a file of a log."""
    try:
        names = (entry.name for entry in folder.listed() if place_of(entry.name) and entry.kind == "folder")
        return any(inner.name.endswith(SUFFIXES) for name in names for inner in folder.child(name).listed())
    except OSError:
        return False


def _below(source: Place, folders: Sequence[Place], looks: _Looks) -> _Folders:
    """The partition folders in some folders of an archive. Raises LogSourceError if there are none."""
    found: _Folders = []
    for folder in folders:
        with suppress(_HoldsNoLog):
            found += _folders(folder, looks)
    if not found:
        what = "there is no .log file in this archive, and no file of saved rows"
        raise _HoldsNoLog(str(source), what)
    return found


class _Looks:
    """Lists folders to find files of logs, each folder once.

    On an object store, each listing is a request. Many are sent in parallel, and folders of other topics are recognized
    by name.
    """

    def __init__(self, topic: str | None) -> None:
        self._topic = topic
        self._seen: dict[Place, Sequence[Entry] | OSError] = {}

    def look(self, folders: Sequence[Place]) -> None:
        """List folders in advance that `files` and `has_files` will need."""
        wanted = [each for each in folders if not each.files.is_local and each not in self._seen and self._counts(each)]
        if len(wanted) > 1:
            with ThreadPoolExecutor(min(_AT_ONCE, len(wanted))) as pool:
                self._seen.update(zip(wanted, pool.map(_look_into, wanted), strict=True))

    def files(self, folder: Place) -> Sequence[Entry]:
        """The files of a log in a folder. Raises OSError if the folder cannot be listed."""
        found = self._seen.get(folder)
        if found is None:
            found = self._seen[folder] = _look_into(folder)
        if isinstance(found, OSError):
            raise found
        return found

    def has_files(self, folder: Place) -> bool:
        """Whether a folder contains a log. False if the folder is gone; True if listing it is forbidden."""
        if not self._counts(folder):
            return True
        try:
            return bool(self.files(folder))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True

    def _counts(self, folder: Place) -> bool:
        told = None if folder.files.is_local else place_of(folder.name)
        return told is None or self._topic in (None, told[0])


def _look_into(folder: Place) -> Sequence[Entry] | OSError:
    try:
        return [entry for entry in folder.listed() if entry.name.endswith(SUFFIXES)]
    except OSError as error:
        return error


def place_of(name: str) -> tuple[str, int] | None:
    """The topic and partition of a folder with this name; None if this is not the name of a partition folder."""
    match = _FOLDER.fullmatch(name)
    if not match or len(match[2]) > _MOST_DIGITS or int(match[2]) > MAX_INT32:
        return None
    return match[1], int(match[2])


def _told_of(folder: Place, name: str, files: list[str] | None, topic: str | None) -> tuple[str, int]:
    """The topic and partition of files in a folder with this name.

    Raises LogSourceError if a checkpoint is read together with other files, because it has its own offsets.
    """
    if not any(name.endswith(CHECKPOINT_SUFFIX) for name in files or ()):
        return _told(folder, name, files, topic)
    if len(set(files or ())) > 1:
        raise LogSourceError(
            str(folder), "a checkpoint cannot be read together with other files: give one file at a time"
        )
    return METADATA_TOPIC, 0


def _told(folder: Place, name: str, files: list[str] | None, topic: str | None) -> tuple[str, int]:
    told = place_of(name)
    if told:
        return told
    if topic is None:
        if files:
            what = "this file is not in a folder named <topic>-<partition>; say which topic it holds"
            raise LogSourceError(str(folder.child(files[0])), what)
        what = "the name of this folder is not <topic>-<partition>; say which topic it holds"
        raise LogSourceError(str(folder), what)
    return topic, 0
