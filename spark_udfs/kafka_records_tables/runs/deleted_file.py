"""The file of what `delete-offsets` deletes or writes over: on the disk before anything is changed, read to restore it.

JSON lines. `kind` is `offset` (what a coordinator held: offset, leader epoch, metadata; beside it the id of the topic,
and the commit timestamp where the list had it), `group` (a group that goes as a whole) or `kept` (what was written
before, and was not deleted after all).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple, Self

from kafka_records_engine.sources.group_requests import CommittedOffset, DescribedTopic, TopicPartition
from kafka_records_tables.runs.deletion_plan import GroupPlan
from kafka_records_tables.runs.endings import CommandError

_OFFSET: Final = "offset"
_GROUP: Final = "group"
_KEPT: Final = "kept"
_NO_SUCH_FILE: Final = "this is no file that delete-offsets has written"


def timed_path(what: str) -> Path:
    """A file in the current directory, named by what becomes of offsets and by the time."""
    return Path(f"{what}-offsets-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")


class DeletedFile:
    """Takes lines, each of which is on the disk when the method returns."""

    def __init__(self, path: Path) -> None:
        """Make the file. Raises CommandError where it is there already or cannot be written."""
        self.path = path
        try:
            self._file = path.open("x", encoding="utf-8")
            _sync_folder(path.parent)
        except FileExistsError:
            raise CommandError(f"{path}: is there already; name another file with --output") from None
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror or error}; nothing was changed") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def before(
        self, plans: Iterable[GroupPlan], topics: Mapping[str, DescribedTopic], *, is_restoring: bool = False
    ) -> None:
        """What some plans delete, or write over. Raises CommandError where it cannot be written: none of them may be
        carried out then."""
        lines: list[dict[str, Any]] = []
        for plan in plans:
            if plan.is_whole:
                kind = plan.listed.kind if plan.listed is not None else ""
                lines.append({"kind": _GROUP, "group_id": plan.group, "group_kind": kind})
            for item in plan.items:
                held = item.overwrites if is_restoring else item.committed
                if item.is_planned and held is not None:
                    topic_id = topics[item.topic].topic_id if item.topic in topics else None
                    of = {
                        "group_id": plan.group,
                        "topic": item.topic,
                        "topic_id": topic_id,
                        "partition": item.partition,
                    }
                    when = {"commit_timestamp_ms": item.commit_timestamp_ms}
                    lines.append({"kind": _OFFSET, **of, **held._asdict(), **when})
        self._write(lines)

    def kept(self, group: str, places: Iterable[TopicPartition]) -> None:
        """Some offsets that were written before are still what they were."""
        self._write(
            {"kind": _KEPT, "group_id": group, "topic": topic, "partition": partition} for topic, partition in places
        )

    def _write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        try:
            self._file.writelines(f"{json.dumps(line)}\n" for line in lines)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            what = f"{self.path}: {error.strerror or error}"
            raise CommandError(f"{what}; nothing more is changed, and what was is in the file") from None


def _sync_folder(folder: Path) -> None:
    """The name of a new file is on the disk when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass
class Deleted:
    """What was deleted of a group."""

    offsets: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


class DeletedOffsets(NamedTuple):
    """What a file says was deleted."""

    by_group: dict[str, Deleted]
    cut_line: int | None
    """The number of a last line that was not written to its end."""


def deleted_of(path: str) -> DeletedOffsets:
    """What a file says was deleted. Raises CommandError."""
    found: dict[str, Deleted] = {}
    cut_line = None
    try:
        *lines, last = Path(path).read_text(encoding="utf-8").split("\n")
        for number, line in enumerate(lines, 1):
            _read(path, number, line, found)
        if last.strip():
            try:
                json.loads(last)
            except ValueError:
                cut_line = len(lines) + 1
            else:
                _read(path, len(lines) + 1, last, found)
    except UnicodeDecodeError:
        raise CommandError(f"{path}: {_NO_SUCH_FILE}") from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    return DeletedOffsets({group: deleted for group, deleted in found.items() if deleted.offsets}, cut_line)


def _read(path: str, number: int, line: str, found: dict[str, Deleted]) -> None:
    try:
        _take(json.loads(line), found)
    except (ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path}: line {number}: {error}: {_NO_SUCH_FILE}") from None


def _take(line: Mapping[str, Any], found: dict[str, Deleted]) -> None:
    if "is_deletable" in line:
        raise ValueError("a row of the table deletable_offsets, which says what is there")
    if line["kind"] == _GROUP:
        return
    deleted = found.setdefault(line["group_id"], Deleted())
    place = line["topic"], line["partition"]
    if line["kind"] == _KEPT:
        deleted.offsets.pop(place, None)
        return
    if line["kind"] != _OFFSET:
        raise ValueError(f"{line['kind']!r} is no kind of line")
    deleted.offsets[place] = CommittedOffset(line["offset"], line["leader_epoch"], line["metadata"])
    if line["topic_id"] is not None:
        deleted.topic_ids[line["topic"]] = line["topic_id"]
