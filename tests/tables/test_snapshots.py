"""Tables over snapshots of logs that were cleaned between the runs.

Tables of the present state have the rows of the log at the last run. As of a moment at which a snapshot was taken, they
have the rows of the log at that time, regardless of what it has lost since. Coordinators answered at cuts of histories;
a snapshot that is taken at each cut always has these answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from kafka_records_engine.findings import INCOMPLETE_HISTORY, Finding
from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_engine.sources.snapshots import Snapshot
from kafka_records_tables import TABLES, read_table
from tests.conftest import DATA_DIR
from tests.sources.snapshot_logs import TOPIC, Logs, Moment, moments, rows_of
from tests.tables.histories import NAMES, decoded, history, may_be_noted
from tests.tables.test_cleaned import SEED, groups_back, is_known_by_commits, without_commits_that_may_go
from tests.variants import one_in
from tools.judge.answers import Loaded
from tools.judge.cleaner import Row, cleaned, last_stable
from tools.judge.comparing import differences

pytestmark = pytest.mark.slow

WHAT_IS = [name for name, table in TABLES.items() if table.topic == TOPIC and not table.is_history]


@pytest.mark.parametrize("name", ["kafka-4.3", "kafka-2.8", "kafka-4.3-expiry"])
def test_tables_of_a_captured_topic(name: str, tmp_path: Path) -> None:
    segments = DATA_DIR / "topics" / name / "segments"
    topics = Segments(segments).topics()
    take_snapshot(Segments(segments), tmp_path, topics[:1])
    take_snapshot(Segments(segments), tmp_path)
    asked = [table for table in TABLES if TABLES[table].topic in topics]
    assert len(asked) >= 3
    for table in asked:
        expected, found = read_table(table, segments), read_table(table, tmp_path)
        assert found.table.equals(expected.table)
        # The zeros at the end of files do not matter for records.
        assert _history_notes(found.findings) == _history_notes(expected.findings)
        assert (found.counts.records, found.counts.markers) == (expected.counts.records, expected.counts.markers)


def _history_notes(findings: tuple[Finding, ...]) -> list[Finding]:
    return [found for found in findings if found.reason != "UnreadLog"]


def _at(monkeypatch: pytest.MonkeyPatch, milliseconds: int) -> None:
    for module in ("snapshot_runs", "_stored.log_passes"):
        monkeypatch.setattr(f"kafka_records_engine.sources.{module}.now_ms", lambda: milliseconds)


def _is_time(moment: Moment, rows: list[Row]) -> bool:
    """Whether a later record has a later timestamp: otherwise no time corresponds to this moment."""
    return moment.end == len(rows) or rows[moment.end]["timestamp_ms"] > rows[moment.end - 1]["timestamp_ms"]


@pytest.mark.parametrize("name", one_in(15, NAMES[::2]))
def test_every_moment_at_which_a_broker_was_read_has_its_answer(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = history(name).rows.to_pylist()
    taken = []
    for moment in moments(name, Random(f"{name}-live{SEED}")):
        _at(monkeypatch, whole[moment.end - 1]["timestamp_ms"])
        assert take_snapshot(Logs((moment.live(),)), tmp_path).findings == []
        for table in WHAT_IS:
            result = read_table(table, tmp_path)
            assert result.findings == ()
            check_rows(table, read_table(table, moment.log()).table, result.table, moment, whole)
        _check_everything_is_there(tmp_path, moment)
        taken.append(moment)
    assert len(taken) > 1
    for moment in taken:
        if _is_time(moment, whole):
            for table in WHAT_IS:
                result = read_table(table, tmp_path, as_of=whole[moment.end - 1]["timestamp_ms"])
                if TABLES[table].reader.tells_open and result.findings:
                    # A cleaner may have removed what was open then before the first run.
                    assert [found.reason for found in result.findings] == [INCOMPLETE_HISTORY]
                    continue
                assert result.findings == ()
                check_rows(table, read_table(table, moment.log()).table, result.table, moment, whole)


@pytest.mark.parametrize("name", one_in(8, NAMES[1::4]))
def test_every_moment_at_which_files_were_read_has_its_answer_or_a_note(name: str, tmp_path: Path) -> None:
    """The age of files is unknown: if records are missing after them, the files may be older than those."""
    whole = history(name).rows.to_pylist()
    taken = []
    for moment in moments(name, Random(f"{name}-files{SEED}")):
        take_snapshot(Logs((moment.log(),)), tmp_path)
        taken.append(moment)
    for moment in taken:
        if _is_time(moment, whole):
            for table in WHAT_IS:
                result = read_table(table, tmp_path, as_of=whole[moment.end - 1]["timestamp_ms"])
                if not result.findings:
                    check_rows(table, read_table(table, moment.log()).table, result.table, moment, whole)
                assert {found.severity for found in result.findings} <= {"note"}


def _check_everything_is_there(root: Path, moment: Moment) -> None:
    (log,) = Snapshot(root).partitions(TOPIC)
    stored = {row["offset"]: row for row in rows_of(log).to_pylist()}
    assert {row["offset"]: row for row in moment.rows}.items() <= stored.items()


def check_rows(table: str, expected: pa.Table, found: pa.Table, moment: Moment, whole: list[Row]) -> None:
    """Check that both have the same rows, except for effects of a cleaner other than removing superseded records.

    Groups with only superseded or deleted commits disappear, and the two record types of a commit count as different
    keys. A snapshot that has the records has the results of the log before cleaning.
    """
    back = groups_back(whole[: moment.end], moment.rows)
    here = {_key(row): row for row in expected.to_pylist() if row["group_id"] not in back}
    kept = {_key(row): row for row in found.to_pylist() if row["group_id"] not in back}
    assert here.keys() <= kept.keys()
    for key, row in kept.items():
        if key not in here:
            is_gone = table == "groups" and (row["group_kind"], row["epoch"]) == ("simple", None)
            assert is_gone or (table in ("expirations", "deletable_offsets") and is_known_by_commits(row))
        elif table in ("expirations", "deletable_offsets"):
            assert without_commits_that_may_go(row) == without_commits_that_may_go(here[key])
        elif table == "groups" and row["epoch"] is None and row["log_offset"] > here[key]["log_offset"]:
            assert {**row, "log_offset": here[key]["log_offset"]} == here[key]
        else:
            assert row == here[key]


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row.get("kind"), row["group_id"], row.get("topic"), row.get("partition")


def _cleaned_behind(name: str) -> Iterator[tuple[int, list[Row]]]:
    """The log at each cut; it is cleaned as far as possible after it."""
    rows = history(name).rows.to_pylist()
    left: list[Row] = []
    written = 0
    for cut in history(name).cuts:
        left, written = left + rows[written : cut + 1], cut + 1
        yield cut, left
        left = cleaned(left, min(left[-1]["offset"], last_stable(left)), left[-1]["offset"])


def test_a_cleaner_takes_much_of_these_logs_before_the_last_cut() -> None:
    left = [list(_cleaned_behind(name))[-1] for name in NAMES]
    assert sum(len(rows) for _, rows in left) < 0.8 * sum(cut + 1 for cut, _ in left)


@pytest.mark.parametrize("name", one_in(20, NAMES))
def test_a_snapshot_at_each_cut_has_for_ever_what_coordinators_said(name: str, tmp_path: Path) -> None:
    """The log is cleaned after each snapshot, as much as a cleaner can."""
    whole = history(name)
    rows = whole.rows.to_pylist()
    times = [row["timestamp_ms"] for row in rows]
    for cut, left in _cleaned_behind(name):
        take_snapshot(Logs((Moment(cut + 1, left, left[-1]["offset"]).log(),)), tmp_path)
    for cut in whole.cuts:
        if cut + 1 == len(rows) or times[cut + 1] > times[cut]:
            loaded = Loaded(whole, cut, partial(_read, tmp_path, name, as_of=times[cut]))
            with decoded(name).used():
                assert list(differences(loaded)) == []


def _read(root: Path, name: str, table: str, as_of: int, **options: Any) -> pa.Table:
    result = read_table(table, root, as_of=as_of, **options)
    assert {finding.reason for finding in result.findings} <= may_be_noted(name, options)
    return result.table
