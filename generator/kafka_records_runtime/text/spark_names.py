"""The Spark type of a column. The generator writes the names of these types, and the Spark layer creates the types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

SPARK_TYPES: Final[Mapping[str, str]] = {
    "bool": "BooleanType",
    "int8": "ByteType",
    "int16": "ShortType",
    "uint16": "IntegerType",
    "int32": "IntegerType",
    "uint32": "LongType",
    "int64": "LongType",
    "float64": "DoubleType",
    "uuid": "StringType",
    "string": "StringType",
    "bytes": "BinaryType",
    "records": "BinaryType",
}
"""For each spec type, the class in `pyspark.sql.types`. Unsigned numbers become the next wider signed type, because
Spark has no unsigned types. A uuid becomes Kafka's 22-character text, which can be joined with the output of Kafka's
tools."""
