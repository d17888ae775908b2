"""What is left to read is the same according to the rows of a snapshot and to the headers of batches in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table
from tools.incidents.recording import unpack

RECORDED = Path(__file__).resolve().parents[1] / "data" / "incidents"


@pytest.mark.parametrize("name", ["dead_instance_transaction-1", "deleted_before_read-1"])
def test_a_snapshot_of_all_topics_knows_the_lag_of_files(name: str, tmp_path: Path) -> None:
    data = unpack(RECORDED / name, tmp_path / "data")
    take_snapshot(Segments(data), tmp_path / "kept", Segments(data).topics())
    of_files = read_table("lag", data, processes=1).table.to_pylist()
    of_rows = read_table("lag", tmp_path / "kept", processes=1).table.to_pylist()
    same = ("group_id", "topic", "partition", "end_offset", "lag", "unread", "held_back", "problem")
    assert [[row[each] for each in same] for row in of_rows] == [[row[each] for each in same] for row in of_files]
    assert sum(row["unread"] or 0 for row in of_rows) > 30
    assert any(row["held_back"] for row in of_rows) == ("transaction" in name)
    for ours, theirs in zip(of_rows, of_files, strict=True):
        # The header of a batch has the time of its first record.
        assert (ours["unread_timestamp_ms"] is None) == (theirs["unread_timestamp_ms"] is None)
        if ours["unread_timestamp_ms"] is not None:
            later = ours["unread_timestamp_ms"] - theirs["unread_timestamp_ms"]
            assert later == 0 if theirs["known_by"] == "record" else 0 <= later < 5000
            assert ours["known_by"] == "record"
