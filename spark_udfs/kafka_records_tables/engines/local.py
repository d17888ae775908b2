"""Computes tables with processes on this machine, without a JVM and Spark.

One process reads a log partition from its first record to its last. Small sources are read in this process, because
starting another one takes as long as reading about ten megabytes. Processes are started as separate programs (`worker`)
rather than with `multiprocessing`: its spawned processes rerun the caller's script unless that has a `__main__` guard,
its daemonic processes may have no children, and forking a process with running threads (Arrow has some) may hang.
"""

from __future__ import annotations

import logging
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_records_engine.sources.broker_threads import read_by_broker
from kafka_records_engine.sources.shared_progress import SharedProgress
from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_tables.engines.frames import read_frame, write_frame
from kafka_records_tables.engines.shared_reading import SharedReading
from kafka_records_tables.engines.spread_tasks import spread_by

if TYPE_CHECKING:
    from kafka_records_engine.sources import LogPartition
    from kafka_records_tables.engines.log_tasks import LogTask, RunReports, TaskReport
    from kafka_records_tables.engines.request import OnProgress

SMALL: Final = 64 * 1024 * 1024
"""The largest source, in bytes, that this process reads itself unless the caller requests more processes."""


def _directory() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""  # the current directory was deleted, so modules in it cannot be imported


_IMPORTED_IN: Final = _directory()
"""The module path at startup. Its entries may be relative to a directory that the caller leaves later."""

_QUEUED: Final = 16
"""The maximum number of queued worker messages. A caller that takes rows slowly slows the workers down."""


class WorkerEnded(KafkaRecordsError, RuntimeError):
    """A process ended while reading the log partition `log`; `status` is its exit status."""

    def __init__(self, log: str, status: int) -> None:
        super().__init__(log, status)
        self.log = log
        self.status = status

    def __str__(self) -> str:
        return f"{self.what_happened}: processes=1 reads with one process, group=… reads less"

    @property
    def what_happened(self) -> str:
        """The text without advice, because commands give advice in terms of their own options."""
        how = f"was ended by signal {-self.status}" if self.status < 0 else f"ended with status {self.status}"
        return (
            f"the process that was reading {self.log} {how}. Signal 9 usually means that the machine ran out of memory"
        )


def run(
    tasks: Sequence[LogTask],
    reports: RunReports,
    *,
    processes: int | None = None,
    on_progress: OnProgress | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of some tables over some log partitions, each with the number of its request, in no particular order.

    Parameters
    ----------
    tasks
        The log partitions to read, and the tables to compute.
    reports
        Receive the findings and counts.
    processes
        How many other processes read. With 1, this process reads. The default is one process per core, if there is
        enough to read.
    on_progress
        Called with the number of bytes read so far and the total number.

    Raises
    ------
    WorkerEnded
        If a process ends before its work is done.
    Exception
        Any error of a table, from any process.
    """
    ordered = spread_by(tasks, lambda task: task.log)
    total = sum(task.log.size for task in ordered)
    count = _processes(processes, [task.log for task in ordered], total)
    watched = SharedProgress(total, on_progress)
    if count < 2:
        return _here(ordered, reports, watched)
    return _Workers(ordered, reports, watched, count).rows()


def _processes(wanted: int | None, logs: Sequence[LogPartition], total: int) -> int:
    if not sys.executable or any(log.in_memory for log in logs):
        return 1
    if wanted is None:
        wanted = _cores() if total > SMALL else 1
    return min(wanted, len(logs))


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _here(
    tasks: Sequence[LogTask], reports: RunReports, watched: SharedProgress
) -> Iterator[tuple[int, pa.RecordBatch]]:
    def read(numbered: tuple[int, LogTask]) -> Iterator[tuple[int, pa.RecordBatch] | TaskReport]:
        number, task = numbered
        reading = SharedReading(task, partial(watched.moved, number))
        yield from reading.rows()
        yield reading.report()
        watched.moved(number, task.log.size)

    for content in read_by_broker([*enumerate(tasks)], lambda each: each[1].log, read):
        if isinstance(content, tuple):
            yield content
        else:
            reports.add(content)


class _Workers:
    """Worker processes, each of which reads one log partition after another. One thread per process receives its
    output."""

    def __init__(self, tasks: Sequence[LogTask], reports: RunReports, watched: SharedProgress, count: int) -> None:
        self._tasks = tasks
        self._left = deque(range(len(tasks)))
        self._reports = reports
        self._watched = watched
        self._said: queue.Queue[tuple[str, Any]] = queue.Queue(_QUEUED)
        self._stopped = threading.Event()
        self._count = count
        self._processes: list[subprocess.Popen[bytes]] = []

    def rows(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of all partitions as they arrive, with the numbers of their requests."""
        threads = []
        try:
            for _ in range(self._count):
                self._processes.append(_started())
            for process in self._processes:
                thread = threading.Thread(target=self._attend, args=(process,), daemon=True)
                threads.append(thread)
                thread.start()
            busy = self._count
            while busy:
                kind, content = self._said.get()
                if kind == "batch":
                    yield content
                elif kind == "progress":
                    self._watched.moved(*content)
                elif kind == "report":
                    self._reports.add(content)
                elif kind == "error":
                    raise content
                else:
                    busy -= 1
        finally:
            self._stopped.set()
            for process in self._processes:
                process.kill()
            for process in self._processes:
                process.wait()
            for thread in threads:
                thread.join()
            for process in self._processes:
                _closed(process)

    def _attend(self, process: subprocess.Popen[bytes]) -> None:
        """Give a process one partition after another, and pass on what it sends."""
        try:
            while not self._stopped.is_set():
                try:
                    number = self._left.popleft()
                except IndexError:
                    break
                self._read(process, number)
        except _StoppedError:
            return
        except Exception as error:
            self._say("error", error)
        self._say("idle", None)

    def _read(self, process: subprocess.Popen[bytes], number: int) -> None:
        log = self._tasks[number].log
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            write_frame(process.stdin, pickle.dumps(self._tasks[number]))
            process.stdin.flush()
        except OSError:
            raise self._ended(process, log) from None
        while True:
            frame = read_frame(process.stdout)
            if frame is None:
                raise self._ended(process, log)
            kind, content = pickle.loads(frame)
            if kind == "batch":
                request, stream = content
                for batch in pa.ipc.open_stream(stream):
                    self._say("batch", (request, batch))
            elif kind == "progress":
                self._say("progress", (number, content))
            elif kind == "log":
                name, level, message = content
                logging.getLogger(name).log(level, "%s", message)
            elif kind == "error":
                raise content
            else:
                self._say("report", content)
                self._say("progress", (number, log.size))
                return

    def _ended(self, process: subprocess.Popen[bytes], log: LogPartition) -> Exception:
        if self._stopped.is_set():
            return _StoppedError()
        return WorkerEnded(f"{log.topic}-{log.partition}", process.wait())

    def _say(self, kind: str, content: Any) -> None:
        while True:
            try:
                self._said.put((kind, content), timeout=0.1)
                return
            except queue.Full:
                if self._stopped.is_set():
                    raise _StoppedError from None


class _StoppedError(Exception):
    """The rows are no longer needed."""


def _started() -> subprocess.Popen[bytes]:
    places = [os.path.join(_IMPORTED_IN, place) for place in sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    # -P excludes modules in the current directory. Unlike -m, -c works for a package in an archive and does not warn
    # that the module was imported before. A terminal sends Ctrl-C to all its processes. A worker may still be importing
    # then, so it ignores Ctrl-C, and its parent ends it.
    deaf = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
    program = f"{deaf}; from kafka_records_tables.engines.worker import main; main()"
    return subprocess.Popen(
        [sys.executable, "-P", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    )


def _closed(process: subprocess.Popen[bytes]) -> None:
    pipes: list[IO[bytes] | None] = [process.stdin, process.stdout]
    for pipe in pipes:
        if pipe is not None:
            try:
                pipe.close()
            except OSError:
                continue  # the process at the other end has exited
