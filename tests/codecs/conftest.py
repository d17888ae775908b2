"""Packages generated for a test session from specs that are not our own."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_records_codegen.cli import main
from tests.generator.language_specs import write_language_specs


@pytest.fixture(scope="session")
def generated_home(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Path]:
    """A folder on `sys.path` with two packages: `acme_messages`, from tests/data/specs, and `kafka_language`."""
    home = tmp_path_factory.mktemp("generated")
    language = write_language_specs(data_dir, tmp_path_factory.mktemp("specs"))
    for specs, package in ((data_dir / "specs" / "acme", "acme_messages"), (language, "kafka_language")):
        assert main(["generate", "--specs", str(specs), "--out", str(home / package), "--package", package]) == 0
    sys.path.insert(0, str(home))
    yield home
    sys.path.remove(str(home))
