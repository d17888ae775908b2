"""The benchmark of times in `lag`: it runs on a tiny data directory, and the answers are right. No time is asserted."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_engine.sources.segment_files import Segments
from kafka_records_tables import read_table
from tools.benchmarks import lag_times
from tools.benchmarks.lag_times import WithoutTimes, write_directory

TINY = ("--groups", "20", "--offsets", "200", "--partitions", "12", "--rounds", "1", "--processes", "1")


@pytest.mark.slow
def test_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    lag_times.main(TINY)
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "20 groups, 200 offsets, 12 partitions, 1 processes" in printed.out
    assert "time against that without times: " in printed.out


def test_without_times_all_else_is_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write_directory(folder, 20, 200, 12)
    told, untold = (read_table("lag", source).table for source in (Segments(folder), WithoutTimes(Segments(folder))))
    assert told["unread"].equals(told["lag"])
    assert untold["unread_timestamp_ms"].null_count == untold.num_rows == 200
    names = [
        name for name in told.column_names if "unread" not in name and name not in ("held_back", "known_by", "lag_ms")
    ]
    assert told.select(names).equals(untold.select(names))
