"""Offsets that a broker stores in its data directory: where logs begin, how far they go, what is cleaned."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from kafka_records_engine.log.files.local_files import LOCAL
from kafka_records_engine.log.files.places import LogSourceError, Place
from kafka_records_engine.log.format.batches import LARGEST_OFFSET
from kafka_records_runtime.wire import MAX_INT32

CHECKPOINT: Final = "log-start-offset-checkpoint"
"""Log starts, but only of logs whose start was raised above their first segment file."""

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
"""High watermarks of all logs, written every few seconds and when a broker stops."""

RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
"""Up to where logs are on the disk for certain, written every minute and when a broker stops (`LogManager`)."""

CLEANED: Final = "cleaner-offset-checkpoint"
"""Up to where compacted logs are cleaned; a log that no cleaner has finished yet is missing."""

_ENTRY: Final = re.compile(r"(\S+) ([0-9]+) ([0-9]+)")
_QUOTED: Final = 40


def read_checkpoint(file: Place | Path) -> dict[tuple[str, int], int]:
    """An offset checkpoint file: a line `0`, a line with the count, then lines `<topic> <partition> <offset>`.

    Neither an empty file nor none holds entries; a broker leaves the file empty until the first log start moves. Raises
    LogSourceError for any other content (`CheckpointFile`, `OffsetCheckpointFile`).
    """
    place = file if isinstance(file, Place) else Place(LOCAL, str(file))
    path = str(place)
    try:
        kind = place.kind
        if kind is None:
            return {}
        if kind != "file":
            raise LogSourceError(path, "this is not a file")
        lines = place.read_bytes().decode("utf-8", "replace").splitlines()
    except OSError as error:
        raise LogSourceError(path, f"this cannot be read: {error.strerror or error}") from error
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
        raise LogSourceError(path, f"line 2 is {_quoted(lines, 1)}, not the count {len(offsets)}")
    return offsets


def _number(path: str, line: int, what: str, text: str, largest: int) -> int:
    """Read a number of at most `largest`. Its length is checked first: Python refuses to read thousands of digits."""
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(largest)) or int(digits) > largest:
        raise LogSourceError(path, f"line {line} has the {what} {_shortened(text)}, which is more than {largest}")
    return int(digits)


def _quoted(lines: list[str], index: int) -> str:
    return repr(lines[index][:_QUOTED]) if index < len(lines) else "missing"


def _shortened(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}… of {len(text)} digits"
