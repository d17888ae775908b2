"""`kafka-records counts`: how many records of which type there are, without Spark."""

from __future__ import annotations

import argparse
from typing import Any

from kafka_records_tables.cli.failures import DAMAGE, EXIT_STATUS_HELP, require
from kafka_records_tables.cli.source_choice import add_sources, add_topic, known_logs
from kafka_records_tables.cli.topics import add_package, catalog_of

_DESCRIPTION = """\
Count the records per topic and record type. Only the first two bytes of keys and values are looked at. No Spark, no
Java.
"""

_DETAILS = """\
Records below a raised log start, and those of aborted and open transactions, count too. Names in parentheses are of
transaction markers, of types that only early access releases of Kafka wrote, and of what has no name.
"""

_EXAMPLES = """\
examples:
  kafka-records counts /var/lib/kafka/data
      as a table; value_versions says how many values of which version there are
  kafka-records counts /var/lib/kafka/data --topic __consumer_offsets --format json
      one JSON object per record type
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    from kafka_records_tables.cli.output import OUTPUT_HELP, add_output

    parser = commands.add_parser(
        "counts",
        help="count the records per topic and type, without Spark",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{OUTPUT_HELP}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
    )
    add_sources(parser)
    add_topic(parser)
    add_package(parser)
    add_output(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Count, and return the exit status."""
    require("counts", "tables", "numpy", "pyarrow", "google_crc32c")
    import pyarrow as pa

    from kafka_records_runtime.errors import plural
    from kafka_records_tables.cli.output import check_output, write_batches
    from kafka_records_tables.cli.recordcounts import KEY_WITHOUT_TYPE, SCHEMA, count_records
    from kafka_records_tables.cli.reporting import FileReport, say

    check_output(options)
    catalog = catalog_of(options.package)
    logs = known_logs(options.sources, options.topic, catalog)
    report = FileReport()
    rows = count_records(logs, catalog, report.finding)
    write_batches(options, SCHEMA, pa.Table.from_pylist(rows, SCHEMA).to_batches())
    without_type = sum(row["records"] for row in rows if row["record"] == KEY_WITHOUT_TYPE)
    if without_type:
        say(f"{plural(without_type, 'record')} without a type in the key")
    report.summary()
    return DAMAGE if without_type else report.status
