"""The tables that Spark builds, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_records_tables import current_offsets as _current_offsets
from kafka_records_tables import groups as _groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Table:
    """A table by its `name`: the `topic` it is about, and the functions over raw rows.

    `build` makes the table. `remarks` tells about the records that decide about its rows (and those whose keys hold no
    record type): a row for each one that could not be used, or was read only because Kafka reads it so. Its columns:
    `log_partition, log_offset, record_type`; `error`, the struct of `kafka_records_spark.decode` or one with the reason
    UndecidedTransaction; `consequence`, what that does to the table; `raw_key, raw_value`; `bytes_left` behind key and
    value together; `leniencies`. `undecodable` gives those with an `error`, without the last two columns.
    """

    name: str
    topic: str
    about: str
    order: tuple[str, ...]
    build: Callable[[DataFrame], DataFrame]
    remarks: Callable[[DataFrame], DataFrame]
    undecodable: Callable[[DataFrame], DataFrame]


TABLES: Final[Mapping[str, Table]] = {
    table.name: table
    for table in (
        Table(
            name="current_offsets",
            topic="__consumer_offsets",
            about="the committed offset of every group, topic and partition",
            order=("group_id", "topic", "partition"),
            build=_current_offsets.current_offsets,
            remarks=_current_offsets.remarks,
            undecodable=_current_offsets.undecodable,
        ),
        Table(
            name="groups",
            topic="__consumer_offsets",
            about="every group with its kind, its state as far as the log tells, and its epoch",
            order=("group_id",),
            build=_groups.groups,
            remarks=_groups.remarks,
            undecodable=_groups.undecodable,
        ),
    )
}
"""The tables by name. `order` names the columns that sort a table for people."""
