"""The common parts of all subcommands of `kafka-records`: streams, errors and exit status."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kafka_records_tables.commands.repeated_run import repeat_run
from kafka_records_tables.console.endings import FAILED, NO_ROOM, OK, CommandError, UsageError
from kafka_records_tables.console.standard_error import complain, discard

NO_MEMORY = (
    "there is not enough memory for this: read fewer logs at a time (give single partition folders), write json or "
    "csv instead of a table, or allow the process more memory"
)

TOO_DEEP = "the input is nested too deeply for this build: leave out the file that contains it"


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit status. Errors that were not handled elsewhere are printed here, as one line
    on standard error."""
    has_output = _open_streams()
    _set_encoding()
    try:
        return _run(arguments, has_output)
    except CommandError as error:
        complain(str(error))
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Flushing the buffered output at exit must not raise the same error
        # again.
        discard(sys.stdout)
        return OK
    except OSError as error:
        where = error.filename
        if where is None and error.errno in NO_ROOM:
            where = "standard output"
            discard(sys.stdout)
        complain(f"{'' if where is None else f'{where}: '}{error.strerror or error}")
    except MemoryError:
        complain(NO_MEMORY)
    except RecursionError:
        complain(TOO_DEEP)
    return FAILED


def _run(arguments: Sequence[str] | None, has_output: bool) -> int:
    words = sys.argv[1:] if arguments is None else [*arguments]
    try:
        repeated = repeat_run(words) if has_output else None
        if repeated is not None:
            return repeated
        # This import is slow, and not needed if the kept answer is printed again.
        from kafka_records_tables.commands.subcommands import parsed

        options = parsed(words)
        if not has_output and getattr(options, "output", None) is None:
            raise CommandError("standard output is closed, so the result cannot be written")
        try:
            status: int = options.run(options)
        except UsageError as error:
            options.parser.error(str(error))
    except SystemExit as leaving:
        # Help and version are output too, so report an error if they cannot be written.
        status = leaving.code if isinstance(leaving.code, int) else OK
    sys.stdout.flush()
    return status


def _open_streams() -> bool:
    """Open the standard streams that were closed at startup, because files opened later would otherwise get their
    descriptors. Returns whether there is a standard output."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    has_output = sys.stdout is not None
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 (it stays open)
    return has_output


def _set_encoding() -> None:
    """Read and write UTF-8 regardless of the locale, with the line ends that the format requires."""
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", newline="")
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr.reconfigure(errors="backslashreplace")
