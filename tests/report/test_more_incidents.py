"""The report names what is wrong in each of the further incidents, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from tests.report.more_incidents import VARIANTS, write_variant
from tests.variants import mostly


@pytest.mark.parametrize("name", mostly(((name,) for name in VARIANTS), lambda name: name != "flood_of_metadata"))
def test_the_report_names_it_and_nothing_else(name: str, tmp_path: Path) -> None:
    """The finding has the right level and the affected groups."""
    write_variant(name, tmp_path / name)
    variant = VARIANTS[name]
    report = read_report(tmp_path / name, processes=1, retention=variant.retention)
    told = [(each.kind, each.level) for each in report.findings if each.level > Level.NOTE]
    assert told == [(variant.kind, variant.level)]
    assert sorted(report.findings[0].group_ids) == sorted(variant.groups)


def test_a_log_that_was_copied_while_a_broker_wrote_is_not_cut(tmp_path: Path) -> None:
    """Its high watermark was written soon after its last record."""
    write_variant("lost_last_segment", tmp_path / "copied")
    found = read_report(tmp_path / "copied", processes=1, thresholds={"log_cut.silent_for": "5h"}).findings
    assert [each for each in found if each.level > Level.NOTE] == []
