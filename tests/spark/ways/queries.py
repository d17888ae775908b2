"""The queries for every way to run Spark, each a function from raw rows to rows.

None of them reads the columns of its input, so they can be part of a Declarative Pipeline.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records.spark import consumer_protocol, control
from kafka_records_engine.spark.functions import record_type, value_version
from kafka_records_runtime.text.casing import snake_case
from kafka_records_tables import spark as tables
from tests.spark.ways.truth import BROKEN_PARTITION, OFFSETS, schemas_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TABLES: Final[Mapping[str, tuple[str, ...]]] = {
    "current_offsets": ("group_id", "topic", "partition", "offset"),
    "groups": ("group_id", "group_kind", "state", "member_count"),
}
"""The columns of each table that a broker can report."""


def functions_of(topic: str) -> Any:
    """The generated Spark module of a topic."""
    return import_module(f"kafka_records.spark.{topic.strip('_')}")


def decoded(raw: DataFrame, topic: str, **options: Any) -> DataFrame:
    rows: DataFrame = functions_of(topic).decode_records(raw, **options)
    return rows


def there_and_back(raw: DataFrame, topic: str) -> DataFrame:
    """The records of a topic, decoded with the column functions of every record, and encoded again with the others.

    Columns: `partition`, `offset`, those of `decode_records` for each record, and `key` and `value`, null if they could
    not be read.
    """
    functions = functions_of(topic)
    names = {number: snake_case(schema.name) for number, schema in schemas_of(topic).items()}

    typed: list[Column | str] = ["partition", "offset", "value"]
    for number, name in names.items():
        for part in ("key", "value"):
            data = F.when(record_type("key") == number, F.col(part))
            typed.append(getattr(functions, f"from_{name}_{part}")(data).alias(f"{name}_{part}"))

    columns: list[Column | str] = ["partition", "offset"]
    keys: list[Column] = []
    values: list[Column] = []
    for name in names.values():
        key = F.col(f"{name}_key")
        # As in decode_records, a value belongs to no record type if the key cannot be read.
        value = F.when(key.isNotNull(), F.col(f"{name}_value"))
        columns.append(F.when(key.isNotNull(), F.struct(key.alias("key"), value.alias("value"))).alias(name))
        keys.append(getattr(functions, f"to_{name}_key")(key))
        version = F.when(value.isNotNull(), value_version("value"))
        values.append(getattr(functions, f"to_{name}_value")(value, version))
    columns += [F.coalesce(*keys).alias("key"), F.coalesce(*values).alias("value")]
    return raw.where("control is null").select(*typed).select(*columns)


def markers(raw: DataFrame) -> DataFrame:
    """The markers that end transactions, read and written: `partition, offset, type, epoch, key, value`."""
    kind = control.from_control_record_type_schema("key")
    marker = control.from_end_txn_marker("value")
    return raw.where("control is not null").select(
        *("partition", "offset"),
        kind.getField("type_").alias("type"),
        marker.getField("coordinator_epoch").alias("epoch"),
        control.to_control_record_type_schema(kind, value_version("key")).alias("key"),
        control.to_end_txn_marker(marker, value_version("value")).alias("value"),
    )


def members(raw: DataFrame) -> DataFrame:
    """The subscriptions and assignments of members of classic groups, read and written.

    Columns: `partition, offset, member_id, topics, generation_id, assigned, subscription, assignment`; the last two
    are bytes.
    """
    group = F.col("group_metadata.value")
    read_subscription = consumer_protocol.from_consumer_protocol_subscription
    read_assignment = consumer_protocol.from_consumer_protocol_assignment
    return (
        decoded(raw, OFFSETS, records=["GroupMetadata"])
        .where(group.getField("protocol_type") == "consumer")
        .select("partition", "offset", F.explode(group.getField("members")).alias("member"))
        .select(
            *("partition", "offset", "member"),
            read_subscription(F.col("member.subscription")).alias("read"),
            read_assignment(F.col("member.assignment")).alias("given"),
        )
        .select(
            *("partition", "offset", "member.member_id", "read.topics", "read.generation_id"),
            F.col("given.assigned_partitions").alias("assigned"),
            consumer_protocol.to_consumer_protocol_subscription("read", value_version("member.subscription")).alias(
                "subscription"
            ),
            consumer_protocol.to_consumer_protocol_assignment("given", value_version("member.assignment")).alias(
                "assignment"
            ),
        )
    )


def table(name: str, raw: DataFrame) -> DataFrame:
    """The part of a table that the broker reports."""
    sound = raw.where(F.col("partition") < BROKEN_PARTITION)
    return tables.table(sound, name, columns=TABLES[name])
