"""One log partition, read once for several tables. Each of them sees what it would see if it were read for it alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kafka_records_engine.sources import Context, Counts
from kafka_records_engine.sources.repeated_findings import RepeatedFindings
from kafka_records_tables.engines.log_tasks import TaskReport
from kafka_records_tables.engines.rows_in_turns import RowsInTurns

if TYPE_CHECKING:
    from kafka_records_tables.engines.log_tasks import LogTask
    from kafka_records_tables.engines.request import TableRequest


class SharedReading:
    """The rows of the tables of a task. `progress` is called with the bytes of the log that were read so far."""

    def __init__(self, task: LogTask, progress: Callable[[int], None]) -> None:
        self._log = task.log
        _, first = task.requests[0]
        self._context = first.context(task.log.topic, task.log.partition)
        self._context.progress = progress
        self._readers = [_Reader(number, request, self._context) for number, request in task.requests]
        if len(self._readers) > 1:
            shared: dict[Any, Any] = {}
            for each in self._readers:
                each.context.shared = shared

    def rows(self) -> Iterator[tuple[int, Any]]:
        """Rows as `pyarrow.RecordBatch`es, each with the number of its request, in no particular order. Raises what a
        table raises, or the source."""
        columns = dict.fromkeys(name for each in self._readers for name in each.request.columns)
        batches = iter(self._log.batches(self._context, tuple(columns)))
        try:
            if len(self._readers) == 1:
                yield from self._readers[0].alone(batches)
            else:
                yield from _in_turns(self._readers, batches)
        finally:
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    def report(self) -> TaskReport:
        """What was found; once there are no more rows."""
        self._context.sum_up()
        counts, most = Counts(), Counts()
        counts.add(self._context.counts)
        for each in self._readers:
            most.widen(each.own)
        counts.add(most)
        of_tables = [(each.number, each.context.findings, each.context.counts) for each in self._readers]
        return TaskReport(self._log.topic, self._log.partition, self._context.findings, counts, of_tables)


def _in_turns(readers: Iterable[_Reader], batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
    reading = [(reader, RowsInTurns(reader.rows)) for reader in readers]
    try:
        for reader, rows in reading:
            yield from reader.numbered(rows.start())
        while reading := [(reader, rows) for reader, rows in reading if not rows.is_over]:
            batch = next(batches, None)
            for reader, _ in reading:
                reader.catch_up()
            for reader, rows in reading:
                yield from reader.numbered(rows.take(reader.own_columns(batch)))
    finally:
        for _, rows in reading:
            rows.close()


class _Reader:
    """One table, and what it knows of the reading: what `told` was told until its last batch."""

    def __init__(self, number: int, request: TableRequest, told: Context) -> None:
        self.number = number
        self.request = request
        self.context = request.context(told.topic, told.partition)
        self.own = Counts()
        """What the table has counted itself."""
        self._told = told
        self._holes = 0
        self._findings = RepeatedFindings(told, self.context)

    def alone(self, batches: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """The rows of the table where there is no other, which need no thread."""
        return self.numbered(self.rows(self._caught_up(batches)))

    def _caught_up(self, batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            self.catch_up()
            yield batch
        self.catch_up()

    def rows(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The rows of the table."""
        yield from self.request.answer(_OneReading(self._told.topic, self._told.partition, batches), self.context)
        self.own.add(self.context.counts)
        self.context.counts.add(self._told.counts)

    def numbered(self, rows: Iterator[Any]) -> Iterator[tuple[int, Any]]:
        """The rows, each batch with the number of the request."""
        for batch in rows:
            yield self.number, batch

    def own_columns(self, batch: Any) -> Any:
        """The columns that the table has asked for: some look which there are."""
        if batch is None:
            return None
        there = batch.schema.names
        return batch.select([name for name in self.request.columns if name in there])

    def catch_up(self) -> None:
        """Tell the table what is known about the log so far."""
        told, context = self._told, self.context
        context.log_start, context.cleaned_up_to = told.log_start, told.cleaned_up_to
        context.holes += told.holes[self._holes :]
        self._holes = len(told.holes)
        self._findings.catch_up()


class _OneReading:
    """What a table asks for batches in place of the log partition: those of the one reading."""

    size = 0
    in_memory = True

    def __init__(self, topic: str, partition: int, batches: Iterator[Any]) -> None:
        self.topic = topic
        self.partition = partition
        self._batches = batches

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[Any]:
        """The batches."""
        return self._batches
