"""Data directories with unusual names, files and numbers: every command has the same messages about them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.cli.segment_bytes import batch, commit, write_segment

COMMANDS = ("dump", "counts")


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A directory whose name is not UTF-8, with a log of two partitions and many files that are not logs."""
    data = tmp_path / os.fsdecode(b"da\xffta")
    for number in range(2):
        write_segment(data, batch(0, [commit("g", 5)]), folder=f"__consumer_offsets-{number}")
    for name in ("-9999999999", "-3000000000", "x--9999999999", "__consumer_offsets-3000000000"):
        write_segment(data, batch(0, [commit("g", 6)]), folder=name)
    os.mkfifo(data / "__consumer_offsets-0" / f"{7:020}.log")
    (data / "log-start-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 0 {'1' * 5000}\n")
    return data


def findings(command: str, data: Path) -> list[str]:
    ran = run(command, str(data))
    assert ran.status == 1
    return sorted(line for line in ran.err.splitlines() if "da\\udcffta" in line)


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_said(odd: Path, command: str) -> None:
    shown = f"{odd.parent}/da\\udcffta"
    assert findings(command, odd) == sorted(
        [
            f"{shown}/log-start-offset-checkpoint: line 3 has the offset {'1' * 40}… of 5000 digits, which is more than"
            " 9223372036854775807 (the log is read from its first record)",
            f"note: {shown}/__consumer_offsets-0/{0:020}.log: no file has offsets 1 to 6"
            " (the log cleaner has removed them, or a file is missing: if that is certain, a report has a finding "
            "about it)",
            f"{shown}/__consumer_offsets-0/{7:020}.log: this is a named pipe, but only regular files are read"
            " (nothing in it is read)",
        ]
    )


def test_what_is_read(odd: Path) -> None:
    dumped = run("dump", str(odd))
    assert len(dumped.lines) == 2
    assert "2 records and 0 transaction markers in 3 files of 2 partitions" in dumped.err
    assert "2 damaged places in the files: 0 records known to be lost, 0 bytes not read" in dumped.err


@pytest.mark.parametrize("command", COMMANDS)
def test_a_source_that_is_not_there(odd: Path, command: str) -> None:
    ran = run(command, str(odd / "missing"))
    assert ran.status == 2
    assert ran.err == (f"kafka-records: {odd.parent}/da\\udcffta/missing: there is no such file or directory\n")
