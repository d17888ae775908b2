"""`kafka-records delete-offsets`: deletes offsets and groups on running brokers, and restores them."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_records_tables.commands.source_options import add_brokers, path_argument
from kafka_records_tables.console.endings import UsageError, require

if TYPE_CHECKING:
    from kafka_records_tables.deletion.deletion_list import DeletionList

_REASONS = ("no_members", "simple_group")
_DESCRIPTION = """\
Delete committed offsets of consumer groups (KIP-496), or whole groups, on running brokers. Without --execute nothing
is
changed: the command prints what would be deleted.
"""

_DETAILS = """\
LIST is a file written from the table deletable_offsets (JSON lines, CSV or Parquet), or - for standard input. Rows are
skipped unless is_deletable is true. Of the others, the command takes offsets of topics that a group with members does
not subscribe to (reason not_subscribed); --also takes those of groups without members. An offset is left out if it was
committed again after the list was written, if an open transaction commits it, or if the group subscribes to its topic
now. A group, topic or partition of --group and --topic that does not exist is an error.

With --execute it asks for confirmation on a terminal; --yes confirms in advance, and is required without a terminal.
The offsets are first written to a file, which is on the disk before the deletion begins. --restore FILE commits them
again, with leader epoch and metadata, but at a new commit time. A group accepts such commits only while it has no
members. --restore also takes rows of a table, as `table current_offsets --format json` writes them. See
docs/deleting.md for what can happen.
"""

_EXAMPLES = """\
examples:
  kafka-records table deletable_offsets /var/lib/kafka/data --where reason=not_subscribed --format csv --output list
      make a list from a broker's files: offsets of topics that groups with members do not subscribe to
  kafka-records delete-offsets list --bootstrap broker-1:9092
      show what would be deleted
  kafka-records delete-offsets list --bootstrap broker-1:9092 --execute --output deleted.jsonl
      delete them
  kafka-records delete-offsets --restore deleted.jsonl --bootstrap broker-1:9092 --execute
      restore them
  kafka-records delete-offsets --bootstrap broker-1:9092 --group billing --topic orders:0,1 --topic returns
      single partitions, and all of a topic
  kafka-records delete-offsets --bootstrap broker-1:9092 --group old-billing --whole-groups
      a group without members, with all of its offsets
"""

_EXIT_STATUS_HELP = """\
exit status:
  0    complete: everything that was requested is done, or would be
  1    incomplete: some of it is not, or would not be, deleted (each status says why), or a name does not exist
  2    no answer: wrong usage, no broker, no terminal to ask on, or an error that ended the work
  130  Ctrl-C
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "delete-offsets",
        help="delete offsets of topics that groups no longer subscribe to, or restore what was deleted",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{_EXAMPLES}\n{_EXIT_STATUS_HELP}",
    )
    parser.add_argument(
        "sources",
        nargs="*",
        type=path_argument,
        metavar="LIST",
        help="what to delete: a file with rows of the deletable_offsets table, or - for standard input",
    )
    add_brokers(
        parser, "addresses of some brokers; the others are found through them", "the command ends with exit status 2"
    )
    parser.add_argument(
        "--group", action="append", default=[], metavar="ID", help="delete offsets of this group; may be repeated"
    )
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="NAME[:P,…]",
        help="delete the groups' offsets for this topic, or for some of its partitions; may be repeated",
    )
    parser.add_argument(
        "--also",
        type=_reasons,
        default=(),
        metavar="REASON,…",
        help="also delete rows of LIST with these reasons: no_members (the group is empty now, perhaps only during a "
        "deployment), simple_group (its clients may still be running); default: only not_subscribed",
    )
    parser.add_argument(
        "--whole-groups",
        action="store_true",
        help="delete whole groups (DeleteGroups): those of --group, or those that LIST marks as deletable; "
        "share groups are left out, because their state cannot be restored",
    )
    parser.add_argument(
        "--restore",
        type=path_argument,
        metavar="FILE",
        help="commit again the deleted offsets in FILE, or the offsets in rows of a table (JSON lines, CSV or Parquet)",
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="with --restore, also replace committed offsets that are newer; these are written to a file first",
    )
    parser.add_argument(
        "--execute",
        action="store_true",
        help="carry out the changes; without this option, only print what would be done",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--output",
        type=path_argument,
        metavar="FILE",
        help="where to write the deleted or overwritten offsets (default: deleted-offsets-<time>.jsonl or "
        "overwritten-offsets-<time>.jsonl in the current directory); the file must not exist yet",
    )
    parser.set_defaults(run=run, parser=parser)


def _reasons(text: str) -> tuple[str, ...]:
    found = tuple(text.split(","))
    wrong = [each for each in found if each not in _REASONS]
    if wrong:
        raise argparse.ArgumentTypeError(f"{wrong[0]!r} is not one of {', '.join(_REASONS)}")
    return found


def run(options: argparse.Namespace) -> int:
    """Delete or restore, and return the exit status."""
    _check(options)
    require("delete-offsets", "tables", "numpy", "pyarrow", "rich")
    from kafka_records_tables.commands.restore_run import RestoreRun
    from kafka_records_tables.console.asking import check_can_ask
    from kafka_records_tables.deletion.deletion_run import DeletionRun
    from kafka_records_tables.deletion.group_batches import requests_to

    if options.execute and not options.yes:
        check_can_ask()
    requests = requests_to(options.bootstrap, options.command_config, options.timeout)
    output = None if options.output is None else Path(options.output)
    if options.restore is not None:
        restoring = RestoreRun(
            requests,
            options.restore,
            execute=options.execute,
            yes=options.yes,
            overwrite=options.overwrite,
            output=output,
        )
        return restoring.run()
    return DeletionRun(requests, _wanted(options), execute=options.execute, yes=options.yes, output=output).run()


def _check(options: argparse.Namespace) -> None:
    """Raises UsageError for mutually exclusive options."""
    if options.bootstrap is None:
        raise UsageError("the following arguments are required: --bootstrap")
    ways = [bool(options.sources), bool(options.group), options.restore is not None]
    if sum(ways) != 1 or len(options.sources) > 1:
        raise UsageError("give one LIST, or groups with --group, or a file with --restore")
    if options.topic and not options.group:
        raise UsageError("--topic needs --group")
    if options.group and bool(options.topic) == options.whole_groups:
        raise UsageError("--group needs --topic or --whole-groups")
    if options.restore is not None and options.whole_groups:
        raise UsageError("--restore cannot be combined with --whole-groups")
    if options.restore is not None and options.output is not None and not options.overwrite:
        raise UsageError("--output with --restore needs --overwrite: only overwritten offsets are written to it")
    if options.also and not options.sources:
        raise UsageError("--also needs a LIST")
    if options.overwrite and options.restore is None:
        raise UsageError("--overwrite needs --restore")


def _wanted(options: argparse.Namespace) -> DeletionList:
    from kafka_records_tables.deletion.deletion_list import of_arguments, of_file

    try:
        if options.group:
            return of_arguments(options.group, options.topic, whole=options.whole_groups)
    except ValueError as error:
        raise UsageError(f"argument --topic: {error}") from None
    return of_file(options.sources[0], whole=options.whole_groups, also=options.also)
