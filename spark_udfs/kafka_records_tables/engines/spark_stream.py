"""Implements `spark.readStream.format("kafka-records")`: raw rows of a topic on brokers, in micro-batches.

Spark keeps an offset per partition in the checkpoint of the query, and requests the same range of offsets again after a
failure. So a range must return the same rows every time, and nothing may be remembered from one range to the next.
Nothing after the end of a range is read. If a transaction's marker is after it, the outcome follows from that marker,
in a later range.

Before PySpark 4.2, such a source chooses the end of a range without knowing the start, so it cannot limit the range.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.spark.modes import FAILFAST
from kafka_records_tables.engines.log_ranges import LogRange
from kafka_records_tables.engines.raw_outcomes import raw_rows
from kafka_records_tables.engines.spark_offsets import (
    FROM_END,
    FROM_START,
    LATEST,
    BadOption,
    DataLost,
    NextOffsets,
    check_partitions,
    check_reach,
    limited,
)
from kafka_records_tables.engines.spark_options import Asked, Brokers
from kafka_records_tables.engines.spread_tasks import spread

if TYPE_CHECKING:
    from kafka_records_engine.sources.broker_logs import BrokerPartition

_STARTING: Final = "starting offsets"
"""The key of a position before anything was read: the option itself. (Topic names cannot contain a space.) `latest` is
resolved at the end of the first range, which is empty, because Spark requests the start of an unfinished first range
again after a failure, and a different answer would skip records."""

_log: Final = logging.getLogger(__name__)


def stream_reader(asked: Asked) -> DataSourceStreamReader:
    """A reader for these options. Raises BadOption for a limit that this PySpark does not support."""
    if _CAN_LIMIT:
        return _LimitedReader(asked)
    if asked.most_offsets is not None:
        raise BadOption(
            f"maxOffsetsPerTrigger needs PySpark 4.2 or later, but this is {pyspark.__version__}: leave it out"
        )
    return _UnlimitedReader(asked)


class _Reader(DataSourceStreamReader):
    def __init__(self, asked: Asked) -> None:
        assert isinstance(asked.place, Brokers)
        assert asked.topic is not None
        self._asked = asked
        self._topic: str = asked.topic
        self._place: Brokers = asked.place
        self._target: NextOffsets | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """The position where a query without a checkpoint begins, as given in the option."""
        starting = self._asked.starting
        if isinstance(starting, Mapping):
            return {_STARTING: {str(partition): offset for partition, offset in starting.items()}}
        return {_STARTING: starting}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """A task for each log partition that has new records. Raises DataLost."""
        if start == end:
            return []
        logs = self._logs()
        wanted = NextOffsets.of_json(end, self._topic)
        if wanted.topic_id != _id_of(logs):
            self._lost(f"topic {self._topic} was deleted or recreated after its offsets were planned")
            return []
        first = self._begin(start, logs, wanted)
        tasks: list[LogRange] = []
        by_number = {log.partition: log for log in logs}
        for partition, behind in wanted.offsets.items():
            log, start_at = by_number.get(partition), first.get(partition, 0)
            if behind <= start_at:
                continue
            if log is None:
                self._lost(f"{self._topic}-{partition} is gone, and offsets {start_at} to {behind - 1} were not read")
                continue
            if log.start > start_at:
                last = min(log.start, behind) - 1
                self._lost(
                    f"{self._topic}-{partition}: offsets {start_at} to {last} were deleted before they were read: the "
                    f"log starts at {log.start} now"
                )
            first_there = max(start_at, log.start)
            if first_there < behind:
                whole = replace(log, end=max(log.end, behind))
                tasks.append(LogRange(self._place.bare(whole), first_there, behind, whole.size, looks_behind=False))
        return [InputPartition(task) for task in spread(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The raw rows of one task."""
        asked = self._asked
        log = self._place.ready(partition.value)
        return raw_rows(log, asked.mode == FAILFAST, asked.fails_on_data_loss)

    # -- where it goes on ----------------------------------------------------------------------------------------------

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 (Spark's name)
        """Remember the present log ends, because the query ends there."""
        self._target = self._ends(self._logs())

    def _up_to(self, start: dict[str, Any], most: int | None) -> dict[str, Any]:
        """Where the range that starts at `start` ends."""
        logs = self._logs()
        ends = self._ends(logs)
        first = self._begin(start, logs, ends)
        if self._target is not None and self._target.topic_id == ends.topic_id:
            known = self._target.offsets
            offsets = {at: min(end, known[at]) for at, end in ends.offsets.items() if at in known}
            ends = replace(ends, offsets=offsets)
        offsets = dict(ends.offsets)
        for partition, offset in first.items():
            end = offsets.get(partition)
            if end is None:
                if self._target is None:
                    self._gone(partition, offset)
                else:
                    offsets[partition] = offset
            elif end < offset:
                # The target offset moved backwards. The next query reads the new records, which are at least as many as
                # this query has read.
                log_end = next(log.end for log in logs if log.partition == partition)
                if log_end < offset:
                    self._cut_off(partition, offset, log_end)
                offsets[partition] = min(offset, log_end)
        if most is not None:
            offsets = limited(first, offsets, most)
        found = replace(ends, offsets=offsets)
        # Spark plans a new range whenever this text changes, so return the old text if the offsets are the same.
        if _STARTING not in start and NextOffsets.of_json(start, self._topic) == found:
            return start
        return found.to_json()

    def _begin(self, start: dict[str, Any], logs: Sequence[BrokerPartition], end: NextOffsets) -> dict[int, int]:
        """The offset where each partition begins."""
        if _STARTING in start:
            return self._first(start[_STARTING], logs, end)
        begun = NextOffsets.of_json(start, self._topic)
        if begun.topic_id == end.topic_id:
            return dict(begun.offsets)
        self._lost(f"topic {self._topic} was deleted and recreated since it was read, and the rest of it is gone")
        return {log.partition: log.start for log in logs}

    def _first(self, bound: Any, logs: Sequence[BrokerPartition], end: NextOffsets) -> dict[int, int]:
        if bound == LATEST:
            return dict(end.offsets)
        begun = {log.partition: log.start for log in logs}
        if not isinstance(bound, Mapping):
            return begun
        named = {int(partition): offset for partition, offset in bound.items()}
        check_partitions("startingOffsets", named, begun)
        for partition, offset in named.items():
            check_reach("startingOffsets", self._topic, partition, offset, end.offsets[partition])
            if offset == FROM_END:
                begun[partition] = end.offsets[partition]
            elif offset != FROM_START:
                begun[partition] = offset
        return begun

    def _logs(self) -> list[BrokerPartition]:
        source = self._place.source()
        logs: Any = source.partitions(self._topic)
        for log in logs:
            if log.trouble is not None:
                # Nothing is skipped, because Spark retries the batch as configured.
                raise LogSourceError(source.name, f"{self._topic}-{log.partition}: {log.trouble}")
        return list(logs)

    def _ends(self, logs: Sequence[BrokerPartition]) -> NextOffsets:
        return NextOffsets(self._topic, _id_of(logs), {log.partition: log.end for log in logs})

    def _gone(self, partition: int, offset: int) -> None:
        self._lost(f"{self._topic}-{partition} is gone; it was read up to offset {offset}")

    def _cut_off(self, partition: int, offset: int, log_end: int) -> None:
        self._lost(
            f"{self._topic}-{partition} was read up to offset {offset} and ends at {log_end} now: its log was cut off"
        )

    def _lost(self, what: str) -> None:
        if self._asked.fails_on_data_loss:
            raise DataLost(what)
        _log.warning("%s", what)


def _id_of(logs: Sequence[BrokerPartition]) -> str | None:
    """The id of the topic; None from brokers without topic ids."""
    from kafka_records_runtime.kafka.uuids import ZERO_UUID, Uuid

    topic_id = Uuid(logs[0].topic_id)
    return None if topic_id == ZERO_UUID else str(topic_id)


class _UnlimitedReader(_Reader):
    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override]  # noqa: N802 (PySpark 4.0 and 4.1)
        """Where the logs end."""
        return self._ends(self._logs()).to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """See `_Reader.partitions`. A truncated log is noticed only here, because `latestOffset` does not get the
        offsets read before. Raises DataLost."""
        if start != end and _STARTING not in start:
            read, planned = (NextOffsets.of_json(bound, self._topic) for bound in (start, end))
            if read.topic_id == planned.topic_id:
                for partition, offset in read.offsets.items():
                    behind = planned.offsets.get(partition)
                    if behind is None:
                        self._gone(partition, offset)
                    elif behind < offset:
                        self._cut_off(partition, offset, behind)
        return super().partitions(start, end)


try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
except ImportError:
    _CAN_LIMIT = False
else:
    _CAN_LIMIT = True

    class _LimitedReader(_Reader, SupportsTriggerAvailableNow):
        def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
            """Where the range that starts at `start` ends."""
            return self._up_to(start, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

        def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 (Spark's name)
            """The value of maxOffsetsPerTrigger."""
            most = self._asked.most_offsets
            return ReadAllAvailable() if most is None else ReadMaxRows(most)

        def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
            """Where the logs end, for the query's progress."""
            return self._ends(self._logs()).to_json()
