"""A session of its own with the functions in the JVM, beside the shared one that has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.spark.conftest import active, with_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def in_jvm(spark: SparkSession, built: None) -> Iterator[SparkSession]:
    """A session whose catalog has the functions; it is the active one, of which column functions ask."""
    session = with_functions(spark)
    with active(session):
        yield session
