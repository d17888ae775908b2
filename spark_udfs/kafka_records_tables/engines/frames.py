"""Messages between this process and its workers: a length as an int64, followed by that many bytes."""

from __future__ import annotations

import pickle
from struct import Struct
from typing import IO, Final

_LENGTH: Final = Struct(">q")


def write_frame(pipe: IO[bytes], content: bytes) -> None:
    """Write one message."""
    pipe.write(_LENGTH.pack(len(content)))
    pipe.write(content)


def read_frame(pipe: IO[bytes]) -> bytes | None:
    """Read one message; None if the other end has closed the pipe, even in the middle of a message."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    content = pipe.read(length)
    return content if len(content) == length else None


def portable(error: Exception) -> Exception:
    """The error itself or, if it cannot be pickled and unpickled, a RuntimeError with its name and text."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
