"""A table of a user's own that does not do what others do: it ends before the log does, fails, or asks for nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from kafka_records_tables import Column
from kafka_records_tables.tables import current_offsets
from kafka_records_tables.tables.declaration import Option

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
    """What the table raises."""


def rows(batches: Iterator[Any], context: Any) -> Iterator[Any]:
    """A row for each batch."""
    from kafka_records_tables.tables.column_types import record_batch

    does = context.options["does"]
    if does == "asks nothing":
        yield record_batch(TABLE.schema, {"batch_number": -1, "row_count": 0}, 1)
        return
    for number, batch in enumerate(batches):
        yield record_batch(TABLE.schema, {"batch_number": number, "row_count": batch.num_rows}, 1)
        if does == "stops":
            return
        if does == "raises":
            raise WillfulError("no more of this")
