"""Running the command inside the test process."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from typing import NamedTuple
from unittest.mock import patch

from kafka_records_tables.cli.main import main


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of standard output. Text in them may hold what `splitlines` takes for a line end."""
        return self.out.split("\n")[:-1]


def run(*arguments: str, standard_input: str = "") -> Ran:
    """Call `main`; leaving it by SystemExit, as the parser does, counts as returning its status."""
    out, err = io.StringIO(newline=""), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.StringIO(standard_input)):
        try:
            status = main(arguments)
        except SystemExit as leaving:
            status = int(leaving.code or 0)
    return Ran(status, out.getvalue(), err.getvalue())
