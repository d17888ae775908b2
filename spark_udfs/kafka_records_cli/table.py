"""`kafka-records table`: a table over log segment files, built by Spark on this machine."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final

from kafka_records_cli.failures import EXIT_STATUS_HELP, UsageError, require
from kafka_records_cli.output import OUTPUT_HELP, add_output, check_output
from kafka_records_cli.sources import add_sources, add_topic

TABLES: Final[Mapping[str, str]] = {
    "current_offsets": "the committed offset of every group, topic and partition",
    "groups": "every group with its kind, its state as far as the log tells, and its epoch",
}
"""The tables of `kafka_records_tables` and what they say, known here because `--help` must not load Spark."""

_DESCRIPTION = """\
Build a table with Spark on this machine and print it or write it to a file. Needs Java 17 or later.
"""

_DETAILS = """\
Only records that decide about a row are decoded: for each key the last one that is not of an aborted transaction.
Standard error names each of them that cannot be used and says what that does to the table, names every damaged place
in the files, and counts what was left out. The exit status is 1 for damage, and for
  - a record that cannot be decoded, or whose value has a version this build does not know (for dump that is no error:
    a line with the bytes is right. A table is not right without the value, and the record before it is outdated)
  - a record of a transaction of which nobody can tell how it ended, because the marker cannot be read or stands in a
    file that was not given
Records below a raised log start are left out. In a directory that a broker writes to, what it appends while the table
is built may be in it or not.
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
    )
    parser.add_argument("name", choices=[*TABLES], metavar="NAME", help="the table, see below")
    add_sources(parser)
    add_topic(parser, "; default: the topic of the table")
    add_output(parser)
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        type=_property,
        metavar="KEY=VALUE",
        help="a property of Spark; may be repeated",
    )
    parser.set_defaults(run=run, parser=parser)


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
    if options.topic not in (None, table.topic):
        raise UsageError(f"--topic: the table {table.name} is about {table.topic}, not about {options.topic}")
    logs = coordinator_logs(options.sources, table.topic)
    return TableRun(table, logs, options).run(dict(options.conf))


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not spark.SOMETHING=VALUE")
    return name, value
