"""The jar with the functions in the JVM, and sessions that use it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyspark
import pytest

from kafka_records_engine.spark.jvm import JAR, add_functions
from tools import jar
from tools.spark_releases import RELEASES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def built() -> None:
    """Make sure that the jar exists and is made from these sources, compiled against the newest Spark. Older releases
    get the same jar."""
    if pyspark.__version__ == list(RELEASES.values())[-1].pyspark:
        assert jar.main([]) == 0
    assert JAR.is_file(), "run make jar"


def with_functions(spark: SparkSession) -> SparkSession:
    """A new session whose catalog has the functions, and which compiles its queries as Spark does by default."""
    session = spark.newSession()
    session.conf.set("spark.sql.codegen.wholeStage", "true")
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK")
    add_functions(session)
    return session


@contextmanager
def active(session: Any) -> Iterator[None]:
    """Make a session the active one of this thread; at the end, restore the previous one."""
    before = type(session).getActiveSession()
    _activate(session)
    try:
        yield
    finally:
        _activate(before or session)


def _activate(session: Any) -> None:
    type(session)._activeSession = session  # the session that PySpark returns, regardless of the JVM's
    session._jvm.SparkSession.setActiveSession(session._jsparkSession)
