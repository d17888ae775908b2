"""The parser of `kafka-records` with all subcommands. Loading this module takes longer than the shortest runs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from kafka_records_tables.commands import (
    abort_transaction,
    counts,
    delete_offsets,
    dump,
    explain,
    fetch_metadata,
    report,
    snapshot,
    sql,
    table,
)
from kafka_records_tables.commands.parser import Parser
from kafka_records_tables.commands.source_options import path_argument
from kafka_records_tables.console.endings import EXIT_STATUS_HELP
from kafka_records_tables.near_names import did_you_mean

_DESCRIPTION = """\
Read what Kafka's coordinators keep in __consumer_offsets, __share_group_state and __transaction_state, and its
controllers in __cluster_metadata.

Only the result goes to standard output; progress, warnings and counts go to standard error.
"""

_EXAMPLES = """\
examples:
  kafka-records table groups /var/lib/kafka/data
      every group with its kind, state and members
  kafka-records table current_offsets /var/lib/kafka/data --format csv --output offsets.csv
      the committed offsets, as a file
  kafka-records sql /var/lib/kafka/data "SELECT state, count(*) FROM groups GROUP BY state"
      tables in SQL
  kafka-records dump /var/lib/kafka/data --topic __transaction_state
      every record as a JSON object, without Spark
  kafka-records counts /var/lib/kafka/data
      how many records there are of each type
  kafka-records snapshot /var/lib/kafka/data --output kept
      keep records before compaction removes them
  kafka-records delete-offsets --bootstrap broker-1:9092 --group billing --topic orders
      show what would be deleted; --execute deletes it
  kafka-records fetch-metadata --bootstrap-controller controller-1:9093 --output metadata
      the metadata log of a running cluster, for tables to read
  kafka-records abort-transaction --bootstrap broker-1:9092 --topic orders:0
      which transactions are open in a partition, and which of them hang
  kafka-records explain --message OffsetCommitValue --version 3 000000000000002a000000070000000001988f2b6f40
      a message byte by byte
"""


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the options, which sources may precede or follow. Errors are reported in the name of the subcommand."""
    parser = _parser()
    options, rest = parser.parse_known_args(arguments)
    options.arguments = arguments
    names = rest.index("--") if "--" in rest else len(rest)
    unknown = [each for each in rest[:names] if each.startswith("-")]
    sources = rest[:names] + rest[names + 1 :]
    if unknown or (sources and not hasattr(options, "sources")):
        wrong = unknown or sources
        hint = _hint(parser, options.parser, unknown[0].partition("=")[0]) if len(unknown) == 1 else ""
        options.parser.error(f"unrecognized arguments: {' '.join(wrong)}{hint}")
    try:
        for each in sources:
            options.sources.append(path_argument(each))
    except argparse.ArgumentTypeError as error:
        options.parser.error(f"argument SOURCE: {error}")
    return options


_RENAMED: Final = {"--untold": "--assume"}
"""Options, by their former names."""


def _hint(program: Parser, command: Parser, name: str) -> str:
    """A hint about an option that a subcommand lacks: what to do without it, which subcommand has it, or which option
    may have been meant."""
    if name in command.without:
        return f"; {command.without[name]}"
    if _RENAMED.get(name) in command.options:
        return f"; it is called {_RENAMED[name]}"
    others = [each.prog.rpartition(" ")[2] for each in program.subcommands if name in each.options]
    if others:
        return f"; it is an option of {', '.join(others)}"
    return did_you_mean(name, command.options, most=1)


def _parser() -> Parser:
    parser = Parser(prog="kafka-records", description=_DESCRIPTION, epilog=f"{_EXAMPLES}\n{EXIT_STATUS_HELP}")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (
        table,
        sql,
        report,
        dump,
        counts,
        snapshot,
        fetch_metadata,
        delete_offsets,
        abort_transaction,
        explain,
    ):
        command.add_parser(commands)
    return parser


class _Version(argparse.Action):
    """Looks up the version only when it is requested."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("kafka-records")
        except PackageNotFoundError:
            number = "(not installed)"
        print(f"kafka-records {number}")
        parser.exit()
