"""The data directories of incidents and healthy topics, each written when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report.healthy import HEALTHY, write_healthy
from tests.report.incidents import END_MS, Incident, write_incident

Row = dict[str, Any]


@pytest.fixture(scope="session")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Incident]:
    """An incident by its name."""
    written: dict[str, Incident] = {}
    root = tmp_path_factory.mktemp("incidents")

    def asked(name: str) -> Incident:
        if name not in written:
            written[name] = write_incident(name, root / name)
        return written[name]

    return asked


@pytest.fixture(scope="session")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The data directory of a healthy topic by its name."""
    root = tmp_path_factory.mktemp("healthy")

    def asked(name: str) -> Path:
        assert name in HEALTHY
        if not (root / name).exists():
            write_healthy(name, root / name, end_ms=END_MS)
        return root / name

    return asked


@pytest.fixture(scope="session")
def planted(incident: Callable[[str], Incident]) -> Callable[..., list[Row]]:
    """The rows of a table over an incident. There must be no damage unless it was planted."""
    from kafka_records_tables import read_table

    def rows(name: str, table: str, *, is_damaged: bool = False, **asked: Any) -> list[Row]:
        result = read_table(table, incident(name).folder, processes=1, **asked)
        assert any(finding.severity == "damage" for finding in result.findings) == is_damaged
        found: list[Row] = result.table.to_pylist()
        return found

    return rows
