"""Shots in docs/img are small and ask nobody for anything, and the terminal shows what the commands print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import shots

ROOT = Path(__file__).resolve().parents[2]


def test_readme_shows_shots_with_words_for_those_who_do_not_see_them() -> None:
    shown = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert {Path(place).name for _, place in shown} == {"terminal.svg"}
    assert all(len(words.split()) > 5 for words, _ in shown)


def test_shots_are_small() -> None:
    assert (shots.IMAGES / "terminal.svg").stat().st_size <= shots.MOST_BYTES


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
