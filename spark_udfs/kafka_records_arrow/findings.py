"""What can be wrong with a batch that stands whole in its file, in words and counts."""

from __future__ import annotations

from kafka_records_arrow.batches import Batch, BrokenRecordsError, read_marker
from kafka_records_arrow.problems import SegmentProblem
from kafka_records_runtime.errors import plural


def wrong_crc(path: str, head: Batch, computed: int) -> SegmentProblem:
    count = head.count
    if count is None or count < 0 or count > head.size * 1000:
        records, known = "an unknown number of records", 0
    else:
        records, known = plural(count, "record"), count
    what = f"wrong CRC: {head.crc:#010x} in the file, {computed:#010x} computed"
    consequence = f"{records}, {plural(head.size, 'byte')} skipped"
    return SegmentProblem(path, head.position, head.offset, what, consequence, records=known, bytes=head.size)


def broken(path: str, head: Batch, what: str, delivered: int, left_out: int = 0) -> SegmentProblem:
    """Records of a batch that cannot be read, after `delivered` others and `left_out` that were reported before."""
    if head.count is None:
        lost, known = "the rest of its records lost", 0
    elif head.count <= delivered + left_out:
        lost, known = "none lost", 0
    else:
        known = head.count - delivered - left_out
        lost = f"{known} lost"
    consequence = f"{plural(delivered, 'record')} delivered, {lost}"
    return SegmentProblem(path, head.position, head.offset, what, consequence, records=known)


def disorder(path: str, head: Batch, before: int) -> SegmentProblem:
    what = f"its offset is not above the {before} before it"
    return SegmentProblem(path, head.position, head.offset, what, "its records are delivered as they stand")


def control_problem(path: str, head: Batch, key: bytes | None, value: bytes | None) -> SegmentProblem | None:
    """Why a control record is no row: it does not parse, or it is none that ends a transaction."""
    try:
        marker = read_marker(key, value)
    except BrokenRecordsError as error:
        return SegmentProblem(path, head.position, head.offset, error.detail, "1 control record left out", records=1)
    if marker.control is not None:
        return None
    what = f"a control record of type {marker.type}, which ends no transaction"
    return SegmentProblem(path, head.position, head.offset, what, "1 control record left out", "note", records=1)
