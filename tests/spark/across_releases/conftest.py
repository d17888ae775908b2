"""The sessions that decode records: the shared session in Python, and another one with the functions in the JVM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest

from tests.spark.conftest import active, with_functions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Engine = Literal["jvm", "python"]


@pytest.fixture(scope="module", params=["python", "jvm"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


@pytest.fixture(scope="module")
def session(spark: SparkSession, engine: Engine, request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if engine == "python":
        yield spark
        return
    request.getfixturevalue("built")
    own = with_functions(spark)
    with active(own):
        yield own
