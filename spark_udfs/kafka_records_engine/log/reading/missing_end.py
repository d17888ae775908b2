"""Detects, from a broker's other files, that a log once had records that are no longer in any of its files.

A broker records in several places how far a log extends: in the data directory, files with the high watermarks and
recovery points of all logs; in a log's folder, producer snapshots (`ProducerStateManager.takeSnapshot`, with the offset
of the next record in their names) and indexes of segment files. None of them is ahead of the log, with two exceptions:
a copy made while the broker was writing, and a power failure that lost records not yet on disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from kafka_records_engine.log.files.opened import OpenLog
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.format.checkpoints import HIGH_WATERMARKS, RECOVERY_POINTS, read_checkpoint
from kafka_records_engine.log.format.offset_index import OffsetIndex
from kafka_records_engine.log.reading.log_end import end_of

STOPPED: Final = ".kafka_cleanshutdown"
"""A broker writes this file when it stops cleanly, and deletes it when it starts (`LogManager`)."""

_BESIDE: Final = re.compile(r"([0-9]{20})\.(log|index|timeindex|snapshot)")


@dataclass(frozen=True, slots=True)
class MissingEnd:
    """The missing end of a log."""

    topic: str
    partition: int
    end: int
    """The offset after the last remaining record."""
    reached: int
    """The highest offset that the log is known to have reached. It equals `end` if the missing file is not known to
    contain a record."""
    shown_by: tuple[str, ...]
    """The evidence, in one sentence each."""
    last_ms: int | None
    """When the last remaining record was written; None if unknown, or if no record is left."""
    shown_ms: int | None
    """The earliest time by which the log had reached that offset; None if unknown."""
    is_certain: bool
    """Whether the log is certainly not a copy made while a broker was writing to it."""
    has_folder: bool = True


class Noted:
    """The log end offsets that a broker recorded in a data directory."""

    def __init__(self, directory: Place) -> None:
        self.is_stopped = _is_file(directory.child(STOPPED))
        self._files = [(words, *_offsets(directory.child(name))) for name, words in _NOTES]

    def logs(self) -> list[tuple[str, int]]:
        """The topic and partition of each log that has had records, according to these files."""
        return sorted({log for _, offsets, _ in self._files for log, offset in offsets.items() if offset})

    def has_stopped_at(self, topic: str, partition: int, end: int) -> bool:
        """Whether the broker stopped cleanly when the log ended there. It then writes both offsets of every log
        (`LogManager.shutdown`), so files with later offsets are older remains of a log of the same name or of another
        copy."""
        of_log = [offset for _, offset, _ in self.of(topic, partition)]
        return self.is_stopped and of_log == [end] * len(self._files)

    def of(self, topic: str, partition: int) -> list[tuple[str, int, int | None]]:
        """For each file that mentions the log: a description of the value, the offset, and the time when the file was
        written."""
        return [
            (words, offsets[topic, partition], written)
            for words, offsets, written in self._files
            if (topic, partition) in offsets
        ]


def missing_end(opened: OpenLog, folder: Place, noted: Noted) -> MissingEnd | None:
    """The missing end of a log whose files are open; None if nothing is known to be missing. Raises OSError."""
    last = opened.segments[-1] if opened.segments else None
    found = None if last is None else end_of(last, folder)
    if last is not None and found is None:  # unreadable; reported elsewhere
        return None
    end = 0 if found is None else found.offset
    shown: list[tuple[str, int]] = []
    certain = last is None or noted.is_stopped
    if last is not None:
        entry = OffsetIndex(last, folder).last_entry()
        if entry is not None and entry.last_offset >= end:
            shown.append((f"the index of its last file has offset {entry.last_offset}", entry.last_offset + 1))
            certain = certain or not last.size
        if found is not None and found.is_cut:
            shown.append(("its last file ends in the middle of a batch", end + 1))
    else:
        shown.append(("its folder has no segment file", end))
    if not noted.has_stopped_at(opened.topic, opened.partition, end):
        for kind, offset in _later_files(folder, end, has_files=last is not None):
            certain = True
            shown.append((f"there is a file {offset:020}.{kind}", offset))
    marks = [each for each in noted.of(opened.topic, opened.partition) if each[1] > end]
    shown += [(f"{words} is {offset}", offset) for words, offset, _ in marks]
    if not shown:
        return None
    return MissingEnd(
        opened.topic,
        opened.partition,
        end,
        max(offset for _, offset in shown),
        tuple(words for words, _ in shown),
        _latest(opened, folder),
        max((written for *_, written in marks if written is not None), default=None),
        certain,
    )


def missing_log(topic: str, partition: int, noted: Noted) -> MissingEnd:
    """The missing end of a log that has no folder, although the data directory should contain one."""
    marks = noted.of(topic, partition)
    return MissingEnd(
        topic,
        partition,
        0,
        max(offset for _, offset, _ in marks),
        tuple(f"{words} is {offset}" for words, offset, _ in marks),
        None,
        max((written for *_, written in marks if written is not None), default=None),
        True,
        has_folder=False,
    )


_NOTES: Final = (
    (HIGH_WATERMARKS, f"its high watermark in {HIGH_WATERMARKS}"),
    (RECOVERY_POINTS, f"its recovery point in {RECOVERY_POINTS}"),
)


def _offsets(place: Place) -> tuple[Mapping[tuple[str, int], int], int | None]:
    """The offsets in a checkpoint file, and when it was written. An invalid file is reported elsewhere, when log ends
    are read."""
    try:
        offsets = read_checkpoint(place)
        return offsets, place.written_ms if offsets else None
    except (OSError, LogSourceError):
        return {}, None


def _is_file(place: Place) -> bool:
    try:
        return place.kind == "file"
    except OSError:
        return False


def _later_files(folder: Place, end: int, *, has_files: bool) -> list[tuple[str, int]]:
    """Files next to a log that show that it was once longer: a producer snapshot of a later offset, or an index whose
    segment file is gone."""
    found: dict[tuple[str, int], None] = {}
    logs, others = set(), []
    for entry in folder.listed():
        match = _BESIDE.fullmatch(entry.name)
        if match is None:
            continue
        if match[2] == "log":
            logs.add(int(match[1]))
        else:
            others.append((match[2], int(match[1])))
    for kind, offset in sorted(others, key=lambda each: (each[1], each[0])):
        is_orphan = kind == "index" and offset not in logs and (offset >= end or not has_files)
        if is_orphan or (kind == "snapshot" and offset > end):
            found[kind, offset] = None
    return list(found)


def _latest(opened: OpenLog, folder: Place) -> int | None:
    """When the last remaining record was written, according to the last batch in the files. Raises OSError."""
    for segment in reversed(opened.segments):
        if segment.size:
            found = end_of(segment, folder)
            return None if found is None or found.timestamp_ms is None or found.timestamp_ms < 0 else found.timestamp_ms
    return None
