"""Finds offsets that are missing because a file is missing, not because a cleaner removed them, and logs whose end is
missing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.compute as pc

from kafka_records_engine.findings import UNREAD_LOG, Finding
from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.abilities import TellsMissingEnds, has
from kafka_records_engine.sources.log_details import FILES, log_details
from kafka_records_tables.report.case_columns import equal, kept
from kafka_records_tables.topics import METADATA, OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    import pyarrow as pa

    from kafka_records_engine.log.reading.missing_end import MissingEnd
    from kafka_records_engine.sources import LogPartition


class LostFile(NamedTuple):
    """Offsets missing between two files of a log partition."""

    topic: str
    partition: int
    first: int
    behind: int
    """The offset at which the next file begins."""
    whole_before: int
    """The number of records and markers, without a gap, before the missing offsets. They show that no cleaner has
    reached this point."""
    before_ms: int | None
    """The time of the last record before the missing offsets."""
    behind_ms: int | None
    """The time of the first record after the missing offsets."""
    is_emptied: bool = False
    """Whether the file for these offsets exists but is empty."""


def missing_ends(source: Any) -> list[MissingEnd]:
    """The logs of coordinators whose end is missing, if the source shows this."""
    if not has(source, TellsMissingEnds):
        return []
    try:
        return list(source.missing_ends((OFFSETS, SHARE_STATE, TRANSACTIONS)))
    except LogSourceError:  # it disappeared in the meantime
        return []


def metadata_is_cut(log_ends: pa.Table) -> bool:
    """Whether the metadata log ends in a truncated append (rows of `log_ends`), so that later changes may be
    missing."""
    return bool(kept(log_ends, equal(log_ends, "topic", METADATA), equal(log_ends, "is_cut", True)).num_rows)


def cut_metadata(log_ends: pa.Table | None) -> list[Finding]:
    """A note that the metadata log ends in a truncated append (rows of `log_ends`)."""
    if log_ends is None or not metadata_is_cut(log_ends):
        return []
    what = "the log ends in an append that was cut short"
    return [
        Finding("note", UNREAD_LOG, what, "later changes of topics, configs and quotas may be missing", METADATA, 0)
    ]


def lost_files(source: Any, findings: Iterable[Finding]) -> list[LostFile]:
    """For each log partition with a gap between its files, the first missing file.

    A cleaner begins at the start of a log, and leaves gaps there. So if a log is complete from the offset in the name
    of its first file up to a gap between files, a cleaner is very unlikely to have caused the gap (`LogCleanerManager`:
    a cleaner continues where it ended). If `cleaner-offset-checkpoint` shows that a cleaner has reached the gap, the
    two cases cannot be distinguished. Only logs in which an earlier reading found such gaps are read again.
    """
    places = dict.fromkeys(
        (each.topic, each.partition)
        for each in findings
        if each.reason == UNREAD_LOG and each.file is not None and each.topic is not None and each.partition is not None
    )
    found = []
    for topic in dict.fromkeys(topic for topic, _ in places):
        try:
            logs = [log for log in source.partitions(topic) if (topic, log.partition) in places]
        except LogSourceError:  # it disappeared in the meantime
            continue
        files = log_details(source, [topic], FILES.names, Context())
        for log in logs:
            known = files.get((topic, log.partition), {})
            sizes = known.get("sizes") or ()
            lost = _first_gap(log, sizes[0]["offset"] if sizes else None)
            if lost is not None and lost.first >= (known.get("cleaner_offset") or 0):
                is_emptied = any(each["offset"] == lost.first and not each["bytes"] for each in sizes)
                found.append(lost._replace(is_emptied=is_emptied))
    return found


def _first_gap(log: LogPartition, first_file: int | None) -> LostFile | None:
    """The first missing file of a log; `first_file` is the offset in the name of its first file."""
    context = Context()
    begins: int | None = None
    last, last_ms, last_file = -1, None, None
    for batch in log.batches(context, ("offset", "timestamp_ms", "file")):
        if not batch.num_rows or "file" not in batch.schema.names:
            continue
        offsets = batch.column("offset").to_numpy()
        if begins is None:
            begins = int(offsets[0])
            if first_file is not None and first_file < begins:
                return None
        expected = int(offsets[0]) if last < 0 else last + 1
        gaps = (offsets - range(expected, expected + len(offsets))).nonzero()[0]
        if len(gaps):
            at = int(gaps[0])
            if at:
                last, last_ms = int(offsets[at - 1]), batch.column("timestamp_ms")[at - 1].as_py()
                last_file = batch.column("file")[at - 1].as_py()
            is_other_file = batch.column("file")[at].as_py() != last_file
            whole = last - begins + 1
            behind = int(offsets[at])
            behind_ms = batch.column("timestamp_ms")[at].as_py()
            found = LostFile(log.topic, log.partition, last + 1, behind, whole, last_ms, behind_ms)
            # The previous file ends with damage, so these records are in the unreadable bytes.
            is_damaged = any(each.file == last_file and each.position is not None for each in context.findings)
            return found if is_other_file and not is_damaged else None
        last, last_ms = int(offsets[-1]), pc.max(batch.column("timestamp_ms")).as_py()
        last_file = batch.column("file")[batch.num_rows - 1].as_py()
    return None
