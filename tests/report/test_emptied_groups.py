"""Groups without members: those that kept up until they were stopped, and jobs; and static members that are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records_tables.report.facts.group_facts import LogEnds, Span
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding
from kafka_records_tables.report.rules import emptied_groups
from kafka_records_tables.report.rules.gone_processes import weigh_gone
from tests.report.classic_lives import ClassicLife
from tests.report.made_up_cluster import MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS, GROUP
from tests.report.test_rules_in_detail import _context

_START = END_MS - 20 * MINUTE
_STOPPED = END_MS - 6 * MINUTE


def _cluster() -> MadeCluster:
    cluster = MadeCluster("emptied", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.topic("orders", 4, per_hour=36_000)
    return cluster


def _findings(cluster: MadeCluster, folder: Path) -> list[ReportFinding]:
    other = ClassicLife(cluster, "audit", ["orders"])
    other.start(_START, 1)
    other.commits(_START + 4 * SECOND, END_MS, 2 * SECOND)
    cluster.write(folder)
    return [each for each in read_report(folder).findings if each.kind != "commits_flooding"]


@pytest.mark.parametrize(
    ("members", "silent_ms", "level", "cause"),
    [
        (2, 0, Level.MODERATE, "members_stopped"),
        (2, 45 * SECOND, Level.HIGH, "processes_died"),
        (1, 0, Level.MODERATE, "members_stopped"),
    ],
    ids=["stopped", "timed out", "one member for a long time"],
)
def test_a_group_that_kept_up_and_has_no_members(
    tmp_path: Path, members: int, silent_ms: int, level: Level, cause: str
) -> None:
    cluster = _cluster()
    life = ClassicLife(cluster, GROUP, ["orders"])
    life.start(_START, members)
    life.commits(_START + 4 * SECOND, _STOPPED - silent_ms - SECOND, 2 * SECOND)
    life.stop(_STOPPED)
    (found,) = _findings(cluster, tmp_path)
    assert (found.kind, found.level, found.group_ids, found.topics) == ("group_emptied", level, (GROUP,), ("orders",))
    assert (found.since_timestamp_ms, found.is_going_on) == (_STOPPED, True)
    assert [each.name for each in found.causes] == [cause, *(["members_stopped"] if silent_ms else [])]
    # Ten records per second in each of four partitions, since the last commit.
    assert found.scale["records_waiting"] == pytest.approx(40 * (360 + silent_ms / 1000), rel=0.05)
    assert len(found.who) == members


def test_jobs_and_groups_that_others_replace_are_no_finding(tmp_path: Path) -> None:
    cluster = _cluster()
    # A job that has been away before.
    again = ClassicLife(cluster, "hourly", ["orders"])
    for at_ms in (_START, _START + 5 * MINUTE, _START + 10 * MINUTE):
        again.join(at_ms)
        again.commits(at_ms + 2 * SECOND, at_ms + 2 * MINUTE, 2 * SECOND)
        again.stop(at_ms + 2 * MINUTE)
    # A group that the next release continues beside it, and then without it.
    old, new = ClassicLife(cluster, "ship-blue", ["orders"]), ClassicLife(cluster, "ship-green", ["orders"])
    old.start(_START)
    old.commits(_START + 4 * SECOND, _STOPPED - SECOND, 2 * SECOND)
    new.done = dict(old.done)
    new.start(_STOPPED - 20 * SECOND)
    new.commits(_STOPPED - 16 * SECOND, END_MS, 2 * SECOND)
    old.stop(_STOPPED)
    # A group of one member that was there for a short time.
    peek = ClassicLife(cluster, "peek", ["orders"])
    peek.start(_STOPPED - 30 * SECOND, 1)
    peek.commits(_STOPPED - 26 * SECOND, _STOPPED - SECOND, 2 * SECOND)
    peek.stop(_STOPPED)
    found = _findings(cluster, tmp_path)
    assert [(each.kind, each.group_ids) for each in found if each.level > Level.NOTE] == []
    assert [each.group_ids for each in found if each.kind == "group_emptied"] == [("peek",)]


@pytest.mark.parametrize(("behind_ms", "keeps_up"), [(500, True), (8 * MINUTE, False)], ids=["stream", "job"])
def test_a_job_does_not_keep_up(behind_ms: int, keeps_up: bool) -> None:
    """A record is written each second. A job of a minute reads what has gathered for longer."""
    samples = [{"offset": at, "timestamp_ms": at * SECOND} for at in range(1200)]
    ends = LogEnds([{"topic": "orders", "partition": 0, "samples": samples, "exact_from": 0, "log_start_offset": 0}])
    spans = {
        ("orders", 0): [
            Span((at * SECOND - behind_ms) // SECOND + 1, at * SECOND, None, None, 0, at, None, 1)
            for at in range(900, 960, 5)
        ]
    }
    assert emptied_groups._kept_up(ends, spans, "orders", MINUTE) == keeps_up
    assert not emptied_groups._kept_up(ends, {("orders", 0): spans["orders", 0][:4]}, "orders", MINUTE)


@pytest.mark.parametrize(
    ("more", "silent_ms", "applies", "is_certain"),
    [
        ({"instance_id": "billing-2", "session_timeout_ms": 15 * MINUTE}, 5 * MINUTE, True, False),
        ({"instance_id": "billing-2", "session_timeout_ms": 15 * MINUTE}, 16 * MINUTE, False, False),
        ({"instance_id": None, "session_timeout_ms": 45 * SECOND}, 5 * MINUTE, False, False),
        ({"instance_id": None, "session_timeout_ms": 45 * SECOND}, 40 * SECOND, True, False),
        ({"instance_id": "billing-2", "member_epoch": -2, "session_timeout_ms": None}, 5 * MINUTE, True, True),
    ],
    ids=["static", "timeout over", "heartbeats go on", "timeout not over", "left for a while"],
)
def test_a_process_that_may_be_gone(more: dict[str, Any], silent_ms: int, applies: bool, is_certain: bool) -> None:
    member = {"group_id": GROUP, "member_id": "m", "client_id": "billing-2", "member_epoch": 3}
    member |= {"log_partition": 0, "log_offset": 5, "log_timestamp_ms": 1, **more}
    context = _context(members=[member], groups=[{"group_id": GROUP, "group_kind": "consumer", "member_count": 3}])
    found = weigh_gone(context, GROUP, [member], ["billing-2"], END_MS - silent_ms)
    assert (found is not None) == applies
    if found is not None:
        is_static = member["instance_id"] is not None
        assert (found.is_certain, len(found.evidence_for)) == (is_certain, int(is_static))
        assert ("removeMembersFromConsumerGroup" in found.steps[0].what) == is_static
