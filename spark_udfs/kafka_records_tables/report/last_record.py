"""Finds the time of the last record in stored logs, without reading all records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.abilities import CanBeCut, has
from kafka_records_tables.topics import OFFSETS, SHARE_STATE, TRANSACTIONS

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition

_PART: Final = 4 << 20
"""The number of bytes to read at the end of a log, if it can be cut."""


def last_record_ms(source: Any) -> int | None:
    """The time of the last record of the coordinators' logs, in milliseconds since 1970: the time of a report without
    `as_of`. None if no record has a time. Unreadable logs are left out; the report names them."""
    times = []
    for topic in (OFFSETS, SHARE_STATE, TRANSACTIONS):
        try:
            times += [_last_of_log(log) for log in source.partitions(topic)]
        except LogSourceError:  # the source does not have the topic
            continue
    return max((each for each in times if each is not None), default=None)


def _last_of_log(log: LogPartition) -> int | None:
    cuts = log.cuts(_PART) if has(log, CanBeCut) else ()
    last: int | None = None
    for batch in log.batches(Context(), ("timestamp_ms",), cuts[-1] if cuts else None):
        latest = pc.max(batch.column("timestamp_ms")).as_py()
        last = latest if last is None or (latest is not None and latest > last) else last
    return last
