"""The benchmarks run, compare what they claim to compare, and end with the right status. No time is asserted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_records_runtime.schema import MessageSchema
from tools.benchmarks import row_codecs
from tools.benchmarks._row_contenders import CONTENDERS, RowCodec

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = "tools/benchmarks/row_codecs.py"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, SCRIPT, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


def case(name: str) -> row_codecs.Case:
    return next(each for each in row_codecs.cases() if each.name == name)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    """All cases with tiny rounds: the output, and the figures."""
    path = tmp_path_factory.mktemp("benchmark") / "rows.json"
    done = run("--rounds", "2", "--seconds", "0.0001", "--json", str(path))
    assert done.returncode == 0, done.stderr
    return done, json.loads(path.read_text(encoding="utf-8"))


def test_every_contender_takes_part_in_every_case(
    everything: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    done, figures = everything
    assert "is not timed" not in done.stderr
    assert [(row["message"], row["direction"]) for row in figures["rows"]] == [
        (each.name, direction) for each in row_codecs.cases() for direction in ("decode", "encode")
    ]
    for row in figures["rows"]:
        assert list(row["nanoseconds"]) == ["ours", "kio", "kafka-python", "kp compiled", "walker"]
        assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in row["nanoseconds"].values())


def test_the_table_says_what_was_measured_on_what(
    everything: tuple[subprocess.CompletedProcess[str], dict[str, Any]],
) -> None:
    done, figures = everything
    lines = done.stdout.splitlines()
    assert lines[0] == figures["machine"]
    assert lines[1] == ", ".join(f"{name} {number}" for name, number in figures["versions"].items())
    assert lines[2].startswith("best / median of 2 rounds; ")
    heads = [
        "message",
        "bytes",
        "ours (µs)",
        "kio ÷ ours",
        "kafka-python ÷ ours",
        "kp compiled ÷ ours",
        "walker ÷ ours",
    ]
    assert all(head in lines[4] for head in heads)
    assert len([line for line in lines if line.endswith((" met", " missed"))]) == 2 * len(row_codecs.cases())
    assert lines[-1] == "walker: our schema walker, values as dicts"


def test_cases_are_chosen_by_parts_of_their_names(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    done = run("--rounds", "1", "--seconds", "0.0001", "--only", "commitkey, 3X16", "--json", str(path))
    assert done.returncode == 0, done.stderr
    rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
    assert [row["message"] for row in rows[::2]] == [
        "OffsetCommitKey v0",
        "ConsumerGroupCurrentMemberAssignmentValue v0, 3x16",
    ]


def test_no_such_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert row_codecs.main(["--only", "Nothing"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    names = "".join(f"  {each.name}\n" for each in row_codecs.cases())
    assert printed.err == f"no case has 'Nothing' in its name; there are\n{names}"


@pytest.mark.parametrize("option", ["--rounds", "--seconds"])
def test_there_is_no_measuring_in_no_time(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        row_codecs.main([option, "0"])
    assert caught.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: argument {option}: 0 is not above zero\n")


def test_a_contender_that_writes_other_bytes_is_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(schema: MessageSchema, version: int) -> RowCodec:
        return RowCodec(lambda body: body, lambda value: value[:-1], "leaves out the last byte")

    def broken(schema: MessageSchema, version: int) -> RowCodec:
        raise ImportError("No module named 'broken'")

    ours = CONTENDERS["ours"]
    monkeypatch.setattr(row_codecs, "CONTENDERS", {"ours": ours, "forgetful": forgetful, "broken": broken})
    reports: list[str] = []
    commit = case("OffsetCommitValue v3")
    body = commit.message.encode(3)
    for row in row_codecs.run_case(commit, 1, 0.0001, reports.append):
        assert [timing.contender for timing in row.timings] == ["ours"]
        assert row.ratios("forgetful") is None
    assert reports == [
        f"forgetful is not timed on OffsetCommitValue v3: reads {body.hex()} and writes {body[:-1].hex()}",
        "broken is not timed on OffsetCommitValue v3: ImportError: No module named 'broken'",
    ]


def test_help_has_examples() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "tools/benchmarks/row_codecs.py --only OffsetCommit" in done.stdout
