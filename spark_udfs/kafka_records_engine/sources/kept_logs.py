"""Keeps the records of logs between runs in the directory of `--state`, so that a run reads only what is new.

DIR/_state.json marks the directory, and has the ids of the topics DIR/_lock locked by the run that uses it DIR/last a
snapshot with only the records that tables of state need (`compaction`) DIR/all a snapshot with all records, for tables
of what happened DIR/answers answers of tables, for as long as nothing changes
(`kafka_records_tables.engines.kept_answers`)
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final
from zlib import crc32

from kafka_records_engine import arguments
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.files.paths import is_url, on_this_machine, without_secrets
from kafka_records_engine.sources import compaction
from kafka_records_engine.sources._stored.locking import locked_directory
from kafka_records_engine.sources._stored.log_passes import OtherTopic
from kafka_records_engine.sources._stored.one_run import Run
from kafka_records_engine.sources._stored.stored_names import (
    LOCK,
    PART,
    folder_of,
    make_folder,
    part_name,
    remove_incomplete,
    remove_outdated,
    replace_file,
)
from kafka_records_engine.sources._stored.stretches import StoredLog, stored_log
from kafka_records_engine.sources.abilities import AskedMeanwhile, HasTopicId, has
from kafka_records_engine.sources.broker_logs import BrokerPartition
from kafka_records_engine.sources.broker_threads import do_by_broker
from kafka_records_engine.sources.known_topics import known_topics
from kafka_records_engine.sources.missing_rights import COORDINATOR_TOPICS, MissingRight, missing_rights
from kafka_records_engine.sources.protocol import Context, LogEnds, LogPartition, Source
from kafka_records_engine.sources.seen_logs import SeenLogs
from kafka_records_engine.sources.shared_progress import SharedProgress
from kafka_records_engine.sources.snapshot_runs import FILE_BYTES, begin_snapshot
from kafka_records_engine.sources.snapshots import SnapshotPartition
from kafka_records_engine.sources.time_limit import now_ms

MARK: Final = "_state.json"
ANSWERS: Final = "answers"
_KEPT_IN: Final = ("last", "all")
"""The folders of records: without history, and with it."""
_FORMAT: Final = 1
_log: Final = logging.getLogger(__name__)
_BEGIN_AGAIN: Final = "delete the directory, and the next run starts over"

OLDEST_MS: Final = 24 * 60 * 60 * 1000
"""The maximum age of the stored rows, in milliseconds. Before the rows reach it, the log partition is read again from
its start.

So rows that a cleaner has removed disappear here too, and no tombstone is missed, because a log keeps tombstones longer
(`delete.retention.ms`).
"""


_OF_NOW: Final = ("unread", "first_unread", "retentions")
"""What a view may request from a source while it is computed, and what is not cached."""
_SEEN: Final = ("known_topics", "log_starts", "log_ends")
"""The requests that `SeenLogs` can repeat."""


class StateBusy(LogSourceError):
    """Another run is using the directory."""


class OtherCluster(LogSourceError):
    """The stored rows belong to another cluster, or to topics deleted since."""


class StateDirectory:
    """A directory that stores the rows of a run for the next one. The directory is created if needed, and only one run
    at a time may use it.

    Parameters
    ----------
    path
        The directory: a new one, an empty one, or one that earlier runs have used.
    needed
        The rows that tables of state need (`compaction.NeededRows`).

    Raises
    ------
    LogSourceError
        If the path is not a directory, or the directory contains something else.
    StateBusy
        While another run uses it.
    """

    def __init__(self, path: str | PathLike[str], needed: compaction.NeededRows) -> None:
        named = on_this_machine(arguments.path("state", path))
        if is_url(named):
            raise LogSourceError(without_secrets(named), "state can be kept only on local disk: give a local directory")
        self.root = os.path.abspath(named)
        self.needed = needed

    @contextmanager
    def opened(self) -> Iterator[StateDirectory]:
        """Lock the directory for this run."""
        busy = StateBusy(self.root, "another run uses this state: wait until it has ended, or give each its own")
        with locked_directory(self.root, "state", busy, _check_is_ours):
            with told_as_errors(self.root):
                self._prepare()
            yield self

    def _prepare(self) -> None:
        remove_incomplete(self.root)
        if not os.path.exists(os.path.join(self.root, MARK)):
            self._write({"format": _FORMAT, "topic_ids": {}})
        self._topic_ids()
        make_folder(self.answers)
        remove_incomplete(self.answers)

    @property
    def answers(self) -> str:
        """The folder of kept answers."""
        return os.path.join(self.root, ANSWERS)

    def logs(
        self, source: Source, *, with_history: bool, on_progress: Callable[[int, int], None] | None = None
    ) -> KeptLogs:
        """A source with the same logs, whose rows are stored here. `with_history` says whether to store all rows."""
        root = os.path.join(self.root, _KEPT_IN[with_history])
        with told_as_errors(root):
            make_folder(root)
            begin_snapshot(root)
        return KeptLogs(source, self, root, None if with_history else self.needed, on_progress)

    def check_topic(self, topic: str, topic_id: str | None) -> None:
        """Remember the id of a topic. Raises OtherCluster if it had another id."""
        if topic_id is None:
            return
        known = self._topic_ids()
        if known.get(topic, topic_id) != topic_id:
            raise OtherCluster(
                self.root,
                f"this directory has the state of another cluster, or {topic} has since been deleted and recreated: "
                f"its id was {known[topic]}, and now is {topic_id}. Give another directory, or delete this one to "
                "start over",
            )
        if topic not in known:
            self._write({"format": _FORMAT, "topic_ids": {**known, topic: topic_id}})

    def _topic_ids(self) -> dict[str, str]:
        path = os.path.join(self.root, MARK)
        try:
            told = json.loads(Path(path).read_text("utf-8"))
            if told["format"] != _FORMAT:
                raise ValueError("the directory was written by another version of kafka-records")
            return {str(name): str(topic_id) for name, topic_id in told["topic_ids"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            detail = getattr(error, "strerror", None) or error
            raise LogSourceError(path, f"cannot be used: {detail}; {_BEGIN_AGAIN}") from None

    def _write(self, told: dict[str, Any]) -> None:
        write_whole(os.path.join(self.root, MARK), [json.dumps(told, indent=1).encode()])


@contextmanager
def told_as_errors(root: str) -> Iterator[None]:
    """Convert errors that keep a run from writing into LogSourceErrors."""
    try:
        yield
    except OSError as error:
        what = f"{error.strerror or error}; what is kept is complete, and the next run continues after it"
        raise LogSourceError(error.filename or root, what) from None


def write_whole(path: str, parts: Iterable[Any]) -> None:
    """Write a file, which gets its name only when it is complete and flushed to disk. Raises OSError."""
    part = part_name(os.path.dirname(path))
    try:
        with open(part, "wb") as out:
            for each in parts:
                out.write(each)
        replace_file(part, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(part)
        raise


def _check_is_ours(root: str) -> None:
    others = sorted(name for name in os.listdir(root) if name != LOCK and not name.endswith(PART))
    if others and set(others) <= {ANSWERS, *_KEPT_IN}:
        raise LogSourceError(os.path.join(root, MARK), f"is missing, {_BEGIN_AGAIN}")
    if others and MARK not in others:
        what = f"this directory contains something else ({others[0]}): give a new one for --state"
        raise LogSourceError(root, what)


@dataclass(frozen=True, slots=True)
class KeptPartition:
    """A log partition of a coordinators' topic. Its rows are stored up to the log end that this run requested."""

    stored: SnapshotPartition
    found_ms: int | None
    """When brokers reported the end of the log, in milliseconds since 1970."""
    identity: str
    """A string that is equal for equal rows."""
    is_compacted: bool
    """Whether only rows that tables of state need are stored."""
    until_ms: int
    """When the log partition must be reread from its start, in milliseconds since 1970."""
    in_memory = False
    has_history = True
    """There may be rows that the log has lost."""

    @property
    def topic(self) -> str:
        """The topic of the log partition."""
        return self.stored.topic

    @property
    def partition(self) -> int:
        """The number of the log partition."""
        return self.stored.partition

    @property
    def size(self) -> int:
        """The number of stored bytes."""
        return self.stored.size

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`."""
        context.counts.note_moment("records", self.found_ms)
        for batch in self.stored.batches(context, columns, start, end):
            if self.is_compacted:
                # Missing offsets do not hide markers here. `TransactionResolver` reports missing offsets only if
                # `cleaned_up_to` is set.
                context.log.cleaned_up_to = None
            yield batch


class KeptLogs:
    """A source that stores the logs of coordinators' topics in a StateDirectory. Everything else is requested each
    time."""

    def __init__(
        self,
        source: Source,
        directory: StateDirectory,
        root: str,
        needed: compaction.NeededRows | None,
        on_progress: Callable[[int, int], None] | None,
    ) -> None:
        self._source = source
        self._directory = directory
        self._root = root
        self._needed = needed
        self._on_progress = on_progress
        self._asked = AskedMeanwhile()
        self.seen = SeenLogs()
        """The requests sent to the source so far, with their answers."""

    def __getattr__(self, name: str) -> Any:
        if name == "_source":
            raise AttributeError(name)
        found = getattr(self._source, name)
        if name == "missing_rights":
            return self._missing_rights
        return self._noting(name, found) if callable(found) else found

    def _noting(self, name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*asked: Any, **more: Any) -> Any:
            self._asked.of_now |= name in _OF_NOW
            self.seen.is_whole &= name in _SEEN
            answer = ask(*asked, **more)
            if name == "log_ends":
                return self._noted_ends(answer)
            if name == "log_starts":
                self.seen.note_starts(answer)
            elif name == "known_topics":
                self.seen.note_topics(answer)
            return answer

        return noted

    def _noted_ends(self, ends: Iterable[LogEnds]) -> Iterator[LogEnds]:
        for each in ends:
            self.seen.note_ends(each)
            yield each

    def _missing_rights(self, topics: Collection[str]) -> Sequence[MissingRight]:
        found = missing_rights(self._source, topics)
        hidden = tuple(sorted(each.resource_name for each in found))
        self._asked.rights[tuple(sorted(topics))] = hidden
        self.seen.note_rights(topics, hidden)
        return found

    @property
    def name(self) -> str:
        """The name of the source."""
        return self._source.name

    @property
    def answers(self) -> str:
        """The folder of kept answers."""
        return self._directory.answers

    def topics(self) -> Sequence[str]:
        """The topics of the source."""
        topics = self._source.topics()
        self.seen.note_names(topics)
        return topics

    def asked_meanwhile(self) -> AskedMeanwhile:
        """See `abilities.KeepsAnswers`."""
        asked, self._asked = self._asked, AskedMeanwhile()
        return asked

    def note_answer(self) -> None:
        """See `abilities.KeepsAnswers`."""
        self.seen.has_answer = True

    def partitions(self, topic: str) -> Sequence[LogPartition]:
        """The log partitions of a topic. If it belongs to coordinators, they are read up to their ends and stored.
        A log with a finding is read from the source and not stored."""
        logs = self._source.partitions(topic)
        if topic not in COORDINATOR_TOPICS:
            self.seen.is_whole = False
            return logs
        # The stored rows end where the logs end now, so every topic that a record refers to already exists.
        names = {} if all(has(log, HasTopicId) for log in logs) else dict(known_topics(self._source).names)
        run = Run(self._root, self._source.name, names, FILE_BYTES, None, now_ms(), [topic])
        for log in logs:
            self._directory.check_topic(topic, run.topic_id(log))
        progress = SharedProgress(sum(log.size for log in logs), self._on_progress)
        found: list[LogPartition] = [*logs]

        def keep(task: tuple[int, LogPartition]) -> None:
            number, log = task
            found[number] = self._kept(log, names, lambda done: progress.moved(number, min(done, log.size)))
            progress.moved(number, log.size)

        with told_as_errors(self._root):
            do_by_broker([*enumerate(logs)], lambda task: task[1], keep)
        for log, kept in zip(logs, found, strict=True):
            self._note_read(log, kept)
        return found

    def _note_read(self, log: Any, kept: LogPartition) -> None:
        if isinstance(kept, KeptPartition) and isinstance(log, BrokerPartition):
            self.seen.note_read(log.topic, log.partition, log.topic_id, log.start, log.end)
            self.seen.until_ms = min(self.seen.until_ms or kept.until_ms, kept.until_ms)
        else:
            self.seen.is_whole = False

    def _kept(self, log: LogPartition, names: dict[str, str], moved: Callable[[int], None]) -> LogPartition:
        if getattr(log, "trouble", None) is not None:  # abilities.MayBeInTrouble
            return log
        root, topic, partition = self._root, log.topic, log.partition
        remove_outdated(folder_of(root, topic, partition))
        stored = stored_log(root, topic, partition)
        unreadable = [file for file in stored.files if file.trouble]
        for file in unreadable:
            _log.warning(
                "%s cannot be read (%s): %s is read from its start", file.path, file.trouble, f"{topic}-{partition}"
            )
        if unreadable or _is_old(stored):
            compaction.forget(root, topic, partition)
        for _ in range(2):
            run = Run(root, self._source.name, names, FILE_BYTES, None, now_ms(), [topic])
            run.take(log, moved)
            if run.refused and isinstance(run.refused[0], OtherTopic):
                raise OtherCluster(self._directory.root, run.refused[0].detail)
            if not run.report.findings:
                break
            compaction.forget(root, topic, partition)
            if not run.refused:  # a truncated or rewritten log is read again from its start
                return log
        else:
            return log
        stored = stored_log(root, topic, partition)
        if self._needed is not None and compaction.is_due(stored):
            compaction.compact(root, stored, self._needed)
            stored = stored_log(root, topic, partition)
        size = sum(os.stat(file.path).st_size for file in stored.files)
        kept = SnapshotPartition(root, topic, partition, size)
        found_ms, is_compacted = getattr(log, "found_ms", None), self._needed is not None
        return KeptPartition(kept, found_ms, _identity(stored), is_compacted, _until_ms(stored))


def _is_old(stored: StoredLog) -> bool:
    """Whether the stored rows of a log partition are too old."""
    if not stored.files or not stored.stretches:
        return False
    is_put_back = now_ms() < stored.stretches[0].read_at_ms  # if a clock was moved backwards, the age is unknown
    return now_ms() > _until_ms(stored) or is_put_back


def _until_ms(stored: StoredLog) -> int:
    """When the stored rows become too old: after between half and all of the maximum age, depending on the partition
    number, so that no single run rereads all partitions."""
    half = OLDEST_MS // 2
    spread = crc32(f"{stored.topic}-{stored.partition}".encode()) % max(half, 1)
    begun_ms = stored.stretches[0].read_at_ms if stored.stretches else now_ms()
    return begun_ms + half + spread


def _identity(stored: StoredLog) -> str:
    """A string that identifies the rows. It contains the run that began to store them, the start of the log, the end of
    the rows, and the last run that checked which of them are gone."""
    first = stored.stretches[0].run if stored.stretches else ""
    looked = [(survey.run, survey.end) for survey in stored.surveys]
    place = (stored.topic, stored.partition, stored.topic_id)
    return repr((*place, first, stored.log_start, stored.end, looked))
