"""Columns of the records that commit offsets, types 0 and 1 taken together."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_spark.types import column_name

COMMIT_RECORDS: Final = ("OffsetCommit", "LegacyOffsetCommit")


def commit_key(name: str) -> Column:
    """The member `name` of the key, whichever of the two records it is."""
    return _either("key", name)


def commit_value(name: str) -> Column:
    """The member `name` of the value, whichever of the two records it is."""
    return _either("value", name)


def _either(part: str, name: str) -> Column:
    return F.coalesce(*(F.col(f"{column_name(record)}.{part}.{name}") for record in COMMIT_RECORDS)).alias(name)
