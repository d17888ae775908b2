"""Members that leave soon after they join, if the source does not have the logs that they read."""

from __future__ import annotations

from pathlib import Path
from shutil import rmtree

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS, GROUP

_RUNS = 20


def _written(folder: Path, *, before: int, works: bool = False) -> None:
    """A group whose last twenty members leave a second after they join, half a minute apart, and commit only if it
    `works`; before, `before` members did so in the same intervals and committed, or else one member stayed."""
    cluster = MadeCluster("stays", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    life = ClassicLife(cluster, GROUP, ["orders"])
    first = END_MS - _RUNS * 30 * SECOND
    if not before:
        life.join(first - HOUR)
        life.commits(first - HOUR, first, MINUTE)
        life.stop(first)
    for number in range(-before, _RUNS):
        life.join(first + number * 30 * SECOND + SECOND)
        if number < 0 or works:
            life.commit(first + number * 30 * SECOND + 2 * SECOND)
        life.stop(first + number * 30 * SECOND + 2 * SECOND)
    cluster.write(folder)
    for each in folder.glob("orders-*"):
        rmtree(each)


def test_members_that_stayed_before_are_in_trouble(tmp_path: Path) -> None:
    """It is unknown on which record they fail, and whether there is something to read."""
    _written(tmp_path, before=0)
    (found,) = [each for each in read_report(tmp_path).findings if each.level > Level.NOTE]
    assert (found.kind, found.level, found.group_ids) == ("endless_rebalances", Level.MODERATE, (GROUP,))
    assert found.title == "members of a group leave soon after they join, again and again"
    assert [(each.name, each.confidence) for each in found.causes] == [
        ("fails_on_record", "medium"),
        ("processes_restart", "medium"),
        ("nothing_to_read", "low"),
    ]
    assert (found.confidence, found.symptom_confidence) == ("medium", "medium")
    assert "the source lacks the ends of the logs of " in (found.why_not_sure or "")
    assert " and left, half of them within 1 s of joining, while its offset stayed at " in found.problem
    assert found.decision is not None
    assert "--topic orders --partition " in (found.decision.command or "")
    assert any("kafka-records report --bootstrap" in (each.command or "") for each in found.next)


@pytest.mark.parametrize(("before", "works"), [(10, False), (10, True)], ids=["no work any more", "work"])
def test_jobs_are_quiet(tmp_path: Path, before: int, works: bool) -> None:
    """Their members join and leave as before, whether there is something to read or not."""
    _written(tmp_path, before=before, works=works)
    assert [each.kind for each in read_report(tmp_path).findings if each.level > Level.NOTE] == []
