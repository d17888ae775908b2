"""When a finding began: the time of the first record that shows it, and not of the first record there is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pyarrow as pa
import pytest

from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rules import rebalancing
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.modern_lives import ModernLife
from tests.report.rule_cases import END_MS, GROUP

Find = Callable[[str, Callable[[MadeCluster], None]], ReportFinding]


@pytest.fixture
def find(tmp_path: Path) -> Find:
    """Finds the finding of a kind about what was planted."""

    def found(kind: str, plant: Callable[[MadeCluster], None]) -> ReportFinding:
        cluster = MadeCluster("since", END_MS, offsets_partitions=1)
        cluster.cleaned_until_ms = None
        plant(cluster)
        # The last record is the moment of the report.
        cluster.topic("clock", 1)
        cluster.commit("clock", END_MS, {("clock", 0): 5})
        cluster.write(tmp_path)
        report = read_report(tmp_path)
        (finding,) = [each for each in report.findings if each.kind == kind and GROUP in each.group_ids]
        return finding

    return found


LATER: Final = 20


@pytest.mark.parametrize(
    ("quiet_ms", "is_start"), [(5 * MINUTE, True), (40 * SECOND, False)], ids=["quiet after the start", "at once"]
)
def test_endless_rebalances_begin_after_a_start(find: Find, quiet_ms: int, is_start: bool) -> None:
    first = END_MS - (LATER - 1) * 30 * SECOND

    def plant(cluster: MadeCluster) -> None:
        life = ClassicLife(cluster, GROUP, ["orders"])
        life.join(first - quiet_ms)
        for number in range(LATER):
            life.rebalance(first + number * 30 * SECOND)

    finding = find("endless_rebalances", plant)
    assert finding.since_timestamp_ms == (first if is_start else first - quiet_ms)
    assert finding.scale["rebalances"] == LATER + (not is_start)


@pytest.mark.parametrize(("kept", "count"), [(False, LATER), (True, 3)], ids=["new targets", "warm-up tasks"])
def test_epochs_of_the_same_target_are_no_rebalances(kept: bool, count: int) -> None:
    """A streams group whose warm-up tasks become ready one after another."""
    epoch = {"group_id": GROUP, "event": "epoch", "member_count": 2, "log_partition": 0}
    details = [
        {"from": number, "to": number + 1} | ({"target": "unchanged"} if kept and number > 2 else {})
        for number in range(LATER)
    ]
    events = pa.Table.from_pylist(
        [
            epoch | {"detail": json.dumps(detail), "at_timestamp_ms": detail["to"] * 30 * SECOND, "log_offset": number}
            for number, detail in enumerate(details)
        ]
    )
    context: Any = SimpleNamespace(table=lambda _: events, limit=lambda _: 10 * MINUTE, once=lambda _: {})
    assert rebalancing._runs(context).num_rows == count


def test_members_are_unsettled_since_the_first_change_that_did_not_end(find: Find) -> None:
    def plant(cluster: MadeCluster) -> None:
        life = ModernLife(cluster, GROUP, ["orders"])
        life.join(END_MS - 3 * HOUR)
        life._come(END_MS - HOUR, None)
        life._come(END_MS - 20 * MINUTE, None)

    finding = find("members_unsettled", plant)
    assert finding.since_timestamp_ms == END_MS - HOUR
    assert finding.problem.startswith(f'The group "{GROUP}" has been Assigning for 20 min')
