"""The findings of `checks` in one log partition of share state, and which share partitions have state there."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.tables.declaration import Table
from kafka_records_tables.tables.words.check_words import (
    OPTIONS,
    PART_COLUMNS,
    READS,
)
from kafka_records_tables.topics import SHARE_STATE

TABLE: Final = Table(
    name="share_checks",
    topic=SHARE_STATE,
    about="what checks finds in __share_group_state",
    helper="fold",
    records=("ShareSnapshot", "ShareUpdate"),
    reads=READS,
    columns=PART_COLUMNS,
    sort=("log_partition", "log_offset", "check"),
    group="group_id",
    module=__name__,
    options=OPTIONS,
    rules="This table is an input of `checks`.",
)
