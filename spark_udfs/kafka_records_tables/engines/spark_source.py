"""Implements `spark.read.format("kafka-records")`: tables and raw rows over any source as a Python Data Source, and raw
rows of brokers also as a stream.

There is one input partition per log partition, or several on request. No filters or columns are pushed down: in PySpark
4.2 and 4.3, a filter that one query pushes to such a source is also applied in the next query, and columns are not
pruned at all. Options replace both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.abilities import tell_transactions
from kafka_records_engine.sources.missing_rights import AbsentTopic
from kafka_records_engine.spark.modes import FAILFAST
from kafka_records_tables.engines.log_ranges import parts_of
from kafka_records_tables.engines.logs_to_read import AllLogs, logs_of_table
from kafka_records_tables.engines.raw_outcomes import raw_rows
from kafka_records_tables.engines.spark_offsets import NAME, between
from kafka_records_tables.engines.spark_options import Asked, PathsToRead, asked
from kafka_records_tables.engines.spark_records import record_tasks
from kafka_records_tables.engines.spark_rows import refuse_unknown_transactions
from kafka_records_tables.engines.spread_tasks import spread
from kafka_records_tables.tables import tables_read

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from kafka_records_engine.sources import LogPartition, Source
    from kafka_records_tables.engines.request import TableRequest
    from kafka_records_tables.tables import Table


_ALL_INPUTS: Final = "all inputs"
"""The only partition of a view."""


class KafkaRecordsSource(DataSource):
    """See `kafka_records_tables.spark.register`."""

    @classmethod
    def name(cls) -> str:
        """The name of the source in `format`."""
        return NAME

    def schema(self) -> StructType:
        """The columns of the table, or of raw rows. Raises BadOption."""
        return asked(self.options).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader for the records that exist when the query runs."""
        wanted = asked(self.options).for_batch()
        # Get the logs before the topics. Reading ends where the logs end now, so every topic that a record refers to
        # already exists. Spark pickles the reader before it requests partitions, so names must be known by then.
        parts = _parts(wanted)
        return _Reader(wanted.with_known_topics(), parts)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 (Spark's name)
        """A reader that continues where the previous micro-batch ended."""
        from kafka_records_tables.engines.spark_stream import stream_reader

        return stream_reader(asked(self.options).for_stream())


class _Reader(DataSourceReader):
    def __init__(self, asked: Asked, parts: Sequence[InputPartition]) -> None:
        self._asked = asked
        self._parts = parts

    def partitions(self) -> Sequence[InputPartition]:
        return self._parts

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        asked = self._asked
        if partition.value is None:  # Spark replaces an empty list of partitions with one such partition
            return iter(())
        if asked.records is not None:
            return chain.from_iterable(map(asked.records.of_part, partition.value))
        if asked.rows is not None and partition.value == _ALL_INPUTS:
            return asked.rows.of_view(asked.place.source())
        if isinstance(partition.value, tuple):
            log: LogPartition = AllLogs(asked.place.source(), partition.value or None)
        else:
            log = asked.place.ready(partition.value)
        if asked.rows is not None:
            return asked.rows.of(log)
        return raw_rows(log, asked.mode == FAILFAST)


def _parts(asked: Asked) -> Sequence[InputPartition]:
    """What each task reads."""
    if asked.records is not None and isinstance(asked.place, PathsToRead):
        return [InputPartition(task) for task in record_tasks(asked.place.source())]
    if asked.rows is not None and asked.rows.request.table.inputs:
        if isinstance(asked.place, PathsToRead):
            _refuse_unknown_transactions_inputs(asked.rows.request, asked.place.source())
        # One task reads everything, because related rows must be in the same task and a Spark data source cannot
        # shuffle rows.
        return [InputPartition(_ALL_INPUTS)]
    source = asked.place.source()
    if asked.rows is not None and asked.rows.request.table.helper == "ends":
        # The worker recreates the source, because its arguments may contain secrets.
        return [InputPartition(() if asked.topic is None else (asked.topic,))]
    if asked.rows is not None:
        request = asked.rows.request
        topics: Sequence[str] = [request.table.topic]
        # Only a reader that starts at the beginning can find the offset that corresponds to `as_of_ms`.
        can_be_cut = request.table.helper == "facts" and request.question.as_of_ms is None
    else:
        topics = [asked.topic] if asked.topic is not None else source.topics()
        can_be_cut = True
    found = {topic: _logs(asked, source, topic) for topic in topics}
    if asked.rows is not None:
        _refuse_unknown_transactions(asked.rows.request.table, asked.rows.request, chain.from_iterable(found.values()))
    logs = [part for of_topic in found.values() for part in between(of_topic, asked.starting, asked.ending)]
    if asked.bytes_per_task is not None and can_be_cut:
        logs = [part for log in logs for part in parts_of(log, asked.bytes_per_task)]
    return [InputPartition(asked.place.bare(log)) for log in spread(logs)]


def _logs(asked: Asked, source: Source, topic: str) -> Sequence[LogPartition]:
    """The logs of a topic. If no coordinator has created it yet, there are none, and a table has no rows."""
    try:
        return source.partitions(topic) if asked.rows is None else logs_of_table(asked.rows.request.table, source)
    except AbsentTopic:
        if asked.rows is None:
            raise
        return ()


def _refuse_unknown_transactions_inputs(request: TableRequest, source: Source) -> None:
    """Raise UnknownTransactions for a view whose inputs would reject their first records."""
    for table in tables_read(request.table):
        if table.needs_transactions:
            with suppress(LogSourceError):  # the worker reports which topic is missing
                _refuse_unknown_transactions(table, request, source.partitions(table.topic))


def _refuse_unknown_transactions(table: Table, request: TableRequest, logs: Iterable[LogPartition]) -> None:
    refuse_unknown_transactions(table, request.question.assume, tells_transactions=tell_transactions(logs))
