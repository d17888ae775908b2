"""Adds paths to errors. The innermost level raises the error, and each enclosing level adds its part of the path.

Readers and writers do not track the path as long as there is no error. If one fails, it raises a `ReadFailure` or
`WriteFailure`. Each enclosing level adds its field name or index to that exception, and the outermost level converts it
to the public error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_records_runtime.errors import DecodeError, EncodeError

if TYPE_CHECKING:
    from kafka_records_runtime.schema import MessageSchema


class _Failure(Exception):
    def __init__(self, *details: object) -> None:
        self.details = details
        self.parts: list[str] = []

    @property
    def path(self) -> str:
        """The path, from parts that were added innermost first: `client_host`, `[2]`, `members` →
        `members[2].client_host`."""
        return join_path(reversed(self.parts))


class ReadFailure(_Failure):
    """A failure to read a value, before its path is known: the class of the public error, the byte `offset`, and
    `details`, the arguments of the error after the offset."""

    def __init__(self, error: type[DecodeError], offset: int, *details: object) -> None:
        super().__init__(*details)
        self.error = error
        self.offset = offset

    def located(self, schema: MessageSchema, version: int) -> DecodeError:
        error = self.error(schema.name, version, self.path, self.offset, *self.details)
        note = schema.note(version)
        if note:
            error.note = note
        return error


class WriteFailure(_Failure):
    """A failure to write a value, before its path is known: the class of the public error, and `details`, its arguments
    after the path."""

    def __init__(self, error: type[EncodeError], *details: object) -> None:
        super().__init__(*details)
        self.error = error

    def located(self, message_name: str, version: int) -> EncodeError:
        return self.error(message_name, version, self.path, *self.details)


def join_path(parts: Iterable[str]) -> str:
    """Join the parts of a path, outermost first. An index (`[2]`) follows its name without a dot."""
    path = ""
    for part in parts:
        path += part if not path or part.startswith("[") else f".{part}"
    return path
