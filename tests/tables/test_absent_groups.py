"""Messages about requested groups that do not exist, and about tables without groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.findings import ABSENT_GROUP
from kafka_records_tables import read_table, read_tables
from kafka_records_tables.read import stream_table
from kafka_records_tables.report.making import read_report
from tests.tables import view_without_groups

THERE, ABSENT = "fraud-scoring", "fraud-scorin"
NOTE = f"no row is about {ABSENT!r}"


@pytest.fixture
def segments(topics_dir: Path) -> Path:
    return topics_dir / "kafka-4.3" / "segments"


def noted(result: Any) -> list[str]:
    assert all(each.severity == "note" for each in result.findings)
    return [each.what for each in result.findings if each.reason == ABSENT_GROUP]


@pytest.mark.parametrize("name", ["current_offsets", "groups", "lag", "group_lag"])
def test_a_group_that_is_not_there_is_a_note(segments: Path, name: str) -> None:
    result = read_table(name, segments, group=[ABSENT, THERE], columns=["log_partition"])
    assert (noted(result), len(result) > 0, result.is_complete) == ([NOTE], True, True)
    assert noted(read_table(name, segments, group=THERE)) == []
    assert noted(read_table(name, segments)) == []


def test_it_is_a_note_of_a_stream_at_its_end(segments: Path) -> None:
    with stream_table("groups", segments, group=ABSENT) as stream:
        assert (list(stream), noted(stream)) == ([], [NOTE])


def test_several_tables_say_it_of_a_group_that_none_of_them_has(segments: Path) -> None:
    results = read_tables(["groups", "pending_offsets"], segments, group=[ABSENT, THERE])
    assert (len(results["groups"]), len(results["pending_offsets"])) == (1, 0)
    assert [noted(each) for each in (results, *results.values())] == [[NOTE]] * 3


def test_a_report_says_it(segments: Path) -> None:
    report = read_report(segments, group=ABSENT)
    assert [each.what for each in report.reading if each.reason == ABSENT_GROUP] == [NOTE]


def test_a_view_without_groups_takes_none(segments: Path) -> None:
    (row,) = read_table(view_without_groups.TABLE, segments).table.to_pylist()
    assert row["offset_count"] > 10
    for read in (read_table, stream_table):
        with pytest.raises(ValueError, match=r"^offset_counts has no column that names a group: leave out group$"):
            read(view_without_groups.TABLE, segments, group=THERE)
