"""Pictures in docs/img are small and send no requests, and the terminal shows the output of the commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import shots

ROOT = Path(__file__).resolve().parents[2]


def test_pages_show_shots_with_words_for_those_who_do_not_see_them() -> None:
    texts = "".join((ROOT / page).read_text(encoding="utf-8") for page in ("README.md", "docs/command.md"))
    shown = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", texts)
    assert {Path(place).name for _, place in shown} == {"terminal.svg", "report.png"}
    assert all(len(words.split()) > 5 for words, _ in shown)


def test_shots_are_small() -> None:
    there = [shots.IMAGES / "terminal.svg", *(shots.IMAGES / f"{name}.png" for name in shots.PAGES)]
    assert {path.name: path.stat().st_size for path in there if path.stat().st_size > shots.MOST_BYTES} == {}


def test_the_terminal_asks_no_host_for_a_font() -> None:
    text = (shots.IMAGES / "terminal.svg").read_text(encoding="utf-8")
    assert set(re.findall(r"https?:[^\"' )]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|<script|<image|<foreignObject", text)


@pytest.mark.matrix
def test_the_terminal_shows_what_the_commands_print(tmp_path: Path) -> None:
    shots.shoot_terminal(tmp_path / "terminal.svg")
    assert (tmp_path / "terminal.svg").read_text(encoding="utf-8") == (shots.IMAGES / "terminal.svg").read_text(
        encoding="utf-8"
    )


def test_a_shot_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        shots.main(["terminals"])
    assert "there is no shot terminals; there are terminal, report, site" in capsys.readouterr().err


def test_a_page_that_was_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shots, "SITE", ROOT / "build" / "nowhere")
    with pytest.raises(SystemExit, match=r"there is no build/nowhere/example/report.html: make docs builds it"):
        shots.main(["report"])
