"""Paths whose bytes are not UTF-8, which Linux allows and Arrow does not."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kafka_records_engine.log.files.discovery import LogSourceError
from kafka_records_engine.sources.snapshot_runs import take_snapshot
from tests.cli.running import run

_ODD = os.fsdecode(b"odd-\xff")


@pytest.fixture
def log(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments" / "__consumer_offsets-5")


@pytest.mark.parametrize("ending", [".json", ".html", ".txt"])
def test_a_report_is_written_there(ending: str, log: str, tmp_path: Path) -> None:
    path = tmp_path / f"{_ODD}{ending}"
    ran = run("report", log, "--output", str(path))
    assert (ran.status, path.stat().st_size > 0) == (0, True), ran.err


@pytest.mark.parametrize("ending", [".json", ".html", ".txt"])
def test_a_report_about_files_there_is_written(ending: str, log: str, tmp_path: Path) -> None:
    source = shutil.copytree(log, tmp_path / _ODD / "__consumer_offsets-5")
    path = tmp_path / f"report{ending}"
    ran = run("report", str(source.parent), "--output", str(path))
    assert (ran.status, bool(path.read_text(encoding="utf-8"))) == (0, True), ran.err


def test_a_table_is_written_there(log: str, tmp_path: Path) -> None:
    path = tmp_path / f"{_ODD}.parquet"
    assert run("table", "groups", log, "--output", str(path)).status == 0
    with path.open("rb") as file:
        assert pq.read_table(file).num_rows == 6


def test_a_snapshot_there_is_refused_before_anything_is_made(log: str, tmp_path: Path) -> None:
    path = tmp_path / _ODD
    ran = run("snapshot", log, "--output", str(path))
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"kafka-records: {tmp_path}/odd-\\udcff: this path is not UTF-8, but Arrow needs UTF-8 to write the files: "
        f"choose another directory\n"
    )
    with pytest.raises(LogSourceError, match=r"odd-\\udcff: this path is not UTF-8"):
        take_snapshot(log, path)
    assert not path.exists()
