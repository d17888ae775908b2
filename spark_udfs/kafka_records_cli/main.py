"""The parser of `kafka-records` and what holds for all of its subcommands."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from kafka_records_cli import counts, dump, explain, table
from kafka_records_cli.failures import EXIT_STATUS_HELP, FAILED, OK, CommandError

_DESCRIPTION = """\
Read what Kafka's coordinators keep in __consumer_offsets, __share_group_state and __transaction_state.

Standard output carries the result and nothing else; progress, warnings and counts go to standard error.
"""

_EXAMPLES = """\
examples:
  kafka-records table groups /var/lib/kafka/data
      every group with its kind, state and members
  kafka-records table current_offsets /var/lib/kafka/data --format csv --output offsets.csv
      the committed offsets, as a file
  kafka-records dump /var/lib/kafka/data --topic __transaction_state
      every record as a JSON object, without Spark
  kafka-records counts /var/lib/kafka/data
      how many records of which type there are
  kafka-records explain --message OffsetCommitValue --version 3 000000000000002a000000070000000001988f2b6f40
      a message byte by byte
"""

_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status (see `failures.EXIT_STATUS_HELP`)."""
    _set_encoding()
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
        sys.stdout.flush()
    except CommandError as error:
        print(f"kafka-records: {error}", file=sys.stderr)
        return FAILED
    except BrokenPipeError:
        # The reader has what it wanted. Whatever is still buffered must not fail once more at exit.
        _discard_output()
        return OK
    except OSError as error:
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"kafka-records: {place}{error.strerror or error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return _INTERRUPTED
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-records",
        description=_DESCRIPTION,
        epilog=f"{_EXAMPLES}\n{EXIT_STATUS_HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (table, dump, counts, explain):
        command.add_parser(commands)
    return parser


class _Version(argparse.Action):
    """Looks the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version("kafka-records")
        except PackageNotFoundError:
            number = "(not installed)"
        print(f"kafka-records {number}")
        parser.exit()


def _set_encoding() -> None:
    """Results are UTF-8 with the line ends the format asks for, whatever the locale says."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    try:
        standard_output = sys.stdout.fileno()
    except OSError:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, standard_output)
    os.close(nowhere)


if __name__ == "__main__":
    sys.exit(main())
