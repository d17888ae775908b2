"""The options of `table` and `report` for which rows to read, and for the engine."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_records_engine.lean import let_pandas_in
from kafka_records_tables.commands.catalog import KAFKA
from kafka_records_tables.commands.source_options import path_argument
from kafka_records_tables.console.endings import UsageError, require
from kafka_records_tables.query import QueryError, milliseconds

if TYPE_CHECKING:
    from kafka_records_engine.sources.question import Question
    from kafka_records_tables.commands.engine_run import SparkSettings
    from kafka_records_tables.commands.given_source import GivenSource


def add_groups(parser: argparse.ArgumentParser, about: str, about_topics: str = "only rows about topics") -> None:
    """Add the options --group and --topic-filter. `about` and `about_topics` say in the help what they select."""
    parser.add_argument("--group", action="append", default=[], metavar="NAME", help=f"{about}; may be repeated")
    parser.add_argument(
        "--topic-filter",
        action="append",
        type=_pattern,
        default=[],
        metavar="GLOB",
        help=f"{about_topics} whose name matches this pattern of *, ? and [...]; may be repeated (a [ without a "
        "matching ] is literal, but no topic name has one)",
    )


def add_as_of(parser: argparse.ArgumentParser, about: str) -> None:
    """Add the option --as-of. `about` says in the help what is computed as of an earlier time."""
    parser.add_argument("--as-of", type=_moment, metavar="TIME", help=about)


def add_assume(parser: argparse.ArgumentParser) -> None:
    """Add the options --assume and --package."""
    parser.add_argument(
        "--assume",
        choices=["committed"],
        help="how to count records from a source that does not show transactions; without this option, such "
        "records are an error",
    )
    parser.add_argument(
        "--package",
        default=KAFKA,
        metavar="NAME",
        help="the generated package whose schemas describe the records of the table (default: kafka_records)",
    )


def add_state(parser: argparse.ArgumentParser) -> None:
    """Add the option --state."""
    parser.add_argument(
        "--state",
        type=path_argument,
        metavar="DIR",
        help="keep what was read in this directory, so that the next run reads only what is new; use one "
        "directory per cluster, and one run at a time. If it is deleted, the next run starts over. Cannot "
        "be combined with --as-of",
    )


def check_state_options(options: argparse.Namespace, given: GivenSource, question: Question) -> None:
    """Raise a UsageError for an option that needs records which --state does not keep, and a CommandError if the
    directory is also a source."""
    if options.state is None:
        return
    if options.engine == "spark":
        raise UsageError("--state needs --engine local")
    if given.by_requests:
        raise UsageError("--state keeps records, but requests return no records: leave out --source requests")
    if options.as_of is not None:
        raise UsageError(
            "--as-of cannot be combined with --state, because the directory holds only what the logs contain "
            "now. Leave out --state to read what the logs still contain of that moment; or take snapshots with "
            "kafka-records snapshot, and read them with --as-of"
        )
    from kafka_records_tables.engines.with_state import check_state

    try:
        check_state(question, by_spark=False)
    except ValueError as error:
        raise UsageError(f"--state: {error}") from None
    given.check_outside(options.state)


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options --engine, --processes, --master and --conf."""
    parser.add_argument(
        "--engine",
        choices=["local", "spark"],
        default="local",
        help="local (default): processes on this machine. spark: Spark computes the same rows, with one task "
        "per log partition; every worker must see the files or reach the brokers. It needs Java 17 or "
        "later and the spark extra",
    )
    parser.add_argument(
        "--processes",
        type=count_argument(1),
        metavar="N",
        help="read with N processes (default: one per core, or one in total for input below 64 MiB)",
    )
    parser.add_argument(
        "--master",
        type=path_argument,
        metavar="URL",
        help="the master of --engine spark (default: this machine, local[*])",
    )
    parser.add_argument(
        "--conf",
        action="append",
        type=_property,
        default=[],
        metavar="KEY=VALUE",
        help="a Spark configuration property; may be repeated",
    )


def require_engine(command: str, options: argparse.Namespace) -> None:
    """Raise a CommandError if a package that the engine needs is not installed."""
    require(command, "tables", "numpy", "pyarrow", "google_crc32c", "rich")
    if options.engine == "spark":
        let_pandas_in()
        require(f"{command} --engine spark", "spark", "pyspark", "pandas")


def check_engine(options: argparse.Namespace) -> None:
    """Raise a UsageError for an option that does not belong to the chosen engine."""
    if options.engine == "spark":
        if options.processes:
            raise UsageError('--processes needs --engine local; --master "local[N]" sets how many Spark starts')
        return
    wrong = "--master" if options.master else "--conf" if options.conf else None
    if wrong:
        raise UsageError(f"{wrong} needs --engine spark")


def spark_settings(options: argparse.Namespace) -> SparkSettings | None:
    """The settings of --engine spark; None for the local engine."""
    from kafka_records_tables.commands.engine_run import SparkSettings

    return SparkSettings(options.master, dict(options.conf)) if options.engine == "spark" else None


def count_argument(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number of at least `least`."""

    def count(text: str) -> int:
        if not (text.isascii() and text.isdigit() and len(text) < 19 and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r} must be a whole number of at least {least}")
        return int(text)

    return count


def _pattern(text: str) -> str:
    if not text:
        raise argparse.ArgumentTypeError("is empty, and matches no topic; '*' matches all")
    return text


def _moment(text: str) -> int:
    try:
        return milliseconds(text)
    except QueryError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.startswith("spark."):
        raise argparse.ArgumentTypeError(f"{text!r} is not spark.SOMETHING=VALUE")
    return name, value
