"""Snapshots as a source: copies of logs from `take_snapshot`, which are kept as long as the user wants.

A snapshot has records that the log has lost since they were read, so it can show times that the log itself no longer
covers.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_records_engine.findings import INCOMPLETE_HISTORY, UNREAD_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources._stored.snapshot_mark import read_mark
from kafka_records_engine.sources._stored.stored_names import (
    folder_of,
    foreign_files,
    is_snapshot,
    partitions_in,
    records_files,
    topics_in,
)
from kafka_records_engine.sources._stored.stretches import (
    Lost,
    StoredFile,
    StoredLog,
    finding_of,
    stored_log,
    unreadable,
)
from kafka_records_engine.sources._stored.views import BEHIND_ALL, as_of, everything
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.protocol import Context, LogEnds
from kafka_records_runtime.text.printable import printable, some_names

if TYPE_CHECKING:
    from kafka_records_engine.log.reading.unread import Unread, UnreadAsked

_FILE: Final = pa.field("file", pa.dictionary(pa.int32(), pa.string()))


class Snapshot:
    """The logs in a directory written by `take_snapshot` (`kafka-records snapshot`), as they are when they are read. A
    run may add records in the meantime.

    Parameters
    ----------
    path
        The directory.

    Raises
    ------
    LogSourceError
        If the directory does not exist or is not a snapshot.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = fspath(path)
        if not is_snapshot(self._path):
            what = "is not a snapshot" if os.path.isdir(self._path) else "there is no such directory"
            raise LogSourceError(self._path, f"{what}: create one with `kafka-records snapshot`")

    def __repr__(self) -> str:
        return f"Snapshot({self._path!r})"

    @property
    def name(self) -> str:
        """The path."""
        return self._path

    def topics(self) -> list[str]:
        """The names of the topics in the snapshot. Raises LogSourceError if there is none yet."""
        found = [topic for topic in topics_in(self._path) if self._partitions(topic)]
        if not found:
            raise LogSourceError(self._path, "this snapshot contains no records yet")
        return found

    def known_topics(self) -> KnownTopics:
        """The names of topics by topic id, as reported by the sources."""
        return KnownTopics(read_mark(self._path)["topic_names"])

    def partitions(self, topic: str) -> list[SnapshotPartition]:
        """The log partitions of `topic`. Raises LogSourceError if there are none."""
        found = self._partitions(topic)
        if not found:
            there = some_names(self.topics())
            raise LogSourceError(self._path, f"there is no log of topic {printable(topic)} here, only logs of {there}")
        return found

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """See `abilities.TellsLogEnds`. Log start and topic id are those that sources reported last. The log ends after
        the last stored row."""
        read = read_mark(self._path)["read"]
        for topic in topics:
            for log in self.partitions(topic):
                context.counts.partitions += 1
                stored = stored_log(self._path, topic, log.partition)
                yield LogEnds(
                    topic,
                    log.partition,
                    stored.topic_id,
                    log_start_offset=max(
                        stored.log_start, read.get(f"{topic}-{log.partition}", {}).get("log_start", 0)
                    ),
                    log_end_offset=stored.end,
                    place=printable(folder_of(self._path, topic, log.partition)),
                )

    def unread(self, asked: Sequence[UnreadAsked], context: Context) -> Iterator[tuple[UnreadAsked, Unread]]:
        """See `abilities.TellsUnread`. The records are counted in the stored rows at the end of each log."""
        from kafka_records_engine.sources._stored.unread_rows import COLUMNS, MOST_ROWS, unread_rows

        for each in asked:
            for log in self._partitions(each.topic):
                if log.partition == each.partition:
                    stored = stored_log(self._path, each.topic, each.partition)
                    first = max(each.end - MOST_ROWS, stored.log_start or 0)
                    of_log = Context(each.topic, each.partition, history=False)
                    yield each, unread_rows(each, log.batches(of_log, COLUMNS, first, each.end), first)

    def _partitions(self, topic: str) -> list[SnapshotPartition]:
        found = []
        for partition in partitions_in(self._path, topic):
            files = records_files(folder_of(self._path, topic, partition))
            if files:
                found.append(SnapshotPartition(self._path, topic, partition, sum(_size(path) for *_, path in files)))
        return found


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class SnapshotPartition:
    """One log partition in a snapshot."""

    root: str
    topic: str
    partition: int
    size: int
    """The size in bytes of its files when they were found."""
    in_memory = False
    has_history = True
    """The snapshot may contain rows that the log has lost."""

    def has_lost_rows(self) -> bool:
        """Whether the snapshot contains rows that the log had lost by the last run."""
        return bool(stored_log(self.root, self.topic, self.partition).surveys)

    def read_at_ms(self) -> int | None:
        """When the original log was last read; None if unknown."""
        return _read_at_ms(self.root, stored_log(self.root, self.topic, self.partition))

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`.

        With `context.history`, all rows are returned; otherwise, only the rows that the log had at the requested time.
        """
        return _Reading(self, context, columns, start, end).batches()


def _read_at_ms(root: str, stored: StoredLog) -> int | None:
    told = read_mark(root)["read"].get(f"{stored.topic}-{stored.partition}")
    if told is not None and told["end"] >= stored.end:
        at_ms: int = told["at_ms"]
        return at_ms
    # A killed run may have stored more rows. The latest time may come from a clock that was moved backwards afterwards.
    return stored.stretches[-1].read_at_ms if stored.stretches else None


class _Reading:
    """One reading of a log partition in a snapshot."""

    def __init__(
        self, log: SnapshotPartition, context: Context, columns: Collection[str], start: int | None, end: int | None
    ) -> None:
        self._log = log
        self._context = context
        self._names = [name for name in columns if name in RAW_SCHEMA.names or name == _FILE.name]
        self._position = 0 if start is None else start
        self._is_ranged = start is not None or end is not None
        self._end = self._asked_end = self._told_before = BEHIND_ALL if end is None else end
        self._done = 0

    def batches(self) -> Iterator[Any]:
        context, log = self._context, self._log
        told = read_mark(log.root)["read"].get(f"{log.topic}-{log.partition}")  # read this first: a run may add rows
        stored = stored_log(log.root, log.topic, log.partition)
        if told is not None and told["end"] > stored.end:
            self._find(
                "damage",
                f"records up to offset {told['end'] - 1} were stored, but the files end at offset {stored.end - 1}",
                "later records are not read; kafka-records snapshot reads those again that the log still has",
            )
        context.counts.partitions += 1
        lost = self._viewed(stored)
        for finding in stored.findings:
            context.report(finding)
        self._tell_foreign()
        self._told_before = self._end
        # Records added from now on belong to a later state.
        self._end = min(self._end, stored.end)
        while (file := self._next_file(stored)) is not None:
            try:
                yield from self._rows(file, lost)
            except FileNotFoundError:
                # Another run merged this file with others. The rows after the last one read are now in the merged file.
                stored = stored_log(log.root, log.topic, log.partition)
                continue
            self._position = file.last + 1
            self._done += _size(file.path)
            context.progress(min(self._done, log.size))
        context.counts.bytes += self._done
        if self._asked_end < stored.end:
            context.log.add_hole(self._asked_end - 1)

    def _viewed(self, stored: StoredLog) -> Lost:
        """Set the known facts in the context. Returns what to leave out."""
        context = self._context
        if context.history:
            view = everything(stored)
        else:
            cut, is_end = _cut(stored, context.question.as_of_ms)
            view = as_of(stored, cut)
            if is_end:
                self._end = min(self._end, cut)
        context.log.start = view.log_start
        context.log.cleaned_up_to = view.cleaned_up_to
        if view.is_due:
            self._find(
                "damage",
                "offsets were deleted from the log before they were read, and no run has checked yet what else was "
                "deleted",
                "records that were deleted then may be shown; kafka-records snapshot checks",
            )
        self._tell_age(stored)
        lost = []
        for survey in view.surveys:
            try:
                survey.lost()
                lost.append(survey)
            except (OSError, pa.ArrowInvalid) as error:
                what = f"cannot be read: {error}"
                consequence = "records that were deleted may be shown"
                context.report(unreadable(survey.path, what, consequence, context.topic, context.partition))
        return Lost(lost)

    def _tell_age(self, stored: StoredLog) -> None:
        """Report that the requested time is later than the data."""
        if self._context.question.as_of_ms is None:
            return
        at = _read_at_ms(self._log.root, stored)
        if at is not None and at < self._context.question.as_of_ms:
            what = f"the last run of this snapshot was at {moment(at)}"
            self._find("note", what, "it does not contain what happened between then and the requested moment")

    def _tell_foreign(self) -> None:
        """Report files in the folders of the snapshot that do not belong to it."""
        folder = folder_of(self._log.root, self._log.topic, self._log.partition)
        names = foreign_files(folder)
        if names:
            what = f"{some_names(names)}: in the folder of a snapshot, but without a name of its files"
            consequence = "not read; read a file of another snapshot in that snapshot"
            topic, partition = self._log.topic, self._log.partition
            self._context.report(
                Finding("note", UNREAD_LOG, what, consequence, topic, partition, file=printable(folder))
            )

    def _find(self, severity: Any, what: str, consequence: str) -> None:
        context = self._context
        context.report(
            Finding(
                severity,
                INCOMPLETE_HISTORY,
                what,
                consequence,
                context.topic,
                context.partition,
                file=printable(folder_of(self._log.root, self._log.topic, self._log.partition)),
            )
        )

    def _next_file(self, stored: StoredLog) -> StoredFile | None:
        files = (each for each in stored.files if each.last >= self._position and each.first < self._end)
        return next(files, None)

    def _rows(self, file: StoredFile, lost: Lost) -> Iterator[Any]:
        context = self._context
        if file.trouble:
            context.report(file.finding(context.topic, context.partition))
            context.log.add_hole(max(self._position, file.first) - 1)
            return
        with _opened(file.path) as opened:
            context.counts.files += 1
            self._tell_of(file)
            for number in range(opened.num_row_groups):
                first, last = _offsets(opened.metadata.row_group(number))
                if last < self._position or first >= self._end:
                    continue
                try:
                    rows = opened.read_row_group(number, columns=self._stored_names)
                except (OSError, pa.ArrowInvalid) as error:
                    what = f"cannot be read: {error}"
                    consequence = f"offsets {first} to {last} are not read"
                    context.report(unreadable(file.path, what, consequence, context.topic, context.partition))
                    context.log.add_hole(max(self._position, first) - 1)
                    continue
                for batch in rows.combine_chunks().to_batches():
                    kept = self._kept(batch, lost)
                    if kept.num_rows:
                        yield self._batch(kept, file.path)
                self._position = last + 1

    def _tell_of(self, file: StoredFile) -> None:
        """Before the rows of a file, report the findings and holes of the runs that wrote it, if they concern the
        range."""
        for stretch in file.stretches:
            if stretch.last < self._position or stretch.first >= self._told_before:
                continue
            for told in stretch.findings:
                if (told.get("base_offset") or 0) < self._told_before:
                    self._context.report(finding_of(told, moment(stretch.read_at_ms)))
            for hole in stretch.holes:
                if hole < self._told_before and (not self._context.log.holes or hole > self._context.log.holes[-1]):
                    self._context.log.add_hole(hole)

    @property
    def _stored_names(self) -> list[str]:
        stored = [name for name in self._names if name not in ("topic", "partition", _FILE.name)]
        return stored if "offset" in stored else [*stored, "offset"]

    def _kept(self, batch: Any, lost: Lost) -> Any:
        offsets = batch.column("offset").to_numpy()
        is_wanted = (offsets >= self._position) & (offsets < self._end)
        if self._is_ranged:
            self._context.counts.outside += int((~is_wanted).sum())
        if lost:
            is_wanted &= ~lost.among(offsets)
        return batch if is_wanted.all() else batch.filter(pa.array(is_wanted))

    def _batch(self, rows: Any, path: str) -> Any:
        arrays = [self._column(rows, name, path) for name in self._names]
        schema = pa.schema([_FILE if name == _FILE.name else RAW_SCHEMA.field(name) for name in self._names])
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _column(self, rows: Any, name: str, path: str) -> Any:
        if name == "topic":
            return pa.repeat(pa.scalar(self._log.topic, pa.string()), rows.num_rows)
        if name == "partition":
            return pa.repeat(pa.scalar(self._log.partition, pa.int32()), rows.num_rows)
        if name == _FILE.name:
            numbers = pa.array(np.zeros(rows.num_rows, np.int32))
            return pa.DictionaryArray.from_arrays(numbers, pa.array([printable(path)], pa.string()))
        return rows.column(name)


def _opened(path: str) -> Any:
    return pq.ParquetFile(path, page_checksum_verification=True)


def _offsets(row_group: Any) -> tuple[int, int]:
    """The first and last offset of a row group."""
    number = next(
        number for number in range(row_group.num_columns) if row_group.column(number).path_in_schema == "offset"
    )
    statistics = row_group.column(number).statistics
    return statistics.min, statistics.max


def _cut(stored: StoredLog, as_of_ms: int | None) -> tuple[int, bool]:
    """The offset at which the log ended at a given time, and whether it is known more exactly than from the rows.

    In the rows, it is the first one with a later timestamp. If records before that one were gone before they could be
    read, it is unknown when they were written, unless a broker reported at that time that the log ended before them.
    """
    later = BEHIND_ALL if as_of_ms is None else _first_later(stored, as_of_ms)
    if as_of_ms is not None and later < BEHIND_ALL:
        for before, each in pairwise(stored.stretches):
            if each.first == later and before.last + 1 < later:
                ended = (before.ended_at_ms, each.quiet_until_ms)
                # A time later than that of the next reading comes from a clock that was moved backwards in between.
                if any(at is not None and as_of_ms <= at <= each.read_at_ms for at in ended):
                    return before.last + 1, True
    return later, False


def _first_later(stored: StoredLog, as_of_ms: int) -> int:
    for file in stored.files:
        if not any(each.latest_ms > as_of_ms for each in file.stretches):
            continue
        try:
            with _opened(file.path) as opened:
                for number in range(opened.num_row_groups):
                    rows = opened.read_row_group(number, columns=["offset", "timestamp_ms"])
                    later = np.flatnonzero(rows["timestamp_ms"].to_numpy() > as_of_ms)
                    if len(later):
                        return int(rows["offset"][int(later[0])].as_py())
        except (OSError, pa.ArrowInvalid):
            return file.first  # the rows of this file are reported as unreadable
    return BEHIND_ALL


def moment(milliseconds: int) -> str:
    """A time as shown in messages."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
