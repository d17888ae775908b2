"""The package that our specs give, which takes ten seconds to generate: once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_codegen.generate import generate
from kafka_records_codegen.loader import load

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def our_files() -> dict[str, str]:
    """Path below generated/kafka_records → text."""
    return generate(load(ROOT / "message_specs"), "kafka_records", "docs/reference")
