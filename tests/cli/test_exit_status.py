"""The exit status: 0 complete, 1 rows are missing, 2 no answer, 3 findings. 1 has precedence over 3."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.running import run
from tests.cli.segment_bytes import batch, write_segment

_LOG = "__consumer_offsets-5"
_STOPS = [(b"\x00\x02\x00\x01g", b"\x00")]
"""A record at which a coordinator stops loading."""


@pytest.fixture
def whole(topics_dir: Path, tmp_path: Path) -> Path:
    shutil.copytree(topics_dir / "kafka-4.3" / "segments" / _LOG, tmp_path / "whole" / _LOG)
    return tmp_path / "whole"


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """A copy in which one byte of a batch is changed."""
    folder = shutil.copytree(whole, tmp_path / "damaged")
    first, *_ = sorted((folder / _LOG).glob("*.log"))
    data = bytearray(first.read_bytes())
    data[100] ^= 0xFF
    first.write_bytes(data)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [
        ("table", "current_offsets"),
        ("table", "groups", "--format", "json"),
        ("report",),
        ("report", "--fail-on", "note"),
        ("dump",),
        ("counts",),
        ("snapshot", "--output", "kept"),
    ],
    ids=" ".join,
)
def test_0_is_complete_1_is_rows_missing_2_is_no_answer(
    arguments: tuple[str, ...], whole: Path, damaged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments, str(whole)).status == (3 if "--fail-on" in arguments else 0)
    shutil.rmtree("kept", ignore_errors=True)
    assert run(*arguments, str(damaged)).status == 1
    assert run(*arguments, str(tmp_path / "nowhere")).status == 2


def test_a_record_that_stops_a_coordinator_is_a_finding_unless_rows_are_missing(tmp_path: Path) -> None:
    write_segment(tmp_path, batch(0, _STOPS), batch(1, [(b"\x00\x02\x00\x01h", b"\x00")]))
    assert run("table", "checks", str(tmp_path)).status == 3
    (log,) = tmp_path.rglob("*.log")
    data = bytearray(log.read_bytes())
    data[-1] ^= 0xFF
    log.write_bytes(data)
    ran = run("table", "checks", str(tmp_path))
    assert ran.status == 1, "a row about a stop, and rows that are missing"
    assert "about what stops a coordinator from loading" in ran.err


# -- report --fail-on --------------------------------------------------------------------------------------------------

Watch = Callable[..., tuple[int, str]]


@pytest.fixture
def watch(whole: Path, tmp_path: Path) -> Watch:
    """Runs a report with a comparison with the one in last.json."""
    last = tmp_path / "last.json"
    assert run("report", str(whole), "--output", str(last), "--no-tables").status == 0

    def report(*arguments: str, change: Callable[[dict[str, object]], None] | None = None) -> tuple[int, str]:
        document = json.loads(last.read_text())
        if change is not None:
            change(document)
        (tmp_path / "old.json").write_text(json.dumps(document))
        ran = run("report", str(whole), "--diff", str(tmp_path / "old.json"), *arguments)
        return ran.status, ran.err

    return report


def _forget(document: dict[str, object]) -> None:
    document["findings"] = []


def _lower(document: dict[str, object]) -> None:
    findings = document["findings"]
    assert isinstance(findings, list)
    assert "moderate" in {finding["level"] for finding in findings}
    for finding in findings:
        finding["level"] = "low" if finding["level"] == "moderate" else finding["level"]


def test_new_findings_are_those_that_came_or_grew_worse(watch: Watch) -> None:
    assert watch("--fail-on", "moderate")[0] == 3
    assert watch("--fail-on", "new:note") == (0, watch()[1]), "nothing is new"
    status, err = watch("--fail-on", "new:moderate", change=_forget)
    assert (status, "1 finding for --fail-on new:moderate\n" in err) == (3, True)
    assert watch("--fail-on", "new:moderate", change=_lower)[0] == 3, "what was low is moderate"
    assert watch("--fail-on", "new:critical", change=_forget)[0] == 0


def test_the_report_of_the_last_run_may_be_written_over(whole: Path, tmp_path: Path) -> None:
    last = str(tmp_path / "last.json")
    watched = ("report", str(whole), "--output", last, "--no-tables", "--fail-on")
    assert run(*watched, "moderate").status == 3
    again = run(*watched, "new:moderate", "--diff", last, "--overwrite")
    assert (again.status, "; since " in again.err, "no change" in again.err) == (0, True, True)


def test_missing_rows_win_over_findings(damaged: Path) -> None:
    ran = run("report", str(damaged), "--fail-on", "high")
    assert ran.status == 1
    assert "for --fail-on high\n" in ran.err, "and they are told"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--fail-on", "new:high"), "--fail-on new:… needs --diff OLD.json"),
        (("--fail-on", "new:hig"), "'hig' is not a level; did you mean high?"),
        (("--fail-on", "old:high"), "'old:high': the only prefix of a level is new, as in new:high"),
        (("--fail-on", ":high"), "':high': the only prefix of a level is new, as in new:high"),
    ],
)
def test_wrong_levels_are_told(arguments: tuple[str, ...], why: str, whole: Path) -> None:
    ran = run("report", str(whole), *arguments)
    assert (ran.status, why in ran.err) == (2, True), ran.err
