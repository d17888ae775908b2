"""Builds findings about batches that are complete in their file: the problem, and how much is lost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_records_engine.findings import Finding, Severity, in_file
from kafka_records_engine.log.format.batches import (
    MESSAGES_AT,
    RECORDS_AT,
    BatchHead,
    BrokenRecordsError,
    computed_crc,
    record_spans,
    records_end,
)
from kafka_records_engine.log.format.control_records import read_marker
from kafka_records_runtime.errors import plural

_SMALLEST_RECORD: Final = 7
_MOST_GAIN: Final = 1000
"""An upper limit for the number of records that any codec packs into one byte."""


def refused(path: str, head: BatchHead, what: str, *, may_hold_more: bool = False) -> Finding:
    """The finding about a batch that is skipped completely. `may_hold_more` means that the count in its header may be
    too low."""
    count = head.count
    if may_hold_more or count is None or not _may_hold(head, count):
        records, known = "an unknown number of records", 0
    else:
        records, known = plural(count, "record"), count
    consequence = f"{records}, {plural(head.size, 'byte')} skipped"
    return in_file(path, head.position, head.offset, what, consequence, records=known, bytes=head.size)


def wrong_crc(path: str, head: BatchHead, entry: bytes, doubt: str | None) -> Finding:
    """The finding about an entry with a wrong CRC. `doubt` says why more records may be lost than its header counts."""
    what = f"wrong CRC: {head.crc:#010x} in the file, {computed_crc(head.magic, entry):#010x} computed"
    what += "" if doubt is None else f", and {doubt}"
    return refused(path, head, what, may_hold_more=doubt is not None or not _is_confirmed(head, entry))


def _is_confirmed(head: BatchHead, entry: bytes) -> bool:
    """Whether other bytes confirm the record count in the header, any field of which may be damaged."""
    if head.magic == 2 and head.count == head.last_offset - head.offset + 1:
        return True
    if head.codec or head.count is None:
        return False
    try:
        if head.magic == 2:
            return records_end(entry, head.count) == len(entry)
        return sum(1 for _ in record_spans(head, entry[MESSAGES_AT[head.magic] :])) == head.count
    except BrokenRecordsError:
        return False


def broken(
    path: str, head: BatchHead, what: str, *, delivered: int, left_out: int = 0, left: int = 0, is_cut: bool = False
) -> Finding:
    """The finding about records of a batch that cannot be read, after `delivered` rows and `left_out` control records.

    `left` is the number of unread record bytes. `is_cut` means that decompression failed, so more bytes are missing.
    """
    payload = head.size - (RECORDS_AT if head.magic == 2 else MESSAGES_AT[head.magic])
    nothing = not delivered and not left_out
    unread = head.size if nothing else payload if is_cut else min(left, payload)
    known = 0
    if head.count is None:
        lost = "the rest of its records are lost"
    elif (missing := head.count - delivered - left_out) <= 0:
        unread = min(left, payload)
        lost = f"{plural(left, 'byte')} that may be records not read" if left else "no record is known to be lost"
    elif is_cut:
        known = missing if _may_hold(head, head.count) else 0
        lost = f"{known} lost" if known else f"the batch claims to have {missing} more"
    else:
        known = min(missing, -(-left // _SMALLEST_RECORD))
        fits = missing * _SMALLEST_RECORD <= left
        lost = f"{known} lost" if fits else f"the batch claims to have {missing} more"
    consequence = f"{plural(delivered, 'record')} delivered, {lost}"
    return in_file(path, head.position, head.offset, what, consequence, records=known, bytes=unread)


def _may_hold(head: BatchHead, count: int) -> bool:
    if head.magic == 2 and head.codec == 0:
        return 0 <= count * _SMALLEST_RECORD <= head.size - RECORDS_AT
    return 0 <= count <= head.size * _MOST_GAIN


def disorder(path: str, head: BatchHead, before: int) -> Finding:
    """The finding about an offset that is not greater than the earlier offset `before`, if it is unknown which of the
    two batches is wrong."""
    how = "not above" if head.offset <= before else "2^31 or more above"
    what = f"its offset is {how} the previous offset {before}"
    return in_file(path, head.position, head.offset, what, "its records are returned as they are")


ControlTrouble = tuple[str, Severity]


def control_trouble(key: bytes | None, value: bytes | None, *, of_quorum: bool) -> ControlTrouble | None:
    """Why a control record does not become a row: it cannot be parsed, or it does not end a transaction. None for a
    transaction marker and, with `of_quorum` (in the metadata log), for a record of the quorum."""
    try:
        marker = read_marker(key, value)
    except BrokenRecordsError as error:
        return error.detail, "damage"
    if marker.control is not None or (of_quorum and marker.of_quorum is not None):
        return None
    return f"a control record of type {marker.type}, which ends no transaction", "note"


@dataclass(slots=True)
class ControlLeftOut:
    """The records of a control batch that do not become rows: their number and the most severe reason."""

    count: int = 0
    worst: ControlTrouble | None = None

    def add(self, trouble: ControlTrouble) -> None:
        """Count one more such record, with its reason."""
        self.count += 1
        if self.worst is None or (self.worst[1] == "note" and trouble[1] == "damage"):
            self.worst = trouble

    def finding(self, path: str, head: BatchHead) -> Finding | None:
        """One finding for all records that were left out; None if there are none."""
        if self.worst is None:
            return None
        what, severity = self.worst
        consequence = f"{plural(self.count, 'control record')} left out"
        return in_file(path, head.position, head.offset, what, consequence, severity, records=self.count)
