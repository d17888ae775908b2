"""What can be wrong with a batch that stands whole in its file, in words and counts."""

from __future__ import annotations

from typing import Final

from kafka_records_arrow.batches import MESSAGES_AT, RECORDS_AT, Batch, BrokenRecordsError, read_marker
from kafka_records_arrow.problems import SegmentProblem, Severity
from kafka_records_runtime.errors import plural

_SMALLEST_RECORD: Final = 7
_MOST_GAIN: Final = 1000
"""Records per byte that no codec exceeds."""


def refused(path: str, head: Batch, what: str) -> SegmentProblem:
    """A batch that is skipped as a whole."""
    count = head.count
    if count is None or not _may_hold(head, count):
        records, known = "an unknown number of records", 0
    else:
        records, known = plural(count, "record"), count
    consequence = f"{records}, {plural(head.size, 'byte')} skipped"
    return SegmentProblem(path, head.position, head.offset, what, consequence, records=known, bytes=head.size)


def wrong_crc(path: str, head: Batch, computed: int) -> SegmentProblem:
    return refused(path, head, f"wrong CRC: {head.crc:#010x} in the file, {computed:#010x} computed")


def broken(
    path: str, head: Batch, what: str, *, delivered: int, left_out: int = 0, left: int = 0, is_cut: bool = False
) -> SegmentProblem:
    """Records of a batch that cannot be read, after `delivered` others and `left_out` that were reported before.

    `left` bytes remain of those that hold the records; `is_cut` says that there would be more, had they been
    decompressed.
    """
    payload = head.size - (RECORDS_AT if head.magic == 2 else MESSAGES_AT[head.magic])
    nothing = not delivered and not left_out
    unread = head.size if nothing else payload if is_cut else min(left, payload)
    known = 0
    if head.count is None:
        lost = "the rest of its records lost"
    elif (missing := head.count - delivered - left_out) <= 0:
        unread = min(left, payload)
        lost = f"{plural(left, 'byte')} that may be records not read" if left else "none known to be lost"
    elif is_cut:
        known = missing if _may_hold(head, head.count) else 0
        lost = f"{known} lost" if known else f"the batch claims {missing} more"
    else:
        known = min(missing, -(-left // _SMALLEST_RECORD))
        fits = missing * _SMALLEST_RECORD <= left
        lost = f"{known} lost" if fits else f"the batch claims {missing} more"
    consequence = f"{plural(delivered, 'record')} delivered, {lost}"
    return SegmentProblem(path, head.position, head.offset, what, consequence, records=known, bytes=unread)


def _may_hold(head: Batch, count: int) -> bool:
    if head.magic == 2 and head.codec == 0:
        return 0 <= count * _SMALLEST_RECORD <= head.size - RECORDS_AT
    return 0 <= count <= head.size * _MOST_GAIN


def disorder(path: str, head: Batch, before: int) -> SegmentProblem:
    """Offsets that do not go on from `before`, without a single batch to blame for it."""
    how = "not above" if head.offset <= before else "2^31 or more above"
    what = f"its offset is {how} the {before} before it"
    return SegmentProblem(path, head.position, head.offset, what, "its records are delivered as they stand")


ControlTrouble = tuple[str, Severity]


def control_trouble(key: bytes | None, value: bytes | None) -> ControlTrouble | None:
    """Why a control record is no row: it does not parse, or it is none that ends a transaction."""
    try:
        marker = read_marker(key, value)
    except BrokenRecordsError as error:
        return error.detail, "damage"
    if marker.control is not None:
        return None
    return f"a control record of type {marker.type}, which ends no transaction", "note"


def control_left_out(path: str, head: Batch, troubles: list[ControlTrouble]) -> SegmentProblem:
    """What is said once for all records of a control batch that are no rows: the worst of the reasons."""
    what, severity = min(troubles, key=lambda trouble: trouble[1] == "note")
    consequence = f"{plural(len(troubles), 'control record')} left out"
    return SegmentProblem(path, head.position, head.offset, what, consequence, severity, records=len(troubles))
