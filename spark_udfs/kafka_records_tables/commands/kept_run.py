"""Stores the output of a run with `--state` for the next run with the same arguments (`repeated_run`)."""

from __future__ import annotations

import io
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from kafka_records_engine.sources.kept_logs import KeptLogs, write_whole
from kafka_records_engine.sources.live import addresses_of
from kafka_records_tables.commands.repeated_run import KeptRun, run_file
from kafka_records_tables.console.endings import OK
from kafka_records_tables.console.standard_error import noted_lines

if TYPE_CHECKING:
    from kafka_records_tables.commands.table_run import TableRun

_MOST: Final = 16 * 1024 * 1024
"""Longer outputs are not kept, because most of the time is then spent writing them, which keeping them would not
save."""


_OF_NOW: Final = ("moment", "ahead", "checkpoints")
"""The kinds of options whose meaning changes over time: times that may be relative to now, and folders that others
write to."""


class RunKeeper:
    """Runs a task, and stores its output if the same run would print the same until a log changes."""

    def __init__(self, run: TableRun, arguments: Sequence[str]) -> None:
        self._run = run
        self._task = run.task
        self._arguments = arguments
        self._lines: list[str] = []
        self._printed: _Copied | None = None

    def run(self) -> int:
        """See `TableRun.run`."""
        with noted_lines() as self._lines, self._copied_output():
            status = self._run.run()
        if status == OK:
            self._keep(self._run.source)
        return status

    @contextmanager
    def _copied_output(self) -> Iterator[None]:
        usual = sys.stdout
        if self._task.output.path is not None or not isinstance(usual, io.TextIOWrapper) or usual.isatty():
            yield
            return
        self._printed = _Copied(usual.buffer)
        sys.stdout = io.TextIOWrapper(self._printed, usual.encoding, usual.errors, newline="", write_through=True)
        try:
            yield
        finally:
            sys.stdout.detach()
            sys.stdout = usual

    def _keep(self, source: Any) -> None:
        task, given = self._task, self._task.given
        if not isinstance(source, KeptLogs) or given.bootstrap is None or task.findings is not None:
            return
        kinds = {option.name: option.kind for option in task.table.options}
        if any(value and kinds.get(name) in _OF_NOW for part in task.question.values for name, value in part):
            return
        seen, content = source.seen, self._content()
        if not (seen.is_whole and seen.has_answer and seen.until_ms) or content is None:
            return
        kept = KeptRun(
            bootstrap=[list(each) for each in addresses_of(given.bootstrap)],
            config=None if given.config is None else str(given.config),
            seconds=None if given.limit is None else given.limit.seconds,
            questions=seen.questions,
            records=seen.records,
            everything=seen.everything,
            made_ms=time.time_ns() // 1_000_000,
            until_ms=seen.until_ms,
            output=None if task.output.path is None else str(task.output.path),
            overwrite=task.output.overwrite,
            format=task.output.format,
            lines=self._lines,
        )
        path = run_file(str(task.state), self._arguments)
        with suppress(OSError):  # the output has already been printed and is still valid
            write_whole(path, kept.written(content))

    def _content(self) -> bytes | None:
        path = self._task.output.path
        if path is None:
            return None if self._printed is None else self._printed.content()
        try:
            return path.read_bytes() if os.path.getsize(path) <= _MOST else None
        except OSError:
            return None


class _Copied(io.BufferedIOBase):
    """Remembers the bytes written to standard output."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._parts: list[bytes] | None = []
        self._left = _MOST

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        number: int = self._out.fileno()
        return number

    def flush(self) -> None:
        self._out.flush()

    def write(self, data: Any) -> int:
        written: int = self._out.write(data)
        self._left -= written
        if self._left < 0:
            self._parts = None
        elif self._parts is not None:
            self._parts.append(bytes(data))
        return written

    def content(self) -> bytes | None:
        """All bytes; None if there are too many."""
        return None if self._parts is None else b"".join(self._parts)
