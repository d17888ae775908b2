"""A synthetic offsets topic: records by name, as raw rows."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pyarrow as pa

from kafka_records.consumer_offsets import encode_record
from kafka_records.registry import message_class
from kafka_records_engine.log.reading.raw_rows import RAW_SCHEMA

OFFSETS_TOPIC = "__consumer_offsets"


class Topic:
    """Grows one record at a time; log offsets count up over all partitions, so that the order is that of the calls."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def add(
        self,
        record: str,
        key: dict[str, Any],
        value: dict[str, Any] | None,
        *,
        version: int | None = None,
        transaction: str = "none",
        partition: int = 0,
        topic: str = OFFSETS_TOPIC,
        producer: int | None = 1000,
    ) -> int:
        """Write `record`; a `value` of None is a tombstone. Returns the log offset."""
        typed_key = message_class(f"{record}Key")(**key)
        typed_value = None if value is None else message_class(f"{record}Value")(**value)
        key_bytes, value_bytes = encode_record(typed_key, typed_value, None if value is None else version)
        return self.add_bytes(
            key_bytes, value_bytes, transaction=transaction, partition=partition, topic=topic, producer=producer
        )

    def add_bytes(
        self,
        key: bytes | None,
        value: bytes | None,
        *,
        transaction: str = "none",
        partition: int = 0,
        topic: str = OFFSETS_TOPIC,
        control: str | None = None,
        producer: int | None = 1000,
    ) -> int:
        """Write bytes; only records in transactions have a `producer`."""
        offset = len(self.rows)
        wrote = -1 if transaction == "none" and control is None else producer
        row = (topic, partition, offset, 1_700_000_000_000, "create", key, value, 0, offset, wrote, 0)
        self.rows.append((*row, transaction, control))
        return offset

    def commit(self, group: str, offset: int | None, *, record: str = "OffsetCommit", **options: Any) -> int:
        """Commit `offset` for partition 0 of the topic `orders`; None deletes it."""
        fields = {"offset": offset, "metadata": "", "commit_timestamp": 1_700_000_000_000}
        key = {"group": group, "topic": "orders", "partition": 0}
        version = 0 if record == "LegacyOffsetCommit" else 4
        return self.add(record, key, None if offset is None else fields, version=version, **options)

    def marker(self, control: str, *, producer: int = 1000) -> int:
        """End the open transaction of `producer`: `control` is commit or abort."""
        kind = b"\x00\x01" if control == "commit" else b"\x00\x00"
        return self.add_bytes(b"\x00\x00" + kind, b"\x00" * 6, control=control, producer=producer)

    def table(self) -> pa.Table:
        """The raw rows, in the order in which they were written."""
        columns = zip(*self.rows, strict=True) if self.rows else [[] for _ in RAW_SCHEMA]
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, RAW_SCHEMA, strict=True)]
        return pa.Table.from_arrays(arrays, schema=RAW_SCHEMA)


def struct(module: str, name: str, /, **fields: Any) -> Any:
    """A struct of a generated record, `struct("group_metadata", "MemberMetadata", member_id="m")`."""
    return getattr(import_module(f"kafka_records.consumer_offsets.{module}"), name)(**fields)
