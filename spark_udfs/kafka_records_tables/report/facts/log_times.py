"""When the records at committed offsets were written, for running brokers: a table that only the report uses.

It shows where a log ended at a given time, as `log_samples` does for files. A Fetch request asks about one offset in
each of many partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table
from kafka_records_tables.tables.lag import TIMES
from kafka_records_tables.tables.lagging.unread_columns import asked_of_logs

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context

_COMMITTED: Final = 24
"""The number of committed offsets to look up in each partition, evenly spaced."""
_UNREAD: Final = 12
"""The number of offsets to look up between the last commit and the end of the log."""

TABLE: Final = Table(
    name="log_times",
    topic=EVERY_TOPIC,
    about="when the records at committed offsets, and some later records, were written",
    helper="view",
    records=(),
    reads=(),
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("topic_id", "string", "id of the topic; null if the source does not report it"),
        Column("log_start_offset", "int64", "offset at which the log starts"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column("samples", "list<struct<offset: int64, timestamp_ms: int64>>", "offsets, and times of their records"),
        Column("exact_from", "int64", "always null, because there are records between these"),
    ),
    sort=("group_id", "topic", "partition"),
    group="group_id",
    module=__name__,
    inputs=("history", "log_ends"),
    group_inputs=("history",),
    options=(TIMES,),
    rules="One row per partition for which a group has committed offsets and that has records after the present one.",
)


def joined(parts: Mapping[str, Any], context: Context) -> Iterator[pa.RecordBatch]:
    """A row for each partition of a group."""
    logs = {(each["topic"], each["partition"]): each for each in parts["log_ends"].to_pylist()}
    committed: dict[tuple[str, str, int], set[int]] = {}
    present: dict[tuple[str, str, int], int] = {}
    names = ["group_id", "topic", "partition", "offset", "valid_to_timestamp_ms"]
    history = zip(*(parts["history"][name].to_pylist() for name in names), strict=True)
    for group, topic, partition, offset, valid_to in history:
        committed.setdefault((group, topic, partition), set()).add(offset)
        if valid_to is None:
            present[group, topic, partition] = offset
    rows = []
    for key, offsets in committed.items():
        log = logs.get(key[1:])
        if log is None or None in (log["log_start_offset"], log["log_end_offset"]):
            continue
        # Without a backlog, no rule needs to know when it began to grow.
        if present.get(key, log["log_end_offset"]) < log["log_end_offset"]:
            chosen = chosen_offsets(sorted(offsets), log["log_start_offset"], log["log_end_offset"])
            rows += [{**log, "group_id": key[0], "offset": each} for each in chosen]
    if not rows:
        return
    asked = pa.Table.from_pylist(rows)
    offsets, ends = asked["offset"].to_numpy(), asked["log_end_offset"].to_numpy()
    times: dict[int, int] = {}
    for answer, which, places in asked_of_logs(asked, offsets, ends, np.arange(len(rows)), context):
        of_rows = zip(which.tolist(), answer.timestamp_ms[places].tolist(), strict=True)
        times.update((row, at) for row, at in of_rows if at >= 0)
    found: dict[tuple[str, str, int], dict[str, Any]] = {}
    for number, row in enumerate(rows):
        one = found.setdefault((row["group_id"], row["topic"], row["partition"]), {**row, "samples": []})
        if number in times:
            samples = one["samples"]
            # Each record existed no later than the records after it.
            at = max(times[number], samples[-1]["timestamp_ms"] if samples else 0)
            samples.append({"offset": row["offset"], "timestamp_ms": at})
    yield from pa.Table.from_pylist([*found.values()], TABLE.schema).to_batches()


def chosen_offsets(committed: Sequence[int], start: int, end: int) -> list[int]:
    """Some of the committed offsets in a log, ascending, and some offsets after them up to its end. If all committed
    offsets are below the start of the log, they begin at the start."""
    there = [each for each in committed if start <= each < end]
    if not there and start < end and committed[-1] < start:
        there = [start]
    if not there:
        return []
    evenly = {there[(len(there) - 1) * each // (_COMMITTED - 1)] for each in range(_COMMITTED)}
    after = {there[-1] + (end - 1 - there[-1]) * each // _UNREAD for each in range(1, _UNREAD + 1)}
    return sorted({max(there[0] - 1, start), *evenly, *after})
