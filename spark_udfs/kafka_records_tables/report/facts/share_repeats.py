"""When deliveries of records to share groups failed, and how many records were delivered more than once: a table that
only the report uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_tables.coordinator.shares.share_replay import UPDATE
from kafka_records_tables.report.facts.share_deliveries import AVAILABLE
from kafka_records_tables.report.facts.share_state_reader import READS, RECORDS, ShareStateReader
from kafka_records_tables.tables.declaration import Column, Table
from kafka_records_tables.topics import SHARE_STATE

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.coordinator.shares.share_batches import StateBatch

QUIET_MS: Final = 600_000
"""Failed deliveries belong together if they are at most this far apart: ten times the longest lock that brokers allow
by default (`group.share.max.record.lock.duration.ms`)."""
_MOST_ACCEPTED: Final = 1000
"""How many batches of the most recently accepted records are kept with their times."""
_ACKNOWLEDGED: Final = 2
_UNDECIDED: Final = -1

TABLE: Final = Table(
    name="share_repeats",
    topic=SHARE_STATE,
    about="share partitions with records that became available again after a delivery, or were delivered again",
    helper="history",
    records=RECORDS,
    reads=READS,
    columns=(
        Column("group_id", "string", "the group"),
        Column("topic_id", "string", "id of the topic that it consumes"),
        Column("partition", "int32", "partition of the topic"),
        Column("accepted_before", "int64", "records that were accepted at their first delivery before any failed"),
        Column(
            "last_accepted",
            "list<struct<timestamp_ms: int64, records: int64>>",
            "the last of these: when, and how many",
        ),
        Column(
            "failures",
            "list<struct<first_ms: int64, last_ms: int64, log_offset: int64, records: int64, repeats: int64>>",
            "each span of time with failed deliveries: its first and last failure, the offset of the record of the "
            "first one, the records that were delivered more than once, and their deliveries after the first",
        ),
        Column("log_partition", "int32", "partition of the log"),
    ),
    sort=("log_partition", "group_id", "topic_id", "partition"),
    group="group_id",
    module=__name__,
    rules="One row per share partition with a failed delivery. Deliveries that have not ended are not in the log.",
)


@dataclass(slots=True)
class _Failures:
    """A span of time with failed deliveries."""

    first_ms: int
    last_ms: int
    log_offset: int
    records: int = 0
    repeats: int = 0


@dataclass(slots=True)
class _SharePartition:
    """What the log shows of a share partition so far."""

    accepted: int = 0
    last_accepted: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=_MOST_ACCEPTED))
    failures: list[_Failures] = field(default_factory=list)
    counts: dict[int, int] = field(default_factory=dict)
    """The delivery counts of records at or above the start offset, if 2 or more."""
    start: int = 0


class Reader(ShareStateReader):
    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._partitions: dict[tuple[str, str, int], _SharePartition] = {}

    def take_state(self, event: Any, batches: Sequence[StateBatch]) -> None:
        if event.value is None or event.timestamp_ms is None:
            return
        known = self._partitions.setdefault(event.key, _SharePartition())
        for first, last, count, state in batches:
            is_failed = state == AVAILABLE and count > 0
            if not known.failures and not is_failed and count < 2:
                # A snapshot repeats batches from earlier updates.
                if state == _ACKNOWLEDGED and event.record == UPDATE:
                    known.accepted += last - first + 1
                    known.last_accepted.append((event.timestamp_ms, last - first + 1))
                continue
            if not known.failures or event.timestamp_ms - known.failures[-1].last_ms > QUIET_MS:
                known.failures.append(_Failures(event.timestamp_ms, event.timestamp_ms, event.offset))
            if count > 1 or is_failed:
                self._count(known, event.timestamp_ms, range(first, last + 1), count)
        start = event.value.start_offset
        if start != _UNDECIDED and start > known.start:
            # The log says nothing more about records below the start offset.
            known.start = start
            known.counts = {offset: count for offset, count in known.counts.items() if offset >= start}

    def _count(self, known: _SharePartition, at_ms: int, offsets: Iterable[int], count: int) -> None:
        failures = known.failures[-1]
        for offset in offsets:
            before = known.counts.get(offset, 0)
            if count > before:
                failures.last_ms = max(failures.last_ms, at_ms)
                known.counts[offset] = count
                failures.records += count > 1 >= before
                failures.repeats += count - max(before, 1)

    def finish(self) -> Iterator[pa.RecordBatch]:
        rows = [
            {
                **dict(zip(("group_id", "topic_id", "partition"), key, strict=True)),
                "accepted_before": known.accepted,
                "last_accepted": [{"timestamp_ms": at, "records": count} for at, count in known.last_accepted],
                "failures": [{name: getattr(each, name) for name in _Failures.__slots__} for each in known.failures],
                "log_partition": self.context.partition,
            }
            for key, known in self._partitions.items()
            if known.failures
        ]
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=TABLE.schema)
