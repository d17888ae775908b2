"""What ends the command early, exit statuses, and the check that an optional package is there."""

from __future__ import annotations

import errno
from importlib.util import find_spec
from typing import Final

OK: Final = 0
DAMAGE: Final = 1
"""The job is done, but bytes were damaged or could not be decoded."""
FAILED: Final = 2
"""There is no result: wrong usage, nothing to read, something is missing on this machine, or work broke off."""

NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Errors of a write to a full or broken device. They do not name the file, so the code that writes has to."""

EXIT_STATUS_HELP: Final = """\
exit status:
  0  done
  1  done as far as possible, but something was damaged or could not be decoded; standard error says what and where
  2  no result: wrong usage, nothing to read, something missing on this machine, or an error that ended the work
"""


class CommandError(Exception):
    """Ends the command with its text on standard error and status FAILED."""


class UsageError(CommandError):
    """A CommandError about the arguments, shown with where the help of the subcommand is."""


def require(command: str, extra: str, *packages: str) -> None:
    """Raise a CommandError that names the first of `packages` that is not installed and the extra that brings it."""
    for package in packages:
        if find_spec(package) is None:
            from kafka_records_runtime.installing import install_command

            raise CommandError(f"{command} needs {package}, which is not installed: {install_command(extra)}")
