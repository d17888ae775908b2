"""The report on recorded incidents of real brokers: each named with its cause, nothing false, no alarm about health."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.variants import one_in
from tools.incidents.score import score_folder

FOLDER = Path(__file__).resolve().parents[1] / "data" / "incidents"


@pytest.mark.parametrize("name", one_in(2, sorted(each.name for each in FOLDER.iterdir() if each.is_dir())))
def test_the_report_is_right(name: str) -> None:
    got = score_folder(FOLDER / name, "files", "--processes", "1")
    assert got.solved, "\n".join(got.faults)
