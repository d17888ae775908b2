"""The generated package of our specs, as it is in the tree: `make check` compares it with what would be generated."""

from __future__ import annotations

from pathlib import Path

import pytest

HOME = Path(__file__).resolve().parents[2] / "generated" / "kafka_records"


@pytest.fixture(scope="session")
def our_files() -> dict[str, str]:
    """Path below generated/kafka_records → text."""
    return {
        path.relative_to(HOME).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(HOME.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }
