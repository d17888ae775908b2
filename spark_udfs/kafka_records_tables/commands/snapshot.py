"""`kafka-records snapshot`: keeps raw records before compaction and retention delete them, without Spark."""

from __future__ import annotations

import argparse
from typing import Any, Final

from kafka_records_tables.commands.source_options import NO_REQUESTS, add_sources, given_source, path_argument
from kafka_records_tables.console.endings import EXIT_STATUS_HELP, require

_DESCRIPTION = """\
Keep raw records in a directory of Parquet files, before compaction and retention delete them. Each run adds what is
new, so that records that a log has lost can still be read. The source is not changed. Needs neither Spark nor Java.
"""

_DETAILS = """\
The directory is a SOURCE: table, dump and counts read it, and table --as-of works for moments that the log itself no
longer has. Tables over it have the same rows as over the logs that it was taken from.

Run it more often than delete.retention.ms of the topics (24 hours unless changed), which is how long a log keeps
tombstones and transaction markers. If records were gone before they were read, the whole log is read once more, to find
out which of the stored records it has lost.

A run may be killed at any moment, and the next one continues: a file gets its name when it is complete and on the disk.
A lock, which ends with its process, prevents two runs at once: the second one ends with a message and status 2. A topic
that was deleted and recreated under its name is refused, and so is a log that ends before the stored records; other
logs are still stored. Records of two logs are never mixed.

Standard output lists what was added by topic, and standard error the problems: a cron job with >/dev/null sends mail
only if something is wrong. docs/snapshots.md has a timer for systemd and a line for cron.
"""

_EXAMPLES = """\
examples:
  kafka-records snapshot /var/lib/kafka/data --output kept
      new records of the coordinators' three topics
  kafka-records snapshot --bootstrap broker-1:9092 --command-config client.properties --output kept
      the same from running brokers
  kafka-records snapshot /var/lib/kafka/data --topic __consumer_offsets --output kept
      one topic
  kafka-records table current_offsets kept --as-of 2026-11-24T09:00 --group billing
      what a group had committed last Tuesday
"""

_MIB: Final = 1 << 20


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "snapshot",
        help="store raw records before the log deletes them",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{_EXAMPLES}\n{EXIT_STATUS_HELP}",
    )
    add_sources(parser)
    parser.without["--source"] = NO_REQUESTS
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        metavar="NAME",
        help="keep this topic, regardless of its content, instead of the coordinators' topics; may be repeated. For "
        "files that are not in a folder <topic>-<partition> it names their topic",
    )
    parser.add_argument(
        "--output",
        required=True,
        type=path_argument,
        metavar="DIR",
        help="the directory to write to, which is created if it is missing; an existing one must be a snapshot or "
        "empty",
    )
    parser.add_argument(
        "--file-size",
        type=_mebibytes,
        default=256 * _MIB,
        metavar="MIB",
        help="start a new file when one has reached this size in MiB (default: 256)",
    )
    parser.set_defaults(run=run, parser=parser)


def _mebibytes(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 7 and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of MiB from 1 to 999999")
    return int(text) * _MIB


def run(options: argparse.Namespace) -> int:
    """Take the snapshot, and return the exit status."""
    require("snapshot", "tables", "numpy", "pyarrow", "google_crc32c", "rich")
    from kafka_records_tables.commands.snapshot_run import SnapshotRun

    return SnapshotRun(given_source(options), options.topic, options.output, options.file_size).run()
