"""The tables show the planted problem of an incident, and nothing like it in healthy topics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from kafka_records_tables import read_table
from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from tests.report.healthy import HEALTHY
from tests.report.incidents import END_MS, INCIDENTS, Incident, write_all, write_incident
from tests.report.made_up_cluster import DAY, HOUR, MINUTE
from tests.variants import mostly

Row = dict[str, Any]
_Rows = Callable[..., list[Row]]
_MOST_BYTES = 2_000_000


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", [*INCIDENTS])
def test_every_incident_is_small_and_told(incident: Callable[[str], Incident], name: str) -> None:
    """The groups and topics of the truth exist."""
    found = incident(name)
    assert sum(map(len, _content(found.folder).values())) < _MOST_BYTES
    logs = {path.name.rpartition("-")[0] for path in found.folder.iterdir() if path.is_dir()}
    assert {*found.truth.topics} <= logs
    assert found.as_of_ms - 7 * DAY < found.truth.since_ms < found.as_of_ms
    assert found.truth.group_ids


def test_the_same_name_and_time_give_the_same_bytes(incident: Callable[[str], Incident], tmp_path: Path) -> None:
    """The times of files are those of the incident too."""
    first = incident("hanging_transaction")
    second = write_incident("hanging_transaction", tmp_path / "again")
    assert _content(first.folder) == _content(second.folder)
    checkpoint = "replication-offset-checkpoint"
    assert (second.folder / checkpoint).stat().st_mtime_ns == second.as_of_ms * 1_000_000


def test_numbers_do_not_tell_what_is_in_a_folder(tmp_path: Path) -> None:
    """The answers are in a separate file."""
    names = ["endless_rebalance", "simple_groups", "expiring_offsets"]
    answers = write_all(tmp_path, names, end_ms=1_800_000_000_000, is_numbered=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["01", "02", "03"] == [*answers]
    told = [answer["name"] for answer in answers.values() if isinstance(answer, dict)]
    assert sorted(told) == sorted(names)
    assert told != names


def test_offsets_of_a_group_that_was_stopped_are_about_to_expire(planted: _Rows, incident: Any) -> None:
    """The group has a large backlog."""
    found = incident("expiring_offsets")
    rows = planted(found.name, "expirations", group=found.truth.group_ids)
    assert {row["rule"] for row in rows} == {"state_timestamp", "last_offset"}
    assert {row["expires_timestamp_ms"] for row in rows} == {found.truth.since_ms + 7 * DAY}
    assert found.as_of_ms < found.truth.since_ms + 7 * DAY < found.as_of_ms + 4 * HOUR
    others = {row["group_id"] for row in planted(found.name, "expirations", within="1d", as_of=found.as_of_ms)}
    assert others == {*found.truth.group_ids}
    (lag,) = planted(found.name, "group_lag", group=found.truth.group_ids)
    assert lag["lag"] > 100_000


def test_a_transaction_hangs_and_holds_back_two_partitions(planted: _Rows, incident: Any) -> None:
    """No transactional id has it open."""
    truth = incident("hanging_transaction").truth
    (row,) = planted("hanging_transaction", "open_transactions")
    assert (row["is_hanging"], row["hanging_rule"], row["state"]) == (True, "no_entry", "CompleteAbort")
    assert (row["transactional_id"],) == truth.transactional_ids
    assert row["since_timestamp_ms"] == truth.since_ms
    held = {(each["group_id"], each["topic"], each["partition"]) for each in row["holds_back"]}
    assert held == {(*truth.group_ids, *truth.topics, number) for number in truth.partitions}


def test_two_committers_take_turns(planted: _Rows, incident: Any) -> None:
    """The first fall of each partition has no sawtooth before it."""
    truth = incident("two_committers").truth
    rows = planted("two_committers", "regressions")
    assert {(row["group_id"], row["topic"]) for row in rows} == {(*truth.group_ids, *truth.topics)}
    kinds = Counter(row["kind"] for row in rows)
    assert kinds["reset_while_empty"] == len(truth.partitions)
    assert kinds["sawtooth"] > 20 * len(truth.partitions)
    assert kinds.total() == kinds["reset_while_empty"] + kinds["sawtooth"]


@pytest.mark.matrix
def test_a_group_rebalances_every_minute(planted: _Rows, incident: Any) -> None:
    """It falls behind, and no other group does."""
    found = incident("endless_rebalance")
    rows = planted(found.name, "timeline", group=found.truth.group_ids)
    times = [row["at_timestamp_ms"] for row in rows if row["event"] == "rebalance_completed"]
    recent = [each for each in times if each >= found.truth.since_ms]
    assert len(recent) > 180
    assert max(b - a for a, b in pairwise(recent)) < 2 * MINUTE
    lags = {row["group_id"]: row["lag"] for row in planted(found.name, "group_lag")}
    assert max(lags, key=lambda group: lags[group] or 0) == found.truth.group_ids[0]


def test_offsets_are_reset_while_a_group_is_empty(planted: _Rows, incident: Any) -> None:
    """By an amount of three days."""
    truth = incident("reset_by_administrator").truth
    rows = planted("reset_by_administrator", "regressions")
    assert {(row["kind"], row["group_id"]) for row in rows} == {("reset_while_empty", *truth.group_ids)}
    assert tuple(row["partition"] for row in rows) == truth.partitions
    assert {row["commit_timestamp_ms"] for row in rows} == {truth.since_ms}
    events = planted("reset_by_administrator", "timeline", group=truth.group_ids)
    assert [row["at_timestamp_ms"] for row in events if row["event"] == "offsets_reset"] == [truth.since_ms]


def test_a_topic_was_recreated(planted: _Rows, incident: Any) -> None:
    """One group started over, and the other has offsets of the topic that is gone."""
    truth = incident("topic_recreated").truth
    began, waits = truth.group_ids
    rows = planted("topic_recreated", "regressions")
    assert {(row["kind"], row["group_id"], row["topic"]) for row in rows} == {("topic_recreated", began, *truth.topics)}
    problems = {(row["group_id"], row["problem"]) for row in planted("topic_recreated", "lag") if row["problem"]}
    assert problems == {(waits, "topic_recreated")}


def test_records_of_a_share_partition_are_archived(planted: _Rows, incident: Any) -> None:
    """Others are about to be archived, and the first one holds back the start offset."""
    truth = incident("poisoned_share").truth
    rows = [row for row in planted("poisoned_share", "share_partitions") if row["archived_count"]]
    (row,) = rows
    assert (row["group_id"], row["partition"]) == (*truth.group_ids, *truth.partitions)
    assert row["archived_count"] > 50
    assert {each["delivery_count"] for each in row["batches"] if each["delivery_state_name"] == "Archived"} == {5}
    waits = [each for each in row["batches"] if each["delivery_state_name"] == "Available"]
    assert waits[0]["first_offset"] == row["start_offset"]
    assert {each["delivery_count"] for each in waits} == {1, 2, 3, 4}


def test_a_group_floods_the_topic(planted: _Rows, incident: Any) -> None:
    """Its commits repeat the committed offsets."""
    found = incident("flooding_group")
    rows = planted(found.name, "activity")
    sizes: Counter[str] = Counter()
    for row in rows:
        sizes[row["group_id"]] += row["key_bytes"] + row["value_bytes"]
    assert sizes[found.truth.group_ids[0]] > sizes.total() / 2
    own = [row for row in rows if row["group_id"] == found.truth.group_ids[0] and row["topic"] is not None]
    worst = max(own, key=lambda row: row["commits"])
    assert worst["commits"] > 3000
    assert worst["repeated_commits"] > 0.8 * worst["commits"]


def test_a_segment_is_lost_and_offsets_are_below_the_log_start(incident: Any, planted: _Rows) -> None:
    """The reader names the gap; what is missing is not read as damage."""
    found = incident("lost_segment")
    result = read_table("timeline", found.folder, processes=1)
    gaps = [str(finding) for finding in result.findings if "no file has" in finding.what]
    assert len(gaps) == 1
    assert "a file is missing" in gaps[0]
    rows = [row for row in planted("lost_segment", "lag") if row["problem"]]
    assert {(row["group_id"], row["topic"], row["problem"]) for row in rows} == {
        (*found.truth.group_ids, *found.truth.topics, "below_log_start")
    }
    assert all(row["lost"] > 1000 for row in rows)


def test_a_coordinator_does_not_load_its_partition(planted: _Rows, incident: Any) -> None:
    """The reason is records of a newer broker. There are no later records of its groups."""
    truth = incident("coordinator_not_loaded").truth
    rows = planted("coordinator_not_loaded", "checks")
    assert {(row["check"], row["level"], row["log_partition"]) for row in rows} == {
        ("undecodable_record", "broken", *truth.partitions)
    }
    assert {row["log_timestamp_ms"] for row in rows} == {truth.since_ms}
    assert len(truth.group_ids) > 2
    commits = planted("coordinator_not_loaded", "current_offsets", is_damaged=True)
    frozen = [row for row in commits if row["log_partition"] == truth.partitions[0]]
    assert max(row["commit_timestamp_ms"] for row in frozen) < truth.since_ms


@pytest.mark.matrix
@pytest.mark.parametrize("name", [*HEALTHY])
def test_no_table_has_anything_to_say_about_a_healthy_topic(healthy: Callable[[str], Path], name: str) -> None:
    """Nothing is damaged, nothing contradicts itself, and no offset fell."""
    folder = healthy(name)
    assert sum(map(len, _content(folder).values())) < _MOST_BYTES
    for table in ("checks", "regressions", "lag"):
        result = read_table(table, folder, processes=1)
        assert [str(finding) for finding in result.findings if finding.severity == "damage"] == []
        if table == "lag":
            assert {row["problem"] for row in result.table.to_pylist()} <= {None}
        else:
            assert result.table.to_pylist() == []


def test_where_groups_are_not_checked_no_share_state_is_called_unnamed(healthy: Callable[[str], Path]) -> None:
    """A cleaner has cleaned the log, and the request is about an earlier moment, so it is unknown what the groups
    subscribed to."""
    result = read_table("checks", healthy("share_groups"), processes=1, as_of=END_MS)
    assert any("groups and their assignments are not checked" in str(finding) for finding in result.findings)
    assert result.table.to_pylist() == []


_NAMED: Final = {
    "expiring_offsets": {"offsets_expiring"},
    "hanging_transaction": {"transaction_open"},
    "two_committers": {"two_committers"},
    "endless_rebalance": {"endless_rebalances"},
    "reset_by_administrator": {"offsets_reset"},
    "topic_recreated": {"topic_recreated"},
    "poisoned_share": {"share_records_archived"},
    "flooding_group": {"commits_flooding"},
    "lost_segment": {"offsets_below_log_start", "segment_lost"},
    "coordinator_not_loaded": {"coordinator_cannot_load"},
}
"""By incident, the kinds of findings that name it; no other one is above a note."""

_USUALLY_REPORTED: Final = ("flooding_group",)
_LEVELS: Final = {"flooding_group": Level.NOTE, "reset_by_administrator": Level.MODERATE}
"""The levels: two commits per second are no load for brokers, and a reset may have been planned. All other findings are
HIGH or worse."""


@pytest.mark.parametrize("name", mostly(((name,) for name in _NAMED), lambda name: name in _USUALLY_REPORTED))
def test_the_report_names_an_incident_and_nothing_else(incident: Callable[[str], Incident], name: str) -> None:
    """The finding has the group, and the time of the incident or a later one."""
    found = incident(name)
    report = read_report(found.folder, processes=1)
    named = [each for each in report.findings if each.kind in _NAMED[name]]
    told = [each for each in report.findings if each.level > Level.NOTE] or named
    assert {each.kind for each in told} == _NAMED[name]
    worst = max(each.level for each in told)
    assert worst == _LEVELS.get(name, max(worst, Level.HIGH))
    assert {*found.truth.group_ids} & {group for each in told for group in each.group_ids}


@pytest.mark.matrix
def test_a_coordinator_that_cannot_load_stops_all_groups_of_its_partition(incident: Callable[[str], Incident]) -> None:
    """Most of the groups have no unreadable record. One should have expired since, but could not be deleted."""
    found = incident("coordinator_not_loaded")
    (told,) = (each for each in read_report(found.folder, processes=1).findings if each.level == Level.CRITICAL)
    assert {*told.group_ids} - {*found.truth.group_ids} == {"console-consumer-48213"}
    assert {*found.truth.group_ids} < {*told.group_ids}
    assert f"{len(told.group_ids)} groups have their records there, and all of them are affected" in told.problem
    assert told.problem.endswith("so this seems to have happened already.")
    assert told.confidence == "medium"
    assert any("docs/rescue.md" in step.what for step in told.next)


@pytest.mark.matrix
def test_offsets_that_nobody_cleans_up_say_nothing_of_the_retention(incident: Callable[[str], Incident]) -> None:
    """Some are overdue, because the coordinator of their partition does not load."""
    report = read_report(incident("coordinator_not_loaded").folder, processes=1)
    expirations = report.tables["expirations"].to_pylist()
    assert any((each["expires_timestamp_ms"] or 2**62) < report.request.at_timestamp_ms - HOUR for each in expirations)
    assert "retention_differs" not in {each.kind for each in report.findings}


@pytest.mark.matrix
def test_a_transaction_without_an_entry_tells_why_nobody_ends_it(incident: Callable[[str], Incident]) -> None:
    """Its commits were written after its end. They show which offsets wait, and since when."""
    found = incident("hanging_transaction")
    (told,) = (each for each in read_report(found.folder, processes=1).findings if each.level > Level.NOTE)
    assert told.partitions == found.truth.partitions
    assert "timeout" not in told.problem
    assert "CompleteAbort since " in told.problem
    assert "its commits were written later" in told.problem
    assert "2 of 6 partitions" in told.problem
    assert {each.timestamp_ms for each in told.evidence} == {found.truth.since_ms}


@pytest.mark.matrix
def test_offsets_that_expire_at_once_are_due_since_the_group_was_empty(incident: Callable[[str], Incident]) -> None:
    """The time is not that of its last commit."""
    found = incident("expiring_offsets")
    (told,) = (each for each in read_report(found.folder, processes=1).findings if each.level > Level.NOTE)
    assert told.since_timestamp_ms == found.truth.since_ms
    assert "expire, all at 2026-11-16 12:00:07 UTC, before this report was made: " in told.problem


@pytest.mark.matrix
def test_an_endless_rebalance_tells_what_stands_still(incident: Callable[[str], Incident]) -> None:
    """There are hardly any commits meanwhile."""
    found = incident("endless_rebalance")
    report = read_report(found.folder, processes=1)
    (told,) = (each for each in report.findings if each.level > Level.NOTE)
    own = [row for row in report.tables["current_offsets"].to_pylist() if row["group_id"] in found.truth.group_ids]
    still = sum(row["commit_timestamp_ms"] < told.since_timestamp_ms for row in own)
    assert told.topics == found.truth.topics
    assert 0 < still == len(own) - 1
    assert f"{still} of {len(own)} partitions have no commit since" in told.problem


@pytest.mark.matrix
def test_two_committers_are_one_finding_that_counts_its_first_tooth(incident: Callable[[str], Incident]) -> None:
    """The counts are per partition. Offsets that rise in two sequences in turns have one cause."""
    report = read_report(incident("two_committers").folder, processes=1)
    (told,) = (each for each in report.findings if each.level > Level.NOTE)
    rows = report.tables["regressions"].num_rows
    assert told.measured["falls"] == rows
    assert f'"{told.topics[0]}" (partitions 0-3) rose and fell in turns' in told.problem
    assert f"{rows // 4} times on each of 4 partitions" in told.problem
    assert {condition for each in told.rows for condition in each.where if condition.startswith("kind=")} == {
        "kind=sawtooth",
        "kind=reset_while_empty",
    }
    assert told.confidence == "high"


@pytest.mark.matrix
def test_a_group_that_waits_for_a_topic_that_is_gone_is_said_to_have_no_members(
    incident: Callable[[str], Incident],
) -> None:
    """The topic was recreated when the first commit names the new one. Both groups are in one finding."""
    found = incident("topic_recreated")
    began, waits = found.truth.group_ids
    (told,) = (each for each in read_report(found.folder, processes=1).findings if each.level > Level.NOTE)
    assert (told.group_ids, told.level) == ((waits, began), Level.HIGH)
    assert f'1 group has continued with the new one ("{began}")' in told.problem
    assert f'The group "{waits}" has had no members since ' in told.problem
    assert told.since_timestamp_ms is not None
    assert found.truth.since_ms <= told.since_timestamp_ms < found.truth.since_ms + 5 * MINUTE


@pytest.mark.parametrize("name", mostly(((name,) for name in HEALTHY), lambda name: name == "exactly_once"))
def test_the_report_of_a_healthy_topic_is_calm(healthy: Callable[[str], Path], name: str) -> None:
    """It may only have notes."""
    assert [each for each in read_report(healthy(name), processes=1).findings if each.level > Level.NOTE] == []
