"""Prints lines on standard error, even while a progress bar is shown."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from kafka_records_runtime.text.printable import printable

_is_bar_drawn: Callable[[], bool] | None = None
_noted: list[str] | None = None


@contextmanager
def over_a_bar(is_drawn: Callable[[], bool]) -> Iterator[None]:
    """While `is_drawn()` is true, a progress bar is on the last line of the terminal. Lines then replace the bar, and
    the bar is redrawn below them."""
    global _is_bar_drawn
    _is_bar_drawn = is_drawn
    try:
        yield
    finally:
        _is_bar_drawn = None


@contextmanager
def noted_lines() -> Iterator[list[str]]:
    """The lines printed from now on, except lines that are true only at the time of printing (`is_of_now`)."""
    global _noted
    _noted = []
    try:
        yield _noted
    finally:
        _noted = None


def say(line: str, *, is_of_now: bool = False) -> None:
    """Print one line on standard error, even if the text has line breaks. Buffered standard output is written first, so
    both streams keep their order on a terminal. `is_of_now` marks a line that the same run would not print later.
    """
    if _noted is not None and not is_of_now:
        _noted.append(line)
    sys.stdout.flush()
    try:
        start = "\r\x1b[2K" if _is_bar_drawn is not None and _is_bar_drawn() else ""
        sys.stderr.write(f"{start}{printable(line)}\n")
        sys.stderr.flush()
    except OSError:
        # The error cannot be reported, but the result and the exit status are still useful.
        discard(sys.stderr)


def complain(text: str) -> None:
    """Print the reason why the command ends without a result."""
    try:
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)
    say(f"kafka-records: {text}")


def discard(stream: TextIO) -> None:
    """Connect a broken stream to the null device, so that flushing its buffer at exit does not fail again."""
    try:
        descriptor = stream.fileno()
    except OSError:
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
