"""Taking a snapshot: raw rows of any source into a directory, before a cleaner or retention removes them from the log.

A run continues behind the last offset that is stored, so running it again and again keeps everything that was in the
log for longer than the time between two runs. It may be killed at any moment: a file has its name when it is complete.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from os import PathLike, fspath
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_records_engine.findings import DAMAGED_LOG, Finding, OnFinding
from kafka_records_engine.log.discovery import LogSourceError
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_engine.sources._stored.stored_names import (
    GONE,
    LOCK,
    MARK,
    PART,
    folder_of,
    gone_folder_of,
    make_folder,
    part_name,
    remove_incomplete,
    replace_file,
)
from kafka_records_engine.sources._stored.stretches import (
    Lost,
    StoredLog,
    Stretch,
    Survey,
    ranges_of,
    stored_log,
    told_of,
)
from kafka_records_engine.sources._stored.transaction_ends import PARTS, TransactionEnds
from kafka_records_engine.sources._stored.writing_files import (
    COLUMNS,
    SCHEMA,
    RecordsFile,
    join_small_files,
    write_survey,
)
from kafka_records_engine.sources.protocol import Context, LogPartition, Source
from kafka_records_engine.sources.snapshots import read_mark
from kafka_records_runtime.uuids import ZERO_UUID, Uuid

FILE_BYTES: Final = 256 * 1024 * 1024
"""A file is closed when it has so many bytes."""

_TAIL: Final = 64
"""So many of the last stored rows are compared with what the source has at their offsets."""

_COMPARED: Final = ("timestamp_ms", "key", "value", "producer_id", "producer_epoch", "control")
_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL)

OnBytesRead = Callable[[int, int], None]


class SnapshotBusy(LogSourceError):
    """Another process is writing to the snapshot."""


class OtherLog(LogSourceError):
    """A log that is not the one whose records are stored: its records must not be mixed with them."""


@dataclass(slots=True)
class Added:
    """What a run added of one topic, or found out."""

    partitions: int = 0
    grown: int = 0
    """Partitions with new rows."""
    records: int = 0
    markers: int = 0
    files: int = 0
    """Files that were written, before small ones were joined."""
    lost: int = 0
    """Offsets that were gone from the log between two runs, or had no record when they were read."""
    looked: int = 0
    """Partitions whose whole log was looked at, to know what else it had lost."""


@dataclass(slots=True)
class SnapshotReport:
    """What a run did, by topic, and what it found."""

    topics: dict[str, Added] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def take_snapshot(
    source: Source,
    path: str | PathLike[str],
    topics: Sequence[str] | None = None,
    *,
    file_bytes: int = FILE_BYTES,
    on_progress: OnBytesRead | None = None,
    on_finding: OnFinding | None = None,
) -> SnapshotReport:
    """Store what `source` has and the snapshot in the directory `path` has not.

    Parameters
    ----------
    source
        Any source. It is only read.
    path
        The directory; it is made if it is not there. One that is there has to be a snapshot or empty.
    topics
        The topics to store; by default all of the source.
    file_bytes
        The size at which a file is closed and another one begun.
    on_progress
        Called with the bytes that were read so far, and with those there are.
    on_finding
        Called with each finding, as soon as it is made.

    Raises
    ------
    LogSourceError
        For a source that cannot be read, and a directory that is something else.
    SnapshotBusy
        When another process is writing to the snapshot.
    """
    root = os.path.abspath(fspath(path))
    started_ms = now_ms()
    chosen = list(source.topics() if topics is None else topics)
    logs = [log for topic in chosen for log in source.partitions(topic)]
    names = _topic_names(source)
    with _locked(root):
        _begin(root)
        run = _Run(root, source, names, file_bytes, on_finding, started_ms)
        total, done = sum(log.size for log in logs), 0
        for log in logs:
            run.take(log, None if on_progress is None else _moved(on_progress, done, total, log.size))
            done += log.size
        _end(root, names, run.read)
    return run.report


def _moved(on_progress: OnBytesRead, done: int, total: int, size: int) -> Callable[[int], None]:
    return lambda more: on_progress(done + min(more, size), total)


def _topic_names(source: Source) -> dict[str, str]:
    known = getattr(source, "topic_names", None)
    return {} if known is None else dict(known())


# -- the directory -----------------------------------------------------------------------------------------------------


@contextmanager
def _locked(root: str) -> Iterator[None]:
    """Keep other runs out. The kernel ends the lock with its process.

    Where a file system has no locks, two runs at once write the same records twice, of which one is read.
    """
    if not os.path.isdir(os.path.dirname(root)):
        raise LogSourceError(root, f"there is no directory {os.path.dirname(root)}")
    if os.path.exists(root) and not os.path.isdir(root):
        raise LogSourceError(root, "is a file, and a snapshot is a directory")
    make_folder(root)
    _check_is_ours(root)
    handle = os.open(os.path.join(root, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SnapshotBusy(root, "another process is adding to this snapshot: wait until it has ended") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(handle)


def _check_is_ours(root: str) -> None:
    names = sorted(os.listdir(root))
    others = [name for name in names if name not in (LOCK, GONE) and not name.startswith("topic=")]
    others = [name for name in others if not name.endswith(PART)]
    if others and MARK not in others:
        raise LogSourceError(root, f"this directory holds something else ({others[0]}): name a new one, or a snapshot")


def _begin(root: str) -> None:
    remove_incomplete(root)
    if not os.path.exists(os.path.join(root, MARK)):
        _write_mark(root, {"format": 1, "topic_names": {}, "read": {}})
    read_mark(root)


def _end(root: str, names: dict[str, str], read: dict[str, Any]) -> None:
    """Note up to where each log was read, and when: the files with records tell that only where something was new."""
    told = read_mark(root)
    known = {**told["topic_names"], **names}
    _write_mark(root, {**told, "topic_names": dict(sorted(known.items())), "read": {**told["read"], **read}})


def _write_mark(root: str, told: dict[str, Any]) -> None:
    part = part_name(root)
    try:
        with open(part, "w", encoding="utf-8") as out:
            json.dump(told, out, indent=1)
        replace_file(part, os.path.join(root, MARK))
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


# -- one run -----------------------------------------------------------------------------------------------------------


class _Run:
    def __init__(
        self,
        root: str,
        source: Source,
        names: dict[str, str],
        file_bytes: int,
        on_finding: OnFinding | None,
        started_ms: int,
    ) -> None:
        self.started_ms = started_ms
        self._before = read_mark(root)["read"]
        self.root = root
        self.id = os.urandom(8).hex()
        self.name = getattr(source, "name", type(source).__name__)
        self.file_bytes = file_bytes
        self.report = SnapshotReport()
        self.read: dict[str, Any] = {}
        self._topic_ids = {topic: topic_id for topic_id, topic in names.items()}
        self._on_finding = on_finding
        self._said: set[str] = set()

    def take(self, log: LogPartition, moved: Callable[[int], None] | None) -> None:
        """Store what is new in one log partition. What is wrong with it keeps nobody from the others."""
        added = self.report.topics.setdefault(log.topic, Added())
        added.partitions += 1
        folder = folder_of(self.root, log.topic, log.partition)
        for each in (folder, gone_folder_of(self.root, log.topic, log.partition)):
            remove_incomplete(each)
        try:
            stored = self._take(log, added, moved)
        except LogSourceError as error:
            self.say(Finding("damage", DAMAGED_LOG, str(error), "nothing of it is stored", log.topic, log.partition))
            return
        join_small_files(stored.files, self.file_bytes)
        ended_at_ms = None if _high_watermark(log) is None else self.started_ms
        told = {"end": stored.end, "at_ms": now_ms(), "ended_at_ms": ended_at_ms}
        self.read[f"{log.topic}-{log.partition}"] = told

    def _take(self, log: LogPartition, added: Added, moved: Callable[[int], None] | None) -> StoredLog:
        before = stored_log(self.root, log.topic, log.partition)
        for file in before.files:
            if file.trouble:
                self.say(file.finding(log.topic, log.partition))
        for finding in before.findings:
            self.say(finding)
        first = _Pass(self, log, before, moved, is_survey=False)
        first.run(added)
        stored = stored_log(self.root, log.topic, log.partition)
        added.grown += stored.end > before.end
        if before.files:
            added.lost += max(stored.end - before.end - first.rows, 0)
        if stored.unsurveyed() or first.has_log_start_risen or _has_lost_rows(log):
            second = _Pass(self, log, stored, moved, is_survey=True)
            second.run(added)
            added.looked += 1
            stored = stored_log(self.root, log.topic, log.partition)
        return stored

    def topic_id(self, log: LogPartition) -> str | None:
        """The id of the topic of a log, as Kafka writes it; None where nobody knows it."""
        told = getattr(log, "topic_id", None)
        if isinstance(told, bytes) and len(told) == 16 and told != ZERO_UUID:
            return str(Uuid(told))
        return self._topic_ids.get(log.topic)

    def quiet_until_ms(self, stored: StoredLog) -> int | None:
        """When a run before this one last heard that a log ends where the stored rows end."""
        told = self._before.get(f"{stored.topic}-{stored.partition}")
        return None if told is None or told["end"] != stored.end else told["ended_at_ms"]

    def say(self, finding: Finding) -> None:
        """Keep a finding; one that is met twice is told once."""
        text = str(finding)
        if text not in self._said:
            self._said.add(text)
            self.report.findings.append(finding)
            if self._on_finding is not None:
                self._on_finding(finding)


def _has_lost_rows(log: LogPartition) -> bool:
    """Whether the source itself knows of rows that the log has lost, as a snapshot does."""
    told = getattr(log, "has_lost_rows", None)
    return told is not None and told()


def _high_watermark(log: LogPartition) -> int | None:
    """Where the log ended when it was found, if a broker said so. Of files nobody can tell how old they are."""
    return getattr(log, "end", None)


def now_ms() -> int:
    """The time."""
    return time.time_ns() // 1_000_000


class _Pass:
    """Reads one log partition, from the last stored rows on or from its start, and stores what is behind them."""

    def __init__(
        self, run: _Run, log: LogPartition, stored: StoredLog, moved: Callable[[int], None] | None, *, is_survey: bool
    ) -> None:
        self._run = run
        self._log = log
        self._stored = stored
        self._is_survey = is_survey
        self._context = Context(log.topic, log.partition, history=not is_survey)
        if moved is not None:
            self._context.progress = moved
        self._folder = folder_of(run.root, log.topic, log.partition)
        self._tail = _tail(stored)
        self._file: RecordsFile | None = None
        self._behind = stored.end - 1
        """The last offset that is stored."""
        self._seen = -1
        self._there: list[INT64] = []
        self._told_holes = self._told_findings = 0
        self._ends = TransactionEnds()
        self.rows = 0

    def run(self, added: Added) -> None:
        """Read and store. Raises OtherLog, before anything is stored, for a log that is another one."""
        log, context, stored = self._log, self._context, self._stored
        self._check_id()
        start = None if self._is_survey or not stored.files else (self._tail[0]["offset"] if self._tail else stored.end)
        self._asked_from = start
        try:
            for batch in log.batches(context, COLUMNS, start):
                self._take(batch, added)
                self._tell()
            context.sum_up()
            self._tell()
            self._check_end()
            self._check_outcomes()
            if self._file is not None:
                self._close(added, is_last=True)
        except BaseException:
            if self._file is not None:
                self._file.abandon()
            raise
        if self._is_survey:
            self._survey()

    @property
    def has_log_start_risen(self) -> bool:
        """Whether rows that are stored lie below the log start, which nobody knew so far."""
        start, stored = self._context.log_start, self._stored
        return bool(stored.files) and start is not None and start > max(stored.log_start, stored.files[0].first)

    # -- rows ----------------------------------------------------------------------------------------------------------

    def _take(self, batch: Any, added: Added) -> None:
        if not batch.num_rows:
            return
        self._ends.note(batch)
        offsets = batch.column("offset").to_numpy()
        self._seen = max(self._seen, int(offsets[-1]))
        if offsets[0] <= self._behind:
            is_old = offsets <= self._behind
            self._compare(batch, offsets)
            if self._is_survey:
                self._there.append(offsets[offsets < self._stored.end].copy())
            batch = batch.filter(pa.array(~is_old))
            if not batch.num_rows:
                return
        rows = self._plain(batch)
        if self._file is not None and self._file.size >= self._run.file_bytes:
            self._close(added, is_last=False)
        if self._file is None:
            self._file = RecordsFile(self._folder)
        self._file.write(rows)
        self._behind = self._file.last
        self.rows += rows.num_rows
        markers = rows.num_rows - rows.column("control").null_count
        added.records += rows.num_rows - markers
        added.markers += markers

    def _plain(self, batch: Any) -> Any:
        """The rows as they are stored: how a transaction ended is left to the markers."""
        arrays = []
        there = set(batch.schema.names)
        for name in COLUMNS:
            kind = SCHEMA.field(name).type
            if name not in there:  # sources may lack columns of the place
                arrays.append(pa.nulls(batch.num_rows, kind))
                continue
            column = batch.column(name)
            if name == "transaction":
                is_part = pc.and_(pc.is_in(column, pa.array(PARTS)), batch.column("control").is_null())
                column = pc.if_else(is_part, pa.scalar("pending"), column)
            arrays.append(column.cast(kind))
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    def _check_outcomes(self) -> None:
        for offset in self._ends.without_marker():
            what = (
                f"the source says how the transaction of the record at offset {offset} ended, and has no control "
                "record for it"
            )
            self._find(what, "it is stored as one whose end is not known: take the snapshot of a source with them")

    # -- whether it is the same log ------------------------------------------------------------------------------------

    def _check_id(self) -> None:
        known, here = self._stored.topic_id, self._run.topic_id(self._log)
        if known is not None and here is not None and known != here:
            raise OtherLog(
                self._run.root,
                f"the snapshot has records of the topic with the id {known}, and {self._log.topic} has the id {here} "
                "now: it was deleted and made anew. Take the snapshot of the new one into another directory",
            )

    def _compare(self, batch: Any, offsets: INT64) -> None:
        if not self._tail or offsets[-1] < self._tail[0]["offset"]:
            return
        stored = {row["offset"]: row for row in self._tail}
        for at in np.flatnonzero((offsets >= self._tail[0]["offset"]) & (offsets <= self._tail[-1]["offset"])).tolist():
            row = stored.get(int(offsets[at]))
            here = {name: batch.column(name)[at].as_py() for name in _COMPARED}
            if row is not None and any(row[name] != here[name] for name in _COMPARED):
                raise OtherLog(
                    self._run.root,
                    f"the record at offset {row['offset']} of {self._log.topic}-{self._log.partition} is not the one "
                    f"that is stored: the topic was made anew, or its end was written again. {_ELSEWHERE}",
                )

    def _check_end(self) -> None:
        """The last record of a log is never cleaned away. Who does not have it has less than is stored."""
        stored = self._stored
        if not stored.files or self._has_reached_end or self._context.holes:
            return
        ends = f"ends at offset {self._seen}" if self._seen >= 0 else "has no record behind the stored ones"
        raise OtherLog(
            self._run.root,
            f"{self._log.topic}-{self._log.partition} {ends}, and records up to offset {stored.end - 1} are stored: "
            f"this is an older copy of the log, or the topic was made anew, or its end was cut off. {_ELSEWHERE}",
        )

    @property
    def _has_reached_end(self) -> bool:
        """Whether the log was read up to where the stored rows end, or has nothing left from before that."""
        log_start = self._context.log_start
        return self._seen >= self._stored.end - 1 or (log_start is not None and log_start >= self._stored.end)

    # -- what goes into the files --------------------------------------------------------------------------------------

    def _close(self, added: Added, *, is_last: bool) -> None:
        assert self._file is not None
        file, context, run = self._file, self._context, self._run
        holes = context.holes[self._told_holes :]
        known = [told for stretch in self._stored.stretches for told in stretch.findings]
        damage = [told_of(found) for found in context.findings if found.severity == "damage"]
        stretch = Stretch(
            run=run.id,
            source=run.name,
            read_at_ms=now_ms(),
            topic_id=run.topic_id(self._log),
            first=file.first,
            last=file.last,
            rows=file.rows,
            latest_ms=file.latest_ms,
            asked_from=self._asked_from,
            log_start=context.log_start,
            cleaned_up_to=self._reach(is_last),
            is_last=is_last,
            ended_at_ms=run.started_ms if is_last and _high_watermark(self._log) is not None else None,
            quiet_until_ms=run.quiet_until_ms(self._stored),
            holes=tuple(holes),
            findings=tuple(told for told in damage[self._told_findings :] if told not in known),
        )
        self._told_holes, self._told_findings = len(context.holes), len(damage)
        file.close([stretch])
        self._file = None
        added.files += 1

    def _reach(self, is_complete: bool) -> int | None:
        """The offset below which a cleaner may have been."""
        reach = self._context.cleaned_up_to
        if reach is None:
            # Brokers say where the log ended; of others the end of what they gave is known when it has come.
            reach = _high_watermark(self._log)
        if reach is None and is_complete:
            reach = self._behind + 1
        if reach is not None and is_complete and self._asked_from is None:
            # A cleaner goes no further than the first record of an open transaction (LogCleanerManager).
            reach = min(reach, self._ends.last_stable(reach))
        return reach

    def _tell(self) -> None:
        for finding in self._context.findings:
            self._run.say(finding)

    def _find(self, what: str, consequence: str) -> None:
        found = Finding("damage", DAMAGED_LOG, what, consequence, self._log.topic, self._log.partition)
        self._context.report(found)
        self._tell()

    # -- what the log has lost -----------------------------------------------------------------------------------------

    def _survey(self) -> None:
        """Store which of the stored offsets the log has no more."""
        log, run, context = self._log, self._run, self._context
        if not self._has_reached_end:
            return  # not all could be read, which was told
        there = np.concatenate([np.empty(0, np.int64), *self._there])
        unjudged = _behind_holes(context.holes, there)
        known = Lost(self._stored.surveys)
        firsts, lasts = [], []
        for file in self._stored.files:
            if file.trouble:
                continue
            with pq.ParquetFile(file.path) as opened:
                offsets = opened.read(columns=["offset"])["offset"].to_numpy()
            is_lost = ~np.isin(offsets, there, assume_unique=True) & ~known.among(offsets) & ~unjudged(offsets)
            first, last = ranges_of(offsets, is_lost)
            firsts.append(first)
            lasts.append(last)
        end, reach = self._behind + 1, self._reach(is_complete=True)
        assert reach is not None
        survey = Survey(
            run=run.id,
            source=run.name,
            read_at_ms=now_ms(),
            end=end,
            log_start=context.log_start,
            cleaned_up_to=reach,
        )
        folder = gone_folder_of(run.root, log.topic, log.partition)
        write_survey(folder, survey, np.concatenate(firsts), np.concatenate(lasts))


_ELSEWHERE: Final = "Take the snapshot of this one into another directory"


def _tail(stored: StoredLog) -> list[dict[str, Any]]:
    """The last stored rows."""
    if not stored.files or stored.files[-1].trouble:
        return []
    try:
        with pq.ParquetFile(stored.files[-1].path, page_checksum_verification=True) as file:
            rows = file.read_row_group(file.num_row_groups - 1, columns=["offset", *_COMPARED])
    except (OSError, pa.ArrowInvalid):
        return []
    tail: list[dict[str, Any]] = rows.slice(max(rows.num_rows - _TAIL, 0)).to_pylist()
    return tail


def _behind_holes(holes: Sequence[int], there: INT64) -> Callable[[INT64], FLAGS]:
    """A function that says which offsets lie between a place that could not be read and the next row that was."""

    def unjudged(offsets: INT64) -> FLAGS:
        found: FLAGS = np.zeros(len(offsets), np.bool_)
        for hole in holes:
            at = int(np.searchsorted(there, hole, side="right"))
            behind = int(there[at]) if at < len(there) else None
            found |= (offsets > hole) & ((offsets < behind) if behind is not None else True)
        return found

    return unjudged
