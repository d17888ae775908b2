"""The page about measurements, docs/trust.md, and the figures from which it is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tools.trust import __main__ as command
from tools.trust.figures import kept, record
from tools.trust.measurements import MEASUREMENTS
from tools.trust.page import page


def test_the_page_is_what_the_figures_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_a_page_with_another_figure_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "trust.md"
    other.write_text(command.PAGE.read_text("utf-8").replace("10710 by", "10711 by"), encoding="utf-8")
    monkeypatch.setattr(command, "PAGE", other)
    assert command.main(["--check"]) == 1
    assert "docs/trust.md is not what the recorded figures give" in capsys.readouterr().err


def test_what_was_not_measured_says_so_and_what_was_has_its_day() -> None:
    text = page({"kills": {"day": "2026-01-02", "figures": {"runs killed": "7"}}})
    killed, _, rest = text.partition("\n## Killed snapshots\n")[2].partition("\n## ")
    assert killed.endswith("\n2026-01-02:\n\n- runs killed: 7\n")
    assert rest.partition("\n## ")[0].endswith("\nNot measured: no run has recorded figures.\n")
    for measurement in MEASUREMENTS:
        assert f"## {measurement.title}\n\n`{measurement.command}`\n\n- **Proves**: " in text


def test_figures_are_kept_by_name_and_a_name_that_nothing_has_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "trust.json"
    record("kills", {"runs killed": "7"}, day="2026-01-02", file=file)
    record("fuzz", {"hours": "3"}, day="2026-01-03", file=file)
    record("kills", {"runs killed": "9"}, day="2026-01-04", file=file)
    assert kept(file)["kills"] == {"day": "2026-01-04", "figures": {"runs killed": "9"}}
    assert kept(file)["fuzz"]["figures"] == {"hours": "3"}
    # The figures of `reach` are those of docs/judge-reach.json, and not written twice.
    with pytest.raises(ValueError, match="has no measurement 'reach': add it to"):
        record("reach", {"branches": "7"}, file=file)
    file.write_text(json.dumps({"other": {}}))
    with pytest.raises(ValueError, match="has no measurement 'other'"):
        kept(file)


@pytest.mark.parametrize("arguments", [["--record", "kills"], ["runs=7"], ["--record", "kills", "runs="]])
def test_figures_without_a_name_or_a_value_are_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(arguments)
    assert ended.value.code == 2
    assert "--record takes a name and figures" in capsys.readouterr().err
