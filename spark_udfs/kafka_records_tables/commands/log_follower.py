"""Follows growing logs: reads new records, even if the broker rolls files and the cleaner replaces them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any, Final, Never, cast

import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.findings import Finding, OnFinding
from kafka_records_engine.log.files.discovery import SUFFIXES
from kafka_records_engine.log.files.opened import FrozenFile, LogFile, OpenLog, SegmentFile
from kafka_records_engine.log.reading.segment_files import FoundLog, open_log, read_partition
from kafka_records_tables.commands.record_lines import COLUMNS
from kafka_records_tables.console.endings import CommandError
from kafka_records_tables.console.standard_error import say

INTERVAL: Final = 0.5
"""The number of seconds between two checks of the logs. A check is two system calls for each unchanged partition."""

_START: Final = 21
"""The number of bytes of a batch up to its checksum, in every message format."""


class Follower:
    """Follows the partitions `logs`, and those that `find` returns after a data directory has changed."""

    def __init__(self, logs: Sequence[FoundLog], find: Callable[[], Sequence[FoundLog]], on_finding: OnFinding) -> None:
        self._find = find
        self._on_finding = on_finding
        self._said: set[tuple[str | None, int | None, str]] = set()
        self._tails: dict[tuple[str, int], _Tail] = {}
        self._directories: dict[str, int] = {}
        self._add(logs)

    @property
    def partition_count(self) -> int:
        return len(self._tails)

    @property
    def file_count(self) -> int:
        return sum(len(tail.files) for tail in self._tails.values())

    def run(self, give: Callable[[Any], None]) -> Never:
        """Yield raw rows with their positions as soon as they are written, until Ctrl-C or a failure."""
        while True:
            for tail in [*self._tails.values()]:
                for rows in tail.new_rows(self._report):
                    give(rows)
            time.sleep(INTERVAL)
            if self._directories != self._looked_at():
                self._directories = self._looked_at()
                with suppress(CommandError):
                    self._add(self._find())

    def _add(self, logs: Sequence[FoundLog]) -> None:
        for log in logs:
            self._tails.setdefault((log.topic, log.partition), _Tail(log))
        self._directories = self._looked_at()

    def _looked_at(self) -> dict[str, int]:
        parents = {str(Path(tail.log.folder).resolve().parent) for tail in self._tails.values()}
        return {parent: _changed(parent) for parent in sorted(parents)}

    def _report(self, finding: Finding) -> None:
        """Report each finding once, although the end of a log is read again and again."""
        found = (finding.file, finding.position, finding.what)
        if found not in self._said:
            self._said.add(found)
            self._on_finding(finding)


class _Tail:
    """How far one log has been read."""

    def __init__(self, log: FoundLog) -> None:
        self.log = log
        self.files: set[str] = set()
        self._seen: object = None
        self._next_offset = 0
        self._last: tuple[int, int] | None = None
        """Identifies the last file, which may have been renamed since."""
        self._position = 0
        """Where its last batch starts. Reading continues there, because anything new follows that batch."""
        self._last_base = 0
        self._last_start = b""
        """The first bytes of that batch, including its checksum."""

    def new_rows(self, report: OnFinding) -> Iterator[Any]:
        """The raw rows after those already yielded."""
        seen = _state(self.log.folder)
        if seen == self._seen:
            return
        with open_log(self.log) as opened:
            self.files.update(segment.path for segment in opened.segments)
            self._go_back(opened)
            rest, start = self._rest(opened)
            try:
                yield from self._rows(rest, start, report)
            finally:
                rest.close()
        self._seen = seen

    def _go_back(self, opened: OpenLog) -> None:
        """Start over if a log was recreated or truncated, so that its offsets are used a second time.

        The newest file only grows until a newer one follows it; neither cleaner nor retention touches it. So if the
        newest file starts earlier than before, or no longer has its former last batch, it belongs to another log.
        """
        last = opened.segments[-1] if opened.segments else None
        if last is None or last.file is None or (last.base_offset or 0) > self._last_base:
            return
        base = last.base_offset or 0
        start = os.pread(_on_disk(last.file).fileno(), len(self._last_start), self._position)
        if base == self._last_base and start == self._last_start:
            return
        before, self._next_offset = self._next_offset, base if base == self._last_base else 0
        self._last, self._last_start, self._position, self._last_base = None, b"", 0, base
        if before > self._next_offset:
            say(
                f"note: {opened.topic}-{opened.partition}: this log was recreated or truncated, and offsets "
                f"that were already read, up to {before - 1}, are used again: records from offset "
                f"{self._next_offset} on are shown"
            )

    def _rest(self, opened: OpenLog) -> tuple[OpenLog, int]:
        """The files from the one with the next offset on, and how many bytes of the first of them to skip."""
        begun = [
            number
            for number, segment in enumerate(opened.segments)
            if segment.base_offset is not None and segment.base_offset <= self._next_offset
        ]
        segments = [*opened.segments[begun[-1] if begun else 0 :]]
        start = 0
        first = segments[0] if segments else None
        if first is not None and first.file is not None and self._last == _identity(_on_disk(first.file)):
            # If the log was truncated, its last file is read again from the start.
            start = self._position if self._position < first.size else 0
            rest_of_file = _RestOfFile(_on_disk(first.file), start)
            segments[0] = SegmentFile(first.path, first.base_offset, rest_of_file, size=first.size - start)
        is_rest = self._last is not None
        findings = () if is_rest and segments else opened.findings
        rest = OpenLog(
            opened.topic, opened.partition, tuple(segments), opened.log_start, findings=findings, is_part=is_rest
        )
        return rest, start

    def _rows(self, rest: OpenLog, start: int, report: OnFinding) -> Iterator[Any]:
        first, last = (rest.segments[0].path, rest.segments[-1]) if rest.segments else ("", None)

        def on_finding(finding: Finding) -> None:
            if finding.severity == "note" and last is not None and finding.file == last.path:
                return  # an incomplete append, or pre-allocated space
            if finding.file == first and finding.position is not None:
                finding = replace(finding, position=finding.position + start)
            report(finding)

        if last is not None and last.file is not None:
            identity = _identity(_on_disk(last.file))
            if identity != self._last:
                self._last_start, self._last_base = b"", last.base_offset or 0
                self._position = 0
            else:
                self._position = start
            self._last = identity
        for rows in read_partition(
            rest,
            below_log_start=True,
            on_finding=on_finding,
            batch_rows=None,
            settle=False,
            columns=COLUMNS,
            places=True,
        ):
            if start:
                rows = _moved(rows, first, start)
            if last is not None and rows.column("file")[-1].as_py() == last.path:
                self._position = rows.column("position")[-1].as_py()
                if last.file is not None:
                    self._last_start = os.pread(_on_disk(last.file).fileno(), _START, self._position)
            new = rows.filter(pc.greater_equal(rows.column("offset"), self._next_offset))
            if new.num_rows:
                yield new
                self._next_offset = pc.max(new.column("offset")).as_py() + 1


class _RestOfFile(FrozenFile):
    """An open file that appears to begin at byte `start`."""

    def __init__(self, file: FrozenFile, start: int) -> None:
        FileIO.__init__(self, os.dup(file.fileno()), "rb")
        self.size = file.size
        self.furthest = 0
        self._start = start

    def seek(self, position: int, whence: int = 0, /) -> int:
        return super().seek(position if whence else position + self._start, whence) - self._start


def _moved(rows: Any, path: str, by: int) -> Any:
    """The rows, with `by` added to their positions in one file."""
    number = rows.schema.get_field_index("position")
    positions = rows.column(number)
    is_there = pc.equal(rows.column("file").cast(pa.string()), path)
    moved = pc.if_else(is_there, pc.add(positions, by), positions)
    columns = [moved if at == number else column for at, column in enumerate(rows.columns)]
    return pa.record_batch(columns, schema=rows.schema)


def _on_disk(file: LogFile) -> FrozenFile:
    """The given file, which is on this machine, because only local files are followed."""
    return cast(FrozenFile, file)


def _identity(file: FrozenFile) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _state(folder: str) -> object:
    """A value that changes with the log: the names of its files, and the inode, size and time of the last one."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIXES))
        if not names:
            return names
        last = os.stat(os.path.join(folder, names[-1]))
        return names, last.st_ino, last.st_size, last.st_mtime_ns
    except OSError as error:
        return error.errno


def _changed(directory: str) -> int:
    try:
        return os.stat(directory).st_mtime_ns
    except OSError:
        return 0
