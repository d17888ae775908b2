"""Files as batches of their own columns: what the readers of all formats have in common, and columns inside of columns.

A reader says which columns a file has, and gives some of them batch by batch with the number of the first row. Parquet
and Arrow files come in groups, each of which can be read by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import pyarrow.compute as pc

from kafka_records_engine.log.files.places import LogSourceError, Place
from kafka_records_engine.sources._stored.stored_names import MARK
from kafka_records_runtime.installing import install_command

MOST_ROWS: Final = 65_536
"""The most rows of a batch."""

OF_A_SNAPSHOT: Final = (
    f"this belongs to a snapshot, which also holds deleted rows: name the directory with {MARK}, alone, without "
    "pattern, on this machine"
)


class Extremes(NamedTuple):
    """The smallest and the largest value of a column in a group that has no nulls."""

    least: Any
    most: Any


class FileReader(Protocol):
    """The description of a file by itself. A file is open only while its batches are read."""

    fields: dict[str, Any]
    """The types of the columns by name."""
    groups: int | None
    """How many parts can be read by themselves; None if the file is read from its start to its end."""

    def rows_of_groups(self) -> Sequence[int]:
        """How many rows each group has; nothing if there are no groups."""

    def statistics(self, group: int, column: str) -> Extremes | None:
        """The statistics of the file about a column of a group, if any."""

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """Record batches of the columns that are asked for, each with the number of its first row in the file; in the
        `group` that is named, where the file does not tell how many rows are before it. Raises OSError,
        pa.ArrowException and LogSourceError."""


class Sequential:
    """The common part of readers that read a file from its start to its end."""

    groups: int | None = None

    def rows_of_groups(self) -> Sequence[int]:
        """See `FileReader`."""
        return ()

    def statistics(self, group: int, column: str) -> Extremes | None:
        """See `FileReader`."""
        return None


def package_missing(place: Place, what: str, package: str, extra: str) -> LogSourceError:
    """The message about a file that needs a package which is not installed."""
    return LogSourceError(str(place), f"{what} needs {package}, which is not installed: {install_command(extra)}")


def in_slices(batch: Any, first: int) -> Iterator[tuple[int, Any]]:
    """A batch whose first row is number `first`, in parts of MOST_ROWS."""
    for start in range(0, batch.num_rows, MOST_ROWS):
        yield first + start, batch.slice(start, MOST_ROWS)


# -- columns inside of columns -----------------------------------------------------------------------------------------


def top_level(column: str, fields: dict[str, Any]) -> str:
    """The column of a file that a member is in, or the column itself."""
    name, dot, rest = column.partition(".")
    while name not in fields and dot:
        more, dot, rest = rest.partition(".")
        name = f"{name}.{more}"
    return name if column not in fields else column


def top_columns(reader: FileReader, columns: Iterable[str]) -> list[str]:
    """The columns that a reader has to give so that these, which may be members, can be taken from them."""
    return list(dict.fromkeys(top_level(column, reader.fields) for column in columns))


def member(batch: Any, column: str, fields: dict[str, Any]) -> Any:
    """A column of a batch, or a member inside of one."""
    name = top_level(column, fields)
    array = batch.column(name)
    rest = column[len(name) + 1 :]
    while rest:
        inner = {field.name: field.type for field in array.type}
        name = top_level(rest, inner)
        array = pc.struct_field(array, name)
        rest = rest[len(name) + 1 :]
    return array
