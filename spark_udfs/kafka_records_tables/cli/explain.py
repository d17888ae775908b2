"""`kafka-records explain`: the bytes of a record or a message, one by one."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka_records_tables.cli.failures import DAMAGE, OK, CommandError
from kafka_records_tables.cli.reporting import say
from kafka_records_tables.cli.topics import TOPICS_TEXT, Catalog, add_package, catalog_of

if TYPE_CHECKING:
    from kafka_records_runtime.explain import Line

_DESCRIPTION = """\
Print an annotated dump: offset, bytes, type, path and value of everything in a record or a message, and where it
breaks.
"""

_DETAILS = """\
HEX may hold blanks, colons and a leading 0x. A single - reads it from standard input.

Without --topic and --message, - reads lines of dump --bytes and explains their records one after the other.
"""

_EXAMPLES = """\
examples:
  kafka-records explain --topic __consumer_offsets --key 0001000561646d696e00066f726465727300000000
      the key of a committed offset
  kafka-records explain --topic __consumer_offsets --key '00 0b 00 01 67' --value 0000000000025cdd0f2b0000000100
      a record: key and value as they stand in the log, with their two bytes of type and version
  kafka-records dump /var/lib/kafka/data/__consumer_offsets-12 --offset 7 --bytes | kafka-records explain -
      the record at an offset
  kafka-records explain --message EndTxnMarker --version 0 0x0000002a
      any message of the specs, without a version in front
  xxd -p value.bin | kafka-records explain --message ConsumerProtocolSubscription --version 3 -
      from standard input
"""

_STATUS = """\
exit status:
  0  explained to the end
  1  the bytes break off or do not parse; everything up to there is shown
  2  wrong usage
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
    what.add_argument("--topic", metavar="TOPIC", help=f"a record of this topic: {TOPICS_TEXT}")
    what.add_argument("--message", metavar="NAME", help="a message by the name of its spec")
    parser.add_argument("--key", metavar="HEX", help="with --topic: the key")
    parser.add_argument("--value", metavar="HEX", help="with --topic: the value; null for a tombstone")
    parser.add_argument("--version", type=int, metavar="N", help="with --message: its version")
    parser.add_argument("hex", nargs="?", metavar="HEX", help="with --message: its bytes; - alone: lines of dump")
    add_package(parser)
    parser.set_defaults(run=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Explain, and return the exit status."""
    from kafka_records_runtime.explain import explain_text

    if options.topic is None and options.message is None:
        if options.hex is None:
            options.parser.error("one of the arguments --topic --message is required, or - for lines of dump --bytes")
        if options.hex != "-":
            options.parser.error("bytes need --message and --version, or --topic with --key and --value")
        return _dumped(options)
    catalog = catalog_of(options.package)
    lines = [*(_message(options, catalog) if options.topic is None else _record(options, catalog))]
    sys.stdout.write(explain_text(lines))
    return DAMAGE if any(line.type == "error" for line in lines) else OK


def _dumped(options: argparse.Namespace) -> int:
    from kafka_records_tables.cli.explaindump import explain_dumped

    if not (options.key is options.value is options.version is None):
        options.parser.error("lines of dump have their own keys, values and versions")
    catalog = catalog_of(options.package)
    status = OK
    try:
        for text, is_broken in explain_dumped(sys.stdin, catalog):
            sys.stdout.write(text)
            sys.stdout.flush()  # the next line may take its time: dump can follow a log
            status = DAMAGE if is_broken else status
    except UnicodeDecodeError:
        raise CommandError("standard input holds no lines of dump: it is no text") from None
    return status


def _message(options: argparse.Namespace, catalog: Catalog) -> Iterator[Line]:
    from kafka_records_runtime.explain import explain_message
    from kafka_records_runtime.schema import covers

    if options.key is not None or options.value is not None:
        options.parser.error("--key and --value go with --topic; the bytes of a message stand alone")
    if options.version is None:
        options.parser.error("--message needs --version")
    if options.hex is None:
        options.parser.error("--message needs the bytes in hex, or - for standard input")
    schema = catalog.message(options.message)
    if not covers(schema.versions, options.version):
        from kafka_records_runtime.errors import UnsupportedVersion

        lowest, highest = schema.versions or (0, -1)
        raise CommandError(str(UnsupportedVersion(schema.name, options.version, range(lowest, highest + 1))))
    return explain_message(schema, options.version, _bytes(options.hex, "the message"))


def _record(options: argparse.Namespace, catalog: Catalog) -> Iterator[Line]:
    from kafka_records_runtime.explain import explain_key, explain_record

    if options.hex is not None or options.version is not None:
        options.parser.error("--version and bytes without an option go with --message; use --key and --value")
    if options.key is None and options.value is None:
        options.parser.error("--topic needs --key, --value or both")
    if options.key == options.value == "-":
        options.parser.error("only one of --key and --value can be read from standard input")
    catalog.checked(options.topic)
    if options.key == "null":
        options.parser.error("--key is never null, only values are; leave it out to look at the value alone")
    schemas = catalog.records(options.topic)
    key = None if options.key is None else _bytes(options.key, "--key")
    if key is not None and options.value is None:
        return explain_key(schemas, key)
    value = None if options.value == "null" else _bytes(options.value, "--value")
    if key is None:
        say("note: without --key the record type is not known, so the value is only bytes")
    return explain_record(schemas, key, value)


def _bytes(text: str, what: str) -> bytes:
    if text == "-":
        try:
            text = sys.stdin.read()
        except UnicodeDecodeError:
            raise CommandError(f"{what} is not hex: standard input is no text") from None
    digits = re.sub(r"[\s:]", "", text)
    digits = digits.removeprefix("0x").removeprefix("0X")
    wrong = re.search(r"[^0-9a-fA-F]", digits)
    if wrong:
        raise CommandError(f"{what} is not hex: {wrong[0]!r} after {wrong.start()} digits")
    if len(digits) % 2:
        raise CommandError(f"{what} is not hex: {len(digits)} digits, bytes have two each")
    return bytes.fromhex(digits)
