"""When the leaders of logs changed: a table that only the report uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kafka_records_tables.tables.declaration import EVERY_TOPIC, Column, Table
from kafka_records_tables.tables.passed_columns import PassedColumns

if TYPE_CHECKING:
    from kafka_records_tables.report.facts.group_facts import Place
    from kafka_records_tables.report.rule_context import RuleContext

TABLE: Final = Table(
    name="leader_epochs",
    topic=EVERY_TOPIC,
    about="when the leaders of logs changed",
    helper="ends",
    records=(),
    reads=("topic", "partition", "log_start_offset", "log_end_offset", "leader_epochs"),
    columns=(
        Column("topic", "string", "topic"),
        Column("partition", "int32", "partition of the topic"),
        Column("log_start_offset", "int64", "offset at which the log starts"),
        Column("log_end_offset", "int64", "offset after the last record"),
        Column(
            "leader_epochs",
            "list<struct<epoch: int32, offset: int64, before_timestamp_ms: int64, timestamp_ms: int64>>",
            "the first leader epoch and the last ones: the offset at which each begins, and the times of the records "
            "before and at this offset; null if the source has no files",
        ),
    ),
    sort=("topic", "partition"),
    group=None,
    module=__name__,
    rules="One row per log partition of every topic in the source, or of the requested topic.",
)


class Reader(PassedColumns):
    table = TABLE


@dataclass(frozen=True, slots=True)
class EpochStart:
    """The beginning of a leader epoch in a log."""

    epoch: int
    offset: int
    before_ms: int | None
    """The time of the last record before the epoch; None if there is none."""
    at_ms: int | None
    """The time of the epoch's first record; None if there is none, or if a cleaner removed it."""


def epochs_of(context: RuleContext, topic: str) -> dict[Place, list[EpochStart]]:
    """The leader epochs of the logs of a topic; only those that files show."""
    return {
        (topic, row["partition"]): [
            EpochStart(each["epoch"], each["offset"], each["before_timestamp_ms"], each["timestamp_ms"])
            for each in row["leader_epochs"]
        ]
        for row in context.look(TABLE, topic=topic).to_pylist()
        if row["leader_epochs"]
    }
