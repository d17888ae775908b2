"""Locks a directory, so that only one run at a time writes to it."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._stored.stored_names import LOCK, make_folder

_NO_LOCKS: Final = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL)


@contextmanager
def locked_directory(root: str, kind: str, busy: LogSourceError, check: Callable[[str], object]) -> Iterator[None]:
    """Lock a directory against other runs. `kind` describes the directory in messages. The kernel releases the lock
    when the process ends.

    On a file system without locks, one of two simultaneous runs may fail, or both may write the same records, which are
    later read only once. Raises `busy` while another run has the lock, and the errors of `check` about an existing
    directory.
    """
    if not os.path.isdir(os.path.dirname(root)):
        raise LogSourceError(root, f"there is no directory {os.path.dirname(root)}")
    if os.path.exists(root) and not os.path.isdir(root):
        raise LogSourceError(root, f"is a file, but a {kind} must be a directory")
    make_folder(root)
    check(root)
    handle = os.open(os.path.join(root, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise busy from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
        yield
    finally:
        os.close(handle)
