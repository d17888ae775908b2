"""Topics that no record of `__consumer_offsets` names, in addition to those of a recorded cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafka_records_tables.report.levels import Level
from kafka_records_tables.report.making import read_report
from kafka_records_tables.report.report_parts import ReportFinding
from tools.incidents.recording import unpack

RECORDED = Path(__file__).resolve().parents[1] / "data" / "incidents" / "share_archived-1"
READ = "carts-raw"
"""A topic that only a share group reads."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of the cluster, with copies of a topic's log under another name and under the name of an
    internal topic."""
    data = unpack(RECORDED, tmp_path / "data")
    for name in ("nobody.reads-0", "nobody.reads-1", "__own-0"):
        shutil.copytree(data / f"{READ}-0", data / name, ignore=shutil.ignore_patterns("partition.metadata"))
    return data


def _unread(data: Path) -> list[ReportFinding]:
    return [each for each in read_report(data, processes=1).findings if each.kind == "topic_unread"]


def test_it_is_a_note_with_both_causes_and_the_metric_that_decides(data: Path) -> None:
    (found,) = _unread(data)
    assert (found.level, found.topics) == (Level.NOTE, ("nobody.reads",))
    assert found.scale == {"records": 2 * 579, "partitions": 2}
    assert [each.name for each in found.causes] == ["nobody_reads", "reads_without_group"]
    assert found.decision is not None
    assert found.next[0].what == found.decision.question
    assert "BytesOutPerSec" in found.next[0].what
    assert found.since_timestamp_ms is not None
    assert found.since_note == "or earlier: its oldest record in the files"


def test_a_missing_log_of_the_offsets_topic_may_have_its_reader(data: Path) -> None:
    shutil.rmtree(data / "__consumer_offsets-2")
    assert _unread(data) == []
