"""`kafka-records explain`: prints the bytes of a record or a message one by one."""

from __future__ import annotations

import argparse
from typing import Any

from kafka_records_tables.commands.catalog import TOPICS_TEXT
from kafka_records_tables.commands.source_options import SHOW_SECRETS_HELP, add_package

_DESCRIPTION = """\
Print an annotated dump: offset, bytes, type, path and value of each part of a record or a message, and where
decoding
fails.
"""

_DETAILS = """\
HEX may contain blanks, colons and a leading 0x. A single - reads it from standard input.

Without --topic and --message, - reads lines of dump --bytes and explains their records one after the other.
"""

_EXAMPLES = """\
examples:
  kafka-records explain --topic __consumer_offsets --key 0001000561646d696e00066f726465727300000000
      the key of a committed offset
  kafka-records explain --topic __consumer_offsets --key '00 0b 00 01 67' --value 0000000000025cdd0f2b0000000100
      a record: key and value as they are in the log, with their two bytes of type and version
  kafka-records dump /var/lib/kafka/data/__consumer_offsets-12 --offset 7 --bytes | kafka-records explain -
      the record at an offset
  kafka-records explain --message EndTxnMarker --version 0 0x0000002a
      any message of the specs, without a version in front
  xxd -p value.bin | kafka-records explain --message ConsumerProtocolSubscription --version 3 -
      from standard input
"""

_STATUS = """\
exit status:
  0    complete: explained to the end
  1    incomplete: the bytes end early or cannot be decoded; everything before that is shown
  2    no answer: wrong usage, or an input that is neither hex nor a line of dump
  130  Ctrl-C
"""


def add_parser(commands: Any) -> None:
    """Add the subcommand to the subparsers `commands`."""
    parser = commands.add_parser(
        "explain",
        help="print the bytes of a record or a message one by one",
        description=_DESCRIPTION,
        epilog=f"{_DETAILS}\n{_EXAMPLES}\n{_STATUS}",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--topic", metavar="TOPIC", help=f"explain a record of this topic: {TOPICS_TEXT}")
    what.add_argument(
        "--message", metavar="NAME", help="explain the bytes of a message; the argument is the name of its spec"
    )
    parser.add_argument("--key", metavar="HEX", help="with --topic: the bytes of the key")
    parser.add_argument("--value", metavar="HEX", help="with --topic: the bytes of the value; null for a tombstone")
    parser.add_argument("--version", type=int, metavar="N", help="with --message: the version of the message")
    parser.add_argument(
        "hex",
        nargs="?",
        metavar="HEX",
        help="with --message: the bytes of the message; without --message, - reads the output of dump from standard "
        "input",
    )
    parser.add_argument("--show-secrets", action="store_true", help=SHOW_SECRETS_HELP)
    add_package(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Print the explanation, and return the exit status."""
    from kafka_records_tables.commands import explain_run
    from kafka_records_tables.commands.catalog import catalog_of

    _check(options)
    catalog, shown = catalog_of(options.package), options.show_secrets
    if options.message is not None:
        return explain_run.explain_one_message(
            catalog, options.message, options.version, options.hex, show_secrets=shown
        )
    if options.topic is not None:
        return explain_run.explain_one_record(catalog, options.topic, options.key, options.value, show_secrets=shown)
    return explain_run.explain_dumped_records(catalog, show_secrets=shown)


def _check(options: argparse.Namespace) -> None:
    """End the command if arguments are mutually exclusive."""
    wrong = options.parser.error
    if options.message is not None:
        if options.key is not None or options.value is not None:
            wrong("--key and --value need --topic; with --message, give the bytes without an option")
        if options.version is None:
            wrong("--message needs --version")
        if options.hex is None:
            wrong("--message needs the bytes in hex, or - for standard input")
    elif options.topic is not None:
        if options.hex is not None or options.version is not None:
            wrong("--version and bytes without an option need --message; with --topic, use --key and --value")
        if options.key is None and options.value is None:
            wrong("--topic needs --key, --value or both")
        if options.key == options.value == "-":
            wrong("only one of --key and --value can be read from standard input")
        if options.key == "null":
            wrong("--key cannot be null, but --value can; leave --key out to explain only the value")
    else:
        if options.hex is None:
            wrong("one of the arguments --topic --message is required, or - for lines of dump --bytes")
        if options.hex != "-":
            wrong("bytes need --message and --version, or --topic with --key and --value")
        if not (options.key is options.value is options.version is None):
            wrong("lines of dump contain keys, values and versions")
