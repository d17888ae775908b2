"""Runs the command as a process whose streams are a terminal, a pipe or a file, in any combination."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import tty
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

Stream = Literal["terminal", "pipe", "file", "full"]
"""The target of a stream; `full` is /dev/full, which accepts nothing."""

_LIMIT: Final = 120
"""Seconds after which a process counts as stuck."""


@dataclass(frozen=True)
class Seen:
    """The result of a process: its exit status (negative for a signal), and its output.

    `out` and `err` are what it wrote to pipes and files, `screen` what it wrote to the terminal.
    """

    status: int
    out: str
    err: str
    screen: str


class _Reader(threading.Thread):
    """Reads a descriptor until no process has its other end open any more."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self._descriptor = descriptor
        self._data = bytearray()
        self.start()

    def run(self) -> None:
        with suppress(OSError):  # reading a terminal without a process ends with this error
            while data := os.read(self._descriptor, 65536):
                self._data += data

    @property
    def so_far(self) -> str:
        return bytes(self._data).decode("utf-8")

    def all(self) -> str:
        self.join(_LIMIT)
        os.close(self._descriptor)
        return self.so_far


class _Nothing:
    """A stream with another target."""

    so_far = ""

    def all(self) -> str:
        return ""


class _File:
    """A file that is read when its content is requested."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @property
    def so_far(self) -> str:
        size = os.fstat(self._descriptor).st_size
        return os.pread(self._descriptor, size, 0).decode("utf-8")

    def all(self) -> str:
        text = self.so_far
        os.close(self._descriptor)
        return text


class Running:
    """A process and its output so far."""

    def __init__(self, program: Sequence[str], streams: dict[str, Stream], columns: int, given: dict[str, str]) -> None:
        ours, theirs = pty.openpty()
        tty.setraw(theirs)  # keep line ends as they were written
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._readers: dict[str, _Reader | _File | _Nothing] = {"screen": _Reader(ours)}
        ends = {name: self._end(name, kind, theirs) for name, kind in streams.items()}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path), **given}
        environment = {"TERM": "xterm", **environment}
        for name in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
            if name not in given:
                environment.pop(name, None)
        self.process = subprocess.Popen(
            [sys.executable, *program],
            env=environment,
            stdin=ends["stdin"],
            stdout=ends["stdout"],
            stderr=ends["stderr"],
            start_new_session=True,
        )
        for descriptor in {theirs, *ends.values()}:
            os.close(descriptor)

    def _end(self, name: str, kind: Stream, terminal: int) -> int:
        if kind != "terminal":
            self._readers[name] = _Nothing()
        if name == "stdin" and kind != "terminal":
            return os.open(os.devnull, os.O_RDONLY)
        if kind == "full":
            return os.open("/dev/full", os.O_WRONLY)
        if kind == "pipe":
            reading, writing = os.pipe()
            self._readers[name] = _Reader(reading)
            return writing
        if kind == "file":
            writing, path = tempfile.mkstemp()
            self._readers[name] = _File(os.open(path, os.O_RDONLY))
            os.unlink(path)
            return writing
        return terminal

    def so_far(self, stream: str) -> str:
        """The output to `stdout`, `stderr` or `screen` so far."""
        return self._readers[stream].so_far

    def wait_for(self, stream: str, text: str) -> None:
        """Return when `text` has been written to `stream`."""
        deadline = time.monotonic() + _LIMIT
        while text not in self.so_far(stream):
            assert time.monotonic() < deadline, self.so_far(stream)
            time.sleep(0.01)

    def interrupt(self) -> None:
        """Do what Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def finish(self) -> Seen:
        """Wait for its end."""
        status = self.process.wait(_LIMIT)
        nothing = _Nothing()
        out, err, screen = (self._readers.get(name, nothing).all() for name in ("stdout", "stderr", "screen"))
        return Seen(status, out, err, screen)


@contextmanager
def running_on(
    *arguments: str,
    stdin: Stream = "terminal",
    stdout: Stream = "terminal",
    stderr: Stream = "terminal",
    columns: int = 80,
    program: Sequence[str] = ("-m", "kafka_records_tables.commands"),
    **environment: str,
) -> Iterator[Running]:
    """Run the command (or another `program` of Python) within the context. If it is still running at the end, it is
    killed.

    All streams that are a terminal are the same one, of the width `columns`. A standard input that is not a terminal is
    empty.
    """
    streams: dict[str, Stream] = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    running = Running((*program, *arguments), streams, columns, environment)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def run_on(
    *arguments: str,
    stdin: Stream = "terminal",
    stdout: Stream = "terminal",
    stderr: Stream = "terminal",
    columns: int = 80,
    program: Sequence[str] = ("-m", "kafka_records_tables.commands"),
    **environment: str,
) -> Seen:
    """Run the command on these streams to its end."""
    with running_on(
        *arguments,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        columns=columns,
        program=program,
        **environment,
    ) as running:
        return running.finish()


def processor_seconds(process: int) -> float:
    """The processor seconds that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
