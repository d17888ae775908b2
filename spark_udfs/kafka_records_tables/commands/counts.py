"""`kafka-records counts`: counts the records of each type, without Spark."""

from __future__ import annotations

import argparse
from typing import Any

from kafka_records_tables.commands.output_options import OUTPUT_HELP, add_output_options, output_of
from kafka_records_tables.commands.source_options import NO_REQUESTS, add_package, add_sources, add_topic, given_source
from kafka_records_tables.console.endings import EXIT_STATUS_HELP, require

_DESCRIPTION = """\
Count the records per topic and record type. Only the first two bytes of keys and values are read. Needs neither Spark
nor
Java.
"""

_DETAILS = """\
Records below a raised log start and records of aborted and open transactions count too. Names in parentheses are
those
of transaction markers, of types that only early access releases of Kafka wrote, and of types without a name.
"""

_EXAMPLES = """\
examples:
  kafka-records counts /var/lib/kafka/data
      as a table; value_versions has the number of values of each version
  kafka-records counts /var/lib/kafka/data --topic __consumer_offsets --format json
      one JSON object per record type
  kafka-records counts --bootstrap broker-1:9092 --command-config client.properties
      of running brokers, with the settings of Kafka's own tools
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "counts",
        help="count the records per topic and type, without Spark",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{OUTPUT_HELP}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
    )
    add_sources(parser)
    parser.without["--source"] = NO_REQUESTS
    add_topic(parser)
    add_package(parser)
    add_output_options(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Count the records, and return the exit status."""
    require("counts", "tables", "numpy", "pyarrow", "google_crc32c")
    from kafka_records_tables.commands.count_run import count

    return count(given_source(options), options.topic, options.package, output_of(options))
