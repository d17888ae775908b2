"""The arguments that say what is read: SOURCE…, --topic, --package."""

from __future__ import annotations

import argparse
from pathlib import Path

from kafka_records_tables.runs.catalog import KAFKA
from kafka_records_tables.runs.endings import UsageError
from kafka_records_tables.runs.given_source import GivenSource


def add_sources(parser: argparse.ArgumentParser) -> None:
    """The positional argument SOURCE…; --bootstrap and --command-config, which stand for running brokers."""
    parser.add_argument(
        "sources",
        nargs="*",
        type=path_argument,
        metavar="SOURCE",
        help="a broker's data directory, the folder of one partition (<topic>-<partition>), or a .log file",
    )
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT[,…]",
        help="read running brokers instead, up to where their logs end now; nothing is written, and no group joined",
    )
    parser.add_argument(
        "--command-config",
        type=path_argument,
        metavar="FILE",
        help="properties that say how to talk to brokers, as Kafka's own tools take them: TLS, users, passwords",
    )


def given_source(options: argparse.Namespace) -> GivenSource:
    """What is read. Raises UsageError unless it is one of files and brokers."""
    if options.bootstrap is None:
        if options.command_config is not None:
            raise UsageError("--command-config says how to talk to the brokers of --bootstrap, which is not there")
        if not options.sources:
            raise UsageError("the following arguments are required: SOURCE (or --bootstrap)")
        return GivenSource(tuple(options.sources))
    if options.sources:
        raise UsageError("--bootstrap reads brokers, and SOURCE is for files: give one of them")
    config = None if options.command_config is None else Path(options.command_config)
    return GivenSource(bootstrap=options.bootstrap, config=config)


def add_topic(parser: argparse.ArgumentParser, default: str = "") -> None:
    """The option --topic NAME; `default` says in words what holds without it."""
    parser.add_argument(
        "--topic",
        metavar="NAME",
        help="read this topic only; for files that do not stand in a folder <topic>-<partition> it says what they hold"
        + default,
    )


def path_argument(text: str) -> str:
    """The type of an argument that names a file or a directory: the empty text would be the current directory."""
    if not text:
        raise argparse.ArgumentTypeError("is empty, and names no file or directory")
    return text


def add_package(parser: argparse.ArgumentParser) -> None:
    """The option --package."""
    parser.add_argument(
        "--package",
        metavar="NAME[.FOLDER]",
        default=KAFKA,
        help="read records of your own with this package, which kafka-records-codegen made of your specs and Python "
        "finds (PYTHONPATH); a topic belongs to the folder of specs called like it, or to FOLDER",
    )
