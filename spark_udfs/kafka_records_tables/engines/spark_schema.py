"""The columns of a table in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql.types import StructType

from kafka_records_engine.spark.spark_types import spark_schema

if TYPE_CHECKING:
    from kafka_records_tables.tables.declaration import Table


def schema_of(table: Table, names: Sequence[str]) -> StructType:
    """The columns `names` of a table, each with its description as a comment."""
    schema = spark_schema(table.schema)
    return StructType([schema[name] for name in names])
