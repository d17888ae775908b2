"""Finds where the logs of any source begin and end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from kafka_records_engine.findings import DAMAGED_LOG, Finding
from kafka_records_engine.sources.abilities import HasEnd, TellsLogEnds, TellsLogStarts, has
from kafka_records_engine.sources.protocol import Context, LogEnds, LogStarts, Source

LOG_ENDS_SCHEMA: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("topic_id", pa.string()),
        ("log_start_offset", pa.int64()),
        ("log_end_offset", pa.int64()),
        ("high_watermark", pa.int64()),
        ("high_watermark_timestamp_ms", pa.int64()),
        ("last_stable_offset", pa.int64()),
        ("place", pa.string()),
        ("is_cut", pa.bool_()),
    ]
)
"""The members of `LogEnds`."""


def log_starts(source: Source, topics: Sequence[str] | None) -> LogStarts | None:
    """The log starts of these topics, or of all topics. Call this before reading records. None if log starts cannot
    change in this source. Raises LogSourceError."""
    return source.log_starts(topics) if has(source, TellsLogStarts) else None


def log_ends(
    source: Source, topics: Sequence[str], context: Context, starts: LogStarts | None = None
) -> Iterator[LogEnds]:
    """The ends of all logs of the given topics. Log starts are taken from `starts`, if it contains them."""
    if starts is None:
        yield from _log_ends(source, topics, context)
        return
    context.counts.note_moment("log_starts", starts.asked_ms)
    for ends in _log_ends(source, topics, context):
        trouble = starts.trouble.get((ends.topic, ends.partition))
        if trouble is not None and ends.log_start_offset is not None:
            what, consequence = f"{trouble}, when log starts were asked for", "the log start is null"
            context.report(Finding("damage", DAMAGED_LOG, what, consequence, ends.topic, ends.partition))
        yield replace(ends, log_start_offset=starts.of(ends))


def _log_ends(source: Source, topics: Sequence[str], context: Context) -> Iterator[LogEnds]:
    """The ends of all logs of some topics. Without this ability of the source, the ends known to its log partitions are
    used (`end`, the offset after the last record). Raises LogSourceError. Findings go to the context."""
    if has(source, TellsLogEnds):
        yield from source.log_ends(topics, context)
        return
    for topic in topics:
        for log in source.partitions(topic):
            context.counts.partitions += 1
            yield LogEnds(topic, log.partition, log_end_offset=log.end if has(log, HasEnd) else None)


def as_rows(ends: Sequence[LogEnds]) -> Any:
    """A `pyarrow.RecordBatch` of LOG_ENDS_SCHEMA."""
    columns = [pa.array([getattr(each, field.name) for each in ends], field.type) for field in LOG_ENDS_SCHEMA]
    return pa.RecordBatch.from_arrays(columns, schema=LOG_ENDS_SCHEMA)
