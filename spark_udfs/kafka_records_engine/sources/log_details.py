"""Details from the files of a log, besides its start and end. Tables about all logs may request them as columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from kafka_records_engine.sources.abilities import has

if TYPE_CHECKING:
    from kafka_records_engine.sources.protocol import Context, Source

FILES: Final = pa.schema(
    [
        ("segments", pa.int64()),
        ("bytes", pa.int64()),
        ("sizes", pa.list_(pa.struct([("offset", pa.int64()), ("bytes", pa.int64()), ("timestamp_ms", pa.int64())]))),
        ("cleaner_offset", pa.int64()),
    ]
)
"""Columns about the files of a log.

These are the number of files with records and their bytes; for each file its size, the offset in its name and the
latest time of a record (from its time index; null for the newest file and if the index is empty); and the offset up to
which the log has been cleaned, from `cleaner-offset-checkpoint`."""

EPOCHS: Final = pa.schema(
    [
        (
            "leader_epochs",
            pa.list_(
                pa.struct(
                    [
                        ("epoch", pa.int32()),
                        ("offset", pa.int64()),
                        ("before_timestamp_ms", pa.int64()),
                        ("timestamp_ms", pa.int64()),
                    ]
                )
            ),
        )
    ]
)
"""The column about the leader epochs of a log (`epoch_starts.EpochStart`), from `leader-epoch-checkpoint`."""

BATCHES: Final = pa.schema(
    [
        (
            "batches",
            pa.list_(
                pa.struct([(name, pa.int64()) for name in ("offset", "timestamp_ms", "records", "bytes")]),
            ),
        )
    ]
)
"""The column about the last batches of a log (`batch_sizes.batch_sizes`)."""

_PARTITIONS: Final = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))

OPEN: Final = pa.schema(
    [
        (
            "open_producers",
            pa.list_(
                pa.struct(
                    [
                        ("producer_id", pa.int64()),
                        ("first_offset", pa.int64()),
                        ("since_timestamp_ms", pa.int64()),
                        ("last_timestamp_ms", pa.int64()),
                        ("is_asked", pa.bool_()),
                        ("transactional_id", pa.string()),
                        ("state", pa.string()),
                        ("timeout_ms", pa.int32()),
                        ("start_timestamp_ms", pa.int64()),
                        ("partitions", _PARTITIONS),
                    ]
                )
            ),
        )
    ]
)
"""Columns about the transactions that are open in a log, from `log.open_producers` or from the leader of the partition.

If coordinators are asked (`is_asked`), their answers about the producer id are added; these are null if no coordinator
has the id.
"""

_SCHEMAS: Final = (FILES, EPOCHS, BATCHES, OPEN)

Details = Mapping[tuple[str, int], Mapping[str, Any]]
"""For each topic and partition, the values of columns by name."""


class TellsLogDetails(Protocol):
    """A source that can read the files of its logs."""

    def log_details(self, topics: Collection[str], columns: Collection[str], context: Context) -> Details:
        """The known values of the columns FILES, EPOCHS, BATCHES and OPEN, for the logs of the given topics. Raises
        LogSourceError."""


def asked_details(columns: Collection[str]) -> list[str]:
    """The columns that need files, batches or open transactions. If one column of a kind is requested, all of that kind
    are returned."""
    return [name for schema in _SCHEMAS if not set(schema.names).isdisjoint(columns) for name in schema.names]


def log_details(source: Source, topics: Collection[str], columns: Collection[str], context: Context) -> Details:
    """The columns of `asked_details`; empty for a source without files. Raises LogSourceError."""
    return source.log_details(topics, columns, context) if columns and has(source, TellsLogDetails) else {}


def with_details(rows: Any, places: Sequence[tuple[str, int]], columns: Collection[str], details: Details) -> Any:
    """A `pyarrow.RecordBatch` of logs with these columns added; they are null for a log without details."""
    for schema in _SCHEMAS:
        for field in schema:
            if field.name in columns:
                values = [details.get(place, {}).get(field.name) for place in places]
                rows = rows.append_column(field, pa.array(values, field.type))
    return rows
