"""Errors about sources that contain nothing to read, including sources that are not files."""

from __future__ import annotations

from typing import Final

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.text.printable import printable


class LogSourceError(KafkaRecordsError, ValueError):
    """No log was found in a source. `detail` says why; `path` is the source as the user wrote it."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.detail}"


NOT_READABLE: Final = "permission denied: run this as a user who may read it"


class LacksColumns(LogSourceError):
    """A file of rows lacks columns that raw rows have."""


class NotReadable(LogSourceError):
    """The user may not read a file or folder. The log itself may be intact."""

    def __init__(self, path: str, detail: str = NOT_READABLE) -> None:
        super().__init__(path, detail)
