"""Where a result goes and in which format: `--format`, `--output`, and a file that appears only when it is complete."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO

from kafka_records_cli.failures import NO_ROOM, CommandError, UsageError
from kafka_records_cli.sources import place

Row = Sequence[Any]
Write = Callable[[Sequence[str], Iterable[Row], TextIO], None]


def _write_table(columns: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    from kafka_records_cli.tabletext import write_table

    write_table(columns, rows, out)


def _write_json(columns: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    from kafka_records_cli.jsontext import json_lines

    text = json_lines(out)
    for row in rows:
        out.write(text(dict(zip(columns, row, strict=True))))


def _write_csv(columns: Sequence[str], rows: Iterable[Row], out: TextIO) -> None:
    from kafka_records_cli.csvtext import csv_line

    shown = out.isatty()
    out.write(csv_line(columns, shown))
    for row in rows:
        out.write(csv_line(row, shown))


FORMATS: Final[Mapping[str, Write]] = {"table": _write_table, "json": _write_json, "csv": _write_csv}

OUTPUT_HELP: Final = """\
formats:
  table  for people: on a terminal wide values are folded, elsewhere every row is one line; nothing is cut off. Control
         characters are shown as escapes. The whole result is held in memory to find the widths
  json   one object per line, written as rows come in
  csv    RFC 4180 with a header; null is an empty field, the empty text is "". Values are written as they are, and a
         spreadsheet takes one that begins with = + - or @ for a formula and runs it: anybody who may commit an offset
         chooses such values (group, metadata). Import the columns as text, or read the file with a program
Times are ISO 8601 in UTC, bytes are base64. On a terminal, control characters, escape sequences and marks that turn the
direction of text are escaped in every format; in a file or a pipe, json and csv hold exactly what the records hold.

--output writes a file of this name that appears when it is complete. A file that is already there is kept, and nothing
is done, unless --overwrite says otherwise.
"""


def add_output(parser: argparse.ArgumentParser) -> None:
    """The options --format, --output and --overwrite."""
    parser.add_argument(
        "--format", choices=[*FORMATS], default="table", help="how to print the result (default: table)"
    )
    parser.add_argument("--output", type=_path, metavar="PATH", help="write to this file instead of standard output")
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --output if there is one")


def _path(text: str) -> Path:
    return Path(place(text))


def check_output(options: argparse.Namespace) -> None:
    """Raise a CommandError for an output that cannot be written, before any work is done."""
    path: Path | None = options.output
    if path is None:
        if options.overwrite:
            raise UsageError("--overwrite goes with --output")
        return
    if path.is_dir():
        raise CommandError(f"{path}: is a directory, --output names a file")
    if path.exists() and not options.overwrite:
        raise CommandError(f"{path}: there is a file already; --overwrite replaces it")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no directory {path.parent}")


def write_result(options: argparse.Namespace, columns: Sequence[str], rows: Iterable[Row]) -> None:
    """Write the rows to where the options say. A file is left alone when that fails."""
    write = FORMATS[options.format]
    if options.output is None:
        write(columns, rows, sys.stdout)
        sys.stdout.flush()
        return
    with _replacing(options.output) as out:
        write(columns, rows, out)


@contextmanager
def _replacing(path: Path) -> Iterator[TextIO]:
    """A file beside `path` that takes its place at the end, with the permissions a new file would get."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
    part = Path(name)
    try:
        with open(descriptor, "w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            yield out
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
        raise
