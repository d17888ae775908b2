"""The arguments that say what is read: SOURCE…, --topic, --package."""

from __future__ import annotations

import argparse

from kafka_records_tables.runs.catalog import KAFKA


def add_sources(parser: argparse.ArgumentParser) -> None:
    """The positional argument SOURCE…"""
    parser.add_argument(
        "sources",
        nargs="+",
        type=path_argument,
        metavar="SOURCE",
        help="a broker's data directory, the folder of one partition (<topic>-<partition>), or a .log file",
    )


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
