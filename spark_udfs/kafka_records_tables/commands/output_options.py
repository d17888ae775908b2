"""The options for where and in which format to write a result."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from kafka_records_tables.commands.source_options import path_argument
from kafka_records_tables.commands.written_output import FORMAT_OF, Output
from kafka_records_tables.console.endings import UsageError

FORMATS: Final = ("table", "json", "csv", "parquet", "arrow")

OUTPUT_HELP: Final = """\
formats:
  table    for people. On a terminal it fits the width: long texts are folded or cut, columns left out, and a line
           says which; --wide shows all. Elsewhere nothing is left out, and every row is one line. The whole result is
           held in memory to find the widths
  json     one object per line, written as rows come in
  csv      RFC 4180 with a header; null is an empty field, the empty text is "". Values are written as they are, and a
           spreadsheet runs a value that begins with = + - or @ as a formula, which may send the content of the file
           elsewhere; anybody who may commit an offset chooses such values (group, metadata). --csv-safe writes an
           apostrophe before them. Use it for files that people open. Programs, including delete-offsets, need the
           values without it
  parquet  a file with the types and comments of the columns, for --output
  arrow    the same in Arrow's IPC format: as a stream in a pipe, as a file (.arrow) with --output
Times are ISO 8601 in UTC, bytes are base64 (parquet and arrow have types for both). On a terminal, control characters,
escape sequences and marks that change the direction of text are escaped in every format; in a file or a pipe, json and
csv contain exactly what the records contain.

--output writes a file, which appears when it is complete. An existing file is an error, and nothing is done, unless
--overwrite is given.
"""


def add_output_options(
    parser: argparse.ArgumentParser, default: str = "table", more_formats: tuple[str, ...] = ()
) -> None:
    """Add the options --format, --wide, --output and --overwrite; `default` is the default format in words."""
    shown = f"format of the result (default: {default})"
    parser.add_argument("--format", choices=(*FORMATS, *more_formats), default="table", help=shown)
    parser.add_argument("--wide", action="store_true", help="with --format table: print everything, however wide it is")
    parser.add_argument(
        "--output",
        type=file_path("the result goes to standard output"),
        metavar="PATH",
        help="write to this file instead of standard output",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the --output file if it exists")
    parser.add_argument(
        "--csv-safe",
        action="store_true",
        help="with --format csv: put an apostrophe before each value that a spreadsheet would run as a formula",
    )


def format_of_name(options: argparse.Namespace, more_formats: Collection[str] = ()) -> str:
    """The format indicated by the suffix of --output; `table` without --output. Raises a UsageError for an unknown
    suffix."""
    if options.output is None:
        return "table"
    ending = options.output.suffix.lower()
    form = "table" if ending == ".txt" else FORMAT_OF.get(ending)
    if form not in (*FORMATS, *more_formats):
        allowed = [each for each, name in FORMAT_OF.items() if name in (*FORMATS, *more_formats)]
        raise UsageError(
            f"--output {options.output}: its extension does not name a format: use {', '.join(allowed)} or "
            f".txt, or add --format"
        )
    return form


def file_path(instead: str) -> Callable[[str], Path]:
    """The type of an argument that names a file to write; `instead` says in errors where the output goes without the
    argument."""

    def path(text: str) -> Path:
        if text == "-":
            raise argparse.ArgumentTypeError(f"must be a file, not -; {instead} without this option")
        return Path(path_argument(text))

    return path


def output_of(options: argparse.Namespace) -> Output:
    """The output that the options specify. Raises a UsageError for mutually exclusive options."""
    if options.wide and options.format != "table":
        raise UsageError(f"--wide needs --format table; {options.format} leaves nothing out")
    if options.csv_safe and options.format != "csv":
        raise UsageError("--csv-safe needs --format csv: programs do not run values as formulas in other formats")
    if options.output is None:
        if options.overwrite and getattr(options, "findings", None) is None:
            raise UsageError("--overwrite needs --output")
        if options.format == "parquet":
            raise UsageError("--format parquet needs --output: a Parquet file is not text")
        if options.format == "arrow" and sys.stdout.isatty():
            raise UsageError("--format arrow is binary: pipe it into a program, or give a file with --output")
    return Output(options.format, options.output, options.wide, options.overwrite, options.csv_safe)
