"""The findings of `checks` in one log partition of group records, and the facts about share groups that `checks`
needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_records_tables.coordinator.groups.record_names import GROUP_RECORDS, PARTS
from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.declaration import Table
from kafka_records_tables.tables.words.check_words import (
    OPTIONS,
    PART_COLUMNS,
    READS,
)
from kafka_records_tables.topics import OFFSETS

if TYPE_CHECKING:

    pass

TABLE: Final = Table(
    name="group_checks",
    topic=OFFSETS,
    about="what checks finds in __consumer_offsets",
    helper="fold",
    records=(*GROUP_RECORDS, *PARTS, *COMMITS),
    reads=READS,
    columns=PART_COLUMNS,
    sort=("log_partition", "log_offset", "check"),
    group="group_id",
    module=__name__,
    options=OPTIONS,
    rules="This table is an input of `checks`.",
)
