"""The columns and the declaration shared by the inputs of `log_files`, one for each coordinator topic."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import Column, Table

COLUMNS: Final = (
    Column("topic", "string", "name of the topic"),
    Column("partition", "int32", "partition of the topic"),
    Column("records", "int64", "records, without transaction markers"),
    Column("markers", "int64", "markers of transactions"),
    Column("superseded", "int64", "the number of records that a log cleaner would remove"),
    Column("tombstones", "int64", "tombstones that are not superseded"),
    Column("open_from", "int64", "offset of the first record of an open transaction; null if there is none"),
)


def loaded(name: str, topic: str, module: str) -> Table:
    """The declaration of an input about the records of a topic."""
    return Table(
        name=name,
        topic=topic,
        about=f"how many records of {topic} there are, and how many a cleaner drops",
        helper="latest",
        records=(),
        reads=("offset", "key", "value", "producer_id", "transaction", "control"),
        columns=COLUMNS,
        sort=("topic", "partition"),
        group=None,
        module=module,
        rules="This table is an input of `log_files`.",
    )
