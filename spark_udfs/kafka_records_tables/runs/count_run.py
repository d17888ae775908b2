"""One run of `kafka-records counts`: rows to the output, findings to standard error."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from kafka_records_runtime.errors import plural
from kafka_records_tables.runs.catalog import catalog_of
from kafka_records_tables.runs.chosen_logs import chosen_logs
from kafka_records_tables.runs.endings import DAMAGE
from kafka_records_tables.runs.record_counts import KEY_WITHOUT_TYPE, SCHEMA, count_records
from kafka_records_tables.runs.standard_error import say
from kafka_records_tables.runs.totals import FileTotals
from kafka_records_tables.runs.written_output import Output, check_output, write_batches


def count(sources: Sequence[str], topic: str | None, package: str, output: Output) -> int:
    """Count the records in `sources`, write a row per topic and record type, and return the exit status."""
    check_output(output, sources)
    catalog = catalog_of(package)
    logs = chosen_logs(sources, topic, catalog)
    totals = FileTotals()
    rows = count_records(logs, catalog, totals.tell)
    write_batches(output, SCHEMA, pa.Table.from_pylist(rows, SCHEMA).to_batches())
    without_type = sum(row["records"] for row in rows if row["record"] == KEY_WITHOUT_TYPE)
    if without_type:
        say(f"{plural(without_type, 'record')} without a type in the key")
    totals.say_all()
    return DAMAGE if without_type else totals.status
