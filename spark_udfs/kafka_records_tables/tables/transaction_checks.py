"""What `checks` finds in one log partition of transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from kafka_records_tables.tables.declaration import Table
from kafka_records_tables.tables.words.check_words import OPTIONS, PART_COLUMNS, READS

if TYPE_CHECKING:
    from kafka_records_engine.sources import Context
    from kafka_records_tables.tables.checking.check_rows import CheckRow

TABLE: Final = Table(
    name="transaction_checks",
    topic="__transaction_state",
    about="what checks finds in __transaction_state",
    helper="fold",
    records=("TransactionLog",),
    reads=READS,
    columns=PART_COLUMNS,
    sort=("log_partition", "log_offset", "check"),
    needs_transactions=False,
    group="transactional_id",
    module=__name__,
    options=OPTIONS,
    every_type=True,
    uses_topics=True,
    rules="An input of checks.",
)

_STOPS: Final = (
    "a coordinator passes over a value of an unknown version, and otherwise stops reading here and serves what it has"
)
"""`TransactionStateManager.loadTransactionMetadata`."""


def rows(batches: Iterator[Any], context: Context) -> Iterator[Any]:
    """The rows; the rules of `checks` say which."""
    from kafka_records_tables.tables.checking.check_rows import batches_of

    yield from batches_of(_rows(batches, context), context, TABLE.schema)


def _rows(batches: Iterator[Any], context: Context) -> Iterator[CheckRow]:
    from kafka_records_tables.tables.checking.record_checks import RecordChecks
    from kafka_records_tables.tables.decoded.decoded_records import schemas

    known = schemas(context, "transaction_state")
    records = RecordChecks(context, known, owner="transactional_id", stops=_STOPS)
    for batch in batches:
        found = records.decoded(batch)
        if found is not None:
            yield from records.look_at(found)
    yield from records.rest()
