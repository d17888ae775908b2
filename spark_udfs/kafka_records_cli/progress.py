"""A progress bar over the tasks of a local Spark session, on standard error."""

from __future__ import annotations

import os
import sys
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_INTERVAL: Final = 0.2


class SparkProgress:
    """A context in which a bar shows what the session does; draws nothing when standard error is not a terminal."""

    def __init__(self) -> None:
        self._progress: Any = None
        self._file: Any = None
        self._task: Any = None
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not sys.stderr.isatty():
            return self
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

        # A descriptor of its own: standard error goes elsewhere while the JVM starts.
        self._file = open(os.dup(sys.stderr.fileno()), "w", encoding="utf-8")
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("tasks"),
            TimeElapsedColumn(),
            console=Console(file=self._file),
            transient=True,
            # It would put itself in the place of both, and take the result for lines to be drawn above the bar.
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._progress.add_task("starting Spark", total=None)
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def watch(self, session: SparkSession, description: str) -> None:
        """Show the tasks of `session` from now on."""
        if self._progress is None:
            return
        self._progress.update(self._task, description=description)
        self._thread = threading.Thread(target=self._poll, args=(session.sparkContext,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take the bar away; what is printed next starts on a clean line."""
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._progress is not None:
            self._progress.stop()
            self._file.close()
            self._progress = None

    def _poll(self, context: SparkContext) -> None:
        stages = _Stages()
        while not self._done.wait(_INTERVAL):
            try:
                stages.look(context)
            except Exception:
                # The session may be stopping. A bar that stands still is no reason to fail.
                return
            self._progress.update(self._task, completed=stages.completed, total=stages.total or None)


class _Stages:
    """The tasks of all stages seen so far. A stage that is over counts as complete, skipped tasks included."""

    def __init__(self) -> None:
        self._tasks: dict[int, tuple[int, int]] = {}

    def look(self, context: SparkContext) -> None:
        tracker = context.statusTracker()
        active = set(tracker.getActiveStageIds())
        for number in active:
            info = tracker.getStageInfo(number)
            if info is not None:
                self._tasks[number] = (info.numCompletedTasks, info.numTasks)
        for number, (_, total) in self._tasks.items():
            if number not in active:
                self._tasks[number] = (total, total)

    @property
    def completed(self) -> int:
        return sum(completed for completed, _ in self._tasks.values())

    @property
    def total(self) -> int:
        return sum(total for _, total in self._tasks.values())
