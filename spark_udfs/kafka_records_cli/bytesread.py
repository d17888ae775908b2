"""A progress bar over the bytes that are read, on standard error."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Final, Self

_AFTER: Final = 0.5
"""Seconds before a bar is worth the time it takes to load what draws it."""

_ROOMY: Final = 80
"""Cells of a terminal that has room for more than a bar."""


class ByteProgress:
    """A context in which a bar shows how much has been read; draws nothing when standard error is not a terminal."""

    def __init__(self, description: str) -> None:
        self._description = description
        self._started = time.monotonic()
        self._is_wanted = sys.stderr.isatty()
        self._progress: Any = None
        self._task: Any = None

    def moved(self, done: int, total: int) -> None:
        """`done` bytes of `total` were read."""
        if not self._is_wanted:
            return
        if self._progress is None:
            if time.monotonic() - self._started < _AFTER:
                return
            self._start(total)
        self._progress.update(self._task, completed=done)

    def _start(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        console = Console(file=sys.stderr)
        more = (DownloadColumn(), TimeElapsedColumn()) if console.width >= _ROOMY else ()
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            *more,
            console=console,
            transient=True,
            # It would put itself in the place of both, and take the result for lines to be drawn above the bar.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task(self._description, total=total)
        self._progress.start()

    def is_drawn(self) -> bool:
        """Whether the bar stands on the last line of the terminal."""
        return self._progress is not None

    def stop(self) -> None:
        """Take the bar away for good; what is printed next starts on a clean line."""
        self._is_wanted = False
        if self._progress is not None:
            self._progress.stop()
            self._progress = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
