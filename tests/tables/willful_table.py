"""A user's own table with unusual behavior: it ends before the log does, fails, or requests no columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kafka_records_tables import Column
from kafka_records_tables.tables import current_offsets
from kafka_records_tables.tables.declaration import Option
from kafka_records_tables.tables.reader import TableReader

_WORDS: Final = ("ends", "stops", "raises", "asks nothing")

TABLE: Final = replace(
    current_offsets.TABLE,
    name="willful",
    about="batches of a log, as far as this table wants them",
    columns=(Column("batch_number", "int64", "the how manieth batch"), Column("row_count", "int64", "its rows")),
    sort=("batch_number",),
    reads=("offset", "key", "value", "control"),
    module=__name__,
    options=(
        Option("does", "word", "what it does", default="ends", words=("ends", "stops", "raises", "asks nothing")),
    ),
)


class WillfulError(Exception):
    """The error of the table."""


class Reader(TableReader):
    """Yields a row for each batch."""

    def __init__(self, context: Any) -> None:
        self._does = context.question.options["does"]
        self._number = 0
        self.is_done = self._does == "asks nothing"

    def take(self, batch: Any) -> Iterator[Any]:
        yield self._row(self._number, batch.num_rows)
        self._number += 1
        self.is_done = self._does == "stops"
        if self._does == "raises":
            raise WillfulError("no more of this")

    def finish(self) -> Iterator[Any]:
        if self._does == "asks nothing":
            yield self._row(-1, 0)

    def _row(self, number: int, rows: int) -> Any:
        from kafka_records_tables.tables.column_types import record_batch

        return record_batch(TABLE.schema, {"batch_number": number, "row_count": rows}, 1)
