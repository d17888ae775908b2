"""Open transactions: those of one cause are one finding."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding, Rows
from tests.report.data_directory import OFFSETS, TRANSACTIONS
from tests.report.made_up_cluster import HOUR, MINUTE, SECOND, MadeCluster
from tests.report.rule_cases import END_MS
from tests.report.transactional_lives import Transactional


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, ...], ReportFinding]:
    """Transactions that two applications left open, that a coordinator does not end, and that have just begun."""
    cluster = MadeCluster("transactions", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.logs.partitions = {OFFSETS: 1, TRANSACTIONS: 1}
    cluster.topic("orders", 4)
    for number, group in enumerate(("a", "a", "b")):
        offsets = {("orders", number): 50_000 + number}
        cluster.commit(group, END_MS - (3 - number) * HOUR, offsets, producer_id=100 + number)
    lives = (
        ("late", "one", HOUR),
        ("late", "two", 30 * MINUTE),
        ("new", "five", 12 * SECOND),
        ("new", "six", 11 * SECOND),
    )
    for number, (group, name, age_ms) in enumerate(lives):
        life = Transactional(cluster, name, group, "enriched", 200 + number)
        life.start(END_MS - age_ms)
        life.begin(END_MS - age_ms, {("orders", number): 50_000})
    passing = Transactional(cluster, "seven", "passing", "enriched", 300)
    passing.start(END_MS - 9 * SECOND)
    passing.begin(END_MS - 9 * SECOND, {("orders", 3): 50_000})
    cluster.commit("elsewhere", END_MS, {("orders", 0): 50_000})
    folder = tmp_path_factory.mktemp("transactions") / "data"
    cluster.write(folder)
    found = [each for each in read_report(folder).findings if each.kind == "transaction_open"]
    assert len(found) == 4
    return {each.group_ids: each for each in found}


def test_what_an_application_left_is_one(findings: dict[tuple[str, ...], ReportFinding]) -> None:
    both, alone = findings["a",], findings["b",]
    assert (both.level, both.title, both.measured["transactions"]) == (Level.HIGH, "transactions hang", 2)
    assert both.problem.startswith(
        "2 transactions of no known transactional id (producer ids 100, 101) have been open, the oldest for 3 h"
    )
    assert 'They hold back the offsets of 2 of 2 partitions of "a": "orders" (partitions 0-1).' in both.problem
    assert [each.timestamp_ms for each in both.evidence] == [END_MS - 3 * HOUR, END_MS - 2 * HOUR]
    assert both.since_timestamp_ms == END_MS - 3 * HOUR
    assert both.rows == (
        Rows("pending_offsets", ("group_id=a",)),
        Rows("open_transactions", ("hanging_rule=no_entry",)),
    )
    assert "(the same for 1 more, each with its own partition and start offset)" in both.next[-1].what
    assert (alone.title, alone.rows[1]) == ("a transaction hangs", Rows("open_transactions", ("producer_id=102",)))


def test_what_a_coordinator_does_not_end_is_one(findings: dict[tuple[str, ...], ReportFinding]) -> None:
    late = findings["late",]
    assert (late.level, late.transactional_ids) == (Level.HIGH, ("one", "two"))
    assert "All belong to the coordinator of __transaction_state-0, which should abort them" in late.problem
    assert late.rows[0] == Rows("transactions", ("log_partition=0",))


def test_what_is_just_open_is_one_note_for_a_group(findings: dict[tuple[str, ...], ReportFinding]) -> None:
    new = findings["new",]
    assert (new.level, new.title, new.transactional_ids) == (Level.NOTE, "transactions are open", ("five", "six"))
    assert new.problem.endswith("These files do not show whether they have ended since.")


def test_a_transaction_of_a_two_phase_commit_is_open_on_purpose(tmp_path: Path) -> None:
    """It may be open for longer than any timeout, because it has none."""
    cluster = MadeCluster("prepared", END_MS, offsets_partitions=1)
    cluster.cleaned_until_ms = None
    cluster.logs.partitions = {OFFSETS: 1, TRANSACTIONS: 1}
    cluster.topic("orders", 1)
    cluster.topic("enriched", 1)
    life = Transactional(cluster, "prepared", "g", "enriched", 200, timeout_ms=2**31 - 1)
    since_ms = END_MS - 26 * 24 * HOUR
    life.start(since_ms)
    life.begin(since_ms, {("orders", 0): 7})
    cluster.commit("other", END_MS, {("orders", 0): 9})
    cluster.write(tmp_path / "data")

    (found,) = (each for each in read_report(tmp_path / "data").findings if each.kind == "transaction_open")

    assert (found.level, found.until_timestamp_ms) == (Level.NOTE, None)
    assert "with no timeout because its producer takes part in a two-phase commit" in found.problem
