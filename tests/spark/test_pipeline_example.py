"""The definitions of examples/pipeline, without Spark: a view of every table whose topics exist."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

from kafka_records_tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable

EXAMPLE = Path(__file__).parents[2] / "examples" / "pipeline" / "transformations" / "offsets.py"
OFFSETS, SHARE = "__consumer_offsets", "__share_group_state"
TRANSACTIONS = "__transaction_state"
METADATA = "__cluster_metadata"

OF_SHARE_STATE = {"share_lag", "share_disappearances", "share_partitions"}
OF_METADATA = {name for name, table in TABLES.items() if table.topic == METADATA}


def _defined(monkeypatch: pytest.MonkeyPatch, folder: Path, *topics: str) -> tuple[set[str], list[str]]:
    """The tables that the example defines over a data directory with these topics, and the topics that it reads."""
    defined: list[str] = []

    def materialized_view(function: Any = None, *, name: str | None = None, comment: str = "") -> Callable[[Any], Any]:
        def define(function: Any) -> Any:
            defined.append(name or function.__name__)
            return function

        return define

    for topic in topics:
        (folder / f"{topic}-0").mkdir()
        (folder / f"{topic}-0" / f"{0:020}.log").write_bytes(b"")
    pipelines = ModuleType("pyspark.pipelines")
    pipelines.materialized_view = materialized_view  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark.pipelines", pipelines)
    monkeypatch.setattr("pyspark.pipelines", pipelines, raising=False)
    settings = {"spark.offsets.data": str(folder), "spark.offsets.tables": ""}
    session = SimpleNamespace(conf=SimpleNamespace(get=lambda name, default=None: settings.get(name, default)))
    monkeypatch.setattr(SparkSession, "active", lambda: session)
    told = runpy.run_path(str(EXAMPLE))
    assert len(defined) == len(set(defined))
    return TABLES.keys() & defined, told["TOPICS"]


def test_every_table_is_defined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    everything = OFFSETS, SHARE, TRANSACTIONS, METADATA
    assert _defined(monkeypatch, tmp_path, *everything, "orders") == (set(TABLES), sorted(everything))


def test_of_a_topic_that_is_not_there_no_table_is_defined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`checks` does not require any particular topic, and files show open transactions without their topic."""
    found, topics = _defined(monkeypatch, tmp_path, OFFSETS)
    assert TABLES.keys() - found == OF_SHARE_STATE | {"transactions"} | OF_METADATA
    assert topics == [OFFSETS]


def test_without_any_of_its_topics_checks_is_not_defined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, _ = _defined(monkeypatch, tmp_path, "orders")
    assert found == {"log_ends"}
