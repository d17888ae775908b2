"""The file of what `delete-offsets` deletes: written and on the disk before anything is deleted, read to restore it.

JSON lines. `kind` is `offset` (what a coordinator held: offset, leader epoch, metadata; beside it the id of the topic,
and the commit timestamp where the list had it), `group` (a group that goes as a whole) or `kept` (what was written
before, and was not deleted after all).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kafka_records_engine.sources.group_requests import CommittedOffset, DescribedTopic, TopicPartition
from kafka_records_tables.runs.deletion_plan import GroupPlan
from kafka_records_tables.runs.endings import CommandError

_OFFSET: Final = "offset"
_GROUP: Final = "group"
_KEPT: Final = "kept"


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
            raise CommandError(f"{path}: {error.strerror or error}; nothing was deleted") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def before(self, plans: Iterable[GroupPlan], topics: Mapping[str, DescribedTopic]) -> None:
        """What some plans delete. Raises CommandError where it cannot be written: nothing of it may be deleted then."""
        lines: list[dict[str, Any]] = []
        for plan in plans:
            if plan.is_whole:
                kind = plan.listed.kind if plan.listed is not None else ""
                lines.append({"kind": _GROUP, "group_id": plan.group, "group_kind": kind})
            for item in plan.items:
                if item.is_planned and item.committed is not None:
                    topic_id = topics[item.topic].topic_id if item.topic in topics else None
                    of = {
                        "group_id": plan.group,
                        "topic": item.topic,
                        "topic_id": topic_id,
                        "partition": item.partition,
                    }
                    when = {"commit_timestamp_ms": item.commit_timestamp_ms}
                    lines.append({"kind": _OFFSET, **of, **item.committed._asdict(), **when})
        self._write(lines)

    def kept(self, plan: GroupPlan, places: Iterable[TopicPartition]) -> None:
        """Some offsets that were written before were not deleted."""
        self._write(
            {"kind": _KEPT, "group_id": plan.group, "topic": topic, "partition": partition}
            for topic, partition in places
        )

    def _write(self, lines: Iterable[Mapping[str, Any]]) -> None:
        try:
            self._file.writelines(f"{json.dumps(line)}\n" for line in lines)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            what = f"{self.path}: {error.strerror or error}"
            raise CommandError(f"{what}; nothing more is deleted, and what was deleted is in the file") from None


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


def deleted_of(path: str) -> dict[str, Deleted]:
    """By group what a file says was deleted. A last line without an end belongs to nothing that was deleted: it was not
    on the disk yet. Raises CommandError."""
    found: dict[str, Deleted] = {}
    try:
        whole, _, _ = Path(path).read_text(encoding="utf-8").rpartition("\n")
        for number, line in enumerate(whole.split("\n") if whole else [], 1):
            try:
                _take(json.loads(line), found)
            except (ValueError, KeyError, TypeError) as error:
                raise CommandError(
                    f"{path}: line {number}: {error}: this is no file that delete-offsets has written"
                ) from None
    except UnicodeDecodeError:
        raise CommandError(f"{path}: this is no file that delete-offsets has written") from None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    return {group: deleted for group, deleted in found.items() if deleted.offsets}


def _take(line: Mapping[str, Any], found: dict[str, Deleted]) -> None:
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
