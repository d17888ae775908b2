"""Running the command inside the test process."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import termios
import threading
import tty
from contextlib import redirect_stderr, redirect_stdout, suppress
from typing import NamedTuple
from unittest.mock import patch

from kafka_records_tables.commands.main import main


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output. Their text may contain characters that `splitlines` would treat as line
        ends."""
        return self.out.split("\n")[:-1]


def run(*arguments: str, standard_input: str = "") -> Ran:
    """Call `main`. A SystemExit, as from the parser, counts as returning its status."""
    out, err = io.StringIO(newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.StringIO(standard_input)):
        status = _status(arguments)
    return Ran(status, out.getvalue(), err.getvalue())


def run_on_screen(*arguments: str, columns: int, **environment: str) -> Ran:
    """The same with a terminal of the width `columns` as standard output: `out` is its content.

    This runs in the test process. `terminals.run_on` starts a new process, which takes half a second more.
    """
    ours, theirs = pty.openpty()
    tty.setraw(theirs)  # keep line ends as they were written
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # reading a terminal that no process has open ends with this error
            while data := os.read(ours, 65536):
                shown.extend(data)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    err = io.StringIO()
    with (
        os.fdopen(theirs, "w", encoding="utf-8", newline="") as out,
        redirect_stdout(out),
        redirect_stderr(err),
        patch("sys.stdin", io.StringIO()),
        patch.dict(os.environ, {"TERM": "xterm", **kept, **environment}, clear=True),
    ):
        status = _status(arguments)
    reader.join()
    os.close(ours)
    return Ran(status, shown.decode("utf-8"), err.getvalue())


def _status(arguments: tuple[str, ...]) -> int:
    try:
        return main(arguments)
    except SystemExit as leaving:
        return int(leaving.code or 0)
