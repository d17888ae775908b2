"""The file that marks a directory as a snapshot. It says how far each log was read, and maps topic ids to names."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.source_error import NotReadable
from kafka_records_engine.sources._stored.stored_names import MARK, part_name, replace_file


def read_mark(root: str) -> dict[str, Any]:
    """Read the file that marks a directory as a snapshot. Raises LogSourceError."""
    path = os.path.join(root, MARK)
    try:
        told = json.loads(Path(path).read_text("utf-8"))
        if not isinstance(told, dict) or not {"format", "topic_names", "read"} <= told.keys():
            raise ValueError("this was not written by kafka-records snapshot")
        _check(told)
    except PermissionError:
        raise NotReadable(path) from None
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or error
        raise LogSourceError(path, f"cannot be read: {detail}; delete it, and the next run writes it again") from None
    if told["format"] > 1:
        raise LogSourceError(path, "this was written by a later version of kafka-records: read it with that version")
    return told


def _check(told: dict[str, Any]) -> None:
    """Raise ValueError for content that no run writes. The file may have been edited."""
    if not _is_count(told["format"]):
        raise ValueError("the field 'format' is not a number")
    if not isinstance(told["topic_names"], dict) or not all(map(_is_text, told["topic_names"].values())):
        raise ValueError("the field 'topic_names' is not an object of names by topic id")
    if not isinstance(told["read"], dict):
        raise ValueError("the field 'read' is not an object with an entry for each log")
    for log, each in told["read"].items():
        times = ("at_ms", "ended_at_ms")
        if not isinstance(each, dict) or not {"end", *times} <= each.keys() or not _is_count(each["end"]):
            raise ValueError(f"the field 'read' has no end for {log}")
        if not all(_is_count(each[name]) or (each[name] is None and name != "at_ms") for name in times):
            raise ValueError(f"the field 'read' has an invalid time for {log}")
        if not _is_count(each.get("log_start", 0)):
            raise ValueError(f"the field 'read' has an invalid log start for {log}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and value >= 0


def write_mark(root: str, told: dict[str, Any]) -> None:
    """Replace the content of the file."""
    part = part_name(root)
    try:
        with open(part, "w", encoding="utf-8") as out:
            json.dump(told, out, indent=1)
        replace_file(part, os.path.join(root, MARK))
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise
