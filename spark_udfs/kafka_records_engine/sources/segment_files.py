"""Log segment files as a source: data directories of brokers, folders of single partitions, `.log` files."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass, replace
from functools import cache
from os import PathLike, fspath
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.findings import UNREAD_LOG, Finding, Severity, in_file
from kafka_records_engine.log.files.discovery import METADATA_TOPIC, place_of
from kafka_records_engine.log.files.opened import OpenLog
from kafka_records_engine.log.files.paths import expanded, without_secrets
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.ranges import OffsetRange
from kafka_records_engine.log.files.source_error import NOT_READABLE, LogSourceError
from kafka_records_engine.log.files.topic_ids import topic_id, topic_names
from kafka_records_engine.log.format.batches import LARGEST_OFFSET
from kafka_records_engine.log.format.checkpoints import CLEANED, HIGH_WATERMARKS, read_checkpoint
from kafka_records_engine.log.reading import segment_files as reader
from kafka_records_engine.log.reading.batch_sizes import batch_sizes
from kafka_records_engine.log.reading.cuts import cuts_of
from kafka_records_engine.log.reading.epoch_starts import epoch_starts
from kafka_records_engine.log.reading.log_end import LogEnd, end_of
from kafka_records_engine.log.reading.metadata_checkpoints import checkpoint_from
from kafka_records_engine.log.reading.missing_end import MissingEnd, Noted, missing_end, missing_log
from kafka_records_engine.log.reading.open_producers import open_producers
from kafka_records_engine.log.reading.raw_rows import gathered
from kafka_records_engine.log.reading.tails import latest_time
from kafka_records_engine.log.reading.unread import Unread, UnreadAsked, unread_from
from kafka_records_engine.sources.log_details import BATCHES, EPOCHS, FILES, OPEN, Details
from kafka_records_engine.sources.log_facts import KnownTopics
from kafka_records_engine.sources.protocol import Context, LogEnds, LogStarts
from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]

_BEHIND_ALL: Final = LARGEST_OFFSET + 1
_CUT: Final[tuple[str, Severity]] = "an append that was cut short", "note"
_DAMAGED: Final[tuple[str, Severity]] = "no batch can start here", "damage"


class Segments:
    """The logs in the given directories or files. Each call searches for them again, except within `searched_once`.
    They are opened when they are read.

    Parameters
    ----------
    paths
        One or more data directories of a broker, partition folders (`<topic>-<partition>`) or `.log` files: paths on
        this machine, URLs (`s3://bucket/backup`), patterns, archives of a data directory (docs/sources.md).
    topic
        The topic of files that are not in a folder `<topic>-<partition>`.
    filesystem
        The file system of the paths, from `pyarrow.fs` or fsspec. By default, it is determined from each path.
    """

    def __init__(
        self, paths: Paths | Place | Sequence[Place], topic: str | None = None, filesystem: Any = None
    ) -> None:
        given = [paths] if isinstance(paths, str | PathLike | Place) else paths
        self._paths = [path if isinstance(path, Place) else fspath(path) for path in given]
        self._topic = topic
        self._filesystem = filesystem
        self._ended: dict[tuple[str, int], reader.FoundLog] = {}
        """The logs whose end offsets were requested most recently."""
        self._known: dict[str | None, list[reader.FoundLog]] | None = None
        """The logs found within `searched_once`, by topic (None: all topics)."""

    @property
    def name(self) -> str:
        """The paths as the caller passed them, without secrets."""
        return ", ".join(without_secrets(str(path)) for path in self._paths)

    def topics(self) -> list[str]:
        """The topics of the logs. Raises LogSourceError if there are none."""
        return sorted({log.topic for log in self._found()})

    def known_topics(self) -> KnownTopics:
        """Topic names by topic id, which a broker stores next to its logs. Raises LogSourceError."""
        return KnownTopics(topic_names(log.place.resolved().parent for log in self._found()))

    def partitions(self, topic: str) -> list[SegmentPartition]:
        """The log partitions of `topic`. Raises LogSourceError if there are none."""
        return [SegmentPartition(log) for log in self._found(topic)]

    def log_starts(self, topics: Sequence[str] | None) -> LogStarts:
        """See `abilities.TellsLogStarts`. Log starts come from file names and from the checkpoint of the broker, which
        may still be running."""
        offsets = {}
        for log in self._found():
            if topics is None or log.topic in topics:
                with reader.open_log(log) as opened:
                    start = _start_of(opened)
                if start is not None:
                    offsets[log.topic, log.partition] = topic_id(log.place), start
        return LogStarts(offsets)

    def log_ends(self, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
        """See `abilities.TellsLogEnds`. Log ends come from the headers of the last batches, and from the broker's files
        in the data directory. No file contains the last stable offset."""
        logs = [log for log in self._found() if log.topic in topics]
        for topic in {*topics}.difference(log.topic for log in logs):
            self.partitions(topic)  # raises an error that lists the existing topics
        self._ended = {(log.topic, log.partition): log for log in logs}
        marks: dict[Place, _HighWatermarks] = {}
        reported: set[tuple[str | None, str]] = set()
        for log in logs:
            directory = log.place.resolved().parent
            if directory not in marks:
                marks[directory] = _HighWatermarks(directory, context)
            yield _ends_of(log, marks[directory], context, reported)

    def log_details(self, topics: Collection[str], columns: Collection[str], context: Context) -> Details:
        """See `log_details.TellsLogDetails`. The details come from the files of the logs."""
        logs = [log for log in self._found() if log.topic in topics]
        found: dict[tuple[str, int], dict[str, Any]] = {(log.topic, log.partition): {} for log in logs}
        cleaned: dict[Place, Mapping[tuple[str, int], int]] = {}
        for log in logs:
            told = found[log.topic, log.partition]
            with reader.open_log(log) as opened:
                if not set(columns).isdisjoint(OPEN.names):
                    told |= _open_in(log, opened, context)
                if not set(columns).isdisjoint(EPOCHS.names):
                    told |= _epochs_of(log, opened)
                if not set(columns).isdisjoint(BATCHES.names):
                    told |= _batches_of(log, opened)
                if not set(columns).isdisjoint(FILES.names):
                    directory = log.place.resolved().parent
                    if directory not in cleaned:
                        cleaned[directory] = _cleaned(directory, context)
                    told |= _files_of(opened, log.place)
                    told["cleaner_offset"] = cleaned[directory].get((log.topic, log.partition))
        return found

    def missing_ends(self, topics: Collection[str]) -> Iterator[MissingEnd]:
        """See `abilities.TellsMissingEnds`. Missing ends are detected from files that a broker writes next to its logs.
        A log without a folder is found only if the data directory itself was named."""
        found = self._found()
        noted = cache(Noted)
        for log in found:
            if log.topic in topics and log.files is None:
                with suppress(OSError), reader.open_log(log) as opened:
                    missing = missing_end(opened, log.place, noted(log.place.resolved().parent))
                    if missing is not None:
                        yield missing
        yield from self._missing_logs(found, topics, noted)

    def _missing_logs(
        self, found: Sequence[reader.FoundLog], topics: Collection[str], noted: Callable[[Place], Noted]
    ) -> Iterator[MissingEnd]:
        """The logs without a segment file, of existing topics."""
        named = {place.resolved() for path in self._paths for place in expanded(path, self._filesystem)[0]}
        there = {(log.topic, log.partition) for log in found}
        for directory in dict.fromkeys(log.place.resolved().parent for log in found if log.files is None):
            if directory not in named:
                continue
            known = noted(directory)
            folders = {each: place for place in _folders_in(directory) if (each := place_of(place.name))}
            of_topics = {topic for topic, _ in (*there, *folders)} & {*topics}
            for topic, partition in sorted({*known.logs(), *folders} - there):
                if topic in of_topics:
                    folder = folders.get((topic, partition))
                    missing = (
                        missing_log(topic, partition, known)
                        if folder is None
                        else missing_end(OpenLog(topic, partition, ()), folder, known)
                    )
                    if missing is not None:
                        yield missing

    def unread(self, asked: Sequence[UnreadAsked], context: Context) -> Iterator[tuple[UnreadAsked, Unread]]:
        """See `abilities.TellsUnread`. The numbers come from offset indexes and batch headers."""
        logs = self._ended or {(log.topic, log.partition): log for log in self._found()}
        for each in asked:
            log = logs.get((each.topic, each.partition))
            if log is not None:
                with reader.open_log(log) as opened:
                    found = unread_from(opened, log.place, each.offsets, each.end, with_tail=each.with_tail)
                if found.trouble is not None and found.place is not None:
                    what = "the records that are left to read are not counted"
                    finding = in_file(found.place[0], found.place[1], None, found.trouble, what)
                    context.report(_of_log(log, finding))
                yield each, found

    @contextmanager
    def searched_once(self) -> Iterator[None]:
        """See `abilities.SearchesForLogs`."""
        before = self._known
        self._known = {} if before is None else before
        try:
            yield
        finally:
            self._known = before

    def _found(self, topic: str | None = None) -> list[reader.FoundLog]:
        known = self._known
        if known is None:
            return reader.find_logs(self._paths, topic, self._topic, self._filesystem)
        if topic not in known:
            of_all = [log for log in known.get(None, ()) if log.topic == topic]
            known[topic] = of_all or reader.find_logs(self._paths, topic, self._topic, self._filesystem)
        return known[topic]


def _folders_in(directory: Place) -> list[Place]:
    try:
        return [directory.child(entry.name) for entry in directory.listed() if entry.kind == "folder"]
    except OSError:
        return []


def _of_log(log: reader.FoundLog, finding: Finding) -> Finding:
    """A finding about files of a log, with its topic and partition."""
    return finding if finding in log.lost else replace(finding, topic=log.topic, partition=log.partition)


class _HighWatermarks:
    """The high watermarks that a broker stores for its next start, which are a few seconds old (`ReplicaManager`)."""

    def __init__(self, directory: Place, context: Context) -> None:
        self._offsets: Mapping[tuple[str, int], int] = {}
        self._when: int | None = None
        place = directory.child(HIGH_WATERMARKS)
        try:
            self._offsets = read_checkpoint(place)
            self._when = place.written_ms if self._offsets else None
        except OSError as error:
            self._tell(place, f"this cannot be read: {error.strerror or error}", context)
        except LogSourceError as error:
            self._tell(place, error.detail, context)

    @staticmethod
    def _tell(place: Place, what: str, context: Context) -> None:
        context.report(in_file(printable(str(place)), None, None, what, "high watermarks are null"))

    def of(self, topic: str, partition: int) -> tuple[int | None, int | None]:
        """A high watermark and the time of its value; None if the file does not have it."""
        offset = self._offsets.get((topic, partition))
        return offset, None if offset is None else self._when


def _ends_of(
    log: reader.FoundLog, marks: _HighWatermarks, context: Context, reported: set[tuple[str | None, str]]
) -> LogEnds:
    """The start and end of a log. `reported` contains findings about whole files, which several logs may share, by file
    and text."""
    context.counts.partitions += 1
    end, is_cut = None, None
    with reader.open_log(log) as opened:
        start = _start_of(opened)
        for finding in opened.findings:
            about = finding.file, finding.what
            if finding.severity == "damage" and about not in reported:
                context.report(_of_log(log, finding))
                if finding.is_about_file:
                    reported.add(about)
        if opened.segments and not opened.ends_early:
            end, is_cut = _end_of(log, opened.segments[-1], context)
    offset, when = marks.of(log.topic, log.partition)
    return LogEnds(
        log.topic,
        log.partition,
        topic_id(log.place),
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=offset,
        high_watermark_timestamp_ms=when,
        place=printable(str(log.place)),
        is_cut=is_cut,
    )


def _open_in(log: reader.FoundLog, opened: reader.OpenLog, context: Context) -> dict[str, Any]:
    """The columns OPEN of a log."""
    impact = "transactions that are open in it may be missing, or have ended"
    try:
        found = open_producers(opened, log.place)
    except OSError as error:
        may_not = isinstance(error, PermissionError)
        what = NOT_READABLE if may_not else f"the log cannot be read: {error.strerror or error}"
        finding = in_file(printable(str(log.place)), None, None, what, impact)
        context.report(_of_log(log, finding))
        return {}
    if found.trouble is not None and found.place is not None:
        finding = in_file(printable(found.place[0]), found.place[1], None, found.trouble, impact)
        context.report(_of_log(log, finding))
    return {
        "open_producers": [
            {
                "producer_id": each.producer_id,
                "first_offset": each.first_offset,
                "since_timestamp_ms": each.since_ms,
                "last_timestamp_ms": each.last_ms,
                "is_asked": False,
            }
            for each in found.producers
        ]
    }


def _epochs_of(log: reader.FoundLog, opened: reader.OpenLog) -> dict[str, Any]:
    """The column EPOCHS of a log. Unreadable files are reported with the log ends."""
    with suppress(OSError):
        starts = epoch_starts(opened, log.place)
        names = ("epoch", "offset", "before_timestamp_ms", "timestamp_ms")
        return {"leader_epochs": [dict(zip(names, astuple(each), strict=True)) for each in starts]}
    return {}


def _batches_of(log: reader.FoundLog, opened: reader.OpenLog) -> dict[str, Any]:
    """The column BATCHES of a log. Unreadable files are reported with the log ends."""
    with suppress(OSError):
        found = batch_sizes(opened, log.place)
        columns = [pa.array(each) for each in found.values()]
        return {"batches": pa.StructArray.from_arrays(columns, list(found)).to_pylist()}
    return {}


def _files_of(opened: reader.OpenLog, folder: Place) -> dict[str, Any]:
    """The columns FILES of a log, except those from a checkpoint."""
    if not opened.segments or opened.is_part:
        return {}
    closed = [latest_time(folder, each) for each in opened.segments[:-1]]
    sizes = [
        {"offset": each.base_offset, "bytes": each.size, "timestamp_ms": latest}
        for each, latest in zip(opened.segments, [*closed, None], strict=True)
    ]
    return {"segments": len(opened.segments), "bytes": opened.size, "sizes": sizes}


def _cleaned(directory: Place, context: Context) -> Mapping[tuple[str, int], int]:
    """The offsets up to which the logs of a data directory have been cleaned (`LogCleanerManager`)."""
    place = directory.child(CLEANED)
    try:
        return read_checkpoint(place)
    except LogSourceError as error:
        context.report(in_file(printable(str(place)), None, None, error.detail, "cleaner_offset is null"))
        return {}


def _start_of(opened: reader.OpenLog) -> int | None:
    if not opened.segments or opened.is_part:
        return None
    return max(opened.log_start, opened.segments[0].base_offset or 0)


def _end_of(log: reader.FoundLog, last: reader.SegmentFile, context: Context) -> tuple[int | None, bool | None]:
    """The offset at which a log ends, and whether its last file continues after it."""
    context.counts.files += 1
    end, trouble = None, last.trouble
    try:
        end = end_of(last, log.place)
    except OSError as error:
        trouble = f"cannot be read: {error.strerror or error}"
    if end is None:
        finding = in_file(last.path, None, None, trouble, "it is unknown where the log ends")
    elif end.rest_at is None:
        return end.offset, False
    else:
        finding = _rest(last, end)
    # Logs of coordinators are read completely, which reports their invalid batches.
    if end is None or not log.topic.startswith("__"):
        context.report(_of_log(log, finding))
    return (None, None) if end is None else (end.offset, True)


def _rest(last: reader.SegmentFile, end: LogEnd) -> Finding:
    """The finding about bytes after the last batch that are not a batch."""
    left = max(last.size - (end.rest_at or 0), 0)
    consequence = f"{plural(left, 'byte')} not read: the log ends at offset {end.offset}, or later"
    what, severity = _CUT if end.is_cut else _DAMAGED
    return in_file(last.path, end.rest_at, None, what, consequence, severity, bytes=left)


@dataclass(frozen=True, slots=True)
class SegmentPartition:
    """One log partition in segment files."""

    log: reader.FoundLog

    @property
    def topic(self) -> str:
        """The topic."""
        return self.log.topic

    @property
    def partition(self) -> int:
        """The partition."""
        return self.log.partition

    @property
    def size(self) -> int:
        """The size in bytes of its files when they were found."""
        return self.log.size

    @property
    def in_memory(self) -> bool:
        """Whether other processes would have to unpack an archive again or cannot access the files."""
        return self.log.system.stays_here

    def cuts(self, size: int) -> list[int]:
        """Offsets at which the log partition can be cut into parts of about `size` bytes."""
        return cuts_of(self.log, size)

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """See `protocol.LogPartition.batches`. The files are read once, as they were when they were opened."""
        return gathered(self._batches(context, columns, start, end))

    def _batches(self, context: Context, columns: Collection[str], start: int | None, end: int | None) -> Iterator[Any]:
        names = [name for name in columns if name in reader.RAW_SCHEMA.names]
        with reader.open_log(self.log) as opened:
            is_metadata = self.topic == METADATA_TOPIC
            _tell_about(opened, context, start is None and not is_metadata)
            if is_metadata:
                self._find_checkpoint(opened, context, names if start is None else None)
            wanted = _Wanted(opened, start, end, context)
            if start is not None or end is not None:
                opened.only = OffsetRange(start or 0, _BEHIND_ALL if end is None else end)
            chosen = opened.segments if opened.only is None else opened.only.files(opened.segments)
            context.counts.files += len(chosen)
            rows = reader.read_partition(
                opened,
                below_log_start=True,
                on_finding=lambda finding: context.report(_of_log(self.log, finding)),
                batch_rows=None,
                settle=False,
                columns=names if "offset" in names else [*names, "offset"],
                places=any(field.name in columns for field in reader.PLACE_FIELDS),
                on_hole=context.log.add_hole,
            )
            for batch in rows:
                kept = wanted.of(batch)
                if kept.num_rows:
                    yield kept if "offset" in names else kept.select([*names, *kept.schema.names[len(names) + 1 :]])
                context.progress(opened.bytes_read)
            context.counts.bytes += opened.bytes_read
            if opened.only is not None:
                context.counts.outside += opened.only.outside
                if end is not None and (wanted.is_cut or opened.only.is_cut):
                    context.log.add_hole(end - 1)

    def _find_checkpoint(self, opened: reader.OpenLog, context: Context, names: list[str] | None) -> None:
        """Find where a metadata log starts, which only its first file shows.

        If rows are read from there, the context gets the state before it, with the columns `names`.
        """
        context.log.start = start = _start_of(opened)
        if start and names is not None:
            columns = tuple(dict.fromkeys(("offset", *names)))
            context.log.checkpoint, findings = checkpoint_from(self.log.place, start, columns)
            for finding in findings:
                context.report(_of_log(self.log, finding))


def _tell_about(opened: reader.OpenLog, context: Context, from_start: bool) -> None:
    context.counts.partitions += 1
    context.log.start = opened.log_start
    if opened.is_part or not opened.segments:
        context.log.start = None
    else:
        # A cleaner never touches the newest file, to which the broker appends.
        context.log.cleaned_up_to = opened.segments[-1].base_offset
        if from_start:
            _tell_of_start(opened, context)


def _tell_of_start(opened: reader.OpenLog, context: Context) -> None:
    """Report offsets that are missing at the start.

    A cleaner merges files into the first one, so the name of a complete log's first file is never above the log start.
    """
    first = opened.segments[0]
    if first.base_offset is None or first.base_offset <= opened.log_start:
        return
    last = first.base_offset - 1
    which = f"offset {last}" if last == opened.log_start else f"offsets {opened.log_start} to {last}"
    what = f"no file has {which}, and the log starts before"
    consequence = "a file is missing, or the log-start-offset-checkpoint beside the folder is"
    context.report(Finding("note", UNREAD_LOG, what, consequence, context.topic, context.partition, file=first.path))


class _Wanted:
    """Drops rows before the first requested offset and from `end`, and counts them."""

    def __init__(self, opened: reader.OpenLog, start: int | None, end: int | None, context: Context) -> None:
        self._first = opened.log_start if start is None else start
        self._end = _BEHIND_ALL if end is None else end
        self._is_from_log_start = start is None
        self._counts = context.counts
        self.is_cut = False
        """Whether rows were dropped at the end."""

    def of(self, batch: Any) -> Any:
        """The requested rows of a batch."""
        offsets = batch.column("offset").to_numpy()
        is_before, is_behind = offsets < self._first, offsets >= self._end
        before, behind = int(is_before.sum()), int(is_behind.sum())
        if not before and not behind:
            return batch
        self.is_cut = self.is_cut or behind > 0
        if self._is_from_log_start:
            self._counts.below_log_start += before
            self._counts.outside += behind
        else:
            self._counts.outside += before + behind
        return batch.filter(pa.array(~(is_before | is_behind)))
