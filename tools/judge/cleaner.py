"""Kafka's log cleaner (`org.apache.kafka.storage.internals.log.Cleaner`), on raw rows of one log partition."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA
from kafka_records_engine.sources import Context
from kafka_records_engine.sources.arrow_rows import RowsPartition, in_log_order

Row = dict[str, Any]


def cleaned(rows: list[Row], up_to: int, horizon: int) -> list[Row]:
    """The rows that remain if the log is cleaned below the offset `up_to`, which must not be after the start of an open
    transaction.

    The last record of each key stays. Records of aborted transactions are all removed, and do not count as last
    records. Tombstones below `horizon` are also removed, and so are markers if an earlier run removed all records of
    their transactions. The batches of the other records keep their base offsets.
    """
    outcomes = _outcomes(rows)
    last: dict[bytes, int] = {}
    for row in rows:
        if row["offset"] < up_to and row["control"] is None and outcomes[row["offset"]] != "abort":
            last[row["key"]] = row["offset"]
    kept = [row for row in rows if row["offset"] >= up_to or _stays(row, outcomes[row["offset"]], last, horizon)]
    served = _markers_without_records(kept)
    return [row for row in kept if row["offset"] not in served or row["offset"] >= min(up_to, horizon)]


def last_stable(rows: list[Row]) -> int:
    """The offset of the first record in an open transaction, which a cleaner does not pass; without one, the offset of
    the end."""
    outcomes = _outcomes(rows)
    still = [row["offset"] for row in rows if row["control"] is None and outcomes[row["offset"]] == "open"]
    end: int = rows[-1]["offset"] + 1
    return min(still, default=end)


def cleaned_at_random(rows: list[Row], chance: Random) -> tuple[list[Row], int]:
    """The log after it was cleaned a few times, and the first offset of its active segment. Only offsets below it were
    cleaned."""
    active = chance.choice([rows[-1]["offset"], chance.randrange(rows[0]["offset"], rows[-1]["offset"] + 1)])
    stable = min(active, last_stable(rows))
    up_to = rows[0]["offset"]
    for _ in range(chance.randrange(1, 4)):
        up_to = chance.randrange(up_to, stable + 1) if chance.random() < 0.7 else stable
        horizon = chance.choice([0, up_to, chance.randrange(rows[0]["offset"], up_to + 1)])
        if rows:
            rows = cleaned(rows, up_to, horizon)
    return rows, active


def _outcomes(rows: list[Row]) -> dict[int, str]:
    outcomes: dict[int, str] = {}
    ends: dict[int, str] = {}
    for row in reversed(rows):
        if row["control"] is not None:
            ends[row["producer_id"]] = row["control"]
        is_transactional = row["transaction"] != "none"
        outcomes[row["offset"]] = ends.get(row["producer_id"], "open") if is_transactional else "none"
    return outcomes


def _stays(row: Row, outcome: str, last: dict[bytes, int], horizon: int) -> bool:
    if row["control"] is not None:
        return True
    if outcome == "abort" or last[row["key"]] != row["offset"]:
        return False
    return row["value"] is not None or row["offset"] >= horizon


def _markers_without_records(rows: list[Row]) -> set[int]:
    found = set()
    has_records: set[int] = set()
    for row in rows:
        if row["control"] is None:
            has_records.add(row["producer_id"])
        elif row["producer_id"] in has_records:
            has_records.discard(row["producer_id"])
        else:
            found.add(row["offset"])
    return found


@dataclass(frozen=True)
class CleanedLog:
    """Rows of one log partition, as a source that knows the offset up to which a cleaner may have been, as for segment
    files."""

    rows: pa.Table
    topic: str
    cleaned_up_to: int
    log_start: int = 0
    partition: int = 0
    size: int = 0
    in_memory: bool = True

    @property
    def name(self) -> str:
        """The name in messages."""
        return f"a cleaned log of {self.topic}"

    def partitions(self, topic: str) -> list[CleanedLog]:
        """This partition. Raises LogSourceError for another topic."""
        if topic != self.topic:
            raise LogSourceError(self.topic, f"no log of {topic}")
        return [self]

    def topics(self) -> list[str]:
        """The topic of this log."""
        return [self.topic]

    def batches(
        self, context: Context, columns: Collection[str], start: int | None = None, end: int | None = None
    ) -> Iterator[pa.RecordBatch]:
        """The rows, a few at a time."""
        context.log.cleaned_up_to, context.log.start = self.cleaned_up_to, self.log_start
        part = RowsPartition(self.topic, self.partition, in_log_order(self.rows, self.topic))
        for batch in part.batches(context, columns, start, end):
            for start in range(0, batch.num_rows, 50):
                yield batch.slice(start, 50)


def table_of(rows: list[Row]) -> pa.Table:
    """Raw rows as a source returns them."""
    return pa.Table.from_pylist(rows, schema=RAW_SCHEMA)
