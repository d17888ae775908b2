"""The committed offsets that the group coordinator would return at the end of the log."""

from __future__ import annotations

from typing import Final

from kafka_records_tables.coordinator.offsets.commits import COMMITS
from kafka_records_tables.tables.commit_columns import committed
from kafka_records_tables.tables.declaration import LOG_PLACE, Table
from kafka_records_tables.topics import OFFSETS

TABLE: Final = Table(
    name="current_offsets",
    topic=OFFSETS,
    about="the committed offset of every group, topic and partition",
    helper="latest",
    records=COMMITS,
    reads=("offset", "key", "value", "producer_id", "transaction", "control"),
    columns=(*committed(), *LOG_PLACE),
    sort=("group_id", "topic", "partition"),
    group="group_id",
    module=__name__,
    essential=("group_id", "topic", "partition", "offset"),
    details=("topic_id", "leader_epoch", "log_partition", "log_offset"),
    rules="""\
One row per group, topic and partition with a committed offset. After partitions were added to `__consumer_offsets`, a
group may have rows of two `log_partition`s, of which its coordinator reads one.

The last record of a key decides. A tombstone always counts, a value if it was written outside a transaction or in a
committed one (`OffsetMetadataManager.replayEndTransactionMarker`).

If the deciding record cannot be decoded, or the end of its transaction is unknown, the key has no row, because an
older offset would be wrong; a finding names the record.
""",
)
