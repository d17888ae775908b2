"""The arguments that select the source: SOURCE…, --topic, --package."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from kafka_records_tables.commands.catalog import KAFKA
from kafka_records_tables.commands.given_source import GivenSource, SavedAs, time_limit
from kafka_records_tables.console.endings import UsageError
from kafka_records_tables.tables.requested.what_requests_tell import UNKNOWN

LOGS: Final = "logs"
REQUESTS: Final = "requests"
"""The choices of the option --source."""

NO_REQUESTS: Final = "requests return no records: table and sql take --source requests"
"""The source kinds of commands without the option."""

SHOW_SECRETS_HELP: Final = "show passwords, keys and everything else that may be a secret"


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add the positional argument SOURCE…, which --bootstrap and its options replace with running brokers."""
    parser.add_argument(
        "sources",
        nargs="*",
        type=path_argument,
        metavar="SOURCE",
        help="a broker's data directory, the folder of one partition (<topic>-<partition>) or a .log file; a file or "
        "folder of saved rows (Parquet, Arrow, Avro, JSON lines, CSV, Delta); a directory that the command snapshot "
        "has written; or an archive of log files (.tar, .tar.gz, .zip and similar ones; archive.tar!/inner/folder is a "
        "folder in it). Log files and saved rows may also be a URL (s3://, gs://, abfs://, hdfs://, file://) or "
        "a pattern ('/disks/*/__consumer_offsets-*')",
    )
    add_brokers(
        parser, "read running brokers instead, up to where their logs end now; nothing is written, and no group joined"
    )
    saved = parser.add_argument_group("how rows were saved (default: found from names and content, if that is certain)")
    saved.add_argument(
        "--saved-column",
        action="append",
        type=_column,
        default=[],
        metavar="RAW=NAME",
        help=f"use the column NAME for RAW: {', '.join(_RAW)} …; a dot selects a member (record.key), CSV columns "
        "without a header line are called 1, 2 …, and an empty NAME means that there is no such column; may "
        "be repeated",
    )
    saved.add_argument(
        "--saved-encoding",
        action="append",
        type=_encoding,
        default=[],
        metavar="[RAW=]NAME",
        help="how strings encode the bytes of keys and values: base64, hex, or text (the bytes of the string itself); "
        "write key=NAME or value=NAME to set only one of them",
    )
    saved.add_argument(
        "--saved-format",
        choices=["parquet", "arrow", "avro", "json", "csv", "delta"],
        help="the format of the files, if neither their first bytes nor their names show it",
    )
    saved.add_argument(
        "--saved-time-unit",
        choices=["s", "ms", "us", "ns"],
        help="the unit of numeric timestamps of records, if their magnitude does not show it",
    )


def add_source_kind(parser: argparse.ArgumentParser) -> None:
    """Add the option --source, for commands that answer with tables."""
    parser.add_argument(
        "--source",
        choices=[LOGS, REQUESTS],
        default=LOGS,
        help="with --bootstrap: logs (the default) reads the topics of coordinators; requests asks the coordinators, "
        f"for clusters that hide these topics. Requests fill {', '.join(UNKNOWN)}; values that no request returns are "
        "null (docs/live.md)",
    )


def add_brokers(
    parser: argparse.ArgumentParser,
    about: str,
    after_the_limit: str = "what was not read by then is listed, and the exit status is 1",
) -> None:
    """Add the options --bootstrap, --command-config and --timeout. `about` says in the help what the brokers are used
    for."""
    parser.add_argument("--bootstrap", metavar="HOST:PORT[,…]", help=about)
    parser.add_argument(
        "--command-config",
        type=path_argument,
        metavar="FILE",
        help="properties file for the connection to brokers (TLS, user, password), as Kafka's own tools take it",
    )
    parser.add_argument(
        "--timeout",
        type=timeout_argument,
        metavar="DURATION",
        help=f"stop waiting for brokers after this time, such as 30s or 5m: {after_the_limit}; without this option, "
        "wait as long as they make progress",
    )


def timeout_argument(text: str) -> object:
    """A deadline at the given duration from now."""
    try:
        return time_limit(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


_RAW: Final = ("topic", "partition", "offset", "key", "value", "timestamp_ms", "transaction", "control")
_ENCODINGS: Final = ("base64", "hex", "text")


def _column(text: str) -> tuple[str, str | None]:
    raw, equals, name = text.partition("=")
    if not raw or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not RAW=NAME, as value=payload")
    return raw, name or None


def _encoding(text: str) -> dict[str, str]:
    raw, equals, name = text.partition("=")
    if not equals:
        raw, name = "", raw
    if name not in _ENCODINGS or raw not in ("", "key", "value"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not one of {', '.join(_ENCODINGS)}, or key=… or value=… with one of these"
        )
    return {raw: name} if raw else {"key": name, "value": name}


def _saved_as(options: argparse.Namespace) -> SavedAs:
    encodings = {raw: name for each in options.saved_encoding for raw, name in each.items()}
    return SavedAs(dict(options.saved_column), encodings, options.saved_format, options.saved_time_unit)


def given_source(options: argparse.Namespace) -> GivenSource:
    """The source that the options specify. Raises UsageError unless it consists of either files or brokers."""
    saved = _saved_as(options)
    if options.bootstrap is None:
        if options.command_config is not None:
            raise UsageError("--command-config works only with --bootstrap: give both")
        if options.timeout is not None:
            raise UsageError("--timeout works only with --bootstrap: give both")
        if getattr(options, "source", LOGS) == REQUESTS:
            raise UsageError(
                f"--source {REQUESTS} asks brokers: give their addresses with --bootstrap, in place of SOURCE"
            )
        if not options.sources:
            raise UsageError("the following arguments are required: SOURCE (or --bootstrap)")
        return GivenSource(tuple(options.sources), saved=saved)
    if options.sources:
        raise UsageError("--bootstrap reads brokers, and SOURCE reads files: give only one of them")
    if saved.is_told:
        raise UsageError(
            "--saved-column and all other --saved-… options are for files: leave them out with --bootstrap"
        )
    config = None if options.command_config is None else Path(options.command_config)
    by_requests = getattr(options, "source", LOGS) == REQUESTS
    return GivenSource(bootstrap=options.bootstrap, config=config, limit=options.timeout, by_requests=by_requests)


def add_topic(parser: argparse.ArgumentParser, default: str = "") -> None:
    """Add the option --topic NAME; `default` says in words what applies without the option."""
    parser.add_argument(
        "--topic",
        metavar="NAME",
        help="read this topic only; for files that are not in a folder <topic>-<partition> it names their topic"
        + default,
    )


def path_argument(text: str) -> str:
    """The type of an argument that names a file or a directory. The empty string is rejected, because it would mean the
    current directory."""
    if not text:
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def add_package(parser: argparse.ArgumentParser) -> None:
    """Add the option --package."""
    parser.add_argument(
        "--package",
        metavar="NAME[.FOLDER]",
        default=KAFKA,
        help="decode your own records with this package, which kafka-records-codegen generated from your specs "
        "and which must be on PYTHONPATH; a topic is decoded with the specs in the folder that is named after "
        "it, or in FOLDER if you give one",
    )
