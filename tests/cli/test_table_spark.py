"""`table --engine spark`: the same rows and messages as by processes on this machine."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from kafka_records_tables.console import endings
from tests.cli.running import run
from tests.cli.segment_bytes import batch, commit, write_segment
from tests.cli.terminals import run_on

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("name", ["groups", pytest.param("offset_commits", marks=pytest.mark.matrix)])
def test_spark_and_processes_agree(topics_dir: Path, name: str) -> None:
    arguments = ("table", name, str(topics_dir / "kafka-4.3" / "segments"), "--format", "json")
    assert run(*arguments, "--engine", "spark") == run(*arguments)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_and_processes_tell_the_same_of_damage(tmp_path: Path) -> None:
    key, value = commit("torn", 7)
    assert value is not None
    spoiled = bytearray(batch(2, [commit("lost", 2)]))
    spoiled[-1] ^= 1
    write_segment(tmp_path, batch(0, [commit("a", 1), (key, value[:12])]), bytes(spoiled), batch(3, [commit("b", 5)]))
    arguments = ("table", "current_offsets", str(tmp_path), "--format", "csv", "--where", "offset>1")
    local = run(*arguments)
    assert (local.status, len(local.err.splitlines())) == (1, 5)
    assert run(*arguments, "--engine", "spark") == local


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process, which starts Spark, in a distant time zone."""
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        [sys.executable, "-m", "kafka_records_tables.commands", *arguments, "--engine", "spark"],
        env={**os.environ, "PYTHONPATH": paths, "TZ": "Pacific/Kiritimati", "SPARK_REMOTE": "sc://nowhere"},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.spark
def test_a_session_of_its_own_keeps_quiet_and_counts_in_utc(topics_dir: Path) -> None:
    source = str(topics_dir / "kafka-4.3-expiry" / "segments")
    done = command("table", "current_offsets", source, "--format", "json", "--master", "local[1]")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.stderr == f"{len(rows)} rows from 88 records and 0 transaction markers in 4 files of 4 partitions\n"
    assert done.returncode == 0
    assert rows
    for row in rows:
        assert datetime.fromisoformat(row["commit_timestamp"]).timestamp() * 1000 == row["commit_timestamp_ms"]


@pytest.mark.spark
@pytest.mark.matrix
def test_spark_on_a_terminal(topics_dir: Path) -> None:
    source = str(topics_dir / "kafka-4.3-expiry" / "segments")
    seen = run_on("table", "groups", source, "--engine", "spark", "--format", "json", stdout="pipe")
    assert [json.loads(line)["group_id"] for line in seen.out.splitlines()] == ["d-classic-live", "e-consumer-live"]
    screen = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.screen)
    assert "starting Spark" in screen
    assert screen.endswith("2 rows from 88 records and 0 transaction markers in 4 files of 4 partitions\n")
    assert seen.status == 0


@pytest.mark.spark
def test_spark_that_does_not_start_says_why(topics_dir: Path) -> None:
    done = command("table", "groups", str(topics_dir / "kafka-4.3" / "segments"), "--conf", "spark.driver.memory=much")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "kafka-records: Spark did not start: Invalid maximum heap size: -Xmxmuch\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--master", "local[1]"), "--master needs --engine spark"),
        (("--conf", "spark.x=1"), "--conf needs --engine spark"),
        (("--conf", "driver.memory=4g"), "argument --conf: 'driver.memory=4g' is not spark.SOMETHING=VALUE"),
        (
            ("--engine", "spark", "--processes", "2"),
            '--processes needs --engine local; --master "local[N]" sets how many Spark starts',
        ),
    ],
)
def test_options_of_the_other_engine(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ran = run("table", "groups", str(tmp_path), *arguments)
    assert (ran.status, ran.err.splitlines()[0]) == (2, f"kafka-records table: error: {message}")


def test_no_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(endings, "find_spec", lambda name: None if name == "pyspark" else object())
    message = "table --engine spark needs pyspark, which is not installed: pip install -e '.[spark]'"
    assert run("table", "groups", str(tmp_path), "--engine", "spark") == (2, "", f"kafka-records: {message}\n")


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    message = "Spark needs Java 17 or later, but there is no java on PATH: install a JDK or set JAVA_HOME."
    assert run("table", "groups", str(tmp_path), "--engine", "spark") == (2, "", f"kafka-records: {message}\n")
