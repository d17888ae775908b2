"""What `kafka_records_tables.spark.register` makes known to a session."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_engine.spark.errors import UnsupportedSpark
from kafka_records_engine.spark.framing_in_jvm import sql_of_prefix
from kafka_records_engine.spark.functions import function_for_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_IN_THE_JVM: Final = ("record_type", "value_version")

_IN_SQL: Final = """\
CREATE OR REPLACE TEMPORARY FUNCTION {name}(data BINARY) RETURNS SMALLINT
RETURN {prefix}"""


def register_source(spark: SparkSession) -> None:
    """Register the data source. Raises UnsupportedSpark before PySpark 4.0."""
    if find_spec("pyspark.sql.datasource") is None:
        instead = "kafka_records_tables.spark.read_table gives the same rows"
        raise UnsupportedSpark("register", pyspark.__version__, instead, "4.0")
    from kafka_records_tables.engines.spark_source import KafkaRecordsSource

    registry: Any = spark.dataSource
    registry.register(KafkaRecordsSource)


def register_functions(spark: SparkSession, package: str) -> tuple[str, ...]:
    """Register the column functions of a package; returns their names."""
    names = []
    for name in _IN_THE_JVM:
        spark.sql(_IN_SQL.format(name=name, prefix=sql_of_prefix("data"))).collect()
        names.append(name)
    if hasattr(F, "arrow_udf"):
        modules = import_module(f"{package}.spark")
        for found in iter_modules(modules.__path__, f"{package}.spark."):
            module = import_module(found.name)
            for name in module.__all__:
                if name.startswith(("from_", "to_")):
                    spark.udf.register(name, function_for_sql(name, getattr(module, name)))
                    names.append(name)
    return tuple(sorted(names))
