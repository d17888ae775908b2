"""Tables over coordinator topics, one module each: raw rows in, a DataFrame out, for batch, Connect and pipelines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_records_tables import current_offsets as _current_offsets
from kafka_records_tables import groups as _groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["TABLES", "Table"]


@dataclass(frozen=True)
class Table:
    """A table by its `name`: the `topic` it is about, the function that `build`s it from raw rows, and the one that
    shows the records it could not use because they are `undecodable`."""

    name: str
    topic: str
    about: str
    order: tuple[str, ...]
    build: Callable[[DataFrame], DataFrame]
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
            undecodable=_current_offsets.undecodable,
        ),
        Table(
            name="groups",
            topic="__consumer_offsets",
            about="every group with its kind, its state as far as the log tells, and its epoch",
            order=("group_id",),
            build=_groups.groups,
            undecodable=_groups.undecodable,
        ),
    )
}
"""The tables by name. `order` names the columns that sort a table for people."""
