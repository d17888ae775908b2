"""Reads checkpoints of the metadata log: files `<offset>-<epoch>.checkpoint` with a controller's state.

A checkpoint is a file of record batches with their own offsets, which begin at 0. The first batch is a control batch
with the snapshot's header, and the last one contains the footer; without a footer, the file is incomplete. The file
name contains the end offset and the epoch of the part of the log that the state covers (`Snapshots.parse`,
`RecordsSnapshotReader`; KIP-630). A controller that has such a file may delete the beginning of the log.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from kafka_records_engine.findings import Finding, in_file
from kafka_records_engine.log.files.discovery import METADATA_TOPIC
from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.format.batches import (
    LARGEST_OFFSET,
    BrokenRecordsError,
    read_head,
    read_records,
    record_bytes,
)
from kafka_records_engine.log.format.control_records import marker_of_key
from kafka_records_engine.log.reading.fetched import RecordSets
from kafka_records_runtime.text.printable import printable

_NAME: Final = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_LARGEST: Final = 1 << 31
_HEAD: Final = 12
_SMALLEST_BATCH: Final = 61
_MAGIC: Final = 2
_MAGIC_AT: Final = 16
_LATER: Final = "a later checkpoint is read: the state is the same, but times of changes before its end are missing"
_HEADER, _FOOTER = 3, 4
"""Types of control records (`ControlRecordType`)."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The state of a metadata log, as records."""

    path: str
    end_offset: int
    """The checkpoint contains the state after all records below this offset."""
    rows: tuple[Any, ...]
    """`pyarrow.RecordBatch`es with the requested columns. `offset` is counted within the file."""


def checkpoint_names(folder: Place) -> list[tuple[int, int, str]]:
    """The checkpoints in the folder of a metadata log, the earliest first: end offset, epoch and name. Raises
    OSError."""
    matches = (_NAME.fullmatch(entry.name) for entry in folder.listed())
    return sorted((int(match[1]), int(match[2]), match[0]) for match in matches if match)


def checkpoint_from(
    folder: Place, first: int, columns: tuple[str, ...]
) -> tuple[Checkpoint | None, tuple[Finding, ...]]:
    """The earliest sound checkpoint whose end offset is `first` or higher, and findings about the checkpoints before
    it.

    A finding is damage, or a note if a later checkpoint has the same state. The earliest checkpoint is chosen because
    it omits the smallest part of the history.
    """
    findings: list[Finding] = []
    try:
        names = checkpoint_names(folder)
    except OSError as error:
        what = f"this folder cannot be listed: {error.strerror or error}"
        return None, (in_file(printable(str(folder)), None, None, what, "no checkpoint is read"),)
    for end_offset, _, name in names:
        if end_offset >= first:
            path = printable(str(folder.child(name)))
            try:
                data = folder.child(name).read_bytes(_LARGEST)
                found = Checkpoint(path, end_offset, _rows(data, path, columns))
                return found, tuple(replace(each, severity="note", consequence=_LATER) for each in findings)
            except OSError as error:
                what = f"this cannot be read: {error.strerror or error}"
            except BrokenRecordsError as error:
                what = error.detail
            findings.append(in_file(path, None, None, what, "nothing in this checkpoint is read"))
    return None, tuple(findings)


def _rows(data: bytes, path: str, columns: tuple[str, ...]) -> tuple[Any, ...]:
    """The records of a checkpoint. Raises BrokenRecordsError if it is damaged or incomplete."""
    kinds = _control_kinds(data)
    if not kinds or kinds[0] != _HEADER:
        raise BrokenRecordsError("the file does not begin with the header of a snapshot")
    if kinds[-1] != _FOOTER:
        raise BrokenRecordsError("the footer of the snapshot is missing: the file is cut short")
    found: list[Finding] = []
    sets = RecordSets(METADATA_TOPIC, 0, list(columns), found.append, lambda after: None)
    rows = tuple(sets.take(data, path, 0, LARGEST_OFFSET).rows)
    damage = next((each for each in found if each.severity == "damage"), None)
    if damage is not None:
        raise BrokenRecordsError(damage.what)
    return rows


def _control_kinds(data: bytes) -> list[int | None]:
    """For the first and the last batch, the type of the control record with which it begins or ends; None if it
    contains other records."""
    at, first, last = 0, None, None
    while at + _HEAD <= len(data):
        size = _HEAD + int.from_bytes(data[at + 8 : at + _HEAD], "big", signed=True)
        if size <= _HEAD or at + size > len(data):
            raise BrokenRecordsError(f"the batch at byte {at} is cut short or damaged")
        last = at, at + size
        first = last if first is None else first
        at += size
    if at != len(data) or first is None or last is None:
        raise BrokenRecordsError("the file has no complete batch" if last is None else "the last batch is cut short")
    return [_kind(data[slice(*first)], 0), _kind(data[slice(*last)], -1)]


def _kind(entry: bytes, which: int) -> int | None:
    if len(entry) < _SMALLEST_BATCH or entry[_MAGIC_AT] != _MAGIC:
        raise BrokenRecordsError("a batch has a magic other than 2, but batches of checkpoints have magic 2")
    head = read_head(entry, 0, 0)
    if not head.is_control:
        return None
    records = [*read_records(head, record_bytes(head, entry).data)]
    return marker_of_key(records[which].key).type if records else None
