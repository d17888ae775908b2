"""Loads of coordinators, by the lines that real brokers (4.3.1) log about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import Report, ReportFinding
from tools.incidents.recording import unpack

RECORDED = Path(__file__).resolve().parents[1] / "data" / "incidents" / "retired_topic-1"
SLOW_LOAD = RECORDED.parent / "slow_load-9462"
RUNTIME = "INFO [GroupCoordinator id=1] {} (org.apache.kafka.coordinator.common.runtime.CoordinatorRuntime)"
LOADED = "Finished loading of metadata from {} with epoch 0 in {}ms where {}ms was spent in the scheduler. Loaded {} "
LOADED += "records which total to {} bytes."
QUICK = LOADED.format("__consumer_offsets-0", 984, 65, 24, 3874)
SLOW = LOADED.format("__consumer_offsets-1", 42_500, 500, 9_000_000, 1_200_000_000)
QUEUED = LOADED.format("__share_group_state-0", 75_000, 70_000, 100, 8000)
BEHIND = LOADED.format("__share_group_state-1", 80_000, 78_000, 100, 8000)
READER = LOADED.format("__share_group_state-2", 79_000, 1_000, 4_000_000, 700_000_000)
TRANSACTIONS = (
    "Finished loading 812 transaction metadata from __transaction_state-1 in 12000 milliseconds, of which 3 "
    "milliseconds was spent in the scheduler."
)
FAILED = "Failed to load metadata from __consumer_offsets-2 with epoch 3 due to java.lang.IllegalStateException: odd."


@pytest.fixture(scope="module")
def report_with(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report of a healthy cluster whose broker logged these lines."""
    folder = tmp_path_factory.mktemp("broker")
    data = unpack(RECORDED, folder / "data")
    (folder / "logs").mkdir()
    lines = [QUICK, SLOW, LOADED.format("__consumer_offsets-1", 11_000, 0, 5, 5), QUEUED, TRANSACTIONS]
    log = "".join(f"[2026-11-27 10:00:0{at},123] {RUNTIME.format(line)}\n" for at, line in enumerate(lines))
    (folder / "logs" / "server.log").write_text(log)
    (folder / "broker.log").write_text(f"10:00:09.123 ERROR {FAILED}\nno other line\n")
    return read_report(data, processes=1)


def _by_topic(report: Report) -> dict[tuple[str, ...], ReportFinding]:
    return {each.topics: each for each in report.findings if each.kind == "coordinator_loads_slowly"}


def test_each_topic_has_a_finding_with_the_cause(report_with: Report) -> None:
    found = _by_topic(report_with)
    assert {topics: (each.level, each.causes[0].name, each.partitions) for topics, each in found.items()} == {
        ("__consumer_offsets",): (Level.CRITICAL, "load_failed", (1, 2)),
        ("__share_group_state",): (Level.HIGH, "waits_for_others", (0,)),
        ("__transaction_state",): (Level.MODERATE, "large_log", (1,)),
    }
    assert "java.lang.IllegalStateException: odd." in found["__consumer_offsets",].problem
    assert found["__consumer_offsets",].since_note == "the broker's log gives the time as 10:00:09.123"
    assert (
        "1 min 15 s to load __share_group_state-0 (100 records, 8000 bytes)." in found["__share_group_state",].problem
    )
    assert found["__transaction_state",].since_note == "the broker's log gives the time as 2026-11-27 10:00:04,123"
    shown = [each.shows for each in found["__consumer_offsets",].evidence]
    assert [each.rpartition(" took ")[2] for each in shown[1:]] == ["42 s"]


def test_a_quick_load_is_no_finding(report_with: Report) -> None:
    assert not any("__consumer_offsets-0" in each.problem for each in _by_topic(report_with).values())


def test_others_wait_for_the_load_that_reads_for_longest(tmp_path: Path) -> None:
    data = unpack(RECORDED, tmp_path / "data")
    lines = "".join(f"10:00:0{at}.123 {RUNTIME.format(each)}\n" for at, each in enumerate((QUEUED, BEHIND, READER)))
    (tmp_path / "broker.log").write_text(lines)
    (found,) = _by_topic(read_report(data, processes=1)).values()
    assert found.problem.startswith("A coordinator took 1 min 19 s to load __share_group_state-2 (4000000 records")
    assert "The load of __share_group_state (partitions 0-1) waited meanwhile." in found.problem
    assert [each.name for each in found.causes] == ["large_log"]


def test_the_files_show_how_large_the_log_is_and_how_long_its_groups_were_silent(tmp_path: Path) -> None:
    data = unpack(SLOW_LOAD, tmp_path / "data")
    (found,) = _by_topic(read_report(data, processes=1)).values()
    assert found.since_timestamp_ms is not None
    assert "committed nothing for" in found.problem
    (cause,) = found.causes
    assert "no cleaner has touched" in cause.evidence_for[1].shows
    assert "log.cleaner.enable" in found.next[0].what
