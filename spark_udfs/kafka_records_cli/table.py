"""`kafka-records table`: a table over log segment files, built by Spark on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from kafka_records_cli.failures import EXIT_STATUS_HELP, require
from kafka_records_cli.output import OUTPUT_HELP, add_output, check_output
from kafka_records_cli.sources import add_sources

TABLES: Final[Mapping[str, str]] = {
    "current_offsets": "the committed offset of every group, topic and partition",
    "groups": "every group with its kind, its state as far as the log tells, and its epoch",
}
"""The tables of `kafka_records_tables` and what they say, known here because `--help` must not load Spark."""

_DESCRIPTION = """\
Build a table with Spark on this machine and print it or write it to a file. Needs Java 17 or later.
"""

_DETAILS = """\
Records below a raised log start are left out. Records that would decide about a row but cannot be decoded are not used:
standard error names each of them, and every damaged place in the files.
"""

_EXAMPLES = """\
examples:
  kafka-records table groups /var/lib/kafka/data
      on the terminal
  kafka-records table current_offsets /var/lib/kafka/data --format json | jq -c 'select(.group_id == "billing")'
      one JSON object per line
  kafka-records table current_offsets /var/lib/kafka/data --format csv --output offsets.csv
      a file for a spreadsheet
  kafka-records table groups /var/lib/kafka/data/__consumer_offsets-12 --conf spark.driver.memory=4g
      one partition, with more memory than Spark takes by itself
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    width = max(map(len, TABLES))
    tables = "".join(f"  {name:<{width}}  {about}\n" for name, about in TABLES.items())
    parser = commands.add_parser(
        "table",
        help="build a table with Spark and print it or write it to a file",
        description=_DESCRIPTION,
        epilog=f"tables:\n{tables}\n{_DETAILS}\n{OUTPUT_HELP}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("name", choices=[*TABLES], metavar="NAME", help="the table, see below")
    add_sources(parser)
    add_output(parser)
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_property,
        metavar="KEY=VALUE",
        help="a property of Spark; may be repeated",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Build and write the table, and return the exit status."""
    require("table", "spark", "pyspark", "pandas", "numpy", "pyarrow", "google_crc32c", "rich")
    check_output(options)
    from kafka_records_cli.java import check_java
    from kafka_records_cli.sources import coordinator_logs

    check_java()
    from kafka_records_cli.tablerun import TableRun
    from kafka_records_tables import TABLES as BUILDERS

    table = BUILDERS[options.name]
    logs = coordinator_logs(options.sources, table.topic)
    return TableRun(table, logs, options.sources, options).run(dict(options.conf))


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not spark.SOMETHING=VALUE")
    return name, value
