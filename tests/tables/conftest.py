"""The tables over the captured topics, read once, and the answers of the brokers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Row = dict[str, Any]


@pytest.fixture(scope="session")
def table_rows(topics_dir: Path) -> Callable[[str, str], list[Row]]:
    """The rows of a table over a captured data directory. There must be no findings."""
    from kafka_records_tables import read_table

    kept: dict[tuple[str, str], list[Row]] = {}

    def rows(table: str, name: str) -> list[Row]:
        if (table, name) not in kept:
            result = read_table(table, topics_dir / name / "segments")
            assert [finding for finding in result.findings if finding.severity == "damage"] == []
            kept[table, name] = result.table.to_pylist()
        return kept[table, name]

    return rows


@pytest.fixture(scope="session")
def truth(topics_dir: Path) -> Callable[[str], dict[str, Any]]:
    """The answers of the broker of a captured data directory."""
    return lambda name: json.loads((topics_dir / name / "truth.json").read_text(encoding="utf-8"))
