"""Where the log segment files are: data directories, partition folders and single files.

A broker's data directory holds one folder `<topic>-<partition>` per log partition. Its `.log` files are named for the
offset they start at. Everything else in there (indexes, snapshots, checkpoints, what a delete or a cleaner left
behind) is no part of the log, except a `.log.swap` file: the complete replacement of older files that a crash kept the
cleaner from putting in place (`org.apache.kafka.storage.internals.log.LogLoader`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from kafka_records_arrow.batches import LARGEST_OFFSET
from kafka_records_arrow.problems import LogSourceError, SegmentProblem
from kafka_records_arrow.scanning import next_offset
from kafka_records_runtime.errors import plural

CHECKPOINT: Final = "log-start-offset-checkpoint"

_FOLDER: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})")
_SUFFIXES: Final = (".log", ".log.swap")
_SEGMENT: Final = re.compile(r"(\d{20})\.log(\.swap)?")
_CLEANED: Final = re.compile(r"(\d{20})\.log\.cleaned")


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One `.log` file. `base_offset` comes from its name; None when the name is no offset."""

    path: str
    base_offset: int | None


@dataclass(frozen=True, slots=True)
class LogPartition:
    """The log of one partition: its files in the order of their offsets. Small, picklable, read by `read_partition`."""

    topic: str
    partition: int
    segments: tuple[SegmentFile, ...]
    log_start: int = 0
    """Records below this offset were deleted although files may still hold them (log-start-offset-checkpoint)."""
    ends_early: bool = False
    """Whether files of the same log that come later were not asked for: the log goes on behind these."""
    problems: tuple[SegmentProblem, ...] = ()
    """What was found while looking for the files."""
    is_part: bool = False
    """Whether only some of the files of the log were asked for."""


def find_logs(sources: Sequence[Path | str], topic: str | None = None) -> list[LogPartition]:
    """The log partitions in `sources`, sorted by topic and partition.

    A source is a data directory, a partition folder, or a `.log` file. `topic` leaves out every other topic; for a
    folder or a file whose place does not tell topic and partition it is the name of the topic, with partition 0.

    A partition folder that cannot be listed is a partition without files, whose problems say so. Raises LogSourceError
    for a source that is not there or holds no log, and for a partition found in two places.
    """
    asked: dict[Path, tuple[Path, list[Path] | None]] = {}
    for source in sources:
        for folder, files in _source_folders(source):
            known = asked.setdefault(folder.resolve(), (folder, files))
            if known[1] is not None and files is not known[1]:
                asked[folder.resolve()] = (known[0], None if files is None else [*known[1], *files])
    named = [(*_told(folder, topic), folder, files) for folder, files in asked.values()]
    chosen = [each for each in named if topic in (None, each[0])]
    if topic is not None and not chosen:
        there = ", ".join(sorted({name for name, *_ in named})) or "nothing"
        raise LogSourceError(_listed(sources), f"there is no log of topic {topic} here, but of {there}")
    chosen.sort(key=lambda each: each[:2])
    for one, other in pairwise(chosen):
        if one[:2] == other[:2]:
            places = _listed((one[2], other[2]))
            raise LogSourceError(places, f"both hold {one[0]}-{one[1]}; read one of them at a time")
    return [_log(*each) for each in chosen]


def _listed(sources: Iterable[Path | str]) -> str:
    return ", ".join(map(str, sources))


def _source_folders(source: Path | str) -> list[tuple[Path, list[Path] | None]]:
    if source == "":
        raise LogSourceError("''", "an empty name is no source; say . for the current directory")
    try:
        return _folders(Path(source))
    except OSError as error:
        raise LogSourceError(str(source), f"this cannot be read: {error.strerror or error}") from error


def _folders(source: Path) -> list[tuple[Path, list[Path] | None]]:
    """Partition folders, each with the files that were asked for (None: all of them)."""
    if not source.exists():
        raise LogSourceError(str(source), "there is no such file or directory")
    if source.is_file():
        if not source.name.endswith(_SUFFIXES):
            raise LogSourceError(str(source), "this is no .log file")
        return [(source.parent, [source])]
    if not source.is_dir():
        raise LogSourceError(str(source), "this is neither a file nor a directory")
    if _told_by_name(source) and not _can_be_listed(source):
        return [(source, None)]
    entries = sorted(source.iterdir())
    if not entries:
        raise LogSourceError(str(source), "the directory is empty")
    folders = [entry for entry in entries if _FOLDER.fullmatch(entry.name) and entry.is_dir()]
    partitions = [entry for entry in folders if not _can_be_listed(entry) or _files(entry)]
    if partitions:
        return [(entry, None) for entry in partitions]
    if _files(source):
        return [(source, None)]
    raise LogSourceError(
        str(source), "there is no .log file in this directory, nor in a folder <topic>-<partition> below it"
    )


def _can_be_listed(folder: Path) -> bool:
    try:
        next(folder.iterdir(), None)
    except OSError:
        return False
    return True


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(_SUFFIXES)]


def _told_by_name(folder: Path) -> re.Match[str] | None:
    return _FOLDER.fullmatch(folder.resolve().name)


def _told(folder: Path, topic: str | None) -> tuple[str, int]:
    told = _told_by_name(folder)
    if told:
        return told[1], int(told[2])
    if topic is None:
        what = "the name of this folder is not <topic>-<partition>; say which topic it holds"
        raise LogSourceError(str(folder), what)
    return topic, 0


def _log(topic: str, partition: int, folder: Path, files: list[Path] | None) -> LogPartition:
    try:
        segments, problems = _settled(folder, _files(folder))
    except OSError as error:
        what = f"this folder cannot be listed: {error.strerror or error}"
        unlisted = SegmentProblem(str(folder), None, None, what, "nothing in it is read")
        segments, problems = tuple(_ordered(files or ())), (unlisted,)
        files = None
    log = LogPartition(topic, partition, segments, problems=problems)
    if files is not None:
        log = _only(log, files)
    return _with_log_start(log, folder.resolve().parent / CHECKPOINT)


def _segment(path: Path) -> SegmentFile:
    match = _SEGMENT.fullmatch(path.name)
    offset = int(match[1]) if match else None
    return SegmentFile(str(path), None if offset is None or offset > LARGEST_OFFSET else offset)


def _ordered(files: Iterable[Path]) -> list[SegmentFile]:
    """By offset; files whose names are no offsets come last, by name."""
    segments = [_segment(path) for path in files]
    return sorted(segments, key=lambda each: (each.base_offset is None, each.base_offset or 0, each.path))


def _only(log: LogPartition, files: list[Path]) -> LogPartition:
    """The log cut down to the files that were asked for."""
    wanted = {path.resolve() for path in files}
    kept = [segment for segment in log.segments if Path(segment.path).resolve() in wanted]
    kept_paths = {Path(segment.path).resolve() for segment in kept}
    # A file that a swap file replaces can still be asked for by its name.
    replaced = [path for path in files if path.resolve() not in kept_paths]
    kept = _ordered([*(Path(segment.path) for segment in kept), *dict.fromkeys(replaced)])
    is_part = any(segment not in kept for segment in log.segments)
    ends_early = bool(log.segments) and kept[-1] != log.segments[-1]
    problems = tuple(problem for problem in log.problems if problem.file in {segment.path for segment in kept})
    return replace(log, segments=tuple(kept), ends_early=ends_early, problems=problems, is_part=is_part)


# -- swap files --------------------------------------------------------------------------------------------------------


def _settled(folder: Path, present: list[Path]) -> tuple[tuple[SegmentFile, ...], tuple[SegmentProblem, ...]]:
    """The files as a broker would have them after its next start."""
    plain = _ordered(path for path in present if path.suffix == ".log")
    swaps = _ordered(path for path in present if path.suffix == ".swap")
    if not swaps:
        return tuple(plain), ()
    cleaned = [int(match[1]) for path in folder.iterdir() if (match := _CLEANED.fullmatch(path.name))]
    problems = []
    for swap in swaps:
        if swap.base_offset is None or (cleaned and swap.base_offset >= min(cleaned)):
            # The cleaner had not finished all its output, so nothing was swapped yet and the originals are whole.
            problems.append(
                _swap_note(swap, "the cleaner had not finished writing", "left out, the original files are read")
            )
            continue
        end = next_offset(swap.path)
        outdated = [
            segment
            for segment in plain
            if segment.base_offset is not None
            and swap.base_offset <= segment.base_offset < max(end, swap.base_offset + 1)
        ]
        plain = [segment for segment in plain if segment not in outdated]
        plain.append(swap)
        files = plural(len(outdated), "original file")
        problems.append(_swap_note(swap, "a crash stopped the cleaner from renaming it", f"read in place of {files}"))
    plain.sort(key=lambda each: (each.base_offset is None, each.base_offset or 0, each.path))
    return tuple(plain), tuple(problems)


def _swap_note(swap: SegmentFile, what: str, consequence: str) -> SegmentProblem:
    return SegmentProblem(swap.path, None, None, what, consequence, "note")


# -- the start of the log ----------------------------------------------------------------------------------------------


def _with_log_start(log: LogPartition, checkpoint: Path) -> LogPartition:
    """Set the log start from the checkpoint file of the data directory, if there is one."""
    if not checkpoint.is_file():
        return log
    try:
        starts = read_checkpoint(checkpoint)
    except LogSourceError as error:
        problem = SegmentProblem(error.path, None, None, error.detail, "the log is read from its first record")
        return replace(log, problems=(*log.problems, problem))
    return replace(log, log_start=starts.get((log.topic, log.partition), 0))


def read_checkpoint(path: Path) -> dict[tuple[str, int], int]:
    """An offset checkpoint file: a line `0`, a line with the count, then lines `<topic> <partition> <offset>`.

    An empty file holds no entries: a broker leaves it so until the first log has a start to tell of. Raises
    LogSourceError for anything else (`CheckpointFile`, `OffsetCheckpointFile`).
    """
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError as error:
        raise LogSourceError(str(path), f"this cannot be read: {error.strerror or error}") from error
    if not lines:
        return {}
    if lines[0].strip() != "0":
        raise LogSourceError(str(path), f"not an offset checkpoint of version 0: line 1 is {_quoted(lines, 0)}")
    offsets: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines[2:], 3):
        match = re.fullmatch(r"(\S+) (\d+) (\d+)", line)
        if not match:
            raise LogSourceError(str(path), f"line {number} is {line!r}, not <topic> <partition> <offset>")
        offsets[match[1], int(match[2])] = int(match[3])
    if len(lines) < 2 or lines[1].strip() != str(len(offsets)):
        raise LogSourceError(str(path), f"line 2 is {_quoted(lines, 1)}, not the count {len(offsets)}")
    return offsets


def _quoted(lines: list[str], index: int) -> str:
    return repr(lines[index][:40]) if index < len(lines) else "missing"
