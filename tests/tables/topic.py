"""A made-up offsets topic: records by name, as raw rows and as a DataFrame."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka_records.consumer_offsets import encode_record
from kafka_records.registry import message_class
from kafka_records_spark.raw import RAW_SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
        """Write bytes; records outside of a transaction have no producer, `producer` is for the others."""
        offset = len(self.rows)
        wrote = -1 if transaction == "none" else producer
        row = (topic, partition, offset, 1_700_000_000_000, "create", key, value, 0, offset, wrote, 0)
        self.rows.append((*row, transaction, control))
        return offset

    def commit(self, group: str, offset: int | None, *, record: str = "OffsetCommit", **options: Any) -> int:
        """Commit `offset` for partition 0 of the topic `orders`; None deletes it."""
        fields = {"offset": offset, "metadata": "", "commit_timestamp": 1_700_000_000_000}
        key = {"group": group, "topic": "orders", "partition": 0}
        version = 0 if record == "LegacyOffsetCommit" else 4
        return self.add(record, key, None if offset is None else fields, version=version, **options)

    def frame(self, spark: SparkSession) -> DataFrame:
        return spark.createDataFrame(self.rows, RAW_SCHEMA)


def struct(module: str, name: str, **fields: Any) -> Any:
    """A struct of a generated record, `struct("group_metadata", "MemberMetadata", member_id="m")`."""
    return getattr(import_module(f"kafka_records.consumer_offsets.{module}"), name)(**fields)
