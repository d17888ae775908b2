"""Takes snapshots: stores the raw rows of any source in a directory before a cleaner or retention removes them from the
log.

A run continues after the last stored offset. With regular runs, the snapshot contains every record that stayed in the
log for longer than the time between two runs. A run may be killed at any time, because a file gets its final name only
when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from os import PathLike
from typing import Any, Final

from kafka_records_engine import arguments
from kafka_records_engine.findings import Finding, OnFinding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.paths import is_url, on_this_machine, without_secrets
from kafka_records_engine.log.files.source_error import NotReadable
from kafka_records_engine.sources._stored.locking import locked_directory
from kafka_records_engine.sources._stored.log_passes import OtherLog
from kafka_records_engine.sources._stored.one_run import Run
from kafka_records_engine.sources._stored.run_state import Added, SnapshotReport
from kafka_records_engine.sources._stored.snapshot_mark import read_mark, write_mark
from kafka_records_engine.sources._stored.stored_names import (
    GONE,
    LOCK,
    MARK,
    PART,
    is_snapshot,
    remove_incomplete,
    topics_in,
)
from kafka_records_engine.sources.abilities import TellsLogStarts, has
from kafka_records_engine.sources.broker_threads import do_by_broker
from kafka_records_engine.sources.given import source_of
from kafka_records_engine.sources.known_topics import known_topics
from kafka_records_engine.sources.missing_rights import lacking_coordinator_topics, logs_of_topics
from kafka_records_engine.sources.protocol import LogPartition, Source
from kafka_records_engine.sources.shared_progress import SharedProgress
from kafka_records_engine.sources.time_limit import now_ms
from kafka_records_runtime.text.printable import is_utf_8

__all__ = ["FILE_BYTES", "Added", "OtherLog", "SnapshotBusy", "SnapshotReport", "take_snapshot"]

FILE_BYTES: Final = 256 * 1024 * 1024
"""The default size in bytes at which a file is closed."""

OnBytesRead = Callable[[int, int], None]


class SnapshotBusy(LogSourceError):
    """Another process is writing to the snapshot."""


def take_snapshot(
    source: Any,
    path: str | PathLike[str],
    topics: Sequence[str] | None = None,
    *,
    file_bytes: int = FILE_BYTES,
    on_progress: OnBytesRead | None = None,
    on_finding: OnFinding | None = None,
) -> SnapshotReport:
    """Store the records of `source` that the snapshot in the directory `path` does not contain yet.

    Parameters
    ----------
    source
        Any source, or anything that `given.source_of` accepts: one or more paths, or raw rows in Arrow. It is never
        changed.
    path
        The directory. It is created if it does not exist; otherwise it must be empty or a snapshot.
    topics
        The topics to store. The default is all topics of the source.
    file_bytes
        The size at which a file is closed and a new one is begun.
    on_progress
        Called with the number of bytes read so far, and with the total.
    on_finding
        Called with each finding as soon as it is made. Several brokers are read at the same time in threads, but only
        one thread at a time calls these functions.

    Raises
    ------
    LogSourceError
        If the source cannot be read, or the directory contains something other than a snapshot. Log partitions that the
        user may not read (NotReadable) and topics that brokers hide (MissingRight) are only reported as findings; all
        others are stored.
    SnapshotBusy
        If another process is writing to the snapshot.
    TypeError, ValueError
        For invalid arguments, before anything is written.
    """
    named = on_this_machine(arguments.path("path", path))
    arguments.count("file_bytes", file_bytes, "bytes")
    for name, given in (("on_progress", on_progress), ("on_finding", on_finding)):
        if given is not None:
            arguments.function(name, given)
    if topics is not None and not (topics := arguments.names("topics", topics)):
        raise ValueError("topics is empty; leave it out to store all topics")
    source = source_of(source)
    if is_url(named):
        what = "snapshots are written only on this machine: give a local directory, and copy it afterwards"
        raise LogSourceError(without_secrets(named), what)
    root = os.path.abspath(named)
    if not is_utf_8(root):
        what = "this path is not UTF-8, but Arrow needs UTF-8 to write the files: choose another directory"
        raise LogSourceError(named, what)
    if not is_snapshot(root):
        # check the source first, so that an unreadable one does not leave an empty directory
        _logs(source, topics, _forget)
    busy = SnapshotBusy(root, "another process is adding to this snapshot: wait until it has ended")
    with locked_directory(root, "snapshot", busy, _check_is_ours):
        begin_snapshot(root)
        # List the logs only after locking, because another run that has just ended may have stored records beyond an
        # earlier log end.
        started_ms = now_ms()
        lacking: list[Finding] = []
        logs = _logs(source, topics, lacking.append)
        # The stored rows end where the logs end now, so every topic that a record refers to already exists.
        names = dict(known_topics(source).names)
        name, topics_read = getattr(source, "name", type(source).__name__), dict.fromkeys(log.topic for log in logs)
        run = Run(root, name, names, file_bytes, on_finding, started_ms, topics_read)
        for finding in lacking:
            run.say(finding)
        starts = _log_starts(source, topics or ())
        progress = SharedProgress(sum(log.size for log in logs), on_progress)

        def store(task: tuple[int, LogPartition]) -> None:
            number, log = task
            run.take(log, lambda done: progress.moved(number, min(done, log.size)))
            progress.moved(number, log.size)

        do_by_broker([*enumerate(logs)], lambda task: task[1], store)
        # Sort by log, so that the order does not depend on the speed of brokers.
        run.report.findings.sort(key=lambda found: found.order[:2])
        for place, offset in starts.items():
            if place in run.read:
                run.read[place]["log_start"] = offset
        _end(root, names, run.read)
    if run.forbidden and len(run.forbidden) == len(logs):
        raise run.forbidden[0]
    return run.report


def _logs(source: Source, topics: Sequence[str] | None, tell: OnFinding) -> list[LogPartition]:
    if topics is not None:
        return logs_of_topics(source, topics, (), tell)
    there = source.topics()
    return logs_of_topics(source, there, lacking_coordinator_topics(source, there), tell)


def _log_starts(source: Source, topics: Sequence[str]) -> dict[str, int]:
    """Where the logs of topics start in files, by topic and partition. If a log lacks its first files, its rows show
    only the position of the first record."""
    if not topics or not has(source, TellsLogStarts):
        return {}
    found: dict[str, int] = {}
    for topic in topics:
        # If this client may not read a log, the error is reported when its rows are read.
        with suppress(NotReadable):
            starts = source.log_starts([topic]).offsets
            found |= {f"{topic}-{partition}": offset for (_, partition), (_, offset) in starts.items()}
    return found


def _forget(finding: Finding) -> None:
    """Ignore a finding, because it is reported when the log is read for storing."""


# -- the directory -----------------------------------------------------------------------------------------------------


def _check_is_ours(root: str) -> None:
    names = sorted(os.listdir(root))
    others = [name for name in names if name not in (LOCK, GONE) and not name.startswith("topic=")]
    others = [name for name in others if not name.endswith(PART)]
    if others and MARK not in others:
        raise LogSourceError(
            root, f"this directory contains something else ({others[0]}): give a new one, or a snapshot"
        )


def begin_snapshot(root: str) -> None:
    """Turn a directory into a snapshot, and remove incomplete files of a killed run. Requires the lock."""
    for folder in (root, os.path.join(root, GONE)):
        remove_incomplete(folder)
        for topic in topics_in(folder):
            remove_incomplete(os.path.join(folder, f"topic={topic}"))
    if not os.path.exists(os.path.join(root, MARK)):
        write_mark(root, {"format": 1, "topic_names": {}, "read": {}})
    read_mark(root)


def _end(root: str, names: dict[str, str], read: dict[str, Any]) -> None:
    """Store how far each log was read, and when. (Files with records show it only if there were new records.)"""
    told = read_mark(root)
    known = {**told["topic_names"], **names}
    write_mark(
        root,
        {**told, "topic_names": dict(sorted(known.items())), "read": {**told["read"], **dict(sorted(read.items()))}},
    )
