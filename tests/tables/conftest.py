"""The captured topics as raw rows, read once."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


@pytest.fixture(scope="session")
def captured(spark: SparkSession, topics_dir: Path) -> Callable[[str], DataFrame]:
    """The raw rows of a captured data directory, all topics of it."""
    from kafka_records_spark.segments import read_segments

    kept: dict[str, DataFrame] = {}

    def rows(name: str) -> DataFrame:
        if name not in kept:
            kept[name] = read_segments(spark, topics_dir / name / "segments").persist()
        return kept[name]

    return rows


@pytest.fixture(scope="session")
def table_rows(captured: Callable[[str], DataFrame]) -> Callable[[str, str], list[Row]]:
    """The rows of a table over a captured data directory."""
    from kafka_records_tables import TABLES

    kept: dict[tuple[str, str], list[Row]] = {}

    def rows(table: str, name: str) -> list[Row]:
        if (table, name) not in kept:
            kept[table, name] = TABLES[table].build(captured(name)).collect()
        return kept[table, name]

    return rows


@pytest.fixture(scope="session")
def truth(topics_dir: Path) -> Callable[[str], dict[str, Any]]:
    """What the broker of a captured data directory answered."""
    return lambda name: json.loads((topics_dir / name / "truth.json").read_text(encoding="utf-8"))
