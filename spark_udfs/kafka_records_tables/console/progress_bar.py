"""A progress bar on standard error for the bytes that are read."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType
from typing import Any, Final, Self

_AFTER: Final = 0.5
"""The number of seconds after which a bar is drawn. Loading the drawing library takes time, which shorter runs save."""

_ROOMY: Final = 80
"""The width in cells from which a terminal has room for more than a bar."""


class ByteProgress:
    """A context in which a bar shows how much has been read. It draws nothing if standard error is not a terminal."""

    def __init__(self, description: str, *, of_bytes: bool = True) -> None:
        """If `of_bytes` is false, the bar shows a fraction of the whole without numbers."""
        self._description = description
        self._of_bytes = of_bytes
        self._started = time.monotonic()
        self._is_wanted = sys.stderr.isatty()
        self._share = 0.0
        self._progress: Any = None
        self._file: Any = None
        self._task: Any = None

    def waiting(self, description: str) -> None:
        """Show that work is under way, without measuring its progress."""
        if self._is_wanted:
            self._show(description, None)

    def moved(self, done: int, total: int) -> None:
        """Show that `done` bytes of `total` were read."""
        if not self._is_wanted or (self._progress is None and time.monotonic() - self._started < _AFTER):
            return
        # If reading has several steps, each counts from zero. The bar must not move backwards, because that would look
        # like an error.
        self._share = max(self._share, done / total if total else 0.0)
        self._show(self._description, total)
        self._progress.update(self._task, completed=self._share * total)

    def _show(self, description: str, total: int | None) -> None:
        if self._progress is None:
            self._start()
        self._progress.update(self._task, description=description, total=total)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        # Use a separate descriptor, because standard error is redirected while a JVM starts.
        self._file = open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8")  # noqa: SIM115 (stop closes it)
        console = Console(file=self._file)
        numbers = (DownloadColumn(),) if self._of_bytes else ()
        more = (*numbers, TimeElapsedColumn()) if console.width >= _ROOMY else ()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            *more,
            console=console,
            transient=True,
            # Otherwise, Rich replaces both streams, and draws the result above the bar instead of writing it.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(self._description, total=None)
        self._progress.start()

    def is_drawn(self) -> bool:
        """Whether the bar is shown on the last line of the terminal."""
        return self._progress is not None

    def stop(self) -> None:
        """Remove the bar, so that the next output starts on an empty line."""
        self._is_wanted = False
        if self._progress is not None:
            self._progress.stop()
            self._file.close()
            self._progress = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
