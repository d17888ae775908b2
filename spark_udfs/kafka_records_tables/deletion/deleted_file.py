"""The file in which `delete-offsets` keeps everything that it deletes or overwrites. It is on disk before anything is
changed, and `--restore` reads it.

The file has JSON lines. `kind` is `offset` (with offset, leader epoch and metadata from the coordinator, topic id, and
the commit timestamp if the list had it), `group` (a group that is deleted completely) or `kept` (an earlier line whose
offset was not deleted after all).
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

from kafka_records_engine.sources.fetched_offsets import CommittedOffset, TopicPartition
from kafka_records_engine.sources.group_requests import DescribedTopic
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.deletion.deletion_plan import GroupPlan
from kafka_records_tables.deletion.deletion_rows import committed_row, rows_of_content

_OFFSET: Final = "offset"
_GROUP: Final = "group"
_KEPT: Final = "kept"
_WHAT_IT_TAKES: Final = (
    "--restore takes a file that delete-offsets has written, or rows of a table, as "
    "`kafka-records table current_offsets … --format json --output FILE` writes them"
)


def timed_path(what: str) -> Path:
    """The default path: a file in the current directory, named after the action and the time."""
    return Path(f"{what}-offsets-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.jsonl")


class DeletedFile:
    """Writes lines to the file. Each line is on disk when the method returns."""

    def __init__(self, path: Path) -> None:
        """Create the file. Raises CommandError if it exists already or cannot be written."""
        self.path = path
        self._held: set[tuple[str, str, int]] = set()
        try:
            self._file = path.open("x", encoding="utf-8")
            _sync_folder(path.parent)
        except FileExistsError:
            raise CommandError(f"{path}: already exists; give another file with --output") from None
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror or error}; nothing was changed") from None

    @property
    def has_offsets(self) -> bool:
        """Whether the file contains an offset that may have been deleted by now and can be restored."""
        return bool(self._held)

    def remove(self) -> None:
        """Delete the file, because nothing was changed."""
        self._file.close()
        self.path.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def before(
        self, plans: Iterable[GroupPlan], topics: Mapping[str, DescribedTopic], *, is_restoring: bool = False
    ) -> None:
        """Write everything that these plans delete or overwrite. Raises CommandError if that fails; then no plan may be
        executed."""
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
                    self._held.add((plan.group, *item.place))
        self._write(lines)

    def kept(self, group: str, places: Iterable[TopicPartition]) -> None:
        """Record that some offsets in an earlier line have not changed."""
        places = list(places)
        self._held.difference_update((group, *place) for place in places)
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
            raise CommandError(f"{what}; nothing else was changed, and the file lists all changes") from None


def _sync_folder(folder: Path) -> None:
    """Flush the directory, because only then is the name of a new file on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@dataclass
class Deleted:
    """The deleted offsets of one group."""

    offsets: dict[TopicPartition, CommittedOffset] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)


class DeletedOffsets(NamedTuple):
    """The offsets in a file that `--restore` reads."""

    by_group: dict[str, Deleted]
    cut_line: int | None = None
    """The number of the last line, if that line is incomplete."""
    passed_over: int = 0
    """The number of rows without an offset."""


def deleted_of(path: str) -> DeletedOffsets:
    """Read a file for `--restore`: one written by `delete-offsets`, or rows of a table such as current_offsets as JSON
    lines, CSV or Parquet. Raises CommandError."""
    found = _Lines()
    cut_line = None
    try:
        content, cut = _without_cut_line(Path(path).read_bytes())
        for at, row in rows_of_content(content):
            try:
                found.take(row)
            except ValueError as error:
                raise ValueError(f"{at}: {error}") from None
        cut_line = content.count(b"\n") + 1 if cut else None
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:  # this includes errors of Unicode and pyarrow
        raise CommandError(f"{path}: {error}: {_WHAT_IT_TAKES}") from None
    return DeletedOffsets(
        {group: deleted for group, deleted in found.by_group.items() if deleted.offsets}, cut_line, found.passed_over
    )


def _without_cut_line(content: bytes) -> tuple[bytes, bool]:
    """The JSON lines without an incomplete last one, and whether there was one."""
    if not content.lstrip().startswith(b"{"):
        return content, False
    lines, end, last = content.rpartition(b"\n")
    try:
        json.loads(last or b"null")
    except ValueError:  # also a Unicode error, if a character was cut
        return lines + end, True
    return content, False


class _Lines:
    """Takes the lines or rows of a file in order."""

    def __init__(self) -> None:
        self.by_group: dict[str, Deleted] = {}
        self.passed_over = 0

    def take(self, row: Mapping[str, Any]) -> None:
        """Raises ValueError for a row without a committed offset, or a second row for the same partition."""
        kind = row.get("kind", _OFFSET)
        if kind == _GROUP:
            return
        if kind == _KEPT:
            kept = committed_row({**row, "offset": None})
            self.by_group.setdefault(kept.group_id, Deleted()).offsets.pop(kept.place, None)
            return
        if kind != _OFFSET:
            raise ValueError(f"unknown kind of line {kind!r}")
        given = committed_row(row)
        if given.offset is None:
            self.passed_over += 1
            return
        offset = CommittedOffset(given.offset, given.leader_epoch, given.metadata)
        deleted = self.by_group.setdefault(given.group_id, Deleted())
        # Lines written by delete-offsets are in the order of the deletions. A table may have several commits of the
        # same offset, in any order.
        if "kind" not in row and deleted.offsets.get(given.place, offset) != offset:
            topic, partition = given.place
            raise ValueError(
                f"another row has a different offset of group {given.group_id!r} for partition {partition} of {topic}: "
                "keep one of them"
            )
        deleted.offsets[given.place] = offset
        if given.topic_id is not None:
            deleted.topic_ids[given.place[0]] = given.topic_id
