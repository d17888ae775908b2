"""Reads one log partition once for several tables. Each table gets the same input as if it were computed alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kafka_records_engine.sources import Context, Counts
from kafka_records_engine.sources.collected_findings import RepeatedFindings
from kafka_records_engine.sources.log_facts import KnownTopics, LogFacts
from kafka_records_tables.engines.asked_coordinators import AskedCoordinators
from kafka_records_tables.engines.log_tasks import TaskReport
from kafka_records_tables.tables.table_reading import TableReading

if TYPE_CHECKING:
    from kafka_records_tables.engines.log_tasks import LogTask
    from kafka_records_tables.engines.request import TableRequest


class SharedReading:
    """The rows of a task's tables. `progress` is called with the number of bytes of the log read so far."""

    def __init__(self, task: LogTask, progress: Callable[[int], None]) -> None:
        self._log = task.log
        _, first = task.requests[0]
        # Some requests may come without known topics, so use those of a request that has them.
        known = next((each.topics for _, each in task.requests if each.topics != KnownTopics()), first.topics)
        context = first.context(task.log.topic, task.log.partition, log=LogFacts(topics=known))
        self._context = replace(context, progress=progress)
        self._shared: dict[Any, Any] = {}
        self._readers = [_Reader(number, request, self._context, self._shared) for number, request in task.requests]

    def rows(self) -> Iterator[tuple[int, Any]]:
        """The rows as `pyarrow.RecordBatch`es, each with the number of its request, in no particular order. Raises the
        errors of tables and of the source."""
        if isinstance(self._log, AskedCoordinators):
            for each in self._readers:
                yield from each.asked(self._log)
            return
        columns = dict.fromkeys(name for each in self._readers for name in each.request.columns)
        batches = iter(self._log.batches(self._context, tuple(columns)))
        reading = list(self._readers)
        try:
            for each in reading:
                yield from each.finished_early()
            while reading := [each for each in reading if not each.is_over]:
                batch = next(batches, None)
                for each in reading:
                    each.catch_up()
                for each in reading:
                    yield from each.take(batch)
        finally:
            # The shared results refer to this dictionary, so both would stay in memory until the next garbage
            # collection.
            self._shared.clear()
            close = getattr(batches, "close", None)
            if close is not None:
                close()

    def report(self) -> TaskReport:
        """The report; complete after the last row."""
        self._context.sum_up()
        counts, most = Counts(), Counts()
        counts.add(self._context.counts)
        for each in self._readers:
            most.widen(each.own)
        counts.add(most)
        of_tables = [(each.number, tuple(each.context.findings), each.context.counts) for each in self._readers]
        return TaskReport(self._log.topic, self._log.partition, tuple(self._context.findings), counts, of_tables)


class _Reader:
    """One table, with the facts about the log from the shared reading `told`, and with its own findings and counts."""

    def __init__(self, number: int, request: TableRequest, told: Context, shared: dict[Any, Any]) -> None:
        self.number = number
        self.request = request
        self.context = replace(request.context(told.topic, told.partition, log=told.log), shared=shared)
        self._reading = TableReading(request.table, self.context)
        self.own = Counts()
        """The counts made by the table itself."""
        self._told = told
        self._findings = RepeatedFindings(told.findings, self.context.findings)

    @property
    def is_over(self) -> bool:
        """Whether the table has returned all its rows."""
        return self._reading.is_over

    def finished_early(self) -> Iterator[tuple[int, Any]]:
        """The rows of a table that does not need raw rows."""
        return self.take(None) if self._reading.wants_no_more else iter(())

    def take(self, batch: Any) -> Iterator[tuple[int, Any]]:
        """Pass raw rows to the table, or None at the end of the log. Returns its rows, each batch with the number of
        the request."""
        for rows in self._reading.take(self.own_columns(batch)):
            yield self.number, rows
        if self._reading.is_over:
            self.own.add(self.context.counts)
            self.context.counts.add(self._told.counts)

    def asked(self, coordinators: AskedCoordinators) -> Iterator[tuple[int, Any]]:
        """The rows of a table for which the source returns answers instead of raw rows, each batch with the number of
        the request."""
        for rows in coordinators.rows(self.request, self.context):
            yield self.number, rows
        self._told.counts.note_moments(self.context.counts.moments)

    def own_columns(self, batch: Any) -> Any:
        """The columns that the table has requested. Some tables check which columns exist."""
        if batch is None:
            return None
        there = batch.schema.names
        return batch.select([name for name in self.request.columns if name in there])

    def catch_up(self) -> None:
        """Pass the findings about the log up to this point to the table."""
        self._findings.catch_up()
