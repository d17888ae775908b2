"""Opens a log partition: opens all of its current files before reading any of them.

A live broker rolls, cleans, renames and deletes the files of a log while they are read. `open_log` lists the folder,
opens every file, and lists the folder again. If the list has changed, it starts over, because a listing that is made
while files are renamed may show a file under both names or neither. A new file after all the others does not count as a
change; it contains what the broker has appended since.

The cleaner replaces files in four steps, and the folder may be in any of these states (`LocalLog.replaceSegments`,
`LogLoader`):

1. it writes `<offset>.log.cleaned` beside the originals, which are the log;
2. it renames that file to `.log.swap`: from now on, the swap file is the log, and the originals that it covers are
outdated;
3. it renames these originals, one by one, to `.log.deleted`, and deletes them later;
4. it renames `.log.swap` to `.log`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Hashable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from kafka_records_engine.findings import Finding, in_file
from kafka_records_engine.log.files.discovery import SUFFIXES, FoundLog, LogSourceError
from kafka_records_engine.log.files.opened import NoRegularFile, OpenLog, SegmentFile
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import NOT_READABLE
from kafka_records_engine.log.format.batches import LARGEST_OFFSET
from kafka_records_engine.log.format.checkpoints import CHECKPOINT, read_checkpoint
from kafka_records_engine.log.reading._scanning import next_offset
from kafka_records_runtime.errors import plural
from kafka_records_runtime.text.printable import printable

TRIES: Final = 60
"""The number of attempts to open a log while its files keep changing. With pauses, they take about ten seconds."""

_WAIT: Final = 0.005
_LONGEST_WAIT: Final = 0.25
_NAMES_ONLY: Final = 40
"""After this many tries only the names of files are compared, because some network file systems return a different
inode every time."""

_SEGMENT: Final = re.compile(r"([0-9]{20})\.log(\.swap)?")
_CLEANED: Final = re.compile(r"([0-9]{20})\.log\.cleaned")

Listing = dict[str, Hashable]
"""Versions by file name (inodes for local files) of all files that belong to the log or may belong to it soon."""


def open_log(log: FoundLog) -> OpenLog:
    """Open the current files of `log`. The findings of the result name what could not be opened, and missing
    sources."""
    opened = _opened_now(log)
    opened.findings = (*log.lost, *opened.findings)
    return opened


def _opened_now(log: FoundLog) -> OpenLog:
    try:
        taken = _settled_files(log.place, log.files or ())
    except OSError as error:
        return OpenLog(log.topic, log.partition, (), findings=(_unlisted(log, error),))
    except LogSourceError as error:
        unread = in_file(printable(error.path), None, None, error.detail, "nothing in it is read")
        return OpenLog(log.topic, log.partition, (), findings=(unread,))
    if taken is None:
        what = f"its files changed {plural(TRIES, 'time')} in a row while they were opened"
        never = in_file(printable(str(log.place)), None, None, what, "nothing in it is read; try again")
        return OpenLog(log.topic, log.partition, (), findings=(never,))
    try:
        return _with_log_start(_chosen(log, taken), log.place.resolved().parent.child(CHECKPOINT))
    except BaseException:
        taken.close(())
        raise


def _unlisted(log: FoundLog, error: OSError) -> Finding:
    if isinstance(error, FileNotFoundError | NotADirectoryError) and not log.system.is_local:
        what = "this folder is gone"
    elif isinstance(error, FileNotFoundError | NotADirectoryError):
        what = "this folder is gone: a broker that deletes or moves a partition renames it"
    elif isinstance(error, PermissionError):
        what = NOT_READABLE
    else:
        what = f"this folder cannot be listed: {error.strerror or error}"
    return in_file(printable(str(log.place)), None, None, what, "nothing in it is read")


# -- one moment --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Taken:
    """The files of a folder at one point in time, by name."""

    folder: Place
    files: dict[str, SegmentFile] = field(default_factory=dict)
    cleaned: tuple[int, ...] = ()
    """Offsets in the names of files that the cleaner is still writing."""

    def close(self, kept: Iterable[SegmentFile]) -> None:
        """Close all files except `kept`."""
        for segment in self.files.values():
            if segment.file and not any(segment is each for each in kept):
                segment.file.close()


def list_folder(folder: Place, named: Collection[str] = ()) -> Listing:
    """The files in a partition folder that belong to its log or may soon belong to it: `.log` and `.log.swap` files,
    unfinished `.log.cleaned` files, and files that the caller has `named`."""
    return {
        entry.name: entry.version
        for entry in folder.listed()
        if entry.name.endswith(SUFFIXES) or entry.name in named or _CLEANED.fullmatch(entry.name)
    }


def _settled_files(folder: Place, named: Collection[str]) -> _Taken | None:
    """The open files at one point in time; None if the files changed during every attempt. Raises OSError if the folder
    cannot be listed."""
    for number in range(TRIES):
        if number:
            time.sleep(min(_WAIT * number, _LONGEST_WAIT))
        before = list_folder(folder, named)
        taken = _open_all(folder, before, named)
        try:
            after = list_folder(folder, named)
        except BaseException:
            taken.close(())
            raise
        if _is_same(before, after, names_only=number >= _NAMES_ONLY):
            return taken
        taken.close(())
    return None


def _is_same(before: Listing, after: Listing, names_only: bool) -> bool:
    """Whether both lists show the same log. The second list may have newer files at the end."""
    highest = max(map(_offset_in_name, before), default=-1)
    later = {name for name in after.keys() - before.keys() if name.endswith(".log") and _offset_in_name(name) > highest}
    after = {name: inode for name, inode in after.items() if highest < 0 or name not in later}
    if not any(name.endswith(".swap") for name in (*before, *after)):
        before, after = _without_cleaned(before), _without_cleaned(after)
    return before.keys() == after.keys() and (names_only or before == after)


def _without_cleaned(listing: Listing) -> Listing:
    return {name: inode for name, inode in listing.items() if name.endswith(SUFFIXES)}


def _offset_in_name(name: str) -> int:
    match = _SEGMENT.fullmatch(name)
    return int(match[1]) if match else -1


def _open_all(folder: Place, listing: Listing, named: Collection[str]) -> _Taken:
    taken = _Taken(folder)
    cleaned = (_CLEANED.fullmatch(name) for name in listing)
    taken.cleaned = tuple(int(match[1]) for match in cleaned if match)
    for name in listing:
        if name.endswith(SUFFIXES) or name in named:
            taken.files[name] = _opened(folder.child(name), listing[name])
    return taken


def _opened(place: Place, version: Hashable) -> SegmentFile:
    offset = _offset_in_name(place.name)
    segment = SegmentFile(printable(str(place)), offset if 0 <= offset <= LARGEST_OFFSET else None)
    try:
        # An open local file does not change. A file in other storage may, so check that it is still the listed one.
        segment.file = place.opened(None if place.files.is_local else version)
        segment.size = segment.file.size
    except NoRegularFile as error:
        segment.trouble = str(error.strerror)
    except PermissionError:
        segment.trouble = NOT_READABLE
    except OSError as error:
        segment.trouble = f"cannot be read: {error.strerror or error}"
        with suppress(OSError):
            segment.size = place.size
    return segment


# -- which of them are the log -----------------------------------------------------------------------------------------


def _chosen(log: FoundLog, taken: _Taken) -> OpenLog:
    settled, findings = _without_outdated(taken)
    if log.files is None:
        opened = OpenLog(log.topic, log.partition, tuple(settled), findings=tuple(findings))
    else:
        opened = _only(log, taken, settled, findings)
    taken.close(opened.segments)
    return opened


def _without_outdated(taken: _Taken) -> tuple[list[SegmentFile], list[Finding]]:
    """The files that belong to the log: those that a broker would keep at its next start."""
    plain = [segment for name, segment in taken.files.items() if not name.endswith(".swap")]
    swaps = [segment for name, segment in taken.files.items() if name.endswith(".swap")]
    findings = []
    for swap in _ordered(swaps):
        if swap.base_offset is None or (taken.cleaned and swap.base_offset >= min(taken.cleaned)):
            # The cleaner has not finished its output. It has not replaced any files yet, so the originals are complete.
            findings.append(
                _swap_note(swap, "the cleaner had not finished writing", "left out: the original files are read")
            )
            continue
        end = max(next_offset(swap), swap.base_offset + 1)
        outdated = [
            segment
            for segment in plain
            if swap.file and segment.base_offset is not None and swap.base_offset <= segment.base_offset < end
        ]
        plain = [segment for segment in plain if segment not in outdated]
        plain.append(swap)
        files = plural(len(outdated), "original file")
        what = "the cleaner has not renamed it yet, or a crash stopped it"
        findings.append(_swap_note(swap, what, f"read in place of {files}"))
    return _ordered(plain), findings


def _swap_note(swap: SegmentFile, what: str, consequence: str) -> Finding:
    return in_file(swap.path, None, None, what, consequence, "note")


def _order(segment: SegmentFile) -> tuple[bool, int, str]:
    """A sort key: the offset. Files whose names are not offsets come last, by name."""
    return segment.base_offset is None, segment.base_offset or 0, segment.path


def _ordered(segments: Iterable[SegmentFile]) -> list[SegmentFile]:
    return sorted(segments, key=_order)


def _only(log: FoundLog, taken: _Taken, settled: list[SegmentFile], findings: list[Finding]) -> OpenLog:
    """The log reduced to the requested files."""
    names = set(log.files or ())
    # The caller may have requested a file that a swap file replaces.
    kept = _ordered(segment for name, segment in taken.files.items() if name in names)
    paths = {segment.path for segment in kept}
    findings = [finding for finding in findings if finding.file in paths]
    missing = [segment for segment in settled if segment not in kept]
    for name in sorted(names - taken.files.keys()):
        gone = SegmentFile(
            printable(str(taken.folder.child(name))), offset if (offset := _offset_in_name(name)) >= 0 else None
        )
        missing.append(gone)
        what = "this file is gone: a broker that cleans or deletes its log renames it"
        findings.append(in_file(gone.path, None, None, what, "nothing in it is read"))
    for before, segment in pairwise(kept):
        segment.hole_before = any(_order(before) < _order(each) < _order(segment) for each in missing)
    ends_early = not kept or any(_order(each) > _order(kept[-1]) for each in missing)
    return OpenLog(
        log.topic,
        log.partition,
        tuple(kept),
        ends_early=ends_early,
        findings=tuple(findings),
        is_part=bool(missing),
    )


# -- the start of the log ----------------------------------------------------------------------------------------------


def _with_log_start(opened: OpenLog, checkpoint: Place) -> OpenLog:
    """Set the log start from the data directory's checkpoint file, if there is one."""
    try:
        opened.log_start = read_checkpoint(checkpoint).get((opened.topic, opened.partition), 0)
    except LogSourceError as error:
        finding = in_file(printable(error.path), None, None, error.detail, "the log is read from its first record")
        opened.findings = (*opened.findings, finding)
    return opened
