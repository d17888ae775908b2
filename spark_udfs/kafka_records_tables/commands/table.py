"""`kafka-records table`: prints a table over a source, computed by processes on this machine or by Spark."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.commands.output_options import (
    OUTPUT_HELP,
    add_output_options,
    file_path,
    format_of_name,
    output_of,
)
from kafka_records_tables.commands.reading_options import (
    add_as_of,
    add_assume,
    add_engine,
    add_groups,
    add_state,
    check_engine,
    check_state_options,
    count_argument,
    require_engine,
    spark_settings,
)
from kafka_records_tables.commands.source_options import add_source_kind, add_sources, add_topic, given_source
from kafka_records_tables.commands.written_output import (
    METRICS_FORMAT,
    MOST_SERIES,
    OFFSET_FORMATS,
    TABLES_WITH_METRICS,
)
from kafka_records_tables.console.endings import EXIT_STATUS_HELP, UsageError, require
from kafka_records_tables.near_names import UnknownColumn, near
from kafka_records_tables.query import QueryError, query_of, topic_columns
from kafka_records_tables.results.described import described
from kafka_records_tables.table_options import OptionError, option_values, own_options, tables_with
from kafka_records_tables.tables import TABLES, is_of_records, of_a_moment

if TYPE_CHECKING:
    from kafka_records_tables import Table
    from kafka_records_tables.query import Query

_DESCRIPTION = """\
Print a table, or write it to a file, in about the time its bytes take to read. It needs neither Spark nor Java, unless
--engine spark is given.
"""

_DETAILS = """\
conditions of --where:
  COLUMN OPERATOR VALUE with = != < <= > >= or ~ (the text contains VALUE), COLUMN is null, COLUMN is not null. Quote
  them for the shell: --where 'offset>=100'. A row is shown if all conditions are true. No comparison with null is true.
  A time is ISO 8601: 2026-01-31, 2026-01-31T12:00 (UTC), 2026-01-31T12:00+02:00.

moments of --as-of:
  a time as above, milliseconds since 1970 (12 digits or more), or a time before now: 90s, 30m, 2h, 7d, 1w. The log is
  read up to the first record with a later timestamp; ends of transactions after it do not count. A cleaned log lacks
  records that were replaced since: a note then says from which moment on an answer is complete.

durations:
  90s, 30m, 24h, 7d, 2w, or as in ISO 8601 P7D or PT24H. --at takes a moment as above, now, or a future time: in 24h.

order:
  Rows are sorted by the columns that --describe names, or by --sort first. Without --sort, more than 512 MiB of rows in
  json, csv or parquet are written in no particular order; a note says so. --limit needs memory for as many rows as it
  names.

offsets for other programs, of current_offsets only (docs/rescue.md):
  --format reset-offsets     a line GROUP,TOPIC,PARTITION,OFFSET per row, which Kafka's own tool takes:
                             kafka-consumer-groups --reset-offsets --from-file FILE --group GROUP --execute
  --format starting-offsets  JSON for the option "startingOffsets" of Spark's Kafka source, of one group. Partitions
                             of its topics without a commit, if the source knows them, begin at their start (-2)

metrics, of lag, group_lag, progress, open_transactions, expirations and log_files (docs/metrics.md):
  --format openmetrics       gauges for Prometheus; --output FILE.prom is for the textfile collector of node_exporter
  At most --max-series series are written, for the first rows; a line and a metric say how many were left out. --sort
  decides which rows come first; --group, --topic-filter and --where choose the rows.

Standard error names each record that cannot be used, with its effect on the table, and each damaged place in the files,
and counts what was left out. The exit status is 1 for damage, a timeout, a missing right, and for
  - a record that cannot be decoded, or whose value has a version this build does not know: without the value the table
  would be wrong, and the previous record is outdated
  - a record of a transaction whose outcome is unknown, because its marker cannot be read or is in a file that was not
    given
Records below a raised log start are left out. In a directory that a broker writes to, every partition is read as it was
at one moment.
"""

_EXAMPLES = """\
examples:
  kafka-records table groups /var/lib/kafka/data
  kafka-records table groups --bootstrap broker-1:9092,broker-2:9092 --command-config client.properties
      on the terminal
  kafka-records table current_offsets /var/lib/kafka/data --group billing --topic-filter 'orders*'
      what one group has committed for some topics
  kafka-records table current_offsets /var/lib/kafka/data --as-of 2h --format json | jq -c 'select(.offset > 0)'
      as of two hours ago, one JSON object per line
  kafka-records table offset_commits /var/lib/kafka/data --where is_tombstone=true --sort=-log_timestamp --limit 20
      the latest deletions
  kafka-records table expirations /var/lib/kafka/data --within 24h --retention 14d
      what expires by tomorrow if the brokers keep offsets for two weeks
  kafka-records table timeline /var/lib/kafka/data --group billing
      what happened to one group
  kafka-records table disappearances /var/lib/kafka/data --where record=OffsetCommit --where 'log_timestamp>=2026-01-31'
      which offsets were deleted since then, and why; --describe disappearances has the causes
  kafka-records table regressions /var/lib/kafka/data --topic-filter 'orders*' --where 'kind!=topic_recreated'
      which groups were moved backwards, and how
  kafka-records table lag --bootstrap broker-1:9092 --group billing --sort=-lag
      how far a group is behind; group_lag sums it up by group
  kafka-records table lag --bootstrap broker-1:9092 --times --sort=unread_timestamp --limit 20
      which groups wait longest, by the times of their first unread records
  kafka-records table lag --bootstrap broker-1:9092 --spark-checkpoint billing=/checkpoints/billing --group billing
      how far a Spark query is behind, according to its checkpoint
  kafka-records table lag --bootstrap broker-1:9092 --source requests --group billing
      the same on a cluster that hides __consumer_offsets
  kafka-records table progress /var/lib/kafka/data --where state!=ok --where state!=idle
      which groups make no progress, and since when; --where 'state is null' shows those for which it is unknown
  kafka-records table log_files /var/lib/kafka/data --where topic=__consumer_offsets --sort=-records_to_load
      what coordinators have to load, and what keeps it from being cleaned
  kafka-records table history /var/lib/kafka/data --group billing --where topic=orders --where partition=3
      when each of its offsets was valid
  kafka-records table activity /var/lib/kafka/data --window 1d --sort=-key_bytes --limit 20
      which groups write most, by day
  kafka-records table checks /var/lib/kafka/data --partitions __consumer_offsets=50 --loads-in 3.9
      problems, and whether brokers of an older release could load these logs
  kafka-records table current_offsets /var/lib/kafka/data --output offsets.parquet
      a file with types
  kafka-records table current_offsets /var/lib/kafka/data --as-of 2h --format reset-offsets --output offsets.csv
      the offsets of two hours ago, for kafka-consumer-groups --reset-offsets --from-file offsets.csv
  kafka-records table lag --bootstrap broker-1:9092 --sort=-lag --output /var/lib/node_exporter/lag.prom --overwrite
      metrics, from a timer, for Prometheus
  kafka-records table lag --bootstrap broker-1:9092 --state /var/lib/kafka-records/lag --sort=-lag --limit 20
      every minute: records are kept, and the next run reads only new ones
  kafka-records table groups /var/lib/kafka/data --engine spark --master 'local[2]' --conf spark.driver.memory=4g
      by Spark
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "table",
        help="print a table or write it to a file",
        description=_DESCRIPTION,
        epilog=f"tables:\n{_list()}\n{_DETAILS}\n{OUTPUT_HELP}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
    )
    parser.add_argument("name", type=_table, metavar="NAME", help="name of the table (listed below)")
    add_sources(parser)
    add_source_kind(parser)
    _add_questions(parser)
    add_output_options(
        parser,
        "by the extension of the file: .json, .jsonl, .csv, .parquet, .arrow, .prom or .txt; otherwise table",
        (*OFFSET_FORMATS, METRICS_FORMAT),
    )
    parser.set_defaults(format=None)
    parser.add_argument(
        "--max-series",
        type=count_argument(0),
        metavar="N",
        help=f"with --format openmetrics: write at most N time series, those of the first rows (default: "
        f"{MOST_SERIES})",
    )
    parser.add_argument(
        "--findings",
        type=file_path("findings go to standard error"),
        metavar="FILE",
        help="also write all findings to this file, as JSON lines",
    )
    add_state(parser)
    add_engine(parser)
    parser.add_argument("--list", action=_Print, nargs=0, text=lambda _: _list(), help="list the tables and exit")
    parser.add_argument(
        "--describe",
        action=_Print,
        nargs="?",
        type=_table,
        metavar="NAME",
        text=_described,
        help="print what the rows, columns and options of a table mean, then exit",
    )
    parser.set_defaults(run=run, parser=parser)


def _add_questions(parser: argparse.ArgumentParser) -> None:
    add_topic(parser, "; default: the topic of the table, and every topic for log_ends, log_files, lag and progress")
    add_groups(parser, "only rows about this group (for transactions: this transactional id)")
    parser.add_argument("--columns", type=_names, metavar="A,B", help="print only these columns, in this order")
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="CONDITION",
        help="print only rows that match this condition (syntax below); may be repeated",
    )
    parser.add_argument(
        "--sort",
        type=_names,
        default=[],
        metavar="A,B",
        help="sort by these columns; a - before a column sorts its largest values first: --sort=-A",
    )
    parser.add_argument(
        "--limit", type=count_argument(0), metavar="N", help="print only the first N rows, after sorting"
    )
    add_as_of(parser, "the table as it was at this moment (syntax below)")
    add_own_options(parser)
    add_assume(parser)


def add_own_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that only some tables have."""
    own = parser.add_argument_group("options of some tables")
    for option in own_options(TABLES.values()):
        about = f"{tables_with(option.name, TABLES.values())}: {option.about}"
        default = f" (default: {option.default})" if option.default else ""
        if option.kind == "flag":
            own.add_argument(f"--{option.argument}", action="store_const", const="true", help=about)
            continue
        own.add_argument(
            f"--{option.argument}",
            action="append" if option.kind == "checkpoints" else "store",
            choices=option.words or None,
            metavar=None if option.words else _METAVARS[option.kind],
            help=f"{about}{default}",
        )


_METAVARS: Final = {
    "moment": "TIME",
    "duration": "DURATION",
    "ahead": "DURATION",
    "partitions": "N",
    "release": "X.Y",
    "checkpoints": "[NAME=]DIR",
}


class _Print(argparse.Action):
    """Prints a text and ends the command."""

    def __init__(self, *args: Any, text: Callable[[Any], str], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._text = text

    def __call__(self, parser: argparse.ArgumentParser, namespace: Any, values: Any, option: str | None = None) -> None:
        if values is None:
            values = getattr(namespace, "name", None)
        if values is None:
            raise argparse.ArgumentError(self, "names no table")
        print(self._text(values), end="")
        parser.exit()


def _described(table: Table) -> str:
    return described(table, shutil.get_terminal_size((120, 24)).columns)


def _list() -> str:
    width = max(map(len, TABLES))
    return "".join(f"  {name:<{width}}  {table.about}\n" for name, table in TABLES.items())


# -- arguments ---------------------------------------------------------------------------------------------------------


def _table(text: str) -> Table:
    if text not in TABLES:
        raise argparse.ArgumentTypeError(f"no table is called {text!r}; {near(text, TABLES)}")
    return TABLES[text]


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(name.removeprefix("-") for name in names):
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of columns: write A,B")
    return names


# -- the run -----------------------------------------------------------------------------------------------------------


def run(options: argparse.Namespace) -> int:
    """Write the table, and return the exit status."""
    require_engine("table", options)
    table: Table = options.name
    query = _query(table, options)
    if table.topic and options.topic not in (None, table.topic):
        others = [each.name for each in TABLES.values() if each.topic == options.topic]
        hint = f"; tables about that: {', '.join(others)}" if others else ""
        raise UsageError(
            f"--topic: the table {table.name} is computed from {table.topic}, not from {options.topic}{hint}"
        )
    if table.inputs and options.topic is not None:
        raise UsageError(f"--topic: the table {table.name} reads several topics, and finds them by their names")
    _check_records(table, options)
    values = _own(table, options)
    check_engine(options)
    _set_format(options)
    _check_format(table, options)
    given = given_source(options)
    if given.by_requests and options.engine == "spark":
        raise UsageError("--source requests sends requests from this process: leave out --engine spark")
    from kafka_records_tables.commands.table_run import TableRun, TableTask
    from kafka_records_tables.engines.checked_request import question_to

    question = question_to(
        table,
        values,
        as_of_ms=options.as_of,
        assume=options.assume,
        groups=tuple(options.group) or None,
        topic=options.topic,
        package=options.package,
    )
    check_state_options(options, given, question)
    task = TableTask(
        table,
        question,
        query,
        given,
        output_of(options),
        findings=options.findings,
        processes=options.processes,
        spark=spark_settings(options),
        needs_order=bool(options.sort),
        may_hide_details=not options.columns,
        state=options.state,
        most_series=MOST_SERIES if options.max_series is None else options.max_series,
    )
    if task.state is None:
        return TableRun(task).run()
    from kafka_records_tables.commands.kept_run import RunKeeper  # only --state needs it

    return RunKeeper(TableRun(task), options.arguments).run()


def _check_format(table: Table, options: argparse.Namespace) -> None:
    """Raise a UsageError if the rows cannot be written in the requested form of offsets or as metrics."""
    if options.format == METRICS_FORMAT:
        _check_metrics(table, options)
    elif options.max_series is not None:
        raise UsageError(f"--max-series needs --format {METRICS_FORMAT}")
    if options.format not in OFFSET_FORMATS:
        return
    if table.name != "current_offsets":
        raise UsageError(f"--format {options.format} works only with current_offsets, not with {table.name}")
    if options.columns:
        raise UsageError(f"--columns: --format {options.format} has its own columns: leave out --columns")


def _check_metrics(table: Table, options: argparse.Namespace) -> None:
    if table.name not in TABLES_WITH_METRICS:
        able = ", ".join(TABLES_WITH_METRICS)
        raise UsageError(f"--format {METRICS_FORMAT}: {table.name} has no metrics; tables with metrics: {able}")
    if options.columns:
        raise UsageError(f"--columns: --format {METRICS_FORMAT} has its own labels: leave out --columns")
    require("table --format openmetrics", "metrics", "prometheus_client")


def _query(table: Table, options: argparse.Namespace) -> Query:
    if options.topic_filter and not topic_columns(table):
        able = [each.name for each in TABLES.values() if topic_columns(each)]
        raise UsageError(
            f"--topic-filter: rows of {table.name} do not belong to a topic; tables whose rows do: {', '.join(able)}"
        )
    try:
        return query_of(
            table,
            columns=options.columns,
            where=options.where,
            topics=options.topic_filter,
            sort=options.sort,
            limit=options.limit,
        )
    except (QueryError, UnknownColumn) as error:
        raise UsageError(str(error)) from None


def _check_records(table: Table, options: argparse.Namespace) -> None:
    """Raise a UsageError for an option about records if the table is not computed from records."""
    if options.as_of is not None and not is_of_records(table):
        raise UsageError(f"--as-of: rows of {table.name} show logs as they are now: leave it out{of_a_moment(table)}")
    if options.group and table.group is None and not table.group_inputs:
        raise UsageError(f"--group: rows of {table.name} do not belong to a group; {_other_options(table)}")
    if table.records or table.inputs:
        return
    if options.assume:
        raise UsageError(f"--assume: rows of {table.name} do not depend on transactions")


def _other_options(table: Table) -> str:
    """The options that select rows of the table if it has no groups."""
    own = "".join(f", --{option.argument}" for option in table.options)
    return f"--where, --sort and --limit choose among them{own and f'; it also takes {own[2:]}'}"


def _own(table: Table, options: argparse.Namespace) -> dict[str, Any]:
    """The values of all options that only some tables have. Raises a UsageError for an option that the table lacks."""
    known = {option.name: option.argument for option in own_options(TABLES.values())}
    given = {name: getattr(options, name) for name in known if getattr(options, name) is not None}
    for name in given:
        if all(option.name != name for option in table.options):
            tables = tables_with(name, TABLES.values())
            raise UsageError(f"--{known[name]}: {table.name} does not have this option; it is an option of {tables}")
    try:
        return option_values(table, given, options.as_of)
    except OptionError as error:
        raise UsageError(f"--{known[error.option]}{error.detail}") from None


def _set_format(options: argparse.Namespace) -> None:
    """Set the output. Without --format, the file suffix determines the format."""
    if options.format is None:
        options.format = format_of_name(options, (METRICS_FORMAT,))
