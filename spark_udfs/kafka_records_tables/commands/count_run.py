"""One run of `kafka-records counts`, which writes rows to the output and findings to standard error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kafka_records_engine.sources import Context
from kafka_records_engine.sources.broker_threads import read_by_broker
from kafka_records_runtime.errors import plural
from kafka_records_tables.commands.catalog import Catalog, catalog_of
from kafka_records_tables.commands.chosen_logs import ToldFindings, chosen_logs, raw_rows
from kafka_records_tables.commands.given_source import GivenSource
from kafka_records_tables.commands.record_counts import COLUMNS, KEY_WITHOUT_TYPE, SCHEMA, count_records
from kafka_records_tables.commands.totals import FileTotals
from kafka_records_tables.commands.written_output import Output, check_output, write_batches
from kafka_records_tables.console.endings import DAMAGE
from kafka_records_tables.console.standard_error import say

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition


def count(given: GivenSource, topic: str | None, package: str, output: Output) -> int:
    """Count the records of a source, write one row per topic and record type, and return the exit status."""
    check_output(output, given.paths)
    catalog = catalog_of(package)
    totals = FileTotals(place=given.place)
    rows = count_records(_batches(given, topic, catalog, totals), catalog)
    write_batches(output, SCHEMA, pa.Table.from_pylist(rows, SCHEMA).to_batches())
    without_type = sum(row["records"] for row in rows if row["record"] == KEY_WITHOUT_TYPE)
    if without_type:
        say(f"{plural(without_type, 'record')} without a type in the key")
    totals.say_all()
    return DAMAGE if without_type else totals.status


def _batches(
    given: GivenSource, topic: str | None, catalog: Catalog, totals: FileTotals
) -> Iterator[tuple[str, Iterator[Any]]]:
    """Topics, each with the raw rows of one of their partitions, including rows below the log start."""

    def read(log: LogPartition) -> Iterator[tuple[str, Iterator[Any]]]:
        context = Context(log.topic, log.partition, findings=ToldFindings(totals.tell))
        for rows in raw_rows(log, context, COLUMNS, start=0):
            yield log.topic, iter((rows,))

    logs = chosen_logs(given.source(topic), topic, catalog, totals.tell)
    # Topics without records are counted too.
    yield from ((name, iter(())) for name in dict.fromkeys(log.topic for log in logs))
    yield from read_by_broker(logs, lambda log: log, read)
