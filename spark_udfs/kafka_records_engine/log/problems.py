"""What can be wrong with a log segment file, as values that print as one line each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kafka_records_runtime.errors import KafkaRecordsError
from kafka_records_runtime.printable import printable

Severity = Literal["damage", "note"]


@dataclass(frozen=True, slots=True)
class SegmentProblem:
    """One finding in one file.

    `str()` is `<file>: byte <position>, batch at offset <offset>: <what> (<consequence>)`, on one line.

    A `note` is something a healthy log may have (zeros of a pre-allocated file, an append that a crash cut short at
    the very end, files a cleaner left half swapped); `damage` means that bytes are not what a broker wrote.
    """

    file: str
    position: int | None
    """Byte in the file where the batch (or what stands in its place) starts; None for the file as a whole."""
    batch_offset: int | None
    """The offset its entry starts with (the base offset of a magic 2 batch); None where no batch can be told."""
    what: str
    consequence: str
    severity: Severity = "damage"
    records: int = 0
    """Records that are not delivered because of it, as far as their number is known."""
    bytes: int = 0
    """Bytes of the file that are not read because of it: the whole batch if no record of it is delivered, and all
    bytes of compressed records if only some come out."""

    def __str__(self) -> str:
        place = printable(self.file)
        if self.position is not None:
            place += f": byte {self.position}"
            if self.batch_offset is not None:
                place += f", batch at offset {self.batch_offset}"
        return f"{place}: {self.what} ({self.consequence})"


OnProblem = Callable[[SegmentProblem], None]


class LogSourceError(KafkaRecordsError, ValueError):
    """A source in which no log can be found; `detail` says why, `path` is the source as it was given."""

    def __init__(self, path: str, detail: str) -> None:
        super().__init__(path, detail)
        self.path = path
        self.detail = detail

    def __str__(self) -> str:
        return f"{printable(self.path)}: {self.detail}"
