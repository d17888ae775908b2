"""`--state` of table and report: refused combinations with their messages, and rows that stay the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_records_engine.sources.kept_logs import StateDirectory
from kafka_records_tables.tables.following.carried_rows import needed_by_state
from tests.cli.running import run


@pytest.fixture
def segments(topics_dir: Path) -> str:
    return str(topics_dir / "kafka-4.3" / "segments")


def test_rows_are_those_without_a_state(segments: str, tmp_path: Path) -> None:
    asked = ("table", "current_offsets", segments, "--format", "json")
    expected = run(*asked)
    for _ in range(2):
        found = run(*asked, "--state", str(tmp_path / "state"))
        assert (found.status, found.out) == (0, expected.out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("--as-of", "2h"),
            "--as-of cannot be combined with --state, because the directory holds only what the logs contain now. "
            "Leave out --state to read what the logs still contain of that moment; or take snapshots with "
            "kafka-records snapshot, and read them with --as-of",
        ),
        (("--engine", "spark"), "--state needs --engine local"),
    ],
)
def test_what_does_not_go_together(segments: str, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    for command in (("table", "groups"), ("report",)):
        ran = run(*command, segments, "--state", str(tmp_path / "state"), *arguments)
        assert (ran.status, ran.out) == (2, "")
        assert said in ran.err
    assert not (tmp_path / "state").exists()


def test_tables_of_which_nothing_is_kept(segments: str, tmp_path: Path) -> None:
    ran = run("table", "log_ends", segments, "--state", str(tmp_path / "state"))
    assert ran.status == 2
    what = "log_ends: state keeps only records of coordinators' topics, and none are read here: leave out state"
    assert what in ran.err


def test_a_directory_that_is_read_or_in_use(segments: str, tmp_path: Path) -> None:
    ran = run("table", "groups", segments, "--state", f"{segments}/state")
    assert (ran.status, ran.out) == (2, "")
    assert f"{segments}/state: is inside the source {segments}: choose a directory outside it" in ran.err
    with StateDirectory(tmp_path, needed_by_state).opened():
        ran = run("table", "groups", segments, "--state", str(tmp_path))
    assert (ran.status, ran.out) == (2, "")
    assert f"{tmp_path}: another run uses this state: wait until it has ended, or give each its own" in ran.err
