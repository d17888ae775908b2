"""Reads offsets that a broker stores in its data directory: where logs begin and end, and how far they have been
cleaned."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from kafka_records_engine.log.files.local_files import LOCAL
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.log.format.batches import LARGEST_OFFSET
from kafka_records_runtime.wire.primitives import MAX_INT32

CHECKPOINT: Final = "log-start-offset-checkpoint"
"""The file with log start offsets. It contains only logs that start after the start of their first segment file."""

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
"""The file with the high watermarks of all logs, written every few seconds and when a broker stops."""

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
"""The file with the offsets up to which logs are flushed to disk, written every minute and when a broker stops
(`LogManager`)."""

CLEANED: Final = "cleaner-offset-checkpoint"
"""The file with the offsets up to which compacted logs have been cleaned. Logs that were never completely cleaned are
not in it."""

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
"""The file in a log's folder with the start offset of each leader epoch (`LeaderEpochCheckpointFile`)."""

_ENTRY: Final = re.compile(r"(\S+) ([0-9]+) ([0-9]+)")
_EPOCH: Final = re.compile(r"([0-9]{1,10}) ([0-9]{1,19})")
_QUOTED: Final = 40


def read_checkpoint(file: Place | Path) -> Mapping[tuple[str, int], int]:
    """Read an offset checkpoint file: a line `0`, a line with the count, then lines `<topic> <partition> <offset>`.

    An empty or missing file counts as having no entries. (The file of log starts is empty until the first log start
    moves.) Raises LogSourceError for any other content (`CheckpointFile`, `OffsetCheckpointFile`).
    """
    place = file if isinstance(file, Place) else Place(LOCAL, str(file))
    path = str(place)
    try:
        kind = place.kind
        if kind is None:
            return {}
        if kind != "file":
            raise LogSourceError(path, "this is not a file")
        content = place.read_bytes()
    except OSError as error:
        raise LogSourceError(path, f"this cannot be read: {error.strerror or error}") from error
    return _parsed(path, content)


def read_epochs(folder: Place) -> list[tuple[int, int]]:
    """The leader epochs of a log in log order, each with the offset of its first record.

    Empty if the file is missing or invalid; a broker then rebuilds it from the batches of the log. Raises OSError.
    """
    place = folder.child(LEADER_EPOCHS)
    lines = place.read_bytes().decode("utf-8", "replace").splitlines() if place.kind == "file" else []
    entries = [_EPOCH.fullmatch(line) for line in lines[2:]]
    if lines[:2] != ["0", str(len(entries))]:
        return []
    return [(int(each[1]), int(each[2])) for each in entries if each is not None]


@lru_cache(maxsize=8)  # cached because all logs of a data directory read the same file, which has a line for each log
def _parsed(path: str, content: bytes) -> Mapping[tuple[str, int], int]:
    lines = content.decode("utf-8", "replace").splitlines()
    if not lines:
        return {}
    if lines[0].strip() != "0":
        raise LogSourceError(path, f"not an offset checkpoint of version 0: line 1 is {_quoted(lines, 0)}")
    offsets: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines[2:], 3):
        match = _ENTRY.fullmatch(line)
        if not match:
            raise LogSourceError(
                path, f"line {number} is {_quoted(lines, number - 1)}, not <topic> <partition> <offset>"
            )
        partition = _number(path, number, "partition", match[2], MAX_INT32)
        offsets[match[1], partition] = _number(path, number, "offset", match[3], LARGEST_OFFSET)
    if len(lines) < 2 or lines[1].strip() != str(len(offsets)):
        raise LogSourceError(path, f"line 2 is {_quoted(lines, 1)}, but must be {len(offsets)}, the number of entries")
    return MappingProxyType(offsets)


def _number(path: str, line: int, what: str, text: str, largest: int) -> int:
    """Read a number that must not exceed `largest`. Its length is checked first, because Python refuses to parse
    thousands of digits."""
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(largest)) or int(digits) > largest:
        raise LogSourceError(path, f"line {line} has the {what} {_shortened(text)}, which is more than {largest}")
    return int(digits)


def _quoted(lines: list[str], index: int) -> str:
    return repr(lines[index][:_QUOTED]) if index < len(lines) else "missing"


def _shortened(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… of {len(text)} digits"
