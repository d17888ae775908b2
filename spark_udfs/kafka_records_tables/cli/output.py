"""Where a result goes and in which format: `--format`, `--output`, and a file that appears only when it is complete."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from kafka_records_tables.cli.failures import NO_ROOM, CommandError, UsageError
from kafka_records_tables.cli.source_choice import place

if TYPE_CHECKING:
    import pyarrow as pa

FORMATS: Final = ("table", "json", "csv", "parquet")

OUTPUT_HELP: Final = """\
formats:
  table    for people. On a terminal it fits the width: long texts are cut, columns left out, and a line says which;
           --wide shows all. Elsewhere nothing is left out, and every row is one line. The whole result is held in
           memory to find the widths
  json     one object per line, written as rows come in
  csv      RFC 4180 with a header; null is an empty field, the empty text is "". Values are written as they are, and a
           spreadsheet takes one that begins with = + - or @ for a formula and runs it: anybody who may commit an offset
           chooses such values (group, metadata). Import the columns as text, or read the file with a program
  parquet  a file with the types and comments of the columns, for --output
Times are ISO 8601 in UTC, bytes are base64 (in parquet both are what they are). On a terminal, control characters,
escape sequences and marks that turn the direction of text are escaped in every format; in a file or a pipe, json and
csv hold exactly what the records hold.

--output writes a file of this name that appears when it is complete. A file that is already there is kept, and nothing
is done, unless --overwrite says otherwise.
"""


def add_output(parser: argparse.ArgumentParser, default: str = "table") -> None:
    """The options --format, --wide, --output and --overwrite; `default` says in words which format comes without."""
    shown = f"how to print the result (default: {default})"
    parser.add_argument("--format", choices=FORMATS, default="table", help=shown)
    parser.add_argument("--wide", action="store_true", help="with --format table: everything, however wide that is")
    parser.add_argument(
        "--output",
        type=file_path("the result goes to standard output"),
        metavar="PATH",
        help="write to this file instead of standard output",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --output if there is one")


def file_path(instead: str) -> Callable[[str], Path]:
    """The type of an argument that names a file to write; `instead` says where that goes without the argument."""

    def path(text: str) -> Path:
        if text == "-":
            raise argparse.ArgumentTypeError(f"names a file, and - is none; {instead} without it")
        return Path(place(text))

    return path


def check_output(options: argparse.Namespace) -> None:
    """Raise a CommandError for an output that cannot be written, before any work is done."""
    path: Path | None = options.output
    if options.wide and options.format != "table":
        raise UsageError(f"--wide goes with --format table; {options.format} leaves nothing out")
    if path is None:
        if options.overwrite and getattr(options, "findings", None) is None:
            raise UsageError("--overwrite goes with --output")
        if options.format == "parquet":
            raise UsageError("--format parquet needs --output: a Parquet file is no text")
        return
    if path.is_dir():
        raise CommandError(f"{path}: is a directory, --output names a file")
    if path.exists() and not options.overwrite:
        raise CommandError(f"{path}: there is a file already; --overwrite replaces it")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no directory {path.parent}")
    refuse_source(path, options.sources)


def refuse_source(path: Path, sources: Iterable[str]) -> None:
    """Raise a CommandError when `path` is one of the files that are read, by whatever name."""
    if path.exists() and any(is_same_file(path, file) for source in sources for file in _log_files(Path(source))):
        raise CommandError(f"{path}: is one of the files that are read: write the result to another")


def is_same_file(path: Path, other: Path) -> bool:
    """Whether both are one file, or would be one once it is written."""
    try:
        return path.samefile(other)
    except OSError:  # one of them is not there
        return path.absolute().parent.resolve() / path.name == other.absolute().parent.resolve() / other.name


def _log_files(source: Path) -> Iterator[Path]:
    """The source itself or the segment files in it and in its folders, which is as deep as partitions lie."""
    yield source
    for pattern in ("*.log", "*/*.log"):
        with suppress(OSError):
            yield from source.glob(pattern)


def write_batches(
    options: argparse.Namespace,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    details: Collection[str] = (),
    essential: Collection[str] = (),
) -> None:
    """Write the rows to where the options say, as they come in but for `table`.

    There the columns of `details` are left out before others where a terminal is too narrow, and those of `essential`
    never.

    A file is left alone when that fails.
    """
    if options.output is None:
        _write(options, schema, batches, sys.stdout, details, essential)
        sys.stdout.flush()
        return
    with replacing(options.output) as part:
        if options.format == "parquet":
            from kafka_records_tables.report.parquet import write_parquet

            write_parquet(batches, schema, part)
            return
        with open(part, "w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            _write(options, schema, batches, out, details, essential)


def _write(
    options: argparse.Namespace,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    out: TextIO,
    details: Collection[str],
    essential: Collection[str],
) -> None:
    if options.format == "json":
        from kafka_records_tables.report.jsonlines import write_json

        write_json(batches, out)
    elif options.format == "csv":
        from kafka_records_tables.report.csvlines import write_csv

        write_csv(batches, schema, out)
    else:
        import pyarrow as pa

        from kafka_records_tables.report.text import write_text

        table = pa.Table.from_batches(batches, schema)
        write_text(
            table,
            out,
            width=_width(out),
            wide=options.wide,
            is_terminal=out.isatty(),
            details=details,
            essential=essential,
        )


def _width(out: TextIO) -> int | None:
    """The cells of a line of the terminal; COLUMNS wins, as it does with other programs."""
    text = os.environ.get("COLUMNS", "")
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    try:
        return os.get_terminal_size(out.fileno()).columns or None
    except OSError:
        return None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """An empty file beside `path` that takes its place at the end, with the permissions a new file would get."""
    try:
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}") from None
    os.close(descriptor)
    part = Path(name)
    try:
        yield part
        umask = os.umask(0)
        os.umask(umask)
        part.chmod(0o666 & ~umask)
        part.replace(path)
    except BaseException as error:
        with suppress(OSError):
            part.unlink()
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            detail = error.strerror if error.filename in (None, name) else str(error)
            raise CommandError(f"{path}: cannot be written: {detail}") from None
        raise
