"""A separate session with the functions in the JVM, in addition to the shared one, which has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.conftest import active, with_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def in_jvm(spark: SparkSession, built: None) -> Iterator[SparkSession]:
    """A session whose catalog has the functions. It is the active session, which column functions use."""
    session = with_functions(spark)
    with active(session):
        yield session
