"""`kafka-records sql`: runs an SQL query over tables, with DuckDB in this process."""

from __future__ import annotations

import argparse
from typing import Any

from kafka_records_tables.commands.output_options import OUTPUT_HELP, add_output_options, format_of_name, output_of
from kafka_records_tables.commands.reading_options import add_as_of, add_assume, count_argument
from kafka_records_tables.commands.source_options import add_source_kind, add_sources, given_source
from kafka_records_tables.commands.table import add_own_options
from kafka_records_tables.console.endings import EXIT_STATUS_HELP, UsageError, require
from kafka_records_tables.table_options import own_options
from kafka_records_tables.tables import TABLES

_DESCRIPTION = """\
Query the tables in SQL, with DuckDB in memory. The last argument is the query: one SELECT (or WITH … SELECT). Every
table of `kafka-records table --list` is a view with its name. Only the tables that the query names are read, each log
once.
"""

_DETAILS = """\
Times are TIMESTAMP WITH TIME ZONE in UTC. The query can read only the tables: it cannot open or write files (--output
does).
Settings for whole logs, such as an earlier moment, are options: --as-of, --retention. The tables that a query
names are
held in memory.
"""

_EXAMPLES = """\
examples:
  kafka-records sql /var/lib/kafka/data 'SELECT group_kind, count(*) FROM groups GROUP BY ALL'
  kafka-records sql --bootstrap broker-1:9092 'SELECT * FROM lag JOIN groups USING (group_id) WHERE state = $$Empty$$'
      groups without members that have records to read
  kafka-records sql /var/lib/kafka/data 'SELECT group_id, max(offset) FROM offset_commits GROUP BY 1' --output max.csv
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "sql",
        help="query the tables in SQL, with DuckDB",
        usage="kafka-records sql [options] SOURCE... QUERY",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{OUTPUT_HELP}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
    )
    add_sources(parser)
    add_source_kind(parser)
    add_as_of(parser, "the tables as they were at this moment: 2026-01-31T12:00 (UTC), or 2h, 7d ago")
    add_own_options(parser)
    add_assume(parser)
    parser.add_argument(
        "--processes", type=count_argument(1), metavar="N", help="read with N processes (default: one per core)"
    )
    add_output_options(parser, "by the extension of the file, as for table; table without a file")
    parser.set_defaults(format=None)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the query, and return the exit status."""
    require("sql", "sql", "duckdb", "numpy", "pyarrow", "google_crc32c", "rich")
    if not options.sources:
        raise UsageError("the following arguments are required: QUERY")
    query: str = options.sources.pop()
    if len(query.split()) < 2:
        raise UsageError(f"the last argument must be the query, but {query!r} is not one: write 'SELECT … FROM groups'")
    if options.format is None:
        options.format = format_of_name(options)
    output = output_of(options)
    given = given_source(options)
    from kafka_records_tables.commands.sql_run import SqlRun, SqlTask

    own = {option.name: getattr(options, option.name) for option in own_options(TABLES.values())}
    task = SqlTask(
        query,
        given,
        output,
        as_of_ms=options.as_of,
        assume=options.assume,
        package=options.package,
        processes=options.processes,
        own={name: value for name, value in own.items() if value is not None},
    )
    return SqlRun(task).run()
