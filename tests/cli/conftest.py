"""The captured topics, dumped once each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.cli.running import Ran, run


@pytest.fixture(scope="session")
def dumped(topics_dir: Path) -> Callable[[str], Ran]:
    """Runs `kafka-records dump` on a folder of tests/data/topics."""
    return cache(lambda name: run("dump", str(topics_dir / name / "segments")))
