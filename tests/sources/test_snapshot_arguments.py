"""The arguments of `take_snapshot`, and its errors for others before it writes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_records_engine.sources.segment_files import Segments
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from kafka_records_tables import read_table
from tests.conftest import DATA_DIR

CAPTURED = DATA_DIR / "topics" / "kafka-4.3" / "segments"
CONSUMERS = "__consumer_offsets"


@pytest.mark.parametrize(
    ("source", "options", "text"),
    [
        (3, {}, "a source must be a path or several "),
        (CAPTURED, {"path": 3}, "path must be a path, not 3"),
        (CAPTURED, {"path": b"kept"}, "path must be a path, not b'kept'"),
        (CAPTURED, {"topics": CONSUMERS}, "topics must be a list of names: write ['__consumer_offsets']"),
        (CAPTURED, {"topics": 3}, "topics must be a list of names, not 3"),
        (CAPTURED, {"topics": []}, "topics is empty; leave it out to store all topics"),
        (CAPTURED, {"file_bytes": "1M"}, "file_bytes must be a number of bytes, not '1M'"),
        (CAPTURED, {"file_bytes": 0}, "file_bytes must be a number of bytes above 0, not 0"),
        (CAPTURED, {"on_finding": 3}, "on_finding must be a function, not 3"),
    ],
)
def test_arguments_that_do_not_fit(source: Any, options: dict[str, Any], text: str, tmp_path: Path) -> None:
    path = tmp_path / "kept"
    with pytest.raises((TypeError, ValueError)) as failure:
        take_snapshot(source, **{"path": path, **options})
    assert str(failure.value).startswith(text)
    assert not path.exists()


def test_a_path_is_a_source(tmp_path: Path) -> None:
    take_snapshot(str(CAPTURED), tmp_path / "kept", [CONSUMERS])
    take_snapshot(Segments(CAPTURED), tmp_path / "same", [CONSUMERS])
    kept, same = (read_table("current_offsets", tmp_path / name).table for name in ("kept", "same"))
    assert kept.num_rows == 78
    assert kept.equals(same)
