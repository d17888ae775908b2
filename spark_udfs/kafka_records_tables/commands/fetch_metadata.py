"""`kafka-records fetch-metadata`: fetches the metadata log of a running cluster into a directory that all tables can
read."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from kafka_records_tables.commands.source_options import path_argument, timeout_argument
from kafka_records_tables.console.endings import CommandError, UsageError, require

_DESCRIPTION = """\
Fetch the log of __cluster_metadata from the active controller into a new directory: every topic that exists or has
existed, partitions, settings, brokers and features, with the time of each change. Nothing is written to the cluster.
"""

_DETAILS = """\
Brokers do not let clients read this log, but they report most of what is in it: `table topics --bootstrap HOST:PORT`
asks them. Fetch the log for the rest: deleted topics, and when something was created or changed. If the controller has
deleted the beginning of its log, its snapshot is fetched as well, with the state up to there.

The command needs the right CLUSTER_ACTION on the cluster, which usually only brokers and controllers have, and network
access to the listener of the controllers.

The directory is a SOURCE like the data directory of a broker. It appears when it is complete, and only its owner may
read it, because the log has the keys of SCRAM users, delegation tokens and sensitive settings. Tables redact them.
"""

_EXAMPLES = """\
examples:
  kafka-records fetch-metadata --bootstrap-controller controller-1:9093 --output metadata
      into the new directory metadata
"""

_EXIT_STATUS_HELP: Final = """\
exit status:
  0    complete: the directory has the log up to the end that it had at the start
  2    no directory was written: wrong usage, no controller, a missing right, or damaged data
  130  Ctrl-C
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "fetch-metadata",
        help="fetch the metadata log of a running cluster from a controller",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{_EXAMPLES}\n{_EXIT_STATUS_HELP}",
    )
    parser.add_argument(
        "--bootstrap-controller",
        required=True,
        metavar="HOST:PORT[,…]",
        help="addresses of some controllers, as in controller.quorum.bootstrap.servers; the active controller "
        "is found through them",
    )
    parser.add_argument(
        "--command-config",
        type=path_argument,
        metavar="FILE",
        help="properties file for the connection to controllers (TLS, user, password), as Kafka's own tools take it",
    )
    parser.add_argument(
        "--timeout",
        type=timeout_argument,
        metavar="DURATION",
        help="stop waiting for controllers after this time, such as 30s or 5m, and write nothing; without this "
        "option, wait as long as they make progress",
    )
    parser.add_argument(
        "--output",
        required=True,
        type=path_argument,
        metavar="DIR",
        help="the directory to write to, which must be " "new or empty",
    )
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Fetch the log, and return the exit status. Raises a CommandError if it cannot be fetched."""
    require("fetch-metadata", "tables", "numpy", "pyarrow", "google_crc32c", "rich")
    from kafka_records_engine.log.files.discovery import LogSourceError
    from kafka_records_engine.sources.controllers import fetch_metadata_log
    from kafka_records_runtime.errors import plural
    from kafka_records_tables.console.progress_bar import ByteProgress

    config = None if options.command_config is None else Path(options.command_config)
    try:
        with ByteProgress("metadata log") as progress:
            found = fetch_metadata_log(
                options.bootstrap_controller,
                options.output,
                config,
                timeout=options.timeout,
                on_bytes=lambda size: progress.waiting(f"{size // 1024} KiB of the metadata log"),
            )
    except LogSourceError as error:
        raise CommandError(str(error)) from None
    except ValueError as error:
        raise UsageError(f"argument --bootstrap-controller: {error}") from None
    before = "" if found.snapshot is None else f", and the snapshot {found.snapshot} with the state before them"
    records = plural(found.end_offset - found.start_offset, "offset")
    print(f"{found.directory}: {records} from {found.start_offset} to {found.end_offset}{before}")
    return 0
