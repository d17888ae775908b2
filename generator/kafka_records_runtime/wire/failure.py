"""Adds paths to errors: the lowest level knows the problem, and each level above adds its place.

Readers and writers do not track the path while there is no error. The one that fails raises a `ReadFailure` or
`WriteFailure`. Each level that it passes adds its field name or index, and the outermost one turns it into the public
error.
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
    """The error `error` at byte `offset`; `details` are the arguments of the error after the offset."""

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
    """The error `error`; `details` are its arguments after the path."""

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
