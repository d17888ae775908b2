"""The implementation of `kafka_records_tables.spark.register`."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Final

import pyspark
from pyspark.errors import AnalysisException
from pyspark.sql import functions as F  # noqa: N812 (the name everybody gives it)

from kafka_records_engine.spark.errors import NoJvmFunctions, UnsupportedSpark
from kafka_records_engine.spark.framing_in_jvm import sql_of_prefix
from kafka_records_engine.spark.functions import function_for_sql
from kafka_records_engine.spark.jvm import Engine, add_functions, functions_in

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_IN_SQL_ALONE: Final = ("record_type", "value_version")

_log: Final = logging.getLogger(__name__)

_IN_SQL: Final = """\
CREATE OR REPLACE TEMPORARY FUNCTION {name}(data BINARY) RETURNS SMALLINT
RETURN {prefix}"""


def is_before_4() -> bool:
    """Whether this PySpark is older than 4.0, and so lacks Python data sources and SQL functions."""
    return find_spec("pyspark.sql.datasource") is None


def register_source(spark: SparkSession) -> None:
    """Register the data source. Raises UnsupportedSpark before PySpark 4.0."""
    if is_before_4():
        instead = (
            "kafka_records_tables.spark.read_table returns the same rows, "
            'and register(spark, engine="jvm") makes the functions known to SQL'
        )
        raise UnsupportedSpark("register", pyspark.__version__, instead, "4.0")
    from kafka_records_tables.engines.spark_source import KafkaRecordsSource

    with _active(spark):
        try:
            spark.dataSource.register(KafkaRecordsSource)
        except AnalysisException as error:
            if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
                raise  # otherwise this session has it already


@contextmanager
def _active(spark: SparkSession) -> Iterator[None]:
    """Makes this session the active one of its JVM.

    DataSourceRegistration.registerPython looks for the name in the active session but registers it in the given one. If
    the active one already has it, the given one would not get it.
    """
    if not hasattr(spark, "_jsparkSession"):
        yield  # Spark Connect: the server makes the session active
        return
    sessions: Any = spark._jvm
    before = sessions.SparkSession.getActiveSession()
    sessions.SparkSession.setActiveSession(spark._jsparkSession)
    try:
        yield
    finally:
        if before.isDefined():
            sessions.SparkSession.setActiveSession(before.get())
        else:
            sessions.SparkSession.clearActiveSession()


def register_functions(spark: SparkSession, package: str, engine: Engine | None) -> tuple[str, ...]:
    """Register the column functions of a package in SQL. Returns their names.

    They are the catalog's functions if there is a jar, and Python functions otherwise. Raises NoJvmFunctions for
    `engine="jvm"` if they are not available.
    """
    names = []
    for name in () if is_before_4() else _IN_SQL_ALONE:
        spark.sql(_IN_SQL.format(name=name, prefix=sql_of_prefix("data"))).collect()
        names.append(name)
    if engine == "jvm" or (engine is None and _has_jvm(spark, package)):
        names += functions_in(add_functions(spark, package), package)
    elif hasattr(F, "arrow_udf"):
        modules = import_module(f"{package}.spark")
        for found in iter_modules(modules.__path__, f"{package}.spark."):
            module = import_module(found.name)
            for name in module.__all__:
                if name.startswith(("from_", "to_")):
                    spark.udf.register(name, function_for_sql(name, getattr(module, name)))
                    names.append(name)
    return tuple(sorted(names))


def _has_jvm(spark: SparkSession, package: str) -> bool:
    try:
        add_functions(spark, package)
    except NoJvmFunctions as missing:
        _log.info("functions in SQL are Python functions: %s", missing.why)
        return False
    return True
