"""Writes a result in a format to a file or standard output. A file appears only when it is complete."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from kafka_records_tables.console.endings import NO_ROOM, CommandError
from kafka_records_tables.console.standard_error import say

if TYPE_CHECKING:
    import pyarrow as pa

OFFSET_FORMATS: Final = ("reset-offsets", "starting-offsets")
"""The forms of `kafka_records_tables.results.offset_files` in which rows of `current_offsets` can be written."""

METRICS_FORMAT: Final = "openmetrics"
"""The form of `kafka_records_tables.results.open_metrics`."""

MOST_SERIES: Final = 10_000
"""The default limit for time series in one run."""

TABLES_WITH_METRICS: Final = ("lag", "group_lag", "progress", "open_transactions", "expirations", "log_files")

FORMAT_OF: Final = {
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".csv": "csv",
    ".parquet": "parquet",
    ".html": "html",
    ".htm": "html",
    ".arrow": "arrow",
    ".prom": "openmetrics",
}
"""Formats by file suffix."""
_WRITTEN_AS: Final = {"reset-offsets": "csv", "starting-offsets": "json"}


@dataclass(frozen=True)
class Output:
    """Where and in which format to write a result."""

    format: str = "table"
    """`table`, `json`, `csv`, `parquet`, `arrow`, or one of `OFFSET_FORMATS`."""
    path: Path | None = None
    """A file; None means standard output."""
    wide: bool = False
    """Whether `table` omits nothing, however wide it is."""
    overwrite: bool = False
    """Whether an existing file may be replaced."""
    csv_safe: bool = False
    """Whether texts that a spreadsheet would take for formulas are made harmless in `csv`."""


def check_output(output: Output, sources: Iterable[str]) -> None:
    """Raise a CommandError for a file that cannot be written, before any work is done. Warn if its suffix indicates a
    format other than the chosen one."""
    path = output.path
    if path is None:
        return
    check_file(path, "--output", output.overwrite)
    refuse_source(path, sources)
    told = FORMAT_OF.get(path.suffix.lower())
    if told not in (None, _WRITTEN_AS.get(output.format, output.format)):
        say(f"note: --output {path}: its name ends in {told}, but the format is {output.format}")


def check_file(path: Path, option: str, overwrite: bool) -> None:
    """Raise a CommandError if no file can be written at `path`, the value of `option`."""
    if path.is_dir():
        raise CommandError(f"{path}: is a directory, but {option} needs a file")
    if path.exists() and not overwrite:
        raise CommandError(f"{path}: the file already exists: replace it with --overwrite")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: there is no directory {path.parent}")


def refuse_source(path: Path, sources: Iterable[str]) -> None:
    """Raise a CommandError if `path` is one of the files that are read, under any name."""
    if path.exists() and any(is_same_file(path, file) for source in sources for file in _log_files(source)):
        raise CommandError(f"{path}: is one of the input files: write the result to another file")


def is_same_file(path: Path, other: Path) -> bool:
    """Whether both are the same file, or would be after writing."""
    try:
        return path.samefile(other)
    except OSError:  # one of the two files does not exist
        return path.absolute().parent.resolve() / path.name == other.absolute().parent.resolve() / other.name


def _log_files(source: str) -> Iterator[Path]:
    """The sources on this machine, or the segment files in them and in their subfolders, because partitions are no
    deeper."""
    from kafka_records_engine.log.files.paths import INSIDE, is_url, on_this_machine, places_of
    from kafka_records_engine.log.files.source_error import LogSourceError

    there = on_this_machine(source).partition(INSIDE)[0]
    with suppress(LogSourceError):  # reading it reports the error
        for place in [] if is_url(there) else places_of(there):
            yield Path(place.path)
            for pattern in ("*.log", "*/*.log"):
                with suppress(OSError):
                    yield from Path(place.path).glob(pattern)


def write_batches(
    output: Output,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    details: Collection[str] = (),
    essential: Collection[str] = (),
) -> None:
    """Write the rows to `output` as they arrive, or all at the end in the format `table`.

    If a terminal is too narrow, that format omits the columns of `details` before others, and never those of
    `essential`.

    If writing fails, an existing file is unchanged.
    """
    if output.path is None and output.format == "arrow":
        from kafka_records_tables.results.arrow_stream import write_arrow_stream

        write_arrow_stream(batches, schema, sys.stdout.buffer)
        sys.stdout.flush()
        return
    if output.path is None:
        _write(output, schema, batches, sys.stdout, details, essential)
        sys.stdout.flush()
        return
    with replacing(output.path) as part:
        if output.format == "parquet":
            from kafka_records_tables.results.parquet_file import write_parquet

            write_parquet(batches, schema, part)
            return
        if output.format == "arrow":
            from kafka_records_tables.results.arrow_stream import write_arrow_file

            write_arrow_file(batches, schema, part)
            return
        with open(part, "w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            _write(output, schema, batches, out, details, essential)


def write_text_to(output: Output, write: Callable[[TextIO], None]) -> None:
    """Let `write` write text to `output`. If this fails, an existing file is unchanged."""
    if output.path is None:
        write(sys.stdout)
        sys.stdout.flush()
        return
    with replacing(output.path) as part, open(part, "w", encoding="utf-8", newline="") as out:
        write(out)


def _write(
    output: Output,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    out: TextIO,
    details: Collection[str],
    essential: Collection[str],
) -> None:
    if output.format == "json":
        from kafka_records_tables.results.json_lines import write_json

        write_json(batches, out)
    elif output.format == "csv":
        from kafka_records_tables.results.csv_lines import write_csv

        write_csv(batches, schema, out, is_safe=output.csv_safe)
    elif output.format in OFFSET_FORMATS:
        from kafka_records_tables.results.offset_files import write_reset_offsets, write_starting_offsets

        write = write_reset_offsets if output.format == "reset-offsets" else write_starting_offsets
        write(batches, out)
    else:
        import pyarrow as pa

        from kafka_records_tables.results.text_table import write_text

        table = pa.Table.from_batches(batches, schema)
        write_text(
            table,
            out,
            width=terminal_width(out),
            wide=output.wide,
            is_terminal=out.isatty(),
            details=details,
            essential=essential,
        )


def terminal_width(out: TextIO) -> int | None:
    """The width of the terminal in cells. COLUMNS takes precedence, as in other programs."""
    text = os.environ.get("COLUMNS", "")
    if text.isascii() and text.isdigit() and int(text):
        return int(text)
    try:
        return os.get_terminal_size(out.fileno()).columns or None
    except OSError:
        return None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Create an empty file next to `path` that replaces `path` at the end. It gets the permissions of a new file."""
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
