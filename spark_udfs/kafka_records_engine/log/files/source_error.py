"""Errors about sources in which there is nothing to read. Code that reads no files uses them too."""

from __future__ import annotations

from typing import Final

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.text.printable import printable


class LogSourceError(KafkaRecordsError, ValueError):
    """No log can be found in a source. `detail` says why, `path` is the source as the user wrote it."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.detail}"


NOT_READABLE: Final = "permission denied: run this as a user who may read it"


class LacksColumns(LogSourceError):
    """A file of rows without the columns of raw rows."""


class NotReadable(LogSourceError):
    """A file or folder that the user is not allowed to read. The log itself may be intact."""

    def __init__(self, path: str, detail: str = NOT_READABLE) -> None:
        super().__init__(path, detail)
