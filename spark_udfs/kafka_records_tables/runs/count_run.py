"""One run of `kafka-records counts`: rows to the output, findings to standard error."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.reading import read_partition
from kafka_records_runtime.errors import plural
from kafka_records_tables.runs.broker_logs import Brokers, broker_logs, broker_rows
from kafka_records_tables.runs.catalog import Catalog, catalog_of
from kafka_records_tables.runs.chosen_logs import chosen_logs
from kafka_records_tables.runs.endings import DAMAGE
from kafka_records_tables.runs.record_counts import COLUMNS, KEY_WITHOUT_TYPE, SCHEMA, count_records
from kafka_records_tables.runs.standard_error import say
from kafka_records_tables.runs.totals import FileTotals
from kafka_records_tables.runs.written_output import Output, check_output, write_batches


def count(sources: Sequence[str], brokers: Brokers | None, topic: str | None, package: str, output: Output) -> int:
    """Count what is in `sources` or on `brokers`, write a row per topic and record type, and return the exit status."""
    check_output(output, sources)
    catalog = catalog_of(package)
    totals = FileTotals()
    rows = count_records(_batches(sources, brokers, topic, catalog, totals), catalog)
    write_batches(output, SCHEMA, pa.Table.from_pylist(rows, SCHEMA).to_batches())
    without_type = sum(row["records"] for row in rows if row["record"] == KEY_WITHOUT_TYPE)
    if without_type:
        say(f"{plural(without_type, 'record')} without a type in the key")
    totals.say_all()
    return DAMAGE if without_type else totals.status


def _batches(
    sources: Sequence[str], brokers: Brokers | None, topic: str | None, catalog: Catalog, totals: FileTotals
) -> Iterator[tuple[str, Iterator[Any]]]:
    """Topics with raw rows of one of their partitions."""
    if brokers is not None:
        totals.place = "the logs"
        for live in broker_logs(brokers.live(), topic, catalog):
            yield live.topic, broker_rows(live, COLUMNS, totals.tell)
        return
    for log in chosen_logs(sources, topic, catalog):
        rows = read_partition(log, below_log_start=True, on_finding=totals.tell, settle=False, columns=COLUMNS)
        yield log.topic, rows
