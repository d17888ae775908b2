"""From the sources on the command line to log partitions of the coordinators' topics."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_records_runtime.errors import plural
from kafka_records_tables.cli.failures import CommandError
from kafka_records_tables.cli.reporting import say
from kafka_records_tables.cli.topics import TOPICS_TEXT, Catalog

if TYPE_CHECKING:
    from kafka_records_engine.log.reading import FoundLog


def add_sources(parser: argparse.ArgumentParser) -> None:
    """The positional argument SOURCE…"""
    parser.add_argument(
        "sources",
        nargs="+",
        type=place,
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


def place(text: str) -> str:
    """The type of an argument that names a file or a directory: the empty text would be the current directory."""
    if not text:
        raise argparse.ArgumentTypeError("is empty, and names no file or directory")
    return text


def known_logs(sources: Sequence[str], topic: str | None, catalog: Catalog, quietly: bool = False) -> list[FoundLog]:
    """The log partitions whose records `catalog` knows, sorted by topic and partition.

    Other topics in the same directory are left out, which standard error is told unless `quietly`. Raises a
    CommandError when nothing is left or a source is not there.
    """
    from kafka_records_engine.log.reading import LogSourceError, find_logs

    if topic is not None:
        catalog.checked(topic)
    try:
        logs = find_logs(sources, topic)
    except LogSourceError as error:
        hint = " (--topic NAME)" if error.detail.endswith("say which topic it holds") else ""
        raise CommandError(f"{error}{hint}") from None
    chosen = [log for log in logs if catalog.folder_of(log.topic) is not None]
    if not chosen:
        names = ", ".join(dict.fromkeys(log.topic for log in logs))
        raise CommandError(f"{', '.join(sources)}: only {names} here, none of {catalog.text}")
    if len(chosen) < len(logs) and not quietly:
        others = len({log.topic for log in logs}.difference(log.topic for log in chosen))
        read = TOPICS_TEXT if catalog.is_kafka else catalog.text
        say(
            f"note: {plural(len(logs) - len(chosen), 'partition')} of {plural(others, 'other topic')} left out: "
            f"read are {read}"
        )
    return chosen
