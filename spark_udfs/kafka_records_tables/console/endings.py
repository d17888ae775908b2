"""Errors that end the command early, exit statuses, and the check that an optional package is installed."""

from __future__ import annotations

import errno
from importlib.util import find_spec
from typing import Final

OK: Final = 0
"""The answer is complete."""
DAMAGE: Final = 1
"""The command has finished, but rows are or may be missing because of damage, a timeout, a missing right, an
undecodable record or, for a report, a log that lacks its beginning, its end or a file. This status takes precedence
over FOUND, because it is more important to know that an answer is incomplete."""
FAILED: Final = 2
"""There is no answer: the usage is wrong, there is nothing to read, something is missing on this machine, or something
failed."""
FOUND: Final = 3
"""The answer is complete and contains something that `--fail-on` looks for."""

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Error numbers for writing to a full or broken device. Python's error does not name the file, so the writing code has
to."""

EXIT_STATUS_HELP: Final = """\
exit status:
  0    complete
  1    rows are missing, or may be: damage, a timeout, a missing right, a record that cannot be decoded; for report also
       a log that lacks its beginning, its end or a file, unless it may have been copied while the broker wrote.
       Standard error says what and where
  2    no answer: wrong usage, nothing to read, something missing on this machine, or an error that ended the work
  3    complete, with findings: report has one for --fail-on, or table checks has a record at which a coordinator stops
       loading. If rows are missing too, the exit status is 1
  130  Ctrl-C
"""


class CommandError(Exception):
    """An error that ends the command. Its text goes to standard error, and the exit status is FAILED."""


class UsageError(CommandError):
    """A CommandError about the arguments. The message is followed by the command that shows the help."""


def require(command: str, extra: str, *packages: str) -> None:
    """Raise a CommandError that names the first of `packages` that is not installed and the extra that installs it."""
    for package in packages:
        if find_spec(package) is None:
            from kafka_records_runtime.text.installing import install_command

            raise CommandError(f"{command} needs {package}, which is not installed: {install_command(extra)}")
