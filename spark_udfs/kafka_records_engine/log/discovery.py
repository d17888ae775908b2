"""Where logs are: data directories, partition folders and single files.

A broker's data directory holds one folder `<topic>-<partition>` per log partition. Its `.log` files are named for the
offset they start at. All other files (indexes, snapshots, checkpoints, files that were deleted or cleaned) are not part
of the log, with one exception: a `.log.swap` file is the complete replacement of older files that the cleaner has not
put in place (`org.apache.kafka.storage.internals.log.LogLoader`).

To find logs is to say which ones there are. The files of a log are listed when it is opened (`_opening`), because a
live broker replaces them all the time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.printable import printable

SUFFIXES: Final = (".log", ".log.swap")
"""Files that hold records have names with these ends."""

_FOLDER: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-([0-9]+)")
_LARGEST_PARTITION: Final = (1 << 31) - 1
_MOST_DIGITS: Final = 20


class LogSourceError(KafkaRecordsError, ValueError):
    """A source in which no log can be found; `detail` says why, `path` is the source as it was given."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.detail}"


@dataclass(frozen=True, slots=True)
class FoundLog:
    """The log of one partition, found and not opened. Small, picklable, read by `read_partition`."""

    topic: str
    partition: int
    folder: str
    """The folder with its files."""
    files: tuple[str, ...] | None = None
    """The names of the files that were asked for; None for all files that the log has when it is read."""
    size: int = field(default=0, compare=False)
    """Bytes of these files when the log was found."""


def find_logs(sources: Sequence[Path | str], topic: str | None = None, unnamed: str | None = None) -> list[FoundLog]:
    """The log partitions in `sources`, sorted by topic and partition.

    A source is a data directory, a partition folder, or a `.log` file. `topic` leaves out every other topic. Where the
    folder of a file is not called `<topic>-<partition>`, the file belongs to `unnamed` (or else `topic`), partition 0.

    The name of a partition folder follows Kafka's rule (`LocalLog.parseTopicPartitionName`): the topic, the last `-`,
    and an int32. So folders of deleted, stray and future replicas are not read.

    A partition folder that cannot be listed is found here, and reported when it is read. Raises
    LogSourceError for a source that is not there or holds no log, and for a partition found in two places.
    """
    asked: dict[Path, tuple[Path, list[str] | None]] = {}
    for source in sources:
        for folder, files in _source_folders(source):
            known = asked.setdefault(folder.resolve(), (folder, files))
            if known[1] is not None and files is not known[1]:
                asked[folder.resolve()] = (known[0], None if files is None else [*known[1], *files])
    named = [(*_told(folder, unnamed or topic), folder, files) for folder, files in asked.values()]
    chosen = [each for each in named if topic in (None, each[0])]
    if topic is not None and not chosen:
        there = ", ".join(sorted({name for name, *_ in named})) or "nothing"
        raise LogSourceError(_listed(sources), f"there is no log of topic {printable(topic)} here, but of {there}")
    chosen.sort(key=lambda each: each[:2])
    for one, other in pairwise(chosen):
        if one[:2] == other[:2]:
            places = _listed((one[2], other[2]))
            raise LogSourceError(places, f"both hold {one[0]}-{one[1]}; read one of them at a time")
    return [_found(*each) for each in chosen]


def _found(topic: str, partition: int, folder: Path, files: list[str] | None) -> FoundLog:
    names = None if files is None else tuple(sorted(set(files)))
    return FoundLog(topic, partition, str(folder), names, _size(folder, names))


def _size(folder: Path, names: tuple[str, ...] | None) -> int:
    size = 0
    with suppress(OSError):
        for entry in _files(folder):
            if names is None or entry.name in names:
                with suppress(OSError):
                    size += entry.stat().st_size if entry.is_file() else 0
    return size


def _listed(sources: Iterable[Path | str]) -> str:
    return ", ".join(map(str, sources))


def _source_folders(source: Path | str) -> list[tuple[Path, list[str] | None]]:
    if source == "":
        raise LogSourceError("''", "an empty name is no source; say . for the current directory")
    try:
        return _folders(Path(source))
    except OSError as error:
        raise LogSourceError(str(source), f"this cannot be read: {error.strerror or error}") from error


def _folders(source: Path) -> list[tuple[Path, list[str] | None]]:
    """Partition folders, each with the names of the files that were asked for (None: all of them)."""
    if not source.exists():
        raise LogSourceError(str(source), "there is no such file or directory")
    if source.is_file():
        if not source.name.endswith(SUFFIXES):
            raise LogSourceError(str(source), "this is no .log file")
        return [(source.parent, [source.name])]
    if not source.is_dir():
        raise LogSourceError(str(source), "this is neither a file nor a directory")
    if _place(source.resolve().name) and _has_files(source):
        return [(source, None)]
    with os.scandir(source) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    if not entries:
        raise LogSourceError(str(source), "the directory is empty")
    folders = (source / entry.name for entry in entries if _place(entry.name) and entry.is_dir())
    partitions = [folder for folder in folders if _has_files(folder)]
    if partitions:
        return [(folder, None) for folder in partitions]
    if _has_files(source):
        return [(source, None)]
    raise LogSourceError(
        str(source), "there is no .log file in this directory, nor in a folder <topic>-<partition> below it"
    )


def _has_files(folder: Path) -> bool:
    """Whether a folder holds a log: no if the folder is gone, yes if it may not be listed."""
    try:
        return any(True for _ in _files(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as listing:
        yield from (entry for entry in listing if entry.name.endswith(SUFFIXES))


def _place(name: str) -> tuple[str, int] | None:
    """Topic and partition of a folder with this name, if it is that of a partition."""
    match = _FOLDER.fullmatch(name)
    if not match or len(match[2]) > _MOST_DIGITS or int(match[2]) > _LARGEST_PARTITION:
        return None
    return match[1], int(match[2])


def _told(folder: Path, topic: str | None) -> tuple[str, int]:
    told = _place(folder.resolve().name)
    if told:
        return told
    if topic is None:
        what = "the name of this folder is not <topic>-<partition>; say which topic it holds"
        raise LogSourceError(str(folder), what)
    return topic, 0
