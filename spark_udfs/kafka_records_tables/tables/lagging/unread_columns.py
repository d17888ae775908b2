"""The unread records after committed offsets, as columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_records_engine.log.reading.unread import BATCH, RECORD, UNKNOWN, Unread, UnreadAsked
from kafka_records_engine.numpy_types import FLAGS, INT64
from kafka_records_tables.coordinator.offsets.commit_order import stable_order
from kafka_records_tables.tables.column_types import instants

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

BY_RECORD: Final = "record"
BY_BATCH: Final = "batch"
_WORDS: Final = {RECORD: BY_RECORD, BATCH: BY_BATCH}


def unread_columns(rows: pa.Table, context: Context) -> dict[str, Any]:
    """The columns `unread`, `held_back`, `unread_timestamp` and `known_by` for rows of lag; null if the source does not
    show them."""
    lag = _numbers(rows["lag"])
    is_known = rows["lag"].combine_chunks().is_valid().to_numpy(zero_copy_only=False)
    unread, held, stamps, precision = (np.full(rows.num_rows, UNKNOWN, np.int64) for _ in range(4))
    done = is_known & (lag == 0)
    unread[done] = held[done] = 0
    offsets, ends = np.maximum(_numbers(rows["offset"]), _numbers(rows["log_start_offset"])), _numbers(
        rows["end_offset"]
    )
    wanted = np.flatnonzero(is_known & (lag > 0))
    for asked, which, places in asked_of_logs(rows, offsets, ends, wanted, context):
        unread[which], held[which] = asked.unread[places], asked.held_back[places]
        stamps[which], precision[which] = asked.timestamp_ms[places], asked.precision[places]
    words = pa.array([*_WORDS.values(), None], pa.string())
    milliseconds = _nullable(stamps)
    return {
        "unread": _nullable(unread),
        "held_back": _nullable(held),
        "unread_timestamp": instants(milliseconds),
        "unread_timestamp_ms": milliseconds,
        "known_by": words.take(pa.array(np.where(precision == UNKNOWN, len(_WORDS), precision))),
    }


def time_columns(rows: pa.Table, stamps: pa.Array, retentions: Mapping[str, int], now_ms: int) -> dict[str, pa.Array]:
    """`lag_ms` and `margin_ms`, from the times of the first unread records."""
    topics = pa.array(list(retentions), pa.string())
    retention = pa.array(list(retentions.values()), pa.int64()).take(
        pc.index_in(rows["topic"], topics).combine_chunks()
    )
    return {
        "lag_ms": pc.subtract(now_ms, stamps),
        "margin_ms": pc.subtract(pc.add(stamps, retention), now_ms),
    }


def asked_of_logs(
    rows: pa.Table, offsets: INT64, ends: INT64, which: INT64, context: Context, *, with_tail: bool = False
) -> Iterator[tuple[Unread, INT64, INT64]]:
    """The unread records between the given offsets and the ends of their logs, for the rows selected by `which`. For
    each log: the answer, the rows that it is about, and their places in the answer. Rows have `topic` and
    `partition`."""
    if not len(which):
        return
    topics = rows["topic"].combine_chunks().dictionary_encode()
    topics = topics.combine_chunks() if isinstance(topics, pa.ChunkedArray) else topics
    codes = topics.indices.to_numpy(zero_copy_only=False)[which].astype(np.int64)
    partitions = _numbers(rows["partition"])[which]
    ends, offsets = ends[which], offsets[which]
    places = codes * (int(partitions.max()) + 1) + partitions
    order = stable_order(places)
    starts = np.flatnonzero(np.diff(places[order], prepend=-1))
    names = topics.dictionary.to_pylist()
    asked: list[UnreadAsked] = []
    of_asked: dict[int, tuple[INT64, INT64]] = {}
    for members in np.split(order, starts[1:]):
        first = members[0]
        distinct, inverse = np.unique(offsets[members], return_inverse=True)
        each = UnreadAsked(names[codes[first]], int(partitions[first]), distinct, int(ends[first]), with_tail)
        asked.append(each)
        of_asked[id(each)] = which[members], inverse
    for each, answer in context.log.unread(asked):
        yield answer, *of_asked[id(each)]


def _numbers(column: pa.ChunkedArray) -> INT64:
    numbers: INT64 = pc.fill_null(column, 0).to_numpy().astype(np.int64, copy=False)
    return numbers


def _nullable(numbers: INT64) -> pa.Array:
    unknown: FLAGS = numbers == UNKNOWN
    return pa.array(numbers, pa.int64(), mask=unknown)
