"""The files of a snapshot.

    DIR/_snapshot.json                                  marks a snapshot, and says up to where each log was read
    DIR/_lock                                           locked by the process that writes
    DIR/topic=T/partition=P/FIRST-LAST.parquet          the records with these offsets
    DIR/_gone/topic=T/partition=P/END.parquet           the records below END that the log had lost by then

Programs that read folders of Parquet files (Spark, Arrow) ignore names that start with an underscore or a dot.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from typing import Final

from kafka_records_engine.log.files.source_error import LogSourceError

MARK: Final = "_snapshot.json"
LOCK: Final = "_lock"
GONE: Final = "_gone"
PART: Final = ".part"
"""The suffix of incomplete files."""

_TOPIC: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_FOLDER: Final = re.compile(r"topic=([a-zA-Z0-9._-]{1,249})")
_PARTITION_FOLDER: Final = re.compile(r"partition=([0-9]{1,10})")
_RECORDS: Final = re.compile(r"([0-9]{20})-([0-9]{20})\.parquet")
_SURVEY: Final = re.compile(r"([0-9]{20})\.parquet")


def folder_of(root: str, topic: str, partition: int) -> str:
    """The folder with the records of a log partition. Raises LogSourceError for a name that is not a valid topic
    name."""
    if not _TOPIC.fullmatch(topic):
        raise LogSourceError(root, f"{topic!r} is not a valid topic name and cannot name a folder")
    return os.path.join(root, f"topic={topic}", f"partition={partition}")


def gone_folder_of(root: str, topic: str, partition: int) -> str:
    """The folder with the offsets that a log partition has lost."""
    return folder_of(os.path.join(root, GONE), topic, partition)


def records_name(first: int, last: int) -> str:
    """The name of the file with the records from offset `first` to offset `last`."""
    return f"{first:020d}-{last:020d}.parquet"


def survey_name(end: int) -> str:
    """The name of the file that lists the offsets below `end` that the log had lost."""
    return f"{end:020d}.parquet"


def records_files(folder: str) -> list[tuple[int, int, str]]:
    """The first offset, last offset and path of each file with records, in order. A file is left out if another file
    contains all its offsets, because a run that merges small files removes them last."""
    found = [
        (int(match[1]), int(match[2]), os.path.join(folder, name))
        for name in _names(folder)
        if (match := _RECORDS.fullmatch(name))
    ]
    kept: list[tuple[int, int, str]] = []
    for each in sorted(found, key=lambda file: (file[0], -file[1])):
        if not kept or each[1] > kept[-1][1]:
            kept.append(each)
    return kept


def remove_outdated(folder: str) -> None:
    """Remove files whose records are also in another file. A killed run may have left such files. Requires the lock."""
    kept = {path for *_, path in records_files(folder)}
    paths = (os.path.join(folder, name) for name in _names(folder) if _RECORDS.fullmatch(name))
    outdated = [path for path in paths if path not in kept]
    if outdated:
        sync_folder(folder)  # the run that wrote the merged file may not have synced it
    for path in outdated:
        with suppress(FileNotFoundError):
            os.unlink(path)


def set_aside(folder: str) -> None:
    """Remove a folder with its content atomically, so that no reader sees part of it."""
    above = os.path.dirname(folder)
    aside = part_name(above)
    try:
        os.rename(folder, aside)
    except FileNotFoundError:
        return
    sync_folder(above)
    shutil.rmtree(aside, ignore_errors=True)


def foreign_files(folder: str) -> list[str]:
    """The sorted names of files in a folder of records that no run wrote. Like Spark and Arrow, it ignores names that
    begin with a dot or an underscore."""
    return sorted(name for name in _names(folder) if not name.startswith((".", "_")) and not _RECORDS.fullmatch(name))


def survey_files(folder: str) -> list[tuple[int, str]]:
    """The end offset and path of each file with lost offsets, in order."""
    matches = [(match, name) for name in _names(folder) if (match := _SURVEY.fullmatch(name))]
    return sorted((int(match[1]), os.path.join(folder, name)) for match, name in matches)


def topics_in(root: str) -> list[str]:
    """The topics that have a folder in the snapshot."""
    return sorted(match[1] for name in _names(root) if (match := _TOPIC_FOLDER.fullmatch(name)))


def partitions_in(root: str, topic: str) -> list[int]:
    """The partitions of a topic that have a folder."""
    names = _names(os.path.join(root, f"topic={topic}"))
    return sorted(int(match[1]) for name in names if (match := _PARTITION_FOLDER.fullmatch(name)))


def is_snapshot(path: str) -> bool:
    """Whether a directory is a snapshot."""
    return os.path.isfile(os.path.join(path, MARK))


def remove_incomplete(folder: str) -> None:
    """Remove the incomplete files of a killed run. Requires the lock."""
    for name in _names(folder):
        if name.endswith(PART):
            path = os.path.join(folder, name)
            if os.path.isdir(path):
                shutil.rmtree(path, ignore_errors=True)
                continue
            with suppress(FileNotFoundError):
                os.unlink(path)


def make_folder(path: str) -> None:
    """Create a folder and its parents durably, so they survive a power failure."""
    above = os.path.dirname(path)
    if os.path.isdir(path):
        if not os.listdir(path):  # a run may have been killed right after creating the folder
            sync_folder(above)
        return
    make_folder(above)
    with suppress(FileExistsError):
        os.mkdir(path)
    sync_folder(above)


def sync_folder(path: str) -> None:
    """Flush a folder to disk, so that the names in it are durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(part: str, path: str) -> None:
    """Rename a complete file to its final name, after flushing it to disk."""
    descriptor = os.open(part, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(part, path)
    sync_folder(os.path.dirname(path))


def part_name(folder: str) -> str:
    """A path for a file that is being written, unique among processes."""
    return os.path.join(folder, f".{os.getpid()}-{os.urandom(4).hex()}{PART}")


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
