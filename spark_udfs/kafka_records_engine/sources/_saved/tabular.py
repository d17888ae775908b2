"""The common interface of all format readers, which return batches of a file's columns, and functions for nested
columns.

A reader reports the columns of a file, and returns some of them in batches with the number of the first row. Parquet
and Arrow files consist of groups, each of which can be read independently.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, Protocol

import pyarrow.compute as pc

from kafka_records_engine.log.files.places import Place
from kafka_records_engine.log.files.source_error import LogSourceError
from kafka_records_engine.sources._stored.stored_names import MARK
from kafka_records_runtime.text.installing import install_command

MOST_ROWS: Final = 65_536
"""The maximum number of rows in a batch."""

OF_A_SNAPSHOT: Final = (
    f"this belongs to a snapshot, which also contains deleted rows: give only the directory with {MARK}, without a "
    "pattern, on this machine"
)


class Extremes(NamedTuple):
    """The smallest and the largest value of a column in a group without nulls."""

    least: Any
    most: Any


class FileReader(Protocol):
    """Describes and reads one file. The file is open only while its batches are read."""

    fields: dict[str, Any]
    """The type of each column, by name."""
    groups: int | None
    """The number of parts that can be read independently; None if the file can only be read from start to end."""

    def rows_of_groups(self) -> Sequence[int]:
        """The number of rows of each group; empty if there are no groups."""

    def statistics(self, group: int, column: str) -> Extremes | None:
        """The file's statistics for a column in a group; None if there are none."""

    def batches(self, columns: Sequence[str], group: int | None = None) -> Iterator[tuple[int, Any]]:
        """Record batches of the requested columns, each with the number of its first row in the file or, if the number
        of rows before the given `group` is unknown, in the group. Raises OSError, pa.ArrowException and
        LogSourceError."""


class Sequential:
    """The base of readers that read a file from start to end."""

    groups: int | None = None

    def rows_of_groups(self) -> Sequence[int]:
        """See `FileReader`."""
        return ()

    def statistics(self, group: int, column: str) -> Extremes | None:
        """See `FileReader`."""
        return None


def package_missing(place: Place, what: str, package: str, extra: str) -> LogSourceError:
    """The error for a file that requires a missing package."""
    return LogSourceError(str(place), f"{what} needs {package}, which is not installed: {install_command(extra)}")


def in_slices(batch: Any, first: int) -> Iterator[tuple[int, Any]]:
    """Split a batch, whose first row has the number `first`, into parts of at most MOST_ROWS rows."""
    for start in range(0, batch.num_rows, MOST_ROWS):
        yield first + start, batch.slice(start, MOST_ROWS)


# -- columns inside of columns -----------------------------------------------------------------------------------------


def top_level(column: str, fields: dict[str, Any]) -> str:
    """The top-level column that contains a member, or the column itself."""
    name, dot, rest = column.partition(".")
    while name not in fields and dot:
        more, dot, rest = rest.partition(".")
        name = f"{name}.{more}"
    return name if column not in fields else column


def top_columns(reader: FileReader, columns: Iterable[str]) -> list[str]:
    """The top-level columns that a reader must return to get these columns, which may be members."""
    return list(dict.fromkeys(top_level(column, reader.fields) for column in columns))


def member(batch: Any, column: str, fields: dict[str, Any]) -> Any:
    """A column of a batch, or a member nested in a column."""
    name = top_level(column, fields)
    array = batch.column(name)
    rest = column[len(name) + 1 :]
    while rest:
        inner = {field.name: field.type for field in array.type}
        name = top_level(rest, inner)
        array = pc.struct_field(array, name)
        rest = rest[len(name) + 1 :]
    return array
